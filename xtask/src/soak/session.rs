//! One front end: it gives its session one task after the other, each under a name, and says it again under the same name until it has
//! heard how it ended.

use super::{Yard, socket};
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

/// Between tasks, and before something is tried again.
const PAUSE: Duration = Duration::from_millis(1500);
const AGAIN: Duration = Duration::from_millis(500);
/// How long nothing may be heard of a session that works.
const SILENCE: Duration = Duration::from_secs(120);

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
        let mut try_number = 0;
        loop {
            // A turn that failed, as with a model that is down for longer, has ended: going on is another message.
            let key = format!("soak-{number}-{task}-{}", tally.failed);
            let text = format!("task {number}-{task}-{}", tally.failed);
            match attempt(yard, number, &mut tally.session, &key, &text) {
                Ok(End::Answered) => break,
                Ok(End::Failed) => {
                    tally.failed += 1;
                    tally.ended(yard, begun);
                }
                Err(_) => {
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
    let project = yard.project(number);
    let known = Some(session.clone()).filter(|session| !session.is_empty());
    let words = match &known {
        Some(session) => vec!["--resume".to_owned(), session.clone()],
        None => vec!["-C".to_owned(), project.display().to_string()],
    };
    let ask =
        json!({ "v": 1, "ask": "open", "directory": project, "words": words, "again": [], "session": known });
    let mut daemon = connect(yard, "socket")?;
    say(daemon.get_mut(), &ask)?;
    let opened = hear(&mut daemon)?;
    let name = opened["session"].as_str().with_context(|| opened.to_string())?.to_owned();
    session.clone_from(&name);
    let mut events = connect(yard, &name)?;
    say(events.get_mut(), &json!({ "op": "say", "text": text, "key": key }))?;
    let mut is_ours = false;
    loop {
        let event = hear(&mut events)?;
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

fn connect(yard: &Yard, name: &str) -> Result<BufReader<UnixStream>> {
    let stream = UnixStream::connect(socket(&yard.home(), name))?;
    stream.set_read_timeout(Some(SILENCE))?;
    Ok(BufReader::new(stream))
}

fn say(stream: &mut UnixStream, what: &Value) -> Result<()> {
    Ok(stream.write_all(format!("{what}\n").as_bytes())?)
}

fn hear(stream: &mut BufReader<UnixStream>) -> Result<Value> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        bail!("the other side has ended");
    }
    Ok(serde_json::from_str(&line)?)
}
