//! How a run ends when its terminal goes, somebody asks it to end, or nobody reads what it prints.

use crate::{stage::Stage, terminal::Terminal};
use bailey_testkit::Reply;
use serde_json::json;
use std::{
    collections::BTreeSet,
    fs,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(20);

/// A call that runs until it is ended; the marker is in its command line.
fn long(marker: &str) -> Reply {
    Reply::calls([("c1", "command_run", json!({ "command": format!("echo begun; exec sleep {marker}") }))])
}

/// Whether a process with this word in its command line lives.
fn lives(marker: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.into_iter().any(|line| {
        let line = String::from_utf8_lossy(&line);
        line.split('\0').next() == Some("sleep") && line.contains(marker)
    })
}

fn gone(what: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if what() {
            return true;
        }
        thread::sleep(Duration::from_millis(50));
    }
    false
}

fn kill(signal: &str, process: u32) {
    assert!(Command::new("kill").args([signal, &process.to_string()]).status().unwrap().success());
}

/// The chain holds, the work is kept, and the call has an outcome.
fn nothing_is_lost(stage: &Stage) {
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));
    let trail = stage.trail();
    let effects = |kind: &str| {
        let of = trail.iter().filter(|entry| entry["type"] == kind);
        of.map(|entry| entry["effect"].as_str().unwrap().to_owned()).collect::<BTreeSet<String>>()
    };
    assert_eq!(effects("intent"), effects("outcome"), "{trail:?}");
    let session =
        stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
    let diff = stage.ran(&["sessions", "diff", &session]);
    assert!(diff.stdout.contains("+two"), "{diff:?}");
}

fn worked(marker: &str) -> Vec<Reply> {
    let edit = Reply::calls([("c0", "fs_edit", json!({ "path": "a.txt", "old": "one", "new": "two" }))]);
    vec![edit, long(marker)]
}

#[test]
fn a_terminal_that_is_closed_leaves_no_process_and_loses_nothing() {
    for (name, arguments) in [
        ("98701", ["run", "--model", "test/model", "do it"].as_slice()),
        ("98702", &["chat", "--model", "test/model"]),
    ] {
        let stage = Stage::new(&[("a.txt", "one\n")]);
        let _model = stage.model(worked(name));
        let Some(mut terminal) = Terminal::start(&stage, arguments) else { return };
        if arguments[0] == "chat" {
            terminal.wait_for("› ");
            terminal.keys("do it\r");
        }
        terminal.wait_for(": begun");
        assert!(lives(name), "the control: it runs");
        let bailey = terminal.process();
        terminal.close();
        assert!(gone(|| !lives(name)), "{name}");
        assert!(gone(|| !fs::exists(format!("/proc/{bailey}")).unwrap()), "{name}");
        nothing_is_lost(&stage);
    }
}

#[test]
fn who_is_asked_to_end_ends_cleanly() {
    for (name, arguments) in [
        ("98703", ["run", "--model", "test/model", "do it"].as_slice()),
        ("98704", &["chat", "--model", "test/model"]),
    ] {
        let stage = Stage::new(&[("a.txt", "one\n")]);
        let _model = stage.model(worked(name));
        let Some(mut terminal) = Terminal::start(&stage, arguments) else { return };
        if arguments[0] == "chat" {
            terminal.wait_for("› ");
            terminal.keys("do it\r");
        }
        terminal.wait_for(": begun");
        kill("-TERM", terminal.process());
        let (code, screen) = terminal.end();
        assert_eq!(code, 143, "{screen}");
        assert!(gone(|| !lives(name)), "{name}");
        nothing_is_lost(&stage);
    }
}

#[test]
fn ctrl_c_is_heard_when_nobody_reads_what_is_printed() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let _model = stage.model(vec![Reply::Huge(8 << 20)]);
    let mut command = stage.bailey(&["run", "--model", "test/model", "--approve", "never", "do it"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // The model talks on, and after a while the pipe is full.
    thread::sleep(Duration::from_secs(3));
    assert!(child.try_wait().unwrap().is_none(), "it waits for a reader");
    kill("-INT", child.id());
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                child.kill().unwrap();
                panic!("it does not hear Ctrl-C");
            }
            None => thread::sleep(Duration::from_millis(50)),
        }
    };
    assert_eq!(status.code(), Some(130));
}

/// Three tasks at once, one of them stopped by a signal so that it cannot end by itself, and one that waits
/// for an answer.
#[test]
fn an_emergency_stop_ends_everything_at_once_and_lasts_until_it_is_released() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let script = |marker: &str| [worked(marker), vec![Reply::text("done")]].concat();
    let names = ["98731", "98732"];
    let mut terminals = Vec::new();
    let mut models = Vec::new();
    for name in names {
        models.push(stage.model(script(name)));
        let Some(mut terminal) = Terminal::start(&stage, &["run", "--model", "test/model", "do it"]) else {
            return;
        };
        terminal.wait_for(": begun");
        terminals.push(terminal);
    }
    kill("-STOP", terminals[1].process());
    assert!(names.iter().all(|name| lives(name)), "the control: they run");
    let begin = Instant::now();
    let stopped = stage.ran(&["--json", "estop", "--reason", "a test"]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    let report = &stopped.lines()[0];
    assert_eq!((&report["barred"], &report["ended"]), (&json!(true), &json!(2)), "{report}");
    assert!(gone(|| !names.iter().any(|name| lives(name))));
    println!(
        "everything was gone after {:?}, by its own clock {} ms",
        begin.elapsed(),
        report["milliseconds"]
    );
    // `script` stops itself with the program that was stopped.
    terminals.pop().unwrap().close();
    terminals.pop().unwrap().end();
    // Nothing begins, whatever is asked for, and whoever releases must sit at a terminal.
    let session = crate::workspace::newest(&stage);
    let before = stage.trail().len();
    for barred in [
        ["run", "--model", "test/model", "more"].as_slice(),
        &["sessions", "resume", &session, "--model", "test/model", "more"],
        &["sessions", "apply", &session, "--approve", "never"],
        &["sandbox", "run", "--", "true"],
        &["models"],
    ] {
        let ran = stage.ran(barred);
        assert!(ran.code != Some(0), "{barred:?}: {ran:?}");
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("bailey estop --release"), "{barred:?}: {ran:?}");
    }
    let is_effect = |entry: &&serde_json::Value| entry["type"] == "intent";
    assert_eq!(stage.trail()[before..].iter().filter(is_effect).count(), 0);
    let mut alone = Command::new("setsid");
    let release = stage.bailey(&["estop", "--release"]);
    alone.arg("--wait").arg(release.get_program()).args(release.get_args()).stdin(Stdio::null());
    let refused = alone.current_dir(stage.project()).output().unwrap();
    assert!(!refused.status.success(), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("only a person at a terminal"), "{refused:?}");
    let mut terminal = Terminal::start(&stage, &["estop", "--release"]).unwrap();
    terminal.wait_for("[y/N]");
    terminal.keys("y\n");
    assert_eq!(terminal.end().0, 0);
    let _model = stage.model(vec![Reply::text("I go on")]);
    let resumed = stage.ran(&["sessions", "resume", &session, "--model", "test/model", "--approve", "never"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    nothing_is_lost(&stage);
}
