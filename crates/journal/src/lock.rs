//! The lock of one session: whoever holds it runs the session, recovers it, and nobody else does.

use crate::JournalError;
use bailey_protocol::{SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    fs::{File, OpenOptions, TryLockError},
    io::{Read as _, Seek as _, Write as _},
    path::Path,
};

/// The most of a lock file that is read, in bytes.
const HOLDER_BYTES_MAX: u64 = 4096;

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

/// Proof that this process alone runs a session; given up when dropped, also by kill -9.
#[derive(Debug)]
pub struct SessionLock {
    session: SessionId,
    _file: File,
}

impl SessionLock {
    /// Takes the lock of a session, which is the file `lock` in the session's own folder, and writes into it who has it.
    ///
    /// # Errors
    /// [`JournalError::Held`] names the process that holds it; [`JournalError::Io`] when the file cannot be made.
    pub fn take(session: SessionId, folder: &Path, holder: &Holder) -> Result<Self, JournalError> {
        let path = folder.join("lock");
        let io = |source| JournalError::Io { path: path.clone(), source };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.take(HOLDER_BYTES_MAX).read_to_string(&mut text).map_err(io)?;
                // It may just be about to say who it is.
                let holder = serde_json::from_str(&text).ok().map(Box::new);
                return Err(JournalError::Held { session, holder });
            }
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(io)?;
        let line = serde_json::to_string(holder).map_err(|error| JournalError::Json(error.to_string()))?;
        file.write_all(line.as_bytes()).map_err(io)?;
        Ok(Self { session, _file: file })
    }

    /// Who holds the lock in this folder of a session; none when it is free, or its holder is just about to say who it is.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub fn holder(folder: &Path) -> Result<Option<Holder>, JournalError> {
        let path = folder.join("lock");
        let io = |source| JournalError::Io { path: path.clone(), source };
        let file = match File::open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(io)?,
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.take(HOLDER_BYTES_MAX).read_to_string(&mut text).map_err(io)?;
                Ok(serde_json::from_str(&text).ok())
            }
            Err(TryLockError::Error(error)) => Err(io(error)),
        }
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.session
    }
}
