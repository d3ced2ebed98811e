//! Commits of a session arrive in the project's repository: a pack, then a reference, and the index with the
//! branch that is checked out. Nothing else of a repository is ever written, and no git runs here.
//!
//! The references come after all files of the merge. A branch moves only where the project then holds, at
//! every path in which its commits differ, what they hold, byte for byte: so they bring nothing that nobody
//! was shown, and git finds no change that nobody made. Else the commits are kept under a reference of
//! Bailey's.

use super::disk::Disk;
use super::lock::{self, Lock};
use crate::worker::beneath::{Root, ancestors, look, names, split, type_of};
use crate::worker::blob::BlobEntry;
use crate::worker::error::{errno, plain};
use crate::worker::index::{HASHES, entries};
use crate::worker::layer::Layer;
use crate::worker::references::{has_modes, head, is_object, is_plain, tip};
use crate::worker::repository::is_vcs;
use crate::worker::state::{copy, open_file};
use crate::worker::{Carried, Fate};
use bailey_protocol::{MergeKind, MergeState, Tip, TipResult};
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;

/// The largest index and list of paths.
const BYTES_MAX: u64 = 64 << 20;
/// Packs of one merge.
const PACKS_MAX: usize = 64;
/// Empty directories within each other, and beside each other, where a reference is to be.
const DEPTH_MAX: usize = 12;
/// Where commits are kept that no branch of the project can have.
const ASIDE: &str = "refs/bailey/";
const PACKS: &str = "clean/objects/pack";
const BUSY: &str = "git works in the project, or was ended there: a `.lock` file is in the way";

/// Moves the references of a merge, when its files are in place.
pub(super) struct Tips<'a> {
    pub(super) disk: &'a Disk,
    pub(super) layer: &'a Layer,
    pub(super) carried: &'a Carried,
    /// A name that no other merge has.
    pub(super) tag: &'a str,
    pub(super) direction: MergeKind,
}

/// Why a reference was not moved.
enum TipFailure {
    /// The commits can be kept elsewhere.
    Aside(String),
    Failed(String),
    Conflict(String),
}

impl From<Errno> for TipFailure {
    fn from(errno: Errno) -> Self {
        if lock::is_held(errno) { Self::Aside(BUSY.into()) } else { Self::Failed(plain(errno)) }
    }
}

