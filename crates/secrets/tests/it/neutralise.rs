//! Deceptive characters become visible.

use bailey_secrets::neutralise;
use proptest::prelude::*;
use std::borrow::Cow;

#[test]
fn escapes() {
    for (text, expected) in [
        ("\u{1b}[31mred\u{1b}[0m", "\\x1b[31mred\\x1b[0m"),
        ("\u{1b}]8;;http://x\u{7}link", "\\x1b]8;;http://x\\x07link"),
        ("\u{9b}2J", "\\u{9b}2J"),
        ("over\rwrite\0", "over\\rwrite\\x00"),
        ("a\u{202e}txt.exe", "a\\u{202e}txt.exe"),
        ("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}"),
        ("tag\u{e0041}", "tag\\u{e0041}"),
        ("a\u{fe0f}\u{fe0f}", "a\\u{fe0f}\\u{fe0f}"),
        ("⚠\u{fe0f}\u{fe0f}", "⚠\u{fe0f}\\u{fe0f}"),
    ] {
        assert_eq!(neutralise(text), expected);
    }
}

#[test]
fn ordinary_text_is_borrowed() {
    let text = "fn main() {\n\tprintln!(\"Grüße, мир, 世界, ⚠\u{fe0f}, 1\u{fe0f}\u{20e3}, 🙂, שלום\");\n}\n";
    assert!(matches!(neutralise(text), Cow::Borrowed(same) if same == text));
}

fn is_forbidden(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{61c}' | '\u{ad}')
}

/// Text in which the characters that matter are common.
fn hostile() -> impl Strategy<Value = String> {
    let bad = prop::sample::select(vec![
        '\u{1b}',
        '\r',
        '\u{202e}',
        '\u{200d}',
        '\u{fe0f}',
        '\u{e0001}',
        '\u{85}',
        '1',
    ]);
    prop::collection::vec(prop_oneof![bad, any::<char>()], 0..60)
        .prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #[test]
    fn none_is_left_and_twice_is_once(text in hostile()) {
        let once = neutralise(&text).into_owned();
        prop_assert!(!once.contains(is_forbidden), "{once:?}");
        let again = neutralise(&once);
        prop_assert!(matches!(again, Cow::Borrowed(_)), "{once:?}");
    }
}
