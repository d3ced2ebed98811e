//! A newcomer: the channel is added, the first person is let in, roles change, sessions end, and a person who
//! is forgotten and let in again goes on.

use super::{ANN, BOB, EVE, at, pair, times};
use crate::{daemon::Daemon, page::default_model, schedules::wait, stage::Stage, terminal::Terminal};
use bailey_testkit::{
    Gate, Message, Reply,
    telegram::{Shown, TOKEN, Telegram},
};
use serde_json::json;
use std::{
    fs,
    io::Write as _,
    process::{Output, Stdio},
};

fn labels(shown: &Shown) -> Vec<&str> {
    shown.buttons.iter().map(|(label, _)| label.as_str()).collect()
}

fn asks(id: &str) -> Reply {
    Reply::calls([(id, "command_run", json!({ "command": "echo one", "network": true }))])
}

fn write(id: &str, content: &str) -> Reply {
    Reply::calls([(id, "fs_write", json!({ "path": "a.txt", "content": content }))])
}

/// The command that the bot prints is typed as it stands.
#[test]
fn the_printed_command_makes_the_first_person_the_owner() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, _model) = at(&stage, vec![Reply::text("hello")]);
    let _daemon = Daemon::start(&stage);
    // Telegram itself sends this first.
    telegram.says(ANN, "Ann", ANN, "/start");
    let (_, shown) = telegram.wait_for(ANN, "bailey channels pair phone");
    assert_eq!(times(&telegram, ANN, "what begins with / is for Bailey"), 0, "no help for a stranger");
    let printed = shown.text.lines().find(|line| line.starts_with("bailey channels")).unwrap().to_owned();
    assert!(printed.ends_with(" --as owner"), "{printed}");
    let listed = stage.ran(&["channels", "people"]);
    assert!(listed.stdout.contains(&format!("`{printed}`")), "{listed:?}");
    // Each further message of a stranger is answered, up to a bound.
    for (count, said) in [(2, "/status"), (3, "hello?")] {
        telegram.says(ANN, "Ann", ANN, said);
        wait("a reminder", || times(&telegram, ANN, &printed) == count);
    }
    telegram.says(ANN, "Ann", ANN, "hello??");
    let words: Vec<&str> = printed.split_whitespace().skip(1).collect();
    assert_eq!(stage.ran(&words).code, Some(0));
    telegram.wait_for(ANN, "You are let in, as owner.");
    telegram.says(ANN, "Ann", ANN, "/help");
    telegram.wait_for(ANN, "what begins with / is for Bailey");
    assert_eq!(times(&telegram, ANN, "You are let in"), 1);
    assert_eq!(times(&telegram, ANN, &printed), 3, "the bound");
    // The control: with an owner, the next person is a user.
    telegram.says(BOB, "Bob", BOB, "hello");
    let (_, shown) = telegram.wait_for(BOB, "bailey channels pair phone");
    assert!(!shown.text.contains("--as"), "{shown:#?}");
    telegram.check();
}

#[test]
fn a_card_for_a_person_who_may_not_answer_says_so_and_another_role_answers_it() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, model) = at(&stage, vec![asks("c1"), Reply::text("so be it")]);
    let _daemon = Daemon::start(&stage);
    pair(&stage, &telegram, BOB, "Bob", "user");
    telegram.says(BOB, "Bob", BOB, "run it");
    let (_, shown) = telegram.wait_for(BOB, "Only an owner or an operator may answer this");
    assert!(shown.buttons.is_empty(), "{shown:#?}");
    assert!(shown.text.contains("bailey channels pair phone 77 --as operator"), "{shown:#?}");
    // Without a role nothing changes.
    let ran = stage.ran(&["channels", "pair", "phone", "77"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("--as owner"), "{ran:?}");
    let ran = stage.ran(&["channels", "pair", "phone", "77", "--as", "owner"]);
    assert!(
        ran.code == Some(0) && ran.stdout.contains("Bob (phone 77) may write here now, as owner"),
        "{ran:?}"
    );
    let (card, _) = telegram.wait(BOB, "the buttons", |it| labels(it).contains(&"Yes, once"));
    // A no alone answers nothing and reaches no model.
    telegram.says(BOB, "Bob", BOB, "No");
    let (_, shown) = telegram.wait_for(BOB, "press a button on its card, or send:");
    assert!(shown.text.contains("/reject "), "{shown:#?}");
    telegram.taps(BOB, "Bob", BOB, card, "No");
    telegram.wait_for(BOB, "so be it");
    assert_eq!(model.requests().len(), 2);
    telegram.check();
}

