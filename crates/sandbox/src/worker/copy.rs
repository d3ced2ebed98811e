//! A private copy of a project, where no overlay can be mounted.
//!
//! Each look at it does two things. What the host changed since goes into the copy, as long as the session
//! has left that path alone. And what the session changed is laid out as the upper directory of an overlay
//! would hold it, so that scans, diffs and merges know nothing of copies. A record says of each path what
//! stood in the project and in the copy when they were the same.
//!
//! Secret-looking files are left out: nothing could mask them. So are devices, sockets, names that are no
//! UTF-8, and what lies very deep. What the session puts there, or where no diff could tell of it, is laid
//! out as something that stays, so that it is said.

mod layout;
mod own;
mod pour;
mod record;
mod underway;

use super::beneath::{Root, join, names, split, type_of};
use super::error::Error;
use super::layer::Stays;
use super::merge::{empty, remove_all};
use super::read::size;
use super::state::{MODE_BITS, seen};
use crate::mask;
use bailey_protocol::WsPath;
use pour::pour;
use record::{Looks, Record, read, write};
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, Timespec, Timestamps, chmodat, fchmod, futimens, mkdirat,
    openat, readlinkat, renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use underway::{Underway, take_in};

/// The most paths of a project that is copied.
const PATHS_MAX: usize = 200_000;
/// Paths that are longer, and directories that lie deeper, are not copied, and stay where the session made
/// them.
const PATH_MAX: usize = 3_000;
const DEPTH_MAX: usize = 100;
/// The most bytes that one look copies.
const BYTES_MAX: u64 = 8 << 30;
/// Where a file is written before it gets its name: beside the record, where no command comes. Beside the
/// copy it could have the name of a project.
const PASSING: &str = "copied.passing";

/// The paths that a copy is made from, and the copy's own.
pub(super) struct CopyPaths<'a> {
    pub(super) project: &'a str,
    pub(super) copy: &'a str,
    pub(super) upper: &'a str,
    pub(super) record: &'a str,
}

/// Brings a copy up to date, and lays out what the session changed. Files of these names are left out. What
/// is in `own`, absolute in the project, is the session's, whatever the project comes to hold, until the next
/// look that names nothing is over, also where this process ends before. `anew`: the copy is thrown away
/// first.
pub(super) fn settle(
    places: &CopyPaths<'_>,
    masks: &[String],
    own: &[WsPath],
    anew: bool,
) -> Result<(), Error> {
    unlock(places)?;
    let open = |path: &str| Root::open(path);
    let masks = mask::compile(masks).map_err(|error| Error::Request(error.to_string()))?;
    if anew {
        // The record first: with it, what is gone from the copy would be what the session deleted.
        own::forget(places.record)?;
        write(places.record, &Record::new())?;
        clear(&open(places.copy)?)?;
    }
    if !own.is_empty() {
        own::note(places.record, own)?;
    }
    let mut before = read(places.record)?;
    take_in(&mut before, places.record, &open(places.copy)?)?;
    own::take_in(&mut before, places.record, places.project)?;
    clear(&open(places.upper)?)?;
    let mut look = Look {
        beside: beside(places.record)?,
        project: open(places.project)?,
        copy: open(places.copy)?,
        upper: open(places.upper)?,
        masks,
        before,
        record: Record::new(),
        underway: Underway::begin(places.record)?,
        closed: RefCell::default(),
        visits: 0,
        bytes: 0,
    };
    let settled = look.directory("").and_then(|()| look.close());
    if settled.is_err() {
        // What was not come to is as it was.
        let done = std::mem::replace(&mut look.record, std::mem::take(&mut look.before));
        look.record.extend(done);
    }
    write(places.record, &look.record)?;
    look.underway.over()?;
    settled?;
    if own.is_empty() { own::forget(places.record) } else { Ok(()) }
}

/// Gives the owner back what the session may have taken from the directories that all of it hangs from, and
/// from its home and temporary files, without which no command of it begins.
fn unlock(places: &CopyPaths<'_>) -> Result<(), Error> {
    let above = [places.record, places.copy].map(|path| Path::new(path).parent().unwrap_or(Path::new("/")));
    for path in above.into_iter().chain([places.copy, places.upper].map(Path::new)) {
        unlock_one(path).map_err(Error::system("open", &path.to_string_lossy()))?;
    }
    let [folder, _] = above;
    for path in ["home", "tmp"].map(|part| folder.join(part)) {
        match unlock_one(&path) {
            // Before its first command there is none.
            Err(Errno::NOENT) => {}
            unlocked => unlocked.map_err(Error::system("open", &path.to_string_lossy()))?,
        }
    }
    Ok(())
}

