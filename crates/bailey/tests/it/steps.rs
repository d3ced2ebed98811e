//! The review policy `every-step`: nothing of a task is done that a human did not look at, answered from a
//! second terminal.

use crate::{stage::Stage, terminal::Terminal};
use bailey_testkit::{ModelServer, Reply};
use serde_json::{Value, json};
use std::fs;

const QUESTION: &str = "[n]o or [d]etails: ";
const RUN: [&str; 4] = ["run", "--model", "test/model", "do it"];

/// A project with a guide, and the home's review policy.
fn stage(review: &str) -> Stage {
    let stage = Stage::new(&[("a.txt", "one\n"), ("AGENTS.md", "Heed the heron.\n")]);
    fs::create_dir_all(stage.home()).unwrap();
    fs::write(stage.home().join("config.toml"), format!("[approvals]\nreview = \"{review}\"\n")).unwrap();
    stage
}

/// One call of each kind, then the end.
fn each_kind(stage: &Stage) -> ModelServer {
    let call = |id: &str, tool: &str, arguments: Value| Reply::calls([(id, tool, arguments)]);
    stage.model_beside(vec![
        call("c1", "fs_list", json!({ "path": "." })),
        call("c2", "fs_read", json!({ "path": "a.txt" })),
        call("c3", "search_grep", json!({ "pattern": "one" })),
        call("c4", "fs_edit", json!({ "path": "a.txt", "old": "one", "new": "two" })),
        call("c5", "command_run", json!({ "command": "cat a.txt; echo heard" })),
        Reply::text("done"),
    ])
}

/// What a task comes to whose every step is done: an edit is a read and a change.
const ALL: [&str; 6] = ["list", "read", "search", "read", "change", "exec"];

/// The kinds of what began for the model's calls, in order.
fn begun(stage: &Stage) -> Vec<String> {
    let is_a_step = |entry: &&Value| entry["type"] == "intent" && !entry["call"].is_null();
    let trail = stage.trail();
    trail.iter().filter(is_a_step).map(|entry| entry["kind"].as_str().unwrap().to_owned()).collect()
}

/// The only question that is open.
fn question(stage: &Stage) -> Value {
    let mut questions = stage.ran(&["--json", "approvals", "list"]).lines();
    questions.retain(|question| question["standing"] == "open");
    assert_eq!(questions.len(), 1, "one step at a time: {questions:?}");
    questions.remove(0)
}

#[test]
fn each_step_waits_for_a_human_at_another_terminal() {
    let stage = stage("every-step");
    let model = each_kind(&stage);
    let Some(mut terminal) = Terminal::start(&stage, &RUN) else { return };
    let titles = ["List ", "Read ", "Search ", "Read ", "Change ", "Run cat a.txt", "Apply 1 file"];
    for (done, title) in titles.into_iter().enumerate() {
        let card = terminal.wait_for(QUESTION);
        assert!(card.contains(&format!("? {title}")), "{title}: {card}");
        let asked = question(&stage);
        assert!(asked["card"]["title"].as_str().unwrap().starts_with(title), "the same card: {asked}");
        assert_eq!(begun(&stage), ALL[..done], "before the yes it is not begun: {title}");
        let approved = stage.ran(&["approvals", "approve", asked["id"].as_str().unwrap()]);
        assert_eq!(approved.code, Some(0), "{approved:?}");
        terminal.wait_for("answered elsewhere: yes");
    }
    let (code, screen) = terminal.end();
    assert_eq!((code, stage.read("a.txt").as_str()), (0, "two\n"), "{screen}");
    assert_eq!(begun(&stage), ALL);
    assert_eq!((stage.entries("asked").len(), stage.entries("answered").len()), (7, 7));
    let requests = model.requests();
    assert!(requests.last().unwrap().body.contains("heard"), "the command ran");
    // Nobody was asked about the guide, so nobody read it.
    assert!(requests.iter().all(|request| !request.body.contains("Heed the heron")));
}

#[test]
fn a_step_that_was_rejected_is_not_done_and_the_model_knows_why() {
    let stage = stage("every-step");
    let model = stage.model_beside(vec![
        Reply::calls([("c1", "fs_read", json!({ "path": "a.txt" }))]),
        Reply::calls([("c2", "command_run", json!({ "command": "echo ran > a.txt" }))]),
        Reply::text("done"),
    ]);
    let Some(mut terminal) = Terminal::start(&stage, &RUN) else { return };
    let answers: [&[&str]; 2] = [&["approve"], &["reject", "--reason", "the release is frozen"]];
    for answer in answers {
        terminal.wait_for(QUESTION);
        let id = question(&stage)["id"].as_str().unwrap().to_owned();
        let answered = stage.ran(&[&["approvals", answer[0], &id], &answer[1..]].concat());
        assert_eq!(answered.code, Some(0), "{answered:?}");
    }
    terminal.wait_for("the release is frozen");
    let (code, screen) = terminal.end();
    assert_eq!((code, stage.read("a.txt").as_str()), (0, "one\n"), "{screen}");
    assert_eq!(begun(&stage), ["read"], "the control: the other step was done");
    let told = model.requests().last().unwrap().body.clone();
    assert!(told.contains("not approved: the release is frozen"), "{told}");
    let answers: Vec<_> = stage.entries("answered").iter().map(|entry| entry["answer"].clone()).collect();
    assert_eq!(answers, ["yes", "no"]);
    // The reason is the payload of its entry.
    let log = stage.ran(&["audit", "log"]).stdout;
    assert!(log.contains("the release is frozen"), "{log}");
}

/// The control of both: the same task, under the policy that adds nothing to what the rules ask about.
#[test]
fn under_auto_the_same_steps_wait_for_nobody() {
    let stage = stage("auto");
    let model = each_kind(&stage);
    let ran = stage.ran(&[&RUN[..], &["--approve", "never", "--apply"]].concat());
    assert_eq!((ran.code, stage.read("a.txt").as_str()), (Some(0), "two\n"), "{ran:?}");
    assert_eq!(begun(&stage), ALL);
    assert_eq!(stage.entries("asked"), Vec::<Value>::new());
    assert!(model.requests()[0].body.contains("Heed the heron"), "the guide is read unasked");
}
