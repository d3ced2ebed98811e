//! The few operations that change a disk, each one system call, so that a test can stop the world before
//! any of them.

use crate::worker::attributes::{self, Attributes};
use crate::worker::error::errno;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, chmodat, fchmod, fsync, ftruncate, linkat, mkdirat, openat, renameat,
    renameat_with, symlinkat, syncfs, unlinkat,
};
use rustix::io::{Errno, Result};
use rustix::path::Arg;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

/// The disk as merges change it.
#[derive(Default)]
pub(super) struct Disk {
    /// Whether files and names wait for the disk together, at [`Disk::flush`], and not each by itself.
    pub(super) is_batch: bool,
    /// Operations until the simulated death; every one after it fails. None: never.
    #[cfg(test)]
    pub(super) fuse: std::cell::Cell<Option<u32>>,
    /// What somebody does right after the next exchange.
    #[cfg(test)]
    pub(super) then: std::cell::RefCell<Option<Box<dyn FnOnce()>>>,
}

impl Disk {
    /// A disk whose files and names wait together, or each by itself.
    pub(super) fn of_batch(is_batch: bool) -> Self {
        Self {
            is_batch,
            #[cfg(test)]
            fuse: std::cell::Cell::default(),
            #[cfg(test)]
            then: std::cell::RefCell::default(),
        }
    }

    /// An empty new file, for the owner alone.
    pub(super) fn create<'a>(&'a self, dir: impl AsFd, name: &str) -> Result<Sink<'a>> {
        self.step()?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(dir, name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(Sink { disk: self, file: File::from(fd), ends_in_hole: false })
    }

    pub(super) fn mkdir(&self, dir: impl AsFd, name: &str, mode: u32) -> Result<()> {
        self.mkdir_with(dir, name, mode, &Attributes::new())
    }

    /// A directory with these attributes, for the owner alone until it has them. Its own mode comes last: on
    /// what is read-only none can be set, and what nobody may read cannot be opened. There is none where
    /// anything of it fails.
    pub(super) fn mkdir_with(
        &self,
        dir: impl AsFd,
        name: &str,
        mode: u32,
        attributes: &Attributes,
    ) -> Result<()> {
        self.step()?;
        // Without attributes its mode but for the owner's rights: whoever is killed here leaves what another
        // run takes as it is.
        let first = if attributes.is_empty() { mode | 0o700 } else { 0o700 };
        mkdirat(&dir, name, Mode::from_raw_mode(first))?;
        let furnished = self.furnish(&dir, name, mode, attributes);
        if furnished.is_err() {
            self.rmdir(&dir, name).ok();
        }
        furnished
    }

    fn furnish(&self, dir: impl AsFd, name: &str, mode: u32, attributes: &Attributes) -> Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(dir, name, flags, Mode::empty())?;
        if !attributes.is_empty() {
            self.step()?;
            attributes::set(&made, attributes)?;
        }
        self.step()?;
        fchmod(made, Mode::from_raw_mode(mode))
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

    /// Gives a file a second name, which nothing has (`EEXIST` otherwise).
    pub(super) fn link(&self, dir: impl AsFd, old: &str, new: &str) -> Result<()> {
        self.step()?;
        linkat(&dir, old, &dir, new, AtFlags::empty())
    }

    /// Renames to a name that nothing has (`EEXIST` otherwise).
    pub(super) fn rename_new(&self, dir: impl AsFd, old: &str, new: &str) -> Result<()> {
        self.step()?;
        renameat_with(&dir, old, &dir, new, RenameFlags::NOREPLACE)
    }

    /// Moves what has a name in one directory to a name in another that nothing has there (`EEXIST`
    /// otherwise).
    pub(super) fn lift(&self, from: impl AsFd, old: impl Arg, to: impl AsFd, new: &str) -> Result<()> {
        self.step()?;
        renameat_with(from, old, to, new, RenameFlags::NOREPLACE)
    }

    /// Swaps two names in one step.
    pub(super) fn exchange(&self, dir: impl AsFd, one: &str, other: &str) -> Result<()> {
        self.step()?;
        renameat_with(&dir, one, &dir, other, RenameFlags::EXCHANGE)?;
        #[cfg(test)]
        if let Some(then) = self.then.borrow_mut().take() {
            then();
        }
        Ok(())
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

    /// Waits until the directory's names are on the disk; in a batch, the next flush does.
    pub(super) fn sync(&self, dir: &OwnedFd) -> Result<()> {
        if self.is_batch {
            return Ok(());
        }
        self.step()?;
        fsync(dir)
    }

    /// In a batch, waits until all that was done to the file system that this lies in is on the disk.
    pub(super) fn flush(&self, on: &OwnedFd) -> Result<()> {
        if !self.is_batch {
            return Ok(());
        }
        self.step()?;
        syncfs(on)
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

/// A file being written. Blocks of zeros are left out, so that a sparse file stays one.
pub(super) struct Sink<'a> {
    disk: &'a Disk,
    file: File,
    ends_in_hole: bool,
}

/// Bytes that are left out when all of them are zero.
const BLOCK: usize = 4096;

impl Sink<'_> {
    /// Gives it these attributes.
    pub(super) fn set(&self, attributes: &Attributes) -> Result<()> {
        if attributes.is_empty() {
            return Ok(());
        }
        self.disk.step()?;
        attributes::set(&self.file, attributes)
    }

    /// Sets the mode and waits until the file is on the disk; in a batch, the next flush does.
    pub(super) fn finish(mut self, mode: u32) -> Result<()> {
        if self.ends_in_hole {
            let end = self.file.stream_position().map_err(|error| errno(&error))?;
            self.disk.step()?;
            ftruncate(&self.file, end)?;
        }
        self.disk.step()?;
        fchmod(&self.file, Mode::from_raw_mode(mode))?;
        if self.disk.is_batch {
            return Ok(());
        }
        self.disk.step()?;
        fsync(&self.file)
    }
}

/// The bytes before the first whole block of zeros.
fn before_zeros(bytes: &[u8]) -> usize {
    bytes.chunks(BLOCK).take_while(|block| !is_hole(block)).map(<[u8]>::len).sum()
}

fn is_hole(block: &[u8]) -> bool {
    block.len() == BLOCK && block.iter().all(|byte| *byte == 0)
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let data = before_zeros(bytes);
        if data == 0 && !bytes.is_empty() {
            let zeros: usize = bytes.chunks(BLOCK).take_while(|block| is_hole(block)).map(<[u8]>::len).sum();
            self.ends_in_hole = true;
            return self
                .file
                .seek(SeekFrom::Current(i64::try_from(zeros).unwrap_or_default()))
                .map(|_| zeros);
        }
        self.disk.step()?;
        self.ends_in_hole = false;
        self.file.write(bytes.get(..data).unwrap_or_default())
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
