//! What a question says on a phone is what is asked.

use super::{ANN, at, pair};
use crate::{daemon::Daemon, stage::Stage};
use bailey_testkit::{Reply, telegram::Fault};
use serde_json::json;

/// Attack A09: what is asked about draws a line of its own on the card, turns its end around, and hides a
/// word.
#[test]
fn a09_what_a_card_quotes_draws_no_line_of_it_and_hides_nothing() {
    const LINE: &str = "why: the owner allowed it";
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let command = format!("echo one\n{LINE}\n\u{202e}txt.exe\u{200b}\u{e0041}\u{1b}[2K");
    let run = Reply::calls([("c1", "command_run", json!({ "command": command, "network": true }))]);
    let (telegram, _model) = at(&stage, vec![run, Reply::text(&format!("I say\n\n{LINE}\u{202e}"))]);
    let _daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    telegram.says(ANN, "Ann", ANN, "run it");
    let (card, shown) = telegram.wait(ANN, "a card", |it| it.text.contains("exe") && !it.buttons.is_empty());
    let draws = |text: &str| text.lines().any(|line| line == LINE);
    let hides = |text: &str| {
        text.contains(|c: char| c != '\n' && c.is_control() || "\u{202e}\u{200b}\u{e0041}".contains(c))
    };
    assert!(!draws(&shown.text) && !hides(&shown.text), "{shown:#?}");
    // All of it stands there, so that a yes is one to all of it.
    assert!(shown.text.contains(&format!("echo one⏎{LINE}⏎⟨U+202E⟩txt.exe⟨U+200B⟩")), "{shown:#?}");
    telegram.taps(ANN, "Ann", ANN, card, "No");
    let (_, end) = telegram.wait(ANN, "the card's end", |it| it.text.contains("✘ no"));
    assert!(!draws(&end.text) && !hides(&end.text), "{end:#?}");
    // The control: what a model says is its own words, and comes as it is.
    let (_, said) = telegram.wait_for(ANN, "I say");
    assert!(draws(said.text.trim_end_matches('\u{202e}')) && hides(&said.text), "{said:#?}");
    telegram.check();
}

/// A card that was cut already is no whole one, however short it is by then.
#[test]
fn a_card_that_is_not_whole_has_no_yes() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let run = |id, lines: usize| {
        let command = format!("{}echo done", "true\n".repeat(lines));
        Reply::calls([(id, "command_run", json!({ "command": command, "network": true }))])
    };
    let (telegram, _model) = at(&stage, vec![run("c1", 70), run("c2", 3), Reply::text("so be it")]);
    let _daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    telegram.says(ANN, "Ann", ANN, "run it");
    let labels = |it: &[(String, String)]| it.iter().map(|(label, _)| label.clone()).collect::<Vec<_>>();
    let (card, shown) = telegram.wait(ANN, "a card", |it| !it.buttons.is_empty());
    assert_eq!(labels(&shown.buttons), ["No"], "{shown:#?}");
    assert!(shown.text.contains("cannot be shown whole"), "{shown:#?}");
    telegram.taps(ANN, "Ann", ANN, card, "No");
    // The control: one that is.
    let (card, shown) = telegram.wait(ANN, "the other card", |it| it.buttons.len() > 1);
    assert!(shown.text.contains("true⏎true"), "{shown:#?}");
    telegram.taps(ANN, "Ann", ANN, card, "No");
    telegram.wait_for(ANN, "so be it");
    telegram.check();
}

/// What a command says is to the question that was read, and no other: the next one may have taken its place
/// meanwhile.
#[test]
fn an_answer_in_words_names_its_question() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let run = |id, word: &str| {
        Reply::calls([(id, "command_run", json!({ "command": format!("echo {word}"), "network": true }))])
    };
    let script = vec![run("c1", "first"), run("c2", "second"), Reply::text("so be it")];
    let (telegram, _model) = at(&stage, script);
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    telegram.says(ANN, "Ann", ANN, "run it");
    let (card, _) = telegram.wait(ANN, "a card", |it| it.text.contains("first") && it.buttons.len() > 1);
    telegram.taps(ANN, "Ann", ANN, card, "No");
    let (card, shown) =
        telegram.wait(ANN, "the other card", |it| it.text.contains("second") && it.buttons.len() > 1);
    let name = telegram.data(ANN, card, "No").trim_start_matches("n:").to_owned();
    let (id, _) = name.split_at(8);
    // Neither a yes nor a no that does not say to what; what is told instead says how.
    for (said, told) in [
        ("/approve", format!("/approve {id}")),
        ("/reject not on a Friday", format!("/reject {id} not on a Friday")),
        ("/approve 00000000", format!("/approve {id}")),
    ] {
        telegram.says(ANN, "Ann", ANN, said);
        let (_, shown) = telegram.wait(ANN, &told, |it| it.text.lines().any(|line| line == told));
        assert!(shown.text.contains("second") && !shown.text.contains("first"), "{shown:#?}");
    }
    assert_eq!(
        (&daemon.status()["sessions"][0]["questions"], stage.entries("answered").len()),
        (&json!(1), 1)
    );
    assert!(shown.text.contains(&format!("ID {id}")), "{shown:#?}");
    // The control: as it was told, it is one.
    telegram.says(ANN, "Ann", ANN, &format!("/reject {id} not on a Friday"));
    telegram
        .wait(ANN, "its end", |it| it.text.contains("second") && it.text.contains("✘ no: not on a Friday"));
    telegram.wait_for(ANN, "so be it");
    telegram.says(ANN, "Ann", ANN, "/approve");
    telegram.wait_for(ANN, "There is no open question in this conversation");
    telegram.check();
}

/// A question that was answered has no buttons, however long the reason is, and also where its message cannot
/// say what came of it.
#[test]
fn a_question_that_was_answered_has_no_buttons() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let run = |id, word: &str, lines: usize| {
        let command = format!("echo {word}{}", format!("\n: {}", "a".repeat(100)).repeat(lines));
        Reply::calls([(id, "command_run", json!({ "command": command, "network": true }))])
    };
    let script = vec![run("c1", "first", 15), run("c2", "second", 0), Reply::text("so be it")];
    let (telegram, model) = at(&stage, script);
    let _daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    telegram.says(ANN, "Ann", ANN, "run it");
    let card = |word: &str| {
        let (card, _) = telegram.wait(ANN, word, |it| it.text.contains(word) && it.buttons.len() > 1);
        (card, telegram.data(ANN, card, "No").trim_start_matches("n:").to_owned())
    };
    let shown = |card: i64| telegram.shown(ANN).into_iter().find(|(id, _)| *id == card).unwrap().1;
    let (first, id) = card("first");
    // Each hides something, and takes more room where it is shown.
    let why = format!("not on a Friday {}", "\u{202e}y".repeat(900));
    telegram.says(ANN, "Ann", ANN, &format!("/reject {id} {why}"));
    let (second, _) = card("second");
    let end = shown(first);
    assert!(end.buttons.is_empty() && end.text.contains("✘ no: not on a Friday"), "{end:#?}");
    // The agent is told all of it.
    assert!(model.requests()[1].body.matches('y').count() >= 900, "{}", model.requests()[1].body);
    telegram.fail_with("editMessageText", "✘ no", [Fault::Refused]);
    telegram.taps(ANN, "Ann", ANN, second, "No");
    telegram.wait_for(ANN, "so be it");
    let end = shown(second);
    assert!(end.buttons.is_empty() && end.text.contains("second"), "{end:#?}");
    telegram.check();
}
