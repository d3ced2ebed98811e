//! What project and copy looked like when they were the same.

use crate::worker::beneath::type_of;
use crate::worker::error::{Error, errno};
use crate::worker::read::size;
use rustix::fs::{CWD, FileType, Stat, renameat};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};

/// What stands at a path, as far as it can be told without reading. Of a directory only its mode counts: the
/// rest changes with what lies in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Looks {
    pub(super) mode: u32,
    size: u64,
    /// Unix time in nanoseconds.
    modified: i128,
    changed: i128,
    inode: u64,
}

impl Looks {
    /// What nothing looks like.
    pub(super) const UNLIKE_ANY: Self = Self { mode: u32::MAX, size: 0, modified: 0, changed: 0, inode: 0 };

    pub(super) fn of(stat: &Stat) -> Self {
        let directory = Self { mode: stat.st_mode, size: 0, modified: 0, changed: 0, inode: 0 };
        if type_of(stat) == FileType::Directory {
            return directory;
        }
        Self {
            size: size(stat),
            modified: i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec),
            changed: i128::from(stat.st_ctime) * 1_000_000_000 + i128::from(stat.st_ctime_nsec),
            inode: stat.st_ino,
            ..directory
        }
    }
}

/// The same in the project and in the copy, when they were one.
pub(super) type Record = BTreeMap<String, (Looks, Looks)>;

/// Reads it; there is none before the first look.
pub(super) fn read(path: &str) -> Result<Record, Error> {
    let mut text = Vec::new();
    match File::open(path) {
        Ok(mut file) => {
            file.read_to_end(&mut text).map_err(|error| Error::system("read", path)(errno(&error)))?
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Record::new()),
        Err(error) => return Err(Error::system("read", path)(errno(&error))),
    };
    serde_json::from_slice(&text).map_err(|_| Error::path(path, "is no record of a copy"))
}

/// Replaces it in one step: a torn one would count every path as the session's.
pub(super) fn write(path: &str, record: &Record) -> Result<(), Error> {
    let text = serde_json::to_vec(record).map_err(|_| Error::path(path, "cannot be written"))?;
    replace(path, &text)
}

/// Has a file hold this text and no other, or what it held.
pub(super) fn replace(path: &str, text: &[u8]) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::system("write", path)(errno(&error));
    let passing = format!("{path}.new");
    let mut file = File::create(&passing).map_err(failed)?;
    file.write_all(text).and_then(|()| file.sync_all()).map_err(failed)?;
    renameat(CWD, &passing, CWD, path).map_err(Error::system("write", path))
}
