//! A private copy of a project, where no overlay can be mounted.
//!
//! Each look at it does two things. What the host changed since goes into the copy, as long as the session has left that path alone. And
//! what the session changed is laid out as the upper directory of an overlay would hold it, so that scans, diffs and merges know nothing of
//! copies. A record says of each path what stood in the project and in the copy when they were the same.
//!
//! Secret-looking files are left out: nothing could mask them. So are devices, sockets, names that are no UTF-8, and what lies very deep.

use super::beneath::{Root, join, names, split, type_of};
use super::error::{Error, errno};
use super::merge::{empty, remove_all};
use super::read::size;
use super::state::{MODE_BITS, state_of};
use crate::mask;
use bailey_protocol::WsPath;
use ignore::gitignore::Gitignore;
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, Timespec, Timestamps, XattrFlags, chmodat, fchmod, fsetxattr,
    futimens, linkat, mkdirat, openat, readlinkat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

/// The most paths of a project that is copied.
const PATHS_MAX: usize = 200_000;
/// Paths that are longer, and directories that lie deeper, are not copied, and stay where the session made them.
const PATH_MAX: usize = 3_000;
const DEPTH_MAX: usize = 100;
/// The most bytes that one look copies.
const BYTES_MAX: u64 = 8 << 30;
/// A passing name beside the one that a file gets.
const PASSING: &str = ".bailey-copy";
/// How an overlay notes what is deleted, where there are no devices.
const WHITEOUT: &str = "user.overlay.whiteout";

/// What stands at a path, as far as it can be told without reading. Of a directory only its mode counts: the rest changes with what lies in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Looks {
    mode: u32,
    size: u64,
    /// Unix time in nanoseconds.
    modified: i128,
    changed: i128,
    inode: u64,
}

impl Looks {
    fn of(stat: &Stat) -> Self {
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
type Record = BTreeMap<String, (Looks, Looks)>;

/// Where everything lies.
pub(super) struct Places<'a> {
    pub(super) project: &'a str,
    pub(super) copy: &'a str,
    pub(super) upper: &'a str,
    pub(super) record: &'a str,
}

/// Brings a copy up to date, and lays out what the session changed. Files of these names are left out. What is in `own`, absolute in the
/// project, is the session's, whatever the project came to hold. `anew`: the copy is thrown away first.
pub(super) fn settle(places: &Places<'_>, masks: &[String], own: &[WsPath], anew: bool) -> Result<(), Error> {
    unlock(places)?;
    let open = |path: &str| Root::open(path);
    let masks = mask::compile(masks).map_err(|error| Error::Request(error.to_string()))?;
    if anew {
        // The record first: with it, what is gone from the copy would be what the session deleted.
        write(places.record, &Record::new())?;
        clear(&open(places.copy)?)?;
    }
    let mut before = read(places.record)?;
    for at in own.iter().filter_map(|path| path.relative_to(places.project)) {
        before.remove(at);
    }
    clear(&open(places.upper)?)?;
    let mut look = Look {
        project: open(places.project)?,
        copy: open(places.copy)?,
        upper: open(places.upper)?,
        masks,
        before,
        record: Record::new(),
        visits: 0,
        bytes: 0,
    };
    let settled = look.directory("");
    if settled.is_err() {
        // What was not come to is as it was.
        let done = std::mem::replace(&mut look.record, std::mem::take(&mut look.before));
        look.record.extend(done);
    }
    write(places.record, &look.record)?;
    settled
}

/// Gives the owner back what the session may have taken from the directories that all of it hangs from.
fn unlock(places: &Places<'_>) -> Result<(), Error> {
    let above = [places.record, places.copy].map(|path| Path::new(path).parent().unwrap_or(Path::new("/")));
    for path in above.into_iter().chain([places.copy, places.upper].map(Path::new)) {
        let failed = |errno| Error::system("open", &path.to_string_lossy())(errno);
        let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        if type_of(&stat) == FileType::Directory && stat.st_mode & 0o700 != 0o700 {
            chmodat(CWD, path, Mode::RWXU, AtFlags::empty()).map_err(failed)?;
        }
    }
    Ok(())
}

fn read(path: &str) -> Result<Record, Error> {
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

/// A torn one would count every path as the session's.
fn write(path: &str, record: &Record) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::system("write", path)(errno(&error));
    let text = serde_json::to_vec(record).map_err(|_| Error::path(path, "cannot be written"))?;
    let passing = format!("{path}.new");
    let mut file = File::create(&passing).map_err(failed)?;
    file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed)?;
    rustix::fs::renameat(CWD, &passing, CWD, path).map_err(Error::system("write", path))
}

