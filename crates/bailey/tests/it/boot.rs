//! What looks after the daemon: it starts it, begins it again, gives it up with its reasons, and lets it go.

use crate::{
    daemon::{Daemon, end},
    engine::{Engine, USER},
    stage::{Ran, Stage},
};
use bailey_testkit::{Gate, Message, Reply};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::{
        fs::{PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    path::Path,
    process::{Child, ChildStderr, Command, Stdio},
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(90);

/// The program, which is installed with the other one.
fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_bailey-boot"))
}

/// What `cargo install --path crates/bailey` installs: the programs of this package without features.
#[test]
fn one_install_brings_both_programs() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let package = metadata["packages"].as_array().unwrap().iter().find(|it| it["name"] == "bailey").unwrap();
    let programs = package["targets"].as_array().unwrap().iter().filter(|it| it["kind"][0] == "bin");
    let installed: Vec<&str> = programs
        .filter(|it| it.get("required-features").is_none())
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(installed, ["bailey", "bailey-boot"]);
    let bailey = Path::new(env!("CARGO_BIN_EXE_bailey"));
    assert_eq!(program().parent(), bailey.parent());
    for (program, name) in [(program(), "bailey-boot"), (bailey, "bailey")] {
        let asked = Command::new(program).arg("--version").output().unwrap();
        let said = [asked.stdout, asked.stderr].concat();
        assert!(asked.status.success() && said.starts_with(format!("{name} ").as_bytes()), "{name}");
    }
}

/// A running one, which is let go with the test.
pub(crate) struct Boot {
    child: Child,
    said: BufReader<ChildStderr>,
    heard: String,
}

impl Boot {
    pub(crate) fn start(stage: &Stage, options: &[&str]) -> Self {
        fs::create_dir_all(stage.home()).unwrap();
        Self::by(Command::new(program()), stage, options)
    }

    fn by(mut command: Command, stage: &Stage, options: &[&str]) -> Self {
        command.arg("--home").arg(stage.home()).args(options).env_remove("BAILEY_HOME");
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        Self { child, said, heard: String::new() }
    }

