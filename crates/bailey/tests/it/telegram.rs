//! A person at a phone: the agent over Telegram, beneath the daemon, against a server of the Bot API.

mod attacks;
mod begins;
mod cards;
mod files;
mod rights;
mod sent;
mod stops;
mod task;

use crate::{
    attacks::actor::controls,
    daemon::{Daemon, end, open, pid},
    page::default_model,
    stage::Stage,
    takeover::inject::{self, Taken},
};
use bailey_testkit::{
    Gate, Message, ModelServer, Reply,
    telegram::{Fault, TOKEN, Telegram},
};
use nix::{errno::Errno, libc};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

pub(crate) const ANN: i64 = 42;
const BOB: i64 = 77;
const EVE: i64 = 666;

/// A home with a channel, and a model that answers in this order.
fn at(stage: &Stage, script: Vec<Reply>) -> (Telegram, ModelServer) {
    let model = stage.model(script);
    default_model(stage);
    (channel(stage), model)
}

/// Adds a channel to a home.
pub(crate) fn channel(stage: &Stage) -> Telegram {
    let telegram = Telegram::start();
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap();
    let channel = format!(
        "{own}\n[channels.phone]\nkind = \"telegram\"\nkey_env = \"PHONE_TOKEN\"\nworkspace = {:?}\nbase_url = {:?}\n",
        stage.project(),
        telegram.url()
    );
    fs::write(&config, channel).unwrap();
    fs::write(stage.home().join(".env"), format!("PHONE_TOKEN={TOKEN}\n")).unwrap();
    let mode = Command::new("chmod").arg("600").arg(stage.home().join(".env")).status().unwrap();
    assert!(mode.success());
    telegram
}

/// Lets somebody in, as they would be.
pub(crate) fn pair(stage: &Stage, telegram: &Telegram, who: i64, name: &str, role: &str) {
    telegram.says(who, name, who, "hello?");
    let_in(stage, telegram, who, name, role);
}

