//! Processes in the background: reached by the session's other commands, behind the same walls, and gone with
//! their session.

use crate::{
    stage::{Ran, Stage},
    terminal::Terminal,
};
use bailey_testkit::{Gate, Message, ModelServer, Reply};
use serde_json::{Value, json};
use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

mod limits;

const PATIENCE: Duration = Duration::from_secs(60);
const KEY: &str = "hunter2-Zq9!xv7Lm";
const ADDRESS: &str = "('127.0.0.1', 8321)";

/// Reads a page anew for each request; the gate says when it listens.
fn server() -> String {
    format!(
        "import http.server
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(open('page.txt', 'rb').read())
server = http.server.HTTPServer({ADDRESS}, Page)
print('it listens', flush=True)
open('/tmp/gate', 'w').close()
server.serve_forever()
"
    )
}

/// Prints the page.
fn client() -> String {
    "import urllib.request
print(urllib.request.urlopen('http://127.0.0.1:8321/', timeout=30).read().decode())
"
    .to_owned()
}

fn stage() -> Option<Stage> {
    if !Path::new("/usr/bin/python3").exists() {
        println!("SKIPPED: there is no /usr/bin/python3");
        return None;
    }
    Some(Stage::new(&[("server.py", &server()), ("client.py", &client()), ("page.txt", "one\n")]))
}

/// One reply for each call, and the end.
fn script(calls: &[(&str, Value)]) -> Vec<Reply> {
    let name = |place: usize| format!("c{place}");
    let reply = |(place, (tool, arguments)): (usize, &(&str, Value))| {
        Reply::calls([(name(place).as_str(), *tool, arguments.clone())])
    };
    calls.iter().enumerate().map(reply).chain([Reply::text("done")]).collect()
}

fn run(line: &str) -> (&'static str, Value) {
    ("command_run", json!({ "command": line }))
}

fn begin(line: &str) -> (&'static str, Value) {
    ("command_run", json!({ "command": line, "background": true }))
}

fn process(tool: &'static str, number: u32) -> (&'static str, Value) {
    (tool, json!({ "process": number }))
}

/// How many processes have this word as an argument.
fn living(marker: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| line.split(|byte| *byte == 0).any(|word| word == marker.as_bytes())).count()
}

fn until(what: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !what() {
        assert!(Instant::now() < deadline, "it did not come in time");
        thread::sleep(Duration::from_millis(10));
    }
}

fn listed(stage: &Stage) -> Vec<Value> {
    stage.ran(&["--json", "ps"]).lines()
}

/// The outcomes of commands that were begun in the background; null where there is none yet.
fn outcomes(stage: &Stage) -> Vec<Value> {
    let payload = |line: &Value| -> Value {
        line["payload"].as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    };
    let lines = stage.ran(&["audit", "export"]).lines();
    let of = |name: &'static str| lines.iter().filter(move |line| line["entry"]["type"] == name);
    let begun = of("intent").filter(|line| payload(line)["action"]["background"] == true);
    let outcome = |begun: &Value| {
        let own = of("outcome").find(|line| line["entry"]["effect"] == begun["entry"]["effect"]);
        own.map(payload).unwrap_or_default()
    };
    begun.map(outcome).collect()
}

#[test]
fn a_server_in_the_background_answers_the_sessions_other_commands_and_sees_their_writes() {
    let Some(stage) = stage() else { return };
    let calls = [
        run("mkfifo /tmp/gate"),
        // The control: what a command leaves behind ends with it.
        run("python3 server.py & cat /tmp/gate; python3 client.py"),
        run("python3 client.py"),
        begin("exec python3 server.py"),
        run("cat /tmp/gate; python3 client.py"),
        ("fs_edit", json!({ "path": "page.txt", "old": "one", "new": "two" })),
        run("python3 client.py"),
        run("echo three > page.txt"),
        run("python3 client.py"),
        process("process_log", 1),
        process("process_stop", 1),
        run("python3 client.py"),
        process("process_log", 1),
        process("process_stop", 2),
    ];
    let (ran, _) = stage.task(script(&calls), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let results = ran.results();
    let is_refused = |text: &str| text.contains("Connection refused");
    assert!(results[1].contains("\none\n") && is_refused(&results[2]), "{results:?}");
    assert_eq!(
        results[3],
        "$ exec python3 server.py\nruns in the background as process 1: `process.log` shows what it prints, `process.stop` \
         ends it"
    );
    for (place, page) in [(4, "one"), (6, "two"), (8, "three")] {
        assert!(results[place].contains(&format!("exit code: 0\n--- stdout ---\n{page}\n")), "{results:?}");
    }
    assert!(results[9].starts_with("process 1 runs\n--- stdout ---\nit listens"), "{results:?}");
    assert!(results[10].starts_with("process 1 was stopped\n"), "{results:?}");
    assert!(is_refused(&results[11]), "{results:?}");
    assert!(results[12].starts_with("process 1 was stopped\n"), "{results:?}");
    assert_eq!(results[13], "there is no process 2 in the background here: none runs");
    let outcomes = outcomes(&stage);
    assert_eq!((outcomes.len(), &outcomes[0]["status"]["status"]), (1, &"cancelled".into()), "{outcomes:?}");
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));
    let diff = ran.lines().into_iter().find(|event| event["type"] == "diff").unwrap();
    assert_eq!(diff["files"], json!(["page.txt"]));
}

