//! What can go wrong with a database file, sorted by what a person can do about it.

use rusqlite::ErrorCode;
use std::{
    error::Error,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};
use thiserror::Error as ThisError;

/// Why a store could not do what it was asked.
///
/// It can be cloned because a failed commit fails every write of its group. Inside a closure the path is
/// still empty; the store fills it in before the error leaves.
#[derive(Debug, Clone, ThisError)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process held the write lock for longer than ten seconds.
    #[error(
        "database `{}` is busy: another process held its lock for more than 10 seconds; \
         wait for it or end it, then try again", path.display()
    )]
    Busy {
        /// The database file.
        path: PathBuf,
    },
    /// No space left, in the file system or under the database's own limit.
    #[error("database `{}` cannot grow: no space is left; free some space and try again", path.display())]
    Full {
        /// The database file.
        path: PathBuf,
    },
    /// The file or its file system cannot be written.
    #[error(
        "database `{}` is read-only: its permissions or its file system forbid writing; make it writable by its owner: chmod 600 \
         where its mode forbids it, and else mount its file system for writing", path.display()
    )]
    ReadOnly {
        /// The database file.
        path: PathBuf,
    },
    /// The content of the file contradicts itself.
    #[error("database `{}` is damaged ({detail}); `bailey audit recover` brings over what can still be read, `bailey restore` \
         brings a backup back, or move it away to start a new one", path.display())]
    Corrupt {
        /// The database file.
        path: PathBuf,
        /// SQLite's own words.
        detail: String,
    },
    /// A newer Bailey wrote the file.
    #[error(
        "database `{}` has schema version {found}, but this program knows versions up to {supported}: \
         a newer Bailey wrote it; upgrade this one, or end it where the newer one is installed already", path.display()
    )]
    TooNew {
        /// The database file.
        path: PathBuf,
        /// The file's schema version.
        found: u32,
        /// The newest version that the caller's migrations reach.
        supported: u32,
    },
    /// The file is no SQLite database, or one that Bailey did not make.
    #[error("`{}` is not a Bailey database ({detail}); `bailey audit recover` brings over what can still be read of one, \
         `bailey restore` brings a backup back, or move it away to start a new one", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        detail: String,
    },
    /// The file could not be reached at all.
    #[error("database `{}` cannot be opened: {source}; check that its directory exists and is yours", path.display())]
    Access {
        /// The database file.
        path: PathBuf,
        /// The operating system's reason.
        source: Arc<io::Error>,
    },
    /// Any other error of SQLite, such as a violated constraint or a wrong statement.
    #[error("database `{}` refused a statement: {source}", path.display())]
    Sql {
        /// The database file.
        path: PathBuf,
        /// SQLite's reason.
        source: Arc<rusqlite::Error>,
    },
    /// The closure's own error; its writes were rolled back.
    #[error("{0}")]
    Custom(Arc<dyn Error + Send + Sync>),
    /// The closure panicked; its writes were rolled back.
    #[error("a write or read of database `{}` panicked and was rolled back: {message}", path.display())]
    Panicked {
        /// The database file.
        path: PathBuf,
        /// What the panic said.
        message: String,
    },
    /// The group's transaction ended early, because another write of the group took it down.
    #[error("a write to database `{}` was rolled back with its group: {cause}; try again", path.display())]
    RolledBack {
        /// The database file.
        path: PathBuf,
        /// The error that took the group down.
        cause: Arc<StoreError>,
    },
    /// The store's thread is gone.
    #[error("database `{}` was closed; restart the program", path.display())]
    Closed {
        /// The database file.
        path: PathBuf,
    },
}

impl StoreError {
    /// Wraps a closure's own error; returning it rolls the closure's writes back.
    pub fn custom(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Custom(error.into().into())
    }

    /// The closure's own error, if this is one and of that type.
    #[must_use]
    pub fn as_custom<E: Error + 'static>(&self) -> Option<&E> {
        match self {
            Self::Custom(error) => error.downcast_ref(),
            _ => None,
        }
    }

    /// The same error with the file's path, where it has none yet.
    #[must_use]
    pub(crate) fn at(mut self, file: &Path) -> Self {
        let path = match &mut self {
            Self::Busy { path }
            | Self::Full { path }
            | Self::ReadOnly { path }
            | Self::Closed { path }
            | Self::Corrupt { path, .. }
            | Self::TooNew { path, .. }
            | Self::NotADatabase { path, .. }
            | Self::Access { path, .. }
            | Self::Sql { path, .. }
            | Self::Panicked { path, .. }
            | Self::RolledBack { path, .. } => path,
            Self::Custom(_) => return self,
        };
        if path.as_os_str().is_empty() {
            *path = file.into();
        }
        self
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let path = PathBuf::new();
        // The log's index could not be made as large as it has to be.
        let has_no_room =
            |error: &rusqlite::ffi::Error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
        if error.sqlite_error().is_some_and(has_no_room) {
            return Self::Full { path };
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::ReadOnly) => Self::ReadOnly { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt { path, detail: error.to_string() },
            Some(ErrorCode::NotADatabase) => Self::NotADatabase { path, detail: error.to_string() },
            _ => Self::Sql { path, source: Arc::new(error) },
        }
    }
}
