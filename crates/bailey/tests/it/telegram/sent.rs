//! Messages of the agent's apart from its answer: to the session's own person, and by rule to others.

use super::{ANN, BOB, EVE, at, pair, times};
use crate::{daemon::Daemon, schedules::wait, stage::Stage};
use bailey_testkit::{
    Reply,
    telegram::{Sent, Telegram},
};
use serde_json::{Value, json};
use std::{fs, io::Write as _, os::unix::net::UnixStream, thread, time::Duration};

/// The wall of the program with controls that is left away.
const WITHOUT: &str = "BAILEY_CONTROL_PAGE_WITHOUT";
/// A text that looks like a key.
const KEY: &str = "ghp_Zk3Pq8Rt5Yu1Io4As6Df8Gh2Jw9Lm0Nb7Vc1";
/// A picture of one pixel.
const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0";

fn send(arguments: Value) -> Reply {
    Reply::calls([("c1", "message_send", arguments)])
}

fn files(telegram: &Telegram, chat: i64) -> Vec<Sent> {
    telegram.shown(chat).into_iter().filter_map(|(_, shown)| shown.file).collect()
}

fn result(stage: &Stage) -> String {
    let shown = stage.entries("observation");
    shown.last().map(Value::to_string).unwrap_or_default()
}

#[test]
fn a_picture_and_a_report_come_to_the_person_who_asked() {
    let stage = Stage::new(&[("report.csv", "a,b\n1,2\n")]);
    fs::write(stage.project().join("chart.png"), PIXEL).unwrap();
    let script = vec![
        send(json!({ "file": "chart.png", "text": "The **chart**:" })),
        send(json!({ "file": "report.csv" })),
        Reply::text("Both are with you."),
    ];
    let (telegram, _model) = at(&stage, script);
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    telegram.says(ANN, "Ann", ANN, "send me the chart and the report");
    telegram.wait_for(ANN, "Both are with you.");
    telegram.wait_for(ANN, "The chart:");
    let sent =
        |name: &str, bytes: &[u8], is_photo| Sent { name: name.into(), bytes: bytes.to_vec(), is_photo };
    let both = [sent("chart.png", PIXEL, true), sent("report.csv", b"a,b\n1,2\n", false)];
    assert_eq!(files(&telegram, ANN), both);
    // Each was judged and written down, and no question was asked.
    let intents: Vec<Value> = stage.entries("intent").into_iter().filter(|it| it["kind"] == "tool").collect();
    assert_eq!(intents.len(), 2, "{intents:#?}");
    assert!(stage.entries("asked").is_empty());
    let session = daemon.status()["sessions"][0]["session"].as_str().unwrap().to_owned();
    // A client that comes to the session later is told of its last turn, and sends nothing twice.
    daemon.wait("no client", |it| it["clients"] == 0);
    telegram.says(ANN, "Ann", ANN, "/diff");
    telegram.wait_for(ANN, "No changes wait.");
    thread::sleep(Duration::from_millis(700));
    assert_eq!((files(&telegram, ANN).len(), times(&telegram, ANN, "The chart:")), (2, 1));
    telegram.check();
    drop(daemon);
    let again = stage.ran(&["replay", &session]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(files(&telegram, ANN).len(), 2);
}

/// The owner works in the session of another person's conversation. Control: that person asks for the file.
#[test]
fn a_file_for_the_owner_does_not_come_to_another_person_of_the_session() {
    let stage = Stage::new(&[("report.csv", "a,b\n")]);
    let report = || send(json!({ "file": "report.csv" }));
    let script = vec![
        Reply::text("Hello Bob."),
        report(),
        Reply::text("It is with the owner."),
        Reply::text("You are welcome."),
        report(),
        Reply::text("Here it is."),
    ];
    let (telegram, model) = at(&stage, script);
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, BOB, "Bob", "user");
    telegram.says(BOB, "Bob", BOB, "hello");
    telegram.wait_for(BOB, "Hello Bob.");
    let session = daemon.status()["sessions"][0]["session"].as_str().unwrap().to_owned();
    let mut owner = UnixStream::connect(stage.home().join("daemon").join(session)).unwrap();
    owner.write_all(b"{\"op\":\"say\",\"text\":\"send me report.csv\"}\n").unwrap();
    model.wait_for(3);
    wait("the owner's turn to end", || stage.entries("turn_ended").len() == 2);
    // Bob's connection is told of the last turn.
    telegram.says(BOB, "Bob", BOB, "thanks");
    telegram.wait_for(BOB, "You are welcome.");
    thread::sleep(Duration::from_millis(300));
    assert!(files(&telegram, BOB).is_empty());
    telegram.says(BOB, "Bob", BOB, "and for me?");
    telegram.wait_for(BOB, "Here it is.");
    assert_eq!(files(&telegram, BOB).len(), 1, "the control");
    telegram.check();
}

