//! Streams: however they are cut, they give what the whole gives, and never a secret.

use crate::redactor;
use bailey_secrets::Redactor;
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use proptest::prelude::*;

/// Cuts `bytes` at the given places and redacts the pieces.
fn in_pieces(redactor: &Redactor, bytes: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut stream = redactor.stream();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.push(bytes.len());
    cuts.sort_unstable();
    let (mut out, mut from) = (Vec::new(), 0);
    for cut in cuts {
        out.extend(stream.push(bytes.get(from..cut).unwrap()));
        from = cut;
    }
    out.extend(stream.finish());
    out
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn percent(value: &str) -> String {
    value
        .bytes()
        .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}

/// The spellings, made by other code than the crate's.
fn spellings(value: &str) -> Vec<String> {
    let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    vec![
        value.to_owned(),
        STANDARD.encode(value),
        URL_SAFE_NO_PAD.encode(value),
        hex.to_uppercase(),
        hex,
        percent(value),
        value.replace('\\', "\\\\").replace('"', "\\\""),
        value.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect(),
        value
            .chars()
            .map(|c| if c.is_ascii_lowercase() { c.to_string() } else { format!("&#{};", u32::from(c)) })
            .collect(),
    ]
}

/// Values that are strong by construction, without the brackets of a mark; many hold what looks like a
/// reference, and none ends in what another one right behind it makes one of.
fn value() -> impl Strategy<Value = String> {
    "[a-z]{3}[0-9]{3}[A-Z]{3}(&lt|&plus;|&amp;|&#6|)[ -Z^-~\\\\]{3,40}[a-z]{3}"
        .prop_map(|text| text.replace(' ', "+"))
}

/// Pieces of text in which secrets and near-secrets are common; `Err` stands for a spelling of a value.
fn text() -> impl Strategy<Value = Vec<Result<String, (usize, usize)>>> {
    let run = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0";
    let fixed = [
        "sk-",
        "sk-ant-",
        "ghp_",
        "eyJ",
        "eyJhbGciOiJIUzI1NiJ9.",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----\n",
        "-----END PRIVATE KEY-----",
        "Authorization: Bearer ",
        run,
        "\n",
        " ",
        "é",
        "-----",
        "\\n",
        "%2F",
        // Not the first half of an escape whose other half is a letter of a value: that is another text.
        "\\u00|",
        "&#|",
        "&amp;",
        ".",
        "!",
    ];
    let fixed = prop::sample::select(fixed.map(str::to_owned).to_vec());
    let piece = prop_oneof![
        3 => fixed.prop_map(Ok),
        1 => "[a-zA-Z0-9 .]{0,20}".prop_map(Ok),
        2 => (0..2usize, 0..9usize).prop_map(Err),
    ];
    prop::collection::vec(piece, 0..25)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn pieces_equal_the_whole_and_hold_no_secret(
        values in [value(), value()],
        pieces in text(),
        cuts in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        let redactor = redactor(&[("ONE", &values[0]), ("TWO", &values[1])]);
        prop_assert_eq!(redactor.unmatched().len(), 0);
        let text: String = pieces
            .into_iter()
            .map(|piece| piece.unwrap_or_else(|(which, spelling)| spellings(&values[which])[spelling].clone()))
            .collect();
        let whole = redactor.redact_bytes(text.as_bytes()).into_owned();
        let found = redactor.redact(&text);
        prop_assert_eq!(found.text.as_bytes(), &whole);
        prop_assert_eq!(&in_pieces(&redactor, text.as_bytes(), &cuts), &whole);
        let each: Vec<usize> = (0..text.len()).collect();
        prop_assert_eq!(&in_pieces(&redactor, text.as_bytes(), &each), &whole);
        for spelling in values.iter().flat_map(|value| spellings(value)) {
            prop_assert!(!holds(&whole, spelling.as_bytes()), "{} in {}", spelling, String::from_utf8_lossy(&whole));
        }
    }

    #[test]
    fn any_bytes_in_pieces_equal_the_whole(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        cuts in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        let redactor = redactor(&[("ONE", "x7Kq9Lm2pBdW")]);
        let whole = redactor.redact_bytes(&bytes).into_owned();
        prop_assert_eq!(in_pieces(&redactor, &bytes, &cuts), whole);
    }
}

#[test]
fn without_the_value_every_spelling_would_show() {
    let value = "x7K/q9+Lm\"2pBd\\W";
    let (empty, filled) = (redactor(&[]), redactor(&[("ONE", value)]));
    for spelling in spellings(value) {
        // Control: the same probe, with only the value missing from the vault.
        let shown = in_pieces(&empty, spelling.as_bytes(), &[3]);
        assert!(holds(&shown, spelling.as_bytes()), "{spelling}");
        let hidden = in_pieces(&filled, spelling.as_bytes(), &[3]);
        assert!(!holds(&hidden, spelling.as_bytes()), "{spelling}");
    }
}

#[test]
fn a_long_input_is_the_same_across_windows() {
    let redactor = redactor(&[("ONE", "x7Kq9Lm2pBdW")]);
    for shift in 0..30 {
        let text = format!("{}x7Kq9Lm2pBdW{}", "-".repeat((64 << 10) - shift), ".".repeat(100_000));
        let found = redactor.redact(&text);
        assert_eq!(found.hits, 1, "{shift}");
        assert!(!found.text.contains("x7Kq9"), "{shift}");
    }
}

#[test]
fn ordinary_text_is_not_held_back() {
    let redactor = redactor(&[("ONE", "x7Kq9Lm2pBdW")]);
    let mut stream = redactor.stream();
    assert_eq!(stream.push(b"Hello, world, this is "), b"Hello, world, this is ");
    assert_eq!(stream.push(b"x7Kq9L"), b"");
    assert_eq!(stream.push(b"!"), b"x7Kq9L!");
    assert_eq!(stream.push(b"x7Kq9Lm2pBdW"), b"[redacted:ONE]");
    assert_eq!(stream.hits(), 1);
    assert_eq!(stream.finish(), b"");
}
