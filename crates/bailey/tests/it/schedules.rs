//! Tasks by the clock: each is done once, also what was due while nobody was there.

mod clock;
mod labels;
mod token;

use crate::{
    daemon::{Daemon, open},
    stage::{Ran, Stage},
};
use bailey_testkit::{ModelServer, Reply};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    thread,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(90);

fn home(stage: &Stage, script: Vec<Reply>) -> ModelServer {
    let model = stage.model(script);
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("model = \"test/model\"\n{own}")).unwrap();
    model
}

fn add(stage: &Stage, name: &str, cron: &str, task: &str) {
    let ran = stage.ran(&["schedule", "add", name, "--cron", cron, task]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

fn listed(stage: &Stage) -> Vec<Value> {
    stage.ran(&["--json", "schedule", "list"]).lines()
}

pub(crate) fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} did not come");
        thread::sleep(Duration::from_millis(50));
    }
}

/// As if it had been written down at another time.
pub(crate) fn since(stage: &Stage, moment: &str) {
    let path = stage.home().join("schedules.json");
    let mut value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for schedule in value.as_object_mut().unwrap().values_mut() {
        schedule["since"] = moment.into();
    }
    fs::write(path, value.to_string()).unwrap();
}

#[test]
fn what_was_due_while_nobody_was_there_is_done_once() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let model = home(&stage, vec![Reply::text("all is well")]);
    add(&stage, "yearly", "0 0 1 1 *", "look around");
    assert!(listed(&stage)[0]["session"].is_null());
    since(&stage, "2020-06-01T00:00:00Z");
    let daemon = Daemon::start(&stage);
    model.wait_for(1);
    assert!(model.requests()[0].body.contains("look around"));
    wait("its note", || !listed(&stage)[0]["session"].is_null());
    let session = listed(&stage)[0]["session"].as_str().unwrap().to_owned();
    assert!(stage.ran(&["sessions", "show", &session]).stdout.contains("look around"));
    let logs = stage.ran(&["logs"]).stdout;
    assert!(logs.contains("missed") && logs.contains("times "), "{logs}");
    // Killed and begun again, it is not done again.
    daemon.kill();
    assert_eq!(stage.ran(&["start"]).code, Some(0));
    thread::sleep(Duration::from_secs(2));
    let said: Vec<Value> = stage.trail().into_iter().filter(|it| it["type"] == "accepted").collect();
    assert_eq!(said.len(), 1, "{said:#?}");
    assert_eq!((&said[0]["by"]["channel"], &said[0]["by"]["role"]), (&"schedule".into(), &"user".into()));
    assert!(said[0]["key"].as_str().unwrap().starts_with("schedule:yearly:20"), "{said:#?}");
}

#[test]
fn a_time_that_was_cut_off_before_it_was_noted_is_done_once() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let model = home(&stage, vec![Reply::text("all is well"), Reply::text("once more")]);
    add(&stage, "yearly", "0 0 1 1 *", "look around");
    since(&stage, "2020-06-01T00:00:00Z");
    let daemon = Daemon::start(&stage);
    model.wait_for(1);
    wait("its note", || !listed(&stage)[0]["session"].is_null());
    daemon.wait("its end", |it| it["working"] == false);
    // As a kill between the acceptance and the note leaves it.
    let path = stage.home().join("schedules.json");
    let cut_off = |is_known: bool| {
        assert_eq!(stage.ran(&["stop"]).code, Some(0));
        let mut value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let one = &mut value["yearly"];
        let (moment, session) = (one["since"].clone(), one["session"].clone());
        one["since"] = "2020-06-01T00:00:00Z".into();
        if is_known {
            one["begun"] = json!({ "moment": moment, "session": session });
        }
        fs::write(&path, value.to_string()).unwrap();
        assert_eq!(stage.ran(&["start"]).code, Some(0));
    };
    let is_noted = || {
        let value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        value["yearly"]["begun"].is_null() && value["yearly"]["since"] != "2020-06-01T00:00:00Z"
    };
    cut_off(true);
    wait("its note", is_noted);
    thread::sleep(Duration::from_secs(1));
    assert_eq!(model.requests().len(), 1);
    // The control: without a word about its session it is done again.
    cut_off(false);
    model.wait_for(2);
}

