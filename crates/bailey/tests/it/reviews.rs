//! Review policies and compliance: how much a human looks at, and how.

use crate::{
    attacks::actor::controls,
    stage::{Ran, Stage},
    terminal::Terminal,
    workspace::newest,
};
use bailey_testkit::Reply;
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
};

const QUESTION: &str = "[n]o or [d]etails: ";

fn configure(stage: &Stage, approvals: &str) {
    fs::create_dir_all(stage.home()).unwrap();
    fs::write(stage.home().join("config.toml"), format!("[approvals]\n{approvals}\n")).unwrap();
}

fn verdict(stage: &Stage, action: &[&str]) -> Value {
    let ran = stage.ran(&[&["--json", "policy", "explain"], action].concat());
    ran.lines().pop().unwrap_or_else(|| panic!("{ran:?}"))
}

fn runs_a_command() -> Vec<Reply> {
    vec![Reply::calls([("c1", "command_run", json!({ "command": "echo ran > a.txt" }))]), Reply::text("done")]
}

#[test]
fn a_review_policy_is_rules_that_show_and_explain_tell() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    for (review, commands, merges) in [
        ("auto", "allow", "allow"),
        ("before-merge", "allow", "review"),
        ("before-execute", "review", "review"),
    ] {
        configure(&stage, &format!("review = \"{review}\""));
        assert_eq!(verdict(&stage, &["exec", "--", "ls"])["verdict"], commands, "{review}");
        assert_eq!(verdict(&stage, &["apply", "a.txt"])["verdict"], merges, "{review}");
        let shown = stage.ran(&["policy", "show"]).stdout;
        assert_eq!(shown.contains("review-before-merge"), merges == "review", "{shown}");
    }
    configure(&stage, "review_by_trust.internal = \"before-execute\"");
    assert_eq!(verdict(&stage, &["exec", "--", "ls"])["verdict"], "review");
    assert_eq!(verdict(&stage, &["apply", "a.txt"])["verdict"], "allow", "the owner is trusted");
    configure(&stage, "review = \"sometimes\"");
    let wrong = stage.ran(&["policy", "show"]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("before-merge"), "{wrong:?}");
}

/// A trusted project has more looked at in its own sessions, and never less.
#[test]
fn a_project_has_more_looked_at_and_never_less() {
    let stage = Stage::new(&[
        ("a.txt", "a\n"),
        (".bailey/config.toml", "[approvals]\nreview = \"before-execute\"\n"),
    ]);
    let later = ["run", "--model", "test/model", "--approve", "later", "do it"];
    let ran = |stage: &Stage| {
        let _model = stage.model_beside(runs_a_command());
        stage.ran(&later).code
    };
    configure(&stage, "");
    assert_eq!(ran(&stage), Some(0), "control: what nobody trusts is not obeyed");
    assert_eq!(stage.ran(&["trust", "add"]).code, Some(0));
    configure(&stage, "");
    assert_eq!(ran(&stage), Some(7), "its command waits for a human");
    assert_eq!(verdict(&stage, &["exec", "--", "ls"])["verdict"], "review");
    // The question stays good, whatever another project's session does meanwhile.
    let other = Stage::new(&[]);
    let elsewhere =
        stage.bailey(&["policy", "explain", "exec", "--", "ls"]).current_dir(other.project()).output();
    assert!(elsewhere.unwrap().status.success());
    assert_eq!(stage.ran(&["--json", "approvals", "list"]).lines().len(), 1);

    fs::write(stage.project().join(".bailey/config.toml"), "[approvals]\nreview = \"auto\"\n").unwrap();
    assert_eq!(stage.ran(&["trust", "add"]).code, Some(0));
    configure(&stage, "review = \"before-execute\"");
    assert_eq!(verdict(&stage, &["exec", "--", "ls"])["verdict"], "review", "it lifts nothing");
    fs::write(stage.project().join(".bailey/config.toml"), "[approvals]\ncompliance = false\n").unwrap();
    let refused = stage.ran(&["trust", "add"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("only `review`, and only so"), "{refused:?}");
}

#[test]
fn under_compliance_each_yes_of_a_terminal_has_a_reason_and_a_person() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    configure(&stage, "compliance = true");
    let model = stage.model_beside(runs_a_command());
    let never = stage.ran(&["run", "--model", "test/model", "--approve", "never", "do it"]);
    assert!(never.code != Some(0) && never.stderr.contains("compliance"), "{never:?}");
    let Some(mut terminal) = Terminal::start(&stage, &["run", "--model", "test/model", "do it"]) else {
        return;
    };
    let card = terminal.wait_for(QUESTION);
    assert!(!card.contains("[s]ession") && card.contains("[y]es and why"), "{card}");
    terminal.keys("y\n");
    terminal.wait_for("Why? The journal keeps it: ");
    terminal.keys("it is only a test\n");
    // What was changed is looked at, too, before it is applied.
    let card = terminal.wait_for(QUESTION);
    assert!(card.contains("Apply 1 file"), "{card}");
    terminal.keys("n not today\n");
    terminal.end();
    assert_eq!(fs::read_to_string(stage.project().join("a.txt")).unwrap(), "a\n");
    assert!(model.requests().last().unwrap().body.contains("exit code: 0"));
    let trail = stage.trail();
    let answered = trail.iter().find(|entry| entry["type"] == "answered").unwrap();
    assert_eq!(answered["person"]["uid"], json!(rustix::process::geteuid().as_raw()), "{answered}");
    let log = stage.ran(&["audit", "log"]).stdout;
    assert!(log.contains("it is only a test"), "{log}");
    configure(&stage, "compliance = true\nreview = \"auto\"");
    let auto = stage.ran(&["policy", "show"]);
    let check = stage.ran(&["config", "check"]);
    for ran in [auto, check] {
        assert!(ran.code == Some(2) && ran.stderr.contains("`approvals.review = \"auto\"`"), "{ran:?}");
    }
}

