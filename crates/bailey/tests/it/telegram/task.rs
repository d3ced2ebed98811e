//! A whole task on a phone: changes are shown, applied, taken back and thrown away, and its end is heard.

use super::{ANN, BOB, EVE, at, pair, times};
use crate::{
    daemon::{Client, Daemon},
    schedules::wait,
    stage::Stage,
};
use bailey_testkit::{
    Gate, Message, Reply,
    telegram::{Shown, Telegram},
};
use serde_json::{Value, json};
use std::{fs, thread, time::Duration};

fn write(id: &str, path: &str, content: &str) -> Reply {
    Reply::calls([(id, "fs_write", json!({ "path": path, "content": content }))])
}

fn labels(shown: &Shown) -> Vec<&str> {
    shown.buttons.iter().map(|(label, _)| label.as_str()).collect()
}

/// The message with buttons for the changes that wait.
fn offer(telegram: &Telegram, chat: i64, words: &str) -> (i64, Shown) {
    telegram.wait(chat, words, |it| it.text.contains(words) && labels(it).contains(&"Apply"))
}

#[test]
fn a_task_is_begun_looked_at_applied_and_taken_back_on_a_phone() {
    let stage = Stage::new(&[("prices.py", "one = 1\n")]);
    let script = vec![
        write("c1", "prices.py", "one = 2\n"),
        Reply::text("Fixed."),
        write("c2", "prices.py", "one = 3\n"),
        Reply::text("Fixed again."),
    ];
    let (telegram, model) = at(&stage, script);
    let _daemon = Daemon::start(&stage);
    let file = || fs::read_to_string(stage.project().join("prices.py")).unwrap();
    pair(&stage, &telegram, ANN, "Ann", "owner");
    pair(&stage, &telegram, BOB, "Bob", "user");
    // Without a session there is nothing to show, and no session begins for that.
    telegram.says(ANN, "Ann", ANN, "/diff");
    telegram.wait_for(ANN, "This conversation has no session yet");
    assert!(stage.ran(&["--json", "sessions", "list"]).lines().is_empty());

    telegram.says(ANN, "Ann", ANN, "make it two");
    let (first, shown) = offer(&telegram, ANN, "1 file changed, not applied yet:");
    assert!(shown.text.contains("prices.py +1 \u{2212}1"), "{shown:#?}");
    assert_eq!(labels(&shown), ["Apply", "Diff", "Discard"]);
    let (answer, _) = telegram.wait_for(ANN, "Fixed.");
    assert!(first > answer, "it stands below the answer");
    // A turn that took a moment ends with that.
    assert_eq!(times(&telegram, ANN, "Done"), 0, "{:#?}", telegram.shown(ANN));
    // The line of a tool is in words, as at a terminal.
    assert!(!telegram.shown(ANN).iter().any(|(_, it)| it.text.contains("{\"")), "{:#?}", telegram.shown(ANN));

    telegram.taps(ANN, "Ann", ANN, first, "Diff");
    let (diff, shown) = offer(&telegram, ANN, "+one = 2");
    assert!(shown.text.contains("-one = 1") && labels(&shown) == ["Apply", "Discard"], "{shown:#?}");
    // The older message has no buttons any more.
    assert!(telegram.shown(ANN).iter().all(|(id, it)| *id == diff || it.buttons.is_empty()));
    assert_eq!(file(), "one = 1\n");
    telegram.taps(ANN, "Ann", ANN, diff, "Apply");
    telegram.wait_for(ANN, "Applied to your project: prices.py. /undo takes it back.");
    assert_eq!(file(), "one = 2\n");
    wait("the buttons", || telegram.shown(ANN).iter().all(|(_, it)| it.buttons.is_empty()));

    telegram.says(ANN, "Ann", ANN, "/undo");
    telegram.wait_for(ANN, "Taken back: prices.py");
    assert_eq!(file(), "one = 1\n");
    telegram.says(ANN, "Ann", ANN, "/apply");
    wait("the second apply", || file() == "one = 2\n");

    // More changes are thrown away, and not by mistake.
    telegram.says(ANN, "Ann", ANN, "make it three");
    let (last, _) = offer(&telegram, ANN, "1 file changed");
    telegram.taps(ANN, "Ann", ANN, last, "Discard");
    let asked = |it: &Shown| labels(it) == ["Yes, throw them away", "No, keep them"];
    telegram.wait(ANN, "it is asked", asked);
    telegram.taps(ANN, "Ann", ANN, last, "No, keep them");
    telegram.wait(ANN, "the buttons of before", |it| labels(it) == ["Apply", "Diff", "Discard"]);
    telegram.says(ANN, "Ann", ANN, "/discard");
    let (last, _) = telegram.wait(ANN, "it is asked", asked);
    telegram.taps(ANN, "Ann", ANN, last, "Yes, throw them away");
    telegram.wait_for(ANN, "the session sees your project as it is");
    telegram.says(ANN, "Ann", ANN, "/diff");
    telegram.wait_for(ANN, "No changes wait.");
    assert_eq!(file(), "one = 2\n");
    // The session goes on, and its agent sees that.
    model.push(Reply::calls([("c3", "fs_read", json!({ "path": "prices.py" }))]));
    model.push(Reply::text("It is two."));
    telegram.says(ANN, "Ann", ANN, "what is it?");
    telegram.wait_for(ANN, "It is two.");
    assert!(model.requests().last().unwrap().body.contains("one = 2"));
    telegram.check();
}

