//! The daemon's log: a line of JSON for each of the daemon's events, with its time, its severity, and a
//! sentence for a person who reads many logs. The events of sessions are in the journal.
//!
//! If the owner wants it, each line is printed, too, for a program that gathers the output of services.

use anyhow::{Context as _, Result};
use bailey_journal::{Clock as _, SystemClock};
use serde_json::{Map, Value, json};
use std::{
    cell::{Cell, RefCell},
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::Duration,
};

/// Where a full log is moved to, and how large the log may become, in bytes.
const BEFORE: &str = "log.1";
const BYTES_MAX: u64 = 4 << 20;
/// How many lines wait to be printed. A reader that is too slow misses some; they stand in the file.
const PRINTED_LATER_MAX: usize = 1024;
/// How long the last lines may take to be printed.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The log, which is also printed if the configuration says so.
pub(super) struct Noted {
    folder: PathBuf,
    log: RefCell<Log>,
    is_printed: Cell<bool>,
}

impl Noted {
    pub(super) fn open(folder: &Path, is_printed: bool) -> Result<Self> {
        let log = RefCell::new(Log::open(folder, is_printed)?);
        Ok(Self { folder: folder.to_path_buf(), log, is_printed: Cell::new(is_printed) })
    }

    pub(super) fn note(&self, what: &str, about: Value) {
        self.log.borrow().note(what, about);
    }

    /// Begins or ends the printing of notes. Lines that already wait to be printed still are, and the daemon
    /// does not wait for that.
    pub(super) fn print(&self, is_printed: bool) {
        if self.is_printed.get() == is_printed {
            return;
        }
        match Log::open(&self.folder, is_printed) {
            Ok(log) => {
                self.log.replace(log);
                self.is_printed.set(is_printed);
            }
            Err(error) => self.note("not_printed", json!({ "why": format!("{error:#}") })),
        }
    }

    pub(super) fn end(&self) {
        self.log.borrow().end();
    }
}

/// The log of a daemon that runs.
#[derive(Debug)]
struct Log {
    folder: PathBuf,
    file: RefCell<File>,
    printed: RefCell<Option<Printed>>,
}

impl Log {
    /// Goes on with the log that is there. With `is_printed`, notes are printed, too.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub(super) fn open(folder: &Path, is_printed: bool) -> Result<Self> {
        let file = file(folder)?;
        let printed = RefCell::new(is_printed.then(Printed::start));
        Ok(Self { folder: folder.to_path_buf(), file: RefCell::new(file), printed })
    }

    /// Notes an event. A failure to note it, such as on a full disk, stops nothing.
    pub(super) fn note(&self, what: &str, about: Value) {
        let mut line = Map::new();
        line.insert("time".into(), json!(SystemClock.now().to_string()));
        line.insert("level".into(), json!(level(what)));
        line.insert("what".into(), json!(what));
        line.insert("message".into(), json!(message(what, &about)));
        if let Value::Object(about) = about {
            line.extend(about);
        }
        let line = format!("{}\n", Value::Object(line));
        // The daemon does not wait for a slow reader.
        self.printed.borrow().iter().for_each(|printed| drop(printed.lines.try_send(line.clone())));
        let mut file = self.file.borrow_mut();
        if file.metadata().is_ok_and(|about| about.len() > BYTES_MAX) {
            fs::rename(self.folder.join(super::LOG), self.folder.join(BEFORE)).ok();
            if let Ok(new) = self::file(&self.folder) {
                *file = new;
            }
        }
        let before = file.metadata().map(|about| about.len());
        if file.write_all(line.as_bytes()).is_err() {
            // The part of the line that had room is no line, and the next line would stand behind it.
            before.and_then(|bytes| file.set_len(bytes)).ok();
        }
    }

    /// Ends the printing. Waits for the lines that were noted, though not for long.
    pub(super) fn end(&self) {
        let Some(Printed { lines, is_done }) = self.printed.borrow_mut().take() else { return };
        drop(lines);
        // No message comes: the wait ends when the thread ends and drops the other side.
        is_done.recv_timeout(LAST_WORDS).ok();
    }
}

/// Turns a line of the older form, which had only the time and the event, into a line of the present form.
pub(crate) fn as_now(mut line: Map<String, Value>) -> Map<String, Value> {
    if let (Some(time), Some(Value::String(what))) = (line.remove("at"), line.get("what")) {
        let (level, message) = (level(what), message(what, &Value::Object(line.clone())));
        line.extend(
            [("time", time), ("level", json!(level)), ("message", json!(message))]
                .map(|(k, v)| (k.into(), v)),
        );
    }
    line
}

/// How grave an event is: `error` when something was not done, `warn` when a person should look, else `info`.
fn level(what: &str) -> &'static str {
    let is_warning = [
        "refused",
        "wrong_bearer",
        "wrong_code",
        "missed",
        "skipped",
        "cut_off",
        "hung",
        "stranger",
        "estop",
    ]
    .contains(&what);
    match what {
        _ if ["not_", "no_"].iter().any(|no| what.starts_with(no)) || what.ends_with("_given_up") => "error",
        _ if is_warning || what.ends_with("_ended") => "warn",
        _ => "info",
    }
}

/// The event, in words.
fn message(what: &str, about: &Value) -> String {
    let words = what.replace('_', " ");
    let more = ["text", "why", "told", "how"].iter().find_map(|name| about.get(name)?.as_str());
    more.map_or(words.clone(), |more| format!("{words}: {more}"))
}

/// A thread that prints lines.
#[derive(Debug)]
struct Printed {
    lines: mpsc::SyncSender<String>,
    is_done: mpsc::Receiver<()>,
}

impl Printed {
    fn start() -> Self {
        let (lines, printing) = mpsc::sync_channel::<String>(PRINTED_LATER_MAX);
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || {
            let _done: mpsc::Sender<()> = done;
            let mut out = io::stdout();
            let mut print = |line: String| out.write_all(line.as_bytes()).and_then(|()| out.flush());
            while let Ok(line) = printing.recv()
                && print(line).is_ok()
            {}
        });
        Self { lines, is_done }
    }
}

fn file(folder: &Path) -> Result<File> {
    let path = folder.join(super::LOG);
    let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&path);
    let mut file = file.with_context(|| format!("cannot write `{}`", path.display()))?;
    // A part of a line that a power cut left becomes a line of its own.
    let mut last = [0];
    if file.seek(SeekFrom::End(-1)).and_then(|_| file.read_exact(&mut last)).is_ok() && last != *b"\n" {
        file.write_all(b"\n").ok();
    }
    Ok(file)
}