/// The yes to a masked file counts once: a second read is asked about, and a command does not see it.
#[test]
fn under_compliance_a_masked_file_is_revealed_for_one_read() {
    let stage = Stage::new(&[(".env", "WORD=swordfish\n")]);
    let read = |id| Reply::calls([(id, "fs_read", json!({ "path": ".env" }))]);
    let command = json!({ "command": "cat .env 2>&1 | tr a-z A-Z" });
    configure(&stage, "compliance = true");
    let model = stage.model_beside(vec![
        read("c1"),
        read("c2"),
        Reply::calls([("c3", "command_run", command)]),
        Reply::text("done"),
    ]);
    let run = ["run", "--model", "test/model", "do it"];
    let flag = stage.ran(&[&run[..], &["--reveal", ".env"]].concat());
    assert!(flag.code == Some(2) && flag.stderr.contains("`--reveal` answers in the place"), "{flag:?}");
    let Some(mut terminal) = Terminal::start(&stage, &run) else { return };
    let card = terminal.wait_for(QUESTION);
    assert!(card.contains("revealed, for this one effect"), "{card}");
    terminal.keys("y its port is needed\n");
    let card = terminal.wait_for(QUESTION);
    assert!(card.contains("revealed, for this one effect"), "it is asked about again: {card}");
    terminal.keys("n once is enough\n");
    let card = terminal.wait_for(QUESTION);
    assert!(card.contains("cat .env"), "{card}");
    terminal.keys("y it sees nothing\n");
    terminal.end();
    let body = model.requests().last().unwrap().body.clone();
    assert!(body.matches("swordfish").count() == 1 && !body.contains("SWORDFISH"), "{body}");
}

