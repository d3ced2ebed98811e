//! What is shortened before it is shown: of a secret that stands across a cut no part is left beside it.

use crate::{stage::Stage, terminal::Terminal, workspace::newest};
use bailey_testkit::Reply;
use serde_json::json;
use std::fs;

const QUESTION: &str = "[n]o or [d]etails: ";
const ASK: &str = "[[rule]]\nname = \"look\"\nanswer = \"review\"\nreason = \"changes are looked at\"\n\
                   match = { action = \"change\" }\n";
/// A credential of a known shape, and the half of it that nobody knows for one.
const TOKEN: &str = "ghp_q7Zt41xWTmmB9QkPdV0LrYcH3sNeJ8uFaG2i";
const HALF: &str = "ghp_q7Zt41xWTmmB9";

#[test]
fn half_of_a_secret_stands_on_no_card_and_in_no_result() {
    // A line of a diff has 500 characters, its sign is one of them.
    let line = format!("{}zzzz {TOKEN} {}\n", "x".repeat(499 - 5 - HALF.len()), "and more ".repeat(20));
    let stage = Stage::new(&[("a.txt", &line)]);
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    fs::write(stage.home().join("policy/rules.toml"), format!("{}\n{ASK}", bailey_policy::DEFAULT_RULES))
        .unwrap();
    let edit =
        |id: &str| Reply::calls([(id, "fs_edit", json!({ "path": "a.txt", "old": "zzzz", "new": "yyyy" }))]);
    let later = ["--json", "--model", "test/model", "--approve", "later"];
    let model = stage.model(vec![edit("c1"), Reply::text("I wait.")]);
    let asked = stage.ran(&[&["run", "do it"], &later[..]].concat());
    assert_eq!(asked.code, Some(7), "{asked:?}");
    let id = stage.ran(&["--json", "approvals", "list"]).lines()[0]["id"].as_str().unwrap().to_owned();
    let shown = stage.ran(&["approvals", "show", &id]);
    let as_json = stage.ran(&["--json", "approvals", "show", &id]);
    for (place, text) in [("event", &asked.stdout), ("show", &shown.stdout), ("json", &as_json.stdout)] {
        assert!(text.contains("[redacted") && text.contains("left out"), "{place} has the line: {text}");
        assert!(!text.contains(HALF), "{place}: {text}");
    }
    drop(model);
    // The same on a terminal, and in what the model is told of its edit.
    assert_eq!(stage.ran(&["approvals", "reject", &id, "--reason", "once more"]).code, Some(0));
    let model = stage.model(vec![edit("c2"), Reply::text("done")]);
    let arguments = ["sessions", "resume", "--model", "test/model", "--apply", &newest(&stage), "go on"];
    let Some(mut terminal) = Terminal::start(&stage, &arguments) else { return };
    let card = terminal.wait_for(QUESTION);
    assert!(card.contains("[redacted") && !card.contains(HALF), "{card}");
    terminal.keys("y\n");
    let (_, screen) = terminal.end();
    assert!(!screen.contains(HALF), "{screen}");
    let told = model.requests().last().unwrap().body.clone();
    assert!(told.contains("changed") && told.contains("[redacted") && !told.contains(HALF), "{told}");
    // The control: it is really there.
    assert!(stage.read("a.txt").contains(TOKEN));
}
