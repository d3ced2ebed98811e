//! What a command makes of a text that was old when it read it: as long as something of the session lives,
//! what begins beside it may be shown the project as it was. Its change is no change of what the user wrote
//! meanwhile.

use super::{newest, sessions};
use crate::stage::{Ran, Stage};
use bailey_testkit::{Gate, Message, ModelServer, Reply};
use serde_json::{Value, json};
use std::{
    fs,
    path::PathBuf,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

const OLD: &str = "1\n2\n3\n";
const USER: &str = "one\n2\n3\n";
const SESSION: &str = "1\n2\nthree\n";
const EDIT: &str = "sed -i s/^3$/three/ a.txt";

/// A task that runs, and the files by which the test and its commands wait for each other.
struct Running {
    stage: Stage,
    child: Child,
    model: ModelServer,
}

impl Running {
    fn new(script: Vec<Reply>) -> Self {
        let stage = Stage::new(&[("a.txt", OLD)]);
        let model = stage.model(script);
        let task = ["--json", "run", "--model", "test/model", "--approve", "never", "do it"];
        let child = stage.bailey(&task).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Self { stage, child, model }
    }

    /// Where the session's commands see `/tmp`.
    fn tmp(&self) -> Option<PathBuf> {
        let sessions = fs::read_dir(self.stage.home().join("sessions")).ok()?;
        Some(sessions.flatten().next()?.path().join("tmp"))
    }

    fn wait(&self, name: &str) {
        until(|| self.tmp().is_some_and(|tmp| tmp.join(name).exists()));
    }

    fn say(&self, name: &str) {
        fs::write(self.tmp().unwrap().join(name), "").unwrap();
    }

    /// Saves the file as most editors do: another one takes its name.
    fn edit(&self) {
        self.stage.write("a.new", USER);
        let project = self.stage.project();
        fs::rename(project.join("a.new"), project.join("a.txt")).unwrap();
    }

    /// The task ends; its change is of the old text, so it is named, and the user's line stays.
    fn keeps_what_the_user_wrote(self) {
        let Self { stage, child, model: _model } = self;
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let session = newest(&stage);
        let inside = stage.home().join("sessions").join(&session).join("upper/a.txt");
        assert_eq!(fs::read_to_string(inside).unwrap(), SESSION, "the control: it was shown the old text");
        let applied = sessions(&stage, "apply", &session);
        assert_eq!(stage.read("a.txt"), USER, "{applied:?}");
        let diff = sessions(&stage, "diff", &session);
        assert!(diff.stdout.contains("a.txt stays in the session: the project's file changed"), "{diff:?}");
    }
}

fn until(what: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !what() {
        assert!(Instant::now() < deadline, "it did not come in time");
        thread::sleep(Duration::from_millis(10));
    }
}

fn wait_for(name: &str) -> String {
    format!("until [ -e /tmp/{name} ]; do sleep 0.02; done")
}

/// The process is gone when its neighbour changes the file, and was not when that one began.
#[test]
fn a_command_beside_a_process_that_ended_before_it_does_not_undo_the_users_line() {
    let gate = Gate::default();
    let look = format!("cat a.txt; : > /tmp/looked; {}", wait_for("go"));
    let edit = format!(": > /tmp/go; {}; {EDIT}", wait_for("over"));
    let call = |id, arguments: Value| Message::calls([(id, "command_run", arguments)]);
    let running = Running::new(vec![
        Reply::calls([("c1", "command_run", json!({ "command": look, "background": true }))]),
        Reply::Held(gate.clone(), call("c2", json!({ "command": edit }))),
        Reply::text("done"),
    ]);
    running.wait("looked");
    running.edit();
    gate.open();
    running.wait("go");
    until(|| running.stage.ran(&["--json", "ps"]).lines().is_empty());
    running.say("over");
    running.keeps_what_the_user_wrote();
}

/// A ninth call of a reply begins when one of the first eight is over.
#[test]
fn a_command_that_begins_beside_another_does_not_undo_the_users_line() {
    let command = |line: String, writes: &[&str]| json!({ "command": line, "reads": [], "writes": writes });
    let look = format!("cat a.txt; : > /tmp/looked; {}", wait_for("go"));
    let fill = || command(wait_for("free"), &[]);
    let edit = command(format!("{EDIT}; : > /tmp/go"), &["a.txt"]);
    let names = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"];
    let calls = [command(look, &[]), fill(), fill(), fill(), fill(), fill(), fill(), fill(), edit];
    let mut calls = names.into_iter().zip(calls).map(|(name, call)| (name, "command_run", call));
    let calls: [_; 9] = std::array::from_fn(|_| calls.next().unwrap());
    let running = Running::new(vec![Reply::calls(calls), Reply::text("done")]);
    running.wait("looked");
    running.edit();
    running.say("free");
    running.keeps_what_the_user_wrote();
}

/// A whole file that a model writes of what it read does not take the user's line away.
#[test]
fn a_whole_file_is_not_written_over_what_the_model_has_not_seen() {
    let gate = Gate::default();
    let write = |id, text: &str| (id, "fs_write", json!({ "path": "a.txt", "content": text }));
    let read = |id| (id, "fs_read", json!({ "path": "a.txt" }));
    let whole = "one\n2\nthree\n";
    let running = Running::new(vec![
        Reply::calls([read("c1")]),
        Reply::Held(gate.clone(), Message::calls([write("c2", SESSION)])),
        Reply::calls([read("c3")]),
        Reply::calls([write("c4", whole)]),
        // The control: what it wrote itself, it has seen.
        Reply::calls([write("c5", &format!("{whole}four\n"))]),
        Reply::text("done"),
    ]);
    running.model.wait_for(2);
    running.edit();
    gate.open();
    let ran = Ran::of(running.child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let requests: Vec<String> =
        running.model.requests().iter().map(|request| request.json().to_string()).collect();
    let told = "is not what you last saw of it";
    assert!(
        requests[2].contains(told) && requests[3].contains(USER.lines().next().unwrap()),
        "{requests:#?}"
    );
    assert_eq!(requests[5].matches(told).count(), 1, "{requests:#?}");
    let session = newest(&running.stage);
    assert_eq!(sessions(&running.stage, "apply", &session).code, Some(0));
    assert_eq!(running.stage.read("a.txt"), format!("{whole}four\n"));
}

/// Two names of one file, by way of links, are changed at once: what is said to be changed stands there.
#[test]
fn changes_of_one_file_by_many_names_lose_none() {
    const ROUNDS: usize = 4;
    let numbers = (0..ROUNDS).map(|round| round.to_string()).collect::<Vec<_>>().join(" ");
    // So large that each takes its time between its look and its change.
    let make = format!(
        "for r in {numbers}; do for k in 0 1 2 3 4 5 6 7; do echo line$k >> g$r.txt; ln -s g$r.txt k$r-$k; done; \
         yes filler | head -c 1000000 >> g$r.txt; done"
    );
    let edits = |round: usize| {
        let ids: [&'static str; 8] = std::array::from_fn(|k| format!("e{round}-{k}").leak() as &str);
        let mut calls = ids.into_iter().enumerate().map(|(k, id)| {
            let (path, old, new) = (format!("k{round}-{k}"), format!("line{k}\n"), format!("edit{k}\n"));
            (id, "fs_edit", json!({ "path": path, "old": old, "new": new }))
        });
        Reply::calls::<8>(std::array::from_fn(|_| calls.next().unwrap()))
    };
    let mut script = vec![Reply::calls([("c", "command_run", json!({ "command": make }))])];
    script.extend((0..ROUNDS).map(edits));
    script.push(Reply::text("done"));
    let running = Running::new(script);
    let ran = Ran::of(running.child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let upper = running.stage.home().join("sessions").join(newest(&running.stage)).join("upper");
    let (mut done, mut lost) = (0, Vec::new());
    for told in ran.lines().into_iter().filter(|event| event["type"] == "result" && event["ok"] == true) {
        let id = told["call"].as_str().unwrap();
        let Some((round, k)) = id.strip_prefix('e').and_then(|id| id.split_once('-')) else { continue };
        done += 1;
        let text = fs::read_to_string(upper.join(format!("g{round}.txt"))).unwrap();
        lost.extend((!text.contains(&format!("edit{k}\n"))).then(|| id.to_owned()));
    }
    assert!(done >= ROUNDS && lost.is_empty(), "{done} done, lost: {lost:?}");
}
