//! The lock of one session: whoever holds it runs the session, recovers it, and nobody else does.

use crate::JournalError;
use bailey_protocol::SessionId;
use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read as _, Seek as _, Write as _},
    path::Path,
};

/// Proof that this process alone runs a session; given up when dropped, also by kill -9.
#[derive(Debug)]
pub struct SessionLock {
    session: SessionId,
    _file: File,
}

impl SessionLock {
    /// Takes the lock of a session, which is the file `lock` in the session's own folder.
    ///
    /// # Errors
    /// [`JournalError::Held`] names the process that holds it; [`JournalError::Io`] when the file cannot be made.
    pub fn take(session: SessionId, folder: &Path) -> Result<Self, JournalError> {
        let path = folder.join("lock");
        let io = |source| JournalError::Io { path: path.clone(), source };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                file.read_to_string(&mut holder).map_err(io)?;
                return Err(JournalError::Held { session, holder: holder.trim().to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(io)?;
        write!(file, "{}", std::process::id()).map_err(io)?;
        Ok(Self { session, _file: file })
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.session
    }
}