#[test]
fn only_an_owner_or_an_operator_applies_and_a_button_moves_what_it_showed() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let script = vec![write("c1", "a.txt", "two\n"), Reply::text("It is two.")];
    let (telegram, model) = at(&stage, script);
    let daemon = Daemon::start(&stage);
    let file = || fs::read_to_string(stage.project().join("a.txt")).unwrap();
    pair(&stage, &telegram, ANN, "Ann", "owner");
    pair(&stage, &telegram, BOB, "Bob", "user");
    let group = -100;
    telegram.says(BOB, "Bob", group, "@bailey_bot make it two");
    let (message, _) = offer(&telegram, group, "1 file changed");
    let apply = telegram.data(group, message, "Apply");
    // A user looks, and moves nothing: by no button and by no word.
    telegram.says(BOB, "Bob", group, "/diff@bailey_bot");
    let (message, _) = offer(&telegram, group, "+two");
    let toasts = || telegram.toasts().iter().map(|(_, words)| words.clone()).collect::<Vec<_>>().join("\n");
    telegram.taps(BOB, "Bob", group, message, "Apply");
    wait("Bob is told", || toasts().contains("user Bob (phone 77) may not do that here"));
    telegram.taps(BOB, "Bob", group, message, "Discard");
    wait("Bob is told", || toasts().contains("Only an owner or an operator may do that."));
    let x = telegram.data(group, message, "Discard").replacen('x', "X", 1);
    telegram.taps_with(BOB, "Bob", group, message, &x);
    telegram.says(BOB, "Bob", group, "/undo@bailey_bot");
    telegram.says(BOB, "Bob", group, "/apply@bailey_bot");
    wait("Bob is told thrice more", || times(&telegram, group, "may not do that here") >= 3);
    telegram.taps(EVE, "Eve", group, message, "Apply");
    wait("Eve is told", || toasts().contains("not known here"));
    // A button of before, of another conversation, or a made-up one does nothing.
    telegram.taps_with(ANN, "Ann", group, message, &apply);
    wait("Ann is told", || toasts().contains("or there are others now"));
    let now = telegram.data(group, message, "Apply");
    let before = telegram.toasts().len();
    telegram.taps_with(ANN, "Ann", ANN, 1, &now);
    telegram.taps_with(ANN, "Ann", group, message, "a:00000000000000000000000000000000");
    wait("Ann is told twice more", || telegram.toasts().len() >= before + 2);
    // Nor does it move changes that were not shown: the agent changes more, from the machine.
    let session = daemon.status()["sessions"][0]["session"].as_str().unwrap().to_owned();
    model.push(write("c2", "a.txt", "three\n"));
    model.push(Reply::text("It is three."));
    let mut machine = Client::of(&stage, &session);
    machine.say(&json!({ "op": "say", "text": "make it three", "key": "at the machine" }));
    while machine.hear(&["accepted"])["key"] != "at the machine" {}
    machine.hear(&["end"]);
    telegram.taps(ANN, "Ann", group, message, "Apply");
    telegram.wait_for(group, "the changes are no longer those that were shown, so nothing was applied");
    assert_eq!(file(), "one\n");
    // The control: the changes that are shown now.
    telegram.says(ANN, "Ann", group, "/diff@bailey_bot");
    let (message, _) = offer(&telegram, group, "+three");
    telegram.taps(ANN, "Ann", group, message, "Apply");
    telegram.wait_for(group, "Applied to your project: a.txt");
    assert_eq!(file(), "three\n");
    telegram.check();
}

