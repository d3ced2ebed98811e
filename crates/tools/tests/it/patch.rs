use crate::{
    change::{changed, changes},
    world::{conclude, done, file, need, refusal, stat},
};
use bailey_protocol::{Action, Digest, FileChange, FileKind, FileReport, Report};
use serde_json::{Value, json};

const PATCH: &str = "--- a/old.txt\n+++ b/old.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n--- /dev/null\n+++ b/new.txt\n\
                     @@ -0,0 +1 @@\n+hi\n--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n";

fn arguments(patch: &str) -> Value {
    json!({"patch": patch})
}

#[test]
fn all_files_are_looked_at_then_changed_together() {
    let looks = need("fs.patch", arguments(PATCH), &[]);
    let expected = [
        Action::Read { path: "old.txt".into() },
        Action::Stat { path: "new.txt".into() },
        Action::Stat { path: "gone.txt".into() },
        Action::Read { path: "gone.txt".into() },
    ];
    assert_eq!(looks, expected);
    let is_file = || stat(Some(FileKind::File));
    let seen = [file("one\ntwo\n"), stat(None), is_file(), file("bye\n")];
    let files = changes("fs.patch", arguments(PATCH), &seen);
    let change = |path: &str, base: Option<&str>, new: Option<&str>| FileChange {
        path: path.into(),
        base: base.map(|text| Digest::of(text.as_bytes())),
        new: new.map(Into::into),
    };
    assert_eq!(
        files,
        [
            change("old.txt", Some("one\ntwo\n"), Some("one\n2\n")),
            change("new.txt", None, Some("hi\n")),
            change("gone.txt", Some("bye\n"), None),
        ]
    );
    let conclusion = conclude("fs.patch", arguments(PATCH), &seen, &changed(&files));
    assert_eq!(conclusion.summary, "changed 3 files");
    insta::assert_snapshot!(conclusion.text, @r"
    changed old.txt
    --- a/old.txt
    +++ b/old.txt
    @@ -1,2 +1,2 @@
     one
    -two
    +2
    created new.txt
    --- /dev/null
    +++ b/new.txt
    @@ -0,0 +1 @@
    +hi
    deleted gone.txt
    ");
}

#[test]
fn a_move_deletes_and_creates() {
    let patch = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-1\n+2\n*** End Patch\n";
    let looks = need("fs.patch", arguments(patch), &[]);
    let of_a = [Action::Stat { path: "a".into() }, Action::Read { path: "a".into() }];
    assert_eq!(looks, [of_a.as_slice(), &[Action::Stat { path: "b".into() }]].concat());
    let is_file = || stat(Some(FileKind::File));
    let files = changes("fs.patch", arguments(patch), &[is_file(), file("1\n"), stat(None)]);
    let gone = FileChange { path: "a".into(), base: Some(Digest::of(b"1\n")), new: None };
    assert_eq!(files, [gone, FileChange { path: "b".into(), base: None, new: Some("2\n".into()) }]);
    let taken = refusal("fs.patch", arguments(patch), &[is_file(), file("1\n"), is_file()]);
    assert_eq!(taken, "cannot create `b`: it exists; update it, or delete it first");
    let pure = "diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n";
    let files = changes("fs.patch", arguments(pure), &[is_file(), file(b"\xff\0"), stat(None)]);
    assert_eq!(files[1].new.as_ref().unwrap().0, b"\xff\0");
}

#[test]
fn what_does_not_fit_is_refused_whole() {
    let is_file = || stat(Some(FileKind::File));
    for (seen, expected) in [
        (
            [file("one\nzwei\n"), stat(None), is_file(), file("bye\n")],
            "hunk 1 of `old.txt` does not apply: line 2 is not the patch's old line 2",
        ),
        ([file("one\ntwo\n"), is_file(), is_file(), file("bye\n")], "cannot create `new.txt`: it exists"),
        (
            [file("one\ntwo\n"), stat(None), is_file(), file("bye\nand more\n")],
            "the patch deletes `gone.txt`, but its hunks leave",
        ),
        ([file(b"\xff"), stat(None), is_file(), file("bye\n")], "cannot edit `old.txt`: it is not UTF-8"),
        (
            [bailey_kernel::Output::failed("no such file"), stat(None), is_file(), file("bye\n")],
            "cannot change `old.txt`, because reading it failed: no such file",
        ),
    ] {
        let reason = refusal("fs.patch", arguments(PATCH), &seen);
        assert!(reason.contains(expected), "{reason}");
    }
    assert!(refusal("fs.patch", arguments("nothing"), &[]).contains("names no file"));
}

/// What a link's name leads to would go in its place, or come without what lets it run.
#[test]
fn no_link_and_no_program_goes_by_a_patch() {
    let delete = "*** Begin Patch\n*** Delete File: a\n*** End Patch\n";
    let moved = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-1\n+2\n*** End Patch\n";
    let is_a = |kind| stat(Some(kind));
    for (patch, looks) in [(delete, 2), (moved, 3)] {
        let seen = |kind| [is_a(kind), file("1\n"), stat(None)].into_iter().take(looks).collect::<Vec<_>>();
        let reason = refusal("fs.patch", arguments(patch), &seen(FileKind::Symlink));
        assert!(reason.contains("`a`: it is a symbolic link; use command.run"), "{reason}");
        assert!(!changes("fs.patch", arguments(patch), &seen(FileKind::File)).is_empty(), "the control");
    }
    let program = done(Report::File(FileReport {
        content: "1\n".into(),
        size: 2,
        digest: Some(Digest::of(b"1\n")),
        mode: 0o755,
    }));
    let reason = refusal("fs.patch", arguments(moved), &[is_a(FileKind::File), program, stat(None)]);
    assert!(reason.contains("it is executable"), "{reason}");
}
