//! Limits of a turn: at that of tool calls it pauses, keeps its work, and asks; a budget that does not
//! suffice is named.

use crate::{stage::Stage, terminal::Terminal};
use bailey_testkit::{ModelServer, Reply};
use serde_json::{Value, json};

const QUESTION: &str = "[y]es, [n]o or [d]etails: ";

fn write(id: &str, path: &str) -> Reply {
    Reply::calls([(id, "fs_write", json!({ "path": path, "content": "x\n" }))])
}

/// A stage whose turns pause after two calls, and a model that wants three.
fn stage() -> (Stage, ModelServer) {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let script = vec![
        write("c1", "one.txt"),
        write("c2", "two.txt"),
        write("c3", "three.txt"),
        Reply::text("all three"),
    ];
    let model = stage.model(script);
    let config = stage.home().join("config.toml");
    let old = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{old}\n[limits]\ntool_calls = 2\n")).unwrap();
    (stage, model)
}

fn of_type<'a>(trail: &'a [Value], name: &str) -> Vec<&'a Value> {
    trail.iter().filter(|entry| entry["type"] == name).collect()
}

#[test]
fn a_run_at_its_limit_of_calls_goes_on_where_the_human_says_yes() {
    let (stage, model) = stage();
    let Some(mut terminal) = Terminal::start(&stage, &["run", "--model", "test/model", "write three"]) else {
        return;
    };
    let card = terminal.wait_for(QUESTION);
    assert!(card.contains("go on for another 2 tool calls?"), "{card}");
    assert_eq!(model.requests().len(), 2, "it waits");
    terminal.keys("s\n");
    terminal.wait_for("Please type y, n or d.");
    terminal.keys("y\n");
    terminal.wait_for("Apply these changes?");
    terminal.keys("n\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("all three") && screen.contains("three.txt"), "{screen}");
    let trail = stage.trail();
    assert_eq!(of_type(&trail, "asked").len(), 1);
    let answered = of_type(&trail, "answered");
    assert_eq!((&answered[0]["answer"], &answered[0]["by"]), (&json!("yes"), &json!("owner")));
}

#[test]
fn a_no_at_the_limit_keeps_the_work_and_says_how_to_go_on() {
    let (stage, _model) = stage();
    let Some(mut terminal) = Terminal::start(&stage, &["run", "--model", "test/model", "write three"]) else {
        return;
    };
    terminal.wait_for(QUESTION);
    terminal.keys("n enough\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 7, "{screen}");
    assert!(screen.contains("to continue: bailey sessions resume"), "{screen}");
    assert!(screen.contains("two.txt") && !screen.contains("three.txt"), "{screen}");
}

#[test]
fn without_a_terminal_the_limit_ends_the_run_and_a_resume_goes_on() {
    let (stage, model) = stage();
    let arguments = ["run", "--model", "test/model", "--approve", "never", "--apply", "write three"];
    let ran = stage.ran(&arguments);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert!(!stage.project().join("one.txt").exists(), "a turn that pauses applies nothing");
    let how = ran.stdout.lines().find_map(|line| line.split_once("to continue: bailey ")).unwrap().1;
    let words: Vec<&str> = how.split_whitespace().collect();
    assert_eq!(of_type(&stage.trail(), "answered")[0]["by"], "bailey");
    let again =
        stage.ran(&[&words[..], &["--model", "test/model", "--approve", "never", "--apply"]].concat());
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(model.requests().len(), 4, "nothing was asked twice");
    for file in ["one.txt", "two.txt", "three.txt"] {
        assert_eq!(stage.read(file), "x\n");
    }
}

#[test]
fn a_chat_at_its_limit_asks_and_goes_on_with_the_next_message() {
    let (stage, model) = stage();
    let Some(mut terminal) = Terminal::start(&stage, &["chat", "--model", "test/model"]) else { return };
    terminal.wait_for("› ");
    terminal.keys("write three\r");
    terminal.wait_for(QUESTION);
    terminal.keys("n\n");
    terminal.wait_for("to continue: say something");
    assert_eq!(model.requests().len(), 2);
    terminal.keys("go on\r");
    terminal.wait_for("all three");
    assert_eq!(model.requests().len(), 4);
    terminal.keys("\u{4}");
    assert_eq!(terminal.end().0, 0);
}

/// A sub-agent's task is a part of it, so that each limit is met by somebody.
fn with_limit(line: &str) -> (crate::stage::Ran, ModelServer) {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let errand = json!({ "task": "look at it", "tools": ["fs.read"], "paths": ["a.txt"], "tokens": 900_000 });
    let script = vec![
        Reply::calls([("p1", "agent_run", errand)]),
        Reply::text("looked, says the sub-agent"),
        Reply::text("done"),
    ];
    let model = stage.model(script);
    let host = model.base_url().replace("http://", "");
    let price = format!("[[model]]\nhost = \"{host}\"\nname = \"*\"\ninput = \"1000\"\noutput = \"1000\"\n");
    std::fs::write(stage.home().join("models.toml"), price).unwrap();
    let config = stage.home().join("config.toml");
    let old = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{old}\n[limits]\n{line}\n")).unwrap();
    (stage.ran(&["--json", "run", "--model", "test/model", "--approve", "never", "do it"]), model)
}

#[test]
fn each_budget_of_the_configuration_is_the_one_that_it_says() {
    for span in ["call", "turn", "session", "task", "day"] {
        for (unit, little, much) in [("tokens", "10", "9_000_000"), ("money", "\"0.01 USD\"", "\"9000 USD\"")]
        {
            let setting = format!("{span}_{unit}");
            let (ran, model) = with_limit(&format!("{setting} = {much}"));
            assert_eq!((ran.code, model.requests().len()), (Some(0), 3), "the control: {setting}: {ran:?}");
            let (ran, model) = with_limit(&format!("{setting} = {little}"));
            if span == "task" {
                // The sub-agent does not begin to speak, and its session goes on.
                assert_eq!((ran.code, model.requests().len()), (Some(0), 2), "{setting}: {ran:?}");
                continue;
            }
            assert_eq!((ran.code, model.requests().len()), (Some(7), 0), "{setting}: {ran:?}");
            assert!(ran.stdout.contains(&format!("raise `limits.{setting}`")), "{setting}: {ran:?}");
        }
    }
}