impl Tips<'_> {
    /// One result for each reference, in the merge's order.
    pub(super) fn all(&self, tips: &[Tip]) -> Vec<TipResult> {
        let is_wanted = self.direction == MergeKind::Apply
            && self.carried.fates.iter().any(|fate| !matches!(fate, Fate::Refused(_)));
        let packed = if is_wanted { self.packs() } else { Ok(()) };
        let refused = Fate::Refused("it was not made ready".into());
        let fates = self.carried.fates.iter().chain(std::iter::repeat(&refused));
        tips.iter().zip(fates).map(|(tip, fate)| self.one(tip, fate, &packed)).collect()
    }

    fn one(&self, tip: &Tip, fate: &Fate, packed: &Result<(), String>) -> TipResult {
        let result = |at: Option<&str>, why, state| TipResult {
            name: tip.name.clone(),
            at: at.map(str::to_owned),
            why,
            state,
        };
        let failed = |reason: String| result(None, None, MergeState::Failed { reason });
        let moved = match (fate, packed) {
            (Fate::Refused(reason), _) | (_, Err(reason)) => return failed(reason.clone()),
            (Fate::Aside(why), _) => Err(TipFailure::Aside(why.clone())),
            (Fate::Ready, _) if self.direction == MergeKind::Apply && tip.name.starts_with(ASIDE) => {
                self.kept(&tip.name, &tip.new)
            }
            (Fate::Ready, _) => self.moved(&tip.name, tip.old.as_deref(), Some(&tip.new)),
        };
        match (moved, &tip.aside) {
            (Ok(state), aside) => {
                let is_beside = aside.is_some() && head(&self.layer.project).as_deref() != Some(&tip.name);
                let why = is_beside.then(|| "it is not checked out in the project".to_owned());
                result(Some(&tip.name), why, state)
            }
            (Err(TipFailure::Aside(why)), Some(aside)) => match self.kept(aside, &tip.new) {
                Ok(state) => result(Some(aside), Some(why), state),
                Err(
                    TipFailure::Aside(reason) | TipFailure::Failed(reason) | TipFailure::Conflict(reason),
                ) => failed(reason),
            },
            (Err(TipFailure::Conflict(reason)), _) => result(None, None, MergeState::Conflict { reason }),
            (Err(TipFailure::Aside(reason) | TipFailure::Failed(reason)), _) => failed(reason),
        }
    }

    /// Moves a reference from `old` to `new`, an undo back; none: it is not there.
    fn moved(&self, name: &str, old: Option<&str>, new: Option<&str>) -> Result<MergeState, TipFailure> {
        let is_undo = self.direction == MergeKind::Undo;
        let (from, to) = if is_undo { (new, old) } else { (old, new) };
        check(name, from, to)?;
        self.settle(name)?;
        let now = self.now(name)?;
        if now.as_deref() == to {
            return Ok(MergeState::Already);
        }
        self.is_from(&now, from)?;
        let is_checked_out = head(&self.layer.project).as_deref() == Some(name);
        if !is_undo {
            self.is_whole()?;
        }
        let reference = self.reference(name, to.unwrap_or_default())?;
        let index = if is_checked_out { self.index().map(Some) } else { Ok(None) };
        // Under both locks nobody moves either any more.
        let agreed = index.and_then(|index| {
            let again = self.now(name).and_then(|now| self.is_from(&now, from));
            let is_still = (head(&self.layer.project).as_deref() == Some(name)) == is_checked_out;
            match again {
                Ok(()) if is_still => Ok(index),
                Ok(()) => Err((index, TipFailure::Aside("another branch was checked out meanwhile".into()))),
                Err(stop) => Err((index, stop)),
            }
            .map_err(|(index, stop)| {
                index.map(Lock::give_up);
                stop
            })
        });
        let index = match agreed {
            Ok(index) => index,
            Err(stop) => {
                reference.give_up().ok();
                return Err(stop);
            }
        };
        if let Err(errno) = index.map_or(Ok(()), Lock::replace) {
            reference.give_up().ok();
            return Err(errno.into());
        }
        match to {
            Some(_) => reference.replace()?,
            None => reference.remove().map_err(|error| match error {
                Errno::NOENT => {
                    TipFailure::Failed(format!("it is among the packed ones: git branch -D {name}"))
                }
                error => error.into(),
            })?,
        }
        Ok(MergeState::Done)
    }

    /// Takes up what a killed run of this merge left.
    fn settle(&self, name: &str) -> Result<(), TipFailure> {
        for at in [".git/index", &format!(".git/{name}")] {
            match self.layer.project.parent(at) {
                Ok((dir, file)) => lock::settle(self.disk, &dir, file, self.tag)?,
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Keeps commits under a reference of Bailey's, whatever it named before.
    fn kept(&self, aside: &str, new: &str) -> Result<MergeState, TipFailure> {
        check(aside, None, Some(new))?;
        self.settle(aside)?;
        if self.now(aside)?.as_deref() == Some(new) {
            return Ok(MergeState::Already);
        }
        self.reference(aside, new)?.replace()?;
        Ok(MergeState::Done)
    }

    fn now(&self, name: &str) -> Result<Option<String>, TipFailure> {
        tip(&self.layer.project, name).map_err(TipFailure::Aside)
    }

    fn is_from(&self, now: &Option<String>, from: Option<&str>) -> Result<(), TipFailure> {
        match (now.as_deref() == from, self.direction) {
            (true, _) => Ok(()),
            (false, MergeKind::Undo) => Err(TipFailure::Conflict("it has moved since".into())),
            (false, _) => Err(TipFailure::Aside("the project's branch has moved meanwhile".into())),
        }
    }

    /// Locks a reference's file, making the directories above it.
    fn reference(&self, name: &str, id: &str) -> Result<Lock<'_>, TipFailure> {
        let in_the_way = |errno| match errno {
            Errno::NOTDIR => TipFailure::Aside("a branch of another name is in the way".into()),
            errno => errno.into(),
        };
        let project = &self.layer.project;
        let path = format!(".git/{name}");
        let mut above: Vec<&str> = ancestors(&path).collect();
        above.reverse();
        for at in above {
            let (dir, step) = project.parent(at).map_err(in_the_way)?;
            if look(&dir, step.as_ref())?.is_none() {
                self.disk.mkdir(&dir, step, 0o755)?;
            }
        }
        let (dir, file) = project.parent(&path).map_err(in_the_way)?;
        // Git leaves the directories of branches that are gone, and removes them where it needs the name.
        if look(&dir, file.as_ref())?.is_some_and(|stat| type_of(&stat) == FileType::Directory) {
            self.remove_empty(&dir, file, 0)
                .map_err(|_| TipFailure::Aside("a branch of another name is in the way".into()))?;
        }
        Ok(lock::lock(self.disk, dir, file, self.tag, format!("{id}\n").as_bytes(), 0o644)?)
    }

    /// Removes a directory with nothing in it but such directories.
    fn remove_empty(&self, dir: &OwnedFd, name: &str, depth: usize) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let inner = openat(dir, name, flags, Mode::empty())?;
        for below in names(&inner, DEPTH_MAX)?.0.iter().filter(|_| depth < DEPTH_MAX) {
            self.remove_empty(&inner, below.to_str().ok_or(Errno::INVAL)?, depth + 1)?;
        }
        self.disk.rmdir(dir, name)
    }

    /// Locks the index, which becomes the one that was made ready of it.
    fn index(&self) -> Result<Lock<'_>, TipFailure> {
        let ready = self.ready("index")?.ok_or_else(|| {
            TipFailure::Failed("git's index does not fit it: what was staged is in the way".into())
        })?;
        if !is_fit(&ready) {
            return Err(TipFailure::Failed(
                "the index that was made ready names what no project holds".into(),
            ));
        }
        let dir = self.layer.project.dir(".git")?;
        let mode = look(&dir, "index".as_ref())?.map_or(0o644, |stat| stat.st_mode & 0o777);
        let index = lock::lock(self.disk, dir, "index", self.tag, &ready, mode)?;
        let same = self.ready("base").and_then(|base| Ok(base == read(&self.layer.project, ".git/index")?));
        match same {
            Ok(true) => Ok(index),
            other => {
                index.give_up().ok();
                Err(other
                    .err()
                    .unwrap_or_else(|| TipFailure::Aside("git's index has changed meanwhile".into())))
            }
        }
    }

    /// Whether the project holds, at each path in which the commits differ, what they hold there. What they
    /// have no more may stay, where the session sees it, too: it is only that git tracks it no longer.
    fn is_whole(&self) -> Result<(), TipFailure> {
        let unsaid = || TipFailure::Failed("nobody said what the commits change".into());
        let differing = self.ready("paths")?.ok_or_else(unsaid)?;
        let (project, has_modes) = (&self.layer.project, has_modes(&self.layer.project));
        let is_there = |entry: BlobEntry<'_>, at| {
            entry.is_at(project, at, has_modes).ok() == Some(true)
                || (entry.is_nothing() && self.layer.shows_the_project(at).ok() == Some(true))
        };
        let mut parts = differing.split(|byte| *byte == 0);
        while let Some(line) = parts.next().filter(|line| !line.is_empty()) {
            let (entry, path) = BlobEntry::read(line).zip(parts.next()).ok_or_else(unsaid)?;
            if !std::str::from_utf8(path).is_ok_and(|at| is_there(entry, at)) {
                let shown = String::from_utf8_lossy(path);
                return Err(TipFailure::Aside(format!(
                    "the project does not hold what its last commit holds at `{shown}`"
                )));
            }
        }
        Ok(())
    }

    /// A file of what was made ready; none where it is not there.
    fn ready(&self, name: &str) -> Result<Option<Vec<u8>>, TipFailure> {
        let folder =
            Root::open(&self.carried.folder).map_err(|error| TipFailure::Failed(error.to_string()))?;
        read(&folder, &format!("clean/{name}"))
    }

    /// Puts the packs where git looks for them: the objects first, then the index by which they are found.
    fn packs(&self) -> Result<(), String> {
        let failed = |errno| format!("its objects could not be stored: {}", plain(errno));
        let folder = Root::open(&self.carried.folder).map_err(|error| error.to_string())?;
        let from = match folder.dir(PACKS) {
            Err(Errno::NOENT) => return Ok(()),
            from => from.map_err(failed)?,
        };
        let mut packs = names(&from, PACKS_MAX).map_err(failed)?.0;
        packs.retain(|name| name.to_str().is_some_and(is_pack));
        // `.idx` sorts before `.pack`.
        packs.sort();
        packs.reverse();
        let at = ".git/objects/pack";
        let (objects, name) = self.layer.project.parent(at).map_err(failed)?;
        if look(&objects, name.as_ref()).map_err(failed)?.is_none() {
            self.disk.mkdir(&objects, name, 0o755).map_err(failed)?;
        }
        let to = self.layer.project.dir(at).map_err(failed)?;
        for name in packs.iter().filter_map(|name| name.to_str()) {
            self.pack(&from, &to, name)?;
        }
        self.disk.sync(&to).map_err(failed)
    }

    fn pack(&self, from: &OwnedFd, to: &OwnedFd, name: &str) -> Result<(), String> {
        let failed = |errno| format!("its objects could not be stored: {}", plain(errno));
        let passing = format!(".bailey-merge-{}-pack", self.tag);
        match self.disk.unlink(to, passing.as_str()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(errno)),
        }
        if look(to, name.as_ref()).map_err(failed)?.is_some() {
            return Ok(());
        }
        let (file, stat) = open_file(from, name.as_ref()).map_err(|why| why.to_string())?;
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        let mut sink = self.disk.create(to, &passing).map_err(failed)?;
        copy(file, size, 0o444, &mut sink).map_err(|why| why.to_string())?;
        sink.finish(0o444).map_err(failed)?;
        match self.disk.rename_new(to, &passing, name) {
            Err(Errno::EXIST) => self.disk.unlink(to, passing.as_str()).map_err(failed),
            done => done.map_err(failed),
        }
    }
}

