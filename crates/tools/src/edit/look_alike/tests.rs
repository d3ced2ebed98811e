use super::*;
use proptest::prelude::*;

fn told(text: &str, old: &str) -> String {
    difference(text, old).unwrap_or_default()
}

#[test]
fn the_letter_and_its_place_are_named() {
    for (text, old, expected) in [
        (
            "a\nprice:\u{a0}10\n",
            "price: 10",
            "line 2, column 7 has U+00A0 (no-break space) where you wrote a space",
        ),
        ("It\u{2019}s\n", "It's", "line 1, column 3 has U+2019 (right single quote) where you wrote `'`"),
        ("It's\n", "It\u{2019}s", "line 1, column 3 has `'` where you wrote U+2019 (right single quote)"),
        ("a \u{2013} b\n", "a - b", "line 1, column 3 has U+2013 (en dash) where you wrote `-`"),
        (
            "foo\u{200b}bar = 1\n",
            "foobar = 1",
            "line 1, column 3 has `o` and U+200B (zero width space) where you wrote `o`",
        ),
        (
            "the cafe\u{301} opens\n",
            "the caf\u{e9} opens",
            "line 1, column 8 has `e` and U+0301 (an accent by itself) where you wrote U+00E9 (\u{e9})",
        ),
        (
            "one\rtwo\r",
            "one\ntwo",
            "line 1, column 4 has U+000D (carriage return) where you wrote a line feed",
        ),
        (
            "one\r\ntwo\nthree\n",
            "one\ntwo",
            "line 1, column 3 has `e` and U+000D (carriage return) where you wrote `e`",
        ),
        ("wait\u{2026} now\n", "wait... now", "line 1, column 5 has U+2026 (\u{2026}) where you wrote `.`"),
        ("p\u{430}ss\n", "pass", "line 1, column 2 has U+0430 (\u{430}) where you wrote `a`"),
        ("\u{feff}using\n", "\u{a0}using", ""),
        (
            "\u{1112}\u{1161}\u{11ab}\n",
            "\u{d55c}",
            "line 1, column 1 has U+1112 (\u{1112}) where you wrote U+D55C (\u{d55c})",
        ),
        // No more than looks the same.
        ("price: 10\n", "price: 11", ""),
        ("a b\n", "a b", ""),
        ("a\n", "\u{200b}", ""),
    ] {
        assert_eq!(told(text, old), expected, "{text:?} {old:?}");
    }
    let many = told("\u{201c}a\u{201d} \u{2013} \u{201c}b\u{201d}", "\"a\" - \"b\"");
    assert!(many.ends_with("; and 2 more"), "{many}");
}

#[test]
fn a_long_text_is_compared_in_linear_time() {
    let text = "\u{e9}\u{a0}".repeat(1 << 19);
    assert_eq!(difference(&text, &format!("{}x", "e ".repeat(1 << 18))), None);
    assert!(difference(&text, &"e ".repeat(1 << 18)).unwrap().contains("more"));
}

proptest! {
    #[test]
    fn no_input_panics(text in "\\PC{0,30}", old in "\\PC{0,6}") {
        let _ = difference(&text, &old);
    }
}
