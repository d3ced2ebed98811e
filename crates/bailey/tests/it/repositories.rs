//! The main job in repositories as people have them: a session reads, sees a test fail, repairs it and sees
//! it pass; after the apply the project's own tests pass outside too.

mod caches;
mod languages;
mod large;
mod texts;

use crate::stage::{Ran, Stage};
use bailey_testkit::Reply;
use serde_json::{Value, json};
use std::{
    fs,
    process::{Command, Stdio},
};

/// What a session did in a repository.
struct Repair {
    ran: Ran,
    /// What each call came to, as the model saw it.
    results: Vec<String>,
}

/// Runs these tool calls one after the other, each a name and arguments, and applies what they changed.
fn session(stage: &Stage, calls: &[(&str, Value)]) -> Repair {
    let mut script: Vec<Reply> = calls
        .iter()
        .enumerate()
        .map(|(number, (tool, arguments))| {
            Reply::calls([(format!("c{number}").as_str(), *tool, arguments.clone())])
        })
        .collect();
    script.push(Reply::text("done"));
    let (ran, _model) = stage.task(script, &["--apply"]);
    let results = ran.results();
    assert_eq!(results.len(), calls.len(), "{ran:?}");
    Repair { ran, results }
}

/// The usual repair: look, see the test fail, edit `path`, see it pass, apply. Then `test` passes outside.
fn repairs(stage: &Stage, path: &str, old: &str, new: &str, test: &[&str]) -> Repair {
    assert!(!outside(stage, test).0, "the bug is there");
    // What that built would be found inside, and nothing be built anew there.
    stage.git(&["clean", "--quiet", "-fdX"]);
    let repair = session(
        stage,
        &[
            ("fs_read", json!({ "path": path })),
            ("command_run", json!({ "argv": test })),
            ("fs_edit", json!({ "path": path, "old": old, "new": new })),
            ("command_run", json!({ "argv": test })),
        ],
    );
    let results = &repair.results;
    assert!(results[0].contains(old), "{results:?}");
    assert!(!results[1].contains("\nexit code: 0"), "it fails at first: {results:?}");
    assert!(results[3].contains("\nexit code: 0"), "and then passes: {results:?}");
    assert_eq!(repair.ran.code, Some(0), "{:?}", repair.ran);
    let (passed, output) = outside(stage, test);
    assert!(passed, "{output}");
    assert_eq!(stage.git(&["status", "--porcelain"]), format!(" M {path}\n"), "nothing else came with it");
    repair
}

/// Runs a program in the project, outside of any wall; whether it did well, and what it printed.
fn outside(stage: &Stage, argv: &[&str]) -> (bool, String) {
    let mut command = Command::new(argv[0]);
    command.args(&argv[1..]).current_dir(stage.project()).stdin(Stdio::null());
    for (key, _) in std::env::vars_os() {
        let key = key.to_string_lossy().into_owned();
        if key.starts_with("CARGO") && key != "CARGO_HOME" || key.starts_with("NODE_") || key == "RUSTFLAGS" {
            command.env_remove(key);
        }
    }
    let output = command.env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

/// Whether a program is here, and where it is not, says so.
fn has(argv: &[&str]) -> bool {
    let found = Command::new(argv[0]).args(&argv[1..]).output().is_ok_and(|output| output.status.success());
    if !found {
        println!("SKIPPED: `{}` does not run here", argv.join(" "));
    }
    found
}

/// Writes a file that need not be text, and commits it.
fn commit_bytes(stage: &Stage, path: &str, content: &[u8]) {
    fs::write(stage.project().join(path), content).unwrap();
    stage.git(&["add", "--all"]);
    stage.git(&["commit", "--quiet", "--message", path]);
}