/// A run that waits for its model after it began something in the background.
struct Held {
    child: Child,
    gate: Gate,
    marker: String,
}

fn held(stage: &Stage, marker: u64) -> Held {
    let marker = format!("{}", marker + u64::from(std::process::id()));
    let gate = Gate::default();
    let begun = Reply::calls([("c1", "command_run", begin(&format!("exec sleep {marker}")).1)]);
    let server = stage.model(vec![begun, Reply::Held(gate.clone(), Message::text("done"))]);
    let run = ["--json", "run", "--model", "test/model", "--approve", "never", "a long task"];
    let child = stage.bailey(&run).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    server.wait_for(2);
    until(|| living(&marker) == 1);
    Held { child, gate, marker }
}

#[test]
fn what_runs_in_the_background_is_listed_and_ended_from_another_process() {
    let stage = Stage::new(&[]);
    let Held { child, gate, marker } = held(&stage, 1_000_000);
    let listed_now = listed(&stage);
    let [process] = &listed_now[..] else { panic!("{listed_now:?}") };
    assert_eq!(
        (&process["process"], &process["state"], &process["command"]),
        (&1.into(), &"running".into(), &format!("exec sleep {marker}").into())
    );
    let name = process["name"].as_str().unwrap();
    let nobody = stage.ran(&["ps", "--stop", "nothing/1"]);
    assert!(nobody.code == Some(1) && nobody.stderr.contains("no process `nothing/1`"), "{nobody:?}");
    assert_eq!(living(&marker), 1, "control: it lives until it is named");
    let stopped = stage.ran(&["ps", "--stop", name]);
    assert!(stopped.code == Some(0) && stopped.stdout.starts_with("ended: "), "{stopped:?}");
    assert_eq!((living(&marker), listed(&stage).len()), (0, 0));
    let outcomes = outcomes(&stage);
    assert_eq!(outcomes[0]["status"]["status"], "cancelled", "{outcomes:?}");
    assert!(stage.trail().iter().any(|entry| entry["type"] == "end_asked"));
    gate.open();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "the run goes on: {ran:?}");
}

