//! `--no-sandbox`: what happens without walls, and who is asked before it does.

use crate::{cards::QUESTION, stage::Stage, terminal::Terminal};
use bailey_testkit::Reply;
use serde_json::{Value, json};

const APPENDS: &str = "echo more >> a.txt; cat a.txt";

fn command(id: &str) -> Reply {
    Reply::calls([(id, "command_run", json!({ "command": APPENDS }))])
}

/// What stood around each thing that was done, as the journal says it.
fn enforced(stage: &Stage) -> Vec<Value> {
    fn found(value: &Value, all: &mut Vec<Value>) {
        match value {
            Value::Object(fields) => {
                all.extend(fields.get("enforced").filter(|it| it.is_object()).cloned());
                fields.values().for_each(|field| found(field, all));
            }
            Value::Array(values) => values.iter().for_each(|value| found(value, all)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    stage.trail().iter().for_each(|entry| found(entry, &mut all));
    all
}

#[test]
fn without_a_sandbox_each_command_and_each_change_is_asked_about_and_happens_at_once() {
    let script = || {
        let write = json!({ "path": "b.txt", "content": "new\n" });
        let refused = json!({ "path": "c.txt", "content": "new\n" });
        vec![
            command("c1"),
            command("c2"),
            Reply::calls([("c3", "fs_write", write)]),
            Reply::calls([("c4", "fs_write", refused)]),
            Reply::text("done"),
        ]
    };
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let _model = stage.model(script());
    let arguments = ["run", "--no-sandbox", "--model", "test/model", "do it"];
    let Some(mut terminal) = Terminal::start(&stage, &arguments) else { return };
    for (answer, target) in [("y\n", "echo more"), ("y\n", "echo more"), ("y\n", "b.txt"), ("n\n", "c.txt")] {
        let card = terminal.wait_for(QUESTION);
        assert!(card.contains(target) && card.contains("there is no sandbox"), "{card}");
        assert!(!card.contains("only the walls limit") && !card.contains("network: none"), "{card}");
        let question = card.lines().last().unwrap_or_default();
        assert!(!question.contains("session") && !question.contains("attern"), "once only: {question}");
        terminal.keys(answer);
    }
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("NO SANDBOX") && screen.contains("the changes were made in place"), "{screen}");
    assert!(screen.contains("what commands change is not seen"), "{screen}");
    let log = stage.ran(&["audit", "log"]).stdout;
    assert!(log.contains(", no walls") && log.contains("there are none"), "{log}");
    let session =
        stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
    let diff = stage.ran(&["sessions", "diff", &session]);
    assert!(diff.stderr.contains("had no walls"), "{diff:?}");
    let discarded = stage.ran(&["sessions", "discard", &session]);
    assert!(
        discarded.stderr.contains("those changes are not taken back")
            && !discarded.stderr.contains("is unchanged"),
        "{discarded:?}"
    );
    let replayed = stage.ran(&["replay", &session]);
    assert_eq!(replayed.code, Some(0), "the same questions and the same words to the model: {replayed:?}");
    let context = stage.ran(&["sessions", "context", &session]).stdout;
    assert!(context.contains("There are no walls around"), "{context}");
    assert_eq!(stage.read("a.txt"), "a\nmore\nmore\n", "{screen}");
    assert_eq!(stage.read("b.txt"), "new\n");
    assert!(!stage.project().join("c.txt").exists(), "{screen}");
    let enforced = enforced(&stage);
    let of_commands: Vec<_> = enforced.iter().filter(|it| it["backend"] == "none").collect();
    assert!(of_commands.len() >= 3, "{enforced:?}");
    assert!(of_commands.iter().all(|it| it["landlock_abi"] == 0), "{enforced:?}");

    // The control: inside the walls nobody is asked, and the project stays as it is.
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let (ran, _model) = stage.task(script(), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stdout.contains("\"asked\"") && stage.read("a.txt") == "a\n", "{ran:?}");
    assert!(self::enforced(&stage).iter().all(|it| it["backend"] == "native"));
}

#[test]
fn without_a_sandbox_no_rule_and_no_absence_lets_a_command_through() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let rule = "[[rule]]\nname = \"all\"\nanswer = \"allow\"\npriority = 1000\nreason = \"all\"\nmatch = { action = [\"exec\", \"change\", \"model\", \"read\", \"diff\"] }\n";
    let policy = stage.home().join("policy");
    std::fs::create_dir_all(&policy).unwrap();
    std::fs::write(policy.join("own.toml"), rule).unwrap();
    let script = || vec![command("c1"), Reply::text("done")];
    let (ran, _model) = stage.task(script(), &["--no-sandbox"]);
    assert!(!ran.results().is_empty(), "{ran:?}");
    assert!(
        ran.results()[0].contains("not approved") && ran.stdout.contains("there is no sandbox"),
        "{ran:?}"
    );
    assert_eq!(stage.read("a.txt"), "a\n", "{ran:?}");
    assert!(ran.stderr.contains("NO SANDBOX"), "{ran:?}");
    assert_eq!(ran.lines()[0]["backend"], "none", "{ran:?}");
    // The control: behind walls the same rule lets it through.
    let (ran, _model) = stage.task(script(), &[]);
    assert!(ran.results()[0].contains("more"), "{ran:?}");
}

/// What walls keep from a reader without a question has one where there are none: secrets of the project, the
/// machine's own temporary files, the agent's own file.
#[test]
fn without_a_sandbox_what_walls_would_have_hidden_is_asked_about_or_left_out() {
    let stage = Stage::new(&[("a.txt", "PASSWORD=\n"), (".env", "PASSWORD=hunter2\n")]);
    let outside = tempfile::Builder::new().prefix("of-the-host-").tempdir_in("/tmp").unwrap();
    let note = outside.path().join("note.txt");
    std::fs::write(&note, "PASSWORD of the host\n").unwrap();
    let policy = stage.home().join("policy");
    std::fs::create_dir_all(&policy).unwrap();
    let rule = "[[rule]]\nname = \"all\"\nanswer = \"allow\"\npriority = 1000\nmatch = { action = [\"model\", \"read\", \"stat\", \"search\", \"diff\", \"adapt\"] }\n";
    std::fs::write(policy.join("own.toml"), rule).unwrap();
    let script = || {
        vec![
            Reply::calls([("c1", "search_grep", json!({ "pattern": "PASSWORD" }))]),
            Reply::calls([("c2", "fs_read", json!({ "path": note }))]),
            Reply::calls([("c3", "search_grep", json!({ "pattern": "PASSWORD", "path": outside.path() }))]),
            Reply::calls([("c4", "fs_read", json!({ "path": ".env" }))]),
            Reply::calls([("c5", "agent_adapt", json!({ "name": "tester" }))]),
            Reply::text("done"),
        ]
    };
    let (ran, _model) = stage.task(script(), &["--no-sandbox"]);
    let told = ran.results();
    assert_eq!(told.len(), 5, "{ran:?}");
    assert!(told[0].contains("a.txt") && !told.concat().contains("hunter2"), "{told:?}");
    assert!(!told.concat().contains("of the host"), "{told:?}");
    for told in &told[1..] {
        assert!(told.contains("not approved"), "{told}");
    }
    // The control: behind walls the same rules ask about none of this, and what a human revealed is found and
    // read.
    let (ran, _model) = stage.task(script(), &["--reveal", ".env"]);
    let told = ran.results();
    assert!(told[0].contains("hunter2") && told[3].contains("hunter2"), "{told:?}");
    assert!(told.iter().all(|told| !told.contains("not approved")), "{told:?}");
}

#[test]
fn only_a_command_line_takes_the_walls_away() {
    let stage = Stage::new(&[("a.txt", "a\n"), (".bailey/config.toml", "no_sandbox = true\n")]);
    let ran = stage.ran(&["trust", "add"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("no_sandbox"), "{ran:?}");
    std::fs::write(stage.home().join("config.toml"), "[sandbox]\nno_sandbox = true\n").unwrap();
    let ran = stage.ran(&["sandbox", "run", "--", "true"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("no_sandbox"), "{ran:?}");
    let ran = stage.ran(&["chat", "--no-sandbox", "--resume", "0"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("cannot be used with"), "{ran:?}");
}
