//! Discard: the layer becomes empty, and the session sees the project again.

use super::disk::Disk;
use crate::worker::beneath::{Root, look, names, type_of};
use crate::worker::error::Error;
use bailey_protocol::{MergeFile, MergeResult, MergeState};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, openat};
use rustix::io::{Errno, Result};
use std::cell::Cell;
use std::ffi::OsStr;

/// Names taken from a directory at a time.
const BATCH: usize = 4_096;
/// Directories within each other before one is lifted; each level holds a descriptor and a part of the stack.
const DEPTH_MAX: usize = 64;

/// Empties the upper directory, what the request names and all else. Run again, it goes on.
pub(super) fn discard(
    disk: &Disk,
    upper: &Root,
    files: &[MergeFile],
) -> std::result::Result<Vec<MergeResult>, Error> {
    // The session may have taken its owner's right to it, too.
    disk.unlock(CWD, upper.path())
        .and_then(|()| upper.dir(""))
        .and_then(|dir| emptied(disk, &dir))
        .map_err(Error::system("empty", "the layer"))?;
    let done = |file: &MergeFile| MergeResult { path: file.path.clone(), state: MergeState::Done };
    Ok(files.iter().map(done).collect())
}

/// Empties a directory.
pub(in crate::worker) fn empty(dir: &OwnedFd) -> Result<()> {
    emptied(&Disk::default(), dir)
}

/// Removes what a directory has under a name, where it has that, with all that lies in it.
///
/// # Errors
/// The system's.
pub(crate) fn remove_all(dir: &OwnedFd, name: &OsStr) -> Result<()> {
    let disk = Disk::default();
    let removal = Removal { disk: &disk, top: dir, lifted: Cell::new(0) };
    match removal.remove(dir, name, 0) {
        Err(Errno::NOENT) => Ok(()),
        removed => removed.and_then(|()| removal.remove_lifted()),
    }
}

fn emptied(disk: &Disk, dir: &OwnedFd) -> Result<()> {
    let removal = Removal { disk, top: dir, lifted: Cell::new(0) };
    removal.empty(dir, 0)?;
    removal.remove_lifted()
}

/// A removal of trees of any depth: what lies too deep is lifted to the top, and removed from there.
struct Removal<'a> {
    disk: &'a Disk,
    top: &'a OwnedFd,
    /// The number of the last one that was lifted.
    lifted: Cell<u32>,
}

impl Removal<'_> {
    fn empty(&self, dir: &OwnedFd, depth: usize) -> Result<()> {
        loop {
            let (batch, more) = names(dir, BATCH)?;
            batch.iter().try_for_each(|name| self.remove(dir, name, depth))?;
            if !more {
                return Ok(());
            }
        }
    }

    fn remove(&self, dir: &OwnedFd, name: &OsStr, depth: usize) -> Result<()> {
        let is_dir = look(dir, name)?.is_some_and(|stat| type_of(&stat) == FileType::Directory);
        if !is_dir {
            return self.disk.unlink(dir, name);
        }
        let inside = open(self.disk, dir, name)?;
        if depth >= DEPTH_MAX {
            return self.lift(dir, name);
        }
        self.empty(&inside, depth + 1)?;
        self.disk.rmdir(dir, name)
    }

    fn lift(&self, dir: &OwnedFd, name: &OsStr) -> Result<()> {
        loop {
            let number = self.lifted.get() + 1;
            self.lifted.set(number);
            match self.disk.lift(dir, name, self.top, &lifted(number)) {
                // Of a removal that was killed, or the session's own.
                Err(Errno::EXIST) => {}
                moved => return moved,
            }
        }
    }

    fn remove_lifted(&self) -> Result<()> {
        let mut number = 0;
        while number < self.lifted.get() {
            number += 1;
            match self.remove(self.top, lifted(number).as_ref(), 0) {
                Err(Errno::NOENT) => {}
                removed => removed?,
            }
        }
        Ok(())
    }
}

fn lifted(number: u32) -> String {
    format!(".bailey-deep-{number}")
}

/// Opens a directory of the layer, giving its owner back the right to, which the session may have taken.
fn open(disk: &Disk, dir: &OwnedFd, name: &OsStr) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let locked = look(dir, name)?.is_some_and(|stat| stat.st_mode & 0o700 != 0o700);
    if locked {
        disk.unlock(dir, name)?;
    }
    openat(dir, name, flags, Mode::empty())
}