#[test]
fn one_is_done_now_and_by_the_minute() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let model = home(&stage, vec![Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    let without = stage.ran(&["schedule", "run", "mine"]);
    assert!(without.code == Some(1) && without.stderr.contains("bailey start"), "{without:?}");
    let _daemon = Daemon::start(&stage);
    add(&stage, "mine", "@yearly", "by hand");
    let ran = stage.ran(&["schedule", "run", "mine"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("has begun"), "{ran:?}");
    model.wait_for(1);
    add(&stage, "often", "* * * * *", "by the clock");
    let begun = Instant::now();
    wait("the next minute", || model.requests().len() > 1);
    assert!(model.requests()[1].body.contains("by the clock"));
    println!("the next minute came after {} s", begun.elapsed().as_secs());
    let removed = stage.ran(&["schedule", "rm", "often"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert_eq!(listed(&stage).len(), 1);
}

#[test]
fn a_time_uses_up_no_more_than_its_own_budget() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let model = home(&stage, vec![Reply::text("done")]);
    let daemon = Daemon::start(&stage);
    let none = ["schedule", "add", "small", "--cron", "@yearly", "--tokens", "0", "look around"];
    let ran = stage.ran(&none);
    assert!(ran.code == Some(2) && ran.stderr.contains("0 is not in 1.."), "{ran:?}");
    let bounded = ["schedule", "add", "small", "--cron", "@yearly", "--tokens", "100", "look around"];
    assert_eq!(stage.ran(&bounded).code, Some(0));
    add(&stage, "large", "@yearly", "look around");
    let listed = listed(&stage);
    assert_eq!((&listed[1]["name"], &listed[1]["tokens"]), (&"small".into(), &100.into()), "{listed:#?}");
    let ended = |session: &str| {
        let shown = stage.ran(&["--json", "sessions", "show", session]).lines();
        shown.iter().find(|it| it["entry"]["type"] == "turn_ended").map(|it| it["entry"]["reason"].clone())
    };
    let run = |name: &str| {
        let ran = stage.ran(&["--json", "schedule", "run", name]);
        let session = ran.lines()[0]["session"].as_str().unwrap().to_owned();
        wait("the turn's end", || ended(&session).is_some());
        (session.clone(), ended(&session).unwrap())
    };
    let (session, reason) = run("small");
    assert_eq!((reason, model.requests().len()), ("budget".into(), 0));
    // The control: without it, the same goes through.
    assert_eq!((run("large").1, model.requests().len()), ("answered".into(), 1));
    // Whoever comes back to it is bound by that, too: at the page, which says nothing of tokens, ...
    drop(daemon);
    let daemon = Daemon::start(&stage);
    open(&stage, &["--resume", &session]);
    let socket = stage.home().join("daemon").join(&session);
    let mut said = BufReader::new(UnixStream::connect(socket).unwrap());
    writeln!(said.get_mut(), "{}", json!({ "op": "say", "text": "and now?" })).unwrap();
    let ended = said.by_ref().lines().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let ended = ended.into_iter().find(|event| event["type"] == "end").unwrap();
    assert_eq!((&ended["reason"], model.requests().len()), (&"budget".into(), 1), "{ended:#}");
    drop(daemon);
    // ... and by hand; until its owner says another number, which stays.
    let resumed = stage.ran(&["sessions", "resume", &session]);
    assert!(resumed.code == Some(7) && model.requests().len() == 1, "{resumed:?}");
    assert!(resumed.stderr.contains("may use up 100 tokens at most"), "{resumed:?}");
    model.push(Reply::text("done after all"));
    let resumed = stage.ran(&["sessions", "resume", &session, "--tokens", "1000000"]);
    assert!(resumed.code == Some(0) && resumed.stdout.contains("done after all"), "{resumed:?}");
    model.push(Reply::text("once more"));
    let resumed = stage.ran(&["sessions", "resume", &session, "again"]);
    assert!(resumed.code == Some(0) && resumed.stdout.contains("once more"), "{resumed:?}");
}

#[test]
fn noon_is_when_the_zone_of_this_machine_has_it() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let _model = home(&stage, Vec::new());
    let by = |zone: &str, words: &[&str]| Ran::of(stage.bailey(words).env("TZ", zone).output().unwrap());
    let noon = ["schedule", "add", "noon", "--cron", "0 12 * * *", "look around"];
    // By its own rule, and by the name of one that the machine knows.
    for (zone, next) in [("JST-9", "T03:00:00Z"), ("UTC", "T12:00:00Z"), ("Asia/Tokyo", "T03:00:00Z")] {
        if zone.contains('/') && !Path::new("/usr/share/zoneinfo").join(zone).exists() {
            println!("SKIPPED: {zone}: this machine has no time zones");
            continue;
        }
        let ran = by(zone, &noon);
        assert!(ran.code == Some(0) && ran.stderr.contains(" 12:00"), "{zone}: {ran:?}");
        let listed = by(zone, &["--json", "schedule", "list"]).lines();
        assert!(listed[0]["next"].as_str().unwrap().ends_with(next), "{zone}: {listed:#?}");
        assert_eq!(stage.ran(&["schedule", "rm", "noon"]).code, Some(0));
    }
    // One that nobody knows is not taken for another one.
    let ran = by("Europe/Nowhere", &noon);
    assert!(ran.code == Some(1) && ran.stderr.contains("`Europe/Nowhere`, is not known here"), "{ran:?}");
    assert!(listed(&stage).is_empty());
}

#[test]
fn what_is_wrong_is_said() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let _model = home(&stage, Vec::new());
    add(&stage, "mine", "@daily", "x");
    let long = format!("{}0 * * * *", "0,".repeat(996));
    for (words, code, why) in [
        (&["add", "mine", "--cron", "@daily", "y"][..], 1, "already"),
        (&["add", "a b", "--cron", "@daily", "y"], 1, "cannot name a schedule"),
        (&["add", "other", "--cron", "61 * * * *", "y"], 2, "`61` is not a valid minute"),
        (&["add", "other", "--cron", "0 0 30 2 *", "y"], 2, "is never due"),
        (&["add", "other", "--cron", &long, "y"], 2, "of 2001 bytes is too long"),
        (&["add", "other", "--cron", "@daily", " \n"], 2, "the task is empty"),
        (&["add", "other", "--cron", "@daily", "--model", "nope/x", "y"], 2, "there is no provider `nope`"),
        (&["rm", "other"], 1, "there is no schedule `other`"),
    ] {
        let ran = stage.ran(&[&["schedule"], words].concat());
        assert!(ran.code == Some(code) && ran.stderr.contains(why), "{words:?}: {ran:?}");
    }
    fs::write(stage.home().join("schedules.json"), "{").unwrap();
    let ran = stage.ran(&["schedule", "list"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("is damaged"), "{ran:?}");
}
