//! The process that reports to a collector: the daemon keeps it up, and wakes it when the journal grew.
//!
//! Every process that writes the journal writes the journal's log, and the kernel tells of that (inotify(7)).
//! So nothing looks at a clock: while nothing is done, no process wakes.

use super::{Daemon, attached::AttachedProcess};
use bailey_home::config::Telemetry;
pub use bailey_session::packet::{Asking, Refusable};
use bailey_session::wire::ChannelState;
use bailey_telemetry::{Had, Want};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use serde_json::json;
use std::{cell::RefCell, io, mem::MaybeUninit, os::fd::OwnedFd, path::Path, rc::Rc, thread, time::Duration};
use tokio::{net::UnixStream, sync::watch, time::sleep};

/// SQLite's log beside the journal: each transaction is written to it.
const LOG: &str = "journal.db-wal";
/// For how long the daemon gathers news that it then tells at once.
const GATHER: Duration = Duration::from_secs(1);
/// How often the daemon tells that there may be news when the kernel tells of nothing.
const BLINDLY: Duration = Duration::from_secs(60);

/// The process, and the source that wakes it.
#[derive(Default)]
pub(super) struct Sending {
    kept: Option<Rc<AttachedProcess>>,
    /// Why the collector takes nothing, as its process said last.
    failing: Rc<RefCell<String>>,
    news: Option<watch::Receiver<u64>>,
}

impl Sending {
    pub(super) fn state(&self) -> Option<ChannelState> {
        let mut state = self.kept.as_ref()?.state();
        // A process that ended says itself why.
        if state.up {
            state.note.clone_from(&self.failing.borrow());
        }
        Some(state)
    }

    pub(super) fn end(&self) {
        self.kept.iter().for_each(|kept| kept.end());
    }
}

impl Daemon {
    /// Keeps up the process that reports to the configured collector, if there is one.
    pub(super) fn keep_telemetry(self: &Rc<Self>, settings: &Telemetry) {
        let mut sending = self.sending.borrow_mut();
        sending.end();
        sending.kept = None;
        if settings.otlp.is_none() {
            return;
        }
        let news = sending.news.get_or_insert_with(|| self.watch_journal()).clone();
        let kept = Rc::new(AttachedProcess::new("telemetry", "otlp"));
        sending.kept = Some(kept.clone());
        // Another collector's failures are not this one's.
        sending.failing = Rc::default();
        let (greeted, failing) = (sending.failing.clone(), sending.failing.clone());
        let serve = move |daemon: Rc<Self>, want: Want| {
            let (mut news, failing) = (news.clone(), failing.clone());
            async move {
                let seen = match want {
                    Want::News(seen) => seen,
                    Want::Failing(why) => {
                        failing.replace(why);
                        daemon.changed.notify_waiters();
                        return Ok((Had::Noted, None));
                    }
                };
                if news.wait_for(|count| *count != seen).await.is_err() {
                    // No thread counts the growth of the journal.
                    sleep(BLINDLY).await;
                }
                sleep(GATHER).await;
                let count = *news.borrow();
                Ok((Had::News(count, daemon.figures()), None))
            }
        };
        let greet = move |_: &UnixStream| {
            greeted.take();
            Ok(())
        };
        self.keep_up(kept, ["audit", "send"].map(str::to_owned).into(), greet, serve);
    }

    /// Counts how often the journal grew.
    fn watch_journal(self: &Rc<Self>) -> watch::Receiver<u64> {
        let (count, counted) = watch::channel(1);
        let folder = self.home.root.clone();
        // The thread waits in the kernel, for as long as the daemon lives.
        let watching = watched(&folder).map(|watched| thread::spawn(move || watch_for(&watched, &count)));
        if let Err(error) = watching {
            let why = format!(
                "the kernel does not tell when the journal grows, so it is looked at each minute: {error}"
            );
            self.log.note("not_watched", json!({ "why": why }));
        }
        counted
    }
}

/// A folder whose changes the kernel tells of.
fn watched(folder: &Path) -> io::Result<OwnedFd> {
    let watched = inotify::init(CreateFlags::CLOEXEC)?;
    inotify::add_watch(&watched, folder, WatchFlags::MODIFY | WatchFlags::CREATE)?;
    Ok(watched)
}

/// Counts writes to the journal's log, for as long as the kernel tells of them.
fn watch_for(watched: &OwnedFd, count: &watch::Sender<u64>) {
    let mut room = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(watched, &mut room);
    while let Ok(event) = reader.next() {
        // An event without a name says that events were lost.
        if event.file_name().is_none_or(|name| name.to_bytes() == LOG.as_bytes()) {
            count.send_modify(|count| *count += 1);
        }
    }
}
