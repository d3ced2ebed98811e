//! Opening files so that the kernel itself keeps every step beneath one directory, whatever is renamed or
//! swapped for a symlink meanwhile (openat2(2); attack A20, A57).

use super::error::Error;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2, statat};
use rustix::io::{Errno, Result};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// How often `openat2` is asked again when a rename elsewhere made it give up (EAGAIN).
const TRIES: usize = 16;

/// An opened directory. Paths below it are relative, hold no `..`, and go through no symlink.
pub(super) struct Root {
    fd: OwnedFd,
    path: String,
    resolve: ResolveFlags,
}

impl Root {
    /// Opens the directory at an absolute path that goes through no symlink.
    pub(super) fn open(path: &str) -> std::result::Result<Self, Error> {
        if !path.starts_with('/') {
            return Err(Error::path(path, "is not an absolute path"));
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let fd = openat2(CWD, path, flags, Mode::empty(), links).map_err(Error::system("open", path))?;
        Ok(Self { fd, path: path.trim_end_matches('/').into(), resolve: BENEATH })
    }

    /// The same of a project beneath a layer. An overlay shows what lies beneath a mount and not what is
    /// mounted, so whoever compares both, or writes, must not look through one: whatever is mounted below is
    /// `EXDEV`. The root itself may lie on any mount.
    pub(super) fn of_project(path: &str) -> std::result::Result<Self, Error> {
        Ok(Self { resolve: BENEATH.union(ResolveFlags::NO_XDEV), ..Self::open(path)? })
    }

    /// The absolute path of something below; `""` is the root itself.
    pub(super) fn absolute(&self, at: &str) -> String {
        if at.is_empty() && !self.path.is_empty() { self.path.clone() } else { format!("{}/{at}", self.path) }
    }

    /// The path that it was opened by, without a slash at the end.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Opens for reading what stands at `at`, without waiting for a FIFO's other end. The caller looks at
    /// what it got.
    pub(super) fn file(&self, at: &str) -> Result<OwnedFd> {
        self.open_at(at, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY)
    }

    /// Opens a directory for listing it and for working in it.
    pub(super) fn dir(&self, at: &str) -> Result<OwnedFd> {
        self.open_at(at, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Opens the directory that holds `at`, and gives the last part of the name.
    pub(super) fn parent<'a>(&self, at: &'a str) -> Result<(OwnedFd, &'a str)> {
        let (parent, name) = split(at);
        if name.is_empty() {
            return Err(Errno::INVAL);
        }
        let dir = self.dir(parent)?;
        // By its name in the directory it would be looked through.
        if self.resolve.contains(ResolveFlags::NO_XDEV) && self.is_mounted(at) {
            return Err(Errno::XDEV);
        }
        Ok((dir, name))
    }

    /// The same; none where what is above `at` is not there, or is something else than a directory.
    pub(super) fn place<'a>(&self, at: &'a str) -> Result<Option<(OwnedFd, &'a str)>> {
        match self.parent(at) {
            Ok(found) => Ok(Some(found)),
            // Beneath a link nothing lies: what it leads to has a path of its own.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Whether something is mounted at `at`, or above it.
    pub(super) fn is_mounted(&self, at: &str) -> bool {
        self.open_at(at, OFlags::PATH | OFlags::NOFOLLOW).is_err_and(|errno| errno == Errno::XDEV)
    }

    /// Whether anything stands at `at`, be it mounted there.
    pub(super) fn holds(&self, at: &str) -> bool {
        matches!(self.stat(at), Ok(Some(_)) | Err(Errno::XDEV))
    }

    /// Whether a directory stands at `at`, also where one is mounted there: that is only ever done upon
    /// another.
    pub(super) fn is_dir(&self, at: &str) -> bool {
        let (parent, name) = split(at);
        let found = self.dir(parent).and_then(|dir| look(dir, name.as_ref()));
        found.ok().flatten().is_some_and(|stat| type_of(&stat) == FileType::Directory)
    }

    /// What stands at `at`, a symlink not followed; `None` when nothing does.
    pub(super) fn stat(&self, at: &str) -> Result<Option<Stat>> {
        absent_is_none(self.open_at(at, OFlags::PATH | OFlags::NOFOLLOW).and_then(fstat))
    }

    fn open_at(&self, at: &str, flags: OFlags) -> Result<OwnedFd> {
        let at = if at.is_empty() { "." } else { at };
        #[cfg(feature = "controls")]
        if bailey_protocol::broken::broken("beneath") {
            let flags = flags.difference(OFlags::NOFOLLOW) | OFlags::CLOEXEC;
            return rustix::fs::openat(&self.fd, at, flags, Mode::empty());
        }
        let mut result = Err(Errno::AGAIN);
        for _ in 0..TRIES {
            result = openat2(&self.fd, at, flags | OFlags::CLOEXEC, Mode::empty(), self.resolve);
            if !matches!(result, Err(Errno::AGAIN | Errno::INTR)) {
                break;
            }
        }
        result
    }
}

/// What `name` in `dir` is, a symlink not followed; `None` when nothing is there.
pub(super) fn look(dir: impl AsFd, name: &OsStr) -> Result<Option<Stat>> {
    absent_is_none(statat(dir, name, AtFlags::SYMLINK_NOFOLLOW))
}

/// The type of what a `stat` tells about.
pub(super) fn type_of(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// At most `limit` names of a directory, unsorted, and whether there are more.
pub(super) fn names(dir: impl AsFd, limit: usize) -> Result<(Vec<OsString>, bool)> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if names.len() >= limit {
            return Ok((names, true));
        }
        names.push(OsStr::from_bytes(name).to_os_string());
    }
    Ok((names, false))
}

/// `parent/name` for a relative path in which `""` is the root.
pub(super) fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.into() } else { format!("{parent}/{name}") }
}

/// The reverse of [`join`].
pub(super) fn split(at: &str) -> (&str, &str) {
    at.rsplit_once('/').unwrap_or(("", at))
}

/// The directories above `at`, nearest first, the root left out.
pub(super) fn ancestors(at: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(at.rsplit_once('/'), |(parent, _)| parent.rsplit_once('/'))
        .map(|(parent, _)| parent)
}

fn absent_is_none<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(errno),
    }
}