#[test]
fn a_red_file_is_asked_about_on_the_phone_before_it_is_applied() {
    let stage = Stage::new(&[("Makefile", "all:\n\techo one\n")]);
    let (telegram, _model) =
        at(&stage, vec![write("c1", "Makefile", "all:\n\techo two\n"), Reply::text("It says two.")]);
    let _daemon = Daemon::start(&stage);
    let file = || fs::read_to_string(stage.project().join("Makefile")).unwrap();
    pair(&stage, &telegram, ANN, "Ann", "owner");
    telegram.says(ANN, "Ann", ANN, "make it two");
    let (message, shown) = offer(&telegram, ANN, "1 file changed");
    assert!(shown.text.contains("a person is asked about Makefile"), "{shown:#?}");
    for (answer, end, is_moved) in
        [("No", "not approved", false), ("Yes, once", "Applied to your project", true)]
    {
        if is_moved {
            telegram.says(ANN, "Ann", ANN, "/apply");
        } else {
            telegram.taps(ANN, "Ann", ANN, message, "Apply");
        }
        let (card, shown) = telegram.wait(ANN, "the card", |it| labels(it).contains(&"Yes, once"));
        assert!(shown.text.contains("echo two"), "{shown:#?}");
        assert_eq!(file(), "all:\n\techo one\n");
        telegram.taps(ANN, "Ann", ANN, card, answer);
        telegram.wait_for(ANN, end);
        assert_eq!(file().contains("two"), is_moved, "{answer}");
    }
    telegram.check();
}

#[test]
fn the_end_of_a_long_turn_is_a_message_of_its_own() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gates = [Gate::default(), Gate::default()];
    let held = |gate: &Gate, text: &str| Reply::Held(gate.clone(), Message::text(text));
    let list = |id| Reply::calls([(id, "fs_list", json!({ "path": "." }))]);
    let script = vec![list("c1"), held(&gates[0], "a short one"), list("c2"), held(&gates[1], "a long one")];
    let (telegram, model) = at(&stage, script);
    let _daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    for (number, (gate, pause)) in gates.iter().zip([0, 12]).enumerate() {
        telegram.says(ANN, "Ann", ANN, "work");
        model.wait_for(2 * number + 2);
        telegram.wait(ANN, "its line", |it| it.text.contains("⚙ fs.list"));
        thread::sleep(Duration::from_secs(pause));
        gate.open();
        let (answer, _) = telegram.wait_for(ANN, ["a short one", "a long one"][number]);
        if pause > 0 {
            let (end, _) = telegram.wait_for(ANN, "✔ Done after 1");
            assert!(end > answer);
        }
    }
    // The control: the short one had no such message.
    assert_eq!(times(&telegram, ANN, "Done"), 1, "{:#?}", telegram.shown(ANN));
    telegram.check();
}

