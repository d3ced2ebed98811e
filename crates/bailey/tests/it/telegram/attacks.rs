//! Who would have a question answered twice, by somebody else, from elsewhere, or not at all; and the
//! emergency stop from each channel.

use super::{ANN, BOB, EVE, channel, pair, times};
use crate::{
    daemon::Daemon,
    page::{Page, anywhere, default_model},
    schedules::since,
    stage::Stage,
    stops::lives,
    terminal::Terminal,
    webhook,
};
use bailey_testkit::{
    ModelServer, Reply,
    telegram::{Fault, Shown, Telegram},
};
use serde_json::json;
use std::{
    collections::BTreeSet,
    fs, thread,
    time::{Duration, Instant},
};

const CAT: i64 = 78;
const GROUP: i64 = -100;
const YES: &str = "Yes, once";
const PATIENCE: Duration = Duration::from_secs(30);

/// A home with a channel, where each command is asked about.
fn asking(stage: &Stage, script: Vec<Reply>, more: &str) -> (Telegram, ModelServer) {
    let model = stage.model(script);
    default_model(stage);
    let telegram = channel(stage);
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap();
    fs::write(config, format!("{own}\n[approvals]\nreview = \"before-execute\"\n{more}")).unwrap();
    (telegram, model)
}

/// The n-th command, and what the model says once it has its result.
fn command(number: usize) -> [Reply; 2] {
    let run = json!({ "command": format!("echo ran {number} >> ran.txt") });
    [
        Reply::calls([(&*format!("c{number}"), "command_run", run)]),
        Reply::text(&format!("over with {number}.")),
    ]
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} did not come");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The card of the n-th command.
fn card(telegram: &Telegram, chat: i64, number: usize) -> (i64, Shown) {
    let name = format!("ran {number} ");
    telegram.wait(chat, &name, |it| it.text.contains(&name) && it.buttons.len() > 1)
}

/// How often commands were begun, and the lines that they left in their session's layer.
fn done(stage: &Stage) -> (usize, Vec<String>) {
    let trail = stage.trail();
    let begun: Vec<_> = trail.iter().filter(|it| it["type"] == "intent" && it["kind"] == "exec").collect();
    let sessions: BTreeSet<&str> = begun.iter().map(|it| it["session"].as_str().unwrap()).collect();
    let layer = |session: &str| stage.home().join("sessions").join(session).join("upper/ran.txt");
    let left = sessions.into_iter().flat_map(|it| fs::read_to_string(layer(it)));
    let lines = left.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
    (begun.len(), lines.collect())
}

/// The name of the question that a card asks.
fn id(telegram: &Telegram, chat: i64, card: i64) -> String {
    telegram.data(chat, card, YES).trim_start_matches("y:").to_owned()
}