#[test]
fn nothing_in_the_background_outlives_its_run() {
    let stage = Stage::new(&[]);
    let Held { child, gate, marker } = held(&stage, 2_000_000);
    gate.open();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.code, living(&marker)), (Some(0), 0), "{ran:?}");
    assert_eq!(outcomes(&stage)[0]["status"]["status"], "cancelled");
    assert_eq!(listed(&stage).len(), 0);
    // Nobody could write how it ended: its walls end it all the same, and it may have happened.
    let Held { mut child, marker, .. } = held(&stage, 3_000_000);
    assert_eq!(listed(&stage).len(), 1);
    let killed = Command::new("kill").args(["-9", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    child.wait().unwrap();
    until(|| living(&marker) == 0 && listed(&stage).is_empty());
    assert_eq!(outcomes(&stage)[1], Value::Null);
    let sessions = stage.ran(&["--json", "sessions", "list", "--all"]).lines();
    let server = stage.model(vec![
        Reply::calls([("c2", "process_log", json!({ "process": 1 }))]),
        Reply::text("it is gone"),
    ]);
    let resumed = ["--json", "sessions", "resume", "--model", "test/model", "--approve", "never"];
    let ran = stage.ran(&[&resumed[..], &[sessions[0]["id"].as_str().unwrap(), "look"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.results(), ["there is no process 1 in the background here: none runs"]);
    drop(server);
    assert_eq!(outcomes(&stage)[1]["status"]["status"], "unknown");
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));
}

/// How often the newest request tells of an end.
fn ends_told(model: &ModelServer) -> (usize, String) {
    let request = model.requests().last().unwrap().json().to_string();
    (request.matches("began in the background has ended").count(), request)
}

#[test]
fn the_model_is_told_once_that_a_process_in_the_background_ended() {
    let stage = Stage::new(&[]);
    let gate = Gate::default();
    let reply = |id: &str, call: (&'static str, Value)| Reply::calls([(id, call.0, call.1)]);
    let long = format!(
        "echo first; cat /tmp/gate; printf 'last hunter2-Zq'; printf '9!xv7Lm word\\n'; exit 3; : {} the end",
        "x".repeat(3_000)
    );
    let server = stage.model(vec![
        reply("c1", run("mkfifo /tmp/gate")),
        reply("c2", begin(&long)),
        reply("c3", begin("exec sleep 600")),
        // What the model asks for itself is not told again.
        reply("c4", process("process_stop", 2)),
        reply("c5", run("echo go > /tmp/gate")),
        Reply::Held(gate.clone(), Message::calls([("c6", "command_run", run("true").1)])),
        reply("c7", run("true")),
        Reply::text("done"),
    ]);
    let task = ["--json", "run", "--model", "test/model", "--approve", "never", "do it"];
    let child = stage
        .bailey(&task)
        .env("ANTHROPIC_API_KEY", KEY)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    server.wait_for(6);
    until(|| outcomes(&stage)[0]["report"]["exit"] == 3);
    gate.open();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let requests: Vec<String> = server.requests().iter().map(|request| request.json().to_string()).collect();
    let told = |request: &String| request.matches("began in the background has ended").count();
    assert_eq!(requests[..5].iter().map(told).sum::<usize>(), 0, "control: it lived");
    assert_eq!((requests.len(), told(&requests[7])), (8, 1), "{}", requests[7]);
    let text = "process 1 has ended; exit code: 3\\n--- stdout ---\\nfirst\\ngo\\nlast [redacted:ANTHROPIC_API_KEY] word";
    assert!(requests[7].contains(text), "{}", requests[7]);
    assert!(!requests[7].contains(KEY));
    let (_, end) = requests[7].split_once("began in the background has ended").unwrap();
    let (_, end) = end.split_once("as far as the mark ").unwrap();
    let (mark, end) = end.split_once(':').unwrap();
    let (end, _) = end.split_once(&format!("[{mark}]")).unwrap();
    assert!(end.contains("echo first; cat") && !end.contains("the end") && end.len() < 1_000, "{end}");
    let is_notice = |event: &Value| {
        event["type"] == "notice" && event["text"].to_string().contains("process 1 has ended")
    };
    assert_eq!(ran.lines().iter().filter(|event| is_notice(event)).count(), 1, "{ran:?}");
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));
}

