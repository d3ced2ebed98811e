//! Deceptive characters become visible.

use bailey_secrets::{meant, neutralise};
use proptest::prelude::*;
use std::borrow::Cow;

#[test]
fn escapes() {
    for (text, expected) in [
        ("\u{1b}[31mred\u{1b}[0m", "␛[31mred␛[0m"),
        ("\u{1b}]8;;http://x\u{7}link", "␛]8;;http://x␇link"),
        ("\u{9b}2J", "⟨U+009B⟩2J"),
        ("over\rwrite\0", "over␍write␀"),
        ("a\u{202e}txt.exe", "a⟨U+202E⟩txt.exe"),
        ("zero\u{200b}width\u{feff}", "zero⟨U+200B⟩width⟨U+FEFF⟩"),
        ("tag\u{e0041}", "tag⟨U+E0041⟩"),
        ("a\u{fe0f}\u{fe0f}", "a⟨U+FE0F⟩⟨U+FE0F⟩"),
        ("⚠\u{fe0f}\u{fe0f}", "⚠\u{fe0f}⟨U+FE0F⟩"),
    ] {
        assert_eq!(neutralise(text), expected);
    }
}

/// A language's own escape is another text than the character.
#[test]
fn a_mark_is_no_escape_of_any_language() {
    let (hidden, plain) = ("let s = \"\u{202e}\u{1b}\";", "let s = \"\\u{202e}\\x1b\";");
    assert_ne!(neutralise(hidden), plain);
    assert_eq!(neutralise(plain), plain);
    assert_eq!(meant(&neutralise(hidden), hidden), hidden);
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