    /// The next line with these words.
    pub(crate) fn wait_for(&mut self, words: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "{words} was not said: {}", self.heard);
            self.heard += &line;
            if line.contains(words) {
                return line;
            }
        }
    }

    fn ended(&mut self) -> i32 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(Instant::now() < deadline, "it did not end: {}", self.heard);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Boot {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn status(stage: &Stage) -> Option<u64> {
    let status: Value = stage.ran(&["--json", "status"]).lines().remove(0);
    status["pid"].as_u64()
}

fn gone(stage: &Stage) {
    let deadline = Instant::now() + PATIENCE;
    while status(stage).is_some() {
        assert!(Instant::now() < deadline, "the daemon is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_killed_daemon_is_begun_again_and_one_that_is_let_go_ends() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let mut boot = Boot::start(&stage, &[]);
    boot.wait_for("the daemon is up (process ");
    let first = status(&stage).unwrap();
    end(first, "-KILL");
    boot.wait_for("it is begun again (1 of 3 in five minutes)");
    boot.wait_for("the daemon is up (process ");
    let second = status(&stage).unwrap();
    assert_ne!(first, second);
    // Whoever looks after it is killed: it hears that, and ends.
    boot.child.kill().unwrap();
    gone(&stage);
    // One that is told to end is not begun again.
    let mut boot = Boot::start(&stage, &[]);
    boot.wait_for("the daemon is up (process ");
    assert_eq!(stage.ran(&["stop"]).code, Some(0));
    boot.wait_for("has ended, as it was told to");
    assert_eq!(boot.ended(), 0);
}

#[test]
fn beside_another_daemon_none_is_started() {
    let stage = Stage::new(&[]);
    let daemon = Daemon::start(&stage);
    let first = status(&stage).unwrap();
    let mut boot = Boot::start(&stage, &[]);
    boot.wait_for("a daemon of this home runs already");
    assert_eq!(boot.ended(), 1);
    assert!(!boot.heard.contains("is up"), "{}", boot.heard);
    assert_eq!(status(&stage), Some(first));
    drop(daemon);
}

/// Both found no daemon, and only one of theirs can be it: the other one is told so, and not that its own
/// ended again and again.
#[test]
fn of_two_that_begin_at_once_one_leaves() {
    let stage = Stage::new(&[]);
    let [one, other] = [(); 2].map(|()| Boot::start(&stage, &[]));
    let (mut left, stayed) = {
        let deadline = Instant::now() + PATIENCE;
        let (mut one, mut other) = (one, other);
        loop {
            if one.child.try_wait().unwrap().is_some() {
                break (one, other);
            }
            (one, other) = (other, one);
            assert!(Instant::now() < deadline, "both stay: {} and {}", one.heard, other.heard);
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    left.wait_for("error: a daemon of this home runs already; to end it: bailey stop");
    assert_eq!(left.ended(), 1);
    assert!(!left.heard.contains("begun again"), "{}", left.heard);
    assert!(status(&stage).is_some());
    drop(stayed);
}

#[test]
fn what_no_restart_mends_is_said_at_once() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    fs::create_dir_all(stage.home()).unwrap();
    fs::write(stage.home().join("config.toml"), "colour = \"red\"\n").unwrap();
    let mut boot = Boot::start(&stage, &[]);
    boot.wait_for("no restart mends that");
    assert!(boot.heard.contains("colour"), "{}", boot.heard);
    assert_eq!(boot.ended(), 2);
    for (options, why) in [
        (&["--colour", "red"][..], "there is no option `colour`"),
        (&["--container", "x", "--engine", "/nowhere/docker"], "it cannot be tried"),
    ] {
        let mut boot = Boot::start(&stage, options);
        boot.wait_for(why);
        assert_eq!(boot.ended(), 2);
    }
    fs::write(stage.home().join("boot.conf"), "\ncontainer\n").unwrap();
    Boot::start(&stage, &[]).wait_for("boot.conf: line 2: `container` is not `name = value`");
}

#[test]
fn the_daemon_of_before_may_take_its_time_to_end() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let gate = Gate::default();
    let model = stage.model(vec![Reply::Held(gate.clone(), Message::text("it is done"))]);
    let mut before = Boot::start(&stage, &[]);
    before.wait_for("the daemon is up (process ");
    let first = status(&stage).unwrap();
    let mut run = stage.bailey(&["run", "--model", "test/model", "take your time"]);
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    model.wait_for(1);
    // Its daemon hears that, and waits for the turn.
    drop(before);
    let mut boot = Boot::start(&stage, &[]);
    boot.wait_for(&format!("the daemon (process {first}) is ending; waiting for its end"));
    // For longer than it would be begun again.
    std::thread::sleep(Duration::from_secs(20));
    assert_eq!(status(&stage), Some(first));
    assert!(!boot.heard.contains("is up (process "), "that is another one: {}", boot.heard);
    gate.open();
    boot.wait_for("the daemon is up (process ");
    let second = status(&stage).unwrap();
    assert!(boot.heard.contains(&format!("is up (process {second})")) && second != first, "{}", boot.heard);
    assert!(!boot.heard.contains("it is begun again"), "{}", boot.heard);
    run.wait().unwrap();
}

/// A program in the daemon's place, for ends that the real one has no reason for.
fn stand_in(stage: &Stage, script: &str) -> String {
    let path = stage.folder().join("bailey-stand-in");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn one_that_ends_again_and_again_is_given_up_with_its_reasons() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let program = stand_in(&stage, "echo the disk is on fire >&2; exit 1");
    let mut boot = Boot::start(&stage, &["--bailey", &program]);
    boot.wait_for("the daemon is given up: it ended 4 times in five minutes");
    boot.wait_for("the disk is on fire");
    boot.wait_for("bailey doctor");
    assert_eq!(boot.ended(), 1);
    assert_eq!(boot.heard.matches("it is begun again").count(), 3, "{}", boot.heard);
}

#[test]
fn one_that_does_not_answer_any_more_is_killed_and_begun_again() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let mut boot = Boot::start(&stage, &[]);
    boot.wait_for("the daemon is up (process ");
    let first = status(&stage).unwrap();
    // Stopped, it is there and answers nobody.
    end(first, "-STOP");
    boot.wait_for("it did not answer");
    boot.wait_for("the daemon is up (process ");
    assert_ne!(status(&stage), Some(first));
}

#[test]
fn in_a_container_the_walls_come_first() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    // What the engine is asked for, as it comes there; in this place the walls cannot stand.
    let engine = stand_in(
        &stage,
        "for word; do printf '%s\\n' \"$word\"; done; echo 'user namespaces: refused' >&2; exit 1",
    );
    let mut boot =
        Boot::start(&stage, &["--container", "bailey:1", "--engine", &engine, "--mount", "/srv/work"]);
    boot.wait_for("the walls cannot stand there, so nothing is started");
    boot.wait_for("user namespaces: refused");
    assert_eq!(boot.ended(), 2);
    let home = stage.home().display().to_string();
    for words in [
        "seccomp=unconfined",
        "apparmor=unconfined",
        "systempaths=unconfined",
        &format!("{home}:{home}"),
        "/srv/work:/srv/work",
        "\nTZ\n",
        "doctor",
    ] {
        assert!(boot.heard.contains(words), "{words}: {}", boot.heard);
    }
    // What it is o'clock is told as this machine has it.
    let has_zone = Path::new("/etc/localtime").exists();
    assert_eq!(boot.heard.contains("/etc/localtime:/etc/localtime:ro"), has_zone, "{}", boot.heard);
    // Where they can, that is said.
    let engine = stand_in(&stage, "exit 0");
    let mut boot = Boot::start(&stage, &["--container", "bailey:1", "--engine", &engine, "--check"]);
    boot.wait_for("the walls can stand; the daemon is: ");
    assert_eq!(boot.ended(), 0);
}

/// As the home's owner, who is no root: that is whom the daemon in the container hears.
fn as_owner(mut command: Command, stage: &Stage) -> Command {
    command.uid(USER).gid(USER).env("HOME", stage.folder()).current_dir(stage.project());
    command
}

fn give(place: &Path) {
    chown(place, Some(USER), Some(USER)).unwrap();
    for entry in fs::read_dir(place).into_iter().flatten() {
        give(&entry.unwrap().path());
    }
}

/// The processes of the daemon in the container, as this machine counts them.
fn inside(stage: &Stage) -> Option<u64> {
    let words = format!("bailey --home {} start", stage.home().display());
    let found = Command::new("pgrep").args(["--oldest", "--full", &format!("^{words}")]).output().unwrap();
    String::from_utf8_lossy(&found.stdout).trim().parse().ok()
}

#[test]
fn in_a_container_of_a_real_engine_the_daemon_works_and_without_the_options_it_is_not_started() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let Some(engine) = Engine::of(&stage) else { return };
    let run = Reply::calls([(
        "c1",
        "command_run",
        serde_json::json!({ "command": "echo two > a.txt; cat a.txt" }),
    )]);
    let _server = stage.model(vec![run, Reply::text("it says two")]);
    [stage.home(), stage.project()].iter().for_each(|place| give(place));
    let programs = Path::new(env!("CARGO_BIN_EXE_bailey")).parent().unwrap().display().to_string();
    let project = stage.project().display().to_string();
    // The image holds no programs: they are this machine's.
    let shown = [
        "--engine-option=--network=host".to_owned(),
        "--engine-option=--volume=/usr:/usr:ro".to_owned(),
        "--engine-option=--volume=/etc/alternatives:/etc/alternatives:ro".to_owned(),
        format!("--engine-option=--volume={programs}:{programs}:ro"),
        format!("--engine-option=--env=PATH={programs}:/usr/bin:/bin"),
    ];
    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    let of_container = ["--container", "walls", "--mount", &project];
    let boot = |engine_program: &str| {
        let options = [&of_container[..], &["--engine", engine_program], &shown].concat();
        Boot::by(as_owner(engine.command(&program().display().to_string()), &stage), &stage, &options)
    };

    // With the engine's own options a wall is missing, which is named, and nothing begins.
    let without = stand_in(
        &stage,
        "for word; do shift; case $word in seccomp=*|apparmor=*|systempaths=*) word=label=disable;; esac; set -- \"$@\" \"$word\"; done\n\
         exec /usr/bin/docker \"$@\"",
    );
    let mut refused = boot(&without);
    refused.wait_for("the walls cannot stand there, so nothing is started");
    refused.wait_for("a container with default options");
    assert_eq!(refused.ended(), 2, "{}", refused.heard);
    assert_eq!(inside(&stage), None);

    let mut boot = boot("/usr/bin/docker");
    boot.wait_for("the daemon is up (process ");
    let first = inside(&stage).expect("no daemon in a container");
    let ask = |words: &[&str]| Ran::of(as_owner(stage.bailey(words), &stage).output().unwrap());
    let ran = ask(&["run", "--model", "test/model", "--approve", "never", "do it"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("it says two"), "{ran:?}");
    assert_eq!(stage.read("a.txt"), "one\n", "what it wrote stays in its layer");
    let log = fs::read_to_string(stage.home().join("daemon/log")).unwrap();
    assert!(log.contains("\"opened\""), "the daemon ran it: {log}");
    let walls = ask(&["--json", "audit", "log", "-n", "1000"]).stdout;
    assert!(walls.contains("net_namespace"), "its command ran behind walls: {walls}");

    // Killed, it is begun again in a new container; let go, its container ends with it.
    end(first, "-KILL");
    boot.wait_for("it is begun again (1 of 3 in five minutes)");
    boot.wait_for("the daemon is up (process ");
    assert!(inside(&stage).is_some_and(|second| second != first));
    drop(boot);
    let deadline = Instant::now() + PATIENCE;
    while !engine.docker(&["ps", "--quiet"]).stdout.is_empty() {
        assert!(Instant::now() < deadline, "its container is still there");
        std::thread::sleep(Duration::from_millis(100));
    }
}
