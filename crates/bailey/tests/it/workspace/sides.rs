//! Files that the session and the user both changed: put together where the lines lie apart, named and kept
//! where they do not.

use super::{newest, sessions, work};
use crate::stage::Stage;
use bailey_testkit::Reply;
use serde_json::json;
use std::{fs, path::PathBuf};

const BASE: &str = "1\n2\n3\n4\n5\n";
const SESSION: &str = "1\n2\n3\n4\nfive\n";
const USER: &str = "one\n2\n3\n4\n5\n";
const MERGED: &str = "one\n2\n3\n4\nfive\n";

/// The session changes the last line of a file, then the user the first.
fn stage() -> (Stage, String) {
    let stage = Stage::new(&[("a.txt", BASE)]);
    let session = work(&stage, "sed -i 's/^5$/five/' a.txt");
    stage.write("a.txt", USER);
    (stage, session)
}

/// What the session's commands see of a file.
fn inside(stage: &Stage, session: &str, path: &str) -> String {
    let folder = stage.home().join("sessions").join(session).join("upper");
    fs::read_to_string(folder.join(path)).unwrap()
}

#[test]
fn lines_that_both_sides_changed_apart_are_merged_shown_applied_and_undone() {
    let (stage, session) = stage();
    let diff = sessions(&stage, "diff", &session);
    assert!(diff.stdout.contains("a.txt is merged with your later changes"), "{diff:?}");
    assert!(diff.stdout.contains("\n    -5\n    +five\n") && !diff.stdout.contains("-one"), "{diff:?}");
    assert_eq!(inside(&stage, &session, "a.txt"), SESSION, "a look has no changes");

    let applied = sessions(&stage, "apply", &session);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert_eq!(stage.read("a.txt"), MERGED);
    assert_eq!(inside(&stage, &session, "a.txt"), MERGED, "the session goes on with what the user wrote");
    let diff = sessions(&stage, "diff", &session);
    assert!(
        diff.stderr.contains("has no changes"),
        "the user's line is no change of the session's: {diff:?}"
    );

    let undone = sessions(&stage, "undo", &session);
    assert_eq!((undone.code, stage.read("a.txt").as_str()), (Some(0), USER), "{undone:?}");
    assert_eq!(sessions(&stage, "apply", &session).code, Some(0));
    assert_eq!(stage.read("a.txt"), MERGED, "what was undone can be applied again");
}