/// The same for somebody who was told a code already: whoever says something more may be heard, for it comes
/// when they are let in.
fn let_in(stage: &Stage, telegram: &Telegram, who: i64, name: &str, role: &str) {
    let (_, shown) = telegram.wait_for(who, "bailey channels pair phone");
    let code = shown.text.split("pair phone ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let ran = stage.ran(&["channels", "pair", "phone", &code, "--as", role]);
    assert!(ran.code == Some(0) && ran.stdout.contains(name), "{ran:?}");
}

fn bridge(stage: &Stage) -> u64 {
    let found = Command::new("pgrep")
        .args(["-f", &format!("{} channels run", stage.home().display())])
        .output()
        .unwrap();
    String::from_utf8(found.stdout).unwrap().lines().next().unwrap().parse().unwrap()
}

/// The process that serves the page, once it serves: its bounds are drawn before.
fn serving(stage: &Stage) -> u64 {
    let link = stage.ran(&["--json", "page", "link"]).lines()[0]["url"].as_str().unwrap().to_owned();
    let host = link.split('/').nth(2).unwrap();
    let mut page = TcpStream::connect(host).unwrap();
    write!(page, "GET /healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    page.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("ok\n"), "{answer}");
    let name = format!("{} web serve", stage.home().display());
    let found = Command::new("pgrep").args(["-f", &name]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().lines().next().unwrap().parse().unwrap()
}

/// How often a text stands among the bot's messages.
fn times(telegram: &Telegram, chat: i64, words: &str) -> usize {
    telegram.shown(chat).iter().map(|(_, shown)| shown.text.matches(words).count()).sum()
}

fn is_anywhere(folder: &Path, word: &str) -> Option<String> {
    let found =
        Command::new("grep").args(["-rlF", "--binary-files=text", word]).arg(folder).output().unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    (!found.is_empty()).then_some(found)
}

#[test]
fn a_person_is_let_in_and_talks_with_the_agent() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let list = Reply::calls([("c1", "fs_list", json!({ "path": "." }))]);
    let (telegram, model) = at(
        &stage,
        vec![list, Reply::text("There is **one** file: `a.txt` & <no> more."), Reply::text("again")],
    );
    let daemon = Daemon::start(&stage);
    // Strangers are not heard; a stranger who writes again is reminded of the code.
    telegram.says(EVE, "Eve", EVE, "let me in");
    telegram.wait_for(EVE, "You are not known here");
    telegram.says(EVE, "Eve", EVE, "let me in!");
    pair(&stage, &telegram, ANN, "Ann", "owner");
    assert!(model.requests().is_empty());
    assert_eq!(times(&telegram, EVE, "You are not known here"), 2);

    telegram.says(ANN, "Ann", ANN, "which files are there?");
    let (answer, shown) = telegram.wait_for(ANN, "There is one file: a.txt & <no> more.");
    assert!(shown.edits >= 1, "it grew: {shown:?}");
    assert!(model.requests()[0].body.contains("which files are there?"));
    // A second message goes on in the same session, below.
    telegram.says(ANN, "Ann", ANN, "and now?");
    let (second, _) = telegram.wait_for(ANN, "again");
    assert!(second > answer);
    assert!(model.requests()[2].body.contains("which files are there?"));
    let session = daemon.wait("the session", |it| it["working"] == false);
    let trail = stage.trail();
    let said: Vec<&Value> = trail.iter().filter(|it| it["type"] == "accepted").collect();
    assert_eq!(said.len(), 2, "{said:#?}");
    assert_eq!(said[0]["by"]["id"], "42");
    assert_eq!(said[0]["by"]["role"], "owner");
    assert_eq!(said[0]["session"], session["session"]);

    // What is for Bailey is not for the agent.
    telegram.says(ANN, "Ann", ANN, "/status");
    telegram.wait_for(ANN, "process");
    telegram.says(ANN, "Ann", ANN, "/backup");
    telegram.wait_for(ANN, "MiB, the journal up to entry");
    telegram.says(ANN, "Ann", ANN, "/nonsense");
    telegram.wait_for(ANN, "There is no command /nonsense");
    telegram.says(ANN, "Ann", ANN, "/clear");
    telegram.wait_for(ANN, "the next message begins a new session");
    model.push(Reply::text("who are you?"));
    telegram.says(ANN, "Ann", ANN, "a new one");
    telegram.wait_for(ANN, "who are you?");
    assert!(!model.requests()[3].body.contains("which files are there?"));

    let listed = stage.ran(&["--json", "channels", "list"]).lines();
    assert_eq!(
        (&listed[0]["up"], &listed[0]["people"], &listed[0]["asked"]),
        (&json!(true), &json!(1), &json!(1))
    );
    // Whoever is let in no more is a stranger at once.
    assert_eq!(stage.ran(&["channels", "forget", "phone", "42"]).code, Some(0));
    telegram.says(ANN, "Ann", ANN, "still there?");
    telegram.wait_for(ANN, "You are not known here");
    assert_eq!(model.requests().len(), 4);
    telegram.check();
    drop(daemon);
    // The key stands where the owner put it, and nowhere else.
    fs::remove_file(stage.home().join(".env")).unwrap();
    assert_eq!(is_anywhere(&stage.home(), TOKEN), None);
}

#[test]
fn a_question_is_answered_by_who_may_and_by_nobody_else() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let folder = tempfile::Builder::new().prefix("bailey-test-").tempdir_in("/var/tmp").unwrap();
    let file = folder.path().canonicalize().unwrap().join("notes.txt");
    fs::write(&file, "what the notes say\n").unwrap();
    let read = || Reply::calls([("c1", "fs_read", json!({ "path": file.to_str().unwrap() }))]);
    let (telegram, model) =
        at(&stage, vec![read(), Reply::text("it was read"), read(), Reply::text("it was not read")]);
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    pair(&stage, &telegram, BOB, "Bob", "user");
    let group = -100;
    // A group of three: only who is known is heard, and only when it is to us.
    telegram.says(BOB, "Bob", group, "not to you");
    telegram.says(BOB, "Bob", group, "@bailey_bot read the notes");
    let (card, shown) =
        telegram.wait(group, "a card", |it| it.text.contains("notes.txt") && !it.buttons.is_empty());
    assert_eq!(
        shown.buttons.iter().map(|(label, _)| label.as_str()).collect::<Vec<_>>(),
        ["Yes, once", "Yes, for this session", "No"]
    );
    let count = telegram.toasts().len();
    // Who asked for the work is no owner; who is not known is nobody; and a name is nothing.
    telegram.taps(BOB, "Bob", group, card, "Yes, once");
    telegram.taps(EVE, "Ann", group, card, "Yes, once");
    let wait = |count: usize| {
        let deadline = Instant::now() + Duration::from_secs(30);
        while telegram.toasts().len() < count {
            assert!(Instant::now() < deadline, "{:?}", telegram.toasts());
            thread::sleep(Duration::from_millis(20));
        }
    };
    wait(count + 2);
    let toasts = telegram.toasts();
    assert!(
        toasts.iter().any(|(_, words)| words.contains("user Bob") && words.contains("may not do that")),
        "{toasts:?}"
    );
    assert!(toasts.iter().any(|(_, words)| words.contains("not known here")), "{toasts:?}");
    // By a command in words neither, and a made-up button is none.
    let data = telegram.data(group, card, "Yes, once");
    let approve = format!("/approve@bailey_bot {}", data.trim_start_matches("y:"));
    telegram.says(BOB, "Bob", group, &approve);
    telegram.says(EVE, "Eve", group, &approve);
    telegram.taps_with(ANN, "Ann", group, card, "y:00000000000000000000000000000000");
    wait(count + 3);
    assert_eq!(daemon.status()["sessions"][0]["questions"], 1);
    assert_eq!(model.requests().len(), 1);
    // The same button in another conversation of the owner's is not this one.
    telegram.taps_with(ANN, "Ann", ANN, 1, &data);
    wait(count + 4);
    assert_eq!(model.requests().len(), 1);

    telegram.taps(ANN, "Ann", group, card, "Yes, once");
    telegram.wait_for(group, "it was read");
    let (_, shown) = telegram.wait(group, "the card's end", |shown| shown.text.contains("✔ yes, by Ann"));
    assert!(shown.buttons.is_empty());
    let trail = stage.trail();
    let answered: Vec<&Value> = trail.iter().filter(|it| it["type"] == "answered").collect();
    assert_eq!(answered.len(), 1, "{answered:#?}");
    assert!(answered[0]["by"].as_str().unwrap().starts_with("owner Ann (phone 42)"), "{answered:#?}");

    // A no, with a reason, in words.
    telegram.says(BOB, "Bob", group, "@bailey_bot once more");
    let (card, _) = telegram.wait(group, "the second card", |shown| {
        shown.text.contains("notes.txt") && !shown.buttons.is_empty()
    });
    let id = telegram.data(group, card, "No").trim_start_matches("n:").to_owned();
    telegram.says(ANN, "Ann", group, &format!("/reject@bailey_bot {id} not on a Friday"));
    telegram.wait_for(group, "it was not read");
    telegram.wait(group, "its end", |shown| shown.text.contains("✘ no: not on a Friday"));
    assert!(model.requests()[3].body.contains("not on a Friday"));
    telegram.check();
}

#[test]
fn loss_and_restarts_lose_and_repeat_nothing() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gates = [Gate::default(), Gate::default(), Gate::default()];
    let held = |gate: &Gate, text: &str| Reply::Held(gate.clone(), Message::text(text));
    let script = vec![
        Reply::text("the first answer"),
        held(&gates[0], "the second answer"),
        held(&gates[1], "the third answer"),
        Reply::text("the third answer"),
        Reply::text("the fourth answer"),
    ];
    let (telegram, model) = at(&stage, script);
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    // Everything fails once, in each way.
    for method in ["getUpdates", "sendMessage", "editMessageText"] {
        telegram.fail(method, [Fault::Lost, Fault::Slow(1), Fault::Broken, Fault::Unheard]);
    }
    telegram.says(ANN, "Ann", ANN, "one");
    telegram.wait_for(ANN, "the first answer");
    assert_eq!(model.requests().len(), 1);

    // Its process is killed in the middle of a turn, which goes on.
    telegram.says(ANN, "Ann", ANN, "two");
    model.wait_for(2);
    end(bridge(&stage), "-KILL");
    gates[0].open();
    telegram.wait_for(ANN, "the second answer");
    assert_eq!(model.requests().len(), 2);

    // All is killed in the middle of a turn, and a message comes while nobody is there.
    telegram.says(ANN, "Ann", ANN, "three");
    model.wait_for(3);
    let process = bridge(&stage);
    daemon.kill();
    let deadline = Instant::now() + Duration::from_secs(20);
    while Path::new(&format!("/proc/{process}")).exists() {
        assert!(Instant::now() < deadline, "the process of a channel outlives its daemon");
        thread::sleep(Duration::from_millis(10));
    }
    gates[1].open();
    gates[2].open();
    assert_eq!(stage.ran(&["start"]).code, Some(0));
    telegram.wait_for(ANN, "the third answer");
    // It rests, so that who comes next comes anew, and is told all that happened since.
    daemon.wait("nobody", |it| it["clients"] == 0);
    telegram.says(ANN, "Ann", ANN, "four");
    telegram.wait_for(ANN, "the fourth answer");
    // And a server that forgot what it brought brings all of it again.
    telegram.fail("getUpdates", [Fault::Again, Fault::Again]);
    let asked = telegram.calls("getUpdates");
    telegram.brings(EVE, "Eve", EVE, &json!({ "text": "wake up" }));
    let deadline = Instant::now() + Duration::from_secs(30);
    while telegram.calls("getUpdates") < asked + 3 {
        assert!(Instant::now() < deadline, "nobody asks for news any more");
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(Duration::from_millis(700));
    for answer in ["the first answer", "the second answer", "the third answer", "the fourth answer"] {
        assert_eq!(times(&telegram, ANN, answer), 1, "{answer}: {:#?}", telegram.shown(ANN));
    }
    let said = stage.trail().into_iter().filter(|it| it["type"] == "accepted").count();
    assert_eq!((said, model.requests().len()), (4, 5));
    let listed = stage.ran(&["--json", "sessions", "list", "--all"]).lines().len();
    assert_eq!(listed, 1, "the line to the platform is no conversation");
    telegram.check();
}

#[test]
fn an_answer_that_meets_a_wrong_key_is_shown_once_it_is_right() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let answers = ["the first answer", "the second answer", "the third answer"];
    let gates = answers.map(|_| Gate::default());
    let held = |(gate, text): (&Gate, &str)| Reply::Held(gate.clone(), Message::text(text));
    let (telegram, model) = at(&stage, gates.iter().zip(answers).map(held).collect());
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    let until = |what: &str, is_so: &dyn Fn() -> bool| {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !is_so() {
            assert!(Instant::now() < deadline, "{what} did not come");
            thread::sleep(Duration::from_millis(20));
        }
    };
    for (number, answer) in answers.into_iter().enumerate() {
        let (asked, before) = (telegram.calls("getUpdates"), telegram.locked_out());
        telegram.says(ANN, "Ann", ANN, "work");
        model.wait_for(number + 1);
        // Who asks for news with a wrong key ends.
        until("the next question for news", &|| telegram.calls("getUpdates") > asked);
        telegram.locks(true);
        gates[number].open();
        daemon.wait("the turn's end", |it| it["working"] == false);
        // One more follows only where the first was not given up.
        until("a second try to show it", &|| telegram.locked_out() > before + 1);
        match number {
            // Its process goes on; another one takes its place; and so does another daemon.
            0 => telegram.locks(false),
            1 => {
                telegram.locks(false);
                assert_eq!(stage.ran(&["reload"]).code, Some(0));
            }
            _ => {
                daemon.kill();
                telegram.locks(false);
                assert_eq!(stage.ran(&["start"]).code, Some(0));
            }
        }
        telegram.wait_for(ANN, answer);
    }
    for answer in answers {
        assert_eq!(times(&telegram, ANN, answer), 1, "{answer}: {:#?}", telegram.shown(ANN));
    }
    assert_eq!(model.requests().len(), 3);
    telegram.check();
}

