//! What is pinned stays in front of the model, whatever is summed up; what is not pinned goes.

use crate::{
    stage::{Ran, Stage},
    terminal::Terminal,
    workspace::newest,
};
use bailey_testkit::{ModelServer, Reply};
use serde_json::{Value, json};
use std::{fs, io::Write as _, process::Stdio};

const FACT: &str = "The code word is BRIDGEKEEPER-77.";
const QUESTION: &str = "What is the code word?";
/// Turns that fill the window several times.
const TURNS: usize = 14;

/// A model with a window of 12,000 tokens that reads a file at every step, and knows the code word only where
/// the request holds it.
fn small_window(stage: &Stage) -> ModelServer {
    let server = ModelServer::by(|request| {
        let json = request.json();
        if json["system"].as_str().is_some_and(|text| text.starts_with("You write down what")) {
            return Reply::text("The agent read big.txt at each step. Nothing is open.");
        }
        let said = json["messages"].as_array().unwrap().last().unwrap()["content"].clone();
        let said = said.as_array().unwrap();
        if said.iter().any(|part| part["type"] == "tool_result") {
            return Reply::text("I have read it.");
        }
        if said.iter().any(|part| part["text"] == QUESTION) {
            let known = request.body.contains("BRIDGEKEEPER-77");
            return Reply::text(if known { "It is known." } else { "It is gone." });
        }
        Reply::calls([("c1", "fs_read", json!({ "path": "big.txt" }))])
    });
    fs::create_dir_all(stage.home()).unwrap();
    let config = format!(
        "[limits]\nreply_tokens = 1_000\n[providers.test]\nwire = \"anthropic\"\nwindow_tokens = 12_000\nbase_url = \"{}\"\n",
        server.base_url()
    );
    fs::write(stage.home().join("config.toml"), config).unwrap();
    server
}

fn talk(stage: &Stage, arguments: &[&str], lines: &str) -> Ran {
    let mut command = stage.bailey(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    Ran::of(child.wait_with_output().unwrap())
}

/// A long conversation that begins with these words; gives what was printed, and how often a summary was
/// made.
fn conversation(first: &str) -> (Ran, usize) {
    let big = "A line of a file that is long and says little.\n".repeat(130);
    let stage = Stage::new(&[("big.txt", &big)]);
    let _server = small_window(&stage);
    let steps: String = (0..TURNS).map(|step| format!("step {step}\n")).collect();
    let lines = format!("{first}\n{steps}{QUESTION}\n");
    let ran = talk(&stage, &["chat", "--model", "test/model", "--approve", "never"], &lines);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let summaries = stage.trail().iter().filter(|entry| entry["type"] == "summary").count();
    (ran, summaries)
}

#[test]
fn pinned_words_outlive_every_summary() {
    let (ran, summaries) = conversation(&format!("/pin {FACT}"));
    assert!(summaries > 0 && ran.stdout.contains("│ It is known."), "{summaries}: {ran:?}");
    // Control: the same words, said and not pinned.
    let (ran, summaries) = conversation(FACT);
    assert!(summaries > 0 && ran.stdout.contains("│ It is gone."), "{summaries}: {ran:?}");
    // What was pinned and is no more goes like anything else.
    let (ran, summaries) = conversation(&format!("/pin {FACT}\n/unpin 1"));
    assert!(summaries > 0 && ran.stdout.contains("│ It is gone."), "{summaries}: {ran:?}");
}

#[test]
fn pins_have_numbers_and_come_back_with_the_session() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let model = stage.model(vec![Reply::text("first"), Reply::text("second")]);
    let Some(mut terminal) = Terminal::start(&stage, &["chat", "--model", "test/model"]) else { return };
    terminal.wait_for("› ");
    terminal.keys("/pin\r");
    terminal.wait_for("nothing is pinned");
    terminal.keys("/unpin 1\r");
    terminal.wait_for("nothing is pinned");
    terminal.keys("/p\tleave the tests alone\r");
    terminal.wait_for("pinned 1: leave the tests alone");
    terminal.keys("/pin no new crates\r");
    terminal.wait_for("pinned 2: no new crates");
    terminal.keys("/unpin\r");
    terminal.wait_for("takes the number of a pinned text, 1 to 2");
    terminal.keys("/unpin 2\r");
    terminal.wait_for("unpinned: no new crates");
    terminal.keys("hello\r");
    terminal.wait_for("done in");
    assert!(model.requests()[0].body.contains("leave the tests alone"));
    terminal.keys("\u{4}");
    assert_eq!(terminal.end().0, 0);

    let session =
        stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
    let resume = ["chat", "--model", "test/model", "--resume", &session];
    let ran = talk(&stage, &resume, "/pin\n/unpin\n/unpin\n");
    assert_eq!(
        ran.stdout.matches("pinned 1: leave the tests alone").count(),
        2,
        "at once, and listed: {ran:?}"
    );
    assert!(ran.stdout.contains("unpinned: leave the tests alone"), "{ran:?}");
    assert!(ran.stdout.contains("nothing is pinned"), "{ran:?}");
    let parts = stage.ran(&["--json", "sessions", "context", &session]).lines();
    assert!(!parts.iter().any(|part| part["part"] == "pinned"), "{parts:?}");
}

#[test]
fn words_are_pinned_during_a_turn_and_by_an_option() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = bailey_testkit::Gate::default();
    let read = bailey_testkit::Message::calls([("c1", "fs_read", json!({ "path": "a.txt" }))]);
    let model =
        stage.model(vec![Reply::Held(gate.clone(), read), Reply::text("all of it"), Reply::text("done")]);
    let Some(mut terminal) = Terminal::start(&stage, &["chat", "--model", "test/model"]) else { return };
    terminal.wait_for("› ");
    terminal.keys("first\r");
    model.wait_for(1);
    terminal.keys("/pin use tabs\r");
    terminal.wait_for("pinned 1: use tabs");
    gate.open();
    terminal.wait_for("all of it");
    assert!(model.requests()[1].body.contains("use tabs"), "seen at the next step of the same turn");
    terminal.keys("\u{4}");
    assert_eq!(terminal.end().0, 0);

    let run =
        ["--json", "run", "--model", "test/model", "--approve", "never", "--pin", "use blanks", "do it"];
    let ran = stage.ran(&run);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(model.requests()[2].body.contains("use blanks"));
    let pinned: Vec<Value> = ran.lines().into_iter().filter(|event| event["type"] == "pinned").collect();
    assert_eq!(pinned[0]["messages"][0]["text"], "use blanks", "{ran:?}");
    let replayed = stage.ran(&["replay", &newest(&stage)]);
    assert!(replayed.code == Some(0) && replayed.stdout.contains("same decisions"), "{replayed:?}");
    let pinned = ["chat", "--model", "test/model", "--pin", "no new crates"];
    let ran = talk(&stage, &pinned, "/pin\n/model\n");
    assert_eq!(ran.stdout.matches("pinned 1: no new crates").count(), 2, "{ran:?}");
    assert!(ran.stdout.contains("test/model; /model NAME"), "{ran:?}");
    let ran = stage.ran(&["run", "--model", "test/model", "--approve", "never", "--pin", " ", "do it"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("`--pin` got no words"), "{ran:?}");
}
