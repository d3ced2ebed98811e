//! What was reported as lasting, and what is there.

#![expect(clippy::indexing_slicing, reason = "an index into JSON that is not there is null")]

use super::guest::{LOG, MARKS, VERIFY};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::{collections::BTreeSet, fmt};

/// What a console showed before the kill.
///
/// The journal promises two grades: what a question, an answer and the intent of an approved effect say lasts
/// through a loss of power, and so does everything before them. Every event tells the newest entry when it
/// happened. That an effect is approved is told before its intent is written; its call's result shows that it
/// had begun.
#[derive(Debug, Default)]
pub(super) struct Reported {
    newest: u64,
    questions: BTreeSet<String>,
    done: BTreeSet<String>,
}

impl Reported {
    pub(super) fn read(console: &str) -> Self {
        let mut reported = Self::default();
        let mut approved = BTreeSet::new();
        for event in console.lines().filter_map(object) {
            let lasts = match event["type"].as_str() {
                Some("ask") => reported.questions.insert(text(&event["id"])),
                Some("decided") if event["verdict"] == "approved" => approved.insert(text(&event["call"])),
                Some("result") if approved.contains(&text(&event["call"])) => {
                    reported.done.insert(text(&event["call"]));
                    // The outcome need not last.
                    false
                }
                _ => false,
            };
            if lasts {
                reported.newest = reported.newest.max(number(&event["seq"]));
            }
        }
        reported
    }

    pub(super) fn entries(&self) -> u64 {
        self.newest
    }
}

impl fmt::Display for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (questions, done) = (self.questions.len(), self.done.len());
        write!(f, "{} entries reported, {questions} questions, {done} results", self.newest)
    }
}

/// What a disk held when it was looked at again.
#[derive(Debug)]
pub(super) struct Found {
    verified: bool,
    entries: Vec<Value>,
    marks: BTreeSet<String>,
    console: String,
}

/// Reads what the second guest told.
pub(super) fn read_back(console: &str) -> Result<Found> {
    let (before, log) =
        console.split_once(LOG).with_context(|| format!("the second guest told: {console}"))?;
    let lines = || before.lines().map(str::trim);
    Ok(Found {
        verified: lines().any(|line| line == format!("{VERIFY} true")),
        entries: log.lines().filter_map(object).collect(),
        marks: lines().filter_map(|line| Some(line.strip_prefix(MARKS)?.trim().to_owned())).collect(),
        console: before.to_owned(),
    })
}

impl Found {
    /// Whether all that was reported is there; in a few words, how much is.
    pub(super) fn holds(&self, reported: &Reported) -> Result<String> {
        ensure!(self.verified, "the chain does not hold: {}", self.console);
        let newest = self.entries.iter().map(|entry| number(&entry["seq"])).max().unwrap_or(0);
        ensure!(
            newest >= reported.newest,
            "entry {} was reported, the newest on the disk is {newest}",
            reported.newest
        );
        let of = |kind: &str, field: &str| -> BTreeSet<String> {
            self.entries
                .iter()
                .filter(|entry| entry["type"] == kind)
                .map(|entry| text(&entry[field]))
                .collect()
        };
        let lost: Vec<_> = reported.questions.difference(&of("asked", "approval")).cloned().collect();
        ensure!(lost.is_empty(), "questions were shown and are not on the disk: {lost:?}");
        let lost: Vec<_> = reported.done.difference(&of("intent", "call")).cloned().collect();
        ensure!(lost.is_empty(), "calls had a result and have no intent on the disk: {lost:?}");
        let lost: Vec<_> = self.marks.difference(&of("intent", "call")).cloned().collect();
        ensure!(lost.is_empty(), "commands left their lines on the disk, and no intent: {lost:?}");
        Ok(format!("{newest} entries on the disk, {} lines of commands, the chain holds", self.marks.len()))
    }
}

fn object(line: &str) -> Option<Value> {
    serde_json::from_str(line.get(line.find('{')?..)?.trim()).ok()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Numbers of 64 bits are texts in JSON.
fn number(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(0)
}
