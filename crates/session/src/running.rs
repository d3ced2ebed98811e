//! The processes that use sessions of a home, or its providers: found by the locks that they hold, as the
//! kernel tells it, and ended.
//!
//! The text in a lock's file is only shown: the process that runs the session writes it, and an attacker may
//! have taken that process over.

use bailey_journal::{FileLocks, Holder, InUse};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    io::ErrorKind,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// How long a process may take to write how its effects ended, before it is killed.
const KILLED_AFTER: Duration = Duration::from_millis(300);
/// How long a session may be in use in all, before that is told.
const GONE_AFTER: Duration = Duration::from_millis(2000);
/// How often is looked.
const LOOK: Duration = Duration::from_millis(5);

/// The result of ending the processes of a home.
#[derive(Debug, Default)]
pub struct EndReport {
    /// How many processes ended.
    pub ended: usize,
    /// The sessions that are in use still.
    pub left: Vec<Left>,
}

/// A session that is in use still.
#[derive(Debug, Serialize)]
pub struct Left {
    /// Where its lock is.
    folder: PathBuf,
    /// `None` when the kernel does not tell the process.
    process: Option<u32>,
    /// The process's own description.
    says: Option<Holder>,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.process, &self.says) {
            (None, _) => write!(
                f,
                "`{}` is still in use, and the system does not show which process uses it (perhaps one in a \
                 container); end that process where it was started",
                self.folder.display()
            ),
            (Some(_), Some(says)) => write!(f, "still running: {says}"),
            (Some(process), None) => write!(f, "still running: process {process}"),
        }
    }
}

/// The ending of whatever runs, on a thread of its own.
pub struct Ending {
    home: PathBuf,
    /// Whether no process can begin any more, or the bar could not be written.
    is_barred: Arc<AtomicBool>,
    thread: Option<JoinHandle<EndReport>>,
}

impl Ending {
    /// `home` is the root of one.
    pub fn begin(home: &Path) -> Self {
        let is_barred = Arc::new(AtomicBool::new(false));
        let (of_thread, root) = (is_barred.clone(), home.to_path_buf());
        let thread = thread::Builder::new().spawn(move || Sweep::default().run(&root, &of_thread));
        Self { home: home.to_path_buf(), is_barred, thread: thread.ok() }
    }

    /// Ends the processes that began until now, too.
    pub fn finish(self) -> EndReport {
        self.is_barred.store(true, Ordering::Release);
        match self.thread.map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            // Where there can be no thread, it is done one after the other.
            Some(Err(_)) | None => Sweep::default().run(&self.home, &self.is_barred),
        }
    }
}

/// A folder of a session, and who uses it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Use {
    folder: PathBuf,
    process: Option<u32>,
}

/// A process that was asked to end.
struct Running {
    folder: PathBuf,
    /// A handle that cannot come to mean another one.
    process: OwnedFd,
    since: Instant,
}

#[derive(Default)]
struct Sweep {
    running: BTreeMap<u32, Running>,
    /// The sessions in use, and since when that was seen.
    left: BTreeMap<Use, Instant>,
    ended: usize,
}

impl Sweep {
    fn run(mut self, home: &Path, is_barred: &AtomicBool) -> EndReport {
        loop {
            // Asked before the look: a process that a look after the bar does not see begins no more.
            let is_last = is_barred.load(Ordering::Acquire);
            self.pass(home);
            if is_last && self.left.values().all(|since| since.elapsed() >= GONE_AFTER) {
                break;
            }
            thread::sleep(LOOK);
        }
        let left = self.left.into_keys().map(|Use { folder, process }| {
            let says = FileLocks::now().ok().and_then(|locks| InUse::of(&folder, &locks).ok()??.says);
            Left { folder, process, says: says.filter(|says| Some(says.pid) == process) }
        });
        EndReport { ended: self.ended, left: left.collect() }
    }

