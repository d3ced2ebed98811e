//! Stores of secrets, and the screen that keeps secrets out of text.

use bailey_secrets::{
    Key, Needs, Redactor, Sealed, Secret, Vault, neutralise, parse_dotenv, set_in_dotenv, unset_in_dotenv,
};

/// The control: a bug behind a real parser, that a name and a value together reach.
pub(crate) fn planted(data: &[u8]) {
    let Ok(pairs) = str::from_utf8(data).map_err(drop).and_then(|text| parse_dotenv(text).map_err(drop))
    else {
        return;
    };
    for (name, value) in pairs {
        assert!(!(name == "PLANTED" && value.expose().ends_with('!')), "the planted bug was found");
    }
}

/// A value that was read can be set again and is the same, and one that was removed is gone.
pub(crate) fn dotenv(text: &str) {
    let pairs = match parse_dotenv(text) {
        Ok(pairs) => pairs,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    for (name, value) in pairs.iter().take(8) {
        if let Ok(set) = set_in_dotenv(text, name, value) {
            assert_eq!(plain(&set), plain(text), "setting `{name}` to what it is changed something");
        }
        let unset = unset_in_dotenv(text, name).expect("a name that is there can be removed");
        assert!(plain(&unset).iter().all(|(other, _)| other != name), "`{name}` is still there");
    }
}

fn plain(text: &str) -> Vec<(String, String)> {
    let pairs = parse_dotenv(text).expect("what was changed can be read");
    pairs.into_iter().map(|(name, value)| (name, value.expose().to_owned())).collect()
}

/// A sealed store: nobody can make one that opens without its key.
pub(crate) fn sealed(text: &str) {
    let Ok(sealed) = Sealed::parse(text) else { return };
    let _ = sealed.names();
    // A passphrase is slow on purpose.
    if sealed.needs() == Needs::File {
        let key = Key::file_text(&[7; 32]);
        assert!(sealed.open(&Key::File(Secret::new(key.to_string()))).is_err(), "a forged store was opened");
    }
}

/// Where a secret stands in the bytes, it is out of them afterwards, however they were cut; and what is shown
/// does not act on a terminal.
pub(crate) fn screen(data: &[u8]) {
    const SECRET: &str = "kR7-vQ2_pLx9Zt4wN8";
    let mut vault = Vault::default();
    vault.insert("SECRET".into(), Secret::new(SECRET.into()));
    let redactor = Redactor::new(&vault);
    // `\x01` stands for the secret, so that it is met often.
    let bytes = data.split(|byte| *byte == 1).collect::<Vec<_>>().join(SECRET.as_bytes());
    let whole = redactor.redact_bytes(&bytes);
    assert!(
        !whole.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()),
        "the secret is still there"
    );
    let mut stream = redactor.stream();
    let mut pieces = Vec::new();
    for piece in bytes.chunks(1 + data.len() % 17) {
        pieces.extend(stream.push(piece));
    }
    pieces.extend(stream.finish());
    assert_eq!(pieces, whole.as_ref(), "the screen depends on how a stream is cut");
    let text = String::from_utf8_lossy(&bytes);
    let shown = neutralise(&text);
    assert!(
        !shown.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')),
        "a control character is left"
    );
    assert_eq!(neutralise(&shown), shown, "neutralising twice is another thing than once");
}