/// The attack: the agent was deceived to send a key away. Control: without that look, the same file goes.
#[test]
fn a_file_with_a_secret_in_it_is_not_sent() {
    for is_control in [false, true] {
        let stage = Stage::new(&[("notes.txt", "")]);
        fs::write(stage.project().join("notes.txt"), format!("the token is {KEY}\n")).unwrap();
        let (telegram, _model) =
            at(&stage, vec![send(json!({ "file": "notes.txt" })), Reply::text("So it is.")]);
        let _daemon =
            if is_control { Daemon::with(&stage, WITHOUT, "message-secrets") } else { Daemon::start(&stage) };
        pair(&stage, &telegram, ANN, "Ann", "owner");
        telegram.says(ANN, "Ann", ANN, "send me the notes");
        telegram.wait_for(ANN, "So it is.");
        thread::sleep(Duration::from_millis(300));
        let sent: Vec<Vec<u8>> = files(&telegram, ANN).into_iter().map(|file| file.bytes).collect();
        assert_eq!(sent.concat().is_empty(), !is_control, "{}", result(&stage));
        assert_eq!(result(&stage).contains("\"ok\":true"), is_control, "{}", result(&stage));
        telegram.check();
    }
}

#[test]
fn another_person_is_written_to_only_after_a_yes_and_only_who_is_let_in() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let to = |id: i64| send(json!({ "text": "The build is red.", "to": format!("phone:{id}") }));
    let script = vec![
        to(BOB),
        Reply::text("I did not tell him."),
        to(BOB),
        Reply::text("I told him."),
        to(EVE),
        Reply::text("I told her."),
        send(json!({ "text": "x", "to": "fax:7" })),
        Reply::text("There is no fax."),
    ];
    let (telegram, _model) = at(&stage, script);
    let _daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    pair(&stage, &telegram, BOB, "Bob", "user");
    for (answer, end) in
        [("No", "I did not tell him."), ("Yes, once", "I told him."), ("Yes, once", "I told her.")]
    {
        telegram.says(ANN, "Ann", ANN, "tell them");
        let (card, shown) =
            telegram.wait(ANN, "the card", |it| it.buttons.iter().any(|(label, _)| label == answer));
        assert!(
            shown.text.contains("message.send_to") && shown.text.contains("The build is red."),
            "{shown:#?}"
        );
        assert_eq!(times(&telegram, BOB, "The build is red."), usize::from(end.contains("her")), "{answer}");
        telegram.taps(ANN, "Ann", ANN, card, answer);
        telegram.wait_for(ANN, end);
    }
    // Who is not let in is not written to, whatever was answered.
    telegram.wait_for(ANN, "the person 666 is not let in here");
    assert!(telegram.shown(EVE).is_empty());
    assert_eq!(times(&telegram, BOB, "The build is red."), 1);
    telegram.says(ANN, "Ann", ANN, "fax it");
    let (card, _) = telegram.wait(ANN, "the card", |it| it.text.contains("fax:7") && !it.buttons.is_empty());
    telegram.taps(ANN, "Ann", ANN, card, "Yes, once");
    telegram.wait_for(ANN, "There is no fax.");
    telegram.check();
}

/// The attack: the content that a human said yes to is swapped before it goes. Control: uncompared, the
/// other content goes.
#[test]
fn a_file_that_changed_after_the_question_is_not_sent() {
    for is_control in [false, true] {
        let stage = Stage::new(&[("a.txt", "harmless\n")]);
        let swap = "sleep 3; echo all that I know > a.txt; touch swapped";
        let swap = Reply::calls([("c0", "command_run", json!({ "command": swap, "background": true }))]);
        let send = send(json!({ "file": "a.txt", "to": format!("phone:{BOB}") }));
        let (telegram, _model) = at(&stage, vec![swap, send, Reply::text("So it is.")]);
        let _daemon =
            if is_control { Daemon::with(&stage, WITHOUT, "message-digest") } else { Daemon::start(&stage) };
        pair(&stage, &telegram, ANN, "Ann", "owner");
        pair(&stage, &telegram, BOB, "Bob", "user");
        telegram.says(ANN, "Ann", ANN, "send it to Bob");
        let (card, _) =
            telegram.wait(ANN, "the card", |it| it.text.contains("a.txt") && it.buttons.len() > 1);
        wait("the swap", || stage.entries("outcome").iter().any(|it| it["exit"] == 0));
        telegram.taps(ANN, "Ann", ANN, card, "Yes, once");
        telegram.wait_for(ANN, "So it is.");
        thread::sleep(Duration::from_millis(700));
        let sent: Vec<Vec<u8>> = files(&telegram, BOB).into_iter().map(|file| file.bytes).collect();
        let went: Vec<&[u8]> = if is_control { vec![b"all that I know\n"] } else { vec![] };
        assert_eq!(sent, went, "{is_control}: {}", result(&stage));
        telegram.check();
    }
}
