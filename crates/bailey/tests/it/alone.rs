//! A home has one daemon, which acts in that home alone, and which its owner can always end.

use crate::{
    daemon::{Daemon, PATIENCE, end, open, pid},
    stage::{Ran, Stage},
};
use bailey_testkit::{Gate, Message, Reply};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Longer than whoever wants to be the daemon waits for one that ends.
const LATER: Duration = Duration::from_millis(1500);

fn is_there(pid: u64) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} did not come");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Says a line at the daemon's socket, and hears one.
fn said(home: &Path, line: &Value) -> String {
    let mut stream = UnixStream::connect(home.join("daemon/socket")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    writeln!(stream, "{line}").unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    answer
}

/// The one that came too late waited for the end of the other, and was the daemon after a `stop`.
#[test]
fn of_two_starts_at_once_no_daemon_is_left_after_a_stop() {
    let stage = Stage::new(&[]);
    for _ in 0..3 {
        let start = || stage.bailey(&["start"]).stderr(Stdio::piped()).spawn().unwrap();
        let both = [start(), start(), start()].map(|it| Ran::of(it.wait_with_output().unwrap()));
        assert!(both.iter().all(|ran| ran.code == Some(0)), "{both:?}");
        let up = |says: &str| both.iter().filter(|ran| ran.stderr.contains(says)).count();
        assert_eq!((up("is up"), up("runs already")), (1, 2), "{both:?}");
        assert_eq!(stage.ran(&["stop"]).code, Some(0));
        thread::sleep(LATER);
        let status = stage.ran(&["status"]);
        assert_eq!(status.code, Some(1), "{status:?}");
    }
}

/// Whoever takes the folder of a daemon away, as one who wants its socket gone, has it end, which the file
/// says, but where another daemon came, whose file it is then.
#[test]
fn a_daemon_whose_folder_was_taken_away_says_nothing_over_the_next_one() {
    for is_followed in [true, false] {
        let stage = Stage::new(&[]);
        let mut first = stage.bailey(&["start", "--foreground"]).stderr(Stdio::null()).spawn().unwrap();
        until("the daemon", || stage.ran(&["status"]).code == Some(0));
        let told = || -> Value {
            serde_json::from_slice(&fs::read(stage.home().join("health.json")).unwrap()).unwrap()
        };
        until("the first one's file", || told()["state"] == "up");
        fs::remove_dir_all(stage.home().join("daemon")).unwrap();
        // It may be made anew by one that does not come to be a daemon.
        fs::create_dir(stage.home().join("daemon")).unwrap();
        let second = is_followed.then(|| Daemon::start(&stage));
        let its = stage.ran(&["--json", "status"]).lines().remove(0);
        let is_its = || told()["pid"] == its["pid"] && told()["state"] == "up";
        if is_followed {
            until("the second one's file", is_its);
        }
        assert!(!first.wait().unwrap().success());
        assert_eq!((is_its(), told()["state"] == "stopped"), (is_followed, !is_followed), "{}", told());
        drop(second);
        assert_eq!(told()["state"], "stopped");
    }
}

/// A daemon whose home is not where it was does nothing in whatever came to that place, and ends; its
/// sessions go on where the home is.
#[test]
fn a_home_that_moves_beneath_its_daemon_takes_it_along() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let gate = Gate::default();
    let model =
        stage.model(vec![Reply::Held(gate.clone(), Message::text("never said")), Reply::text("at last")]);
    let mut first = stage.bailey(&["start", "--foreground"]).stderr(Stdio::null()).spawn().unwrap();
    until("the daemon", || stage.ran(&["status"]).code == Some(0));
    let opened = open(&stage, &[]);
    let session = opened["session"].as_str().unwrap();
    let mut stream = UnixStream::connect(stage.home().join("daemon").join(session)).unwrap();
    writeln!(stream, "{}", json!({ "op": "say", "text": "do it" })).unwrap();
    model.wait_for(1);

    let moved = stage.folder().join("moved");
    fs::rename(stage.home(), &moved).unwrap();
    // Another home comes to its place, with a task that is due.
    let config = fs::read_to_string(moved.join("config.toml")).unwrap();
    fs::create_dir_all(stage.home()).unwrap();
    fs::write(stage.home().join("config.toml"), config).unwrap();
    let added = stage.ran(&["schedule", "add", "each", "--cron", "* * * * *", "do something else"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let there =
        || -> Vec<_> { fs::read_dir(stage.home()).unwrap().map(|it| it.unwrap().file_name()).collect() };
    let before = (fs::read_to_string(stage.home().join("schedules.json")).unwrap(), there());
    let wanted = json!({ "v": 1, "ask": "open", "directory": stage.project(), "words": [], "again": [], "session": null });
    for asked in [wanted, json!({ "v": 1, "ask": "reload" }), json!({ "v": 1, "ask": "link" })] {
        let refused = said(&moved, &asked);
        assert!(refused.contains("the home was moved or removed"), "{refused}");
    }
    end(first.id().into(), "-HUP");
    // Whoever keeps it up is told that no other start mends it: one would be the daemon of the home that lies
    // there now.
    assert_eq!(first.wait().unwrap().code(), Some(2));
    assert_eq!((fs::read_to_string(stage.home().join("schedules.json")).unwrap(), there()), before);
    let log = fs::read_to_string(moved.join("daemon/log")).unwrap();
    assert!(log.contains("home_gone") && log.contains("start it again where it is now"), "{log}");
    assert!(!log.contains("reloaded"), "nothing was read there: {log}");
    let health: Value = serde_json::from_slice(&fs::read(moved.join("health.json")).unwrap()).unwrap();
    assert_eq!(
        health["state"], "stopped",
        "whoever looks after the home hears of the end where the home is now"
    );

    // Where the home is now, its session goes on; and that a daemon stays in a home that stays is the
    // control.
    fs::remove_dir_all(stage.home()).unwrap();
    fs::rename(&moved, stage.home()).unwrap();
    let again = Daemon::start(&stage);
    model.wait_for(2);
    again.wait("the turn's end", |it| it["working"] == false);
    gate.open();
    thread::sleep(Duration::from_secs(12));
    assert_eq!(stage.ran(&["status"]).code, Some(0));
}

/// That none runs was said of one whose socket was removed, and a start was refused all the same.
#[test]
fn a_daemon_that_cannot_be_asked_is_named() {
    let stage = Stage::new(&[]);
    let daemon = Daemon::start(&stage);
    let process = pid(&daemon.status());
    let copy = stage.folder().join("copy").display().to_string();
    let copied = stage.ran(&["backup", &copy]);
    assert_eq!(copied.code, Some(0), "{copied:?}");
    // One that says nothing at all holds nobody up.
    end(process, "-STOP");
    let ran = stage.ran(&["status"]);
    end(process, "-CONT");
    let kill = format!("to end it: kill -KILL {process}");
    assert!(ran.code == Some(1) && ran.stderr.contains(&kill), "{ran:?}");
    assert_eq!(stage.ran(&["status"]).code, Some(0), "the control");

    fs::remove_file(stage.home().join("daemon/socket")).unwrap();
    for words in ["stop", "status", "reload"] {
        let ran = stage.ran(&[words]);
        let kill = format!("to end it: kill {process}");
        assert!(ran.code == Some(1) && ran.stderr.contains(&kill), "{words}: {ran:?}");
    }
    // Nor is its home exchanged beneath it.
    let restored = stage.ran(&["restore", "--yes", &copy]);
    let used = format!("its daemon, process {process}");
    assert!(restored.code == Some(1) && restored.stderr.contains(&used), "{restored:?}");
    end(process, "-TERM");
    until("its end", || !is_there(process));
    // The control.
    assert!(stage.ran(&["stop"]).stderr.contains("no daemon of this home runs"));
    assert_eq!(stage.ran(&["restore", "--yes", &copy]).code, Some(0), "the control");
    std::mem::forget(daemon);
}

/// What `stop` was told to do where the daemon is of another version was refused, as of another version.
#[test]
fn another_version_is_told_so_and_can_end_the_daemon() {
    let stage = Stage::new(&[]);
    let daemon = Daemon::start(&stage);
    let process = pid(&daemon.status());
    for ask in ["status", "something_new"] {
        let told = said(&stage.home(), &json!({ "v": 2, "ask": ask }));
        assert!(told.contains("has another version than this program"), "{ask}: {told}");
    }
    assert!(is_there(process));
    let told = said(&stage.home(), &json!({ "v": 2, "ask": "stop", "patience": { "seconds": 0 } }));
    assert!(told.contains("stopping"), "{told}");
    until("its end", || !is_there(process));
    std::mem::forget(daemon);
}

/// The processes that have ended and that nobody has reaped, of those whose parent is this one.
fn unreaped(parent: u64) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let stats = processes.filter_map(|it| fs::read_to_string(it.path().join("stat")).ok());
    let of_it = |stat: String| {
        let (_, rest) = stat.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        Some((fields.next()? == "Z", fields.next()?.parse::<u64>().ok()?))
    };
    stats.filter_map(of_it).filter(|it| *it == (true, parent)).count()
}

/// In a container it may be the first process, to which all come that lost their parents.
#[test]
fn as_the_first_process_of_a_container_it_reaps_whoever_ends() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let _model = stage.model(Vec::new());
    let mut first = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        first.args(["--user", "--map-root-user"]);
    }
    first.args(["--pid", "--fork", "--kill-child", "--mount-proc", "--"]);
    let orphans = "for i in 1 2 3; do (sleep 0.5 & ); done; exec \"$@\"";
    let as_first = |script: &str, program: &std::ffi::OsStr| {
        let mut command = Command::new(first.get_program());
        command.args(first.get_args()).args(["sh", "-c", script, "sh"]).arg(program);
        command
    };
    if !as_first("exec true", "true".as_ref()).status().is_ok_and(|status| status.success()) {
        return println!("SKIPPED: no PID namespace can be made here");
    }
    let start = stage.bailey(&["start", "--foreground"]);
    let mut command = as_first(orphans, start.get_program());
    let mut held = command.args(start.get_args()).stderr(Stdio::null()).spawn().unwrap();
    until("the daemon", || stage.ran(&["status"]).code == Some(0));
    let child = fs::read_to_string(format!("/proc/{0}/task/{0}/children", held.id())).unwrap();
    let child: u64 = child.trim().parse().unwrap();
    until("the ends of those who lost their parents", || {
        thread::sleep(Duration::from_millis(600));
        unreaped(child) == 0
    });
    // What it is to hear it hears, and tells how the daemon ended.
    end(child, "-TERM");
    assert_eq!(held.wait().unwrap().code(), Some(0));

    // The control: whoever reaps nobody keeps them.
    let mut held = as_first(orphans, "sleep".as_ref()).arg("20").spawn().unwrap();
    thread::sleep(Duration::from_millis(1200));
    let child = fs::read_to_string(format!("/proc/{0}/task/{0}/children", held.id())).unwrap();
    assert_eq!(unreaped(child.trim().parse().unwrap()), 3);
    held.kill().unwrap();
    held.wait().unwrap();
}

