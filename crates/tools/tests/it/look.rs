use crate::world::{act, conclude, done, file, refusal, stat};
use bailey_protocol::{
    Action, Blob, FileKind, FileReport, ListReport, Listed, Report, SearchHit, SearchReport,
};
use serde_json::{Value, json};

fn read(arguments: Value, content: impl AsRef<[u8]>) -> String {
    let conclusion = conclude("fs.read", arguments, &[], &file(content));
    assert!(conclusion.ok);
    conclusion.text
}

#[test]
fn a_read_is_one_action() {
    assert_eq!(act("fs.read", json!({"path": "src/a.rs"}), &[]), Action::Read { path: "src/a.rs".into() });
    assert!(refusal("fs.read", json!({"path": "a", "offset": 0}), &[]).contains("start at 1"));
    assert!(refusal("fs.read", json!({}), &[]).contains("`path` is missing"));
}

#[test]
fn a_file_is_shown_as_it_is() {
    insta::assert_snapshot!(read(json!({"path": "a"}), "one\n\ttwo\n"), @r"
    a (2 lines, 9 bytes)
    one
    	two
    ");
    insta::assert_snapshot!(read(json!({"path": "a"}), "one\r\ntwo"), @r"
    a (2 lines, 8 bytes, CRLF line ends)
    one
    two
    (no newline at the end)
    ");
    assert!(
        read(json!({"path": "a"}), "one\r\ntwo\n").starts_with("a (2 lines, 9 bytes, some CRLF line ends)\n")
    );
    insta::assert_snapshot!(read(json!({"path": "a"}), ""), @"a (empty, 0 bytes)");
    assert!(read(json!({"path": "a"}), "price:\u{a0}10\n").ends_with("\nprice:⟨U+00A0⟩10"));
    insta::assert_snapshot!(read(json!({"path": "a"}), b"GIF89a\x80\x02\xe0\x01\0"), @"a is a gif picture, 640×480 pixels, 11 bytes. It is shown beside this result to a model that takes pictures; another can look into it with a program (command_run: `file`, `identify`, an OCR program), or ask the human to describe it.");
    insta::assert_snapshot!(read(json!({"path": "a"}), b"\x7fELF\0\0"), @"a is a binary file of 6 bytes");
    insta::assert_snapshot!(read(json!({"path": "a"}), b"caf\xe9\n"), @r"
    a (1 line, 5 bytes)
    caf�
    (not valid UTF-8: � stands for other bytes, and fs.edit cannot change this file)
    ");
}

#[test]
fn some_lines_of_a_file() {
    let content = "1\n2\n3\n4\n5\n";
    insta::assert_snapshot!(read(json!({"path": "a", "offset": 2, "limit": 2}), content), @r"
    a (lines 2 to 3 of 5, 10 bytes)
    2
    3
    (2 lines more; read on with offset 4)
    ");
    insta::assert_snapshot!(read(json!({"path": "a", "offset": 5}), content), @r"
    a (lines 5 to 5 of 5, 10 bytes)
    5
    ");
    insta::assert_snapshot!(read(json!({"path": "a", "offset": 9}), content), @r"
    a (no such lines, 10 bytes)
    (the file has 5 lines only)
    ");
    let huge = json!({"path": "a", "offset": u64::MAX, "limit": u64::MAX});
    assert!(read(huge, content).contains("the file has 5 lines only"));
}

#[test]
fn a_large_file_is_cut() {
    let text = read(json!({"path": "a"}), "x\n".repeat(2_500));
    assert!(text.starts_with("a (lines 1 to 2000 of 2500, 5000 bytes)\n"));
    assert!(text.ends_with("x\n(500 lines more; read on with offset 2001)"));
    let text = read(json!({"path": "a"}), format!("{}\n", "y".repeat(60_000)).repeat(2));
    assert!(text.ends_with("(1 line more; read on with offset 2)"));
    let text = read(json!({"path": "a"}), "ä".repeat(80_000));
    assert!(text.len() < 100_300 && text.contains("(the line is longer than 100000 bytes"), "{}", text.len());
    let part = FileReport { content: Blob(b"abc\nd".to_vec()), size: 9_000_000, digest: None, mode: 0o644 };
    let text = conclude("fs.read", json!({"path": "a"}), &[], &done(Report::File(part))).text;
    assert!(text.ends_with("(only the first 5 bytes were read; use command.run for the rest)"), "{text}");
}

#[test]
fn unknown_arguments_are_mentioned() {
    let text = read(json!({"path": "a", "encoding": "utf-8"}), "x\n");
    assert!(
        text.ends_with("x\n(ignored unknown arguments: `encoding`; known are `limit`, `offset`, `path`)"),
        "{text}"
    );
}

#[test]
fn a_directory_is_listed() {
    assert_eq!(act("fs.list", json!({}), &[]), Action::List { path: "/w".into() });
    let entry = |name: &str, kind| Listed { name: name.into(), kind, size: 12 };
    let entries = vec![
        entry("a.txt", FileKind::File),
        entry("link", FileKind::Symlink),
        entry("pipe", FileKind::Other),
        entry("src", FileKind::Directory),
    ];
    let conclusion =
        conclude("fs.list", json!({}), &[], &done(Report::List(ListReport { entries, more: 3 })));
    assert_eq!(conclusion.summary, "7 entries");
    insta::assert_snapshot!(conclusion.text, @r"
    a.txt  12 bytes
    link@
    pipe  (no regular file)
    src/
    (3 more entries)
    ");
    let empty = done(Report::List(ListReport { entries: vec![], more: 0 }));
    assert_eq!(conclude("fs.list", json!({}), &[], &empty).text, "(empty)");
}

#[test]
fn a_path_is_looked_at() {
    assert_eq!(act("fs.exists", json!({"path": "a"}), &[]), Action::Stat { path: "a".into() });
    for (found, expected) in [
        (None, "a does not exist"),
        (Some(FileKind::File), "a is a file of 12 bytes"),
        (Some(FileKind::Directory), "a is a directory"),
    ] {
        let conclusion = conclude("fs.exists", json!({"path": "a"}), &[], &stat(found));
        assert_eq!((conclusion.ok, conclusion.text.as_str()), (true, expected));
    }
}

fn found(hits: &[(&str, u64, &str)], cut: bool) -> bailey_kernel::Output {
    let hit = |(path, line, text): &(&str, u64, &str)| SearchHit {
        path: (*path).into(),
        line: *line,
        text: (*text).into(),
    };
    done(Report::Search(SearchReport {
        found: hits.iter().map(hit).collect(),
        cut,
        ..SearchReport::default()
    }))
}

#[test]
fn lines_are_found() {
    let arguments = json!({"pattern": "fn", "path": "src/", "glob": "*.rs", "ignore_case": true});
    let action = act("search.grep", arguments.clone(), &[]);
    let expected =
        Action::Search { root: "src/".into(), pattern: Some("(?i)fn".into()), glob: Some("*.rs".into()) };
    assert_eq!(action, expected);
    let output = found(&[("a.rs", 3, "fn a() {"), ("b/c.rs", 1, "fn c() {")], true);
    insta::assert_snapshot!(conclude("search.grep", arguments, &[], &output).text, @r"
    src/a.rs:3: fn a() {
    src/b/c.rs:1: fn c() {
    (there is more; narrow the pattern, the path or the glob)
    ");
    let one =
        conclude("search.grep", json!({"pattern": "x", "path": "a.rs"}), &[], &found(&[("", 1, "x")], false));
    assert_eq!((one.summary.as_str(), one.text.as_str()), ("1 match", "a.rs:1: x"));
    let none = conclude("search.grep", json!({"pattern": "x"}), &[], &found(&[], false));
    assert_eq!((none.ok, none.summary.as_str(), none.text.as_str()), (true, "0 matches", "no matches"));
    assert!(refusal("search.grep", json!({"pattern": ""}), &[]).contains("empty"));
}

#[test]
fn files_are_found() {
    let action = act("search.glob", json!({"pattern": "**/*.rs"}), &[]);
    assert_eq!(action, Action::Search { root: "/w".into(), pattern: None, glob: Some("**/*.rs".into()) });
    let output = found(&[("a.rs", 0, ""), ("b/c.rs", 0, "")], false);
    assert_eq!(conclude("search.glob", json!({"pattern": "*.rs"}), &[], &output).text, "a.rs\nb/c.rs");
    assert_eq!(conclude("search.glob", json!({"pattern": "*.rs"}), &[], &found(&[], false)).text, "no files");
}
