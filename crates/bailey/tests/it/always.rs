//! A day with an agent that is always there: from a fresh home, the same errand from a phone, from a browser
//! and from a terminal; and in the middle of each, all of it is killed at once.

use crate::{
    boot::Boot,
    daemon::{end, pid},
    page::{browse, default_model},
    schedules::wait,
    stage::Stage,
    telegram::{ANN, channel, pair},
    terminal::Terminal,
};
use bailey_testkit::{Call, Gate, Message, ModelServer, Reply, Request};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex},
};

const ERRAND: &str = "list the files and make the tests pass";
const DONE: &str = "The tests pass now.";

/// A model that looks, tries, asks for what lies outside of the project, repairs and tries again; the gate
/// holds its third reply.
fn repair(request: &Request, notes: &Path, gate: &Gate) -> Reply {
    let call = |name: &str, arguments: Value| Reply::calls([(name, name, arguments)]);
    let said = |text: &str, name: &str, arguments: Value| {
        let call = Call { id: name.into(), name: name.into(), arguments };
        Reply::Message(Message { text: text.into(), calls: vec![call], ..Message::default() })
    };
    match request.body.matches("\"tool_result\"").count() {
        0 => said("I look first.", "fs_list", json!({ "path": "." })),
        1 => call("command_run", json!({ "command": "sh test.sh" })),
        2 => match said("They fail.", "fs_read", json!({ "path": notes })) {
            Reply::Message(message) => Reply::Held(gate.clone(), message),
            other => other,
        },
        3 => call("fs_edit", json!({ "path": "add.sh", "old": "-", "new": "+" })),
        4 => call("command_run", json!({ "command": "sh test.sh" })),
        _ => Reply::text(DONE),
    }
}

/// What looks after the daemon, and the daemon that it looks after now.
struct Watch {
    boot: Boot,
}

impl Watch {
    /// Kills the daemon, and everything with it; who comes next was begun by nobody here.
    fn kill(&mut self, stage: &Stage) {
        let status = stage.ran(&["--json", "status"]).lines().remove(0);
        end(pid(&status), "-KILL");
        self.boot.wait_for("it is begun again");
        self.boot.wait_for("the daemon is up");
    }
}

#[test]
fn the_same_errand_from_everywhere_comes_through_a_kill_in_its_middle() {
    let stage = Stage::new(&[
        ("add.sh", "echo $(($1 - $2))\n"),
        ("test.sh", "[ \"$(sh add.sh 2 3)\" = 5 ] && echo passed || { echo failed; exit 1; }\n"),
    ]);
    let folder = tempfile::Builder::new().prefix("bailey-test-").tempdir_in("/var/tmp").unwrap();
    let notes = folder.path().canonicalize().unwrap().join("notes.txt");
    fs::write(&notes, "sums are written with a plus\n").unwrap();
    let gate = Arc::new(Mutex::new(Gate::default()));
    let model = {
        let (notes, gate) = (notes.clone(), gate.clone());
        ModelServer::by(move |request| repair(request, &notes, &gate.lock().unwrap()))
    };
    // A reply that was held is not asked for twice: the next errand has a gate of its own.
    let next = || *gate.lock().unwrap() = Gate::default();
    let open = || gate.lock().unwrap().open();

    let begun = stage.ran(&["init"]);
    assert_eq!(begun.code, Some(0), "{begun:?}");
    stage.provider(&model);
    default_model(&stage);
    let telegram = channel(&stage);
    let mut watch = Watch { boot: Boot::start(&stage, &[]) };
    watch.boot.wait_for("the daemon is up");
    pair(&stage, &telegram, ANN, "Ann", "owner");

    // From a phone. It is killed while a question waits: the button that was shown before answers it.
    open();
    telegram.says(ANN, "Ann", ANN, ERRAND);
    let (card, _) = telegram
        .wait(ANN, "a question", |shown| shown.text.contains("notes.txt") && !shown.buttons.is_empty());
    watch.kill(&stage);
    telegram.taps(ANN, "Ann", ANN, card, "Yes, once");
    telegram.wait_for(ANN, DONE);
    telegram.wait(ANN, "the card's end", |shown| shown.text.contains("✔ yes, by Ann"));
    telegram.check();

    // From a browser. It is killed while the model thinks: the page comes back by itself.
    next();
    let before = model.requests().len();
    if let Some(mut browser) = browse(&stage, "errand.mjs") {
        let mut browser =
            browser.env("ERRAND", ERRAND).env("DONE", DONE).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(browser.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "it works");
        model.wait_for(before + 3);
        watch.kill(&stage);
        open();
        lines.by_ref().for_each(|line| println!("{}", line.unwrap()));
        assert!(browser.wait().unwrap().success());
    }

    // From a terminal.
    next();
    let before = model.requests().len();
    if let Some(mut terminal) = Terminal::start(&stage, &["chat"]) {
        terminal.wait_for("› ");
        terminal.keys(&format!("{ERRAND}\r"));
        model.wait_for(before + 3);
        watch.kill(&stage);
        open();
        // What was typed before the question stands there whole is thrown away.
        terminal.wait_for_in_turn(&["notes.txt", "[n]o or [d]etails: "]);
        terminal.keys("y\r");
        terminal.wait_for_in_turn(&[DONE, "done in"]);
        terminal.keys("/apply\r");
        terminal.wait_for("applied: add.sh");
        terminal.keys("\u{4}");
        assert_eq!(terminal.end().0, 0);
        assert_eq!(stage.read("add.sh"), "echo $(($1 + $2))\n");
    }

    // Each was done once, each question answered by whom it says, and the journal is whole.
    let trail = stage.trail();
    let count = |is: &dyn Fn(&Value) -> bool| trail.iter().filter(|it| is(it)).count();
    let errands = count(&|it| it["type"] == "accepted");
    assert!(errands >= 1, "{trail:#?}");
    assert_eq!(count(&|it| it["type"] == "intent" && it["kind"] == "change"), errands);
    assert_eq!(count(&|it| it["type"] == "intent" && it["kind"] == "exec"), 2 * errands);
    assert_eq!(count(&|it| it["type"] == "answered" && it["answer"] == "yes"), errands);
    let verified = stage.ran(&["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    wait("rest", || {
        let status = stage.ran(&["--json", "status"]).lines().remove(0);
        status["sessions"].as_array().unwrap().iter().all(|it| it["working"] == false)
    });
}
