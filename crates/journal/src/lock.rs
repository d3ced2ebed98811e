//! The lock of one session: whoever holds it runs the session, recovers it, and nobody else does. And what
//! those hold who use a session's authority without running it, so that they are found.

use crate::{
    JournalError,
    flock::{FileLocks, Mode},
};
use bailey_protocol::{SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    fs::{self, File, Metadata, OpenOptions, TryLockError},
    io::{ErrorKind, Read as _, Seek as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// The most of a lock file that is read, in bytes.
const HOLDER_BYTES_MAX: u64 = 4096;

/// How long others may look at a lock, and how often one is tried meanwhile.
const LOOKED_AT: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(1);

/// The lock itself, held by one.
const LOCK: &str = "lock";
/// Held by any number at once.
const GUESTS: &str = "guests";

/// Who holds a session, for whoever finds it in use: one line of JSON in the lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Since when, UTC.
    pub since: Timestamp,
    /// What it was started as, without secrets.
    pub command: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.since.to_string();
        let since = since.get(..19).unwrap_or(&since).replace('T', " ");
        write!(f, "process {}, since {since} UTC (`{}`)", self.pid, self.command)
    }
}

/// A folder of a session that is in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InUse {
    /// The processes that use it, as the kernel names them; none where it tells nothing of them, such as from
    /// another pid namespace.
    pub processes: Vec<u32>,
    /// What the one that runs it says of itself: its own word.
    pub says: Option<Holder>,
}

impl InUse {
    /// Whether anybody uses this folder of a session, and who.
    ///
    /// # Errors
    /// When what is there cannot be read.
    pub fn of(folder: &Path, locks: &FileLocks) -> Result<Option<Self>, JournalError> {
        let runs = users(&folder.join(LOCK), Mode::Alone, locks)?;
        let guests = users(&folder.join(GUESTS), Mode::Shared, locks)?;
        if runs.is_none() && guests.is_none() {
            return Ok(None);
        }
        let says = match runs {
            Some(_) => says(&folder.join(LOCK))?,
            None => None,
        };
        Ok(Some(Self { processes: [runs, guests].into_iter().flatten().flatten().collect(), says }))
    }
}

/// Who holds the lock of a file in this way; nobody it knows where it is held all the same, and none where it
/// is free.
fn users(path: &Path, mode: Mode, locks: &FileLocks) -> Result<Option<Vec<u32>>, JournalError> {
    let io = |source| JournalError::Io { path: path.into(), source };
    let file = match File::open(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        file => file.map_err(io)?,
    };
    let holders = locks.holders(&file, mode).map_err(io)?;
    if !holders.is_empty() {
        return Ok(Some(holders));
    }
    // In the other way than it is held: who looks at the same moment does not take this for a holder.
    let tried = match mode {
        Mode::Alone => file.try_lock_shared(),
        Mode::Shared => file.try_lock(),
    };
    match tried {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(Vec::new())),
        Err(TryLockError::Error(error)) => Err(io(error)),
    }
}

fn says(path: &Path) -> Result<Option<Holder>, JournalError> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HOLDER_BYTES_MAX).read_to_end(&mut text));
    read.map_err(|source| JournalError::Io { path: path.into(), source })?;
    Ok(serde_json::from_slice(&text).ok())
}

/// Proof that this process alone runs a session; given up when dropped, also by kill -9.
#[derive(Debug)]
pub struct SessionLock {
    session: SessionId,
    file: File,
}

impl SessionLock {
    /// Takes the lock of a session, which is the file `lock` in the session's own folder, and writes into it
    /// who has it.
    ///
    /// # Errors
    /// [`JournalError::Held`] names the process that holds it; [`JournalError::Io`] when the file cannot be
    /// made.
    pub fn take(session: SessionId, folder: &Path, holder: &Holder) -> Result<Self, JournalError> {
        let path = folder.join(LOCK);
        let io = |source| JournalError::Io { path: path.clone(), source };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                // It may just be about to say who it is.
                return Err(JournalError::Held { session, holder: says(&path)?.map(Box::new) });
            }
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(io)?;
        let line = serde_json::to_string(holder).map_err(|error| JournalError::Json(error.to_string()))?;
        file.write_all(line.as_bytes()).map_err(io)?;
        Ok(Self { session, file })
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Whether this is still what lies in the folder, which may have been moved, removed or replaced
    /// meanwhile.
    #[must_use]
    pub fn is_in(&self, folder: &Path) -> bool {
        let of = |about: Metadata| (about.dev(), about.ino());
        let (held, there) = (self.file.metadata().map(of), fs::metadata(folder.join(LOCK)).map(of));
        held.is_ok_and(|held| there.is_ok_and(|there| there == held))
    }
}

/// A process's presence in a session that it does not run, beside any number of others: by this it is found.
/// Given up when dropped, also by kill -9.
#[derive(Debug)]
pub struct GuestLock {
    _file: File,
}

impl GuestLock {
    /// Takes it, in the session's own folder.
    ///
    /// # Errors
    /// When the file cannot be made, or somebody keeps it for themselves.
    pub fn take(folder: &Path) -> Result<Self, JournalError> {
        let path = folder.join(GUESTS);
        let io = |source| JournalError::Io { path: path.clone(), source };
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        let begin = Instant::now();
        loop {
            match file.try_lock_shared() {
                Ok(()) => return Ok(Self { _file: file }),
                // Whoever looks who is there has it for a moment.
                Err(TryLockError::WouldBlock) if begin.elapsed() < LOOKED_AT => thread::sleep(AGAIN),
                Err(error) => return Err(io(error.into())),
            }
        }
    }
}
