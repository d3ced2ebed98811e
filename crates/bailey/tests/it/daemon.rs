//! The daemon: sessions that live on without a terminal, are come back to, survive its end, and answer nobody
//! but their owner.

use crate::{
    attacks::actor::controls,
    stage::{Ran, Stage},
    terminal::Terminal,
};
use bailey_testkit::{Gate, Message, ModelServer, Reply};
use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::{
        fs::PermissionsExt as _,
        net::{UnixDatagram, UnixStream},
    },
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const CHAT: [&str; 3] = ["chat", "--model", "test/model"];
/// How long anything here may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A daemon of a stage's home, which ends with the test.
pub(crate) struct Daemon<'a>(&'a Stage);

impl<'a> Daemon<'a> {
    pub(crate) fn start(stage: &'a Stage) -> Self {
        let ran = stage.ran(&["start"]);
        assert!(ran.code == Some(0) && ran.stderr.contains("the daemon is up"), "{ran:?}");
        Self(stage)
    }

    /// The one that another program was started as.
    pub(crate) fn of(stage: &'a Stage) -> Self {
        Self(stage)
    }

    /// One of which something is taken away, or stands for something.
    pub(crate) fn with(stage: &'a Stage, control: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        let mut start = Command::new(controls());
        start.args(stage.bailey(&["start"]).get_args()).env(control, value);
        let started = start.current_dir(stage.project()).stdout(Stdio::null()).output().unwrap();
        assert!(started.status.success(), "{started:?}");
        Self(stage)
    }

    pub(crate) fn status(&self) -> Value {
        self.0.ran(&["--json", "status"]).lines().remove(0)
    }