/// A12: whoever claims a yes, at once or again, after a no, an abort or a restart, a question runs what it
/// asks about once or not at all.
#[test]
fn a12_a_question_runs_once_or_not_at_all_whoever_claims_it() {
    const ROUNDS: usize = 5;
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (no, abort, restart) = (ROUNDS + 1, ROUNDS + 2, ROUNDS + 3);
    // What is aborted gets no last words; after a restart the model may be told of an answer once more.
    let mut script: Vec<Reply> = (1..=no).flat_map(command).collect();
    let [call, _] = command(abort);
    script.push(call);
    script.extend(command(restart));
    script.push(Reply::text("over with it again."));
    let (telegram, _model) = asking(&stage, script, "");
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    pair(&stage, &telegram, CAT, "Cat", "operator");
    let say = |number: usize| telegram.says(ANN, "Ann", GROUP, &format!("@bailey_bot do {number}"));
    let approve = |id: &str| stage.ran(&["approvals", "approve", id]).code == Some(0);
    let mut old = Vec::new();

    // Two people tap more than once, and two commands at the machine, at the same time.
    let mut losers = 0;
    for round in 1..=ROUNDS {
        say(round);
        let (at, _) = card(&telegram, GROUP, round);
        let name = id(&telegram, GROUP, at);
        let count = telegram.toasts().len();
        let winners = thread::scope(|scope| {
            let machine: Vec<_> = (0..2).map(|_| scope.spawn(|| approve(&name))).collect();
            thread::sleep(Duration::from_millis(15 * round as u64));
            for (who, called) in [(ANN, "Ann"), (CAT, "Cat"), (ANN, "Ann")] {
                telegram.taps_with(who, called, GROUP, at, &format!("y:{name}"));
            }
            machine.into_iter().map(|it| it.join().unwrap()).filter(|won| *won).count()
        });
        telegram.wait_for(GROUP, &format!("over with {round}."));
        until("an answer to each tap", || telegram.toasts().len() >= count + 3);
        let toasts = telegram.toasts();
        let told = toasts.iter().skip(count).filter(|(_, it)| it.contains("✔ yes")).count();
        losers += 5 - winners - told.min(1);
        assert!(winners <= 1, "{round}: both commands say that theirs counts");
        // The control: it does run, so that twice would be seen.
        let (begun, lines) = done(&stage);
        assert_eq!((begun, lines.len()), (round, round), "{lines:?}");
        old.push((at, name));
    }
    assert!(losers >= ROUNDS, "nobody came second: {losers}");
    let run = ROUNDS;

    // A no is one, and so is the end of the turn.
    say(no);
    let (at, _) = card(&telegram, GROUP, no);
    old.push((at, id(&telegram, GROUP, at)));
    telegram.taps(ANN, "Ann", GROUP, at, "No");
    telegram.wait_for(GROUP, &format!("over with {no}."));
    say(abort);
    let (at, _) = card(&telegram, GROUP, abort);
    old.push((at, id(&telegram, GROUP, at)));
    telegram.says(ANN, "Ann", GROUP, "/stop@bailey_bot");
    daemon.wait("the turn's end", |it| it["working"] == false);
    let again = |what: &str, old: &[(i64, String)]| {
        let count = telegram.toasts().len();
        for (at, name) in old {
            telegram.taps_with(CAT, "Cat", GROUP, *at, &format!("y:{name}"));
            assert!(!approve(name), "{what}: {name} was settled");
        }
        until("an answer to each tap", || telegram.toasts().len() >= count + old.len());
    };
    again("after all of them", &old);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(done(&stage).0, run, "{:#?}", done(&stage));

    // Everything is killed at an open question; the answers come while nobody is there, and again when
    // somebody is.
    say(restart);
    let (at, _) = card(&telegram, GROUP, restart);
    let name = id(&telegram, GROUP, at);
    daemon.kill();
    assert!(approve(&name), "the control: an open question is answered while nobody is there");
    telegram.taps_with(ANN, "Ann", GROUP, at, &format!("y:{name}"));
    telegram.taps_with(CAT, "Cat", GROUP, at, &format!("y:{name}"));
    assert_eq!(stage.ran(&["start"]).code, Some(0));
    until("what was approved", || done(&stage).0 == run + 1);
    daemon.wait("the turn's end", |it| it["working"] == false);
    old.push((at, name));
    daemon.kill();
    assert_eq!(stage.ran(&["start"]).code, Some(0));
    again("after a restart", &old);
    thread::sleep(Duration::from_millis(500));
    let (begun, lines) = done(&stage);
    assert_eq!((begun, lines.len()), (run + 1, run + 1), "{lines:?}");
    telegram.check();
}

