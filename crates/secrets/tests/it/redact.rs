//! Known values: their spellings, the rule of strength, overlaps.

use crate::{redact, redactor, vault};
use bailey_secrets::{Redactor, has_mark, marks};
use std::borrow::Cow;

const VALUE: &str = "x7K/q9+Lm\"2 pé";

#[test]
fn every_spelling() {
    let redactor = redactor(&[("MY_TOKEN", VALUE)]);
    for spelling in [
        VALUE,
        "eDdLL3E5K0xtIjIgcMOp",
        "eDdLL3E5K0xtIjIgcMOp".to_lowercase().as_str(),
        "78374b2f71392b4c6d22322070c3a9",
        "78374B2F71392B4C6D22322070C3A9",
        "x7K%2Fq9%2BLm%222%20p%C3%A9",
        "x7K%2fq9%2bLm%222%20p%c3%a9",
        "x7K%2Fq9%2BLm%222+p%C3%A9",
        "x7K/q9%2BLm%222%20p%C3%A9",
        "x7K/q9+Lm\\\"2 pé",
        "x7K\\/q9+Lm\\\"2 p\\u00e9",
        "x7K/q9+Lm\\\\\\\"2 pé",
    ] {
        let found = redact(&redactor, &format!("before {spelling} after"));
        let control = spelling == "eddll3e5k0xtijigcmop";
        assert_eq!(found == "before [redacted:MY_TOKEN] after", !control, "{spelling}: {found}");
    }
}

#[test]
fn base64_at_every_alignment() {
    use base64::{Engine as _, engine::general_purpose::*};
    let redactor = redactor(&[("MY_TOKEN", "x7Kq9??>>Lm2pB")]);
    for before in ["", "a", "ab", "abc", "user:"] {
        for after in ["", "z", "zz", "\n"] {
            let text = format!("{before}x7Kq9??>>Lm2pB{after}");
            for engine in [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD] {
                let found = redact(&redactor, &engine.encode(&text));
                assert_eq!(marks(&found).collect::<Vec<_>>(), ["MY_TOKEN"], "{text:?} {found}");
            }
        }
    }
}

#[test]
fn weak_and_common_values_are_not_matched() {
    let weak = [
        ("A", "short7!"),
        ("B", "password"),
        ("C", "Password123"),
        ("D", "12345678"),
        ("E", "aaaaaaaa1"),
        ("F", "production"),
        ("G", "abcdefgh1"),
        ("H", "true"),
        ("I", "redacted:"),
        ("J", "changeme"),
        ("K", "20240131"),
        ("L", "github-token"),
    ];
    let vault = vault(&weak);
    let redactor = Redactor::new(&vault);
    for (_, value) in weak {
        assert!(matches!(redactor.redact(value).text, Cow::Borrowed(same) if same == value), "{value}");
    }
    assert_eq!(redactor.unmatched(), weak.map(|(name, _)| name));
    // Control: one more character of another kind, and it is a secret.
    let strong = crate::redactor(&[("A", "sh0rt7!x"), ("F", "produc7ion")]);
    assert_eq!(strong.unmatched(), [""; 0]);
    assert_eq!(redact(&strong, "sh0rt7!x produc7ion"), "[redacted:A] [redacted:F]");
}

#[test]
fn overlapping_matches_become_one_mark() {
    let redactor = redactor(&[("A", "abc123XYZ-tail"), ("B", "tail-987zyx!Q"), ("C", "x7Kq9!Lm2pBd")]);
    assert_eq!(redact(&redactor, "<abc123XYZ-tail-987zyx!Q>"), "<[redacted:A]>");
    // A shape that ends inside a known value must not leave the rest of it.
    let text = "Authorization: Bearer 0aB1cD2eF3gH4x7Kq9!Lm2pBd.";
    assert_eq!(redact(&redactor, text), "Authorization: [redacted:authorization].");
}

#[test]
fn counts_and_bytes() {
    let redactor = redactor(&[("A", "abc123XYZ-tail")]);
    let found = redactor.redact("abc123XYZ-tail and abc123XYZ-tail");
    assert_eq!((found.hits, found.covered), (2, 28));
    let bytes = [&b"\xff\xfe"[..], b"abc123XYZ-tail", b"\x80\0"].concat();
    assert_eq!(redactor.redact_bytes(&bytes), Cow::<[u8]>::Owned(b"\xff\xfe[redacted:A]\x80\0".to_vec()));
    assert!(matches!(redactor.redact_bytes(b"\xff nothing"), Cow::Borrowed(_)));
}

#[test]
fn marks_are_found_and_safe() {
    assert_eq!(
        marks("a [redacted:X] b [redacted:y-1.z] [redacted:] [redacted:a b] [redacted:q").collect::<Vec<_>>(),
        ["X", "y-1.z"]
    );
    assert!(has_mark("[redacted:[redacted:A]") && !has_mark("[redacted:") && !has_mark("redacted"));
    let redactor = redactor(&[("odd \"name\"\n]", "abc123XYZ-tail")]);
    assert_eq!(redact(&redactor, "abc123XYZ-tail"), "[redacted:odd__name___]");
}

#[test]
fn hostile_input_takes_linear_time() {
    let redactor = redactor(&[("A", "eyJeyJeyJ-1Q2w3E4r"), ("B", "sk-sk-sk-sk-sk-1A")]);
    let pieces = [
        "eyJ.",
        "-eyJ",
        "/eyJaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "sk-",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----",
        "Authorization: Bearer ",
    ];
    for piece in pieces {
        let text = piece.repeat(4_000_000 / piece.len());
        let start = std::time::Instant::now();
        let _ = redactor.redact(&text);
        // Quadratic time would be hours; this allows a slow debug build on a busy machine.
        assert!(start.elapsed().as_secs() < 20, "{piece}: {:?}", start.elapsed());
    }
}

#[test]
fn the_first_use_is_cheap() {
    let value = |n: usize| {
        format!(
            "sk-proj-{n}-A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0"
        )
    };
    let pairs: Vec<_> = (0..8).map(|n| (format!("KEY_{n}"), value(n))).collect();
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let start = std::time::Instant::now();
    let redactor = redactor(&pairs);
    assert_eq!(redactor.redact("nothing").hits, 0);
    let took = start.elapsed();
    println!("first use with eight long keys: {took:?}");
    // A release build takes a few milliseconds at most; this is for a debug build on a busy machine.
    assert!(took.as_millis() < 500, "{took:?}");
}