/// A request is checked again here, however it was made.
fn check(name: &str, from: Option<&str>, to: Option<&str>) -> Result<(), TipFailure> {
    let is_branch = name.starts_with("refs/heads/") || name.starts_with(ASIDE);
    if !is_branch || !is_plain(name) {
        return Err(TipFailure::Failed("it is no branch's name".into()));
    }
    if [from, to].into_iter().flatten().all(is_object) {
        return Ok(());
    }
    Err(TipFailure::Failed("it does not say which commits it moves between".into()))
}

/// Whether no entry of an index leads into a repository, or out of the project.
fn is_fit(index: &[u8]) -> bool {
    let [sha1, _] = HASHES;
    let is_fit = |part: &[u8]| {
        let is_own = std::str::from_utf8(part).is_ok_and(is_vcs);
        !matches!(part, b"" | b"." | b"..") && !is_own
    };
    entries(index, sha1)
        .is_some_and(|entries| entries.iter().all(|entry| entry.path.split(|byte| *byte == b'/').all(is_fit)))
}

fn is_pack(name: &str) -> bool {
    let stem = name.strip_suffix(".pack").or_else(|| name.strip_suffix(".idx"));
    stem.and_then(|stem| stem.strip_prefix("pack-")).is_some_and(is_object)
}

fn read(root: &Root, at: &str) -> Result<Option<Vec<u8>>, TipFailure> {
    let file = match root.file(at) {
        Err(Errno::NOENT) => return Ok(None),
        file => File::from(file?),
    };
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| errno(&error))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(TipFailure::Aside(format!("`{}` is too large", split(at).1)));
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests;