#[test]
fn under_compliance_no_flag_of_another_terminal_answers_for_longer() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    configure(&stage, "compliance = true");
    let model = stage.model_beside(runs_a_command());
    let later = ["--model", "test/model", "--approve", "later"];
    assert_eq!(stage.ran(&[&["run", "do it"], &later[..]].concat()).code, Some(7));
    drop(model);
    let id = stage.ran(&["--json", "approvals", "list"]).lines()[0]["id"].as_str().unwrap().to_owned();
    for flags in
        [&[][..], &["--session", "--reason", "x"], &["--pattern", "--reason", "x"], &["--reason", " "]]
    {
        let refused = stage.ran(&[&["approvals", "approve", &id], flags].concat());
        assert!(refused.code != Some(0), "{flags:?}: {refused:?}");
        assert_eq!(
            stage.ran(&["--json", "approvals", "show", &id]).lines()[0]["standing"],
            "open",
            "{flags:?}"
        );
    }
    let no = stage.ran(&["approvals", "reject", &id]);
    assert!(no.code != Some(0) && no.stderr.contains("--reason"), "a no needs one, too: {no:?}");
    let approved = stage.ran(&["approvals", "approve", &id, "--reason", "I looked at it"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    configure(&stage, "compliance = true");
    let _model = stage.model_beside(vec![Reply::text("done")]);
    let resumed = stage.ran(&[&["sessions", "resume", &newest(&stage)], &later[..]].concat());
    assert_ne!(resumed.code, Some(2), "{resumed:?}");
    let intents = stage.trail();
    assert_eq!(
        intents.iter().filter(|entry| entry["type"] == "intent" && entry["kind"] == "exec").count(),
        1
    );
}

#[test]
fn an_organisation_wants_compliance_of_every_home() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can own rules of an organisation");
        return;
    }
    let stage = Stage::new(&[]);
    let dir = stage.folder().join("organisation");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("10.toml"), "compliance = true\n").unwrap();
    for (path, mode) in [(stage.folder(), 0o755), (dir.as_path(), 0o755), (&dir.join("10.toml"), 0o644)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let ran = |dir: Option<&Path>, arguments: &[&str]| {
        let mut command = Command::new(controls());
        command
            .current_dir(stage.project())
            .arg("--home")
            .arg(stage.home())
            .args(arguments)
            .stdin(Stdio::null());
        command.env_remove("BAILEY_HOME").envs(dir.map(|dir| ("BAILEY_CONTROL_ORGANISATION", dir)));
        Ran::of(command.output().unwrap())
    };
    configure(&stage, "compliance = false");
    let explain = ["--json", "policy", "explain", "exec", "--", "ls"];
    let with = ran(Some(&dir), &explain).lines().pop().unwrap();
    assert_eq!(with["verdict"], "review");
    assert!(
        with["reasons"][0].as_str().unwrap().contains("organisation rule `review-before-execute`"),
        "{with}"
    );
    assert_eq!(ran(None, &explain).lines().pop().unwrap()["verdict"], "allow", "control");
    let never = ["run", "--model", "test/model", "--approve", "never", "do it"];
    assert!(ran(Some(&dir), &never).stderr.contains("compliance"));
    configure(&stage, "review = \"auto\"");
    let auto = ran(Some(&dir), &["policy", "show"]);
    assert!(
        auto.code != Some(0) && auto.stderr.contains("your organisation asks for compliance"),
        "{auto:?}"
    );
}

/// Each step is an entry, in order; the owner's program hears of a question its first digits and a kind, and
/// has no key.
#[test]
fn a_question_that_nobody_answers_is_taken_further_and_then_is_a_no() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let heard = stage.folder().join("heard");
    let program = stage.folder().join("tell");
    let script = format!("#!/bin/sh\n(echo \"$# $*\"; env) > {0}.new && mv {0}.new {0}\n", heard.display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let step =
        |after: u32, notify: &str| format!("[[approvals.escalation]]\nafter_seconds = {after}\n{notify}\n");
    let notify = format!("notify = [\"{}\", \"me\"]", program.display());
    configure(
        &stage,
        &format!("answer_seconds = 4\nreview = \"before-execute\"\n{}{}", step(1, ""), step(2, &notify)),
    );
    let _model = stage.model_beside(runs_a_command());
    let mut bailey = stage.bailey(&["run", "--model", "test/model", "do it"]);
    bailey.env("OTHER_API_KEY", "a-key-that-is-nobodys-business");
    let Some(mut terminal) = Terminal::run(&stage, &bailey) else { return };
    terminal.wait_for(QUESTION);
    terminal.wait_for("Nobody answered in time");
    terminal.keys("\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    let trail = stage.trail();
    let asked = trail.iter().find(|entry| entry["type"] == "asked").unwrap();
    let of = |name: &str| trail.iter().filter(|entry| entry["type"] == name).cloned().collect::<Vec<Value>>();
    let steps: Vec<_> =
        of("escalated").iter().map(|entry| (entry["step"].clone(), entry["told"].clone())).collect();
    assert_eq!(steps, [(json!(1), json!(false)), (json!(2), json!(true))]);
    let answers = of("answered");
    assert_eq!((&answers[0]["answer"], &answers[0]["by"]), (&json!("no"), &json!("bailey")));
    let heard = fs::read_to_string(&heard).unwrap();
    let id = &asked["approval"].as_str().unwrap()[..8];
    assert_eq!(heard.lines().next(), Some(format!("3 me {id} exec").as_str()), "{heard}");
    assert!(!heard.contains("OTHER_API_KEY") && heard.contains("PATH="), "{heard}");
    for wrong in [step(4, ""), format!("{}{}", step(2, ""), step(1, "")), step(1, "notify = [\"tell\"]")] {
        configure(&stage, &format!("answer_seconds = 4\n{wrong}"));
        let refused = stage.ran(&["config", "show"]);
        assert!(refused.code == Some(2), "{wrong}: {refused:?}");
    }
}
