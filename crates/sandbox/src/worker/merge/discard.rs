//! Discard: the layer becomes empty, and the session sees the project again.

use super::disk::Disk;
use crate::worker::beneath::{Root, look, names, type_of};
use crate::worker::error::{Error, plain};
use bailey_protocol::{MergeFile, MergeResult, MergeState};
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, OFlags, openat};
use rustix::io::{Errno, Result};
use std::ffi::OsStr;

/// Names taken from a directory at a time.
const BATCH: usize = 4_096;
/// Directories within each other; each level holds a descriptor.
const DEPTH_MAX: usize = 512;

/// Empties the upper directory, what the request names and all else. Run again, it goes on.
pub(super) fn discard(
    disk: &Disk,
    upper: &Root,
    files: &[MergeFile],
) -> std::result::Result<Vec<MergeResult>, Error> {
    let emptied = upper.dir("").and_then(|dir| empty_with(disk, &dir, 0));
    let state = match emptied {
        Ok(()) => MergeState::Done,
        Err(errno) => MergeState::Failed { reason: format!("the layer cannot be emptied: {}", plain(errno)) },
    };
    Ok(files.iter().map(|file| MergeResult { path: file.path.clone(), state: state.clone() }).collect())
}

/// Empties a directory.
pub(in crate::worker) fn empty(dir: &OwnedFd) -> Result<()> {
    empty_with(&Disk::default(), dir, 0)
}

/// Removes what a directory has under a name, where it has that, with all that lies in it.
pub(in crate::worker) fn remove_all(dir: &OwnedFd, name: &OsStr) -> Result<()> {
    match remove(&Disk::default(), dir, name, 0) {
        Err(Errno::NOENT) => Ok(()),
        removed => removed,
    }
}

fn empty_with(disk: &Disk, dir: &OwnedFd, depth: usize) -> Result<()> {
    if depth > DEPTH_MAX {
        return Err(Errno::NAMETOOLONG);
    }
    loop {
        let (batch, more) = names(dir, BATCH)?;
        batch.iter().try_for_each(|name| remove(disk, dir, name, depth))?;
        if !more {
            return Ok(());
        }
    }
}

fn remove(disk: &Disk, dir: &OwnedFd, name: &OsStr, depth: usize) -> Result<()> {
    let is_dir = look(dir, name)?.is_some_and(|stat| type_of(&stat) == FileType::Directory);
    if !is_dir {
        return disk.unlink(dir, name);
    }
    empty_with(disk, &open(disk, dir, name)?, depth + 1)?;
    disk.rmdir(dir, name)
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
