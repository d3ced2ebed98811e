//! What takes over a second is shown with what is waited for, and a run ends with a story that fits one
//! screen.

use crate::{
    stage::{Ran, Stage},
    terminal::Terminal,
};
use bailey_testkit::{Gate, Message, Reply};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
};

/// A stage whose only model is a server that takes connections and says nothing.
fn silent() -> (Stage, TcpListener) {
    let stage = Stage::new(&[]);
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    fs::create_dir_all(stage.home()).unwrap();
    let config = format!(
        "model = \"quiet/m\"\n[providers.quiet]\nwire = \"anthropic\"\nbase_url = \"http://{}\"\n",
        server.local_addr().unwrap()
    );
    fs::write(stage.home().join("config.toml"), config).unwrap();
    (stage, server)
}

#[test]
fn a_silent_provider_is_named_while_it_is_asked() {
    let (stage, _server) = silent();
    let Some(mut models) = Terminal::start(&stage, &["models"]) else { return };
    let mut dumb = stage.bailey(&["models"]);
    let mut dumb = Terminal::run(&stage, dumb.env("TERM", "dumb")).unwrap();
    let mut doctor = Terminal::start(&stage, &["doctor"]).unwrap();
    let script = Terminal::start(&stage, &["--json", "models"]).unwrap();
    let pipe = stage.bailey(&["models"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();

    models.wait_for("… asking quiet 1 s");
    models.wait_for("… asking quiet 3 s");
    doctor.wait_for("… asking the model providers 1 s");
    dumb.wait_for("… asking quiet");
    let (code, screen) = models.end();
    let told = screen.rsplit_once("\r\u{1b}[K").unwrap().1;
    assert!(code == 4 && told.contains("did not answer in 5 s") && !told.contains("asking"), "{screen:?}");
    let (_, screen) = doctor.end();
    assert!(screen.contains("`quiet`") && screen.contains("did not answer in 5 s"), "{screen}");
    let (_, screen) = dumb.end();
    assert!(screen.matches("asking quiet").count() == 1 && !screen.contains('\u{1b}'), "{screen:?}");
    // Controls: neither a script nor a pipe is told.
    let (_, screen) = script.end();
    assert!(screen.contains("did not answer") && !screen.contains("asking"), "{screen:?}");
    let ran = Ran::of(pipe.wait_with_output().unwrap());
    assert!(ran.stdout.contains("did not answer") && ran.stderr.is_empty(), "{ran:?}");
}

/// Who writes to the journal for some seconds, as a long session's removal does; none where there is no
/// sqlite.
fn held(journal: &Path) -> Option<Child> {
    let script = "import sqlite3, sys, time; c = sqlite3.connect(sys.argv[1], isolation_level=None); \
                  c.execute('BEGIN IMMEDIATE'); print('held', flush=True); time.sleep(3); c.execute('ROLLBACK')";
    let mut python = Command::new("python3");
    python.args(["-c", script]).arg(journal).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut python = python.spawn().ok()?;
    let mut line = String::new();
    BufReader::new(python.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (line == "held\n").then_some(python)
}

#[test]
fn a_rebuild_that_has_to_wait_says_so() {
    let stage = Stage::new(&[]);
    assert_eq!(stage.ran(&["sandbox", "run", "--", "true"]).code, Some(0));
    let Some(mut holder) = held(&stage.home().join("journal.db")) else {
        println!("SKIPPED: no python3 with sqlite3 to hold the journal with");
        return;
    };
    let Some(mut terminal) = Terminal::start(&stage, &["audit", "rebuild"]) else { return };
    terminal.wait_for("… verifying the chain, and making anew what follows from it 1 s");
    let (code, screen) = terminal.end();
    assert!(code == 0 && screen.contains("rebuilt:"), "{screen}");
    holder.wait().unwrap();
    // Control: what is quick says nothing.
    for command in ["rebuild", "verify"] {
        let (code, screen) = Terminal::start(&stage, &["audit", command]).unwrap().end();
        assert!(code == 0 && !screen.contains('…'), "{screen}");
    }
}

#[test]
fn a_model_that_thinks_is_shown_with_its_seconds() {
    let stage = Stage::new(&[]);
    let gate = Gate::default();
    let _model = stage.model(vec![Reply::Held(gate.clone(), Message::text("a thought"))]);
    let run = ["run", "--model", "test/model", "--approve", "never", "think"];
    let Some(mut terminal) = Terminal::start(&stage, &run) else { return };
    terminal.wait_for("… thinking 1 s");
    terminal.wait_for("… thinking 2 s");
    gate.open();
    terminal.wait_for("a thought");
    assert_eq!(terminal.end().0, 0);
}

/// The rows from the story's rule on.
fn story(screen: &str) -> Vec<String> {
    let screen = screen.replace('\r', "");
    let from = screen.rfind("────────").unwrap();
    let from = screen[..from].rfind('\n').unwrap() + 1;
    screen[from..].trim_end().lines().map(str::to_owned).collect()
}

/// A busy reply: reads that are refused, commands, new files.
fn busy() -> Reply {
    let mut all = Message::text("I begin.");
    let mut call = |id: String, tool: &str, arguments: Value| {
        all.calls.extend(Message::calls([(id.as_str(), tool, arguments)]).calls);
    };
    for n in 0..30 {
        let path = format!("/var/tmp/somewhere/outside/of/the/project/whatever/it/may/hold/file-{n}.txt");
        call(format!("r{n}"), "fs_read", json!({ "path": path }));
    }
    for n in 0..8 {
        call(format!("c{n}"), "command_run", json!({ "command": format!("echo {n} && false") }));
        call(format!("w{n}"), "fs_write", json!({ "path": format!("new-{n}.txt"), "content": "new\n" }));
    }
    Reply::Message(all)
}

#[test]
fn the_story_of_a_busy_run_fits_one_screen() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let _model = stage.model(vec![busy(), Reply::text("That is all.")]);
    let task = "make the tests pass, and say at some length what was wrong, why nobody saw it, and what to do about it";
    let mut run = stage.bailey(&["run", "--model", "test/model", "--approve", "never", task]);
    let Some(terminal) = Terminal::run(&stage, run.env("NO_COLOR", "1")) else { return };
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    let rows = story(&screen);
    // The shell's prompt wants a row, too.
    assert!(rows.len() < 24, "{} rows: {rows:#?}", rows.len());
    assert!(rows.iter().all(|row| row.chars().count() <= 80), "{rows:#?}");
    for (part, says) in [
        ("asked", "make the tests pass"),
        ("done", "8 command.run"),
        ("refused", "/var/tmp/somewhere"),
        ("changed", "new-0.txt  +1 −0"),
        ("spent", "tokens read"),
        ("next", "bailey sessions diff|apply|discard"),
    ] {
        let row = rows.iter().find(|row| row.trim_start().starts_with(part));
        assert!(row.is_some_and(|row| row.contains(says)), "{part}: {rows:#?}");
    }
    assert!(rows.iter().any(|row| row.contains("and 26 more")), "the refused are counted: {rows:#?}");
}

#[test]
fn the_story_of_a_long_conversation_fits_one_screen() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let answers = (0..12).map(|n| Reply::text(&format!("answer {n}")));
    let _model = stage.model(std::iter::once(busy()).chain(answers).collect());
    let mut child = stage
        .bailey(&["chat", "--model", "test/model", "--approve", "never"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines: String = (0..12).map(|n| format!("message {n}\n")).collect();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    let rows = story(&ran.stdout);
    assert!(rows.len() < 24, "{} rows: {rows:#?}", rows.len());
    assert!(rows[1].contains("asked") && rows.last().unwrap().contains("bailey sessions"), "{rows:#?}");
}

/// Output comes in pieces that end anywhere, and a part that may begin a key is held back; a line is one
/// line.
#[test]
fn the_output_of_a_command_is_shown_line_by_line() {
    let stage = Stage::new(&[]);
    let command =
        "printf Downloading; sleep 0.4; printf ' 10%%'; sleep 0.4; printf ' done\\nnext'; sleep 0.3";
    let script =
        vec![Reply::calls([("c1", "command_run", json!({ "command": command }))]), Reply::text("done")];
    let _server = stage.model(script);
    let ran = Ran::of(stage.bailey(&["run", "-v", "--model", "test/model", "do it"]).output().unwrap());
    let shown = format!("{}{}", ran.stdout, ran.stderr);
    assert!(shown.contains("    Downloading 10% done\n    next\n"), "{shown}");
}
