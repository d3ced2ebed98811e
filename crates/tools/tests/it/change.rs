use crate::world::{act, conclude, done, file, need, refusal, stat};
use bailey_kernel::Output;
use bailey_protocol::{Action, Blob, ChangedFile, Digest, FileChange, FileKind, Report};
use serde_json::{Value, json};

pub(crate) fn changes(name: &str, arguments: Value, seen: &[Output]) -> Vec<FileChange> {
    match act(name, arguments, seen) {
        Action::Change { files } => files,
        other => panic!("no change: {other:?}"),
    }
}

/// The executor did what it was asked.
pub(crate) fn changed(files: &[FileChange]) -> Output {
    let changed = |file: &FileChange| ChangedFile {
        path: file.path.clone(),
        old: file.base,
        new: file.new.as_ref().map(|blob| Digest::of(&blob.0)),
        touched: None,
    };
    done(Report::Changed { files: files.iter().map(changed).collect() })
}

#[test]
fn a_new_file_is_created() {
    let arguments = json!({"path": "src/new.rs", "content": "fn a() {}\n"});
    assert_eq!(need("fs.write", arguments.clone(), &[]), [Action::Stat { path: "src/new.rs".into() }]);
    let seen = [stat(None)];
    let files = changes("fs.write", arguments.clone(), &seen);
    let expected = FileChange { path: "src/new.rs".into(), base: None, new: Some("fn a() {}\n".into()) };
    assert_eq!(files, [expected]);
    let conclusion = conclude("fs.write", arguments, &seen, &changed(&files));
    assert_eq!((conclusion.ok, conclusion.summary.as_str()), (true, "created src/new.rs"));
    insta::assert_snapshot!(conclusion.text, @r"
    created src/new.rs
    --- /dev/null
    +++ b/src/new.rs
    @@ -0,0 +1 @@
    +fn a() {}
    ");
}

#[test]
fn an_old_file_is_read_before_it_is_replaced() {
    let arguments = json!({"path": "a", "content": "new\n"});
    let look = stat(Some(FileKind::File));
    assert_eq!(need("fs.write", arguments.clone(), &[look]), [Action::Read { path: "a".into() }]);
    let seen = [stat(Some(FileKind::File)), file("old\n")];
    let files = changes("fs.write", arguments.clone(), &seen);
    assert_eq!(files[0].base, Some(Digest::of(b"old\n")));
    insta::assert_snapshot!(conclude("fs.write", arguments.clone(), &seen, &changed(&files)).text, @r"
    changed a
    --- a/a
    +++ b/a
    @@ -1 +1 @@
    -old
    +new
    ");
    let same = [stat(Some(FileKind::File)), file("new\n")];
    let files = changes("fs.write", arguments.clone(), &same);
    assert_eq!(conclude("fs.write", arguments, &same, &changed(&files)).text, "unchanged a");
}

#[test]
fn what_cannot_be_written_is_refused() {
    let arguments = json!({"path": "a", "content": "x"});
    for (seen, expected) in [
        (vec![stat(Some(FileKind::Directory))], "it is a directory"),
        (vec![stat(Some(FileKind::Other))], "it is no regular file"),
        (vec![Output::failed("outside of the workspace")], "cannot write `a`: outside of the workspace"),
        (
            vec![stat(Some(FileKind::File)), Output::failed("`a` is masked")],
            "reading it failed: `a` is masked",
        ),
    ] {
        let reason = refusal("fs.write", arguments.clone(), &seen);
        assert!(reason.contains(expected), "{reason}");
    }
}

#[test]
fn an_edit_reads_first_and_keeps_the_rest() {
    let arguments = json!({"path": "a", "old": "two", "new": "2"});
    assert_eq!(need("fs.edit", arguments.clone(), &[]), [Action::Read { path: "a".into() }]);
    let seen = [file("one\r\ntwo\r\nthree")];
    let files = changes("fs.edit", arguments.clone(), &seen);
    assert_eq!(files[0].new, Some(Blob(b"one\r\n2\r\nthree".to_vec())));
    assert_eq!(files[0].base, Some(Digest::of(b"one\r\ntwo\r\nthree")));
    let conclusion = conclude("fs.edit", arguments, &seen, &changed(&files));
    insta::assert_snapshot!(conclusion.text, @r"
    changed a
    --- a/a
    +++ b/a
    @@ -1,3 +1,3 @@
     one
    -two
    +2
     three
    \ No newline at end of file
    ");
}

#[test]
fn an_edit_that_does_not_fit_is_refused() {
    let refused = |old: &str, content: &[u8]| {
        refusal("fs.edit", json!({"path": "a", "old": old, "new": "x"}), &[file(content)])
    };
    assert!(refused("zwei", b"one\ntwo\n").starts_with("cannot edit `a`: `old` is not in the file"));
    assert!(refused("o", b"one\ntwo\n").contains("occurs 2 times, at lines 1, 2"));
    assert!(refused("o", b"\xff\xfe").contains("it is not UTF-8 text (2 bytes)"));
    let gone =
        refusal("fs.edit", json!({"path": "a", "old": "b", "new": "x"}), &[Output::failed("no such file")]);
    assert_eq!(gone, "cannot change `a`, because reading it failed: no such file");
}

#[test]
fn no_tool_writes_a_mark_over_a_secret() {
    let secret = || file("KEY=sk-1\nend\n");
    let patch = |line: &str| format!("--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-KEY=sk-1\n+{line}\n end\n");
    let cases = |line: &str| {
        [
            ("fs.write", json!({"path": "a", "content": line}), vec![stat(Some(FileKind::File)), secret()]),
            ("fs.edit", json!({"path": "a", "old": "KEY=sk-1", "new": line}), vec![secret()]),
            ("fs.patch", json!({"patch": patch(line)}), vec![secret()]),
        ]
    };
    for (name, arguments, seen) in cases("KEY=[redacted:KEY]") {
        let reason = refusal(name, arguments, &seen);
        assert!(reason.starts_with("refused to write `[redacted:KEY]` to `a`"), "{name}: {reason}");
    }
    // The control: the same changes without the mark are planned.
    for (name, arguments, seen) in cases("KEY=none") {
        changes(name, arguments, &seen);
    }
}

/// After a restart only redacted payloads are left, from which the edit cannot be planned again.
#[test]
fn a_change_is_concluded_from_its_report_alone() {
    let output = done(Report::Changed {
        files: vec![ChangedFile { path: "/w/a".into(), old: None, new: None, touched: None }],
    });
    let arguments = json!({"path": "a", "old": "sk-1", "new": "x"});
    let conclusion = conclude("fs.edit", arguments, &[file("[redacted:KEY]")], &output);
    assert_eq!((conclusion.ok, conclusion.text.as_str()), (true, "changed /w/a"));
}

#[test]
fn a_long_diff_is_cut() {
    let arguments = json!({"path": "a", "content": "x\n".repeat(1_000)});
    let seen = [stat(None)];
    let files = changes("fs.write", arguments.clone(), &seen);
    let text = conclude("fs.write", arguments, &seen, &changed(&files)).text;
    assert_eq!(text.lines().count(), 202);
    assert!(text.ends_with("+x\n… 803 lines left out …"), "{text}");
}
