//! A file of a repository, replaced under git's own lock (`NAME.lock`), so that no git works there meanwhile.
//!
//! What is to be there is written whole under a passing name, on the disk, before it *is* the lock, as a
//! second name of the same file. So whoever finds a lock after a kill sees by the file's number whether it is
//! this merge's own.

use super::disk::{Disk, write_all};
use crate::worker::beneath::look;
use rustix::fd::OwnedFd;
use rustix::io::{Errno, Result};

/// A lock that is held. What is not finished is to be given up.
pub(super) struct Lock<'a> {
    disk: &'a Disk,
    dir: OwnedFd,
    name: String,
    passing: String,
}

/// Takes up what a killed run of the same merge left of its lock at `name`.
pub(super) fn settle(disk: &Disk, dir: &OwnedFd, name: &str, tag: &str) -> Result<()> {
    let passing = passing(name, tag);
    let Some(own) = look(dir, passing.as_ref())? else { return Ok(()) };
    let lock = format!("{name}.lock");
    if look(dir, lock.as_ref())?.is_some_and(|lock| (lock.st_dev, lock.st_ino) == (own.st_dev, own.st_ino)) {
        disk.unlink(dir, lock.as_str())?;
    }
    disk.unlink(dir, passing.as_str())
}

/// Locks `name` in `dir`; `bytes` are what it becomes.
///
/// # Errors
/// `EEXIST` where somebody else has the lock.
pub(super) fn lock<'a>(
    disk: &'a Disk,
    dir: OwnedFd,
    name: &str,
    tag: &str,
    bytes: &[u8],
    mode: u32,
) -> Result<Lock<'a>> {
    settle(disk, &dir, name, tag)?;
    let lock = Lock { disk, dir, name: name.into(), passing: passing(name, tag) };
    let mut sink = disk.create(&lock.dir, &lock.passing)?;
    let written = write_all(&mut sink, bytes).and_then(|()| sink.finish(mode));
    let locked = written.and_then(|()| disk.link(&lock.dir, &lock.passing, &lock.locked()));
    match locked {
        Ok(()) => Ok(lock),
        Err(errno) => {
            disk.unlink(&lock.dir, lock.passing.as_str()).ok();
            Err(errno)
        }
    }
}

impl Lock<'_> {
    /// Puts the bytes in place.
    pub(super) fn replace(self) -> Result<()> {
        let replaced = self.disk.rename(&self.dir, &self.locked(), &self.name);
        if replaced.is_err() {
            self.give_up().ok();
            return replaced;
        }
        self.disk.unlink(&self.dir, self.passing.as_str())?;
        self.disk.sync(&self.dir)
    }

    /// Removes what the lock is for.
    pub(super) fn remove(self) -> Result<()> {
        let removed = self.disk.unlink(&self.dir, self.name.as_str());
        self.give_up().and(removed)
    }

    /// Leaves everything as it was.
    pub(super) fn give_up(self) -> Result<()> {
        self.disk.unlink(&self.dir, self.locked().as_str())?;
        self.disk.unlink(&self.dir, self.passing.as_str())?;
        self.disk.sync(&self.dir)
    }

    fn locked(&self) -> String {
        format!("{}.lock", self.name)
    }
}

/// A name that no git takes for a reference's or a pack's.
fn passing(name: &str, tag: &str) -> String {
    format!(".bailey-merge-{tag}-{name}")
}

/// Whether somebody else has the lock.
pub(super) fn is_held(errno: Errno) -> bool {
    errno == Errno::EXIST
}
