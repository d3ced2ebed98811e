//! `bailey run` where a daemon runs: it is the daemon's session, comes to the same, and outlives its terminal
//! and the daemon.

use crate::{
    daemon::{Daemon, PATIENCE, open},
    stage::{Ran, Stage},
    terminal::Terminal,
};
use bailey_testkit::{Gate, Message, Reply};
use serde_json::{Value, json};
use std::{
    fs,
    io::Write as _,
    os::unix::net::UnixStream,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

const RUN: [&str; 4] = ["run", "--model", "test/model", "do it"];

const UNASKED: &str = "[auto_apply]\ntest = \"grep -q two a.txt\"\nfiles = 2\nlines = 20\n";

/// A task, and what it comes to.
#[derive(Clone)]
struct Case {
    what: &'static str,
    script: Vec<Reply>,
    config: &'static str,
    options: &'static [&'static str],
    code: i32,
    /// What `a.txt` holds then.
    content: &'static str,
    says: &'static str,
}

fn edit() -> Message {
    Message::calls([("c1", "fs_edit", json!({ "path": "a.txt", "old": "one", "new": "two" }))])
}

/// How often the daemon of a home opened a session.
fn opened(stage: &Stage) -> usize {
    fs::read_to_string(stage.home().join("daemon/log"))
        .unwrap_or_default()
        .matches("\"what\":\"opened\"")
        .count()
}

/// It was told, and there is nothing to go on with.
#[test]
fn a_task_that_failed_is_begun_again_by_nobody() {
    let stage = Stage::new(&[]);
    let refused = Reply::error(401, "authentication_error", "no such key");
    let _model = stage.model(vec![refused]);
    let daemon = Daemon::with(&stage, "BAILEY_CONTROL_IDLE", "700");
    let ran = stage.ran(&RUN);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    // A session that is to be begun again has its record until another process of it has ended in order.
    let has_record = || {
        let mut names = fs::read_dir(stage.home().join("daemon")).unwrap().map(|it| it.unwrap().file_name());
        names.any(|name| name.to_string_lossy().ends_with(".json"))
    };
    let log = || fs::read_to_string(stage.home().join("daemon/log")).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while has_record() {
        assert!(Instant::now() < deadline, "its process did not end: {}", log());
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(opened(&stage), 1, "{}", log());
    drop(daemon);
}

/// What it said, without what no two runs have in common.
fn story(ran: &Ran) -> Vec<String> {
    let is_same = |line: &&str| {
        let line = line.trim_start();
        !line.is_empty()
            && !["bailey ·", "spent", "next", "bailey sessions", "waits for", "paused", "the budget", "─"]
                .iter()
                .any(|it| line.starts_with(it))
    };
    // How long a call took stands at its line's end.
    let timeless = |line: &str| line.rsplit_once(" · ").map_or(line, |(line, _)| line).to_owned();
    ran.stdout.lines().filter(is_same).map(timeless).collect()
}

#[test]
fn a_task_beneath_the_daemon_comes_to_what_it_comes_to_alone() {
    let folder = tempfile::Builder::new().prefix("bailey-test-").tempdir_in("/var/tmp").unwrap();
    let file = folder.path().canonicalize().unwrap().join("notes.txt");
    fs::write(&file, "what the notes say\n").unwrap();
    let read = || {
        let call = Reply::calls([("c1", "fs_read", json!({ "path": file.to_str().unwrap() }))]);
        vec![call, Reply::text("so be it")]
    };
    let change = || vec![Reply::Message(edit()), Reply::text("it is done")];
    let refused = Reply::Error { status: 401, headers: Vec::new(), body: "{}".into() };
    let unwilling = Message { stop: Some("refusal".into()), ..Message::text("That I") };
    let unwilling = Reply::Message(unwilling);
    let plain =
        Case { what: "", script: change(), config: "", options: &[], code: 0, content: "one\n", says: "" };
    let cases = [
        Case { what: "kept", says: "nothing was applied", ..plain.clone() },
        Case {
            what: "applied",
            options: &["--apply"],
            content: "two\n",
            says: "applied: a.txt",
            ..plain.clone()
        },
        Case { what: "unasked", config: UNASKED, content: "two\n", says: "passed: a.txt", ..plain.clone() },
        Case {
            what: "refused by the provider",
            script: vec![Reply::Message(edit()), unwilling],
            code: 4,
            ..plain.clone()
        },
        Case { what: "no model", script: vec![refused], code: 4, ..plain.clone() },
        Case { what: "nobody is there", script: read(), says: "refused", ..plain.clone() },
        Case {
            what: "never",
            script: read(),
            options: &["--approve", "never"],
            says: "refused",
            ..plain.clone()
        },
        Case {
            what: "later",
            script: read(),
            options: &["--approve", "later"],
            code: 7,
            says: "waits for",
            ..plain.clone()
        },
        Case { what: "out of tokens", options: &["--tokens", "1"], code: 7, ..plain },
    ];
    for Case { what, script, config, options, code, content, says } in cases {
        let told = [false, true].map(|is_beneath| {
            let stage = Stage::new(&[("a.txt", "one\n")]);
            fs::create_dir_all(stage.home()).unwrap();
            fs::write(stage.home().join("config.toml"), config).unwrap();
            let _model = stage.model_beside(script.clone());
            let daemon = is_beneath.then(|| Daemon::start(&stage));
            let ran = stage.ran(&[&RUN[..3], options, &RUN[3..]].concat());
            assert_eq!((ran.code, stage.read("a.txt")), (Some(code), content.to_owned()), "{what}: {ran:?}");
            assert!(ran.stdout.contains(says), "{what}: {ran:?}");
            assert_eq!(opened(&stage), usize::from(is_beneath), "{what}");
            // What it did can be looked at at once: the session's process is gone.
            let sessions = stage.ran(&["--json", "sessions", "list", "--all"]).lines();
            let diff = stage.ran(&["sessions", "diff", sessions[0]["id"].as_str().unwrap()]);
            assert!(diff.code == Some(0) || code == 4, "{what}: {diff:?}");
            drop(daemon);
            let mut told = story(&ran);
            told.sort();
            told
        });
        let file = file.display().to_string();
        let [alone, beneath] = told.map(|told| told.join("\n").replace(&file, "FILE"));
        assert_eq!(alone, beneath, "{what}");
    }
}

#[test]
fn a_task_from_standard_input_with_events_as_json_is_the_daemons_too() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let model = stage.model(vec![Reply::Message(edit()), Reply::text("it is done")]);
    let _daemon = Daemon::start(&stage);
    let mut run = stage.bailey(&["--json", "run", "--model", "test/model", "--apply", "-"]);
    let task = stage.folder().join("task");
    fs::write(&task, "change a.txt\n").unwrap();
    let ran = Ran::of(run.stdin(fs::File::open(task).unwrap()).output().unwrap());
    assert_eq!((ran.code, stage.read("a.txt").as_str(), opened(&stage)), (Some(0), "two\n", 1), "{ran:?}");
    assert!(model.requests()[0].body.contains("change a.txt"));
    let kinds: Vec<String> = ran.lines().iter().map(|it| it["type"].as_str().unwrap().to_owned()).collect();
    let at =
        |kind: &str| kinds.iter().position(|it| it == kind).unwrap_or_else(|| panic!("{kind}: {kinds:?}"));
    assert!(at("accepted") < at("end") && at("end") < at("diff") && at("diff") < at("merged"), "{kinds:?}");
    // The control: by itself where that is wanted.
    let _model = stage.model(vec![Reply::text("hello")]);
    assert_eq!(stage.ran(&["run", "--alone", "--model", "test/model", "greet"]).code, Some(0));
    assert_eq!(opened(&stage), 1);
}