struct Look {
    project: Root,
    copy: Root,
    upper: Root,
    masks: Gitignore,
    before: Record,
    record: Record,
    visits: usize,
    bytes: u64,
}

impl Look {
    fn directory(&mut self, at: &str) -> Result<(), Error> {
        let mut both = BTreeSet::new();
        for dir in [self.project.dir(at), self.unlocked(at)] {
            match dir {
                Ok(dir) => {
                    let (names, _) = names(dir, PATHS_MAX).map_err(Error::system("list", at))?;
                    both.extend(names.into_iter().filter_map(|name| name.into_string().ok()));
                }
                // What its owner cannot read, nobody copies.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => {}
                Err(errno) => return Err(Error::system("list", at)(errno)),
            }
        }
        if both.remove(PASSING) {
            remove(&self.copy, &join(at, PASSING))?;
        }
        both.into_iter().try_for_each(|name| self.path(&join(at, &name)))
    }

    /// A directory of the copy, to which its owner gets back the right that the session may have taken.
    fn unlocked(&self, at: &str) -> Result<OwnedFd, Errno> {
        let is_locked = self.copy.stat(at)?.is_some_and(|stat| stat.st_mode & 0o700 != 0o700);
        if is_locked && !at.is_empty() {
            let (dir, name) = self.copy.parent(at)?;
            chmodat(dir, name, Mode::RWXU, AtFlags::empty())?;
        }
        self.copy.dir(at)
    }

    fn path(&mut self, at: &str) -> Result<(), Error> {
        if at.len() > PATH_MAX || at.split('/').count() > DEPTH_MAX {
            return Ok(());
        }
        self.visits += 1;
        if self.visits > PATHS_MAX {
            return Err(Error::Request(format!(
                "a project of more than {PATHS_MAX} files is too large to be copied"
            )));
        }
        let failed = |errno| Error::system("look at", at)(errno);
        let theirs = self.project.stat(at).map_err(failed)?;
        // What is not shown is not replaced: whatever the session puts in its place stays there.
        if theirs.as_ref().is_some_and(|stat| !self.is_copied(at, stat)) {
            return Ok(());
        }
        let ours = self.copy.stat(at).map_err(failed)?;
        let known = self.before.get(at).copied();
        let is_dir =
            |stat: &Option<Stat>| stat.as_ref().is_some_and(|stat| type_of(stat) == FileType::Directory);
        match (theirs, ours) {
            (None, None) => Ok(()),
            // It was made by the host, or removed by the session.
            (Some(stat), None) => match known {
                None => self.bring(at, &stat),
                Some(known) => {
                    self.record.insert(at.into(), known);
                    self.carry(at);
                    self.whiteout(at)
                }
            },
            // It was made by the session, or removed by the host.
            (None, Some(stat)) if is_dir(&Some(stat)) => {
                let is_new = known.is_none();
                if is_new {
                    self.add(at, &stat)?;
                }
                self.directory(at)?;
                // What the session put there keeps it.
                if !is_new && !self.try_remove_dir(at) {
                    self.add(at, &stat)?;
                }
                Ok(())
            }
            (None, Some(stat)) => match known {
                Some((_, ours)) if ours == Looks::of(&stat) => remove(&self.copy, at),
                _ => self.add(at, &stat),
            },
            (Some(theirs), Some(ours)) if is_dir(&Some(theirs)) && is_dir(&Some(ours)) => {
                let (old_theirs, old_ours) = known.unwrap_or((Looks::of(&theirs), Looks::of(&ours)));
                if old_ours != Looks::of(&ours) {
                    self.add(at, &ours)?;
                } else if old_theirs != Looks::of(&theirs) {
                    let dir = self.copy.dir(at).map_err(failed)?;
                    fchmod(&dir, Mode::from_raw_mode(theirs.st_mode & MODE_BITS | 0o700)).map_err(failed)?;
                }
                let ours = self.copy.stat(at).map_err(failed)?.unwrap_or(ours);
                self.record.insert(at.into(), (Looks::of(&theirs), Looks::of(&ours)));
                self.directory(at)
            }
            (Some(theirs), Some(ours)) => self.leaf(at, &theirs, &ours, known),
        }
    }

