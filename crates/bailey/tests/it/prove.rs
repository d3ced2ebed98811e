//! `bailey prove`: every line is tried here and holds, nothing of the owner's is touched, and what is broken
//! is noticed.

use crate::{
    attacks::actor::controls,
    stage::{Ran, Stage},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
};

/// What these kernels may lack, or be set not to do, outside of the walls as well.
const MAY_LACK: &[&str] = &[
    "network.route",
    "call.namespace",
    "call.mount",
    "call.root",
    "call.bpf",
    "call.keyring",
    "call.io_uring",
    "call.userfault",
    "process.trace",
];

/// Bailey over this home, with temporary files in a folder of the test's own.
fn prove(program: &Path, stage: &Stage, lines: &[&str]) -> Command {
    let temporary = stage.folder().join("tmp");
    fs::create_dir_all(&temporary).unwrap();
    let mut command = Command::new(program);
    command.args(["--json", "--home"]).arg(stage.home()).arg("prove").args(lines);
    command.env("TMPDIR", temporary).env("ONLY_OF_THE_HOST", "1").env_remove("BAILEY_HOME");
    command
}

/// The lines that were tried, without the claims that no line tries.
fn tried(ran: &Ran) -> Vec<Value> {
    ran.lines().into_iter().filter(|line| line["verdict"] != "elsewhere").collect()
}

fn verdicts(ran: &Ran) -> BTreeMap<String, String> {
    let text = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    tried(ran).iter().map(|line| (text(line, "line"), text(line, "verdict"))).collect()
}

/// Every file below a directory, with what it holds and its mode.
fn tree(dir: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let about = fs::symlink_metadata(&path).unwrap();
            let bytes = if about.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            found.insert(path.display().to_string(), (about.permissions().mode(), bytes));
            if about.is_dir() {
                dirs.push(path);
            }
        }
    }
    found
}

#[test]
fn everything_holds_here_and_nothing_of_the_owner_is_touched() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    assert_eq!(stage.ran(&["init"]).code, Some(0));
    fs::create_dir_all(stage.folder().join("user")).unwrap();
    fs::write(stage.folder().join("user/notes.txt"), "mine\n").unwrap();
    let parts = ["home", "user", "project"].map(|part| stage.folder().join(part));
    let before: Vec<_> = parts.iter().map(|part| tree(part)).collect();
    let mut command = prove(Path::new(env!("CARGO_BIN_EXE_bailey")), &stage, &[]);
    let ran = Ran::of(command.env("HOME", stage.folder().join("user")).output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let elsewhere = ran.lines().len() - tried(&ran).len();
    assert!(elsewhere > 40, "what is not tried is named: {ran:?}");
    for line in tried(&ran) {
        let (name, verdict) = (line["line"].as_str().unwrap(), line["verdict"].as_str().unwrap());
        println!("{verdict}: {name}: {} (control: {})", line["because"], line["control"]);
        let may_lack = MAY_LACK.contains(&name) && verdict == "untried";
        assert!(verdict == "held" || may_lack, "{line}");
    }
    assert!(verdicts(&ran).len() >= 53, "{ran:?}");
    let after: Vec<_> = parts.iter().map(|part| tree(part)).collect();
    assert!(before == after, "something of the owner's was changed");
    nothing_is_left(&stage);
}

/// The control of all of it: with a wall away the lines that it holds are NOT HELD, and the exit code says
/// so.
#[test]
fn a_missing_wall_is_noticed() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let lines = ["call", "network.loopback"];
    let without = |walls| {
        let mut command = prove(controls(), &stage, &lines);
        command.env("BAILEY_CONTROL_WITHOUT", walls).env("BAILEY_CONTROL_ACCEPT", "1");
        Ran::of(command.output().unwrap())
    };
    let ran = without("net_namespace");
    assert_eq!((ran.code, verdicts(&ran)["network.loopback"].as_str()), (Some(1), "not_held"), "{ran:?}");
    assert!(verdicts(&ran).values().filter(|verdict| *verdict == "not_held").count() == 1, "{ran:?}");
    let ran = without("");
    assert_eq!((ran.code, verdicts(&ran)["network.loopback"].as_str()), (Some(0), "held"), "{ran:?}");
}

/// Where a wall is missing and nothing runs, nothing is shown, and nothing is said to hold, by the exit code
/// neither.
#[test]
fn what_could_not_be_tried_is_not_said_to_hold() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let mut command = prove(controls(), &stage, &["home", "outside"]);
    let ran = Ran::of(command.env("BAILEY_CONTROL_WITHOUT", "seccomp").output().unwrap());
    assert!(ran.code == Some(1) && ran.stderr.contains("no line could be tried"), "{ran:?}");
    let lines = ran.lines();
    assert!(lines.len() == 4 && lines.iter().all(|line| line["verdict"] == "untried"), "{ran:?}");
    assert!(lines[0]["because"].as_str().unwrap().contains("seccomp"), "{ran:?}");
}

/// Names what is, where something is.
fn nothing_is_left(stage: &Stage) {
    let left: Vec<String> = tree(&stage.folder().join("tmp")).into_keys().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Whoever ends it by a signal finds nothing left: neither the place nor a planted process.
#[test]
fn an_end_by_a_signal_leaves_nothing() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let mut command = prove(Path::new(env!("CARGO_BIN_EXE_bailey")), &stage, &[]);
    let mut running = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(running.stdout.take().unwrap());
    let mut first = String::new();
    said.read_line(&mut first).unwrap();
    assert!(
        first.contains("home.key") && !tree(&stage.folder().join("tmp")).is_empty(),
        "the control: {first}"
    );
    kill_process(Pid::from_child(&running), Signal::TERM).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(143));
    nothing_is_left(&stage);
}

/// Whoever has seen enough, as `head` has, ends it as a signal does.
#[test]
fn a_reader_that_goes_away_leaves_nothing() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let mut command = prove(Path::new(env!("CARGO_BIN_EXE_bailey")), &stage, &["home"]);
    let mut running = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(running.stdout.take().unwrap());
    let mut first = String::new();
    said.read_line(&mut first).unwrap();
    drop(said);
    assert_eq!(running.wait().unwrap().code(), Some(141), "{first}");
    nothing_is_left(&stage);
}

#[test]
fn a_line_that_is_not_there_is_named_with_those_that_are() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let ran = stage.ran(&["prove", "nonsense"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("`nonsense`") && ran.stderr.contains("home.key"), "{ran:?}");
}

/// What `cargo xtask prove` breaks on purpose is in `bailey-controls`, in which it finds these words: no
/// other program has them.
#[test]
fn this_program_cannot_be_broken() {
    // An unoptimised search through so many bytes takes a minute.
    let has = |text: &str| {
        let mut grep = Command::new("grep");
        grep.args(["--quiet", "--text", "--fixed-strings", "--", text, env!("CARGO_BIN_EXE_bailey")]);
        let code = grep.env("LC_ALL", "C").status().unwrap().code();
        assert!(matches!(code, Some(0 | 1)), "{code:?}");
        code == Some(0)
    };
    for word in ["BAILEY_BREAK", "single_use", "named_files", "rules_in_force", "token_chain", "token_ledger"]
    {
        assert!(!has(word), "{word}");
    }
    assert!(has("BAILEY_HOME"), "the control: a variable that the program does know is found");
}
