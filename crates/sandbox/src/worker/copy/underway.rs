//! What a look is about to change in a copy, written down first: of a look that was cut off, the next one
//! takes nothing for the session's doing. No command runs between the two.

use super::record::{Looks, Record};
use crate::worker::beneath::Root;
use crate::worker::error::{Error, errno};
use rustix::fs::{AtFlags, CWD, unlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write as _;

/// The paths that one look changed so far, each ended by a NUL. It outlives the process, not a loss of power.
pub(super) struct Underway {
    path: String,
    file: File,
}

impl Underway {
    /// Goes on with what a look before left, which counts until one is over.
    pub(super) fn begin(record: &str) -> Result<Self, Error> {
        let path = beside(record);
        let file = File::options().create(true).append(true).open(&path);
        let file = file.map_err(|error| Error::system("open", &path)(errno(&error)))?;
        Ok(Self { path, file })
    }

    /// Before anything is changed at a path.
    pub(super) fn note(&mut self, at: &str) -> Result<(), Error> {
        let line = [at.as_bytes(), b"\0"].concat();
        self.file.write_all(&line).map_err(|error| Error::system("write", &self.path)(errno(&error)))
    }

    /// After the record was written.
    pub(super) fn over(self) -> Result<(), Error> {
        unlinkat(CWD, &self.path, AtFlags::empty()).map_err(Error::system("remove", &self.path))
    }
}

/// Puts into a record what a look that was cut off came to: as it stands in the copy now, the session left it
/// alone, and it is like nothing of the project.
pub(super) fn take_in(record: &mut Record, path: &str, copy: &Root) -> Result<(), Error> {
    let path = beside(path);
    let text = match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        read => read.map_err(|error| Error::system("read", &path)(errno(&error)))?,
    };
    let mut lines = text.split(|byte| *byte == 0);
    // What comes behind the last NUL was never begun.
    lines.next_back();
    for at in lines.filter_map(|line| std::str::from_utf8(line).ok()) {
        match copy.stat(at) {
            Ok(Some(stat)) => drop(record.insert(at.to_owned(), (Looks::UNLIKE_ANY, Looks::of(&stat)))),
            Ok(None) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => drop(record.remove(at)),
            Err(errno) => return Err(Error::system("look at", at)(errno)),
        }
    }
    Ok(())
}

fn beside(record: &str) -> String {
    format!("{record}.underway")
}