    /// A file, a link, or what became another kind of thing on one side.
    fn leaf(
        &mut self,
        at: &str,
        theirs: &Stat,
        ours: &Stat,
        known: Option<(Looks, Looks)>,
    ) -> Result<(), Error> {
        let now = (Looks::of(theirs), Looks::of(ours));
        let is_dir = type_of(ours) == FileType::Directory;
        match known {
            Some(known) if known == now => {
                self.record.insert(at.into(), now);
                Ok(())
            }
            Some((_, known)) if known == now.1 && !is_dir => self.bring(at, theirs),
            // The host put something else there: what the session left alone in it goes.
            Some((_, known)) if known == now.1 => {
                self.directory(at)?;
                if self.try_remove_dir(at) { self.bring(at, theirs) } else { self.add(at, ours) }
            }
            _ if !is_dir && self.is_same(at, theirs, ours) => {
                self.record.insert(at.into(), now);
                Ok(())
            }
            _ => {
                self.record.extend(known.map(|known| (at.to_owned(), known)));
                self.carry(at);
                self.add(at, ours)?;
                if is_dir { self.directory(at) } else { Ok(()) }
            }
        }
    }

    /// What lay below a path where project and copy were the same, for when there is a directory again.
    fn carry(&mut self, at: &str) {
        let below = format!("{at}/");
        let known = self.before.range(below.clone()..).take_while(|(path, _)| path.starts_with(&below));
        self.record.extend(known.map(|(path, looks)| (path.clone(), *looks)));
    }

    /// Whether project and copy hold the same at a path; of what cannot be read, whether it looks so.
    fn is_same(&self, at: &str, theirs: &Stat, ours: &Stat) -> bool {
        let state = |root: &Root| {
            let (dir, name) = root.parent(at).ok()?;
            state_of(&dir, name.as_ref()).ok().flatten()
        };
        match (state(&self.project), state(&self.copy)) {
            (Some(theirs), Some(ours)) => theirs == ours,
            _ => {
                let looks = |stat: &Stat| (type_of(stat), size(stat), stat.st_mtime, stat.st_mtime_nsec);
                looks(theirs) == looks(ours)
            }
        }
    }

    fn is_copied(&self, at: &str, stat: &Stat) -> bool {
        let kind = type_of(stat);
        let is_masked = self.masks.matched_path_or_any_parents(at, kind == FileType::Directory).is_ignore();
        !is_masked && matches!(kind, FileType::Directory | FileType::RegularFile | FileType::Symlink)
    }