#[test]
fn a_session_that_is_not_opened_leaves_no_socket() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let gate = Gate::default();
    let model = stage.model(vec![Reply::Held(gate.clone(), Message::text("done"))]);
    let mut alone = stage.bailey(&["--json", "run", "--alone", "--model", "test/model", "do it"]);
    let alone = alone.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    model.wait_for(1);
    let _daemon = Daemon::start(&stage);
    let session =
        stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
    let refused = open(&stage, &["--resume", &session]);
    assert!(refused["told"] == "refused", "{refused}");
    assert!(!stage.home().join("daemon").join(&session).exists());
    gate.open();
    let ran = Ran::of(alone.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // The control: one that is opened has it.
    assert_eq!(open(&stage, &["--resume", &session])["told"], "opened");
    assert!(stage.home().join("daemon").join(&session).exists());
}

#[test]
fn who_is_refused_again_and_again_does_not_fill_the_log() {
    let stage = Stage::new(&[]);
    let _daemon = Daemon::start(&stage);
    let socket = stage.home().join("daemon/socket");
    let many: Vec<UnixStream> = (0..200).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    until("as many as are served", || {
        said(&stage.home(), &json!({ "v": 1, "ask": "status" })).contains("try again")
    });
    drop(many);
    until("room", || stage.ran(&["status"]).code == Some(0));
    let log = stage.ran(&["--json", "logs", "-n", "1000"]).lines();
    let refused = log.iter().filter(|line| line["what"] == "refused").count();
    assert_eq!(refused, 1, "{log:?}");
}