fn unlock_one(path: &Path) -> Result<(), Errno> {
    let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
    match type_of(&stat) == FileType::Directory && stat.st_mode & 0o700 != 0o700 {
        true => chmodat(CWD, path, Mode::RWXU, AtFlags::empty()),
        false => Ok(()),
    }
}

/// The directory that the record lies in.
fn beside(record: &str) -> Result<OwnedFd, Error> {
    let (above, _) = split(record);
    Root::open(above)?.dir("").map_err(Error::system("open", above))
}

struct Look {
    beside: OwnedFd,
    project: Root,
    copy: Root,
    upper: Root,
    masks: mask::Masks,
    before: Record,
    record: Record,
    underway: Underway,
    /// Directories of the layer with the modes that they end with, where nothing could be laid out in them
    /// with those.
    closed: RefCell<BTreeMap<String, u32>>,
    visits: usize,
    bytes: u64,
}

impl Look {
    fn directory(&mut self, at: &str) -> Result<(), Error> {
        let mut both = BTreeSet::new();
        for (is_copy, dir) in [(false, self.project.dir(at)), (true, self.unlocked(at))] {
            // One that may be read and not gone through is opened, and not listed.
            let names = match dir.and_then(|dir| names(dir, PATHS_MAX)) {
                Ok(listed) => all(listed)?,
                // What its owner cannot read, nobody copies.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => continue,
                Err(errno) => return Err(Error::system("list", at)(errno)),
            };
            for raw in names {
                match raw.into_string() {
                    Ok(name) => drop(both.insert(name)),
                    // Under its name it stays in the layer.
                    Err(raw) if is_copy => drop(self.empty_file(at, &raw)?),
                    Err(_) => {}
                }
            }
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
        self.visit()?;
        let failed = |errno| Error::system("look at", at)(errno);
        let ours = there(self.copy.stat(at)).map_err(failed)?;
        if at.len() > PATH_MAX || at.split('/').count() > DEPTH_MAX {
            return ours.map_or(Ok(()), |_| self.hold(at, Stays::TooDeep));
        }
        let theirs = match there(self.project.stat(at)) {
            Err(Errno::ACCESS) => return self.unread(at, ours),
            theirs => theirs.map_err(failed)?,
        };
        // What is not shown is not replaced: whatever the session puts in its place stays there.
        if theirs.as_ref().is_some_and(|stat| !self.is_copied(at, stat)) {
            return ours.map_or(Ok(()), |_| self.hold(at, Stays::OverHidden));
        }
        let known = self.before.get(at).copied();
        let is_dir =
            |stat: &Option<Stat>| stat.as_ref().is_some_and(|stat| type_of(stat) == FileType::Directory);
        match (theirs, ours) {
            (None, None) => Ok(()),
            // It was made by the host, or removed by the session.
            (Some(stat), None) => match known {
                None => self.bring(at, &stat, None),
                Some(known) => {
                    self.record.insert(at.into(), known);
                    self.carry(at);
                    let mut gone = Vec::new();
                    self.gone(at, &stat, &mut gone)?;
                    gone.iter().try_for_each(|at| self.whiteout(at))
                }
            },
            // It was made by the session, or removed by the host.
            (None, Some(stat)) if is_dir(&Some(stat)) => {
                let is_new = known.is_none_or(|(_, ours)| ours == Looks::UNLIKE_ANY);
                if is_new {
                    self.add(at, &stat)?;
                }
                self.directory(at)?;
                // What the session put there keeps it.
                if !is_new && !self.try_remove_dir(at)? {
                    self.add(at, &stat)?;
                }
                Ok(())
            }
            (None, Some(stat)) => match known {
                Some((_, ours)) if ours == Looks::of(&stat) => {
                    self.underway.note(at)?;
                    remove(&self.copy, at)
                }
                _ => self.add(at, &stat),
            },
            (Some(theirs), Some(ours)) if is_dir(&Some(theirs)) && is_dir(&Some(ours)) => {
                let noted = self.both_directories(at, &theirs, &ours, known)?;
                self.record.insert(at.into(), noted);
                self.directory(at)
            }
            (Some(theirs), Some(ours)) => self.leaf(at, &theirs, &ours, known),
        }
    }

    /// What the host may not look at any more. What was brought before is still not the session's; what it
    /// has otherwise stays with it.
    fn unread(&mut self, at: &str, ours: Option<Stat>) -> Result<(), Error> {
        self.stays_known(at);
        let Some(ours) = ours else {
            self.carry(at);
            return Ok(());
        };
        match self.before.get(at).is_some_and(|(_, known)| *known == Looks::of(&ours)) {
            false => self.hold(at, Stays::OverHidden),
            true if type_of(&ours) == FileType::Directory => self.directory(at),
            true => Ok(()),
        }
    }

    /// A directory's mode; gives what is noted of it.
    fn both_directories(
        &mut self,
        at: &str,
        theirs: &Stat,
        ours: &Stat,
        known: Option<(Looks, Looks)>,
    ) -> Result<(Looks, Looks), Error> {
        let now = (Looks::of(theirs), Looks::of(ours));
        let known = known.unwrap_or(now);
        if theirs.st_mode | 0o700 == ours.st_mode {
            return Ok(now);
        }
        // The session's, until the project has it, too.
        if known.1 != now.1 {
            return self.add(at, ours).map(|()| known);
        }
        if known.0 == now.0 {
            return Ok(now);
        }
        let failed = |errno| Error::system("look at", at)(errno);
        self.underway.note(at)?;
        let dir = self.copy.dir(at).map_err(failed)?;
        fchmod(&dir, Mode::from_raw_mode(theirs.st_mode & MODE_BITS | 0o700)).map_err(failed)?;
        let ours = self.copy.stat(at).map_err(failed)?;
        Ok((now.0, ours.map_or(now.1, |ours| Looks::of(&ours))))
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
            Some((_, known)) if known == now.1 && !is_dir => self.bring(at, theirs, Some(ours)),
            // The host put something else there: what the session left alone in it goes.
            Some((_, known)) if known == now.1 => {
                self.directory(at)?;
                if self.try_remove_dir(at)? { self.bring(at, theirs, None) } else { self.add(at, ours) }
            }
            _ if !is_dir && self.is_same(at, theirs, ours) => {
                self.record.insert(at.into(), now);
                Ok(())
            }
            _ => {
                self.record.extend(known.map(|known| (at.to_owned(), known)));
                self.carry(at);
                if !is_dir && !self.gone(at, theirs, &mut Vec::new())? {
                    return self.hold(at, Stays::OverDirectory);
                }
                self.add(at, ours)?;
                if is_dir { self.directory(at) } else { Ok(()) }
            }
        }
    }