    /// Puts into the copy what stands in the project.
    fn bring(&mut self, at: &str, theirs: &Stat) -> Result<(), Error> {
        let failed = |errno| Error::system("copy", at)(errno);
        let (dir, name) = self.copy.parent(at).map_err(failed)?;
        match type_of(theirs) {
            FileType::Directory => {
                let mode = Mode::from_raw_mode(theirs.st_mode & MODE_BITS | 0o700);
                remove(&self.copy, at)?;
                mkdirat(&dir, name, mode).map_err(failed)?;
                let made = self.copy.dir(at).map_err(failed)?;
                fchmod(&made, mode).map_err(failed)?;
                self.note(at, theirs)?;
                self.directory(at)
            }
            FileType::Symlink => {
                let (from, from_name) = self.project.parent(at).map_err(failed)?;
                let target = readlinkat(from, from_name, Vec::new()).map_err(failed)?;
                remove(&self.copy, at)?;
                symlinkat(target, &dir, name).map_err(failed)?;
                self.note(at, theirs)
            }
            _ => {
                self.bytes = self.bytes.saturating_add(size(theirs));
                if self.bytes > BYTES_MAX {
                    return Err(Error::Request(
                        "a project of more than 8 GiB is too large to be copied".into(),
                    ));
                }
                let mut source = File::from(match self.project.file(at) {
                    // What its owner cannot read, nobody copies.
                    Err(Errno::ACCESS) => return Ok(()),
                    opened => opened.map_err(failed)?,
                });
                // The session may have put something there since.
                remove(&self.copy, &join(split(at).0, PASSING))?;
                let flags =
                    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let fd = openat(&dir, PASSING, flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
                let mut sink = File::from(fd);
                let copied = std::io::copy(&mut source, &mut sink).map_err(|error| failed(errno(&error)));
                let time = Timespec {
                    tv_sec: theirs.st_mtime,
                    tv_nsec: i64::try_from(theirs.st_mtime_nsec).unwrap_or(0),
                };
                copied?;
                fchmod(&sink, Mode::from_raw_mode(theirs.st_mode & 0o777 | 0o400)).map_err(failed)?;
                futimens(&sink, &Timestamps { last_access: time, last_modification: time })
                    .map_err(failed)?;
                rustix::fs::renameat(&dir, PASSING, &dir, name).map_err(failed)?;
                self.note(at, theirs)
            }
        }
    }

    fn note(&mut self, at: &str, theirs: &Stat) -> Result<(), Error> {
        let ours = self.copy.stat(at).map_err(Error::system("look at", at))?;
        self.record.extend(ours.map(|ours| (at.to_owned(), (Looks::of(theirs), Looks::of(&ours)))));
        Ok(())
    }

    /// Puts into the layer what the session has at a path; of a directory itself alone.
    fn add(&mut self, at: &str, ours: &Stat) -> Result<(), Error> {
        let failed = |errno| Error::system("lay out", at)(errno);
        let dir = self.above(at)?;
        let (from, name) = self.copy.parent(at).map_err(failed)?;
        match type_of(ours) {
            FileType::Directory => {
                let mode = Mode::from_raw_mode(ours.st_mode & MODE_BITS | 0o700);
                match mkdirat(&dir, name, mode) {
                    Err(Errno::EXIST) => Ok(()),
                    made => made.map_err(failed),
                }
            }
            FileType::Symlink => {
                let target = readlinkat(&from, name, Vec::new()).map_err(failed)?;
                symlinkat(target, &dir, name).map_err(failed)
            }
            FileType::RegularFile if size(ours) == 0 => self.add_empty(at, &dir, ours),
            // One inode in both: nothing is written through the layer.
            _ => match linkat(&from, name, &dir, name, AtFlags::empty()) {
                // The session gave it as many names as there can be: this one stays with it.
                Err(Errno::MLINK) => Ok(()),
                linked => linked.map_err(failed),
            },
        }
    }

    /// An empty file of its own: with the session's attributes it could look like what is deleted.
    fn add_empty(&self, at: &str, dir: &OwnedFd, ours: &Stat) -> Result<(), Error> {
        let failed = |errno| Error::system("lay out", at)(errno);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(dir, split(at).1, flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
        fchmod(&file, Mode::from_raw_mode(ours.st_mode & MODE_BITS)).map_err(failed)
    }

    fn whiteout(&mut self, at: &str) -> Result<(), Error> {
        let failed = |errno| Error::system("lay out", at)(errno);
        let dir = self.above(at)?;
        let (_, name) = split(at);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        // An attribute is set on what can be written.
        let file = openat(&dir, name, flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
        fsetxattr(&file, WHITEOUT, b"y", XattrFlags::empty()).map_err(failed)
    }

    /// The layer's directory of a path, made with the modes that the copy's have.
    fn above(&self, at: &str) -> Result<OwnedFd, Error> {
        let (parent, _) = split(at);
        let failed = |errno| Error::system("lay out", at)(errno);
        let mut made = String::new();
        for part in parent.split('/').filter(|part| !part.is_empty()) {
            let dir = self.upper.dir(&made).map_err(failed)?;
            made = join(&made, part);
            let mode = self.copy.stat(&made).map_err(failed)?.map_or(0o755, |stat| stat.st_mode & MODE_BITS);
            match mkdirat(&dir, part, Mode::from_raw_mode(mode | 0o700)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        self.upper.dir(parent).map_err(failed)
    }

    fn try_remove_dir(&self, at: &str) -> bool {
        let removed = self.copy.parent(at).and_then(|(dir, name)| unlinkat(dir, name, AtFlags::REMOVEDIR));
        removed.is_ok()
    }
}

/// Removes what stands at a path, with all that lies in it.
fn remove(root: &Root, at: &str) -> Result<(), Error> {
    let failed = |errno| Error::system("remove", at)(errno);
    match root.parent(at) {
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
        parent => parent.and_then(|(dir, name)| remove_all(&dir, name.as_ref())).map_err(failed),
    }
}

/// Empties a directory.
fn clear(root: &Root) -> Result<(), Error> {
    root.dir("").and_then(|dir| empty(&dir)).map_err(Error::system("empty", root.path()))
}

#[cfg(test)]
mod tests;
