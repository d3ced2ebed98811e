//! `bailey run`: the main job.

use crate::stage::Stage;
use bailey_testkit::Reply;
use serde_json::json;

#[test]
fn an_edit_stays_in_the_layer_until_it_is_applied() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let script = || {
        vec![
            Reply::calls([("c1", "fs_edit", json!({ "path": "a.txt", "old": "one", "new": "two" }))]),
            Reply::text("done"),
        ]
    };
    let (ran, _model) = stage.task(script(), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(stage.read("a.txt"), "one\n", "nobody said apply");
    let (ran, _model) = stage.task(script(), &["--apply"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(stage.read("a.txt"), "two\n");
}

/// The counts went by places in a list: a FIFO or a touched `.git` before
/// the changes hid the fate of `src/main.rs`.
#[test]
fn what_is_told_at_the_end_names_each_changed_path_with_its_own_lines() {
    let stage = Stage::new(&[("src/main.rs", "fn main() {}\n"), (".git/config", "")]);
    let command =
        "mkfifo aaa; touch .git/zzz; printf 'x\n' >> src/main.rs; seq 1 300 > notes.txt; ln -s src link";
    let script =
        vec![Reply::calls([("c1", "command_run", json!({ "command": command }))]), Reply::text("done")];
    let _model = stage.model(script);
    let ran = stage.ran(&["run", "--model", "test/model", "count"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for told in ["aaa  not compared", "link  link to src", "notes.txt  +300 −0", "src/main.rs  +1 −0"] {
        assert!(ran.stdout.contains(told), "{told}: {ran:?}");
    }
}