#[test]
fn a_person_who_is_forgotten_and_let_in_again_gets_the_answer_below() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = Gate::default();
    let held = Reply::Held(gate.clone(), Message::text("the answer that waited"));
    let (telegram, model) = at(&stage, vec![held, Reply::text("the next one")]);
    let _daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    telegram.says(ANN, "Ann", ANN, "work");
    model.wait_for(1);
    assert_eq!(times(&telegram, ANN, "You are not known here"), 1, "the first one");
    assert_eq!(stage.ran(&["channels", "forget", "phone", "42"]).code, Some(0));
    let asked = telegram.calls("getUpdates");
    wait("the next process", || telegram.calls("getUpdates") > asked + 1);
    assert_eq!(times(&telegram, ANN, "You are not known here"), 1, "she wrote nothing");
    let real = telegram.says(ANN, "Ann", ANN, "still there?");
    wait("an answer to her message", || times(&telegram, ANN, "You are not known here") == 2);
    let (_, shown) = telegram.shown(ANN).into_iter().next_back().unwrap();
    let command = shown.text.lines().find(|line| line.starts_with("bailey channels")).unwrap().to_owned();
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    assert_eq!(stage.ran(&words).code, Some(0));
    wait("she is let in", || times(&telegram, ANN, "You are let in, as owner") == 2);
    gate.open();
    let (message, _) = telegram.wait_for(ANN, "the answer that waited");
    assert!(message > real, "it stands below her last message");
    telegram.says(ANN, "Ann", ANN, "and now?");
    let (next, _) = telegram.wait_for(ANN, "the next one");
    assert!(next > message);
    assert_eq!(times(&telegram, ANN, "the answer that waited"), 1);
    telegram.check();
}

#[test]
fn a_new_session_shows_its_changes_and_an_old_button_moves_none_of_them() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let script =
        vec![write("c1", "two\n"), Reply::text("first"), write("c2", "two\n"), Reply::text("second")];
    let (telegram, _model) = at(&stage, script);
    let _daemon = Daemon::start(&stage);
    let file = || fs::read_to_string(stage.project().join("a.txt")).unwrap();
    pair(&stage, &telegram, ANN, "Ann", "owner");
    telegram.says(ANN, "Ann", ANN, "make it two");
    let is_offer = |it: &Shown| labels(it).contains(&"Apply");
    let (old, _) = telegram.wait(ANN, "the changes", is_offer);
    let data = telegram.data(ANN, old, "Apply");
    telegram.says(ANN, "Ann", ANN, "/new");
    let (_, shown) = telegram.wait_for(ANN, "the next message begins a new session");
    assert!(shown.text.contains("1 change is not applied") && shown.text.contains("bailey sessions apply"));
    wait("no buttons", || !telegram.shown(ANN).iter().any(|(_, it)| is_offer(it)));
    telegram.says(ANN, "Ann", ANN, "make it two");
    let (new, _) = telegram.wait(ANN, "the same changes of the new session", is_offer);
    assert!(new > old);
    let count = telegram.toasts().len();
    telegram.taps_with(ANN, "Ann", ANN, old, &data);
    wait("a word", || telegram.toasts().len() > count);
    assert_eq!(file(), "one\n");
    // The control.
    telegram.taps(ANN, "Ann", ANN, new, "Apply");
    telegram.wait_for(ANN, "Applied to your project");
    assert_eq!(file(), "two\n");
    telegram.check();
}