/// Telegram counts what comes to each chat: where one is to be left alone, others are not.
#[test]
fn a_pause_of_one_conversation_is_none_of_the_others() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, model) = at(&stage, ["to the group", "to Ann"].map(Reply::text).to_vec());
    let _daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    let (group, pause) = (-100, Duration::from_secs(12));
    telegram.fail_with("sendMessage", "\"chat_id\":-100", [Fault::Slow(pause.as_secs())]);
    let sent = telegram.calls("sendMessage");
    telegram.says(ANN, "Ann", group, "@bailey_bot one");
    model.wait_for(1);
    let deadline = Instant::now() + Duration::from_secs(30);
    while telegram.calls("sendMessage") == sent {
        assert!(Instant::now() < deadline, "nothing was sent to the group");
        thread::sleep(Duration::from_millis(10));
    }
    let begin = Instant::now();
    telegram.says(ANN, "Ann", ANN, "two");
    telegram.wait_for(ANN, "to Ann");
    assert!(begin.elapsed() < pause - Duration::from_secs(2), "it waited: {:?}", begin.elapsed());
    // The control: the group is left alone for as long as that was asked for.
    assert!(telegram.shown(group).is_empty(), "{:#?}", telegram.shown(group));
    telegram.wait_for(group, "to the group");
    assert!(begin.elapsed() > pause - Duration::from_secs(1), "it did not wait: {:?}", begin.elapsed());
    telegram.check();
}

