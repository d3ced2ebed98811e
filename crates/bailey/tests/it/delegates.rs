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
    let sessions = stage.ran(&["--json", "sessions", "list", "--all"]).lines();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    let diff = stage.ran(&["sessions", "diff", sessions[0]["id"].as_str().unwrap()]);
    assert!(diff.stdout.contains("src/new.txt") && !diff.stdout.contains("docs/c.txt"), "{diff:?}");
    let own = begun[0]["session"].as_str().unwrap();
    let said = stage.ran(&["audit", "log", "--session", own]);
    assert!(said.code == Some(0) && said.stdout.contains("observation"), "{}{}", said.stdout, said.stderr);
    assert_ne!(stage.ran(&["sessions", "resume", own]).code, Some(0), "nobody goes on with it");
}

/// Whether something is there beyond its scope is not for it to know, either, and each try is written down.
#[test]
fn a_sub_agent_learns_nothing_of_paths_beyond_its_scope() {
    let stage = Stage::new(&[("src/a.txt", "in the source\n"), ("docs/b.txt", "in the docs\n")]);
    let errand = json!({ "task": "look around", "tools": ["fs.read"], "paths": ["src"] });
    let read = |id, path: &str| (id, "fs_read", json!({ "path": path }));
    let script = vec![
        Reply::calls([("p1", "agent_run", errand)]),
        Reply::calls([
            read("c1", "src/a.txt/x"),
            read("c2", "src/./a.txt"),
            read("b1", "docs/b.txt/x"),
            read("b2", "docs/none/x"),
            read("b3", "/etc/passwd/x"),
            read("b4", "/etc/none/x"),
            read("b5", "docs/../src/a.txt"),
            read("b6", "none/../src/a.txt"),
        ]),
        Reply::text("looked"),
        Reply::text("done"),
    ];
    let beyond = 6;
    let (ran, model) = stage.task(script, &[]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let told = model.requests()[2].json()["messages"].to_string();
    assert_eq!(told.matches("is not a directory").count(), 1, "what is within its scope it is told: {told}");
    assert!(told.contains("in the source"), "{told}");
    assert_eq!(told.matches("names paths without `..`").count(), 2, "{told}");
    assert_eq!(named(&stage.trail(), "denied").len(), beyond + 1, "each try is written down: {told}");
    assert_eq!(told.matches("(built-in rule `").count(), beyond - 2, "{told}");
}

/// Two below each other: what is narrowed stands in the journal, and the session goes as a whole.
#[test]
fn a_sub_agent_gives_work_on_within_what_it_was_given() {
    let stage = Stage::new(&[("src/a.txt", "in the source\n"), ("docs/b.txt", "in the docs\n")]);
    let errand = |task: &str, paths: &str| json!({ "task": task, "tools": ["fs.read", "command.run", "agent.run"], "paths": [paths] });
    let script = vec![
        Reply::calls([("p1", "agent_run", errand("mend the source", "src"))]),
        Reply::calls([("c1", "agent_run", errand("look everywhere", "."))]),
        Reply::calls([
            ("g1", "fs_read", json!({ "path": "src/a.txt" })),
            ("g2", "fs_read", json!({ "path": "docs/b.txt" })),
            ("g3", "command_run", json!({ "command": "echo from the second" })),
        ]),
        Reply::text("looked, says the second"),
        Reply::text("mended, says the first"),
        Reply::text("all done"),
    ];
    let (ran, model) = stage.task(script, &[]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let requests = model.requests();
    let told = |at: usize| requests[at].json().to_string();
    let second = told(3);
    assert!(second.contains("in the source") && second.contains("from the second"), "{second}");
    assert!(!second.contains("in the docs") && second.contains("this is beyond its scope"), "{second}");
    assert!(told(4).contains("looked, says the second") && told(5).contains("mended, says the first"));
    let trail = stage.trail();
    let [first, below] = named(&trail, "delegated")[..] else { panic!("{trail:?}") };
    assert_eq!(below["parent"]["session"], first["session"]);
    let [narrowed] = named(&trail, "token_narrowed")[..] else { panic!("{trail:?}") };
    assert_eq!(narrowed["token"], named(&trail, "token_minted")[0]["token"]);
    let ran_under =
        |counts: &Value| counts.as_array().and_then(|counts| counts.last()) == Some(&narrowed["count"]);
    let second = named(&trail, "intent").into_iter().filter(|it| ran_under(&it["under"]["counts"])).count();
    assert!(second >= 4, "two calls of its model, a file and a command");
    let log = stage.ran(&["audit", "log"]).stdout;
    assert!(log.contains("token_narrowed") && log.contains("look everywhere"), "{log}");
    let sessions = stage.ran(&["--json", "sessions", "list", "--all"]).lines();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    let id = sessions[0]["id"].as_str().unwrap();
    assert!(said(&stage, below).contains("look everywhere"), "the control");
    assert_eq!(stage.ran(&["sessions", "rm", "--yes", id]).code, Some(0));
    assert!(!said(&stage, below).contains("look everywhere"), "{}", said(&stage, below));
    let verified = stage.ran(&["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert!(verified.stdout.contains("were erased with their sessions"), "{verified:?}");
}

/// What the journal holds of a conversation, beside the chain.
fn said(stage: &Stage, begun: &Value) -> String {
    let own = begun["session"].clone();
    let lines = stage.ran(&["audit", "export"]).lines().into_iter();
    lines.filter(|line| line["entry"]["session"] == own).map(|line| line["payload"].to_string()).collect()
}
