//! A repository of 100,000 files: figures, printed.

use super::session;
use crate::stage::Stage;
use bailey_testkit::Reply;
use serde_json::json;
use std::{fs, time::Instant};

#[test]
fn figures_of_a_repository_of_100_000_files() {
    if std::env::var_os("BAILEY_TEST_LONG").is_none_or(|value| value != "1") {
        println!("SKIPPED: `cargo xtask long` makes 100,000 files");
        return;
    }
    let stage = Stage::new(&[("value.txt", "bug\n")]);
    for directory in 0..1_000 {
        let path = stage.project().join(format!("d{}/e{directory}", directory % 10));
        fs::create_dir_all(&path).unwrap();
        for file in 0..100 {
            fs::write(path.join(format!("f{file}.txt")), format!("line of {directory} {file}\n")).unwrap();
        }
    }
    // Git would pack so many objects in the background, while the directory is being removed.
    stage.git(&["config", "maintenance.auto", "false"]);
    stage.git(&["config", "gc.auto", "0"]);
    stage.git(&["add", "--all"]);
    stage.git(&["commit", "--quiet", "--message", "many"]);
    let timed = |what: &str, calls: &[(&str, serde_json::Value)]| {
        let begin = Instant::now();
        let repair = session(&stage, calls);
        println!("{what}: {} ms", begin.elapsed().as_millis());
        repair
    };
    timed("a run of one reply without calls", &[]);
    timed("a run with one command", &[("command_run", json!({ "argv": ["true"] }))]);
    timed("a run with one read", &[("fs_read", json!({ "path": "value.txt" }))]);
    let found = timed("a run with one grep over all", &[("grep", json!({ "pattern": "of 999 99$" }))]);
    assert!(found.results[0].contains("e999/f99.txt"), "{:?}", found.results);
    timed("a run with one `git status`", &[("git_run", json!({ "args": ["status", "--porcelain"] }))]);
    let edit = json!({ "path": "value.txt", "old": "bug", "new": "fix" });
    let script = vec![Reply::calls([("c", "fs_edit", edit)]), Reply::text("done")];
    let (ran, _model) = stage.task(script, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let newest =
        stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
    let begin = Instant::now();
    let applied = stage.ran(&["sessions", "apply", &newest, "--approve", "never"]);
    println!("an apply of one file: {} ms", begin.elapsed().as_millis());
    assert_eq!((applied.code, stage.read("value.txt").as_str()), (Some(0), "fix\n"), "{applied:?}");
}
