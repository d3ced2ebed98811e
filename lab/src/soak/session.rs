//! One front end: it gives its session one task after the other, each under a name, and says it again under
//! the same name until it has heard how it ended.

use super::Yard;
use crate::line::{self, Line};
use anyhow::{Result, bail};
use serde_json::json;
use std::{
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

/// Between tasks, and before something is tried again.
const PAUSE: Duration = Duration::from_millis(1500);
const AGAIN: Duration = Duration::from_millis(500);

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) session: String,
    /// How long each task took, with whatever broke meanwhile.
    pub(super) turns: Vec<Duration>,
    pub(super) said_again: usize,
    pub(super) failed: usize,
}

impl Tally {
    fn ended(&mut self, yard: &Yard, begun: Instant) {
        self.turns.push(begun.elapsed());
        yard.turns.fetch_add(1, Ordering::Relaxed);
    }
}

/// How a turn ended.
enum End {
    Answered,
    Failed,
}

pub(super) fn run(yard: &Yard, number: usize) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut task = 0;
    // Not all at once.
    thread::sleep(Duration::from_millis(100 * number as u64));
    while !yard.is_over.load(Ordering::SeqCst) {
        let begun = Instant::now();
        yard.is_about(number, format!("task {task}"), true);
        let mut try_number = 0;
        loop {
            // A turn that failed, as with a model that is down for longer, has ended: going on is another
            // message.
            let key = format!("soak-{number}-{task}-{}", tally.failed);
            let text = format!("task {number}-{task}-{}", tally.failed);
            match attempt(yard, number, &mut tally.session, &key, &text) {
                Ok(End::Answered) => break,
                Ok(End::Failed) => {
                    tally.failed += 1;
                    yard.is_about(number, format!("{} {text} failed", tally.session), false);
                    tally.ended(yard, begun);
                }
                Err(error) => {
                    yard.is_about(number, format!("{} {text}: {error:#}", tally.session), false);
                    try_number += 1;
                    tally.said_again += 1;
                    if try_number > 600 {
                        bail!("session {number} never came to the end of {text}");
                    }
                }
            }
            thread::sleep(AGAIN);
        }
        tally.ended(yard, begun);
        task += 1;
        thread::sleep(PAUSE);
    }
    Ok(tally)
}

/// Says a task, and hears until it has ended.
fn attempt(yard: &Yard, number: usize, session: &mut String, key: &str, text: &str) -> Result<End> {
    let known = Some(session.as_str()).filter(|session| !session.is_empty());
    *session = line::open(&yard.home(), &yard.project(number), known)?;
    let mut events = Line::to(&yard.home(), session)?;
    events.say(&json!({ "op": "say", "text": text, "key": key }))?;
    let mut is_ours = false;
    loop {
        let event = events.hear()?;
        match event["type"].as_str() {
            Some("accepted") if event["key"] == key => is_ours = true,
            Some("repeated") if event["key"] == key => match event["ended"].as_str() {
                Some("answered") => return Ok(End::Answered),
                Some(_) => return Ok(End::Failed),
                None => is_ours = true,
            },
            Some("end") if is_ours => {
                return Ok(if event["reason"] == "answered" { End::Answered } else { End::Failed });
            }
            Some("failed") => bail!("{event}"),
            _ => {}
        }
    }
}