    /// Waits for what the daemon says of its one session.
    pub(crate) fn wait(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let status = self.status();
            if is_so(&status["sessions"][0]) {
                return status["sessions"][0].clone();
            }
            assert!(Instant::now() < deadline, "{what} did not come: {status:#}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// As by kill -9; its sessions end with it.
    pub(crate) fn kill(&self) {
        let status = self.status();
        // Its own end, too: until then its home has a daemon.
        let sessions = status["sessions"].as_array().unwrap().iter();
        let pids: Vec<u64> = sessions.chain([&status]).map(pid).collect();
        end(pid(&status), "-KILL");
        let is_there = |pid: &u64| Path::new(&format!("/proc/{pid}")).exists();
        let deadline = Instant::now() + PATIENCE;
        while pids.iter().any(is_there) {
            assert!(
                Instant::now() < deadline,
                "a session outlives its daemon, or it itself does not end: {pids:?}"
            );
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        let ran = self.0.ran(&["stop", "--patience", "0"]);
        assert!(ran.code == Some(0) || thread::panicking(), "{ran:?}");
    }
}

pub(crate) fn pid(value: &Value) -> u64 {
    value["pid"].as_u64().unwrap()
}

pub(crate) fn end(pid: u64, signal: &str) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

fn chat(stage: &Stage, arguments: &[&str]) -> Option<Terminal> {
    let mut terminal = Terminal::start(stage, arguments)?;
    terminal.wait_for("› ");
    Some(terminal)
}

fn held(gate: &Gate, text: &str) -> Reply {
    Reply::Held(gate.clone(), Message::text(text))
}

/// The last words of whoever said anything, as the journal has them.
fn answers(stage: &Stage, session: &str) -> String {
    stage.ran(&["sessions", "show", session]).stdout
}

/// Whoever stops it may move the home, copy it or remove it at once: it writes nothing there any more.
#[test]
fn one_that_was_stopped_has_let_go_of_its_home() {
    let stage = Stage::new(&[]);
    let _daemon = Daemon::start(&stage);
    // What it writes last does not get anywhere until somebody reads it.
    let last = stage.home().join("health.json.new");
    mkfifoat(CWD, &last, Mode::from_raw_mode(0o600)).unwrap();
    let mut stopping = stage.bailey(&["stop"]).spawn().unwrap();
    let since = Instant::now();
    while stage.home().join("daemon/socket").exists() {
        assert!(since.elapsed() < PATIENCE, "it hears nobody any more");
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_millis(300));
    assert!(stopping.try_wait().unwrap().is_none(), "it has not ended yet");
    let mut written = String::new();
    File::open(&last).unwrap().read_to_string(&mut written).unwrap();
    assert!(written.contains("stopped"), "{written}");
    assert!(stopping.wait().unwrap().success());
}

/// What the story of a chat says to do next can be done at once, though its process rests for a minute; not
/// where somebody looks on.
#[test]
fn a_session_that_rests_makes_room_for_who_looks_at_its_changes() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let edit = Reply::calls([("c1", "fs_edit", json!({ "path": "a.txt", "old": "one", "new": "two" }))]);
    let _model = stage.model(vec![edit, Reply::text("it is done")]);
    let daemon = Daemon::start(&stage);
    let Some(mut terminal) = chat(&stage, &CHAT) else { return };
    terminal.keys("repair it\r");
    terminal.wait_for("it is done");
    let running = daemon.wait("the turn's end", |it| it["working"] == false && it["clients"] == 1);
    let session = running["session"].as_str().unwrap();
    let held = stage.ran(&["sessions", "diff", session]);
    assert!(held.code != Some(0) && held.stderr.contains("is in use by process"), "the control: {held:?}");
    terminal.keys("\u{4}");
    assert_eq!(terminal.end().0, 0);
    daemon.wait("nobody there", |it| it["clients"] == 0);
    let diff = stage.ran(&["sessions", "diff", session]);
    assert!(diff.code == Some(0) && diff.stdout.contains("+two"), "{diff:?}");
    assert_eq!(stage.ran(&["sessions", "apply", session]).code, Some(0));
    assert_eq!(stage.read("a.txt"), "two\n");
}

#[test]
fn a_turn_goes_on_without_its_terminal_and_is_come_back_to() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = Gate::default();
    let edit = Message::calls([("c1", "fs_edit", json!({ "path": "a.txt", "old": "one", "new": "two" }))]);
    let script =
        vec![Reply::Held(gate.clone(), edit), Reply::text("it is done"), Reply::text("you are back")];
    let model = stage.model(script);
    let daemon = Daemon::start(&stage);
    let Some(mut terminal) = chat(&stage, &CHAT) else { return };
    terminal.keys("repair it\r");
    model.wait_for(1);
    let running = daemon.wait("a turn", |it| it["working"] == true && it["clients"] == 1);
    terminal.close();
    daemon.wait("a turn without a terminal", |it| it["working"] == true && it["clients"] == 0);
    gate.open();
    model.wait_for(2);
    daemon.wait("the turn's end", |it| it["working"] == false);
    // Who comes back sees what happened meanwhile, and goes on, in the same process.
    let name = running["session"].as_str().unwrap();
    let mut back = Terminal::start(&stage, &["chat", "--resume", name]).unwrap();
    back.wait_for_in_turn(&["› repair it", "it is done"]);
    back.keys("/diff\r");
    back.wait_for("a.txt  +1 −1");
    back.keys("and now?\r");
    back.wait_for("you are back");
    assert_eq!(daemon.status()["sessions"][0]["pid"], running["pid"]);
    back.keys("/apply\r");
    back.wait_for("applied: a.txt");
    assert_eq!(stage.read("a.txt"), "two\n");
    back.keys("\u{4}");
    let (code, screen) = back.end();
    assert!(code == 0 && screen.contains("changed"), "the story: {screen}");
    // The control: without the daemon the turn ends with its terminal.
    drop(daemon);
    let gate = Gate::default();
    let model = stage.model(vec![held(&gate, "never heard")]);
    let mut alone = chat(&stage, &CHAT).unwrap();
    alone.keys("once more\r");
    model.wait_for(1);
    alone.close();
    gate.open();
    thread::sleep(Duration::from_millis(500));
    assert!(!answers(&stage, &last(&stage)).contains("never heard"));
}

/// The newest session's name.
fn last(stage: &Stage) -> String {
    stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn nobody_is_missed_where_a_session_works_or_runs_something() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = Gate::default();
    let runs = json!({ "command": "sleep 600", "background": true });
    let script = vec![
        held(&gate, "it is done"),
        Reply::text("you are back"),
        Reply::calls([("c1", "command_run", runs)]),
        Reply::text("it runs"),
    ];
    let model = stage.model(script);
    let daemon = Daemon::with(&stage, "BAILEY_CONTROL_IDLE", "1500");
    let Some(mut terminal) = chat(&stage, &CHAT) else { return };
    terminal.keys("repair it\r");
    model.wait_for(1);
    let running = daemon.wait("a turn", |it| it["working"] == true && it["clients"] == 1);
    terminal.close();
    daemon.wait("a turn without a terminal", |it| it["working"] == true && it["clients"] == 0);
    thread::sleep(Duration::from_secs(3));
    // Who comes back while it works can say something, and stays when it has ended.
    let name = running["session"].as_str().unwrap();
    let mut back = Terminal::start(&stage, &["chat", "--resume", name]).unwrap();
    back.wait_for("› repair it");
    back.keys("and now?\r");
    gate.open();
    back.wait_for_in_turn(&["it is done", "you are back"]);
    back.keys("run it\r");
    back.wait_for("it runs");
    back.close();
    daemon.wait("nobody there", |it| it["clients"] == 0 && it["processes"] == 1);
    // Neither the time nor a reload ends what runs in the background.
    thread::sleep(Duration::from_secs(11));
    assert_eq!(stage.ran(&["reload"]).code, Some(0));
    thread::sleep(Duration::from_secs(2));
    assert_eq!(daemon.status()["sessions"][0]["pid"], running["pid"]);
    // The control: without it the session's process ends.
    let runs = stage.ran(&["--json", "ps"]).lines().remove(0);
    let stopped = stage.ran(&["ps", "--stop", runs["name"].as_str().unwrap()]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    let deadline = Instant::now() + PATIENCE;
    while !daemon.status()["sessions"].as_array().unwrap().is_empty() {
        assert!(Instant::now() < deadline, "a session at rest stays");
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn two_terminals_share_one_session_and_a_question() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let folder = tempfile::Builder::new().prefix("bailey-test-").tempdir_in("/var/tmp").unwrap();
    let file = folder.path().canonicalize().unwrap().join("notes.txt");
    fs::write(&file, "what the notes say\n").unwrap();
    let read = Reply::calls([("c1", "fs_read", json!({ "path": file.to_str().unwrap() }))]);
    let _model = stage.model(vec![read, Reply::text("seen by both"), Reply::text("heard by both")]);
    let daemon = Daemon::start(&stage);
    let Some(mut one) = chat(&stage, &CHAT) else { return };
    let session = daemon.wait("the session", |it| it["clients"] == 1)["session"].clone();
    one.keys("read it\r");
    one.wait_for("[n]o or [d]etails: ");
    let asked = daemon.wait("the question", |it| it["questions"] == 1);
    assert_eq!(asked["working"], true);
    // The other one comes in the middle, is asked the same, and answers.
    let mut other = Terminal::start(&stage, &["chat", "--resume", session.as_str().unwrap()]).unwrap();
    other.wait_for("[n]o or [d]etails: ");
    thread::sleep(Duration::from_millis(300));
    other.keys("y\n");
    one.wait_for("answered elsewhere: yes");
    one.wait_for("seen by both");
    other.wait_for("seen by both");
    other.keys("hello\r");
    one.wait_for_in_turn(&["› hello", "heard by both"]);
    other.wait_for("heard by both");
    for mut terminal in [one, other] {
        terminal.keys("\u{4}");
        assert_eq!(terminal.end().0, 0);
    }
    assert_eq!(daemon.status()["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn what_a_killed_daemon_ran_goes_on_with_the_next() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = Gate::default();
    let read = Reply::calls([("c1", "fs_read", json!({ "path": "a.txt" }))]);
    let model = stage.model(vec![read, held(&gate, "never said"), Reply::text("finished after all")]);
    let daemon = Daemon::start(&stage);
    let Some(mut terminal) = chat(&stage, &CHAT) else { return };
    terminal.keys("read it\r");
    model.wait_for(2);
    let session = daemon.wait("the turn", |it| it["working"] == true)["session"].clone();
    daemon.kill();
    terminal.wait_for("the connection to the session was lost");
    gate.open();
    // Its socket lies there still, and is no daemon.
    assert_eq!(stage.ran(&["status"]).code, Some(1));
    let next = Daemon::start(&stage);
    model.wait_for(3);
    next.wait("the turn's end", |it| it["working"] == false);
    let said = answers(&stage, session.as_str().unwrap());
    assert!(said.contains("finished after all") && !said.contains("never said"), "{said}");
    // The terminal came back to it by itself, and once that daemon ends in order, it waits for no other.
    terminal.wait_for("finished after all");
    assert_eq!(stage.ran(&["stop"]).code, Some(0));
    let (code, screen) = terminal.end();
    assert!(code == 1 && screen.contains("the session's process has ended"), "{screen}");
    // What was read before was not read again.
    let reads = stage
        .trail()
        .into_iter()
        .filter(|it| it["type"] == "intent" && it["target"].as_str().is_some_and(|at| at.ends_with("a.txt")));
    assert_eq!(reads.count(), 1);
    std::mem::forget(daemon);
}

#[test]
fn a_session_whose_process_is_killed_goes_on_and_one_that_kills_itself_is_left() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = Gate::default();
    let script = (0..4).map(|_| held(&gate, "never said")).chain([Reply::text("finished after all")]);
    let model = stage.model(script.collect());
    let daemon = Daemon::start(&stage);
    let Some(mut terminal) = chat(&stage, &CHAT) else { return };
    terminal.keys("do it\r");
    // Three times it is begun again, and asks the model once more.
    let mut last = 0;
    for times in 1..=4 {
        model.wait_for(times);
        let is_next = |it: &Value| it["working"] == true && it["pid"] != last;
        last = pid(&daemon.wait("another process", is_next));
        end(last, "-KILL");
    }
    let deadline = Instant::now() + PATIENCE;
    while !daemon.status()["sessions"].as_array().unwrap().is_empty() {
        assert!(Instant::now() < deadline, "it is begun again for ever");
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(terminal.end().0, 1);
    gate.open();
    // Nor by whoever was cut off from it, and comes only now.
    let refused = resume(&stage, &self::last(&stage), true);
    assert!(refused["why"].as_str().is_some_and(|why| why.contains("does not start it again")), "{refused}");
    assert_eq!(daemon.status()["sessions"], json!([]));
    // Its owner goes on with it.
    let mut back =
        Terminal::start(&stage, &["chat", "--model", "test/model", "--resume", &self::last(&stage)]).unwrap();
    back.wait_for("finished after all");
    back.keys("\u{4}");
    assert_eq!(back.end().0, 0);
}

#[test]
fn a_stop_waits_for_turns_and_what_it_cuts_goes_on_later() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let (one, other) = (Gate::default(), Gate::default());
    let model =
        stage.model(vec![held(&one, "in time"), held(&other, "too late"), Reply::text("after the start")]);
    let daemon = Daemon::start(&stage);
    let Some(mut terminal) = chat(&stage, &CHAT) else { return };
    terminal.keys("first\r");
    model.wait_for(1);
    daemon.wait("the turn", |it| it["working"] == true);
    let stopping = stage.bailey(&["stop"]).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while daemon.status()["stopping"] != true {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(10));
    }
    // Meanwhile nothing new begins, and the emergency stop is another thing.
    let refused = stage.ran(&["--json", "chat", "--model", "test/model"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("the daemon is ending"), "{refused:?}");
    assert!(!stage.trail().iter().any(|it| it["type"] == "stopped"));
    one.open();
    let stopped = Ran::of(stopping.wait_with_output().unwrap());
    assert!(stopped.code == Some(0) && stopped.stderr.contains("s for the end of a turn"), "{stopped:?}");
    terminal.wait_for("in time");
    assert_eq!(terminal.end().0, 1);
    assert_eq!(stage.ran(&["stop"]).code, Some(0), "there is nothing to stop");

    let session = last(&stage);
    let daemon = Daemon::start(&stage);
    let mut terminal = chat(&stage, &["chat", "--model", "test/model", "--resume", &session]).unwrap();
    terminal.keys("second\r");
    model.wait_for(2);
    daemon.wait("the turn", |it| it["working"] == true);
    let cut = stage.ran(&["stop", "--patience", "0"]);
    assert_eq!(cut.code, Some(0), "{cut:?}");
    other.open();
    let next = Daemon::start(&stage);
    model.wait_for(3);
    next.wait("the turn's end", |it| it["working"] == false);
    let said = answers(&stage, &session);
    assert!(said.contains("after the start") && !said.contains("too late"), "{said}");
    assert_eq!(terminal.end().0, 1);
    std::mem::forget(daemon);
}

#[test]
fn what_cannot_be_up_says_why_and_somebody_is_let_in_no_more_all_the_same() {
    let stage = Stage::new(&[]);
    fs::create_dir_all(stage.home()).unwrap();
    let config = stage.home().join("config.toml");
    fs::write(&config, "[channels.phone]\nkind = \"telegram\"\nkey_env = \"NOT_THERE\"\nworkspace = \"/\"\n")
        .unwrap();
    let _daemon = Daemon::start(&stage);
    // What cannot be up says why; somebody is let in no more also where the rules have a mistake.
    let deadline = Instant::now() + PATIENCE;
    while !stage.ran(&["status"]).stdout.contains("channel phone    down  the key of the channel") {
        assert!(Instant::now() < deadline, "{:?}", stage.ran(&["status"]));
        thread::sleep(Duration::from_millis(20));
    }
    let people = json!({ "people": [{ "id": "7", "name": "Ann", "role": "owner", "since": "2026-01-01T00:00:00Z" }], "asked": [] });
    fs::create_dir_all(stage.home().join("channels/phone")).unwrap();
    fs::write(stage.home().join("channels/phone/people.json"), people.to_string()).unwrap();
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    fs::write(stage.home().join("policy/wrong.toml"), "nothing = 1\n").unwrap();
    assert_eq!(stage.ran(&["reload"]).code, Some(2));
    let ran = stage.ran(&["channels", "forget", "phone", "7"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("may not write here any more"), "{ran:?}");
}

#[test]
fn a_home_has_one_daemon_that_says_what_is_wrong() {
    let stage = Stage::new(&[]);
    let ran = stage.ran(&["status"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("bailey start"), "{ran:?}");
    fs::create_dir_all(stage.home()).unwrap();
    let ran = stage.ran(&["logs"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("has never run"), "{ran:?}");
    let ran = stage.ran(&["reload"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("no daemon of this home runs"), "{ran:?}");
    let config = stage.home().join("config.toml");
    fs::write(&config, "no_such_key = 1\n").unwrap();
    let ran = stage.ran(&["start"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("no_such_key"), "{ran:?}");
    fs::remove_file(&config).unwrap();

    let daemon = Daemon::start(&stage);
    let ran = stage.ran(&["start"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("runs already"), "{ran:?}");
    let ran = stage.ran(&["start", "--foreground"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("runs already: process"), "{ran:?}");
    for private in ["daemon", "daemon/socket", "daemon/log"] {
        let mode = fs::metadata(stage.home().join(private)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{private}");
    }
    // A reload is whole or nothing.
    assert_eq!(stage.ran(&["reload"]).code, Some(0));
    fs::write(&config, "no_such_key = 1\n").unwrap();
    let ran = stage.ran(&["reload"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("no_such_key"), "{ran:?}");
    end(pid(&daemon.status()), "-HUP");
    let deadline = Instant::now() + PATIENCE;
    let log = || stage.ran(&["--json", "logs"]).lines();
    let times = |what: &str| log().iter().filter(|line| line["what"] == what).count();
    while times("not_reloaded") < 2 {
        assert!(Instant::now() < deadline, "{:?}", log());
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!((times("started"), times("reloaded")), (1, 1));
    fs::remove_file(&config).unwrap();
    end(pid(&daemon.status()), "-TERM");
    while stage.ran(&["status"]).code != Some(1) {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(times("ended"), 1);
}

/// It was told that a daemon runs already, and a moment later none did.
#[test]
fn a_start_while_one_ends_brings_up_another() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let gate = Gate::default();
    let model = stage.model(vec![held(&gate, "in time")]);
    let daemon = Daemon::start(&stage);
    let first = pid(&daemon.status());
    let Some(mut terminal) = chat(&stage, &CHAT) else { return };
    terminal.keys("first\r");
    model.wait_for(1);
    daemon.wait("the turn", |it| it["working"] == true);
    let stopping = stage.bailey(&["stop"]).spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while daemon.status()["stopping"] != true {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(10));
    }
    let mut starting = stage.bailey(&["start"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = String::new();
    BufReader::new(starting.stderr.take().unwrap()).read_line(&mut told).unwrap();
    assert!(told.contains("is ending; waiting for its end"), "{told}");
    gate.open();
    assert!(
        starting.wait().unwrap().success() && Ran::of(stopping.wait_with_output().unwrap()).code == Some(0)
    );
    let status = daemon.status();
    assert!(pid(&status) != first && status["stopping"] == false, "{status}");
    terminal.end();
}

#[test]
fn a_stop_that_has_begun_can_be_made_to_come_sooner() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let gate = Gate::default();
    let model = stage.model(vec![held(&gate, "never said"), held(&gate, "never said")]);
    let daemon = Daemon::start(&stage);
    let opened = open(&stage, &[]);
    let socket = stage.home().join("daemon").join(opened["session"].as_str().unwrap());
    let mut session = UnixStream::connect(socket).unwrap();
    writeln!(session, "{}", json!({ "op": "say", "text": "do it" })).unwrap();
    model.wait_for(1);
    let mut patient = stage.bailey(&["stop", "--patience", "3600"]);
    let mut patient = patient.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while daemon.status()["stopping"] != true {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(20));
    }
    // The control: one that is as patient does not make it come later, and nothing ends by itself.
    let mut later = stage.bailey(&["stop", "--patience", "7200"]);
    let mut later = later.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    thread::sleep(Duration::from_secs(2));
    assert!(patient.try_wait().unwrap().is_none() && daemon.status()["sessions"][0]["working"] == true);
    let begun = Instant::now();
    let mut hurried = stage.bailey(&["stop", "--patience", "0"]);
    let mut hurried = hurried.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while hurried.try_wait().unwrap().is_none() {
        if begun.elapsed() > PATIENCE / 2 {
            end(pid(&daemon.status()), "-KILL");
            panic!("the daemon waits on");
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert!(patient.wait().unwrap().success() && later.wait().unwrap().success());
    assert_eq!(stage.ran(&["status"]).code, Some(1));
    gate.open();
}

#[test]
fn a_reload_begins_and_ends_the_printing_of_the_log() {
    let stage = Stage::new(&[]);
    fs::create_dir_all(stage.home()).unwrap();
    let config = stage.home().join("config.toml");
    fs::write(&config, "").unwrap();
    let mut daemon = stage.bailey(&["start", "--foreground"]);
    let mut daemon = daemon.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while stage.ran(&["status"]).code != Some(0) {
        assert!(Instant::now() < deadline);
    }
    for settings in ["", "[telemetry]\nlogs = \"json\"\n", "", ""] {
        fs::write(&config, settings).unwrap();
        assert_eq!(stage.ran(&["reload"]).code, Some(0));
    }
    end(u64::from(daemon.id()), "-TERM");
    let mut printed = String::new();
    daemon.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert!(daemon.wait().unwrap().success());
    // Of four reloads and a beginning and an end, the one that began it.
    let printed: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(printed.len() == 1 && printed[0]["what"] == "reloaded", "{printed:#?}");
    let noted = stage.ran(&["--json", "logs"]).lines();
    assert_eq!(
        noted.iter().filter(|it| it["what"] == "reloaded").count(),
        4,
        "the control: the file has each"
    );
}

/// What reads the keys for a reload says why it cannot.
#[test]
fn a_reload_changes_nothing_where_the_keys_cannot_be_read() {
    let stage = Stage::new(&[]);
    let _daemon = Daemon::start(&stage);
    let env = stage.home().join(".env");
    let reloaded = |mode| {
        fs::write(&env, "FORGE_TOKEN=ghp_Zk3vQ9sX1bN7tR5wY2mC8dF6hJ4lP0aE\n").unwrap();
        fs::set_permissions(&env, fs::Permissions::from_mode(mode)).unwrap();
        stage.ran(&["reload"])
    };
    let refused = reloaded(0o644);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains("nothing was changed: ") && refused.stderr.contains("/.env"),
        "{refused:?}"
    );
    assert_eq!(reloaded(0o600).code, Some(0), "the control");
}

#[test]
fn a_reload_reaches_the_sessions_that_run() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    assert_eq!(stage.ran(&["init"]).code, Some(0));
    let touch = || Reply::calls([("c1", "command_run", json!({ "command": "touch made.txt" }))]);
    let script = [
        touch(),
        Reply::text("the first"),
        touch(),
        Reply::text("the second"),
        touch(),
        Reply::text("the third"),
    ];
    let model = stage.model_beside(script.into());
    let daemon = Daemon::start(&stage);
    let Some(mut terminal) = chat(&stage, &CHAT) else { return };
    daemon.wait("the session", |it| it["clients"] == 1);
    let results =
        || model.requests().iter().filter(|request| request.body.contains("a test says no")).count();
    terminal.keys("make it\r");
    terminal.wait_for_in_turn(&["the first", "done in"]);
    let rule = "[[rule]]\nname = \"no-touch\"\nanswer = \"deny\"\nreason = \"a test says no\"\nmatch = { command = [\"touch\"] }\n";
    fs::write(stage.home().join("policy/no-touch.toml"), rule).unwrap();
    // The control: a file that was written alone is obeyed by what begins, and not by what runs.
    terminal.keys("make it again\r");
    terminal.wait_for_in_turn(&["the second", "done in"]);
    assert_eq!(results(), 0);
    let ran = stage.ran(&["reload"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("1 session keeps the old configuration"), "{ran:?}");
    let adopted = || stage.trail().iter().filter(|it| it["type"] == "policy_adopted").count();
    let deadline = Instant::now() + PATIENCE;
    while adopted() < 2 {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(20));
    }
    terminal.keys("and again\r");
    terminal.wait_for_in_turn(&["the third", "done in"]);
    assert_eq!(results(), 1);
    terminal.keys("\u{4}");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn a_service_manager_hears_that_it_is_up_lives_and_ends() {
    let stage = Stage::new(&[]);
    let path = stage.folder().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut daemon = stage.bailey(&["start", "--foreground"]);
    daemon.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000").stderr(Stdio::null());
    let mut daemon = daemon.spawn().unwrap();
    let heard = || {
        let mut words = [0; 100];
        let length = manager.recv(&mut words).unwrap();
        String::from_utf8_lossy(&words[..length]).into_owned()
    };
    assert_eq!(heard(), "READY=1");
    assert_eq!([heard(), heard()], ["WATCHDOG=1", "WATCHDOG=1"]);
    end(daemon.id().into(), "-TERM");
    while heard() != "STOPPING=1" {}
    assert_eq!(daemon.wait().unwrap().code(), Some(0));
}

/// Asks a daemon in its own words.
fn asked(stage: &Stage, what: &Value) -> Value {
    let mut stream = UnixStream::connect(stage.home().join("daemon/socket")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    writeln!(stream, "{what}").unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

/// Opens a session: `words` besides where it works.
pub(crate) fn open(stage: &Stage, words: &[&str]) -> Value {
    let again = ["--model", "test/model"];
    let words = [&again, words].concat();
    let directory = stage.project();
    let open = json!({
        "v": 1, "ask": "open", "directory": directory, "words": words, "again": again, "session": null
    });
    asked(stage, &open)
}

/// Asks for a session that was there before: as its owner, or as who comes back to it by itself.
pub(crate) fn resume(stage: &Stage, session: &str, comes_back: bool) -> Value {
    let (directory, words) = (stage.project(), ["--resume", session]);
    let open = json!({
        "v": 1, "ask": "open", "directory": directory, "words": words, "again": [], "session": session,
        "comes_back": comes_back
    });
    asked(stage, &open)
}

#[test]
fn a_stop_while_turns_are_begun_again_forgets_none() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let gate = Gate::default();
    let model = stage.model((0..18).map(|_| held(&gate, "never said")).collect());
    let daemon = Daemon::start(&stage);
    for count in 1..=6 {
        let opened = open(&stage, &[]);
        let socket = stage.home().join("daemon").join(opened["session"].as_str().unwrap());
        let mut stream = UnixStream::connect(socket).unwrap();
        writeln!(stream, "{}", json!({ "op": "say", "text": "do it" })).unwrap();
        model.wait_for(count);
    }
    daemon.kill();
    let next = Daemon::start(&stage);
    assert_eq!(stage.ran(&["stop", "--patience", "0"]).code, Some(0));
    let last = Daemon::start(&stage);
    let working = || {
        let status = last.status();
        status["sessions"].as_array().unwrap().iter().filter(|it| it["working"] == true).count()
    };
    let deadline = Instant::now() + PATIENCE;
    while working() < 6 {
        assert!(Instant::now() < deadline, "{:#}", last.status());
        thread::sleep(Duration::from_millis(50));
    }
    drop(last);
    gate.open();
    std::mem::forget((daemon, next));
}

/// A front end of a session.
pub(crate) struct Client(BufReader<UnixStream>);

impl Client {
    pub(crate) fn of(stage: &Stage, session: &str) -> Self {
        let stream = UnixStream::connect(stage.home().join("daemon").join(session)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(stream))
    }

    pub(crate) fn say(&self, op: &Value) {
        writeln!(self.0.get_ref(), "{op}").unwrap();
    }

    /// The next event of one of these types.
    pub(crate) fn hear(&mut self, types: &[&str]) -> Value {
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            let event: Value = serde_json::from_str(&line).unwrap();
            if types.iter().any(|it| event["type"] == *it) {
                return event;
            }
        }
    }
}

#[test]
fn what_was_shown_is_what_is_applied() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let write = |call: &str, content: &str| {
        Reply::calls([(call, "fs_write", json!({ "path": "b.txt", "content": content }))])
    };
    let script = vec![write("c1", "one\n"), Reply::text("done"), write("c2", "two\n"), Reply::text("done")];
    let _model = stage.model(script);
    let _daemon = Daemon::start(&stage);
    let opened = open(&stage, &[]);
    let session = opened["session"].as_str().unwrap();
    let (mut page, other) = (Client::of(&stage, session), Client::of(&stage, session));
    let say = json!({ "op": "say", "text": "do it" });
    page.say(&say);
    page.hear(&["end"]);
    page.say(&json!({ "op": "changes" }));
    let shown = page.hear(&["diff"])["shown"].clone();
    assert!(shown.is_string(), "{shown}");
    // Somebody else has the session do more, and this one does not look again.
    other.say(&say);
    page.hear(&["end"]);
    let mut apply = |shown: &Value| {
        page.say(&json!({ "op": "apply", "shown": shown }));
        let now = page.hear(&["diff"])["shown"].clone();
        (page.hear(&["merged", "failed"]), now)
    };
    let (refused, now) = apply(&shown);
    assert!(refused["error"].as_str().unwrap().contains("no longer those that were shown"), "{refused}");
    assert!(!stage.project().join("b.txt").exists());
    // The control: what is there now, by its own name.
    assert_eq!(apply(&now).0["files"], json!(["b.txt"]));
    assert_eq!(fs::read_to_string(stage.project().join("b.txt")).unwrap(), "two\n");
}

#[test]
fn a_session_that_runs_keeps_its_socket_whoever_wants_it_anew() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let _model = stage.model(Vec::new());
    let daemon = Daemon::start(&stage);
    let opened = open(&stage, &[]);
    let name = opened["session"].as_str().unwrap();
    let socket = stage.home().join("daemon").join(name);
    let refused = open(&stage, &["--resume", name]);
    assert!(
        refused["told"] == "refused" && refused["why"].as_str().unwrap().contains("listens"),
        "{refused}"
    );
    let client = Client::of(&stage, name);
    daemon.wait("somebody who looks on", |it| it["clients"] == 1);
    drop(client);
    // With whom it would end after a reload.
    daemon.wait("nobody who looks on", |it| it["clients"] == 0);
    // Who opened it a moment ago is on the way: a reload does not take it away.
    assert_eq!(stage.ran(&["reload"]).code, Some(0));
    thread::sleep(Duration::from_millis(500));
    assert_eq!(daemon.status()["sessions"].as_array().unwrap().len(), 1);
    assert!(UnixStream::connect(&socket).is_ok());
}

/// Says a line at a socket, as another user of this machine or as this one, and gives what comes back.
fn said(socket: &Path, line: &str, user: Option<u32>) -> String {
    let script = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.settimeout(20)\ns.connect(sys.argv[1])\n\
                  try:\n s.sendall(sys.argv[2].encode() + b'\\n')\n print(s.recv(65536).decode(), end='')\n\
                  except OSError as e: pass\n";
    let mut command = match user {
        Some(user) => {
            let mut command = Command::new("setpriv");
            command.args([
                &format!("--reuid={user}"),
                &format!("--regid={user}"),
                "--clear-groups",
                "/usr/bin/python3",
            ]);
            command
        }
        None => Command::new("python3"),
    };
    let output = command.args(["-c", script]).arg(socket).arg(line).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn attack_another_user_at_the_daemons_sockets() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: another user can be played by root alone");
        return;
    }
    let open = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let other = Some(54_321);
    let ask = json!({ "v": 1, "ask": "status" }).to_string();
    let say = json!({ "op": "sessions" }).to_string();
    for is_control in [false, true] {
        let stage = Stage::new(&[("a.txt", "a\n")]);
        let _model = stage.model(Vec::new());
        let program = if is_control { controls() } else { Path::new(env!("CARGO_BIN_EXE_bailey")) };
        let mut start = Command::new(program);
        start.args(stage.bailey(&["start"]).get_args()).env("BAILEY_CONTROL_OPEN_TO_ALL", "1");
        assert!(start.current_dir(stage.project()).stderr(Stdio::null()).status().unwrap().success());
        let daemon = Daemon(&stage);
        let Some(_terminal) = chat(&stage, &CHAT) else { return };
        let session = daemon.wait("the session", |it| it["clients"] == 1)["session"].clone();
        let folder = stage.home().join("daemon");
        let sockets = [(folder.join("socket"), &ask), (folder.join(session.as_str().unwrap()), &say)];
        // What keeps others from coming here at all is taken away in both cases.
        for place in [stage.folder(), &stage.home(), &folder] {
            open(place, 0o755);
        }
        for (socket, line) in sockets {
            open(&socket, 0o666);
            assert!(!said(&socket, line, None).is_empty(), "its owner is answered");
            assert_eq!(said(&socket, line, other).is_empty(), !is_control, "{}", socket.display());
        }
    }
}

#[test]
fn hostile_lines_and_slow_readers_hurt_nobody_else() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let print = json!({ "command": "i=0; while [ $i -lt 60000 ]; do echo a line of some length, number $i; i=$((i+1)); done" });
    let model =
        stage.model(vec![Reply::calls([("c1", "command_run", print)]), Reply::text("all was printed")]);
    let daemon = Daemon::start(&stage);
    let Some(mut terminal) = chat(&stage, &CHAT) else { return };
    let running = daemon.wait("the session", |it| it["clients"] == 1);
    let socket = stage.home().join("daemon").join(running["session"].as_str().unwrap());
    for (at, line) in
        [(stage.home().join("daemon/socket"), "{\"v\":1,\"ask\":\"nonsense\"}"), (socket.clone(), "{}")]
    {
        for bytes in [line.as_bytes(), b"\xff\xfe\x00", b"[[[[[[[[", b""] {
            let mut stream = UnixStream::connect(&at).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(bytes).unwrap();
            stream.write_all(b"\n").unwrap();
            let mut answer = String::new();
            let mut reader = BufReader::new(&stream);
            while !answer.contains("refused") && !answer.contains("\"failed\"") {
                answer.clear();
                assert!(reader.read_line(&mut answer).unwrap() > 0, "{}: {bytes:?}", at.display());
            }
        }
        // A line without an end is not waited for beyond its limit.
        let mut stream = UnixStream::connect(&at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&vec![b'x'; 2 << 20]).ok();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).ok();
    }
    let wrong = json!({ "v": 2, "ask": "status" }).to_string();
    assert!(said(&stage.home().join("daemon/socket"), &wrong, None).contains("another version"));
    // One that reads nothing is cut off, and the turn does not wait for it.
    let slow = UnixStream::connect(&socket).unwrap();
    daemon.wait("the slow one", |it| it["clients"] == 2);
    terminal.keys("print it\r");
    terminal.wait_for("all was printed");
    model.wait_for(2);
    drop(slow);
    daemon.wait("the slow one's end", |it| it["clients"] == 1);
    // Too many at once are not served, and those that are go on.
    let many: Vec<UnixStream> = (0..40).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    daemon.wait("as many as are served", |it| it["clients"] == 32);
    let (mut told, last) = (String::new(), many.last().unwrap());
    last.set_read_timeout(Some(PATIENCE)).unwrap();
    BufReader::new(last).read_line(&mut told).unwrap();
    assert!(told.contains("are looking at this session already"), "{told}");
    drop(many);
    daemon.wait("their ends", |it| it["clients"] == 1);
    assert_eq!(daemon.status()["sessions"][0]["pid"], running["pid"]);
    terminal.keys("\u{4}");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn clear_and_alone() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let model: ModelServer = stage.model(vec![Reply::text("one"), Reply::text("two")]);
    let daemon = Daemon::start(&stage);
    let Some(mut terminal) = chat(&stage, &CHAT) else { return };
    terminal.keys("of the morning\r");
    terminal.wait_for_in_turn(&["one", "done in"]);
    terminal.keys("/model test/other\r");
    terminal.wait_for("bailey · test/other");
    terminal.keys("/clear\r");
    daemon.wait("two sessions", |_| daemon.status()["sessions"].as_array().unwrap().len() == 2);
    // Its own line, and not the one that `/clear` was typed in.
    terminal.wait_for_in_turn(&["bailey · test/other", "› "]);
    terminal.keys("second\r");
    terminal.wait_for("two");
    let second = &model.requests()[1].body;
    assert!(second.contains("\"model\":\"other\"") && !second.contains("of the morning"), "{second}");
    terminal.keys("\u{4}");
    assert_eq!(terminal.end().0, 0);
    // By itself it is no session of the daemon's.
    let mut alone = chat(&stage, &["chat", "--model", "test/model", "--alone"]).unwrap();
    assert_eq!(daemon.status()["sessions"].as_array().unwrap().len(), 2);
    alone.keys("\u{4}");
    assert_eq!(alone.end().0, 0);
}

#[test]
fn what_is_revealed_or_pinned_is_for_one_session_and_not_for_the_next_one() {
    for is_beneath in [false, true] {
        let stage = Stage::new(&[(".env", "PASSPHRASE=swordfish\n")]);
        let look = || Reply::calls([("c1", "command_run", json!({ "command": "cat .env" }))]);
        let model = stage.model(vec![look(), Reply::text("one"), look(), Reply::text("two")]);
        let _daemon = is_beneath.then(|| Daemon::start(&stage));
        let options = ["--approve", "never", "--reveal", ".env", "--pin", "of the first alone"];
        let Some(mut terminal) = chat(&stage, &[&CHAT[..], &options].concat()) else { return };
        terminal.keys("look\r");
        terminal.wait_for_in_turn(&["one", "done in"]);
        terminal.keys("/clear\r");
        terminal.wait_for_in_turn(&["were for the session before", "› "]);
        terminal.keys("look again\r");
        terminal.wait_for_in_turn(&["two", "done in"]);
        terminal.keys("\u{4}");
        assert_eq!(terminal.end().0, 0);
        let said: Vec<String> = model.requests().into_iter().map(|request| request.body).collect();
        let has =
            |number: usize| ["swordfish", "of the first alone"].map(|words| said[number].contains(words));
        assert_eq!(has(1), [true, true], "the control: {is_beneath}");
        assert_eq!(has(3), [false, false], "{is_beneath}: {}", said[3]);
    }
}

/// The process of before had heard something else, and went on with that.
#[test]
fn who_comes_back_to_a_session_that_is_there_is_heard_or_refused() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let _model = stage.model(vec![Reply::text("one"), Reply::text("two")]);
    let daemon = Daemon::start(&stage);
    let Some(mut terminal) = chat(&stage, &CHAT) else { return };
    terminal.keys("first\r");
    terminal.wait_for_in_turn(&["one", "done in"]);
    let running = daemon.wait("the session", |it| it["clients"] == 1);
    let session = running["session"].as_str().unwrap();
    let again = ["chat", "--resume", session, "--tokens", "1"];
    let refused = stage.ran(&again);
    assert!(refused.code == Some(1) && refused.stderr.contains("only when it begins"), "{refused:?}");
    terminal.keys("\u{4}");
    assert_eq!(terminal.end().0, 0);
    daemon.wait("nobody", |it| it["clients"] == 0);
    let mut bounded = chat(&stage, &again).unwrap();
    bounded.keys("second\r");
    bounded.wait_for("the budget of the session is 1 tokens");
    bounded.keys("\u{4}");
    bounded.end();
    // The control: who says nothing of it comes to the process that is there.
    let pid = daemon.wait("nobody", |it| it["clients"] == 0)["pid"].clone();
    let mut other = chat(&stage, &["chat", "--resume", session]).unwrap();
    assert_eq!(daemon.wait("somebody", |it| it["clients"] == 1)["pid"], pid);
    other.keys("\u{4}");
    other.end();
}

/// A home on a file system of 64 MiB, until this is dropped.
struct Small<'a>(&'a Stage);

impl<'a> Small<'a> {
    fn home(stage: &'a Stage) -> Option<Self> {
        fs::create_dir_all(stage.home()).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64m,mode=700", "none"])
            .arg(stage.home())
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            println!("SKIPPED: no small file system can be mounted here");
            return None;
        }
        Some(Self(stage))
    }

    /// Leaves no room in it; the file that takes it all.
    fn fill(&self) -> std::path::PathBuf {
        let filler = self.0.home().join("filler");
        let mut file = File::create(&filler).unwrap();
        while file.write_all(&[7; 4096]).is_ok() {}
        filler
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.0.home()).status();
        assert!(unmounted.is_ok_and(|status| status.success()) || thread::panicking());
    }
}

/// Each needs room itself, and one of them makes some.
#[test]
fn everything_is_stopped_and_a_session_removed_also_where_the_disk_is_full() {
    for is_reserved in [true, false] {
        let stage = Stage::new(&[("a.txt", "a\n")]);
        let Some(small) = Small::home(&stage) else { return };
        let (ran, _model) = stage.task(vec![Reply::text("before")], &[]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!stage.ran(&["status"]).stderr.contains("disk"), "the control: there is room");
        let session =
            stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
        let reserve = stage.home().join("reserve");
        assert_eq!(fs::metadata(&reserve).unwrap().len(), 1 << 20);
        if !is_reserved {
            // Of the same name and length, as a copy may be, and no room behind it.
            fs::write(&reserve, "").unwrap();
            fs::File::options().write(true).open(&reserve).unwrap().set_len(1 << 20).unwrap();
        }
        let filler = small.fill();
        let said = stage.ran(&["status"]).stderr;
        assert!(said.contains("the disk of this home is full"), "{said}");
        assert_eq!(said.contains("no space is kept for an emergency stop"), !is_reserved, "{said}");
        let ran = stage.ran(&["estop"]);
        assert_eq!((ran.code == Some(0), reserve.exists()), (is_reserved, false), "{ran:?}");
        assert_eq!(!stage.ran(&["--json", "status"]).lines()[0]["stopped"].is_null(), is_reserved);
        small.fill();
        let ran = stage.ran(&["sessions", "rm", &session, "--yes"]);
        assert_eq!(ran.code, Some(5), "what was kept is used up: {ran:?}");
        fs::remove_file(filler).unwrap();
        stage.ran(&["sessions", "list"]);
        assert!(reserve.exists(), "it is kept again");
        if !is_reserved {
            fs::remove_file(&reserve).unwrap();
        }
        small.fill();
        let ran = stage.ran(&["sessions", "rm", &session, "--yes"]);
        assert_eq!(ran.code == Some(0), is_reserved, "{ran:?}");
    }
}

#[test]
fn who_says_something_while_the_disk_is_full_hears_that_it_was_not_taken() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let Some(small) = Small::home(&stage) else { return };
    let _model = stage.model(vec![Reply::text("before"), Reply::text("after")]);
    {
        let _daemon = Daemon::start(&stage);
        let opened = open(&stage, &["-C", stage.project().to_str().unwrap()]);
        let socket = stage.home().join("daemon").join(opened["session"].as_str().unwrap());
        let mut session = BufReader::new(UnixStream::connect(socket).unwrap());
        session.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        let say = |session: &mut BufReader<UnixStream>, key: &str, until: &[&str]| {
            let line = json!({ "op": "say", "text": "hello", "key": key });
            session.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
            loop {
                let mut line = String::new();
                assert!(session.read_line(&mut line).unwrap() > 0, "the session ended");
                let event: Value = serde_json::from_str(&line).unwrap();
                if until.contains(&event["type"].as_str().unwrap()) {
                    return event;
                }
            }
        };
        assert_eq!(say(&mut session, "one", &["end"])["reason"], "answered");
        let filler = small.fill();
        let heard = say(&mut session, "two", &["accepted", "end", "failed"]);
        assert_eq!((heard["type"].clone(), heard["op"].clone()), (json!("failed"), json!("say")), "{heard}");
        assert!(heard["error"].as_str().unwrap().contains("space"), "{heard}");
        fs::remove_file(filler).unwrap();
        // Under the same name: it was not accepted, so it is not known.
        assert_eq!(say(&mut session, "two", &["end"])["reason"], "answered");
    }
}