#[test]
fn what_ends_with_a_run_beneath_the_daemon_is_told() {
    let stage = Stage::new(&[]);
    let runs = json!({ "command": "exec sleep 600", "background": true });
    let _model = stage.model(vec![Reply::calls([("c1", "command_run", runs)]), Reply::text("it runs")]);
    let _daemon = Daemon::start(&stage);
    let ran = stage.ran(&["run", "--model", "test/model", "serve"]);
    let told = "background process 1 ends with this run: exec sleep 600";
    assert!(ran.code == Some(0) && ran.stderr.contains(told), "{ran:?}");
    assert_eq!(stage.ran(&["--json", "ps"]).stdout, "");
}

#[test]
fn a_task_whose_daemon_is_killed_goes_on_with_the_next_and_is_applied_once() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = Gate::default();
    let never = Reply::Held(gate.clone(), Message::text("never said"));
    let model = stage.model(vec![Reply::Message(edit()), never, Reply::text("finished after all")]);
    let daemon = Daemon::start(&stage);
    let run = stage
        .bailey(&[&RUN[..3], &["--apply"], &RUN[3..]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    model.wait_for(2);
    daemon.kill();
    gate.open();
    let _next = Daemon::start(&stage);
    let ran = Ran::of(run.wait_with_output().unwrap());
    assert!(ran.stderr.contains("the connection to the session was lost"), "{ran:?}");
    assert!(ran.stdout.contains("finished after all") && !ran.stdout.contains("never said"), "{ran:?}");
    assert_eq!((ran.code, stage.read("a.txt").as_str()), (Some(0), "two\n"), "{ran:?}");
    let trail = stage.trail();
    let count = |kind: &str| trail.iter().filter(|it| it["type"] == kind).count();
    assert_eq!((count("accepted"), count("turn_ended")), (1, 1));
    std::mem::forget(daemon);
}

#[test]
fn a_task_outlives_its_terminal_and_asks_and_applies_at_one() {
    let stage = Stage::new(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    let gate = Gate::default();
    let model = stage.model(vec![Reply::Held(gate.clone(), edit()), Reply::text("it is done")]);
    let daemon = Daemon::start(&stage);
    let Some(terminal) = Terminal::start(&stage, &RUN) else { return };
    model.wait_for(1);
    daemon.wait("a turn", |it| it["working"] == true && it["clients"] == 1);
    terminal.close();
    daemon.wait("a turn without a terminal", |it| it["working"] == true && it["clients"] == 0);
    gate.open();
    daemon.wait("the turn's end", |it| it["working"] == false);
    assert_eq!(model.requests().len(), 2);

    // At a terminal the changes are asked about, hunk by hunk where somebody wants that.
    let both = json!({ "command": "echo two >>a.txt; echo two >>b.txt" });
    let calls = Reply::calls([("c1", "command_run", both)]);
    let _model = stage.model(vec![calls, Reply::text("both are done")]);
    let mut terminal = Terminal::start(&stage, &RUN).unwrap();
    terminal.wait_for_in_turn(&["both are done", "Apply these changes? [y/N/pick] "]);
    terminal.keys("pick\n");
    terminal.wait_for_in_turn(&["a.txt", "Apply this hunk of "]);
    terminal.keys("n\n");
    terminal.wait_for_in_turn(&["b.txt", "Apply this hunk of "]);
    terminal.keys("y\n");
    // The story is told once, at the end.
    terminal.wait_for_in_turn(&["applied: b.txt", "asked", "do it", "next"]);
    let (code, screen) = terminal.end();
    assert_eq!((code, screen.matches("  asked ").count()), (0, 1), "{screen}");
    assert_eq!((stage.read("a.txt"), stage.read("b.txt")), ("one\n".into(), "one\ntwo\n".into()));

    // Ctrl-C ends the turn, as it does without a daemon.
    let gate = Gate::default();
    let model = stage.model(vec![Reply::Held(gate.clone(), Message::text("never said"))]);
    let mut terminal = Terminal::start(&stage, &RUN).unwrap();
    model.wait_for(1);
    terminal.keys("\u{3}");
    let (code, screen) = terminal.end();
    assert!(code == 130 && screen.contains("cancelled"), "{code}: {screen}");
    let deadline = Instant::now() + PATIENCE;
    let is_working = |it: &Value| it["working"] == true;
    while daemon.status()["sessions"].as_array().unwrap().iter().any(is_working) {
        assert!(Instant::now() < deadline, "the turn goes on");
        thread::sleep(std::time::Duration::from_millis(20));
    }
    gate.open();
}

/// What goes on after a late yes began no turn of its own, so that a kill in its middle left it at that, for
/// good.
#[test]
fn what_goes_on_after_a_late_yes_is_cut_off_by_no_kill_and_by_whoever_stops_it() {
    for is_stopped in [false, true] {
        let stage = Stage::new(&[("a.txt", "one\n")]);
        let folder = tempfile::Builder::new().prefix("bailey-test-").tempdir_in("/var/tmp").unwrap();
        let file = folder.path().canonicalize().unwrap().join("notes.txt");
        fs::write(&file, "what the notes say\n").unwrap();
        let read = Reply::calls([("c1", "fs_read", json!({ "path": file.to_str().unwrap() }))]);
        let gate = Gate::default();
        let held = Reply::Held(gate.clone(), Message::text("never said"));
        let model = stage.model(vec![read, Reply::text("it waits"), held, Reply::text("done after all")]);
        let ran = stage.ran(&["run", "--model", "test/model", "--approve", "later", "read them"]);
        assert_eq!(model.requests().len(), 2, "{ran:?}");
        let asked = stage.ran(&["--json", "approvals", "list"]).lines().remove(0);
        assert_eq!(stage.ran(&["approvals", "approve", asked["id"].as_str().unwrap()]).code, Some(0));
        let session = asked["session"].as_str().unwrap();
        let daemon = Daemon::start(&stage);
        open(&stage, &["--resume", session]);
        model.wait_for(3);
        if is_stopped {
            let socket = stage.home().join("daemon").join(session);
            let mut stream = UnixStream::connect(socket).unwrap();
            writeln!(stream, "{}", json!({ "op": "cancel" })).unwrap();
            daemon.wait("its end", |it| it["working"] == false);
        }
        daemon.kill();
        gate.open();
        let next = Daemon::start(&stage);
        open(&stage, &["--resume", session]);
        if is_stopped {
            // The control.
            thread::sleep(std::time::Duration::from_secs(2));
            assert_eq!(model.requests().len(), 3, "nobody said that it goes on");
        } else {
            model.wait_for(4);
            next.wait("its end", |it| it["working"] == false);
            assert!(stage.ran(&["sessions", "show", session]).stdout.contains("done after all"));
        }
        std::mem::forget(daemon);
    }
}