    /// Looks for processes, asks them to end, and kills those that did not end in time.
    fn pass(&mut self, home: &Path) {
        let mut uses = look(home);
        let new = uses.iter().filter_map(|found| {
            let process = found.process.filter(|process| !self.running.contains_key(process))?;
            let handle =
                pidfd_open(Pid::from_raw(i32::try_from(process).ok()?)?, PidfdFlags::empty()).ok()?;
            Some((process, found.folder.clone(), handle))
        });
        let new: Vec<_> = new.collect();
        if !new.is_empty() {
            // Only if it holds the lock still, this handle is that process's.
            let again = look(home);
            for (process, folder, handle) in new {
                if again.contains(&Use { folder: folder.clone(), process: Some(process) }) {
                    pidfd_send_signal(&handle, Signal::TERM).ok();
                    self.running.entry(process).or_insert(Running {
                        folder,
                        process: handle,
                        since: Instant::now(),
                    });
                }
            }
        }
        for (process, running) in &self.running {
            if running.since.elapsed() >= KILLED_AFTER {
                pidfd_send_signal(&running.process, Signal::KILL).ok();
            }
            // One that let go of its session and lives on is not gone.
            uses.insert(Use { folder: running.folder.clone(), process: Some(*process) });
        }
        let ended = &mut self.ended;
        self.running.retain(|process, running| {
            let is_gone = is_gone(&running.process);
            if is_gone {
                *ended += 1;
                uses.retain(|found| found.process != Some(*process));
            }
            !is_gone
        });
        let now = Instant::now();
        let since = |found: Use| {
            let since = self.left.get(&found).copied().unwrap_or(now);
            (found, since)
        };
        self.left = uses.into_iter().map(since).collect();
    }
}

/// The sessions in use now, in a line for each.
pub fn in_use(home: &Path) -> Vec<String> {
    let locks = FileLocks::now().unwrap_or_default();
    let left = look(home).into_iter().map(|Use { folder, process }| {
        let says = InUse::of(&folder, &locks).ok().flatten().and_then(|found| found.says);
        Left { folder, process, says: says.filter(|says| Some(says.pid) == process) }
    });
    left.map(|left| left.to_string()).collect()
}

/// Whether a process has ended: its handle can be read then.
fn is_gone(process: &OwnedFd) -> bool {
    let mut handles = [PollFd::new(process, PollFlags::IN)];
    poll(&mut handles, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// The sessions in use now. A folder that cannot be read counts as in use by an unknown process.
fn look(home: &Path) -> BTreeSet<Use> {
    let unknown = |folder: PathBuf| Use { folder, process: None };
    let mut uses = BTreeSet::new();
    let sessions = home.join("sessions");
    let folders = match fs::read_dir(&sessions) {
        Ok(folders) => Some(folders),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(_) => {
            uses.insert(unknown(sessions.clone()));
            None
        }
    };
    // A process that asks providers without a session has its lock in the home itself.
    let folders = folders.into_iter().flatten().map(|folder| folder.map(|folder| folder.path()));
    let folders = folders.chain([Ok(home.to_path_buf())]);
    // Where the kernel tells nothing, each lock is still tried.
    let locks = FileLocks::now().unwrap_or_default();
    for folder in folders {
        let Ok(folder) = folder else {
            uses.insert(unknown(sessions.clone()));
            continue;
        };
        let found = InUse::of(&folder, &locks);
        #[cfg(feature = "controls")]
        let found = found.map(|found| found.map(crate::controls::hearsay));
        match found {
            Ok(None) => {}
            Ok(Some(found)) if found.processes.is_empty() => {
                uses.insert(unknown(folder));
            }
            Ok(Some(found)) => {
                let others = found.processes.into_iter().filter(|process| *process != std::process::id());
                uses.extend(others.map(|process| Use { folder: folder.clone(), process: Some(process) }));
            }
            Err(_) => {
                uses.insert(unknown(folder));
            }
        }
    }
    uses
}