/// The base moves with each apply: the second merge knows what the first one came to.
#[test]
fn what_both_sides_change_after_an_apply_is_merged_on_what_that_came_to() {
    let (stage, session) = stage();
    assert_eq!(sessions(&stage, "apply", &session).code, Some(0));
    stage.write("a.txt", "ONE\n2\n3\n4\nfive\n");
    let edit = json!({ "command": "sed -i s/^five$/FIVE/ a.txt" });
    let _model = stage.model(vec![Reply::calls([("c1", "command_run", edit)]), Reply::text("done")]);
    let resumed =
        stage.ran(&["sessions", "resume", &session, "--model", "test/model", "--approve", "never", "more"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let applied = sessions(&stage, "apply", &session);
    assert_eq!(
        (applied.code, stage.read("a.txt").as_str()),
        (Some(0), "ONE\n2\n3\n4\nFIVE\n"),
        "{applied:?}"
    );
}

#[test]
fn lines_that_both_sides_changed_alike_or_otherwise_are_named_and_kept() {
    let stage = Stage::new(&[
        ("a.txt", BASE),
        ("same.txt", BASE),
        ("mode.sh", BASE),
        ("gone.txt", BASE),
        ("bytes", "\0"),
    ]);
    let session = work(
        &stage,
        "sed -i 's/^5$/five/' a.txt same.txt mode.sh gone.txt; chmod 755 mode.sh; printf '\\0a' > bytes",
    );
    let user = [("a.txt", "1\n2\n3\n4\nFIVE\n"), ("same.txt", MERGED), ("mode.sh", USER), ("bytes", "\0b")];
    user.iter().for_each(|(path, text)| stage.write(path, text));
    fs::remove_file(stage.project().join("gone.txt")).unwrap();
    let diff = sessions(&stage, "diff", &session);
    let why = "a.txt has lines that you also changed (at line 5): it would be kept as it is";
    assert!(diff.stdout.contains(why), "{diff:?}");
    assert!(!diff.stdout.contains("merged with") && !diff.stdout.contains("same.txt"), "{diff:?}");
    let applied = sessions(&stage, "apply", &session);
    assert_eq!(applied.code, Some(6), "{applied:?}");
    let told = "kept as it is: a.txt: has lines that you also changed (at line 5)
";
    assert!(applied.stdout.contains(told), "{applied:?}");
    for kept in ["a.txt", "mode.sh", "gone.txt", "bytes"] {
        assert!(applied.stdout.contains(&format!("kept as it is: {kept}: ")), "{kept}: {applied:?}");
    }
    user.iter().for_each(|(path, text)| assert_eq!(&stage.read(path), text, "{path}"));
    assert!(!stage.project().join("gone.txt").exists());
    assert_eq!(inside(&stage, &session, "a.txt"), SESSION, "both sides stay as they are");
}

/// A masked file that somebody revealed is no text to be kept. The control is the file beside it.
#[test]
fn of_a_masked_file_no_base_is_kept() {
    let stage = Stage::new(&[("a.txt", BASE), (".env", "KEY=marker\n2\n3\n4\n5\n")]);
    let edit = json!({ "command": "sed -i s/^5$/five/ a.txt .env" });
    let script = vec![Reply::calls([("c1", "command_run", edit)]), Reply::text("done")];
    let (ran, _model) = stage.task(script, &["--reveal", ".env"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let session = newest(&stage);
    stage.write("a.txt", USER);
    let bases = stage.home().join("sessions").join(&session).join("bases");
    let paths: Vec<PathBuf> = fs::read_dir(bases).unwrap().map(|entry| entry.unwrap().path()).collect();
    let texts: Vec<String> = paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(texts[0].ends_with(BASE), "{texts:?}");
    stage.write(".env", "KEY=other\n2\n3\n4\n5\n");
    let diff = sessions(&stage, "diff", &session);
    assert!(diff.stdout.contains("+++ b/.env"), "{diff:?}");
    assert_eq!(diff.stdout.matches("is merged with your later changes").count(), 1, "{diff:?}");
}

/// A base text proves nothing: one that is not what the journal recorded is none. The control is the very
/// text.
#[test]
fn a_base_that_is_not_the_recorded_one_merges_nothing() {
    let (stage, session) = stage();
    let bases = stage.home().join("sessions").join(&session).join("bases");
    let text = fs::read_dir(bases).unwrap().next().unwrap().unwrap().path();
    let own = fs::read_to_string(&text).unwrap();
    // On the first the user's line would count as the session's to take away, on the second nothing would
    // overlap.
    for forged in [own.replace("1\n", "one\n"), own.replace("5\n", ""), own.replace("644\n", "600\n")] {
        assert_ne!(forged, own);
        fs::write(&text, &forged).unwrap();
        let applied = sessions(&stage, "apply", &session);
        assert_eq!((applied.code, stage.read("a.txt").as_str()), (Some(6), USER), "{forged:?}: {applied:?}");
        assert_eq!(inside(&stage, &session, "a.txt"), SESSION, "{forged:?}");
    }
    fs::write(&text, own).unwrap();
    let applied = sessions(&stage, "apply", &session);
    assert_eq!((applied.code, stage.read("a.txt").as_str()), (Some(0), MERGED), "{applied:?}");
}

/// What was merged goes as a whole: the layer then holds what it comes to.
#[test]
fn a_merged_file_is_one_hunk() {
    let stage = Stage::new(&[("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n")]);
    let session = work(&stage, "sed -i -e 's/^1$/one/' -e 's/^15$/fifteen/' a.txt");
    let own = stage.read("a.txt").replace("8\n", "eight\n");
    stage.write("a.txt", &own);
    let hunks = stage.ran(&["--json", "sessions", "diff", &session, "--hunks"]);
    let hunks: Vec<_> = hunks.lines().into_iter().filter(|line| line["type"] == "hunks").collect();
    assert_eq!(hunks[0]["hunks"].as_array().map(Vec::len), Some(1), "{hunks:?}");
    let named = format!("a.txt:1@{}", hunks[0]["shown"].as_str().unwrap());
    let applied = stage.ran(&["sessions", "apply", &session, "--only", &named]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert_eq!(stage.read("a.txt"), own.replace("1\n2", "one\n2").replace("15\n", "fifteen\n"));
}

/// Whatever an apply would keep is told before it, on every way to look. The control is what nobody else
/// changed.
#[test]
fn a_diff_names_each_path_that_an_apply_would_keep() {
    let stage = Stage::new(&[("bytes", "\0"), ("mode.sh", "x\n"), ("gone.txt", "g\n"), ("own.txt", "o\n")]);
    std::os::unix::fs::symlink("own.txt", stage.project().join("link")).unwrap();
    let script = "printf '\\0a' > bytes; chmod 755 mode.sh; rm gone.txt; ln -sfn mode.sh link; echo n > new.txt; echo w > own.txt; \
                  mkfifo pipe";
    let session = work(&stage, script);
    for (path, text) in [("bytes", "\0b"), ("mode.sh", "y\n"), ("gone.txt", "still\n"), ("new.txt", "mine\n")]
    {
        stage.write(path, text);
    }
    fs::remove_file(stage.project().join("link")).unwrap();
    let kept = ["bytes", "gone.txt", "link", "mode.sh", "new.txt"];
    let diff = sessions(&stage, "diff", &session);
    let json = stage.ran(&["--json", "sessions", "diff", &session]);
    let told = super::event(&json, "diff");
    let of = |key: &str| -> Vec<String> {
        let lines = told[key].as_array().unwrap_or_else(|| panic!("no `{key}` in {told}")).iter();
        lines.map(|line| line.as_str().unwrap().split(": ").next().unwrap().to_owned()).collect()
    };
    assert_eq!(of("conflicts"), kept);
    assert_eq!(of("stays"), ["pipe"]);
    for path in kept {
        let lines: Vec<&str> = diff.stdout.lines().map(str::trim).collect();
        let is_told = lines
            .iter()
            .any(|line| line.starts_with(&format!("{path} ")) && line.ends_with("would be kept as it is"));
        assert!(is_told, "{path}: {diff:?}");
    }
    assert!(!diff.stdout.contains("own.txt is"), "{diff:?}");
    let applied = super::event(&stage.ran(&["--json", "sessions", "apply", &session]), "merged");
    assert_eq!(applied["files"], json!(["own.txt"]));
    assert!(applied["stays"][0].as_str().unwrap().starts_with("pipe: "), "{applied}");
    assert_eq!(applied["conflicts"].as_array().unwrap().len(), kept.len());
}

/// What an apply could not write it did not change: there is nothing of it to take back.
#[test]
fn an_undo_names_what_was_applied_alone() {
    let stage = Stage::new(&[("a", "a\n"), ("b", "b\n"), ("dir/c", "c\n")]);
    let session =
        work(&stage, "echo q >> a; echo q >> b; echo q >> dir/c; mkdir -p new/deep; echo n > new/deep/n");
    let shut = |is_shut| {
        let script = format!("chattr {}i . a b", if is_shut { '+' } else { '-' });
        let ran =
            std::process::Command::new("sh").args(["-c", &script]).current_dir(stage.project()).status();
        ran.is_ok_and(|status| status.success())
    };
    if !shut(true) {
        shut(false);
        println!("SKIPPED: nothing here can be made immutable");
        return;
    }
    let applied = sessions(&stage, "apply", &session);
    shut(false);
    assert_eq!(applied.code, Some(6), "{applied:?}");
    assert!(applied.stdout.contains("applied: dir/c\n"), "{applied:?}");
    stage.write("a", "the user's\n");
    let undone = sessions(&stage, "undo", &session);
    assert_eq!((undone.code, undone.stdout.as_str()), (Some(0), "undone: dir/c\n"), "{undone:?}");
    assert_eq!((stage.read("a").as_str(), stage.read("dir/c").as_str()), ("the user's\n", "c\n"));
    let again = sessions(&stage, "undo", &session);
    assert!(again.stderr.contains("applied nothing that could be undone"), "{again:?}");
}

/// A file that somebody makes in a directory that the session deleted stays, and is told as what it is.
#[test]
fn what_came_into_a_deleted_directory_is_told_as_such() {
    let stage = Stage::new(&[("dir/a.txt", "a\n")]);
    let session = work(&stage, "rm -r dir");
    stage.write("dir/mine.txt", "mine\n");
    let diff = sessions(&stage, "diff", &session);
    assert!(
        diff.stdout.contains("dir/mine.txt stays in the session: the project changed here later"),
        "{diff:?}"
    );
    assert!(!diff.stdout.contains("the clock was put back"), "{diff:?}");
    let applied = sessions(&stage, "apply", &session);
    assert_eq!(stage.read("dir/mine.txt"), "mine\n", "{applied:?}");
}