#[test]
fn a_question_that_a_kill_cut_off_is_answered_by_any_button_that_stands_there() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let folder = tempfile::Builder::new().prefix("bailey-test-").tempdir_in("/var/tmp").unwrap();
    let file = folder.path().canonicalize().unwrap().join("notes.txt");
    fs::write(&file, "what the notes say\n").unwrap();
    let read = Reply::calls([("c1", "fs_read", json!({ "path": file.to_str().unwrap() }))]);
    // Where the answer comes before the next process has said that it waits, the model is told of it once
    // more.
    let (telegram, _model) = at(&stage, vec![read, Reply::text("it was read"), Reply::text("it was read")]);
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    // The platform shows it, and the channel's process is killed before it hears so.
    telegram.fail_with("sendMessage", "notes.txt", [Fault::Unheard]);
    telegram.fail_with("editMessageText", "notes.txt", [Fault::Unheard]);
    telegram.says(ANN, "Ann", ANN, "read the notes");
    telegram.wait_for(ANN, "notes.txt");
    end(bridge(&stage), "-KILL");
    telegram.wait(ANN, "a card", |it| it.text.contains("notes.txt") && !it.buttons.is_empty());
    // All of it, as soon as the buttons stand there, and before anybody here hears that they do.
    daemon.kill();
    assert_eq!(stage.ran(&["start"]).code, Some(0));
    let cards: Vec<i64> = telegram
        .shown(ANN)
        .into_iter()
        .filter(|(_, shown)| !shown.buttons.is_empty())
        .map(|(id, _)| id)
        .collect();
    assert_eq!(cards.len(), 1, "{:#?}", telegram.shown(ANN));
    telegram.taps(ANN, "Ann", ANN, cards[0], "Yes, once");
    telegram.wait_for(ANN, "it was read");
    telegram.wait(ANN, "the card's end", |shown| shown.text.contains("✔ yes, by Ann"));
    let answers = stage.trail().into_iter().filter(|it| it["type"] == "answered").count();
    assert_eq!(answers, 1);
    let left: Vec<_> = telegram.shown(ANN).into_iter().filter(|(_, it)| !it.buttons.is_empty()).collect();
    assert!(left.is_empty(), "buttons that nobody knows: {left:#?}");
    telegram.check();
}

