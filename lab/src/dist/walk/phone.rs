//! The person's phone: what they write to the bot, tap and read.

use super::Walk;
use anyhow::{Result, bail};
use bailey_testkit::telegram::{Shown, Telegram};
use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

/// A person's number, by which they are known, and their name, by which they are not.
pub(super) const ANN: i64 = 42;
const NAME: &str = "Ann";
const PATIENCE: Duration = Duration::from_secs(300);

/// How long it takes a person to read a card.
const READING: Duration = Duration::from_secs(3);

pub(super) struct Phone<'a> {
    pub(super) telegram: &'a Telegram,
    /// The bot's messages, as they were when something was written last: an answer is new, or another than
    /// before.
    read: BTreeMap<i64, String>,
}

impl<'a> Phone<'a> {
    pub(super) fn new(telegram: &'a Telegram) -> Self {
        Self { telegram, read: BTreeMap::new() }
    }

    /// Writes, and waits for an answer with these words; the answer.
    pub(super) fn says(&mut self, walk: &mut Walk, text: &str, answer: &str) -> Result<String> {
        if text.starts_with('/') {
            walk.page.has(text)?;
        }
        self.says_freely(walk, text)?;
        self.reads(walk, answer)
    }

    pub(super) fn says_freely(&mut self, walk: &mut Walk, text: &str) -> Result<()> {
        self.read = self.telegram.shown(ANN).into_iter().map(|(id, shown)| (id, shown.text)).collect();
        self.telegram.says(ANN, NAME, ANN, text);
        walk.tells(&format!("ann> {text}"), "");
        Ok(())
    }

    /// Waits for a message with these words, which is about what was written last.
    pub(super) fn reads(&mut self, walk: &mut Walk, words: &str) -> Result<String> {
        let shown = match self.finds(words, |shown| shown.text.contains(words)) {
            Ok((_, shown)) => shown,
            Err(why) => {
                walk.is_wrong(format!("{why:#}"));
                return Ok(String::new());
            }
        };
        walk.tells("bot>", &shown.text);
        Ok(shown.text)
    }

    /// Waits for a card, and taps one of its buttons. What it says.
    pub(super) fn card(&mut self, walk: &mut Walk, words: &str, tapped: Option<&str>) -> Result<String> {
        let is_card = |shown: &Shown| shown.text.contains(words) && !shown.buttons.is_empty();
        let (id, shown) = self.finds(words, is_card)?;
        let buttons: Vec<String> = shown.buttons.iter().map(|(label, _)| format!("[{label}]")).collect();
        walk.tells("bot>", &format!("{}\n{}", shown.text, buttons.join(" ")));
        thread::sleep(READING);
        if let Some(label) = tapped {
            self.telegram.taps(ANN, NAME, ANN, id, label);
            walk.tells(&format!("ann> taps [{label}]"), "");
        }
        Ok(shown.text)
    }

    fn finds(&self, words: &str, is_it: impl Fn(&Shown) -> bool) -> Result<(i64, Shown)> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let shown = self.telegram.shown(ANN);
            let new = shown.into_iter().filter(|(id, shown)| self.read.get(id) != Some(&shown.text));
            let new: Vec<_> = new.collect();
            if let Some(found) = new.iter().find(|(_, shown)| is_it(shown)) {
                return Ok(found.clone());
            }
            if Instant::now() > deadline {
                bail!("`{words}` did not come, but: {new:#?}");
            }
            thread::sleep(Duration::from_millis(200));
        }
    }
}
