//! The front ends of one session. Each gets all events, and the ops of each reach the session. A front end
//! that is too slow is cut off; it may connect again, and then gets the events since the turn began.

use super::{kept::TurnEvents, rights};
use crate::{
    print::Printer,
    wire::{self, Introduced},
};
use bailey_protocol::{Event, Happening, Op, Seq, Speaker, event::EVENT_VERSION};
use serde::Serialize;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncWriteExt as _, BufReader},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    task::JoinHandle,
    time::timeout,
};

/// How many front ends can be connected at once.
const CLIENTS_MAX: usize = 32;
/// How many events may wait for one front end.
const EVENTS_WAITING_MAX: usize = 4096;
/// How many requests of all front ends together may wait.
const CAME_MAX: usize = 64;
/// How long a front end may take for the last events at the end.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// An input from a front end.
pub(super) enum ClientInput {
    Op(Op),
    /// A request that was not understood, or that the sender may not make: its name, and the reason.
    Refused(&'static str, String),
    Gone,
}

/// The front ends that are connected.
pub(super) struct Clients {
    connected: BTreeMap<u64, Client>,
    next: u64,
    /// The event that describes the session itself; `kept` holds the events since the turn began.
    opened: Option<Arc<str>>,
    kept: TurnEvents,
    newest: Seq,
    /// The name of this run of the session's process, and the number of its last line. A front end that was
    /// cut off uses them to say how far it came.
    run: String,
    lines: u64,
    came: mpsc::Receiver<(u64, ClientInput)>,
    to_come: mpsc::Sender<(u64, ClientInput)>,
}

struct Client {
    lines: mpsc::Sender<Arc<str>>,
    writer: JoinHandle<()>,
    reader: JoinHandle<()>,
}

impl Clients {
    pub(super) fn new() -> Self {
        let (to_come, came) = mpsc::channel(CAME_MAX);
        Self {
            connected: BTreeMap::new(),
            next: 0,
            opened: None,
            kept: TurnEvents::default(),
            newest: Seq(0),
            run: run(),
            lines: 0,
            came,
            to_come,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.connected.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.connected.is_empty()
    }

    /// Serves one more front end; one too many gets an error.
    pub(super) fn add(&mut self, stream: UnixStream) {
        if self.connected.len() >= CLIENTS_MAX {
            let error = format!("{CLIENTS_MAX} are looking at this session already: close one of them");
            let happening = Happening::Failed { op: "open".into(), error };
            let event = Event { v: EVENT_VERSION, seq: self.newest, happening };
            let mut line = serde_json::to_vec(&event).unwrap_or_default();
            line.push(b'\n');
            let (_, mut write) = stream.into_split();
            tokio::spawn(async move { timeout(LAST_WORDS, write.write_all(&line)).await.ok() });
            return;
        }
        let (number, (read, write)) = (self.next, stream.into_split());
        self.next += 1;
        let (lines, waiting) = mpsc::channel(EVENTS_WAITING_MAX);
        for line in self.opened.iter().chain(self.kept.lines()) {
            // The channel has room for all kept lines.
            lines.try_send(line.clone()).ok();
        }
        let client = Client {
            lines,
            writer: tokio::spawn(tell(write, waiting)),
            reader: tokio::spawn(hear(number, read, self.to_come.clone())),
        };
        self.connected.insert(number, client);
    }

    /// The next input from any front end.
    pub(super) async fn next(&mut self) -> (u64, ClientInput) {
        match self.came.recv().await {
            Some(came) => came,
            // This never happens: `self` holds a sender.
            None => std::future::pending().await,
        }
    }

    pub(super) fn remove(&mut self, number: u64) {
        if let Some(client) = self.connected.remove(&number) {
            client.reader.abort();
            client.writer.abort();
        }
    }

    /// A new turn begins: front ends that connect later need nothing of the turn before.
    pub(super) fn begin_turn(&mut self) {
        self.kept.clear();
    }

    /// Sends an event to all front ends.
    pub(super) fn tell(&mut self, printer: &Printer, event: &Event) {
        self.newest = event.seq;
        let Some(line) = self.numbered(printer, event) else { return };
        if matches!(event.happening, Happening::Session { .. }) {
            self.opened = Some(line.clone());
        } else {
            self.kept.push(line.clone(), &event.happening);
        }
        self.send(&line, None);
    }

    /// Tells a message from one front end to all others, and to those that connect later.
    pub(super) fn said(&mut self, printer: &Printer, at: u64, text: String, by: Option<&Speaker>) {
        let happening = Happening::Said { text, by: by.map(Speaker::line) };
        let event = Event { v: EVENT_VERSION, seq: self.newest, happening };
        let Some(line) = self.numbered(printer, &event) else { return };
        self.kept.push(line.clone(), &event.happening);
        self.send(&line, Some(at));
    }

    fn numbered(&mut self, printer: &Printer, event: &Event) -> Option<Arc<str>> {
        self.lines += 1;
        line(printer, &Numbered { event, run: &self.run, line: self.lines })
    }

    fn send(&mut self, line: &Arc<str>, but: Option<u64>) {
        let others = self.connected.iter().filter(|(number, _)| Some(**number) != but);
        let slow = others.filter(|(_, client)| client.lines.try_send(line.clone()).is_err());
        let slow: Vec<u64> = slow.map(|(number, _)| *number).collect();
        slow.into_iter().for_each(|number| self.remove(number));
    }

    /// Tells one front end that its request was not done.
    pub(super) fn fail(&mut self, printer: &Printer, number: u64, op: &str, error: String) {
        let happening = Happening::Failed { op: op.into(), error };
        let event = Event { v: EVENT_VERSION, seq: self.newest, happening };
        if let (Some(client), Some(line)) = (self.connected.get(&number), line(printer, &event)) {
            client.lines.try_send(line).ok();
        }
    }

    /// Lets all front ends receive the last events.
    pub(super) async fn finish(&mut self) {
        for client in std::mem::take(&mut self.connected).into_values() {
            client.reader.abort();
            drop(client.lines);
            timeout(LAST_WORDS, client.writer).await.ok();
        }
    }
}

/// An event that all front ends hear, and its place among them.
#[derive(Serialize)]
struct Numbered<'a> {
    #[serde(flatten)]
    event: &'a Event,
    run: &'a str,
    line: u64,
}

/// Serialises an event as a line, without secrets.
pub(super) fn line(printer: &Printer, event: &impl Serialize) -> Option<Arc<str>> {
    Some((printer.json_line(event).ok()? + "\n").into())
}

/// A name that no other run has. Without random numbers it comes from the process id alone, and a front end
/// may get an event twice.
pub(super) fn run() -> String {
    let mut random = [0; 8];
    getrandom::fill(&mut random).ok();
    format!("{:016x}", u64::from_ne_bytes(random) ^ u64::from(std::process::id()))
}

async fn tell(mut write: OwnedWriteHalf, mut waiting: mpsc::Receiver<Arc<str>>) {
    while let Some(line) = waiting.recv().await {
        if write.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn hear(number: u64, read: OwnedReadHalf, to_come: mpsc::Sender<(u64, ClientInput)>) {
    let mut read = BufReader::new(read);
    let (mut speaker, mut is_first) = (None, true);
    loop {
        let came = match wire::line(&mut read, wire::OP_BYTES_MAX).await {
            Ok(Some(line)) => {
                if std::mem::take(&mut is_first)
                    && let Ok(Introduced { introduced }) = serde_json::from_slice(&line)
                {
                    speaker = Some(introduced);
                    continue;
                }
                asked(&line, speaker.as_ref())
            }
            Ok(None) | Err(_) => ClientInput::Gone,
        };
        let is_gone = matches!(came, ClientInput::Gone);
        if to_come.send((number, came)).await.is_err() || is_gone {
            return;
        }
    }
}

pub(super) fn asked(line: &[u8], speaker: Option<&Speaker>) -> ClientInput {
    let op: Op = match serde_json::from_slice(line) {
        Ok(op) => op,
        Err(error) => {
            return ClientInput::Refused("op", format!("that is nothing that a session does: {error}"));
        }
    };
    let name = op.name();
    let theirs = match speaker {
        Some(speaker) => rights::of(speaker, op),
        None => Ok(op),
    };
    theirs.map_or_else(|why| ClientInput::Refused(name, why), ClientInput::Op)
}
