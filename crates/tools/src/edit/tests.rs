use super::*;
use proptest::prelude::*;

fn check(text: &str, old: &str, new: &str, expected: &str) {
    assert_eq!(replace(text, old, new, false).as_deref(), Ok(expected), "{text:?}: {old:?} to {new:?}");
}

fn refused(text: &str, old: &str, new: &str) -> String {
    replace(text, old, new, false).unwrap_err().to_string()
}

#[test]
fn replaces_the_one_place() {
    check("a\nb\nc\n", "b\n", "B\nBB\n", "a\nB\nBB\nc\n");
    check("a\nb", "b", "c", "a\nc");
    check("\tif x {\n", "\tif x {", "    if y {", "    if y {\n");
    check("ä ö ü", "ö", "", "ä  ü");
}

#[test]
fn keeps_crlf_and_a_missing_newline() {
    check("a\r\nb\r\nc", "a\nb\n", "x\ny\nz\n", "x\r\ny\r\nz\r\nc");
    check("a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n");
    check("a\r\nb\r\n", "\nb", "\nc", "a\r\nc\r\n");
    check("a\r\nb\r\n", "a\r\nb", "a\nx\nb", "a\r\nx\r\nb\r\n");
    assert_eq!(replace("a\r\nb\r\n", "a\r\n", "a\n", false), Err(EditError::Same));
    // Mixed line ends are left as they are.
    check("a\r\nb\nc\n", "b\n", "x\n", "a\r\nx\nc\n");
}

/// What is not seen is shown by a mark: a text that is copied from there means what stands in the file.
#[test]
fn takes_what_is_shown_for_what_is_not_seen() {
    check(
        "\u{feff}using System;\n",
        "⟨U+FEFF⟩using System;",
        "⟨U+FEFF⟩using System.IO;",
        "\u{feff}using System.IO;\n",
    );
    check("👨\u{200d}👩 one\n", "👨⟨U+200D⟩👩 one", "👨⟨U+200D⟩👩 two", "👨\u{200d}👩 two\n");
    check("price:\u{a0}10\n", "price:⟨U+00A0⟩10", "price:⟨U+00A0⟩11", "price:\u{a0}11\n");
    check("a\u{1b}[0m b\n", "␛[0m b", "␛[1m c", "a\u{1b}[1m c\n");
    // A file that holds the marks themselves, and the control: what is not in the file stays what was
    // written.
    check("␛ is \u{1b}\n", "␛ is", "␛ was", "␛ was \u{1b}\n");
    check("plain\n", "plain", "⟨U+200D⟩", "⟨U+200D⟩\n");
}

#[test]
fn replaces_all() {
    assert_eq!(replace("a b a", "a", "aa", true).as_deref(), Ok("aa b aa"));
    assert_eq!(replace("x\r\ny\r\nx\r\n", "x\n", "z\n", true).as_deref(), Ok("z\r\ny\r\nz\r\n"));
    assert!(matches!(replace("b", "a", "c", true), Err(EditError::Missing { .. })));
}

#[test]
fn says_what_is_wrong() {
    assert_eq!(
        refused("a", "", "b"),
        "`old` is empty; name the text to replace, or use fs.write for a whole file"
    );
    assert_eq!(refused("a", "a", "a"), "`old` and `new` are the same");
    insta::assert_snapshot!(refused("x = 1\ny\nx = 1\n", "x = 1", "x = 2"), @"`old` occurs 2 times, at lines 1, 3; add neighbouring lines to it or set `replace_all`");
    insta::assert_snapshot!(refused("fn main() {\n    let x = 1;\n}\n", "\tlet x = 1;", "b"), @"`old` is not in the file; it differs in white space only from what stands there (line 2)");
    insta::assert_snapshot!(refused("fn alpha() {}\nfn beta() {}\nfn gamma() {}\n", "fn betta() {}", "b"), @"`old` is not in the file; most like its first line are these lines, which you can read: 2, 1, 3");
    insta::assert_snapshot!(refused("one\nprice:\u{a0}10 EUR\n", "price: 10 EUR", "b"), @"`old` is not in the file; something that looks the same is: line 2, column 7 has U+00A0 (no-break space) where you wrote a space. Write these letters as the file has them");
    insta::assert_snapshot!(refused("one\n    It\u{2019}s\ntwo\n", "It's\nthree", "b"), @"`old` is not in the file; something that looks the same is: line 2, column 7 has U+2019 (right single quote) where you wrote `'`. Write these letters as the file has them");
    insta::assert_snapshot!(refused("one\n", "zzz", "b"), @"`old` is not in the file");
    insta::assert_snapshot!(refused("key=abc\n", "key=[redacted:KEY]", "b"), @"`old` is not in the file; it holds a mark that stands for a secret you are not shown, so choose text without it");
}

/// A line of a key by itself, and half of a secret beside a cut, are known to nobody.
#[test]
fn what_is_like_it_is_named_and_not_shown() {
    let line = "MIIEowIBAAKCAQEAr8Hs1vWcTn5Jb0Fq2Zu6Ye9Oa4Pd7Lm3XkGiCtVhRjSo";
    let text = format!("a\n{line}\nb\n");
    let near = format!("{}_", &line[..60]);
    let told = refused(&text, &near, "x");
    assert!(told.ends_with(": 2") && !told.contains(&line[..8]), "{told}");
    // The control: it was found, for it is like what was looked for.
    assert_eq!(refused(&text, "another", "x"), "`old` is not in the file");
}

#[test]
fn overlapping_places_are_ambiguous() {
    assert!(matches!(replace("aaa", "aa", "b", false), Err(EditError::Ambiguous { count: 2, .. })));
}

#[test]
fn a_hostile_file_is_searched_in_linear_time() {
    let text = "a".repeat(2 << 20);
    assert!(replace(&text, &format!("{}b", "a".repeat(1 << 20)), "c", false).is_err());
    let lines = "\n".repeat(1 << 20);
    assert!(matches!(replace(&lines, "\n", "x", false), Err(EditError::Ambiguous { .. })));
}

proptest! {
    /// Replacing and replacing back gives the file, in files of either line end.
    #[test]
    fn reversing_an_edit_restores_the_file(
        before in "[ab\n]{0,12}", old in "[abc\n]{1,6}", new in "[abcd\n]{1,6}", after in "[ab\n]{0,12}", crlf: bool,
    ) {
        let text = format!("{before}{old}{after}");
        let text = if crlf { to_crlf(&text) } else { text };
        let Ok(edited) = replace(&text, &old, &new, false) else { return Ok(()) };
        let Ok(back) = replace(&edited, &new, &old, false) else { return Ok(()) };
        // A file that lost its last CRLF no longer says which line ends it has.
        prop_assume!(!crlf || is_crlf(&text) == is_crlf(&edited));
        prop_assert_eq!(back, text);
    }

    /// A unique text is always replaced, and nothing else changes.
    #[test]
    fn an_edit_changes_nothing_else(before in "[ -~\n]{0,40}", after in "[ -~\n]{0,40}", new in "[ -~\n]{0,9}") {
        let text = format!("{before}\u{2603}{after}");
        prop_assert_eq!(replace(&text, "\u{2603}", &new, false), Ok(format!("{before}{new}{after}")));
    }

    #[test]
    fn no_input_panics(text: String, old: String, new: String, all: bool) {
        let _ = replace(&text, &old, &new, all);
    }
}