#[test]
fn the_menu_has_the_commands_of_the_help_and_is_given_once() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, _model) = at(&stage, Vec::new());
    let daemon = Daemon::start(&stage);
    wait("the menu", || !telegram.menu().is_empty());
    pair(&stage, &telegram, ANN, "Ann", "owner");
    telegram.says(ANN, "Ann", ANN, "/help");
    let (_, help) = telegram.wait_for(ANN, "what begins with / is for Bailey");
    let menu = telegram.menu();
    assert!(menu.iter().any(|(name, _)| name == "apply") && menu.len() > 10, "{menu:?}");
    for (name, _) in menu {
        assert!(help.text.contains(&format!("\n/{name}")), "{name}: {}", help.text);
    }
    daemon.kill();
    assert_eq!(stage.ran(&["start"]).code, Some(0));
    telegram.says(ANN, "Ann", ANN, "/memory");
    telegram.wait_for(ANN, "no memory across sessions");
    assert_eq!(telegram.calls("setMyCommands"), 1);
    telegram.check();
}

#[test]
fn the_result_of_a_schedule_comes_to_the_channels_owner_with_its_buttons() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = Gate::default();
    let held = Reply::Held(gate.clone(), Message::text("The report is made."));
    let (telegram, model) = at(&stage, vec![write("c1", "a.txt", "two\n"), held]);
    let daemon = Daemon::start(&stage);
    let add = |name: &str, to: &str| {
        stage.ran(&["schedule", "add", name, "--cron", "0 3 1 1 *", "--to", to, "make the report"])
    };
    let wrong = add("other", "fax");
    assert!(wrong.code == Some(2) && wrong.stderr.contains("there is no channel `fax`"), "{wrong:?}");
    let added = add("nightly", "phone");
    assert!(added.code == Some(0) && added.stderr.contains("no owner is let in"), "{added:?}");
    let listed = stage.ran(&["schedule", "list"]);
    assert!(listed.stdout.contains("; results to phone"), "{listed:?}");
    pair(&stage, &telegram, BOB, "Bob", "operator");
    assert_eq!(stage.ran(&["schedule", "run", "nightly"]).code, Some(0));
    // It waits for an owner; an operator is not one.
    model.wait_for(2);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    // All is killed in the middle of it.
    daemon.kill();
    gate.open();
    model.push(Reply::text("The report is made."));
    assert_eq!(stage.ran(&["start"]).code, Some(0));
    let (answer, shown) = telegram.wait_for(ANN, "The report is made.");
    assert!(shown.text.starts_with("⏰ nightly") && shown.edits == 1, "it comes at once, whole: {shown:#?}");
    let (message, _) = offer(&telegram, ANN, "1 file changed");
    assert!(message > answer);
    // Her own conversation is another session.
    model.push(Reply::text("I am yours."));
    telegram.says(ANN, "Ann", ANN, "who are you?");
    telegram.wait_for(ANN, "I am yours.");
    assert!(!model.requests().last().unwrap().body.contains("make the report"));
    telegram.taps(ANN, "Ann", ANN, message, "Apply");
    telegram.wait_for(ANN, "Applied to your project: a.txt");
    assert_eq!(fs::read_to_string(stage.project().join("a.txt")).unwrap(), "two\n");
    assert_eq!(times(&telegram, ANN, "The report is made."), 1, "{:#?}", telegram.shown(ANN));
    assert!(!telegram.shown(BOB).iter().any(|(_, it)| it.text.contains("report")));
    // The task was said once, by the clock alone.
    let said: Vec<Value> = stage.entries("accepted");
    let of_task = said.iter().filter(|it| it["by"]["channel"] == "schedule").count();
    assert_eq!((said.len(), of_task), (2, 1), "{said:#?}");
    telegram.check();
}

/// Columns are for terminals: the lines of a phone are short.
#[test]
fn pages_are_read_on_a_narrow_screen() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, _model) = at(&stage, Vec::new());
    let _daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    for (command, line) in [
        ("/tools", "fs.read · Read a text file."),
        ("/budget", "by one model call · no limit"),
        ("/status", "channel phone · up"),
    ] {
        telegram.says(ANN, "Ann", ANN, command);
        let (_, shown) = telegram.wait_for(ANN, line);
        assert!(!shown.text.lines().any(|line| line.trim().contains("  ")), "{shown:#?}");
    }
    telegram.check();
}
