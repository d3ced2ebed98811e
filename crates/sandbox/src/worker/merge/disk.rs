//! The few operations that change a disk, each one system call, so that a test can stop the world before
//! any of them.

use crate::worker::error::errno;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, chmodat, fchmod, fsync, mkdirat, openat, renameat, renameat_with,
    symlinkat, unlinkat,
};
use rustix::io::{Errno, Result};
use rustix::path::Arg;
use std::fs::File;
use std::io::{self, Write};

/// The disk as merges change it.
#[derive(Default)]
pub(super) struct Disk {
    /// Operations until the simulated death; every one after it fails. None: never.
    #[cfg(test)]
    pub(super) fuse: std::cell::Cell<Option<u32>>,
}

impl Disk {
    /// An empty new file, for the owner alone.
    pub(super) fn create<'a>(&'a self, dir: impl AsFd, name: &str) -> Result<Sink<'a>> {
        self.step()?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(dir, name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(Sink { disk: self, file: File::from(fd) })
    }

    pub(super) fn mkdir(&self, dir: impl AsFd, name: &str, mode: u32) -> Result<()> {
        self.step()?;
        mkdirat(&dir, name, Mode::from_raw_mode(mode))?;
        self.chmod(dir, name, mode)
    }

    /// Sets a directory's permission bits.
    pub(super) fn chmod(&self, dir: impl AsFd, name: &str, mode: u32) -> Result<()> {
        self.step()?;
        // Through a descriptor: by name, chmod would follow a symlink put there meanwhile.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        fchmod(openat(dir, name, flags, Mode::empty())?, Mode::from_raw_mode(mode))
    }

    pub(super) fn symlink(&self, dir: impl AsFd, name: &str, target: &[u8]) -> Result<()> {
        self.step()?;
        symlinkat(target, dir, name)
    }

    /// Renames; whatever had the new name is gone.
    pub(super) fn rename(&self, dir: impl AsFd, old: &str, new: &str) -> Result<()> {
        self.step()?;
        renameat(&dir, old, &dir, new)
    }

    /// Renames to a name that nothing has (`EEXIST` otherwise).
    pub(super) fn rename_new(&self, dir: impl AsFd, old: &str, new: &str) -> Result<()> {
        self.step()?;
        renameat_with(&dir, old, &dir, new, RenameFlags::NOREPLACE)
    }

    /// Swaps two names in one step.
    pub(super) fn exchange(&self, dir: impl AsFd, one: &str, other: &str) -> Result<()> {
        self.step()?;
        renameat_with(&dir, one, &dir, other, RenameFlags::EXCHANGE)
    }

    pub(super) fn unlink(&self, dir: impl AsFd, name: impl Arg) -> Result<()> {
        self.step()?;
        unlinkat(dir, name, AtFlags::empty())
    }

    pub(super) fn rmdir(&self, dir: impl AsFd, name: impl Arg) -> Result<()> {
        self.step()?;
        unlinkat(dir, name, AtFlags::REMOVEDIR)
    }

    /// Lets the owner into a directory of the layer again. Nobody else works in a layer being discarded, so
    /// that no symlink can take its place.
    pub(super) fn unlock(&self, dir: impl AsFd, name: impl Arg) -> Result<()> {
        self.step()?;
        chmodat(dir, name, Mode::RWXU, AtFlags::empty())
    }

    /// Waits until the directory's names are on the disk.
    pub(super) fn sync(&self, dir: &OwnedFd) -> Result<()> {
        self.step()?;
        fsync(dir)
    }

    #[cfg(not(test))]
    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "tests stop the world here")]
    fn step(&self) -> Result<()> {
        Ok(())
    }

    #[cfg(test)]
    fn step(&self) -> Result<()> {
        match self.fuse.get() {
            Some(0) => Err(Errno::IO),
            Some(left) => {
                self.fuse.set(Some(left - 1));
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// A file being written.
pub(super) struct Sink<'a> {
    disk: &'a Disk,
    file: File,
}

impl Sink<'_> {
    /// Sets the mode and waits until the file is on the disk.
    pub(super) fn finish(self, mode: u32) -> Result<()> {
        self.disk.step()?;
        fchmod(&self.file, Mode::from_raw_mode(mode))?;
        self.disk.step()?;
        fsync(&self.file)
    }
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.step()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes all bytes, for callers that speak error numbers.
pub(super) fn write_all(sink: &mut Sink<'_>, bytes: &[u8]) -> Result<()> {
    sink.write_all(bytes).map_err(|error| errno(&error))
}

/// Whether the file system does not know a flag of `renameat2`.
pub(super) fn is_unsupported(errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}
