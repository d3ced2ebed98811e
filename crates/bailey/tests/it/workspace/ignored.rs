//! What git ignores of a session's changes stays in it, is told, and leaves it where a person names it.

use super::{event, sessions, work};
use crate::stage::Stage;
use serde_json::json;
use std::fs;

#[test]
fn what_git_ignores_is_told_and_leaves_by_name_alone() {
    let files = [(".gitignore", "out/\n*.toml\n"), ("a.txt", "a\n"), ("src/b.txt", "b\n")];
    let stage = Stage::new(&files);
    let project = stage.project();
    let script = "mkdir -p out/deep src/out && echo report > out/deep/report.md && echo big > out/other && echo x > src/out/x && \
                  echo new > local.toml && echo more >> src/b.txt";
    let session = work(&stage, script);
    let ignored = json!(["local.toml", "out", "src/out"]);
    let told = stage.ran(&["--json", "sessions", "diff", &session]);
    let diff = event(&told, "diff");
    assert_eq!((&diff["ignored"], &diff["files"]), (&ignored, &json!(["src/b.txt"])), "{diff}");
    let told = sessions(&stage, "diff", &session);
    let line = format!("git ignores it: local.toml, out, src/out (`bailey sessions apply {session}");
    assert!(told.stdout.replace('\n', " ").contains(line.split('(').next().unwrap()), "{told:?}");

    // A directory that git does not ignore brings nothing along that it does.
    let ran = stage.ran(&["sessions", "apply", &session, "src"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(fs::read_to_string(project.join("src/b.txt")).unwrap(), "b\nmore\n");
    assert!(!project.join("src/out").exists() && !project.join("out").exists());
    // The control: without a name nothing of it is to be applied.
    let none = sessions(&stage, "apply", &session);
    assert!(none.code == Some(1) && none.stderr.contains("no changes that can be applied"), "{none:?}");
    let dot = stage.ran(&["sessions", "apply", &session, "."]);
    assert!(dot.code == Some(1) && !project.join("out").exists(), "{dot:?}");

    let ran = stage.ran(&["sessions", "apply", &session, "out/deep/report.md"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(fs::read_to_string(project.join("out/deep/report.md")).unwrap(), "report\n");
    assert!(!project.join("out/other").exists() && !project.join("local.toml").exists());
    let ran = stage.ran(&["sessions", "apply", &session, "out", "local.toml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(project.join("out/other").exists() && project.join("local.toml").exists());
    for _ in 0..3 {
        sessions(&stage, "undo", &session);
    }
    assert!(!project.join("out").exists() && !project.join("local.toml").exists());
    assert_eq!(fs::read_to_string(project.join("src/b.txt")).unwrap(), "b\n");
}

/// The user's own, which the session did not see come, is not written over.
#[test]
fn an_ignored_file_of_the_users_that_changed_since_is_kept() {
    let stage = Stage::new(&[(".gitignore", "*.toml\n"), ("local.toml", "mine\n")]);
    let session = work(&stage, "echo theirs > local.toml");
    fs::write(stage.project().join("local.toml"), "mine, later\n").unwrap();
    let ran = stage.ran(&["sessions", "apply", &session, "local.toml"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert_eq!(fs::read_to_string(stage.project().join("local.toml")).unwrap(), "mine, later\n");
}
