//! What a question says on a phone is what is asked.

use super::{ANN, at, pair};
use crate::{daemon::Daemon, stage::Stage};
use bailey_testkit::Reply;
use serde_json::json;

/// Attack A09: what is asked about draws a line of its own on the card, turns its end around, and hides a word.
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
    assert!(shown.text.contains(&format!("echo one⏎{LINE}⏎\\u{{202e}}txt.exe\\u{{200b}}")), "{shown:#?}");
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
