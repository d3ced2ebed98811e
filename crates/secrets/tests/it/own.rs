//! Credentials of the owner's own kinds.

use crate::redact;
use bailey_secrets::{Characters, OwnShape, OwnShapeError, Redactor, Vault};

fn own(name: &str, prefix: &str, characters: Characters, at_least: usize) -> OwnShape {
    OwnShape::new(name, prefix, characters, at_least).unwrap()
}

fn redactor() -> Redactor {
    let shapes = [
        own("ticket", "tck_", Characters::Alnum, 12),
        own("customer", "KD-", Characters::Digits, 8),
        own("session", "SID:", Characters::Hex, 16),
    ];
    Redactor::with_shapes(&Vault::default(), &shapes)
}

#[test]
fn what_begins_like_one_and_goes_on_like_one_is_taken_out_whole() {
    let (knows, control) = (redactor(), Redactor::new(&Vault::default()));
    for (text, clean) in [
        ("a tck_Ab3Cd4Ef5Gh6Ij7Kl8 b", "a [redacted:ticket] b"),
        ("{\"id\":\"KD-0123456789\"}", "{\"id\":\"[redacted:customer]\"}"),
        ("SID:00aa11bb22cc33dd44ee.", "[redacted:session]."),
    ] {
        assert_eq!(redact(&knows, text), clean);
        assert_eq!(redact(&control, text), text, "control");
    }
}

#[test]
fn what_only_looks_a_little_like_one_stays() {
    let knows = redactor();
    for text in [
        "tck_xxxxxxxxxxxxxxxx",
        "tck_Ab3Cd4",
        "KD-1234567",
        "xtck_Ab3Cd4Ef5Gh6Ij7Kl8",
        "KD-abcdefgh1234",
        "TCK_Ab3Cd4Ef5Gh6Ij7Kl8",
    ] {
        assert_eq!(redact(&knows, text), text);
    }
}

#[test]
fn a_stream_gives_what_the_whole_gives_wherever_it_is_cut() {
    let knows = redactor();
    let text = "x tck_Ab3Cd4Ef5Gh6Ij7Kl8Mn9 KD-0123456789012 tck_no SID:00aa11bb22cc33dd44ee";
    let whole = redact(&knows, text);
    assert_eq!(whole.matches("[redacted:").count(), 3, "{whole}");
    for first in 0..=text.len() {
        for second in first..=text.len() {
            let mut stream = knows.stream();
            let mut out = stream.push(&text.as_bytes()[..first]);
            out.extend(stream.push(&text.as_bytes()[first..second]));
            out.extend(stream.push(&text.as_bytes()[second..]));
            out.extend(stream.finish());
            assert_eq!(String::from_utf8(out).unwrap(), whole, "cut at {first} and {second}");
        }
    }
}

#[test]
fn no_half_of_one_is_left_beside_a_cut() {
    let shape =
        own("long", "prefix_of_sixty_four_bytes_that_is_as_long_as_one_may_be_at_most", Characters::Word, 64);
    let knows = Redactor::with_shapes(&Vault::default(), &[shape]);
    let body = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0A1b2C3d4E5f6G7h8I9j0K1l2";
    let secret = format!("prefix_of_sixty_four_bytes_that_is_as_long_as_one_may_be_at_most{body}");
    let text = format!("{}{secret}", ". ".repeat(100));
    for cut in 200..text.len() {
        let shown = knows.redact_before_cut(&text.as_bytes()[..cut]);
        assert!(!String::from_utf8_lossy(&shown).contains("prefix_of"), "cut at {cut}");
    }
}

#[test]
fn what_would_eat_names_and_digests_is_no_kind() {
    let wrong =
        |name, prefix, at_least| OwnShape::new(name, prefix, Characters::Alnum, at_least).unwrap_err();
    assert!(matches!(wrong("a b", "tck_", 8), OwnShapeError::Name(_)));
    assert!(matches!(wrong("a", "tk", 8), OwnShapeError::Prefix(_)));
    assert!(matches!(wrong("a", "täck", 8), OwnShapeError::Prefix(_)));
    assert!(matches!(wrong("a", "a b c", 8), OwnShapeError::Prefix(_)));
    let long = "x".repeat(65);
    assert!(matches!(wrong("a", &long, 8), OwnShapeError::Prefix(_)));
    for common in ["0199", "beef", "2026-", "de:ad"] {
        assert!(matches!(wrong("a", common, 8), OwnShapeError::Common(_)), "{common}");
    }
    assert!(matches!(wrong("a", "tck_", 5), OwnShapeError::AtLeast(5)));
    assert!(matches!(wrong("a", "tck_", 65), OwnShapeError::AtLeast(65)));
}
