//! What somebody wrote behind what stops something, and rights that change while things run.

use super::{ANN, BOB, at, bridge, pair};
use crate::{
    daemon::{Daemon, end},
    schedules::wait,
    stage::Stage,
};
use bailey_testkit::{
    Gate, Message, Reply,
    telegram::{Fault, Telegram},
};
use serde_json::json;
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

fn replace(stage: &Stage, old: &Path, new: &Path) {
    let config = stage.home().join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    let quoted = |path: &Path| format!("workspace = {path:?}");
    assert!(text.contains(&quoted(old)));
    fs::write(&config, text.replace(&quoted(old), &quoted(new))).unwrap();
}

/// The process of the channel is killed, so that the next one hears all of this at once.
fn says_at_once(stage: &Stage, telegram: &Telegram, texts: &[&str]) {
    end(bridge(stage), "-KILL");
    for text in texts {
        telegram.says(ANN, "Ann", ANN, text);
    }
}

#[test]
fn what_is_written_behind_a_stop_is_done() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = Gate::default();
    let held = Reply::Held(gate, Message::text("never said"));
    let (telegram, model) = at(&stage, vec![Reply::text("the first"), held, Reply::text("the second")]);
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    // Nothing is worked on.
    says_at_once(&stage, &telegram, &["/stop", "do this"]);
    telegram.wait_for(ANN, "the first");
    // A turn is.
    telegram.says(ANN, "Ann", ANN, "work");
    model.wait_for(2);
    says_at_once(&stage, &telegram, &["/stop", "but this"]);
    telegram.wait_for(ANN, "the second");
    let said: Vec<String> = model.requests().into_iter().map(|request| request.body).collect();
    assert!(said[0].contains("do this") && said[2].contains("but this"), "{said:#?}");
    assert_eq!(said.len(), 3);
    drop(daemon);
}

/// What is said meanwhile is answered below it, and by itself.
#[test]
fn two_answers_of_a_turn_do_not_run_together() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = Gate::default();
    let held = Reply::Held(gate.clone(), Message::text("the first, whole"));
    let (telegram, model) = at(&stage, vec![held, Reply::text("the second")]);
    let _daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    telegram.says(ANN, "Ann", ANN, "one");
    model.wait_for(1);
    let second = telegram.says(ANN, "Ann", ANN, "two");
    wait("both", || stage.trail().iter().filter(|it| it["type"] == "accepted").count() == 2);
    gate.open();
    let (message, _) = telegram.wait_for(ANN, "the second");
    let shown = telegram.shown(ANN);
    let texts: Vec<&str> = shown.iter().map(|(_, it)| it.text.as_str()).collect();
    assert!(texts.contains(&"the first, whole") && texts.contains(&"the second"), "{texts:?}");
    assert!(message > second, "it stands below what it answers");
}

#[test]
fn a_stop_that_is_denied_takes_nothing_along() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, model) = at(&stage, vec![Reply::text("seen"), Reply::text("I looked")]);
    let _daemon = Daemon::start(&stage);
    pair(&stage, &telegram, BOB, "Bob", "guest");
    telegram.says(BOB, "Bob", BOB, "hello");
    telegram.wait_for(BOB, "seen");
    telegram.has("slow", "documents/file_1.txt", b"words");
    telegram.fail("getFile", [Fault::Slow(4)]);
    let asked = telegram.calls("getFile");
    let file = json!({ "caption": "look at it", "document": { "file_id": "slow", "file_name": "f.txt", "file_size": 5 } });
    telegram.brings(BOB, "Bob", BOB, &file);
    wait("a question for the file", || telegram.calls("getFile") > asked);
    telegram.says(BOB, "Bob", BOB, "/estop");
    telegram.wait_for(BOB, "only an owner or an operator of this home may do that");
    telegram.wait_for(BOB, "I looked");
    assert!(model.requests()[1].body.contains("look at it"));
}

#[test]
fn a_conversation_goes_on_about_the_project_that_its_channel_is_about() {
    let stage = Stage::new(&[("of_the_first.txt", "one\n")]);
    let list = || Reply::calls([("c1", "fs_list", json!({ "path": "." }))]);
    let script = [list(), Reply::text("first"), list(), Reply::text("second"), list(), Reply::text("third")];
    let (telegram, model) = at(&stage, script.to_vec());
    let other = stage.folder().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("of_the_other.txt"), "two\n").unwrap();
    let _daemon = Daemon::start(&stage);
    pair(&stage, &telegram, BOB, "Bob", "owner");
    let asks = |text: &str, requests: usize, answer: &str| {
        telegram.says(BOB, "Bob", BOB, text);
        telegram.wait_for(BOB, answer);
        model.requests()[requests - 1].body.clone()
    };
    assert!(asks("list", 2, "first").contains("of_the_first.txt"));
    replace(&stage, &stage.project(), &other);
    assert_eq!(stage.ran(&["reload"]).code, Some(0));
    let seen = asks("list again", 4, "second");
    assert!(seen.contains("of_the_other.txt") && !seen.contains("of_the_first.txt"), "{seen}");
    // The control: the same one is gone on with.
    assert!(asks("and again", 6, "third").contains("list again"));
}

/// One in use was passed over, and went on with what it began with for as long as it was in use.
#[test]
fn a_conversation_that_is_used_at_a_reload_goes_on_with_what_was_read() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, _model) = at(&stage, ["first", "second", "third"].map(Reply::text).to_vec());
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    telegram.says(ANN, "Ann", ANN, "one");
    telegram.wait_for(ANN, "first");
    let running = daemon.wait("a session that is looked at", |it| it["clients"] == 1);
    telegram.says(ANN, "Ann", ANN, "two");
    telegram.wait_for(ANN, "second");
    assert_eq!(daemon.status()["sessions"][0]["pid"], running["pid"], "the control");
    assert_eq!(stage.ran(&["reload"]).code, Some(0));
    telegram.says(ANN, "Ann", ANN, "three");
    telegram.wait_for(ANN, "third");
    let now = daemon.wait("the session", |it| it["session"] == running["session"]);
    assert_ne!(now["pid"], running["pid"]);
}

/// Through one that hangs, or was taken over, somebody might speak on.
#[test]
fn whoever_is_forgotten_speaks_no_more_through_a_process_that_does_not_end() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, _model) = at(&stage, vec![Reply::text("first")]);
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, BOB, "Bob", "user");
    telegram.says(BOB, "Bob", BOB, "one");
    telegram.wait_for(BOB, "first");
    daemon.wait("a session that is looked at", |it| it["clients"] == 1);
    end(bridge(&stage), "-STOP");
    let begin = Instant::now();
    let ran = stage.ran(&["channels", "forget", "phone", &BOB.to_string()]);
    assert!(ran.code == Some(0) && ran.stderr.contains("a task that they gave before"), "{ran:?}");
    daemon.wait("nobody", |it| it["clients"] == 0 || it.is_null());
    assert!(begin.elapsed() < Duration::from_secs(2), "it took {:?}", begin.elapsed());
}
