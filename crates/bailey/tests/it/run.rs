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
