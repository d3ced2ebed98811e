//! Bad days: what surrounds Bailey is broken, full, gone or somebody else's. Each is told with what, why and
//! how to mend it, ends with its exit code, and loses nothing: the chain holds, and what the session changed
//! is there afterwards.

mod clock;
mod docker;
mod doctor;
mod home;
mod net;
mod project;

use crate::stage::{Ran, Stage};
use bailey_testkit::{ModelServer, Reply, Request};
use serde_json::json;
use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    process::Command,
    time::{Duration, Instant},
};

const RUN: [&str; 7] = ["--json", "run", "--model", "test/model", "--approve", "never", "do it"];

/// A reply that makes `two` of the `one` in `a.txt`.
fn edit() -> Reply {
    Reply::calls([("c0", "fs_edit", json!({ "path": "a.txt", "old": "one", "new": "two" }))])
}

/// The edit first; then whatever follows.
fn edit_then(stage: &Stage, then: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> ModelServer {
    let server = ModelServer::by(move |request| match request.body.contains("tool_result") {
        false => edit(),
        true => then(request),
    });
    fs::create_dir_all(stage.home()).unwrap();
    let config = format!("[providers.test]\nwire = \"anthropic\"\nbase_url = \"{}\"\n", server.base_url());
    fs::write(stage.home().join("config.toml"), config).unwrap();
    server
}

/// A command that need not find the project.
fn ran(stage: &Stage, arguments: &[&str]) -> Ran {
    Ran::of(stage.bailey(arguments).current_dir(stage.folder()).output().unwrap())
}

fn session(stage: &Stage) -> String {
    ran(stage, &["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned()
}

/// The chain holds, and the session's edit is there and can be applied.
fn nothing_is_lost(stage: &Stage) {
    assert_eq!(ran(stage, &["audit", "verify"]).code, Some(0));
    let session = session(stage);
    let diff = ran(stage, &["sessions", "diff", &session]);
    assert!(diff.stdout.contains("+two"), "{diff:?}");
    assert_eq!(stage.read("a.txt"), "one\n", "the project is as it was");
    let applied = ran(stage, &["sessions", "apply", &session]);
    assert_eq!((applied.code, stage.read("a.txt").as_str()), (Some(0), "two\n"), "{applied:?}");
}

/// Ended with this code, and says all of this.
fn tells(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    for word in words {
        assert!(ran.stderr.contains(word), "no `{word}` in {ran:?}");
    }
    println!("told: {}", ran.stderr.trim());
}

/// A script of the shell in a mount namespace of its own: `$BAILEY` is the program over the home `$H`, `$P`
/// the project. None, and said so, where that is not possible; a script that cannot set its day up ends
/// with 99.
fn in_a_namespace(stage: &Stage, script: &str) -> Option<Ran> {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        println!("SKIPPED: only root can mount");
        return None;
    }
    fs::create_dir_all(stage.home()).unwrap();
    let bailey = stage.bailey(&[]);
    let ran = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", script])
        .env("BAILEY", bailey.get_program())
        .env("H", fs::canonicalize(stage.home()).unwrap())
        .env("P", stage.project())
        .env_remove("BAILEY_HOME")
        .current_dir(stage.project())
        .output();
    let ran = Ran::of(ran.unwrap());
    if ran.code == Some(99) {
        println!("SKIPPED: the day could not be made: {}", ran.stderr);
        return None;
    }
    Some(ran)
}

#[test]
fn a_conversation_too_long_for_the_model_is_trimmed_and_else_told() {
    let long = "a line of a long file, which is told to the model\n".repeat(800);
    let too_long = || Reply::error(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum");
    let stage = Stage::new(&[("a.txt", "one\n"), ("long.txt", &long)]);
    let server = edit_then(&stage, move |request| match request.body.len() {
        ..20_000 if request.body.contains("long.txt") => Reply::text("done"),
        ..20_000 => Reply::calls([("c1", "fs_read", json!({ "path": "long.txt" }))]),
        _ => too_long(),
    });
    let ended = stage.ran(&RUN);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("longer than"), "it says so: {ended:?}");
    let sizes: Vec<usize> = server.requests().iter().map(|request| request.body.len()).collect();
    assert!(
        sizes.iter().max() > sizes.last(),
        "the control: one was too long, and the last is not: {sizes:?}"
    );
    nothing_is_lost(&stage);

    let stage = Stage::new(&[("a.txt", "one\n")]);
    let _server = edit_then(&stage, move |_| too_long());
    tells(&stage.ran(&RUN), 4, &["choose a model with a longer window"]);
    nothing_is_lost(&stage);
}

#[test]
fn fifty_megabytes_of_output_are_cut_and_said_to_be() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let flood = "yes 0123456789012345678901234567890123456789 | head -c 52428800; echo END-OF-IT";
    let server = edit_then(&stage, move |request| match request.body.contains("END-OF-IT") {
        true => Reply::text("done"),
        false => Reply::calls([("c1", "command_run", json!({ "command": flood }))]),
    });
    let ended = stage.ran(&RUN);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let seen = &ended.results()[1];
    assert!(seen.contains("END-OF-IT") && seen.len() < 100_000, "both ends are there: {}", seen.len());
    assert!(server.requests().last().unwrap().body.len() < 200_000);
    let journal = fs::metadata(stage.home().join("journal.db")).unwrap().len();
    assert!(journal < 10 << 20, "the journal does not hold all of it: {journal}");
    nothing_is_lost(&stage);
}

/// Fifty megabytes by this command, in a pipe or as JSON; how long it took.
fn flooded(flood: &str, json: bool) -> Duration {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let flood = format!("{flood} | head -c 52428800; echo; echo END-OF-IT");
    let _server = edit_then(&stage, move |request| match request.body.contains("END-OF-IT") {
        true => Reply::text("done"),
        false => Reply::calls([("c1", "command_run", json!({ "command": flood }))]),
    });
    let begin = Instant::now();
    let ended = stage.ran(if json { &RUN } else { &RUN[1..] });
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    begin.elapsed()
}

/// What is done for each byte of a line must not be done for the whole line each time.
#[test]
fn fifty_megabytes_in_one_line_cost_what_they_cost_in_many() {
    for json in [false, true] {
        let lines = flooded("yes 0123456789012345678901234567890123456789", json);
        let line = flooded("yes 0123456789012345678901234567890123456789 | tr -d '\\n'", json);
        println!("json {json}: in lines {lines:?}, in one line {line:?}");
        assert!(
            line < 3 * lines + Duration::from_secs(2),
            "json {json}: in lines {lines:?}, in one {line:?}"
        );
    }
}
