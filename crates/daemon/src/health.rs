//! The daemon's state, as a file of the home: for a program that looks after the daemon and has no socket.
//!
//! The daemon writes the file when something has changed, whole or not at all, and not by the clock. Once a
//! minute it looks whether the disk or the journal has changed.

use super::{Daemon, schedules::newest_copy};
use anyhow::{Context as _, Result};
use bailey_home::home::Home;
use bailey_journal::{Clock as _, FileLocks, InUse, SystemClock};
use bailey_protocol::Digest;
use bailey_session::wire::{ChannelState, PageState};
use rustix::fs::statvfs;
use serde::Serialize;
use std::{
    cell::RefCell,
    fs::{self, File, OpenOptions},
    io::Write as _,
    os::{fd::AsRawFd as _, unix::fs::OpenOptionsExt as _},
    rc::Rc,
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// The version of the file's shape. New fields may come; when a field goes or changes its meaning, the
/// version changes.
const VERSION: u32 = 1;
/// How often the daemon looks when no change was reported, and for how long it gathers changes.
const LOOK: Duration = Duration::from_secs(60);
const GATHER: Duration = Duration::from_millis(500);
/// The steps of free room, so that not each byte is a change, in bits.
const ROOM_STEP: u32 = 26;

/// The daemon's phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    Starting,
    Up,
    Draining,
    Stopped,
}

/// The file, but for the time at which it was written.
#[derive(Debug, PartialEq, Serialize)]
struct Health {
    state: Phase,
    version: &'static str,
    pid: u32,
    since: String,
    sessions: Sessions,
    channels: Vec<ChannelState>,
    page: Option<PageState>,
    telemetry: Option<ChannelState>,
    /// The state of memory, if it is known.
    memory: Option<String>,
    last_backup: Option<String>,
    /// Since when an emergency stop lets nothing begin, if one holds.
    stopped_since: Option<String>,
    journal: Option<Head>,
    /// In steps of 64 MiB.
    disk_free_bytes: Option<u64>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Sessions {
    working: usize,
    resting: usize,
    questions: usize,
}

/// The newest entry.
#[derive(Debug, PartialEq, Serialize)]
struct Head {
    entry: u64,
    hash: Digest,
}

/// The content of the file.
#[derive(Serialize)]
struct HealthRecord<'a> {
    v: u32,
    time: String,
    #[serde(flatten)]
    health: &'a Health,
}

/// The state that was written last, and the home that holds the file, even after the home is moved.
pub(super) struct HealthFile {
    last: RefCell<Option<Health>>,
    folder: File,
}

impl HealthFile {
    pub(super) fn of(home: &Home) -> Result<Self> {
        let folder =
            File::open(&home.root).with_context(|| format!("cannot open `{}`", home.root.display()))?;
        Ok(Self { last: RefCell::default(), folder })
    }

    /// The home, reached through the folder that this process has open.
    fn home(&self, home: &Home) -> Home {
        Home { root: format!("/proc/self/fd/{}", self.folder.as_raw_fd()).into(), ..home.clone() }
    }
}

impl Daemon {
    /// Keeps the file up to date.
    pub(super) async fn keep_health(self: Rc<Self>) {
        loop {
            let changed = self.changed.notified();
            self.tell_health(if self.is_stopping.get() { Phase::Draining } else { Phase::Up });
            timeout(LOOK, changed).await.ok();
            sleep(GATHER).await;
        }
    }

    /// Writes the file when its content would change. A failure to write stops nothing.
    pub(super) fn tell_health(self: &Rc<Self>, state: Phase) {
        let home = self.told.home(&self.home);
        if self.is_followed(&home) {
            return;
        }
        let health = self.health(state, &home);
        let mut last = self.told.last.borrow_mut();
        if last.as_ref() == Some(&health) {
            return;
        }
        match write(&home, &health) {
            Ok(()) => *last = Some(health),
            Err(error) => self.log.note("not_told", serde_json::json!({ "why": format!("{error:#}") })),
        }
    }

    /// Whether another daemon has come after this one's folder was taken away: the file then belongs to that
    /// daemon.
    fn is_followed(&self, home: &Home) -> bool {
        let folder = home.daemon();
        !self.lock.is_in(&folder) && matches!(InUse::of(&folder, &FileLocks::default()), Ok(Some(_)))
    }

    fn health(self: &Rc<Self>, state: Phase, home: &Home) -> Health {
        let status = self.status();
        let working = self.working();
        let copied = newest_copy(home);
        let free = statvfs(&home.root).ok();
        let free = free.map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize) >> ROOM_STEP << ROOM_STEP);
        // The daemon may read the journal, and must not create it.
        let journal = Some(home.journal()).filter(|path| path.exists());
        let newest = journal.and_then(|path| bailey_journal::newest(&path).ok());
        Health {
            state,
            version: env!("CARGO_PKG_VERSION"),
            pid: status.pid,
            since: status.since,
            sessions: Sessions {
                working,
                resting: status.sessions.len() - working,
                questions: status.sessions.iter().map(|held| held.state.questions).sum(),
            },
            channels: status.channels,
            // The page ends with the daemon.
            page: status.page.map(|page| PageState { up: page.up && state != Phase::Stopped, ..page }),
            telemetry: status.telemetry,
            memory: status.memory.map(|memory| memory.state),
            last_backup: copied.map(|time| time.to_string()),
            stopped_since: newest.and_then(|newest| newest.stopped).map(|since| since.to_string()),
            journal: newest.map(|newest| Head { entry: newest.entry, hash: newest.hash }),
            disk_free_bytes: free,
        }
    }
}

/// A reader sees the whole old content or the whole new content.
fn write(home: &Home, health: &Health) -> Result<()> {
    let path = home.health();
    let new = path.with_extension("json.new");
    let whole = HealthRecord { v: VERSION, time: SystemClock.now().to_string(), health };
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(format!("{}\n", serde_json::to_string(&whole)?).as_bytes())?;
    Ok(fs::rename(&new, &path)?)
}
