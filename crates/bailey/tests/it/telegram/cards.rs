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
    assert!(shown.text.contains(&format!("echo one\\n{LINE}\\n\\u{{202e}}txt.exe\\u{{200b}}")), "{shown:#?}");
    telegram.taps(ANN, "Ann", ANN, card, "No");
    let (_, end) = telegram.wait(ANN, "the card's end", |it| it.text.contains("✘ no"));
    assert!(!draws(&end.text) && !hides(&end.text), "{end:#?}");
    // The control: what a model says is its own words, and comes as it is.
    let (_, said) = telegram.wait_for(ANN, "I say");
    assert!(draws(said.text.trim_end_matches('\u{202e}')) && hides(&said.text), "{said:#?}");
    telegram.check();
}