#[test]
fn a_resumed_session_tells_its_model_once_how_its_processes_in_the_background_ended() {
    let stage = Stage::new(&[]);
    let told_on_resume = |said: &str| {
        let sessions = stage.ran(&["--json", "sessions", "list", "--all"]).lines();
        let id = sessions[0]["id"].as_str().unwrap().to_owned();
        for turn in ["first", "second"] {
            let server = stage.model(vec![Reply::text("I see")]);
            let resumed =
                ["--json", "sessions", "resume", "--model", "test/model", "--approve", "never", &id, turn];
            let ran = stage.ran(&resumed);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            let (count, request) = ends_told(&server);
            assert!(count == 1 && request.contains(said), "{turn}: {request}");
        }
    };
    // The session's end ended it.
    let Held { child, gate, marker } = held(&stage, 6_000_000);
    gate.open();
    assert_eq!(Ran::of(child.wait_with_output().unwrap()).code, Some(0));
    told_on_resume(&format!("process 1 ended with the session, and runs no more: `exec sleep {marker}`"));
    // Nobody could write how it ended.
    let Held { mut child, marker, .. } = held(&stage, 7_000_000);
    assert!(Command::new("kill").args(["-9", &child.id().to_string()]).status().unwrap().success());
    child.wait().unwrap();
    until(|| living(&marker) == 0 && listed(&stage).is_empty());
    told_on_resume(&format!("process 1 ended with the session, and runs no more: `exec sleep {marker}`"));
    // It ended by itself, after the model had been asked last.
    let gate = Gate::default();
    let reply = |id: &str, call: (&'static str, Value)| Reply::calls([(id, call.0, call.1)]);
    let server = stage.model(vec![
        reply("c1", run("mkfifo /tmp/gate")),
        reply("c2", begin("cat /tmp/gate; exit 4")),
        reply("c3", run("echo go > /tmp/gate")),
        Reply::Held(gate.clone(), Message::text("done")),
    ]);
    let task = ["--json", "run", "--model", "test/model", "--approve", "never", "do it"];
    let child = stage.bailey(&task).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    server.wait_for(4);
    let last = || outcomes(&stage).pop().unwrap_or_default();
    until(|| last()["report"]["exit"] == 4);
    gate.open();
    assert_eq!(Ran::of(child.wait_with_output().unwrap()).code, Some(0));
    // Or before: then it was told at once, and is not told again.
    told_on_resume("process 1 has ended; exit code: 4\\n--- stdout ---\\ngo");
}

#[test]
fn the_emergency_stop_ends_what_runs_in_the_background() {
    let stage = Stage::new(&[]);
    let Held { mut child, marker, .. } = held(&stage, 5_000_000);
    assert_eq!(living(&marker), 1, "control");
    let stopped = stage.ran(&["estop"]);
    assert_eq!((stopped.code, living(&marker)), (Some(0), 0), "{stopped:?}");
    child.wait().unwrap();
    assert_eq!(listed(&stage).len(), 0);
}

#[test]
fn the_rules_decide_a_process_in_the_background_as_any_command() {
    let stage = Stage::new(&[]);
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    let rule = |name: &str, answer: &str, matching: &str| {
        format!("[[rule]]\nname = \"{name}\"\nanswer = \"{answer}\"\nmatch = {{ {matching} }}\n")
    };
    let rules = [
        rule("all", "allow", "action = [\"exec\", \"model\", \"read\", \"diff\", \"stat\"]"),
        rule("no-sleep", "deny", "action = \"exec\", command = [\"sleep\"]"),
    ];
    fs::write(stage.home().join("policy/own.toml"), rules.concat()).unwrap();
    let sleep = |background: bool| json!({ "argv": ["sleep", "600"], "background": background });
    let calls = [
        ("command_run", sleep(true)),
        ("command_run", sleep(false)),
        ("command_run", json!({ "argv": ["cat", "/dev/null"], "background": true })),
    ];
    let (ran, _) = stage.task(script(&calls), &[]);
    let results = ran.results();
    assert!(results[0].starts_with("denied: ") && results[0] == results[1], "{results:?}");
    assert!(results[2].contains("as process 1") || results[2].contains("process 1 has ended"), "{results:?}");
}

/// What the agent left running ends with the run, which says so. The control is a run that left nothing.
#[test]
fn what_ends_with_its_run_is_told() {
    let stage = Stage::new(&[]);
    let told = "background process 1 ends with this run: exec sleep 600";
    let (ran, _) = stage.task(script(&[begin("exec sleep 600")]), &[]);
    assert!(ran.code == Some(0) && ran.stderr.contains(told), "{ran:?}");
    let (ran, _) = stage.task(script(&[run("true")]), &[]);
    assert!(ran.code == Some(0) && !ran.stderr.contains("ends with this run"), "{ran:?}");
}

#[test]
fn a_sub_agent_begins_nothing_in_the_background() {
    let stage = Stage::new(&[]);
    let errand = json!({ "task": "serve", "tools": ["command.run"] });
    let script = vec![
        Reply::calls([("p1", "agent_run", errand)]),
        Reply::calls([("c1", "command_run", begin("exec sleep 600").1)]),
        // The control.
        Reply::calls([("c2", "command_run", run("echo it runs").1)]),
        Reply::text("it cannot be done"),
        Reply::text("done"),
    ];
    let (ran, model) = stage.task(script, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = model.requests().into_iter().nth(3).unwrap().json().to_string();
    assert!(told.contains("not done: a sub-agent starts nothing in the background"), "{told}");
    assert!(told.contains("exit code: 0\\n--- stdout ---\\nit runs"), "{told}");
    assert_eq!(listed(&stage).len(), 0);
}

#[test]
fn a_process_in_the_background_outlives_its_turn_and_keeps_changes_from_being_applied() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let marker = format!("{}", 4_000_000 + u64::from(std::process::id()));
    let stop = process("process_stop", 1);
    let model = stage.model(vec![
        Reply::calls([
            ("c1", "command_run", begin(&format!("exec sleep {marker}")).1),
            ("c2", "fs_edit", json!({ "path": "a.txt", "old": "one", "new": "two" })),
        ]),
        Reply::text("begun"),
        Reply::calls([("c3", stop.0, stop.1)]),
        Reply::text("ended"),
    ]);
    let Some(mut terminal) = Terminal::start(&stage, &["chat", "--model", "test/model"]) else { return };
    terminal.wait_for("› ");
    terminal.keys("begin\r");
    terminal.wait_for("done in");
    assert_eq!(living(&marker), 1);
    terminal.keys("/apply\r");
    terminal.wait_for_in_turn(&["process 1 (", "background"]);
    assert_eq!(stage.read("a.txt"), "one\n");
    terminal.keys("stop it\r");
    terminal.wait_for("done in");
    assert_eq!(living(&marker), 0);
    // Control: nothing else kept it.
    terminal.keys("/apply\r");
    terminal.wait_for("applied: a.txt");
    assert_eq!(stage.read("a.txt"), "two\n");
    terminal.keys("/quit\r");
    assert_eq!(terminal.end().0, 0);
    drop(model);
}

#[test]
fn what_the_host_changes_beneath_a_process_in_the_background_is_named() {
    let stage = Stage::new(&[("a.txt", "one\n"), ("sub/b.txt", "b\n"), (".gitignore", "ignored\n")]);
    let gate = Gate::default();
    let reply = |id: &str, call: (&'static str, Value)| Reply::calls([(id, call.0, call.1)]);
    let server = stage.model(vec![
        reply("c1", begin("exec sleep 600")),
        reply("c2", run("true")),
        Reply::Held(gate.clone(), Message::calls([("c3", "command_run", run("true").1)])),
        reply("c4", process("process_stop", 1)),
        reply("c5", run("cat a.txt")),
        Reply::text("done"),
    ]);
    let task = ["--json", "run", "--model", "test/model", "--approve", "never", "do it"];
    let child = stage.bailey(&task).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    server.wait_for(3);
    stage.write("a.txt", "two\n");
    stage.write("ignored", "nobody is told\n");
    // Of what went away only where it was is seen, also where something else came there.
    fs::remove_file(stage.project().join("sub/b.txt")).unwrap();
    stage.write("sub/c.txt", "c\n");
    gate.open();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let results = ran.results();
    let named =
        |text: &str| text.lines().find(|line| line.starts_with("(changed in the project")).map(str::to_owned);
    let project = stage.project().display().to_string();
    assert_eq!(named(&results[1]), None, "control: nothing had changed");
    let line = named(&results[2]).unwrap();
    let paths = ["", "/a.txt", "/sub", "/sub/c.txt"].map(|path| format!("{project}{path}")).join(", ");
    let told = format!("until none does; of a directory something came or went away: {paths})");
    assert!(line.ends_with(&told), "{line}");
    assert_eq!(named(&results[4]), None, "{results:?}");
    assert!(results[4].ends_with("--- stdout ---\ntwo"), "what is begun afterwards sees it: {results:?}");
}

#[test]
fn commands_that_live_at_once_see_each_others_writes() {
    let stage = Stage::new(&[]);
    let call = |line: &str, file: &str| json!({ "command": line, "reads": [], "writes": [file] });
    // Each waits for the other, so one after the other they would never end.
    let first = call("echo one > one.txt; echo > /tmp/there; cat /tmp/back; cat two.txt", "one.txt");
    let second = call("cat /tmp/there; echo two > two.txt; cat one.txt; echo > /tmp/back", "two.txt");
    let script = vec![
        Reply::calls([("c0", "command_run", run("mkfifo /tmp/there /tmp/back").1)]),
        Reply::calls([("c1", "command_run", first), ("c2", "command_run", second)]),
        Reply::text("done"),
    ];
    let (ran, _) = stage.task(script, &[]);
    let results = ran.results();
    assert!(
        results.iter().any(|text| text.contains("two.txt\nexit code: 0\n--- stdout ---\n\ntwo")),
        "{results:?}"
    );
    assert!(results.iter().any(|text| text.ends_with("\n\none")), "{results:?}");
}

#[test]
fn a_look_at_a_process_is_shown_as_done_and_a_refused_call_is_not() {
    let Some(stage) = stage() else { return };
    let calls = [
        begin("exec sleep 600"),
        process("process_log", 1),
        process("process_stop", 1),
        process("process_log", 7),
    ];
    let _model = stage.model(script(&calls));
    let ran = stage.ran(&["run", "--model", "test/model", "--approve", "never", "do it"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    let ends: Vec<&str> = said.lines().filter(|row| row.contains("process.")).collect();
    let shown =
        |mark: &str, word: &str| ends.iter().filter(|row| row.contains(mark) && row.contains(word)).count();
    assert_eq!((shown("✓", "  done · "), shown("✓", "not run")), (2, 0), "{said}");
    assert_eq!(shown("!", "not run"), 1, "the control: there is no process 7: {said}");
}
