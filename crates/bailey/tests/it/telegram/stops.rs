//! What ends something at a phone: it waits for nothing, is done once, and leaves nothing behind that is done
//! again.

use super::{ANN, BOB, at, bridge, pair};
use crate::{
    daemon::{Daemon, end, pid, resume},
    schedules::wait,
    stage::Stage,
    terminal::Terminal,
};
use bailey_testkit::{
    Gate, Message, Reply,
    telegram::{Fault, Telegram},
};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    thread,
    time::{Duration, Instant},
};

/// How long what waits for nothing may take.
const SOON: Duration = Duration::from_secs(12);

fn count(stage: &Stage, kind: &str) -> usize {
    stage.trail().into_iter().filter(|it| it["type"] == kind).count()
}

#[test]
fn what_stops_something_waits_for_no_answer_that_is_shown() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = Gate::default();
    let list = || Reply::calls([("c1", "fs_list", json!({ "path": "." }))]);
    let held = || Reply::Held(gate.clone(), Message::text("never said"));
    let (telegram, model) = at(&stage, vec![list(), held(), list(), held()]);
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    pair(&stage, &telegram, BOB, "Bob", "guest");
    // What it does is to be shown, and the platform wants to be left alone.
    let work = |requests: usize| {
        let asked = telegram.calls("sendMessage");
        telegram.fail("sendMessage", [Fault::Slow(14)]);
        telegram.says(ANN, "Ann", ANN, "work");
        model.wait_for(requests);
        wait("an answer", || telegram.calls("sendMessage") > asked);
        Instant::now()
    };
    let begin = work(2);
    telegram.says(ANN, "Ann", ANN, "and do this as well");
    // A guest stops nothing, and the owner a turn and everything.
    telegram.says(BOB, "Bob", BOB, "/stop");
    telegram.says(BOB, "Bob", BOB, "/estop");
    thread::sleep(Duration::from_secs(2));
    assert_eq!(daemon.status()["sessions"][0]["working"], true);
    telegram.says(ANN, "Ann", ANN, "/stop");
    wait("the turn's end", || daemon.status()["sessions"][0]["working"] == false);
    assert!(begin.elapsed() < SOON, "it waited: {:?}", begin.elapsed());
    // Nor does what was written before it begin after it.
    thread::sleep(Duration::from_secs(18).saturating_sub(begin.elapsed()));
    assert_eq!((count(&stage, "stopped"), model.requests().len()), (0, 2));
    let begin = work(4);
    telegram.says(ANN, "Ann", ANN, "/estop");
    wait("the stop", || count(&stage, "stopped") == 1);
    assert!(begin.elapsed() < SOON, "it waited: {:?}", begin.elapsed());
}

#[test]
fn a_bot_that_nobody_wrote_to_for_a_week_hears_the_next_message() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, model) = at(&stage, vec![Reply::text("the first"), Reply::text("the second")]);
    let clock = stage.folder().join("clock");
    let is_ahead = |days: u64| fs::write(&clock, (days * 24 * 3600).to_string()).unwrap();
    is_ahead(0);
    let _daemon = Daemon::with(&stage, "BAILEY_CONTROL_CLOCK", &clock);
    telegram.counts_from(760_546_623);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    telegram.says(ANN, "Ann", ANN, "one");
    telegram.wait_for(ANN, "the first");
    // The control: what has a lower number without such a time between is no news.
    telegram.counts_from(592_426_180);
    telegram.says(ANN, "Ann", ANN, "an old one");
    thread::sleep(Duration::from_secs(3));
    assert_eq!(model.requests().len(), 1);
    is_ahead(7);
    // Who is asking already asks with the old number once more.
    let asked = telegram.calls("getUpdates");
    wait("a question", || telegram.calls("getUpdates") > asked + 1);
    telegram.says(ANN, "Ann", ANN, "two");
    telegram.wait_for(ANN, "the second");
    assert!(!model.requests()[1].body.to_string().contains("an old one"));
}

#[test]
fn an_emergency_stop_is_done_once_however_long_its_answer_takes() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, model) = at(&stage, vec![Reply::text("it works again")]);
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    telegram.fail_with("sendMessage", "everything stops", [Fault::Slow(2), Fault::Slow(2)]);
    telegram.says(ANN, "Ann", ANN, "/estop");
    wait("the stop", || count(&stage, "stopped") == 1);
    let Some(mut terminal) = Terminal::start(&stage, &["estop", "--release"]) else { return };
    terminal.wait_for("let the agents of this home work again?");
    terminal.keys("y\n");
    assert_eq!(terminal.end().0, 0);
    if stage.ran(&["status"]).code != Some(0) {
        assert_eq!(stage.ran(&["start"]).code, Some(0));
    }
    telegram.says(ANN, "Ann", ANN, "and now?");
    telegram.wait_for(ANN, "it works again");
    thread::sleep(Duration::from_secs(3));
    assert_eq!((count(&stage, "stopped"), model.requests().len()), (1, 1));
    drop(daemon);
}

