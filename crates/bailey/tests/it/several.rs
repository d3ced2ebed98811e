//! Several processes on one home at the same time.

use crate::stage::{Ran, Stage};
use bailey_testkit::{Gate, Message, ModelServer, Reply};
use serde_json::json;
use std::{
    fs,
    process::Stdio,
    time::{Duration, Instant},
};

const RUNS: usize = 8;

#[test]
fn eight_runs_in_eight_repositories_keep_one_chain_and_lose_nothing() {
    let stage = Stage::new(&[]);
    // One model for all: a command that says whose it is, then the end.
    let server = ModelServer::by(|request| {
        let said = (0..=RUNS).find(|n| request.body.contains(&format!("task number {n}")));
        let said = said.map_or("nobody".to_owned(), |n| n.to_string());
        if request.body.contains("tool_result") {
            Reply::text("done")
        } else {
            Reply::calls([("c1", "command_run", json!({ "command": format!("echo {said} > out.txt") }))])
        }
    });
    fs::create_dir_all(stage.home()).unwrap();
    let config = format!("[providers.test]\nwire = \"anthropic\"\nbase_url = \"{}\"\n", server.base_url());
    fs::write(stage.home().join("config.toml"), config).unwrap();
    let project = |n: usize| stage.folder().join(format!("repository-{n}"));
    let start = |n: usize| {
        let task = format!("task number {n}");
        let run = ["--json", "run", "--model", "test/m", "--approve", "never", "--apply", &task];
        let mut command = stage.bailey(&run);
        command.current_dir(project(n)).stdout(Stdio::piped()).stderr(Stdio::piped());
        (Instant::now(), command.spawn().unwrap())
    };
    for n in 0..=RUNS {
        let path = project(n).display().to_string();
        stage.git(&["init", "--quiet", &path]);
        stage.git(&["-C", &path, "commit", "--quiet", "--allow-empty", "--message", "start"]);
    }
    // The measure: how long one takes that has the home, and the machine, for itself.
    let (since, child) = start(RUNS);
    let ran = Ran::of(child.wait_with_output().unwrap());
    let alone = since.elapsed();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let children: Vec<_> = (0..RUNS).map(start).collect();
    let ends: Vec<_> = children
        .into_iter()
        .map(|(since, child)| {
            std::thread::spawn(move || (child.wait_with_output().unwrap(), since.elapsed()))
        })
        .collect();
    let mut times = Vec::new();
    for (n, end) in ends.into_iter().enumerate() {
        let (output, took) = end.join().unwrap();
        let ran = Ran::of(output);
        assert_eq!(ran.code, Some(0), "{n}: {ran:?}");
        let status = stage.git(&["-C", project(n).to_str().unwrap(), "status", "--porcelain"]);
        assert_eq!(status, "?? out.txt\n", "its own change and nobody else's");
        assert_eq!(fs::read_to_string(project(n).join("out.txt")).unwrap(), format!("{n}\n"));
        times.push(took);
    }
    times.sort();
    println!(
        "{RUNS} runs at once: p50 {:?}, longest {:?}, alone {alone:?}",
        times[RUNS / 2],
        times[RUNS - 1]
    );
    // One after the other they would take eight times as long; what a busy machine adds is generously allowed
    // for.
    let limit = alone * u32::try_from(2 * RUNS).unwrap() + Duration::from_secs(5);
    assert!(times[RUNS - 1] < limit, "somebody waited too long: {times:?}, alone {alone:?}");
    let verified = stage.ran(&["--json", "audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let trail = stage.trail();
    for name in ["session_opened", "accepted", "turn_ended"] {
        assert_eq!(trail.iter().filter(|entry| entry["type"] == name).count(), RUNS + 1, "{name}");
    }
    let begun = trail.iter().filter(|entry| entry["type"] == "intent").count();
    assert_eq!(
        trail.iter().filter(|entry| entry["type"] == "outcome").count(),
        begun,
        "every effect has its end"
    );
    let titles: Vec<String> = stage
        .ran(&["--json", "sessions", "list", "--all"])
        .lines()
        .iter()
        .map(|it| it["title"].to_string())
        .collect();
    for n in 0..=RUNS {
        assert!(titles.contains(&format!("\"task number {n}\"")), "{n} is lost: {titles:?}");
    }
}

#[test]
fn the_second_on_one_session_is_told_who_holds_it() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let gate = Gate::default();
    let server = stage.model(vec![Reply::Held(gate.clone(), Message::text("done"))]);
    let run = ["--json", "run", "--model", "test/model", "--approve", "never", "a long task"];
    let first = stage.bailey(&run).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    server.wait_for(1);
    let session =
        stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
    let holder = format!("is in use by process {}, since 2", first.id());
    for arguments in [
        &["sessions", "resume", "--model", "test/model", &session, "and this"][..],
        &["sessions", "diff", &session],
        &["sessions", "rm", "--yes", &session],
    ] {
        let second = stage.ran(arguments);
        assert_eq!(second.code, Some(1), "{second:?}");
        for said in
            [&holder, " UTC (`", "a long task`): wait for its end, end it, or work in another session"]
        {
            assert!(second.stderr.contains(said), "{said}: {second:?}");
        }
    }
    gate.open();
    let first = Ran::of(first.wait_with_output().unwrap());
    assert_eq!(first.code, Some(0), "{first:?}");
    // The control: when the first has ended, the session is free.
    assert_eq!(stage.ran(&["sessions", "diff", &session]).code, Some(0));
}