    fn visit(&mut self) -> Result<(), Error> {
        self.visits += 1;
        if self.visits > PATHS_MAX {
            return Err(too_many());
        }
        Ok(())
    }

    /// Adds to `gone` what the session removed by removing a path, and tells whether that is all that the
    /// project has there: what it was not shown stays, with the directories above that.
    fn gone(&mut self, at: &str, theirs: &Stat, gone: &mut Vec<String>) -> Result<bool, Error> {
        self.visit()?;
        let (before, mut is_all) = (gone.len(), true);
        if type_of(theirs) == FileType::Directory {
            let listed = match self.project.dir(at).and_then(|dir| names(dir, PATHS_MAX)) {
                Err(Errno::ACCESS) => return Ok(false),
                listed => listed.map_err(Error::system("list", at))?,
            };
            for raw in all(listed)? {
                let below = raw.to_str().map(|name| join(at, name));
                let below = below.filter(|below| self.before.contains_key(below));
                let stat = below.as_ref().and_then(|below| self.project.stat(below).ok().flatten());
                is_all &= match (below, stat) {
                    (Some(below), Some(stat)) if self.is_copied(&below, &stat) => {
                        self.gone(&below, &stat, gone)?
                    }
                    _ => false,
                };
            }
        }
        if is_all {
            gone.truncate(before);
            gone.push(at.to_owned());
        }
        Ok(is_all)
    }

    /// What lay below a path where project and copy were the same, for when there is a directory again.
    fn carry(&mut self, at: &str) {
        let below = format!("{at}/");
        let known = self.before.range(below.clone()..).take_while(|(path, _)| path.starts_with(&below));
        self.record.extend(known.map(|(path, looks)| (path.clone(), *looks)));
    }

    /// Whether project and copy hold the same at a path; of what cannot be read, whether it looks so. None of
    /// the project's attributes is copied, so one in the copy is the session's.
    fn is_same(&self, at: &str, theirs: &Stat, ours: &Stat) -> bool {
        match [&self.project, &self.copy].map(|root| seen(root, at, 0).ok().flatten()) {
            [Some(theirs), Some(ours)] => theirs.state == ours.state && ours.attributes.is_empty(),
            _ => {
                let looks = |stat: &Stat| (type_of(stat), size(stat), stat.st_mtime, stat.st_mtime_nsec);
                looks(theirs) == looks(ours)
            }
        }
    }

