//! What the session has otherwise than the project, as the upper directory of an overlay would hold it.

use super::{Look, Looks, modified, pour::pour};
use crate::worker::attributes;
use crate::worker::beneath::{join, split, type_of};
use crate::worker::error::Error;
use crate::worker::layer::{STAYS, Stays};
use crate::worker::read::size;
use crate::worker::state::MODE_BITS;
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, XattrFlags, fchmod, fsetxattr, fstat, futimens, linkat, mkdirat,
    openat, readlinkat, symlinkat,
};
use rustix::io::Errno;
use std::{ffi::OsStr, fs::File};

/// How an overlay notes what is deleted, where there are no devices.
const WHITEOUT: &str = "user.overlay.whiteout";

/// Whether nothing stands there any more, or something that leads elsewhere.
fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}

impl Look {
    /// Puts into the layer what the session has at a path; of a directory itself alone. What is gone since it
    /// was looked at is nothing that the session has: something of it may live.
    pub(super) fn add(&self, at: &str, ours: &Stat) -> Result<(), Error> {
        let failed = |errno| Error::system("lay out", at)(errno);
        let (from, name) = match self.copy.parent(at) {
            Err(errno) if is_gone(errno) => return Ok(()),
            parent => parent.map_err(failed)?,
        };
        let dir = self.directory_in_layer(split(at).0)?;
        match type_of(ours) {
            FileType::Directory => self.make(&dir, name, at, ours.st_mode),
            FileType::Symlink => {
                let target = match readlinkat(&from, name, Vec::new()) {
                    // Another kind of thing stands there by now, which the next look sees.
                    Err(errno) if is_gone(errno) || errno == Errno::INVAL => return Ok(()),
                    target => target.map_err(failed)?,
                };
                symlinkat(target, &dir, name).map_err(failed)
            }
            FileType::RegularFile if size(ours) == 0 => self.add_empty(at, ours),
            // A link more is a change to all names that it has in the copy, of which some may be nothing of
            // the session's.
            _ if ours.st_nlink > 1 && ours.st_mode & 0o400 != 0 => self.add_apart(at, &from, name, &dir),
            // One inode in both: nothing is written through the layer.
            _ => match linkat(&from, name, &dir, name, AtFlags::empty()) {
                // The session gave it as many names as there can be.
                Err(Errno::MLINK) => self.hold(at, Stays::TooManyNames),
                Err(errno) if is_gone(errno) => Ok(()),
                linked => linked.map_err(failed),
            },
        }
    }

    /// A file of its own with what one in the copy holds.
    fn add_apart(&self, at: &str, from: &OwnedFd, name: &str, dir: &OwnedFd) -> Result<(), Error> {
        let failed = |errno| Error::system("lay out", at)(errno);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let source = match openat(from, name, flags, Mode::empty()) {
            Err(errno) if is_gone(errno) => return Ok(()),
            opened => File::from(opened.map_err(failed)?),
        };
        let stat = fstat(&source).map_err(failed)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let sink = File::from(openat(dir, name, flags, Mode::RUSR | Mode::WUSR).map_err(failed)?);
        pour(&source, &sink, size(&stat)).map_err(failed)?;
        let own = attributes::of(&source).and_then(|own| attributes::set(&sink, &own));
        own.map_err(failed)?;
        fchmod(&sink, Mode::from_raw_mode(stat.st_mode & MODE_BITS)).map_err(failed)?;
        futimens(&sink, &modified(&stat)).map_err(failed)
    }

    /// An empty file of its own: with the session's attributes it could look like what is deleted.
    fn add_empty(&self, at: &str, ours: &Stat) -> Result<(), Error> {
        let (above, name) = split(at);
        let file = self.empty_file(above, name.as_ref())?;
        let mode = Mode::from_raw_mode(ours.st_mode & MODE_BITS);
        fchmod(&file, mode).map_err(Error::system("lay out", at))
    }

    pub(super) fn whiteout(&self, at: &str) -> Result<(), Error> {
        self.mark(at, WHITEOUT, b"y")
    }

    /// Has it be told that what the session has at a path stays with it.
    pub(super) fn hold(&self, at: &str, why: Stays) -> Result<(), Error> {
        self.mark(at, STAYS, why.mark())
    }

    fn mark(&self, at: &str, attribute: &str, value: &[u8]) -> Result<(), Error> {
        let (above, name) = split(at);
        // An attribute is set on what can be written.
        let file = self.empty_file(above, name.as_ref())?;
        fsetxattr(&file, attribute, value, XattrFlags::empty()).map_err(Error::system("lay out", at))
    }

    /// An empty file in the layer.
    pub(super) fn empty_file(&self, above: &str, name: &OsStr) -> Result<OwnedFd, Error> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let made = openat(self.directory_in_layer(above)?, name, flags, Mode::RUSR | Mode::WUSR);
        made.map_err(|errno| Error::system("lay out", &join(above, &name.to_string_lossy()))(errno))
    }

    /// A directory of the layer, made with the modes that the copy's have, or else the project's.
    fn directory_in_layer(&self, at: &str) -> Result<OwnedFd, Error> {
        let failed = |errno| Error::system("lay out", at)(errno);
        let mut made = String::new();
        for part in at.split('/').filter(|part| !part.is_empty()) {
            let dir = self.upper.dir(&made).map_err(failed)?;
            made = join(&made, part);
            let mode = match self.copy.stat(&made).map_err(failed)? {
                Some(ours) => self.left_alone(&made, &ours).unwrap_or(ours.st_mode),
                None => self.project.stat(&made).map_err(failed)?.map_or(0o755, |theirs| theirs.st_mode),
            };
            self.make(&dir, part, &made, mode)?;
        }
        self.upper.dir(at).map_err(failed)
    }

    /// The mode that the project's directory has, where the session left that of the copy alone, which its
    /// owner can always work in.
    fn left_alone(&self, at: &str, ours: &Stat) -> Option<u32> {
        let (theirs, known) = self.record.get(at)?;
        (*known == Looks::of(ours)).then_some(theirs.mode)
    }

    fn make(&self, dir: &OwnedFd, name: &str, at: &str, mode: u32) -> Result<(), Error> {
        let mode = mode & MODE_BITS;
        if mode & 0o700 != 0o700 {
            // What cannot be read cannot be compared.
            self.closed.borrow_mut().insert(at.to_owned(), mode | 0o500);
        }
        let open = Mode::from_raw_mode(mode | 0o700);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = match mkdirat(dir, name, open) {
            Err(Errno::EXIST) => return Ok(()),
            // The umask takes from a mode that a directory is made with, and the kernel some bits.
            made => made.and_then(|()| openat(dir, name, flags, Mode::empty())),
        };
        made.and_then(|made| fchmod(made, open)).map_err(Error::system("lay out", at))
    }

    /// Gives directories of the layer their own modes, when all is laid out.
    pub(super) fn close(&self) -> Result<(), Error> {
        self.closed.borrow().iter().rev().try_for_each(|(at, mode)| {
            let closed = self.upper.dir(at).and_then(|dir| fchmod(dir, Mode::from_raw_mode(*mode)));
            closed.map_err(Error::system("lay out", at))
        })
    }
}