/// A15: a question is answered in the conversation that it was asked in, by who may there, or at the machine;
/// where its channel is gone, it is a no. Controls: the same answers where they count.
#[test]
fn a15_a_question_is_not_answered_over_another_channel() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let script = [command(1), command(2)].into_iter().flatten().collect();
    let (telegram, model) = asking(&stage, script, "");
    anywhere(&stage);
    let server = webhook::channel(&stage);
    let daemon = Daemon::start(&stage);
    let port = webhook::page(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    pair(&stage, &telegram, BOB, "Bob", "user");
    webhook::pair(&stage, &server, port, "ann", "owner");
    webhook::pair(&stage, &server, port, "bob", "user");
    // Whoever asks for it in a conversation of their own cannot say yes there, by a button or in words.
    telegram.says(BOB, "Bob", BOB, "do 1");
    let (at, shown) = telegram.wait_for(BOB, "Only an owner or an operator may answer this");
    assert!(shown.buttons.is_empty() && shown.text.contains("ran 1"), "{shown:#?}");
    let name = stage.ran(&["--json", "approvals", "list"]).lines()[0]["id"].as_str().unwrap().to_owned();
    telegram.taps_with(BOB, "Bob", BOB, at, &format!("y:{name}"));
    telegram.says(BOB, "Bob", BOB, &format!("/approve {}", name.split_at(8).0));
    telegram.says(BOB, "Bob", BOB, &format!("/approve {name}"));
    until("two refusals", || times(&telegram, BOB, "may not do that") >= 2);
    // Words that look like it are words, also of an owner's: in another chat, over another channel, and
    // passed on.
    telegram.taps_with(ANN, "Ann", ANN, at, &format!("y:{name}"));
    telegram.says(ANN, "Ann", ANN, &format!("/approve {name}"));
    telegram.wait_for(ANN, "no such open question in this conversation");
    let chosen = |who: &str, at: &str| json!({ "conversation": at, "from": { "id": who }, "chosen": format!("y:{name}") });
    for (number, (who, at)) in
        [("ann", "build 7"), ("bob", "build 7"), ("ann", &*BOB.to_string()), ("eve", "build 7")]
            .into_iter()
            .enumerate()
    {
        assert_eq!(webhook::deliver(port, &format!("yes-{number}"), &chosen(who, at)), 200);
    }
    let mut words = webhook::says("ann", &format!("/approve {name}"));
    words["conversation"] = json!(BOB.to_string());
    assert_eq!(webhook::deliver(port, "words", &words), 200);
    server.wait_for("no such open question in this conversation");
    thread::sleep(Duration::from_millis(500));
    let status = daemon.status();
    let questions: u64 =
        status["sessions"].as_array().unwrap().iter().filter_map(|it| it["questions"].as_u64()).sum();
    assert_eq!((questions, model.requests().len(), stage.entries("answered").len()), (1, 1, 0), "{status:#}");
    assert_eq!(stage.ran(&["approvals", "approve", &name]).code, Some(0));
    telegram.wait_for(BOB, "over with 1.");
    assert_eq!(done(&stage).0, 1);
    // The control: over that very channel its owner answers what was asked there.
    assert_eq!(webhook::deliver(port, "two", &webhook::says("ann", "do 2")), 200);
    let card = server.wait_for("\"chosen\":\"y:");
    let yes = card["body"]["choices"][0]["chosen"].clone();
    let chosen = json!({ "conversation": "build 7", "from": { "id": "ann" }, "chosen": yes });
    assert_eq!(webhook::deliver(port, "three", &chosen), 200);
    server.wait_for("over with 2.");
    telegram.check();
}

/// A15, A12: a question whose channel is gone is a no once its time is over, and a yes that comes later runs
/// nothing.
#[test]
fn a15_a_question_that_nobody_could_see_is_a_no() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let script = [command(1), command(2)].into_iter().flatten().collect();
    let (telegram, model) = asking(&stage, script, "answer_seconds = 4\n");
    let _daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    for method in ["sendMessage", "editMessageText"] {
        telegram.fail_with(method, "ran 1 ", vec![Fault::Lost; 2]);
    }
    telegram.says(ANN, "Ann", ANN, "do 1");
    until("the question", || stage.entries("asked").len() == 1);
    let name = stage.ran(&["--json", "approvals", "list"]).lines()[0]["id"].as_str().unwrap().to_owned();
    // The model goes on with a no, whoever has seen what.
    model.wait_for(2);
    assert!(model.requests()[1].body.contains("nobody answered in time"), "{}", model.requests()[1].body);
    telegram.wait_for(ANN, "over with 1.");
    let count = telegram.toasts().len();
    telegram.taps_with(ANN, "Ann", ANN, 1, &format!("y:{name}"));
    until("an answer to the tap", || telegram.toasts().len() > count);
    assert_ne!(stage.ran(&["approvals", "approve", &name]).code, Some(0));
    assert_eq!(done(&stage).0, 0);
    // The control: where it arrives in time, the same yes is one.
    telegram.says(ANN, "Ann", ANN, "do 2");
    let (at, _) = card(&telegram, ANN, 2);
    telegram.taps(ANN, "Ann", ANN, at, YES);
    telegram.wait_for(ANN, "over with 2.");
    assert_eq!(done(&stage).0, 1);
    telegram.check();
}

