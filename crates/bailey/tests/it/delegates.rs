//! A sub-agent of the real binary, behind the real walls.

use crate::stage::Stage;
use bailey_testkit::Reply;
use serde_json::{Value, json};

fn named<'a>(trail: &'a [Value], name: &str) -> Vec<&'a Value> {
    trail.iter().filter(|entry| entry["type"] == name).collect()
}

#[test]
fn a_sub_agent_works_in_its_parents_layer_and_reaches_what_it_was_given() {
    let stage = Stage::new(&[("src/a.txt", "in the source\n"), ("docs/b.txt", "in the docs\n")]);
    let errand = json!({
        "task": "mend the source", "tools": ["fs.read", "fs.write", "command.run"], "paths": ["src"]
    });
    let script = vec![
        Reply::calls([("p1", "agent_run", errand)]),
        Reply::calls([
            ("c1", "fs_read", json!({ "path": "src/a.txt" })),
            ("c2", "fs_read", json!({ "path": "docs/b.txt" })),
            ("c3", "fs_write", json!({ "path": "docs/c.txt", "content": "no\n" })),
            ("c4", "fs_write", json!({ "path": "src/new.txt", "content": "yes\n" })),
        ]),
        Reply::calls([("c5", "command_run", json!({ "command": "cat src/new.txt; ls docs" }))]),
        Reply::text("mended, says the sub-agent"),
        Reply::text("all done"),
    ];
    let (ran, model) = stage.task(script, &[]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let results = ran.results();
    assert_eq!(results.len(), 1, "what it is told is its own: {results:?}");
    assert!(results[0].contains("mended, says the sub-agent"), "{results:?}");
    let told = model.requests().into_iter().nth(3).unwrap().json().to_string();
    assert!(told.contains("in the source") && !told.contains("in the docs"), "{told}");
    assert_eq!(told.matches("this is beyond its scope").count(), 2, "{told}");
    assert!(told.contains("yes\\nb.txt"), "the command sees what was written: {told}");
    let trail = stage.trail();
    let begun = named(&trail, "delegated");
    assert_eq!(
        (begun.len(), named(&trail, "token_minted").len(), named(&trail, "token_ended").len()),
        (1, 1, 1)
    );
    let exported = stage.ran(&["audit", "export"]).lines();
    let minted = exported.iter().find(|line| line["entry"]["type"] == "token_minted").unwrap();
    // It is of no use to another one of this session: what it says of its walls is compared at each use.
    assert!(minted["payload"].to_string().contains("\\\"sandbox\\\":\\\""), "{minted}");
    let sessions = stage.ran(&["--json", "sessions", "list"]).lines();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    let diff = stage.ran(&["sessions", "diff", sessions[0]["id"].as_str().unwrap()]);
    assert!(diff.stdout.contains("src/new.txt") && !diff.stdout.contains("docs/c.txt"), "{diff:?}");
    let own = begun[0]["session"].as_str().unwrap();
    let said = stage.ran(&["audit", "log", "--session", own]);
    assert!(said.code == Some(0) && said.stdout.contains("observation"), "{}{}", said.stdout, said.stderr);
    assert_ne!(stage.ran(&["sessions", "resume", own]).code, Some(0), "nobody goes on with it");
}