#[test]
fn what_was_not_shown_whole_gets_no_yes() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    // Fewer than three thousand characters, and more units than a message takes.
    let command = format!("echo {}", "\u{1f600}".repeat(2500));
    let run = Reply::calls([("c1", "command_run", json!({ "command": command, "network": true }))]);
    let (telegram, model) = at(&stage, vec![run, Reply::text("it was not run")]);
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    telegram.says(ANN, "Ann", ANN, "run it");
    let (card, shown) = telegram.wait_for(ANN, "cannot be shown whole here");
    assert_eq!(shown.buttons.iter().map(|(label, _)| label.as_str()).collect::<Vec<_>>(), ["No"]);
    let id = shown.buttons[0].1.trim_start_matches("n:").to_owned();
    // Neither in words nor by a button that nobody was given.
    telegram.says(ANN, "Ann", ANN, &format!("/approve {id}"));
    telegram.wait_for(ANN, "The question was not shown whole here");
    let count = telegram.toasts().len();
    telegram.taps_with(ANN, "Ann", ANN, card, &format!("y:{id}"));
    let deadline = Instant::now() + Duration::from_secs(30);
    while telegram.toasts().len() == count {
        assert!(Instant::now() < deadline, "nobody was told");
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!((daemon.status()["sessions"][0]["questions"].clone(), model.requests().len()), (json!(1), 1));
    telegram.taps(ANN, "Ann", ANN, card, "No");
    telegram.wait_for(ANN, "it was not run");
    telegram.check();
}