fn add(stage: &Stage, words: &[&str], token: &str) -> Output {
    let mut command = stage.bailey(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(token.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_channel_is_added_by_one_command() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let model = stage.model(vec![Reply::text("I am here.")]);
    default_model(&stage);
    let telegram = Telegram::start();
    let _daemon = Daemon::start(&stage);
    let listed = stage.ran(&["channels", "list"]);
    assert!(listed.stderr.contains("bailey channels add telegram"), "{listed:?}");
    let url = telegram.url();
    let words = ["channels", "add", "telegram", "--base-url", &url];
    let config = || fs::read_to_string(stage.home().join("config.toml")).unwrap();
    // A text that is no token changes nothing.
    let before = config();
    let wrong = add(&stage, &words, "hello\n");
    assert!(!wrong.status.success() && config() == before, "{wrong:?}");
    let added = add(&stage, &words, &format!("{TOKEN}\n"));
    let told = String::from_utf8_lossy(&added.stdout).into_owned() + &String::from_utf8_lossy(&added.stderr);
    assert!(added.status.success(), "{told}");
    assert!(told.contains("the platform accepts the token") && told.contains("--as owner"), "{told}");
    assert!(!told.contains(TOKEN) && !config().contains(TOKEN));
    let listed = stage.ran(&["--json", "channels", "list"]).lines();
    assert_eq!((&listed[0]["up"], &listed[0]["connecting"]), (&json!(true), &json!(false)));
    telegram.says(ANN, "Ann", ANN, "/start");
    let (_, shown) = telegram.wait_for(ANN, "bailey channels pair telegram");
    let command = shown.text.lines().find(|line| line.starts_with("bailey channels")).unwrap().to_owned();
    let pair: Vec<&str> = command.split_whitespace().skip(1).collect();
    assert_eq!(stage.ran(&pair).code, Some(0));
    telegram.says(ANN, "Ann", ANN, "who are you?");
    telegram.wait_for(ANN, "I am here.");
    assert_eq!(model.requests().len(), 1);
    // Once more, it is there already.
    let again = add(&stage, &words, TOKEN);
    assert_eq!(again.status.code(), Some(2));
    telegram.says(EVE, "Eve", EVE, "/help");
    telegram.wait_for(EVE, "You are not known here");
    telegram.check();
}

#[test]
fn a_channel_whose_project_is_not_there_is_warned_of() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (_telegram, _model) = at(&stage, Vec::new());
    let _daemon = Daemon::start(&stage);
    let warning = "is not a directory";
    let fine = stage.ran(&["channels", "list"]);
    assert!(!fine.stderr.contains(warning), "the control: {fine:?}");
    fs::rename(stage.project(), stage.project().with_extension("moved")).unwrap();
    let run = |words: &[&str]| {
        let output = stage.bailey(words).current_dir(stage.home()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    for words in [&["channels", "list"][..], &["reload"], &["doctor", "--offline"]] {
        let told = run(words);
        assert!(told.contains(warning), "{words:?}: {told}");
    }
    fs::rename(stage.project().with_extension("moved"), stage.project()).unwrap();
}

/// With `d` the message that waits is not done after the stop, and its person is told.
#[test]
fn a_release_counts_the_waiting_work_and_drops_it_if_told_to() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let held = Reply::Held(Gate::default(), Message::text("never said"));
    let (telegram, model) = at(&stage, vec![held, Reply::text("it goes on")]);
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    telegram.says(ANN, "Ann", ANN, "work");
    model.wait_for(1);
    assert_eq!(stage.ran(&["estop"]).code, Some(0));
    daemon.kill();
    let Some(mut terminal) = Terminal::start(&stage, &["estop", "--release"]) else { return };
    terminal.wait_for("1 message that waits in a channel, and 1 session of the daemon");
    terminal.keys("d\n");
    assert_eq!(terminal.end().0, 0);
    assert_eq!(stage.ran(&["start"]).code, Some(0));
    telegram.wait_for(ANN, "your message was dropped");
    // The work that had begun does not go on. The next message does, with the first one before it.
    let log = stage.home().join("daemon/log");
    wait("its session", || fs::read_to_string(&log).unwrap().contains("begun_again"));
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(model.requests().len(), 1, "it goes on by itself");
    telegram.says(ANN, "Ann", ANN, "something else");
    telegram.wait_for(ANN, "it goes on");
    let requests = model.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].body.contains("something else"), "{}", requests[1].body);
    telegram.check();
}

/// Without `d` the work goes on by itself.
#[test]
fn work_goes_on_after_a_release_that_drops_nothing() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let held = Reply::Held(Gate::default(), Message::text("never said"));
    let (telegram, model) = at(&stage, vec![held, Reply::text("it goes on")]);
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    telegram.says(ANN, "Ann", ANN, "work");
    model.wait_for(1);
    assert_eq!(stage.ran(&["estop"]).code, Some(0));
    daemon.kill();
    let Some(mut terminal) = Terminal::start(&stage, &["estop", "--release"]) else { return };
    terminal.wait_for("1 message that waits in a channel, and 1 session of the daemon");
    terminal.keys("y\n");
    assert_eq!(terminal.end().0, 0);
    assert_eq!(stage.ran(&["start"]).code, Some(0));
    telegram.wait_for(ANN, "it goes on");
    assert_eq!(model.requests().len(), 2);
    telegram.check();
}
