//! The emergency stop against whoever would keep it waiting, hide from it, or point it at somebody else.

use crate::{
    attacks::actor::controls,
    daemon::Daemon,
    stage::{Ran, Stage},
    terminal::Terminal,
};
use bailey_store::{Grade, Migration, Store};
use bailey_testkit::{Gate, Message, ModelServer, Reply};
use serde_json::{Value, json};
use std::{
    fs,
    io::Write as _,
    net::TcpListener,
    os::unix::{fs::PermissionsExt as _, process::ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(30);

/// A session whose command runs until it is ended.
struct Running {
    child: Child,
    folder: PathBuf,
    _model: ModelServer,
}

impl Running {
    /// The marker is in the command's own command line.
    fn start(stage: &Stage, marker: &str) -> Self {
        let command = json!({ "command": format!("exec sleep {marker}") });
        let model = stage.model(vec![Reply::calls([("c1", "command_run", command)])]);
        let mut run = stage.bailey(&["run", "--model", "test/model", "--approve", "never", "do it"]);
        let child = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until(|| lives(marker));
        let sessions = fs::read_dir(stage.home().join("sessions")).unwrap();
        let mut folders = sessions.map(|folder| folder.unwrap().path()).filter(|at| at.join("lock").exists());
        Self { child, folder: folders.next().unwrap(), _model: model }
    }

    fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A process of the test's own that agents have nothing to do with.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        Self(Command::new("sleep").arg("600").spawn().unwrap())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Whether a `sleep` with this word in its command line lives.
pub(crate) fn lives(marker: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines
        .into_iter()
        .any(|line| line.starts_with(b"sleep\0") && String::from_utf8_lossy(&line).contains(marker))
}

fn until(is_so: impl FnMut() -> bool) {
    assert!(comes(is_so), "it did not come");
}

fn comes(mut is_so: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while !is_so() {
        if begin.elapsed() > PATIENCE {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Ends with whether the process ended by itself in time.
fn ends(mut child: Child) -> bool {
    let is_over = comes(|| child.try_wait().unwrap().is_some());
    child.kill().ok();
    child.wait().unwrap();
    is_over
}

fn stop(mut command: Command) -> (Option<i32>, Value) {
    let output = command.output().unwrap();
    let line = String::from_utf8_lossy(&output.stdout)
        .lines()
        .next()
        .map(|line| serde_json::from_str(line).unwrap());
    println!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), line.unwrap_or_default())
}

const STOP: [&str; 2] = ["--json", "estop"];

/// The same stop by a program that believes what a lock says.
fn by_hearsay(stage: &Stage) -> Command {
    let estop = stage.bailey(&STOP);
    let mut command = Command::new(controls());
    command.args(estop.get_args()).env("BAILEY_CONTROL_HEARSAY", "1");
    command
}

/// Holds the journal for itself, as a process does that was stopped while it wrote, until `what` is over.
fn hold_journal(home: &Path, what: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    let path = home.join("journal.db");
    let (sender, held) = mpsc::channel();
    let holder = thread::spawn(move || {
        let version = Migration { version: bailey_journal::SCHEMA_VERSION, sql: "" };
        let store = Store::open(&path, &[version]).unwrap();
        let written = store.write_blocking(Grade::Full, move |_| {
            sender.send(()).unwrap();
            what();
            Ok(())
        });
        written.unwrap();
    });
    held.recv().unwrap();
    holder
}

/// The sessions end while the bar still waits for the journal, and so does what begins meanwhile.
#[test]
fn a_stop_ends_what_runs_and_what_begins_while_the_journal_is_held() {
    let stage = Stage::new(&[]);
    let mut running = Running::start(&stage, "98741");
    let late = stage.home().join("sessions/late");
    fs::create_dir(&late).unwrap();
    let child = std::mem::replace(&mut running.child, Command::new("true").spawn().unwrap());
    let (sender, over) = mpsc::channel();
    let holder = hold_journal(&stage.home(), move || {
        let is_ended = ends(child);
        // It takes the place of a session's process, and keeps its number.
        let newcomer =
            Command::new("flock").args(["--no-fork", "lock", "sleep", "600"]).current_dir(&late).spawn();
        sender.send((is_ended, ends(newcomer.unwrap()))).unwrap();
    });
    let (code, report) = stop(stage.bailey(&STOP));
    assert_eq!(over.recv().unwrap(), (true, true), "each is ended while the journal is held: {report}");
    holder.join().unwrap();
    assert_eq!((code, &report["barred"], &report["ended"]), (Some(0), &json!(true), &json!(2)), "{report}");
    until(|| !lives("98741"));
    let refused = stage.ran(&["sandbox", "run", "--", "true"]);
    assert!(refused.stderr.contains("bailey estop --release"), "the bar stands: {refused:?}");
}

#[test]
fn what_runs_is_ended_where_the_journal_cannot_be_written() {
    let stage = Stage::new(&[]);
    let mut running = Running::start(&stage, "98742");
    for name in ["journal.db", "journal.db-wal", "journal.db-shm"] {
        fs::rename(stage.home().join(name), stage.home().join(format!("aside-{name}"))).unwrap();
    }
    fs::write(stage.home().join("journal.db"), "no journal, but longer than nothing\n".repeat(200)).unwrap();
    let (code, report) = stop(stage.bailey(&STOP));
    assert_eq!(
        (&report["barred"], &report["ended"], &report["left"]),
        (&json!(false), &json!(1), &json!([]))
    );
    assert!(code.is_some_and(|code| code != 0), "that nothing bars is no success: {code:?}");
    assert!(running.is_over());
    until(|| !lives("98742"));
}

/// Whoever took the main process over can write what its lock says.
#[test]
fn a_broken_configuration_keeps_nothing_from_being_stopped() {
    let stage = Stage::new(&[]);
    let _running = Running::start(&stage, "98748");
    let config = stage.home().join("config.toml");
    let whole = fs::read_to_string(&config).unwrap();
    fs::write(&config, "[limits\n").unwrap();
    let ran = stage.ran(&["--json", "estop", "--reason", "a key may stand here"]);
    let (told, said) = (&ran.lines()[0], &ran.stderr);
    assert!(ran.code == Some(0) && told["barred"] == true && told["ended"] == 1, "{ran:?}");
    assert!(said.contains("config.toml") && said.contains("stopped anyway"), "{ran:?}");
    fs::write(&config, whole).unwrap();
    let next = stage.ran(&["run", "--model", "test/model", "--approve", "never", "do it"]);
    assert!(next.code != Some(0) && next.stderr.contains("stopped"), "{next:?}");
    assert!(!stage.ran(&["audit", "export"]).stdout.contains("a key may stand here"));
}

/// What is stopped is signed at once: whoever takes the journal away, of a home that had signed nothing, does
/// not take the stop along.
#[test]
fn a_stop_outlives_its_journal_also_where_nothing_was_signed_before() {
    for is_signed in [true, false] {
        let stage = Stage::new(&[]);
        fs::create_dir_all(stage.home()).unwrap();
        let stopped = stage.ran(&STOP);
        assert_eq!(stopped.code, Some(0), "{stopped:?}");
        if !is_signed {
            fs::remove_file(stage.home().join("journal.key")).unwrap();
        }
        for end in ["", "-wal", "-shm"] {
            fs::remove_file(stage.home().join(format!("journal.db{end}"))).ok();
        }
        let ran = stage.ran(&["sandbox", "run", "--", "echo", "it ran"]);
        let (is_refused, is_run) =
            (ran.stderr.contains("bailey estop --release"), ran.stdout.contains("it ran"));
        assert_eq!(
            (is_refused, is_run),
            (is_signed, !is_signed),
            "without a signature is the control: {ran:?}"
        );
    }
}

/// Whoever keeps the key while what runs is ended has let go of it then.
#[test]
fn a_stop_that_could_not_be_written_is_tried_once_more_behind_what_ended() {
    for is_let_go in [true, false] {
        let stage = Stage::new(&[]);
        assert_eq!(stage.ran(&["sandbox", "run", "--", "true"]).code, Some(0));
        let key = fs::File::open(stage.home().join("journal.key")).unwrap();
        key.lock().unwrap();
        let stop = stage.bailey(&STOP).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // One try takes ten seconds.
        thread::sleep(Duration::from_secs(13));
        if is_let_go {
            key.unlock().unwrap();
        }
        let stopped = Ran::of(stop.wait_with_output().unwrap());
        let code = if is_let_go { 0 } else { 5 };
        assert_eq!(stopped.code, Some(code), "that it is kept is the control: {stopped:?}");
        let told = &stopped.lines()[0];
        let says = (told["barred"].as_bool(), told["signed"].as_bool());
        assert_eq!(says, (Some(is_let_go), Some(is_let_go)), "{told}");
    }
}

#[test]
fn whoever_looks_on_at_a_task_of_the_daemons_hears_that_everything_was_stopped() {
    for (words, message) in [(&["run", "take your time"][..], ""), (&["chat"], "take your time\n")] {
        let stage = Stage::new(&[]);
        let gate = Gate::default();
        let model = stage.model(vec![Reply::Held(gate.clone(), Message::text("never said"))]);
        let _daemon = Daemon::start(&stage);
        let mut looking = stage.bailey(words);
        looking.args(["--model", "test/model"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut looking = looking.stderr(Stdio::piped()).spawn().unwrap();
        let mut input = looking.stdin.take().unwrap();
        input.write_all(message.as_bytes()).unwrap();
        // Who runs a task reads no more, and who talks is still there.
        let input = (!message.is_empty()).then_some(input);
        model.wait_for(1);
        assert_eq!(stage.ran(&STOP).code, Some(0));
        let ended = looking.wait_with_output().unwrap();
        gate.open();
        drop(input);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(
            said.contains("everything was stopped (") && said.contains("bailey estop --release"),
            "{words:?}: {said}"
        );
        assert_eq!(ended.status.code(), Some(3), "{words:?}: {said}");
    }
}

#[test]
fn a_lock_that_says_something_else_hides_nobody_from_a_stop() {
    for text in
        ["", "garbage \u{1b}[2J", "{\"pid\":4194300,\"since\":\"2026-01-02T03:04:05Z\",\"command\":\"x\"}"]
    {
        let stage = Stage::new(&[]);
        let mut running = Running::start(&stage, "98743");
        fs::write(running.folder.join("lock"), text).unwrap();
        let (code, _) = stop(by_hearsay(&stage));
        assert!(
            !running.is_over() && code == Some(1),
            "the control: by its word alone it is not found, {code:?}"
        );
        let (code, report) = stop(stage.bailey(&STOP));
        assert_eq!((code, &report["ended"], &report["left"]), (Some(0), &json!(1), &json!([])), "{text}");
        assert!(running.is_over());
    }
}

#[test]
fn a_lock_that_names_another_process_does_not_have_that_one_killed() {
    for is_believed in [false, true] {
        let stage = Stage::new(&[]);
        let mut running = Running::start(&stage, "98744");
        let mut sleeper = Sleeper::start();
        let lock = running.folder.join("lock");
        let mut says: Value = serde_json::from_slice(&fs::read(&lock).unwrap()).unwrap();
        assert_eq!(says["pid"], running.child.id());
        says["pid"] = sleeper.0.id().into();
        fs::write(&lock, says.to_string()).unwrap();
        let (code, report) = stop(if is_believed { by_hearsay(&stage) } else { stage.bailey(&STOP) });
        if is_believed {
            until(|| sleeper.0.try_wait().unwrap().is_some());
            assert!(!running.is_over(), "the control: by its word the wrong one is killed");
        } else {
            assert_eq!((code, &report["ended"], &report["left"]), (Some(0), &json!(1), &json!([])));
            assert!(running.is_over());
            assert!(sleeper.0.try_wait().unwrap().is_none());
        }
    }
}

/// From another pid namespace the kernel names nobody: that is said, and is no success.
#[test]
fn who_cannot_be_named_is_told_as_left() {
    let stage = Stage::new(&[]);
    let mut running = Running::start(&stage, "98745");
    let estop = stage.bailey(&STOP);
    let mut elsewhere = Command::new("unshare");
    elsewhere.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]);
    elsewhere.current_dir(stage.project());
    if !elsewhere.arg("true").status().is_ok_and(|status| status.success()) {
        return println!("SKIPPED: no namespaces here");
    }
    let mut elsewhere = Command::new("unshare");
    elsewhere.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]);
    elsewhere.arg(estop.get_program()).args(estop.get_args()).current_dir(stage.project());
    let (code, report) = stop(elsewhere);
    assert_eq!((code, &report["barred"], &report["ended"]), (Some(1), &json!(true), &json!(0)), "{report}");
    let folder = fs::canonicalize(&running.folder).unwrap();
    assert_eq!(report["left"], json!([{ "folder": folder, "process": null, "says": null }]));
    assert!(!running.is_over());
    let (code, report) = stop(stage.bailey(&STOP));
    assert_eq!((code, &report["ended"]), (Some(0), &json!(1)), "the control: where it is named it is ended");
    assert!(running.is_over());
}

/// A client of providers runs no session, and what it asks is under way.
#[test]
fn who_asks_a_provider_without_a_session_is_ended_too() {
    let stage = Stage::new(&[]);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let config = format!("[providers.test]\nwire = \"anthropic\"\nbase_url = \"http://{address}\"\n");
    fs::create_dir_all(stage.home()).unwrap();
    fs::write(stage.home().join("config.toml"), config).unwrap();
    let mut models = stage.bailey(&["models"]);
    let mut models = models.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let _asked = silent.accept().unwrap();
    // It would give up by itself after a while; stopped, it does not.
    signal("-STOP", &models);
    let (code, report) = stop(stage.bailey(&STOP));
    assert_eq!((code, &report["ended"], &report["left"]), (Some(0), &json!(1), &json!([])), "{report}");
    let ended = models.wait().unwrap().signal();
    assert!(ended.is_some_and(|signal| [9, 15].contains(&signal)), "{ended:?}");
    let (code, report) = stop(stage.bailey(&STOP));
    assert_eq!((code, &report["ended"]), (Some(0), &json!(0)), "the control: without it nobody is there");
}

fn signal(signal: &str, process: &Child) {
    assert!(Command::new("kill").args([signal, &process.id().to_string()]).status().unwrap().success());
}

/// The programs that tell of questions, and orders for more of them, end with whoever asked.
#[test]
fn what_tells_of_a_question_ends_with_its_asker() {
    let stage = Stage::new(&[]);
    let (program, began) = (stage.folder().join("tell"), stage.folder().join("began"));
    let script = format!("#!/bin/sh\necho $1 >> {}\nsleep 98746; sleep 98746\n", began.display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let step = |after: u32| {
        let program = program.display();
        format!(
            "[[approvals.escalation]]\nafter_seconds = {after}\nnotify = [\"{program}\", \"step-{after}\"]\n"
        )
    };
    fs::create_dir_all(stage.home()).unwrap();
    let config = format!("[approvals]\nreview = \"before-execute\"\n{}{}", step(1), step(2));
    fs::write(stage.home().join("config.toml"), config).unwrap();
    let call = Reply::calls([("c1", "command_run", json!({ "command": "true" }))]);
    let _model = stage.model_beside(vec![call]);
    let Some(mut terminal) = Terminal::start(&stage, &["run", "--model", "test/model", "do it"]) else {
        return;
    };
    terminal.wait_for("[n]o or");
    until(|| lives("98746"));
    // The second order waits in the pipe: the first program takes long.
    until(|| stage.trail().iter().filter(|entry| entry["type"] == "escalated").count() == 2);
    let notifier =
        children(terminal.process()).into_iter().find(|child| words(*child).contains("__notifier")).unwrap();
    assert!(lives("98746"), "the control: while somebody waits for an answer it goes on");
    let (code, report) = stop(stage.bailey(&STOP));
    assert_eq!((code, &report["ended"]), (Some(0), &json!(1)), "{report}");
    until(|| words(notifier).is_empty());
    until(|| !lives("98746"));
    assert_eq!(fs::read_to_string(&began).unwrap(), "step-1\n", "the second never began");
    terminal.close();
}

fn children(process: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap();
    children.split_whitespace().map(|child| child.parse().unwrap()).collect()
}

/// A process's command line; nothing of one that has ended.
fn words(process: u32) -> String {
    fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default()
}