/// A44: what a stranger wrote stays theirs where a member answers it, a borrowed name is nobody's, and a
/// message that is changed later is neither a yes nor other words for what was approved. Control: a member's
/// own words.
#[test]
fn a44_words_of_strangers_and_changed_words_are_what_they_are() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let script: Vec<Reply> = [command(1), command(2)].into_iter().flatten().collect();
    let spare = (0..4).map(|_| Reply::text("nothing more."));
    let (telegram, _model) = asking(&stage, script.into_iter().chain(spare).collect(), "");
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    pair(&stage, &telegram, BOB, "Bob", "user");
    let borrowed = json!({
        "text": "/estop@bailey_bot", "sender": { "id": ANN }, "forward_from": { "id": ANN }, "author_signature": "Ann",
    });
    telegram.brings(EVE, "Ann", GROUP, &borrowed);
    telegram.wait_for(GROUP, "You are not known here");
    let text = "echo ran 1 >> ran.txt";
    let from = json!({ "id": EVE, "is_bot": false, "first_name": "Ann" });
    let quoted =
        json!({ "message_id": 3, "chat": { "id": GROUP, "type": "supergroup" }, "from": from, "text": text });
    let answer = json!({ "text": "@bailey_bot what is that?", "reply_to_message": quoted });
    telegram.brings(BOB, "Bob", GROUP, &answer);
    let (at, shown) = card(&telegram, GROUP, 1);
    assert!(
        shown.text.contains("a message of user Bob (phone 77) with somebody else's words in it"),
        "{shown:#?}"
    );
    telegram.taps(ANN, "Ann", GROUP, at, "No");
    telegram.wait_for(GROUP, "over with 1.");
    let said = telegram.says(BOB, "Bob", GROUP, "@bailey_bot echo ran 2 >> ran.txt");
    let (at, shown) = card(&telegram, GROUP, 2);
    assert!(shown.text.contains("user Bob (phone 77) wrote it"), "the control: {shown:#?}");
    let accepted = stage.entries("accepted");
    let integrity: Vec<&str> =
        accepted.iter().map(|it| it["labels"]["integrity"].as_str().unwrap()).collect();
    assert_eq!(integrity, ["external", "user"], "{accepted:#?}");

    // Nobody says yes by changing what they said before, and nothing else runs for it.
    telegram.edits(ANN, "Ann", GROUP, said, "/approve@bailey_bot");
    telegram.edits(BOB, "Bob", GROUP, said, "@bailey_bot echo ran 7 >> ran.txt");
    until("both changes", || stage.entries("accepted").len() == 4);
    assert_eq!(daemon.status()["sessions"][0]["questions"], 1);
    assert_eq!(stage.entries("answered").len(), 1);
    telegram.taps(ANN, "Ann", GROUP, at, YES);
    telegram.edits(BOB, "Bob", GROUP, said, "@bailey_bot echo ran 8 >> ran.txt");
    until("the last change", || stage.entries("accepted").len() == 5);
    daemon.wait("the turn's end", |it| it["working"] == false);
    assert_eq!(done(&stage), (1, vec!["ran 2".to_owned()]));
    assert!(stage.entries("stopped").is_empty());
    telegram.check();
}

/// Who taps asks for nothing: strangers in a group take no place of those who ask to be let in. Control: who
/// writes takes one.
#[test]
fn strangers_who_tap_take_no_place_of_those_who_ask() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, _model) = asking(&stage, command(1).into(), "");
    let _daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    telegram.says(ANN, "Ann", GROUP, "@bailey_bot do 1");
    let (at, _) = card(&telegram, GROUP, 1);
    let count = telegram.toasts().len();
    for stranger in 0..8 {
        telegram.taps(EVE + stranger, "Eve", GROUP, at, YES);
    }
    until("an answer to each tap", || telegram.toasts().len() >= count + 8);
    assert!(telegram.toasts().iter().skip(count).all(|(_, it)| it.contains("not known here")));
    let asked = || stage.ran(&["--json", "channels", "list"]).lines()[0]["asked"].clone();
    assert_eq!(asked(), json!(0));
    pair(&stage, &telegram, BOB, "Bob", "user");
    telegram.says(EVE, "Eve", EVE, "and I?");
    telegram.wait_for(EVE, "You are not known here");
    assert_eq!(asked(), json!(1));
    telegram.taps(ANN, "Ann", GROUP, at, "No");
    telegram.wait_for(GROUP, "over with 1.");
    telegram.check();
}

