use super::*;
use bailey_protocol::{Blob, Outcome, Status};

fn diff(old: Option<&str>, new: Option<&str>) -> String {
    between("src/x.rs", old.map(str::as_bytes), new.map(str::as_bytes), 200, &Redactor::default()).text
}

#[test]
fn shows_what_changed() {
    insta::assert_snapshot!(diff(Some("a\nb\nc\nd\ne\nf\ng\nh\n"), Some("a\nb\nc\nd\nE\nf\ng\nh\n")), @r"
    --- a/src/x.rs
    +++ b/src/x.rs
    @@ -2,7 +2,7 @@
     b
     c
     d
    -e
    +E
     f
     g
     h
    ");
    insta::assert_snapshot!(diff(None, Some("a\nb")), @r"
    --- /dev/null
    +++ b/src/x.rs
    @@ -0,0 +1,2 @@
    +a
    +b
    \ No newline at end of file
    ");
    insta::assert_snapshot!(diff(Some("a\n"), None), @r"
    --- a/src/x.rs
    +++ /dev/null
    @@ -1 +0,0 @@
    -a
    ");
}

#[test]
fn an_absolute_path_keeps_its_name() {
    let diff = between("/w/x", Some(b"a\n"), Some(b"b\n"), 200, &Redactor::default());
    assert!(diff.text.starts_with("--- /w/x\n+++ /w/x\n"), "{}", diff.text);
}

#[test]
fn is_cut_to_size_and_says_so() {
    let new = "line\n".repeat(500);
    let cut = between("x", None, Some(new.as_bytes()), 50, &Redactor::default());
    assert!(!cut.whole);
    assert!(cut.text.ends_with("… 453 lines left out …"), "{}", cut.text);
    assert!(between("x", None, Some(new.as_bytes()), 600, &Redactor::default()).whole);
    // Of a long line both ends are there: what matters may stand behind.
    let line = format!("{}; rm -rf ~", "y".repeat(2_000));
    let long = between("x", None, Some(line.as_bytes()), 50, &Redactor::default());
    assert!(!long.whole && long.text.contains("… 1511 characters left out …y"), "{}", long.text);
    assert!(long.text.contains("; rm -rf ~\n"), "{}", long.text);
    // The control: one that fits, with its sign, is there whole.
    let line = "y".repeat(LINE_CHARS_MAX - 1);
    assert!(between("x", None, Some(line.as_bytes()), 50, &Redactor::default()).whole);
}

#[test]
fn bytes_that_are_no_text_are_counted() {
    let diff = between("x", Some(&[0xff, 0]), Some(b"a"), 50, &Redactor::default());
    assert_eq!(diff.text, "--- a/x\n+++ b/x\n(not text: 2 bytes become 1 bytes)");
    let large = vec![b'a'; BYTES_MAX + 1];
    assert!(
        between("x", None, Some(&large), 50, &Redactor::default())
            .text
            .contains("too large to show: nothing become")
    );
}

#[test]
fn a_large_rewrite_is_one_replacement() {
    let numbers = |from: usize| (from..from + 5_000).map(|n| format!("{n}\n")).collect::<String>();
    let (old, new) = (format!("head\n{}tail\n", numbers(0)), format!("head\n{}tail\n", numbers(2_500)));
    let text = hunks(&old, &new);
    assert!(text.starts_with("@@ -1,5002 +1,5002 @@\n head\n-0\n"), "{}", &text[..60]);
    assert_eq!(text.lines().count(), 1 + 1 + 5_000 + 5_000 + 1);
}

#[test]
fn what_a_file_holds_is_found_by_its_digest() {
    let content = b"a\n".to_vec();
    let report =
        FileReport { size: 2, digest: Some(Digest::of(&content)), mode: 0o644, content: Blob(content) };
    let outcome =
        Outcome { status: Status::Done, enforced: None, duration_ms: 1, report: Report::File(report) };
    let seen = [Output::failed("no"), Output::new(outcome)];
    let change =
        |base: &[u8]| FileChange { path: "x".into(), base: Some(Digest::of(base)), new: Some("b\n".into()) };
    assert_eq!(
        of_change(&change(b"a\n"), &seen, 50, &Redactor::default()).0.text,
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b"
    );
    assert!(of_change(&change(b"a\n"), &seen, 50, &Redactor::default()).1);
    assert!(!of_change(&change(b"other"), &seen, 50, &Redactor::default()).1);
}

#[test]
fn a_change_within_a_secret_is_told_and_not_shown() {
    let key = |middle: &str| {
        let line = |text: &str| format!("{}\n", text.repeat(64 / text.len()));
        let body = [line("MIIEvQIB"), line(middle), line("BgkqhkiG")].concat();
        format!("a\n-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----\nz\n")
    };
    let text = diff(Some(&key("AAAAAAAA")), Some(&key("BBBBBBBB")));
    assert!(text.ends_with(HIDDEN) && !text.contains("AAAA"), "{text}");
    // What changes beside it is shown, without what stands before it.
    let text = diff(Some(&key("AAAA")), Some(&key("AAAA").replace('z', "y")));
    assert!(text.ends_with("-z\n+y") && !text.contains("AAAA") && !text.contains("Bgkq"), "{text}");
}
