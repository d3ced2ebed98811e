//! Ways in which the product was broken once, each through the real binary.

use crate::stage::Stage;
use bailey_testkit::Reply;
use serde_json::json;
use std::{
    fs,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

/// Runs a script inside the walls, in a session whose layer stays; gives the session's name.
fn work(stage: &Stage, script: &str) -> String {
    let ran = stage.ran(&["sandbox", "run", "--keep", "--", "sh", "-ec", script]);
    assert_eq!(ran.code, Some(0), "{script}: {ran:?}");
    let sessions = stage.home().join("sessions");
    let made = |entry: &fs::DirEntry| entry.metadata().and_then(|data| data.created()).unwrap();
    let newest = fs::read_dir(sessions).unwrap().map(|entry| entry.unwrap()).max_by_key(made).unwrap();
    newest.file_name().into_string().unwrap()
}

fn apply(stage: &Stage, session: &str) -> crate::stage::Ran {
    stage.ran(&["sessions", "apply", session, "--approve", "never"])
}

#[test]
fn a_bare_repository_in_the_project_is_not_turned_against_the_host() {
    let stage = Stage::new(&[
        ("fixture.git/HEAD", "ref: refs/heads/main\n"),
        ("fixture.git/config", "[core]\n\tbare = true\n"),
        ("fixture.git/objects/keep", ""),
        ("fixture.git/refs/keep", ""),
    ]);
    let script = "cd fixture.git; printf '[core]\n\tfsmonitor = touch /tmp/owned\n' > config
        mkdir hooks; echo evil > hooks/post-checkout; echo plain > description";
    let session = work(&stage, script);
    let applied = apply(&stage, &session);
    assert_eq!(stage.read("fixture.git/config"), "[core]\n\tbare = true\n", "{applied:?}");
    assert!(!stage.project().join("fixture.git/hooks").exists(), "{applied:?}");
    assert_eq!(stage.read("fixture.git/description"), "plain\n", "the control: {applied:?}");
}

#[test]
fn what_builders_and_debuggers_obey_is_red() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let names = "Cargo.toml sub/composer.json go.mod go.work pytest.ini .eslintrc.json eslint.config.js .mocharc.yml
        MODULE.bazel WORKSPACE.bazel BUILD rules.bzl build.sbt build.xml pom.xml settings.gradle.kts bunfig.toml
        deno.jsonc .gdbinit .lldbinit mix.exs Makefile.am Pipfile requirements-dev.txt Taskfile.dist.yml .nvimrc";
    let session = work(&stage, &format!("mkdir sub; touch {} plain.rs", names.replace('\n', " ")));
    let diff = stage.ran(&["sessions", "diff", &session]);
    let shown = format!("{}{}", diff.stdout, diff.stderr);
    let red =
        shown.lines().find(|line| line.contains("outside the walls")).unwrap_or_else(|| panic!("{diff:?}"));
    for name in names.split_whitespace() {
        assert!(red.contains(&format!("{name}`")), "{name}: {red}");
    }
    assert!(!red.contains("plain.rs"), "the control: {red}");
    assert_eq!(apply(&stage, &session).code, Some(3));
}

#[test]
fn a_link_out_of_the_project_is_not_applied() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let session = work(&stage, "ln -s /etc/passwd out; ln -s ../../x up; ln -s a.txt in");
    let applied = apply(&stage, &session);
    let there = |name: &str| stage.project().join(name).symlink_metadata().is_ok();
    assert!(!there("out") && !there("up"), "{applied:?}");
    assert!(there("in"), "the control: {applied:?}");
}

#[test]
fn what_a_killed_command_left_does_not_overwrite_what_the_user_wrote_since() {
    let stage = Stage::new(&[("a.txt", "old\n"), ("b.txt", "old\n")]);
    let command = "echo agent > a.txt; touch ready; sleep 60";
    let call = |command: &str| Reply::calls([("c", "command_run", json!({ "command": command }))]);
    let _server = stage.model(vec![call(command)]);
    let fixed = ["--json", "run", "--model", "test/model", "--approve", "never", "do it"];
    let mut child = stage.bailey(&fixed).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let sessions = stage.home().join("sessions");
    let deadline = Instant::now() + Duration::from_secs(30);
    let session = loop {
        let made = fs::read_dir(&sessions).into_iter().flatten().map(|entry| entry.unwrap());
        let ready = made.into_iter().find(|entry| entry.path().join("upper/ready").exists());
        if let Some(entry) = ready {
            break entry.file_name().into_string().unwrap();
        }
        assert!(
            Instant::now() < deadline && child.try_wait().unwrap().is_none(),
            "the command did not start"
        );
        thread::sleep(Duration::from_millis(5));
    };
    child.kill().unwrap();
    child.wait().unwrap();
    stage.write("a.txt", "user\n");
    let _server = stage.model(vec![call("echo agent > b.txt"), Reply::text("done")]);
    let resumed =
        stage.ran(&["sessions", "resume", &session, "go on", "--model", "test/model", "--approve", "never"]);
    let applied = apply(&stage, &session);
    assert_eq!(stage.read("a.txt"), "user\n", "{resumed:?} {applied:?}");
    assert_eq!(stage.read("b.txt"), "agent\n", "the control: {resumed:?} {applied:?}");
}

#[test]
fn a_protected_place_of_the_home_is_no_workspace() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let home = stage.folder().join("person");
    for dir in [".ssh", ".config/gh", ".config/editor", "code"] {
        fs::create_dir_all(home.join(dir)).unwrap();
    }
    fs::write(home.join(".config/gh/hosts.yml"), "oauth_token: canary\n").unwrap();
    let read = |dir: &str| {
        let mut command = stage.bailey(&["sandbox", "run", "-C"]);
        command.arg(home.join(dir)).args(["--", "sh", "-c", "cat */hosts.yml; true"]).env("HOME", &home);
        crate::stage::Ran::of(command.output().unwrap())
    };
    for dir in [".ssh", ".config/gh", ".config"] {
        let ran = read(dir);
        assert_ne!(ran.code, Some(0), "{dir}: {ran:?}");
        assert!(
            ran.stderr.contains("cannot be a workspace") && !ran.stdout.contains("canary"),
            "{dir}: {ran:?}"
        );
    }
    for dir in [".config/editor", "code"] {
        let ran = read(dir);
        assert_eq!(ran.code, Some(0), "control, {dir}: {ran:?}");
    }
}
