//! The sealed store: opened by its key alone, and changed by nobody unseen.

use bailey_secrets::{
    Key, Needs, SEAL_RANDOM, Sealed, SealedError, Secret, parse_dotenv, set_in_dotenv, unset_in_dotenv,
};
use proptest::prelude::*;

const RANDOM: [u8; SEAL_RANDOM] = [7; SEAL_RANDOM];

fn secrets() -> Vec<(String, Secret)> {
    vec![
        ("A_API_KEY".into(), Secret::new("value-of-a".into())),
        ("B_TOKEN".into(), Secret::new("two\nlines 'and' \"quotes\" $x \\".into())),
    ]
}

fn passphrase(text: &str) -> Key {
    Key::Passphrase(Secret::new(text.into()))
}

fn file(byte: u8) -> Key {
    Key::File(Secret::new(Key::file_text(&[byte; 32]).to_string()))
}

fn values(opened: Vec<(String, Secret)>) -> Vec<(String, String)> {
    opened.into_iter().map(|(name, secret)| (name, secret.expose().to_owned())).collect()
}

#[test]
fn what_was_sealed_is_opened_by_its_key_alone() {
    for (key, other, needs) in [
        (passphrase("open sesame"), passphrase("open sesam"), Needs::Passphrase),
        (file(1), file(2), Needs::File),
    ] {
        let text = Sealed::seal(&secrets(), &key, &RANDOM).unwrap();
        assert!(!text.contains("value-of-a"), "{text}");
        let sealed = Sealed::parse(&text).unwrap();
        assert_eq!(
            (sealed.needs(), sealed.names()),
            (needs, &["A_API_KEY".to_owned(), "B_TOKEN".into()][..])
        );
        assert_eq!(values(sealed.open(&key).unwrap()), values(secrets()));
        assert_eq!(sealed.open(&other).unwrap_err(), SealedError::Key);
        assert!(!sealed.open(&Key::File(Secret::new("short".into()))).unwrap_err().to_string().is_empty());
    }
}

#[test]
fn a_changed_byte_is_found_wherever_it_is() {
    let text = Sealed::seal(&secrets(), &file(1), &RANDOM).unwrap();
    assert!(Sealed::parse(&text).unwrap().open(&file(1)).is_ok(), "the control");
    for at in 0..text.trim_end().len() {
        let mut bytes = text.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).unwrap();
        let opened = Sealed::parse(&changed).and_then(|sealed| sealed.open(&file(1)));
        // The last characters before Base64's `=` may hold bits that mean nothing; Base64 refuses those.
        assert!(opened.is_err(), "byte {at} was changed unseen");
    }
}

#[test]
fn what_is_no_sealed_store_is_refused() {
    for text in [
        "",
        "bailey-sealed 2\nkey-file\n\n\n\n",
        "a\nb\nc\nd\ne\nf\n",
        "bailey-sealed 1\nkey\nA\nAA==\nAA==\n",
    ] {
        assert!(matches!(Sealed::parse(text), Err(SealedError::Form(_))), "{text:?}");
    }
    assert!(Sealed::parse(&"x".repeat(1 << 20)).is_err());
}

#[test]
fn a_line_is_replaced_in_its_place_and_the_rest_stays() {
    let text = "# mine\nA=1\n\n# B=old\nexport B='two'\nC=3 # three\n";
    let changed = set_in_dotenv(text, "B", &Secret::new("new".into())).unwrap();
    assert_eq!(changed.as_str(), "# mine\nA=1\n\n# B=old\nB=new\nC=3 # three\n");
    let changed = set_in_dotenv(text, "D", &Secret::new("4 5".into())).unwrap();
    assert_eq!(changed.as_str(), format!("{text}D=\"4 5\"\n"));
    let changed = unset_in_dotenv(text, "B").unwrap();
    assert_eq!(changed.as_str(), "# mine\nA=1\n\n# B=old\nC=3 # three\n");
    assert!(
        set_in_dotenv("broken", "D", &Secret::new("x".into())).is_err(),
        "a broken file is not written over"
    );
    for name in ["", "1A", "A B", "A=B", "A\nB"] {
        assert!(set_in_dotenv("", name, &Secret::new("x".into())).is_err(), "{name:?}");
    }
}

proptest! {
    #[test]
    fn every_value_comes_back(value in "\\PC{0,40}|[\\x01-\\x7f]{0,40}") {
        let text = set_in_dotenv("X=1\n", "NAME", &Secret::new(value.clone())).unwrap();
        let pairs = values(parse_dotenv(&text).unwrap());
        prop_assert_eq!(&pairs[1], &("NAME".to_owned(), value));
    }
}