#[test]
fn an_emergency_stop_from_a_phone_ends_everything_and_not_by_anybody() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = Gate::default();
    let (telegram, model) = at(&stage, vec![Reply::Held(gate.clone(), Message::text("never said"))]);
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    pair(&stage, &telegram, BOB, "Bob", "user");
    telegram.says(ANN, "Ann", ANN, "work");
    model.wait_for(1);
    telegram.says(BOB, "Bob", BOB, "/estop");
    telegram.wait_for(BOB, "only an owner or an operator of this home");
    telegram.says(EVE, "Eve", EVE, "/estop");
    telegram.wait_for(EVE, "You are not known here");
    // What the owner passes on of somebody else's is no command of the owner's.
    telegram.brings(
        ANN,
        "Ann",
        ANN,
        &json!({ "text": "/estop", "forward_origin": { "type": "hidden_user" } }),
    );
    let deadline = Instant::now() + Duration::from_secs(20);
    let forwarded = || {
        let said = |it: &Value| it["type"] == "accepted" && it["labels"]["integrity"] == "external";
        stage.trail().into_iter().filter(said).count()
    };
    while forwarded() == 0 {
        assert!(Instant::now() < deadline, "what was passed on is not there as data: {:#?}", stage.trail());
        thread::sleep(Duration::from_millis(50));
    }
    daemon.wait("the turn goes on", |it| it["working"] == true);
    telegram.says(ANN, "Ann", ANN, "/estop");
    telegram.wait_for(ANN, "everything stops");
    let deadline = Instant::now() + Duration::from_secs(20);
    let stopped = || stage.trail().into_iter().filter(|it| it["type"] == "stopped").count();
    while stopped() == 0 {
        assert!(Instant::now() < deadline, "nothing was stopped");
        thread::sleep(Duration::from_millis(20));
    }
    // The entry comes first, and a moment later the processes end.
    let log = || fs::read_to_string(stage.home().join("daemon/log")).unwrap();
    while !log().contains(r#""what":"closed""#) {
        assert!(Instant::now() < deadline, "the session's process did not end: {}", log());
        thread::sleep(Duration::from_millis(20));
    }
    gate.open();
    thread::sleep(Duration::from_millis(700));
    assert_eq!(times(&telegram, ANN, "never said"), 0);
    let listed = stage.ran(&["--json", "channels", "list"]).lines();
    assert!(
        listed[0]["up"] == false || listed[0]["state"].as_str().unwrap().contains("stopped"),
        "{listed:#?}"
    );
    // Nothing begins any more.
    let ran = stage.ran(&["run", "--model", "test/model", "--approve", "never", "x"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    telegram.check();
}

#[test]
fn a_key_that_somebody_sends_is_nowhere() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, model) = at(&stage, vec![Reply::text("I will push it.")]);
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    let key = "ghp_Zk3Pq8Rt5Yu1Io4As6Df8Gh2Jw9Lm0Nb7Vc1";
    telegram.says(ANN, "Ann", ANN, key);
    telegram.wait_for(ANN, "looks like a password or a key");
    assert!(model.requests().is_empty());
    telegram.says(
        ANN,
        "Ann",
        ANN,
        &format!("push the branch with the words that we agreed on yesterday; the token is {key}"),
    );
    telegram.wait_for(ANN, "I will push it.");
    assert!(model.requests()[0].body.contains("push the branch") && !model.requests()[0].body.contains(key));
    // The control: what is no key is there to be found.
    drop(daemon);
    assert!(is_anywhere(&stage.home(), "words that we agreed").is_some());
    assert_eq!(is_anywhere(&stage.home(), key), None);
    telegram.check();
}

/// A server that others wrote (mockpost, from PyPI). It waits for nothing and brings everything again and
/// again.
struct Other {
    child: std::process::Child,
    url: String,
}

impl Other {
    fn start(stage: &Stage) -> Option<Self> {
        let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/doubles");
        if !packages.join("mockpost").is_dir() {
            println!(
                "SKIPPED: mockpost is not in target/doubles (`cargo xtask test --all --install` brings it)"
            );
            return None;
        }
        let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
        let port = free();
        let mut command = Command::new("python3");
        command.args(["-c", "from mockpost.cli import main; main()"]).env("PYTHONPATH", packages);
        command
            .env("MOCKPOST_HOST", "127.0.0.1")
            .env("MOCKPOST_HTTP_PORT", &port)
            .env("MOCKPOST_SMTP_PORT", free());
        command.env("MOCKPOST_DB_PATH", stage.folder().join("mockpost.db")).current_dir(stage.folder());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let other = Self { child, url: format!("http://127.0.0.1:{port}") };
        let deadline = Instant::now() + Duration::from_secs(60);
        while other.curl(&["/health"]).is_none() {
            assert!(Instant::now() < deadline, "mockpost does not start");
            thread::sleep(Duration::from_millis(100));
        }
        Some(other)
    }