    fn is_copied(&self, at: &str, stat: &Stat) -> bool {
        let kind = type_of(stat);
        let is_masked = kind != FileType::Directory && self.masks.names(at);
        !is_masked && matches!(kind, FileType::Directory | FileType::RegularFile | FileType::Symlink)
    }

    /// Puts into the copy what stands in the project, in the place of what stood there when it was looked at.
    fn bring(&mut self, at: &str, theirs: &Stat, ours: Option<&Stat>) -> Result<(), Error> {
        let failed = |errno| Error::system("copy", at)(errno);
        self.underway.note(at)?;
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
                if let Some(new) = self.changed(at, ours)? {
                    return self.keep(at, new);
                }
                remove(&self.copy, at)?;
                symlinkat(target, &dir, name).map_err(failed)?;
                self.note(at, theirs)
            }
            _ => {
                // A hole takes no room.
                let room = u64::try_from(theirs.st_blocks).unwrap_or(0).saturating_mul(512);
                self.bytes = self.bytes.saturating_add(size(theirs).min(room));
                if self.bytes > BYTES_MAX {
                    return Err(Error::Request(
                        "a project of more than 8 GiB is too large to be copied".into(),
                    ));
                }
                let source = File::from(match self.project.file(at) {
                    // What its owner cannot read, nobody copies. What was brought before is still not the
                    // session's.
                    Err(Errno::ACCESS) => {
                        self.stays_known(at);
                        return Ok(());
                    }
                    opened => opened.map_err(failed)?,
                });
                // Of a look that was killed.
                remove_all(&self.beside, PASSING.as_ref()).map_err(failed)?;
                let flags =
                    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let fd = openat(&self.beside, PASSING, flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
                let sink = File::from(fd);
                pour(&source, &sink, size(theirs)).map_err(failed)?;
                fchmod(&sink, Mode::from_raw_mode(theirs.st_mode & 0o777 | 0o400)).map_err(failed)?;
                futimens(&sink, &modified(theirs)).map_err(failed)?;
                // That took its time, and something of the session may live.
                if let Some(new) = self.changed(at, ours)? {
                    return self.keep(at, new);
                }
                renameat(&self.beside, PASSING, &dir, name).map_err(failed)?;
                self.note(at, theirs)
            }
        }
    }

    /// What stands in the copy, where that is not what was looked at.
    fn changed(&self, at: &str, then: Option<&Stat>) -> Result<Option<Stat>, Error> {
        let now = self.copy.stat(at).map_err(Error::system("look at", at))?;
        Ok(now.filter(|now| then.map(Looks::of) != Some(Looks::of(now))))
    }

    /// Lets the session have what it wrote just now.
    fn keep(&mut self, at: &str, ours: Stat) -> Result<(), Error> {
        self.stays_known(at);
        self.add(at, &ours)?;
        if type_of(&ours) == FileType::Directory { self.directory(at) } else { Ok(()) }
    }

    /// Of a path what was noted before, which this look does not replace.
    fn stays_known(&mut self, at: &str) {
        self.record.extend(self.before.get(at).map(|known| (at.to_owned(), *known)));
    }

    fn note(&mut self, at: &str, theirs: &Stat) -> Result<(), Error> {
        let ours = self.copy.stat(at).map_err(Error::system("look at", at))?;
        self.record.extend(ours.map(|ours| (at.to_owned(), (Looks::of(theirs), Looks::of(&ours)))));
        Ok(())
    }

    fn try_remove_dir(&mut self, at: &str) -> Result<bool, Error> {
        self.underway.note(at)?;
        let removed = self.copy.parent(at).and_then(|(dir, name)| unlinkat(dir, name, AtFlags::REMOVEDIR));
        Ok(removed.is_ok())
    }
}

/// Times by which a file is as old as another.
fn modified(of: &Stat) -> Timestamps {
    let time = Timespec { tv_sec: of.st_mtime, tv_nsec: i64::try_from(of.st_mtime_nsec).unwrap_or(0) };
    Timestamps { last_access: time, last_modification: time }
}

/// All names of a directory; where there are more than a copy can hold, some of them would be taken for gone.
fn all((names, is_more): (Vec<OsString>, bool)) -> Result<Vec<OsString>, Error> {
    if is_more { Err(too_many()) } else { Ok(names) }
}

/// Beneath a link nothing lies, on whichever side something else took its place.
fn there(found: Result<Option<Stat>, Errno>) -> Result<Option<Stat>, Errno> {
    if matches!(found, Err(Errno::LOOP)) { Ok(None) } else { found }
}

fn too_many() -> Error {
    Error::Request(format!("a project of more than {PATHS_MAX} files is too large to be copied"))
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
