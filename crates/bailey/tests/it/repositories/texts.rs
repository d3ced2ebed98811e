//! Files that are not plain UTF-8 with plain line ends, and edits that do not fit.

use super::{commit_bytes, outside, repairs, session};
use crate::stage::Stage;
use serde_json::{Value, json};
use std::fs;

const SH_TEST: &[&str] = &["sh", "check.sh"];
/// A large file as git keeps it where Git LFS holds its content.
const POINTER: &str = "version https://git-lfs.github.com/spec/v1\n\
                       oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

#[test]
fn a_repository_with_git_lfs_pointers_is_repaired_and_they_stay_as_they_are() {
    let stage = Stage::new(&[
        (".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n"),
        ("model.bin", POINTER),
        ("size.sh", "sed -n 's/^sizes //p' model.bin\n"),
        ("check.sh", "test \"$(sh size.sh)\" = 12345\n"),
    ]);
    repairs(&stage, "size.sh", "sizes", "size", SH_TEST);
    assert_eq!(stage.read("model.bin"), POINTER);
    let repair = session(
        &stage,
        &[
            ("fs_read", json!({ "path": "model.bin" })),
            ("git_run", json!({ "args": ["status", "--porcelain"] })),
        ],
    );
    assert!(repair.results[0].contains("git-lfs.github.com/spec/v1"), "{:?}", repair.results);
    let status = &repair.results[1];
    assert!(status.contains(" M size.sh") && !status.contains("model.bin"), "{status}");
}

#[test]
fn line_ends_and_bytes_of_crlf_and_latin_1_files_are_kept() {
    let stage = Stage::new(&[(
        "check.sh",
        "tr -d '\\r' < rate.ini | grep -qx 'rate=19' && grep -aq 'cents=100' prix.txt\n",
    )]);
    commit_bytes(&stage, "rate.ini", b"[tax]\r\nrate=91\r\nname=TVA\r\n");
    commit_bytes(&stage, "prix.txt", b"pr\xe9cis\xe9ment\ncents=10\n");
    let latin = json!({ "path": "prix.txt", "old": "cents=10", "new": "cents=100" });
    let patch = "--- a/prix.txt\n+++ b/prix.txt\n@@ -2 +2 @@\n-cents=10\n+cents=100\n";
    let repair = session(
        &stage,
        &[
            // The model writes plain line ends, also across lines.
            ("fs_edit", json!({ "path": "rate.ini", "old": "[tax]\nrate=91\n", "new": "[tax]\nrate=19\n" })),
            (
                "fs_patch",
                json!({ "patch": "--- a/rate.ini\n+++ b/rate.ini\n@@ -2,2 +2,2 @@\n rate=19\n-name=TVA\n+name=VAT\n" }),
            ),
            ("fs_read", json!({ "path": "prix.txt" })),
            ("fs_edit", latin),
            ("fs_patch", json!({ "patch": patch })),
            ("command_run", json!({ "argv": SH_TEST })),
            ("command_run", json!({ "command": "LC_ALL=C sed -i 's/cents=10$/cents=100/' prix.txt" })),
            ("command_run", json!({ "argv": SH_TEST })),
        ],
    );
    let results = &repair.results;
    assert!(results[2].contains("not valid UTF-8"), "{results:?}");
    for refused in [&results[3], &results[4]] {
        assert!(refused.contains("not UTF-8 text") && refused.contains("use command.run"), "{refused}");
    }
    assert!(results[5].contains("exit code: 1") && results[7].contains("exit code: 0"), "{results:?}");
    let bytes = |path: &str| fs::read(stage.project().join(path)).unwrap();
    assert_eq!(bytes("rate.ini"), b"[tax]\r\nrate=19\r\nname=VAT\r\n");
    assert_eq!(bytes("prix.txt"), b"pr\xe9cis\xe9ment\ncents=100\n");
    assert!(outside(&stage, SH_TEST).0);
}