    fn curl(&self, arguments: &[&str]) -> Option<Value> {
        let (path, rest) = arguments.split_first().unwrap();
        let url = format!("{}{path}", self.url);
        let output = Command::new("curl").args(["--silent", "--fail", &url]).args(rest).output().unwrap();
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap_or_default())
    }

    fn says(&self, text: &str) {
        let message = json!({ "chat_id": 42, "text": text, "from_user": "ann" }).to_string();
        let json = [
            "/telegram/client/sendMessage",
            "--header",
            "content-type: application/json",
            "--data",
            &message,
        ];
        assert!(self.curl(&json).is_some(), "mockpost takes no message");
    }

    /// What the bot said, the newest first.
    fn shown(&self) -> Vec<String> {
        let messages = self.curl(&["/api/messages"]).unwrap_or_default();
        let all =
            messages.as_array().or_else(|| messages["messages"].as_array()).cloned().unwrap_or_default();
        let ours = all.into_iter().filter(|it| it["direction"] == "outbound");
        ours.map(|it| it["body"].as_str().unwrap_or_default().to_owned()).collect()
    }

    fn wait_for(&self, words: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(found) = self.shown().into_iter().find(|shown| shown.contains(words)) {
                return found;
            }
            assert!(Instant::now() < deadline, "{words}: {:?}", self.shown());
            thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn a_server_that_others_wrote_is_spoken_with_and_answered_once() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let Some(other) = Other::start(&stage) else { return };
    let (ours, model) = at(&stage, vec![Reply::text("the answer")]);
    let config = fs::read_to_string(stage.home().join("config.toml")).unwrap();
    let config = config.replace(&ours.url(), &format!("{}/telegram", other.url));
    fs::write(stage.home().join("config.toml"), config).unwrap();
    let _daemon = Daemon::start(&stage);
    other.says("hello?");
    let told = other.wait_for("pair phone");
    let code = told.split("pair phone ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    assert_eq!(stage.ran(&["channels", "pair", "phone", &code]).code, Some(0));
    other.says("a question");
    other.wait_for("the answer");
    thread::sleep(Duration::from_secs(4));
    assert_eq!(
        other.shown().iter().filter(|shown| shown.contains("the answer")).count(),
        1,
        "{:?}",
        other.shown()
    );
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn what_is_wrong_with_a_channel_is_said() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, _model) = at(&stage, Vec::new());
    fs::write(stage.home().join(".env"), "PHONE_TOKEN=123:wrong_and_long_enough\n").unwrap();
    let daemon = Daemon::start(&stage);
    let state = |words: &str| {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let state = daemon.status()["channels"][0].clone();
            if state["note"].as_str().unwrap().contains(words) {
                return state;
            }
            assert!(Instant::now() < deadline, "{words}: {state}");
            thread::sleep(Duration::from_millis(50));
        }
    };
    assert_eq!(state("refuses the channel")["up"], false);
    fs::remove_file(stage.home().join(".env")).unwrap();
    assert_eq!(stage.ran(&["reload"]).code, Some(0));
    state("bailey secrets set PHONE_TOKEN");
    assert!(telegram.calls("getUpdates") == 0);
    // A rule that denies it is obeyed.
    fs::write(stage.home().join(".env"), format!("PHONE_TOKEN={TOKEN}\n")).unwrap();
    Command::new("chmod").arg("600").arg(stage.home().join(".env")).status().unwrap();
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    let rule = "[[rule]]\nname = \"no-chat\"\nanswer = \"deny\"\nreason = \"no chat here\"\nmatch = { action = \"http\", host = \"127.0.0.1\" }\n";
    fs::write(stage.home().join("policy/chat.toml"), rule).unwrap();
    assert_eq!(stage.ran(&["reload"]).code, Some(0));
    state("no chat here");
    assert!(telegram.calls("getUpdates") == 0);
    for (wrong, why) in [
        ("base_url = \"http://example.com\"", "unencrypted"),
        ("workspace = \"here\"", "full path"),
        ("colour = \"red\"", "colour"),
    ] {
        let (key, _) = wrong.split_once(' ').unwrap();
        let config = fs::read_to_string(stage.home().join("config.toml")).unwrap();
        let table = config.find("[channels.phone]").unwrap();
        let lines: Vec<&str> = config[table..].lines().filter(|line| !line.starts_with(key)).collect();
        fs::write(
            stage.home().join("config.toml"),
            format!("{}{}\n{wrong}\n", &config[..table], lines.join("\n")),
        )
        .unwrap();
        let ran = stage.ran(&["config", "check"]);
        assert!(ran.code == Some(2) && ran.stderr.contains(why), "{wrong}: {ran:?}");
        fs::write(stage.home().join("config.toml"), config).unwrap();
    }
}

