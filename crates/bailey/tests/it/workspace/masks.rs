//! Secret-looking files: unreadable inside, unchanged for git, in a diff and in an apply; until they are
//! revealed.

use super::{newest, sessions, work};
use crate::{stage::Stage, tree::Tree};
use bailey_testkit::Reply;
use serde_json::json;
use std::{
    fs,
    time::{Duration, SystemTime},
};

const TRACKED: &[&str] = &[".env", "keys/server.pem", "secrets.yaml"];
const UNTRACKED: &[&str] = &[".env.local", "conf/credentials.json", "terraform.tfvars"];

/// A project with secret-looking files, tracked and untracked, and an example that is none.
fn secretive() -> Stage {
    let stage = Stage::new(&[
        (".env", "PASSPHRASE=swordfish\n"),
        (".env.example", "PASSPHRASE=\n"),
        ("keys/server.pem", "swordfish\n"),
        ("secrets.yaml", "a: swordfish\n"),
        ("a.txt", "a\n"),
    ]);
    for path in UNTRACKED {
        stage.write(path, "swordfish\n");
    }
    // Git reads what was written in the second of its index, and so it must not be this one.
    for path in TRACKED {
        let file = fs::File::open(stage.project().join(path)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    }
    stage.git(&["update-index", "-q", "--refresh"]);
    stage
}

#[test]
fn secret_looking_files_cannot_be_read_or_changed_and_git_sees_no_change() {
    let stage = secretive();
    let before = Tree::of(&stage.project());
    let outside = stage.git(&["--no-optional-locks", "status", "--porcelain"]);
    assert!(!outside.contains("?? .env\n") && outside.contains("?? .env.local"), "{outside}");
    let files = [TRACKED, UNTRACKED].concat().join(" ");
    let script = format!(
        "for f in {files}; do
            cat $f 2>/dev/null; cp $f /tmp/copy 2>/dev/null; ln $f /tmp/link 2>/dev/null
            echo x 2>/dev/null > $f; rm -f $f 2>/dev/null; mv $f moved 2>/dev/null; chmod 777 $f 2>/dev/null
         done
         cat .env.example; git status --porcelain; git diff; git stash list; echo b >> a.txt"
    );
    let ran = stage.ran(&["sandbox", "run", "--keep", "--", "sh", "-c", &script]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout, format!("PASSPHRASE=\n{outside}"), "{}", ran.stderr);
    assert_eq!(Tree::of(&stage.project()), before);
    let session = newest(&stage);
    let diff = stage.ran(&["--json", "sessions", "diff", &session]);
    let files: Vec<_> = super::event(&diff, "diff")["files"].as_array().unwrap().clone();
    let seen: Vec<_> = files.iter().filter(|file| *file != ".git").filter_map(|file| file.as_str()).collect();
    assert!(seen.iter().all(|file| *file == "a.txt" || file.starts_with(".git/")), "{seen:?}");
    assert_eq!(sessions(&stage, "apply", &session).code, Some(0));
    super::same(&before, &Tree::of(&stage.project()), &["a.txt"], super::Scope::Outside);
    // The control: the same command outside reads them.
    assert!(stage.read(".env").contains("swordfish") && stage.read(".env.local").contains("swordfish"));
}

#[test]
fn a_revealed_file_can_be_read_in_that_session_only_and_the_journal_says_so() {
    let stage = secretive();
    let look = || {
        let command = "cat .env secrets.yaml 2>&1 | tr a-z A-Z";
        vec![Reply::calls([("c1", "command_run", json!({ "command": command }))]), Reply::text("done")]
    };
    let (masked, _model) = stage.task(look(), &[]);
    assert!(!masked.stdout.contains("SWORDFISH"), "{masked:?}");
    let (revealed, _model) = stage.task(look(), &["--reveal", ".env"]);
    let seen = revealed.results().join("\n");
    assert!(seen.contains("PASSPHRASE=SWORDFISH") && !seen.contains("A: SWORDFISH"), "{revealed:?}");
    let entries: Vec<_> = stage.trail().into_iter().filter(|entry| entry["type"] == "revealed").collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(entries[0]["path"], json!(stage.project().join(".env")));
    // The session remembers; another one never knew.
    let session = newest(&stage);
    let _model = stage.model(look());
    let options = ["--model", "test/model", "--approve", "never", "again"];
    let resumed = stage.ran(&[&["--json", "sessions", "resume", &session], options.as_slice()].concat());
    assert!(resumed.results().join("\n").contains("PASSPHRASE=SWORDFISH"), "{resumed:?}");
    let (other, _model) = stage.task(look(), &[]);
    assert!(!other.stdout.contains("SWORDFISH"), "{other:?}");
}

#[test]
fn only_files_of_the_workspace_can_be_revealed() {
    let stage = secretive();
    for path in ["/etc/passwd", "../secret", "sub/../../secret"] {
        let (ran, _model) = stage.task(vec![Reply::text("no")], &["--reveal", path]);
        assert_eq!(ran.code, Some(1), "{path}: {ran:?}");
        assert!(ran.stderr.contains("is not in the workspace"), "{path}: {ran:?}");
    }
    let _ = work(&stage, "true");
}

#[test]
fn a_revealed_file_that_was_changed_is_applied_like_any_other() {
    let stage = secretive();
    let command = "echo NEW=1 >> .env";
    let script =
        vec![Reply::calls([("c1", "command_run", json!({ "command": command }))]), Reply::text("done")];
    let (ran, _model) = stage.task(script, &["--reveal", ".env", "--apply"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(stage.read(".env"), "PASSPHRASE=swordfish\nNEW=1\n");
}