#[test]
fn a_change_whose_text_is_not_there_exactly_once_fails_loudly_and_changes_nothing() {
    let text = "one\ntwo\none\ntwo\nthree\n";
    let stage = Stage::new(&[("a.txt", text)]);
    let patch = |body: &str| json!({ "patch": format!("--- a/a.txt\n+++ b/a.txt\n{body}") });
    let edit = |old: &str| json!({ "path": "a.txt", "old": old, "new": "X" });
    let cases: [(&str, Value, &str); 4] = [
        ("fs_edit", edit("one"), "occurs 2 times, at lines 1, 3"),
        ("fs_edit", edit("four"), "is not in the file"),
        // The line number is off, so the context decides, and it is there twice.
        ("fs_patch", patch("@@ -2,2 +2,2 @@\n one\n-two\n+X\n"), "does not apply"),
        ("fs_patch", patch("@@ -1,2 +1,2 @@\n one\n-four\n+X\n"), "does not apply"),
    ];
    let calls: Vec<(&str, Value)> =
        cases.iter().map(|(tool, arguments, _)| (*tool, arguments.clone())).collect();
    let repair = session(&stage, &calls);
    for ((_, arguments, expected), result) in cases.iter().zip(&repair.results) {
        assert!(result.contains(expected), "{arguments}: {result}");
    }
    assert_eq!(stage.read("a.txt"), text);
    // The control: text that is there once is replaced.
    session(
        &stage,
        &[("fs_edit", edit("three")), ("fs_patch", patch("@@ -3,3 +3,3 @@\n one\n two\n-X\n+Y\n"))],
    );
    assert_eq!(stage.read("a.txt"), "one\ntwo\none\ntwo\nY\n");
}

#[test]
fn grep_and_glob_honour_ignore_files() {
    let stage = Stage::new(&[
        (".gitignore", "*.log\nbuild/\n"),
        ("sub/.gitignore", "!kept.log\nown.txt\n"),
        ("a.txt", "needle\n"),
        ("sub/b.txt", "needle\n"),
    ]);
    let hidden = ["a.log", "build/c.txt", "sub/d.log", "sub/own.txt", "mine.txt"];
    for path in hidden.iter().chain(&["sub/kept.log"]) {
        stage.write(path, "needle\n");
    }
    stage.write(".git/info/exclude", "mine.txt\n");
    let whole = [("grep", json!({ "pattern": "needle" })), ("glob", json!({ "pattern": "*" }))];
    for result in session(&stage, &whole).results {
        assert!(hidden.iter().all(|path| !result.contains(path)), "{result}");
        assert!(["a.txt", "sub/b.txt", "sub/kept.log"].iter().all(|path| result.contains(path)), "{result}");
    }
    let below = [
        ("grep", json!({ "pattern": "needle", "path": "sub" })),
        ("glob", json!({ "pattern": "*", "path": "sub" })),
    ];
    for result in session(&stage, &below).results {
        assert!(result.contains("sub/b.txt") && result.contains("sub/kept.log"), "{result}");
        assert!(!result.contains("own.txt") && !result.contains("d.log"), "the rules above hold: {result}");
    }
    // The control: a command, which asks no ignore file, sees them all.
    let found = session(&stage, &[("command_run", json!({ "command": "grep -rl needle ." }))]).results;
    assert!(hidden.iter().all(|path| found[0].contains(path)), "{found:?}");
}

/// How long the last command takes, in seconds.
fn last_takes() -> u64 {
    if std::env::var_os("BAILEY_TEST_LONG").is_some_and(|value| value == "1") {
        return 180;
    }
    println!("SKIPPED: `cargo xtask long` runs a command of three minutes");
    0
}

#[test]
fn a_repair_of_sixty_calls_and_a_long_command_needs_no_setting() {
    let stage = Stage::new(&[("value.txt", "0\n"), ("check.sh", "test \"$(cat value.txt)\" = 29\n")]);
    let mut calls = vec![("command_run", json!({ "argv": SH_TEST }))];
    for number in 0..29 {
        calls.push(("fs_read", json!({ "path": "value.txt" })));
        let (old, new) = (format!("{number}\n"), format!("{}\n", number + 1));
        calls.push(("fs_edit", json!({ "path": "value.txt", "old": old, "new": new })));
    }
    let last = format!("sleep {} && {}", last_takes(), SH_TEST.join(" "));
    calls.push(("command_run", json!({ "command": last })));
    assert_eq!(calls.len(), 60);
    let repair = session(&stage, &calls);
    assert!(
        repair.results[0].contains("exit code: 1") && repair.results[59].contains("exit code: 0"),
        "{:?}",
        repair.results
    );
    assert!(outside(&stage, SH_TEST).0);
}