/// What whoever holds a process can do: a name, and the result or the error as a negative number.
fn calls(stage: &Stage, socket: &Path, taken: &mut Taken) -> Vec<(&'static str, i64)> {
    let home = stage.home();
    let mut found = Vec::new();
    for (name, path, flags) in [
        ("read the keys", home.join(".env"), libc::O_RDONLY),
        ("let somebody in", home.join("channels/phone/people.json"), libc::O_WRONLY),
        ("read what another session does", home.join("daemon/log"), libc::O_RDONLY),
        ("write the configuration", home.join("config.toml"), libc::O_WRONLY),
        ("read the project", stage.project().join("a.txt"), libc::O_RDONLY),
    ] {
        let path = taken.put(path.to_str().unwrap().as_bytes());
        found.push((
            name,
            taken.call(libc::SYS_openat, [libc::AT_FDCWD as u64, path, flags as u64, 0o600, 0, 0]),
        ));
    }
    let unix = taken.call(libc::SYS_socket, [libc::AF_UNIX as u64, libc::SOCK_STREAM as u64, 0, 0, 0, 0]);
    let path = socket.to_str().unwrap().as_bytes();
    let address = taken.put(&[&1_u16.to_ne_bytes(), path, b"\0"].concat());
    let to = [unix as u64, address, 3 + path.len() as u64, 0, 0, 0];
    found.push(("come to another session", if unix < 0 { unix } else { taken.call(libc::SYS_connect, to) }));
    found
}

#[test]
fn who_takes_a_channel_or_a_session_over_comes_to_no_other() {
    for is_control in [false, true] {
        let stage = Stage::new(&[("a.txt", "one\n")]);
        let (telegram, _model) = at(&stage, Vec::new());
        let program = if is_control { controls() } else { Path::new(env!("CARGO_BIN_EXE_bailey")) };
        let mut start = Command::new(program);
        start.args(stage.bailey(&["start"]).get_args()).env("BAILEY_CONTROL_UNBOUND", "1");
        assert!(start.current_dir(stage.project()).stderr(Stdio::null()).status().unwrap().success());
        let daemon = Daemon::of(&stage);
        pair(&stage, &telegram, ANN, "Ann", "owner");
        let mut others = (0..2).map(|_| {
            let opened = open(&stage, &["-C", stage.project().to_str().unwrap()]);
            opened["session"].as_str().unwrap().to_owned()
        });
        let (one, other) = (others.next().unwrap(), others.next().unwrap());
        let status = daemon.status();
        let process =
            status["sessions"].as_array().unwrap().iter().find(|it| it["session"] == one).map(pid).unwrap();
        let socket = stage.home().join("daemon").join(&other);
        // The last parses what any program on the machine sends.
        for process in [bridge(&stage), process, serving(&stage)] {
            let process = u32::try_from(process).unwrap();
            let mut tried = 0;
            for thread in inject::threads(process) {
                let mut taken = match Taken::seize(thread) {
                    Ok(taken) => taken,
                    Err(Errno::ESRCH) => continue,
                    Err(error) => return println!("SKIPPED: ptrace is not allowed here ({error})"),
                };
                tried += 1;
                for (name, result) in calls(&stage, &socket, &mut taken) {
                    let is_refused = [-i64::from(libc::EACCES), -i64::from(libc::EPERM)].contains(&result);
                    assert!(
                        if is_control { result >= 0 } else { is_refused },
                        "{is_control}: {process} {name}: {result}"
                    );
                }
            }
            assert!(tried > 0, "{process} has a thread");
        }
    }
}