#[test]
fn a_conversation_is_ended_at_rest_and_by_no_guest() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = Gate::default();
    let script = vec![Reply::Held(gate.clone(), Message::text("the first")), Reply::text("the second")];
    let (telegram, model) = at(&stage, script);
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    pair(&stage, &telegram, BOB, "Bob", "guest");
    let group = -100;
    telegram.says(ANN, "Ann", group, "@bailey_bot work");
    model.wait_for(1);
    telegram.says(ANN, "Ann", group, "/clear@bailey_bot");
    telegram.wait_for(group, "A turn is running");
    // Whoever begins again asks nobody a second time.
    end(bridge(&stage), "-KILL");
    gate.open();
    telegram.wait_for(group, "the first");
    // Its words stand there before its end does.
    daemon.wait("the end", |it| it["working"] == false);
    thread::sleep(Duration::from_secs(2));
    telegram.says(BOB, "Bob", group, "/clear@bailey_bot");
    telegram.wait_for(group, "a guest cannot end the conversation");
    telegram.says(ANN, "Ann", group, "@bailey_bot and now?");
    telegram.wait_for(group, "the second");
    let bodies: Vec<String> = model.requests().into_iter().map(|request| request.body.to_string()).collect();
    assert!(bodies.len() == 2 && bodies[1].contains("the first"), "{bodies:#?}");
    assert_eq!(daemon.status()["sessions"].as_array().unwrap().len(), 1);
}

/// A session in which "one" was said, and the lock that keeps it from the conversation: so `sessions diff` or
/// `apply` in a terminal holds it.
fn held_elsewhere(stage: &Stage, telegram: &Telegram, daemon: &Daemon<'_>) -> (String, File) {
    pair(stage, telegram, ANN, "Ann", "owner");
    telegram.says(ANN, "Ann", ANN, "one");
    telegram.wait_for(ANN, "the first");
    let session = daemon.wait("the end", |it| it["working"] == false)["session"].as_str().unwrap().to_owned();
    assert_eq!(stage.ran(&["stop"]).code, Some(0));
    let path = stage.home().join(format!("sessions/{session}/lock"));
    let lock = File::options().write(true).open(path).unwrap();
    lock.lock().unwrap();
    assert_eq!(stage.ran(&["start"]).code, Some(0));
    (session, lock)
}

#[test]
fn a_session_that_is_looked_at_elsewhere_keeps_its_conversation() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, model) = at(&stage, vec![Reply::text("the first"), Reply::text("the second")]);
    let daemon = Daemon::start(&stage);
    let (session, lock) = held_elsewhere(&stage, &telegram, &daemon);
    telegram.says(ANN, "Ann", ANN, "two");
    telegram.wait_for(ANN, "Your message has to wait");
    thread::sleep(Duration::from_secs(3));
    assert_eq!(model.requests().len(), 1);
    drop(lock);
    telegram.wait_for(ANN, "the second");
    let said: Vec<Value> = stage.trail().into_iter().filter(|it| it["type"] == "accepted").collect();
    assert!(said.len() == 2 && said.iter().all(|it| it["session"] == session.as_str()), "{said:#?}");
}

/// What waits for a session that cannot be had is said in the order in which it came, and tried less and less
/// often, once for all of it.
#[test]
fn what_waits_for_a_session_keeps_its_order_and_is_tried_less_and_less_often() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, model) = at(&stage, ["the first", "more", "more", "more"].map(Reply::text).to_vec());
    let daemon = Daemon::start(&stage);
    let (session, lock) = held_elsewhere(&stage, &telegram, &daemon);
    let tries = || {
        let log = fs::read_to_string(stage.home().join("daemon/log")).unwrap();
        let is_try = |line: &Value| line["what"] == "said" && line.to_string().contains(&session);
        let lines = log.lines().filter_map(|line| serde_json::from_str(line).ok());
        lines.filter(is_try).count()
    };
    let mut before = tries();
    telegram.says(ANN, "Ann", ANN, "two");
    telegram.wait_for(ANN, "Your message has to wait");
    let mut last = Instant::now();
    telegram.says(ANN, "Ann", ANN, "three");
    assert_eq!(tries(), before + 1);
    let pauses = [(); 2].map(|()| {
        before += 1;
        wait("another try", || tries() > before);
        assert_eq!(tries(), before + 1, "more than one at once");
        std::mem::replace(&mut last, Instant::now()).elapsed()
    });
    println!("{pauses:?}");
    assert!(pauses[1] > pauses[0] + Duration::from_secs(1), "{pauses:?}");
    // Whoever comes just when it can be had again comes behind those who wait.
    drop(lock);
    telegram.says(ANN, "Ann", ANN, "four");
    wait("all three", || count(&stage, "accepted") == 4);
    daemon.wait("their end", |it| it["working"] == false);
    let body = model.requests().last().unwrap().body.to_string();
    let places = ["two", "three", "four"].map(|word| body.find(&format!("\"text\":\"{word}\"")));
    assert!(places.is_sorted() && places[0].is_some(), "{places:?}: {body}");
}

/// What a channel says again by itself begins no session anew that ends each time.
#[test]
fn a_session_that_ends_each_time_is_begun_by_no_message_that_is_said_again() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = Gate::default();
    let script = (0..5).map(|_| Reply::Held(gate.clone(), Message::text("said at last")));
    let (telegram, model) = at(&stage, script.collect());
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    telegram.says(ANN, "Ann", ANN, "do it");
    let (mut last, mut session) = (0, String::new());
    for times in 1..=4 {
        model.wait_for(times);
        let next = daemon.wait("another process", |it| it["working"] == true && it["pid"] != last);
        (last, session) = (pid(&next), next["session"].as_str().unwrap().to_owned());
        end(last, "-KILL");
    }
    telegram.wait_for(ANN, "does not start it again");
    // It is tried again after two seconds, and after four.
    thread::sleep(Duration::from_secs(8));
    assert_eq!(daemon.status()["sessions"], json!([]));
    assert_eq!(model.requests().len(), 4);
    // The control: once somebody asked for it, what waits is said, and answered once.
    assert_eq!(resume(&stage, &session, false)["told"], "opened");
    gate.open();
    telegram.wait_for(ANN, "said at last");
    assert_eq!((count(&stage, "accepted"), model.requests().len()), (1, 5));
}
