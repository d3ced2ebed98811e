//! Workspaces made ready ahead: a task begins where a project's dependencies are loaded.

use crate::stage::{Ran, Stage};
use bailey_testkit::{ModelServer, Reply};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

/// Loads what git ignores, something of the private home, and many small files.
const LOAD: &str =
    "mkdir deps && cd deps && seq 20000 | xargs touch && echo loaded > dep && echo cached > ~/.dep";
const LOOK: &str = "cat deps/dep ~/.dep; ls deps | wc -l; echo more > new.txt";

fn stage() -> Stage {
    let stage = Stage::new(&[("package.json", "{}\n"), (".gitignore", "deps/\n")]);
    stage.git(&["init", "--quiet"]);
    stage
}

fn add(stage: &Stage, script: &str) -> Ran {
    stage.ran(&["prewarm", "add", "--", "sh", "-c", script])
}

fn listed(stage: &Stage) -> Vec<Value> {
    stage.ran(&["--json", "prewarm", "list"]).lines()
}

fn task(stage: &Stage, options: &[&str]) -> (Ran, ModelServer) {
    let look = Reply::calls([("c", "command_run", json!({ "command": LOOK }))]);
    stage.task(vec![look, Reply::text("done")], options)
}

#[test]
fn a_task_begins_where_a_command_has_loaded_what_it_needs() {
    let stage = stage();
    let ran = add(&stage, LOAD);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!stage.project().join("deps").exists(), "it stays in the layer");
    let ready = listed(&stage);
    assert_eq!((ready.len(), &ready[0]["stale"]), (1, &Value::Null), "{ready:?}");
    let begin = Instant::now();
    let (ran, _model) = task(&stage, &["--warm"]);
    println!(
        "a whole task over 20,000 files that were loaded before took {} ms",
        begin.elapsed().as_millis()
    );
    assert!(ran.results()[0].contains("loaded\ncached\n20001"), "{ran:?}");
    // What it changed is told; what was loaded is ignored by git, and is no change.
    let diff = ran.lines().into_iter().find(|event| event["type"] == "diff").unwrap();
    let files: Vec<&str> = diff["files"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(files, ["new.txt"], "{diff}");
    assert!(listed(&stage).is_empty(), "it is taken");

    // The controls: none is ready any more, and without one nothing is loaded.
    let (ran, _model) = task(&stage, &["--warm"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("bailey prewarm add"), "{ran:?}");
    let (ran, _model) = task(&stage, &[]);
    assert!(!ran.results()[0].contains("loaded"), "{ran:?}");
}

#[test]
fn what_was_loaded_for_other_manifests_is_stale_and_what_failed_is_not_ready() {
    let stage = stage();
    let ran = add(&stage, "exit 3");
    assert!(ran.code == Some(3) && ran.stderr.contains("not ready: the command failed"), "{ran:?}");
    let ran = stage.ran(&["prewarm", "add", "--network", "--", "true"]);
    assert!(ran.code == Some(3) && ran.stderr.contains("not ready: the command was not run"), "{ran:?}");
    assert!(ran.stderr.contains("`bailey prewarm add` asks nobody") && ran.stderr.contains("own-network"));
    assert!(listed(&stage).is_empty());
    assert_eq!(add(&stage, "true").code, Some(0));
    stage.write("package.json", "{ \"name\": \"other\" }\n");
    let why = listed(&stage)[0]["stale"].as_str().unwrap().to_owned();
    assert_eq!(why, "package.json changed since");
    let (ran, _model) = task(&stage, &["--warm"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("package.json changed since"), "{ran:?}");
    // The control: one that was made since is taken, and the stale one is left.
    assert_eq!(add(&stage, "true").code, Some(0));
    let (ran, _model) = task(&stage, &["--warm"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let left = listed(&stage);
    assert_eq!(left.len(), 1, "{left:?}");
    let session = left[0]["session"].as_str().unwrap();
    assert_eq!(stage.ran(&["prewarm", "remove", session]).code, Some(0));
    assert!(listed(&stage).is_empty());
}

/// A task before may have left its conversation in it, and a human's yes to a secret.
#[test]
fn what_was_used_or_thrown_away_is_handed_to_no_task() {
    let stage = stage();
    for change in [&["sessions", "resume"] as &[&str], &["sessions", "discard"]] {
        assert_eq!(add(&stage, "echo loaded > ~/.dep; echo made > made.txt").code, Some(0));
        let session = listed(&stage)[0]["session"].as_str().unwrap().to_owned();
        // The control: to look at it uses nothing.
        assert_eq!(stage.ran(&["sessions", "diff", &session]).code, Some(0));
        assert_eq!(listed(&stage).len(), 1);
        let model = stage.model(vec![Reply::text("done")]);
        let mut arguments = [change, &[&session]].concat();
        if change[1] == "resume" {
            arguments.extend(["another task", "--approve", "never", "--model", "test/model"]);
        }
        let used = stage.ran(&arguments);
        assert_eq!(used.code, Some(0), "{used:?}");
        drop(model);
        assert!(listed(&stage).is_empty(), "{change:?}");
        let (ran, _model) = task(&stage, &["--warm"]);
        assert!(
            ran.code == Some(1) && ran.stderr.contains("no workspace of this project is ready"),
            "{ran:?}"
        );
    }
}

#[test]
fn several_are_made_and_each_is_one_tasks_and_one_projects() {
    let (stage, other) = (stage(), Stage::new(&[("a.txt", "a\n")]));
    let ran = stage.ran(&["prewarm", "add", "-n", "2", "--", "sh", "-c", "echo mine >> ~/.mine"]);
    assert_eq!((ran.code, listed(&stage).len()), (Some(0), 2), "{ran:?}");
    // A torn mark is nobody's, and hides no other.
    fs::write(stage.home().join("pool/torn.json"), "{\"session\":").unwrap();
    let look = || {
        vec![Reply::calls([("c", "command_run", json!({ "command": "cat ~/.mine" }))]), Reply::text("done")]
    };
    for left in [1, 0] {
        let (ran, _model) = stage.task(look(), &["--warm"]);
        assert!(ran.results()[0].contains("mine") && !ran.results()[0].contains("mine\nmine"), "{ran:?}");
        assert_eq!(listed(&stage).len(), left);
    }
    let project = other.project();
    assert_eq!(stage.ran(&["prewarm", "add", "--", "true"]).code, Some(0));
    let _model = stage.model(look());
    let ran =
        stage.ran(&["run", "-C", project.to_str().unwrap(), "--warm", "--model", "test/model", "do it"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("no workspace of this project"), "{ran:?}");
}

/// A layer over one project is none over another, whatever a mark says.
#[test]
fn a_mark_of_another_project_opens_nothing_there() {
    let stage = stage();
    assert_eq!(add(&stage, LOAD).code, Some(0));
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("package.json"), "{}\n").unwrap();
    let other = other.path().canonicalize().unwrap();
    let mark = fs::read_dir(stage.home().join("pool")).unwrap().next().unwrap().unwrap().path();
    let mut moved: Value = serde_json::from_str(&fs::read_to_string(&mark).unwrap()).unwrap();
    moved["project"] = json!(other);
    moved["manifests"] = json!([]);
    fs::remove_file(other.join("package.json")).unwrap();
    fs::write(&mark, moved.to_string()).unwrap();
    let (ran, _model) = task(&stage, &["--warm", "-C", other.to_str().unwrap()]);
    assert!(ran.code == Some(1) && ran.stderr.contains("this session works in"), "{ran:?}");
}

/// The note was gone, and with it what was loaded, before anything could begin.
#[test]
fn a_workspace_that_nothing_could_begin_in_stays_ready() {
    let stage = stage();
    assert_eq!(add(&stage, "echo loaded > ~/.dep; mkdir deps; echo loaded > deps/dep").code, Some(0));
    for command in ["run", "chat"] {
        let ran = stage.ran(&[command, "--warm", "--model", "nowhere/model", "do it"]);
        assert_ne!(ran.code, Some(0), "{ran:?}");
        assert_eq!(listed(&stage).len(), 1, "{command}: {ran:?}");
    }
    let (ran, _model) = task(&stage, &["--warm"]);
    assert!(ran.results()[0].contains("loaded\nloaded\n"), "{ran:?}");
    assert!(listed(&stage).is_empty(), "the control: what began is taken");
    let (ran, _model) = task(&stage, &["--warm"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("bailey prewarm add"), "{ran:?}");
}

/// Folders of sessions in a home.
fn folders(home: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.join("sessions")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Ends a process and the one that makes its sandboxes, as by kill -9 of both.
fn kill_all(mut runtime: Child) {
    let id = runtime.id();
    let tasks = fs::read_dir(format!("/proc/{id}/task")).unwrap().flatten();
    let children = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let children: Vec<i32> = children
        .flat_map(|text| text.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>())
        .collect();
    assert!(!children.is_empty(), "the control: it has a warden");
    for id in children.into_iter().chain([i32::try_from(id).unwrap()]) {
        let pid = rustix::process::Pid::from_raw(id).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    runtime.wait().unwrap();
}

/// What makes a workspace ready goes with whoever asked for it. The control is that it ran.
#[test]
fn a_command_that_makes_ready_ends_with_who_asked_for_it() {
    let stage = Stage::new(&[]);
    let marker = format!("{}", 5_000_000 + u64::from(std::process::id()));
    let living = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        lines.filter(|line| line.split(|byte| *byte == 0).any(|word| word == marker.as_bytes())).count()
    };
    let until = |what: &dyn Fn() -> bool| {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !what() {
            assert!(std::time::Instant::now() < deadline, "it did not come in time");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    };
    let mut command =
        stage.bailey(&["prewarm", "add", "--", "sh", "-c", "touch begun; exec sleep \"$0\"", &marker]);
    let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = || folders(&stage.home()).iter().any(|folder| folder.join("upper/begun").exists());
    until(&begun);
    assert!(living() > 1, "the control: it, and who waits for it");
    rustix::process::kill_process(rustix::process::Pid::from_child(&running), rustix::process::Signal::TERM)
        .unwrap();
    running.wait().unwrap();
    until(&|| living() == 0);
}

/// Only its warden removed it, and no link in the home said that there was one.
#[test]
fn what_a_killed_command_left_goes_with_the_next_start() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    assert_eq!(stage.ran(&["sandbox", "run", "--keep", "--", "true"]).code, Some(0));
    let kept = folders(&stage.home());
    let mut command = stage.bailey(&["sandbox", "run", "--", "sh", "-c", "echo begun; sleep 1000"]);
    let mut runtime = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(runtime.stdout.take().unwrap()), &mut line)
        .unwrap();
    assert_eq!(line, "begun\n");
    assert!(folders(&stage.home()).len() > kept.len());
    // The control: as long as it lives, no start takes it away.
    assert_eq!(stage.ran(&["sandbox", "run", "--", "true"]).code, Some(0));
    assert!(folders(&stage.home()).len() > kept.len());
    kill_all(runtime);
    // What lived in it ends by itself.
    sleep(Duration::from_millis(500));
    assert!(folders(&stage.home()).len() > kept.len(), "the control: nobody was left to remove it");
    assert_eq!(stage.ran(&["sandbox", "run", "--", "true"]).code, Some(0));
    assert_eq!(folders(&stage.home()), kept);
}

/// It said that the changes were gone, and they were there.
#[test]
fn a_session_that_is_removed_is_removed_wherever_it_lies() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    assert_eq!(stage.ran(&["sandbox", "run", "--keep", "--", "true"]).code, Some(0));
    let kept = folders(&stage.home()).pop().unwrap();
    let id = kept.file_name().unwrap().to_str().unwrap().to_owned();
    // It is named after this user, and what lies in it after sessions.
    let place = PathBuf::from(format!("/var/tmp/bailey-{}", rustix::process::geteuid().as_raw()));
    fs::create_dir_all(&place).unwrap();
    fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let (lost, other) = (place.join(&id), place.join(format!("{id}-other")));
    for path in [&lost, &other] {
        fs::create_dir_all(path.join("copy/project")).unwrap();
    }
    let ran = stage.ran(&["sessions", "rm", &id, "--yes"]);
    let is_there = [&kept, &lost, &other].map(|path| path.exists());
    fs::remove_dir_all(&other).unwrap();
    fs::remove_dir_all(&lost).ok();
    assert!(ran.code == Some(0) && ran.stdout.contains("are gone"), "{ran:?}");
    assert_eq!(is_there, [false, false, true], "the last is the control");
}