/// A49: a stop from a terminal, a phone, a server and a browser ends what runs within a second, with what is
/// due and what is said, also after a restart, until a human releases it. Control: the same without one.
#[test]
fn a49_a_stop_from_each_channel_ends_everything_and_outlives_a_restart() {
    for (number, from) in ["", "terminal", "phone", "server", "page"].into_iter().enumerate() {
        let stage = Stage::new(&[("a.txt", "one\n")]);
        let marker = format!("{}", 98_760 + number);
        let run = json!({ "command": format!("exec sleep {marker}") });
        let model = stage.model(vec![Reply::calls([("c1", "command_run", run)])]);
        (0..4).for_each(|_| model.push(Reply::text("it goes on.")));
        default_model(&stage);
        let telegram = channel(&stage);
        anywhere(&stage);
        let server = webhook::channel(&stage);
        let daemon = Daemon::start(&stage);
        let port = webhook::page(&stage);
        pair(&stage, &telegram, ANN, "Ann", "owner");
        webhook::pair(&stage, &server, port, "ann", "owner");
        let page = Page::of(&stage);
        let ran = stage.ran(&["schedule", "add", "yearly", "--cron", "0 0 1 1 *", "look around"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        telegram.says(ANN, "Ann", ANN, "work");
        until("the command", || lives(&marker));
        let begin = Instant::now();
        match from {
            "terminal" => assert_eq!(stage.ran(&["estop"]).code, Some(0)),
            "phone" => drop(telegram.says(ANN, "Ann", ANN, "/estop")),
            "server" => assert_eq!(webhook::deliver(port, "stop", &webhook::says("ann", "/estop")), 200),
            "page" => assert_eq!(page.post("/api/do", &json!({ "act": "estop" })).status, 200),
            _ => thread::sleep(Duration::from_secs(1)),
        }
        let is_stopped = !from.is_empty();
        if is_stopped {
            until("the command's end", || !lives(&marker));
            let took = begin.elapsed();
            println!("{from}: {} ms", took.as_millis());
            assert!(took < Duration::from_secs(1), "{from}: {took:?}");
        }
        assert_eq!(lives(&marker), !is_stopped);
        thread::sleep(Duration::from_secs(1).saturating_sub(begin.elapsed()));
        let outbound = || {
            let calls = ["sendMessage", "editMessageText", "sendChatAction", "getUpdates"];
            calls.iter().map(|method| telegram.calls(method)).sum::<usize>() + server.posts().len()
        };
        let before = outbound();
        thread::sleep(Duration::from_secs(5));
        assert_eq!(outbound() > before, !is_stopped, "{from}: what is said");

        // What is due, what is said and what was cut off begin nothing after a restart either.
        since(&stage, "2020-06-01T00:00:00Z");
        daemon.kill();
        let (asked, before) = (model.requests().len(), outbound());
        assert_eq!(stage.ran(&["start"]).code, Some(0));
        telegram.says(ANN, "Ann", ANN, "hello?");
        if !is_stopped {
            model.wait_for(asked + 2);
            telegram.wait_for(ANN, "it goes on.");
            continue;
        }
        thread::sleep(Duration::from_secs(2));
        assert_eq!((model.requests().len(), outbound()), (asked, before), "{from}");
        assert!(!lives(&marker));
        if from == "page" {
            let Some(mut terminal) = Terminal::start(&stage, &["estop", "--release"]) else { return };
            terminal.wait_for("let the agents of this home work again?");
            terminal.keys("y\n");
            assert_eq!(terminal.end().0, 0);
            daemon.kill();
            assert_eq!(stage.ran(&["start"]).code, Some(0));
            telegram.wait_for(ANN, "it goes on.");
        }
    }
}
