//! Merges: the session's changes to the project, back again, or thrown away. The only code of Bailey that
//! writes to a project.
//!
//! An apply first copies every old state to its backup folder and writes an index there ([`backup`]), then
//! puts one path after another in place ([`place`]). Each path goes from one whole state to another in one
//! rename, when its new bytes are on the disk (those of many paths wait for that together), and a rename that
//! turns out to have displaced something unexpected is taken back. So whoever is
//! killed in between is run again with the same request and ends the work; nothing is ever lost.

mod backup;
mod discard;
mod disk;
mod lock;
mod part;
mod place;
#[cfg(test)]
mod tests;
mod tips;

use super::Carried;
use super::attributes::Attributes;
use super::bases::{Bases, Keep};
use super::beneath::{Root, ancestors, join, split};
use super::error::Error;
use super::layer::Layer;
use super::repository::{in_vcs, is_of_repository, is_shaped};
use super::state::{State, state_of};
use backup::{Backup, PathBackup};
use bailey_protocol::{
    Digest, FileKind, Merge, MergeFile, MergeKind, MergeResult, MergeState, Report, TipResult,
};
pub(super) use discard::empty;
pub(crate) use discard::remove_all;
use disk::Disk;
use place::{FileSource, Placement, PlacementProgress, Want};
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, flock};
use std::collections::{BTreeSet, HashSet};
use tips::Tips;

const FILES_MAX: usize = 100_000;
/// The most paths of which each waits for the disk by itself: one wait for all takes whatever else is written
/// there along.
const SINGLE_MAX: usize = 32;
/// Files that are staged before one wait for the disk. Each holds a directory open.
const STAGED_MAX: usize = 512;
/// Files of one merge of which the base texts are renewed: that is for what people edit, too.
const RENEWED_MAX: usize = 256;
const LAYER_CHANGED: &str = "the layer no longer holds what was to be applied; look at the diff again";

/// Does the merge; one result for each path, in the request's order.
pub(super) fn merge(
    merge: &Merge,
    upper: &str,
    project: &str,
    backup: &str,
    carried: Option<&Carried>,
) -> Result<Report, Error> {
    let disk = Disk::of_batch(merge.files.len() > SINGLE_MAX);
    let files = run(&disk, merge, upper, project, backup)?;
    // Each of these waits for the disk by itself.
    let tips = move_tips(&Disk::of_batch(false), merge, upper, project, backup, carried)?;
    Ok(Report::Merged { files, tips })
}

/// Keeps what the project holds now as the base of what both sides change from now on; after a discard
/// nothing is.
pub(super) fn rebase(merge: &Merge, results: &[MergeResult], project: &str, keep: &Keep) {
    let (Ok(mut bases), Ok(project)) = (Bases::open(keep), Root::of_project(project)) else { return };
    if merge.direction == MergeKind::Discard {
        bases.clear().ok();
        return;
    }
    let is_over = |result: &&MergeResult| matches!(result.state, MergeState::Done | MergeState::Already);
    for result in results.iter().filter(is_over).take(RENEWED_MAX) {
        if let Some(at) = result.path.relative_to(project.path()) {
            bases.renew(&project, at);
        }
    }
}

/// Moves references, when the files are in place.
fn move_tips(
    disk: &Disk,
    merge: &Merge,
    upper: &str,
    project: &str,
    backup: &str,
    carried: Option<&Carried>,
) -> Result<Vec<TipResult>, Error> {
    let Some(carried) = carried.filter(|_| !merge.tips.is_empty()) else { return Ok(Vec::new()) };
    let _alone = alone(backup)?;
    let layer = &Layer::open(upper, project)?;
    let (tag, direction) = (&backup::tag(backup), merge.direction);
    Ok(Tips { disk, layer, carried, tag, direction }.all(&merge.tips))
}

fn run(
    disk: &Disk,
    merge: &Merge,
    upper: &str,
    project: &str,
    backup: &str,
) -> Result<Vec<MergeResult>, Error> {
    let _alone = alone(backup)?;
    let project = Root::of_project(project)?;
    let paths = paths(&project, &merge.files)?;
    let states = match merge.direction {
        MergeKind::Discard => return discard::discard(disk, &Root::open(upper)?, &merge.files),
        MergeKind::Apply => {
            let layer = Layer { upper: Root::open(upper)?, project };
            let backup = Backup::prepare(disk, backup, &layer, merge, &paths)?;
            Applying { disk, layer, backup }.all(&merge.files, &paths)
        }
        MergeKind::Undo => match Backup::open(backup)? {
            Some(backup) => Undoing { disk, project, backup }.all(&merge.files, &paths)?,
            None => merge.files.iter().zip(&paths).map(|(file, at)| untouched(&project, file, at)).collect(),
        },
    };
    let results = merge.files.iter().zip(states);
    Ok(results.map(|(file, state)| MergeResult { path: file.path.clone(), state }).collect())
}

/// Waits until no other merge of the session runs: one whose runtime was killed may take a moment to die.
fn alone(backup: &str) -> Result<OwnedFd, Error> {
    let (backups, _) = split(backup.trim_end_matches('/'));
    let dir = Root::open(backups)?.dir("").map_err(Error::system("open", backups))?;
    flock(&dir, FlockOperation::LockExclusive).map_err(Error::system("lock", backups))?;
    Ok(dir)
}

/// The paths relative to the project. A request is checked again here, however it was made.
fn paths<'a>(project: &Root, files: &'a [MergeFile]) -> Result<Vec<&'a str>, Error> {
    if files.len() > FILES_MAX {
        return Err(Error::Request(format!("a merge may name {FILES_MAX} paths at most")));
    }
    let mut seen = BTreeSet::new();
    let mut paths = Vec::new();
    for file in files {
        let path = &file.path.0;
        let at = file.path.relative_to(project.path()).filter(|at| *path == project.absolute(at));
        let at = at.ok_or_else(|| Error::path(path, "does not lie in the project"))?;
        if at.split('/').any(|part| matches!(part, "" | "." | "..")) || at.contains('\0') {
            return Err(Error::path(path, "is not a canonical path below the project"));
        }
        if in_vcs(at) {
            return Err(Error::path(path, "is version control's own; no merge touches it"));
        }
        if !seen.insert(at) {
            return Err(Error::path(path, "is named twice in one merge"));
        }
        paths.push(at);
    }
    Ok(paths)
}

/// The order in which paths are put in place: first what goes, the deepest first, then the rest from the
/// top, so that a directory is empty before it goes and there before what it holds.
fn order(paths: &[&str], goes: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..paths.len()).collect();
    numbers.sort_by_key(|n| paths.get(*n));
    let (mut going, staying): (Vec<_>, Vec<_>) = numbers.into_iter().partition(|n| goes(*n));
    going.reverse();
    going.extend(staying);
    going
}

/// Fills in the results in the order in which the paths are worked on.
fn work<'a>(
    disk: &Disk,
    project: &Root,
    paths: &[&str],
    goes: impl Fn(usize) -> bool,
    begin: impl Fn(usize) -> Option<PlacementProgress<'a>>,
) -> Vec<MergeState> {
    let mut states = vec![MergeState::Already; paths.len()];
    let mut tell = |n: usize, state| {
        if let Some(slot) = states.get_mut(n) {
            *slot = state;
        }
    };
    let flush = || project.dir("").and_then(|dir| disk.flush(&dir));
    for part in order(paths, goes).chunks(STAGED_MAX) {
        let mut staged = Vec::new();
        for n in part {
            match begin(*n) {
                None => {}
                Some(PlacementProgress::Over(state)) => tell(*n, state),
                Some(PlacementProgress::Staged(file)) => staged.push((*n, file)),
            }
        }
        let flushed = if staged.is_empty() { Ok(()) } else { flush() };
        for (n, file) in staged {
            let state = match flushed {
                Ok(()) => file.finish(),
                Err(errno) => file.give_up(errno),
            };
            tell(n, state);
        }
    }
    if let Err(errno) = flush() {
        let reason = format!("it may not be on the disk: {}", super::error::plain(errno));
        let done = states.iter_mut().filter(|state| **state == MergeState::Done);
        done.for_each(|state| *state = MergeState::Failed { reason: reason.clone() });
    }
    states
}

struct Applying<'a> {
    disk: &'a Disk,
    layer: Layer,
    backup: Backup,
}

impl Applying<'_> {
    fn all(&self, files: &[MergeFile], paths: &[&str]) -> Vec<MergeState> {
        let goes = |n: usize| files.get(n).is_some_and(|file| file.new.is_none());
        let begin = |n| Some(self.one(n, files.get(n)?, paths.get(n)?));
        let mut states = work(self.disk, &self.layer.project, paths, goes, begin);
        self.give_back(files, paths, &mut states);
        for (n, state) in states.iter_mut().enumerate() {
            if let Some((file, at)) = files.get(n).zip(paths.get(n)) {
                self.settle(n, file, at, state);
            }
        }
        states
    }

    /// What lies in a directory goes before what replaces that, and comes back where nothing replaces it.
    fn give_back(&self, files: &[MergeFile], paths: &[&str], states: &mut [MergeState]) {
        let is_over = |state: &MergeState| matches!(state, MergeState::Done | MergeState::Already);
        let stayed: Vec<&str> = (0..paths.len())
            .filter(|n| states.get(*n).is_some_and(|state| !is_over(state)) && self.replaces(*n, files))
            .filter_map(|n| paths.get(n).copied())
            .collect();
        if stayed.is_empty() {
            return;
        }
        let above = |n: usize| {
            let goes = files.get(n).is_some_and(|file| file.new.is_none());
            let at = paths.get(n).filter(|_| goes && states.get(n).is_some_and(is_over))?;
            ancestors(at).find(|dir| stayed.contains(dir))
        };
        let back = |n| {
            let record = self.backup.record(n).filter(|_| above(n).is_some())?;
            Some(restore(self.disk, &self.layer.project, &self.backup, record))
        };
        let restored = work(self.disk, &self.layer.project, paths, |_| false, back);
        let came_back: Vec<_> = (0..paths.len())
            .filter(|n| self.backup.record(*n).is_some() && restored.get(*n).is_some_and(is_over))
            .filter_map(|n| Some((n, format!("what replaces `{}` stays in the session", above(n)?))))
            .collect();
        for (n, reason) in came_back {
            if let Some(state) = states.get_mut(n) {
                *state = MergeState::Untouched { reason };
            }
        }
    }

    /// Whether path number `n` is a directory of the project that becomes something else.
    fn replaces(&self, n: usize, files: &[MergeFile]) -> bool {
        let Some(record) = self.backup.record(n).filter(|record| record.was_directory()) else {
            return false;
        };
        let becomes = self.layer.upper.stat(&record.path).ok().flatten();
        files.get(n).is_some_and(|file| file.new.is_some())
            && becomes.is_some_and(|stat| super::read::kind(&stat) != FileKind::Directory)
    }

    /// Of what could not be written, tells apart what is as it was: an undo has nothing to take back there.
    fn settle(&self, n: usize, file: &MergeFile, at: &str, state: &mut MergeState) {
        let MergeState::Failed { reason } = state else { return };
        let is_as_it_was = current(&self.layer.project, at).is_ok_and(|now| digest(&now) == file.base);
        if is_as_it_was {
            let made = self.backup.record(n).into_iter().flat_map(|record| &record.made);
            unmake(self.disk, &self.layer.project, made);
            *state = MergeState::Untouched { reason: std::mem::take(reason) };
        }
    }

    fn one<'a>(&'a self, n: usize, file: &MergeFile, at: &'a str) -> PlacementProgress<'a> {
        let Some(record) = self.backup.record(n) else {
            return PlacementProgress::Over(self.unprepared(file, at));
        };
        if let Err(reason) = self.parents(record).and_then(|()| self.not_a_repository(file, at)) {
            return PlacementProgress::Over(MergeState::Failed { reason });
        }
        let want = match &file.part {
            None => self.want(file, at),
            Some(part) => part::want(&self.layer, &self.backup, record, part).and_then(|want| {
                if part.rebases {
                    part::rebase(self.disk, &self.layer, &self.backup, record, &want)?;
                }
                Ok(want)
            }),
        };
        let want = match want {
            Ok(want) => want,
            Err(reason) => return PlacementProgress::Over(MergeState::Failed { reason }),
        };
        let (project, passing) = (&self.layer.project, self.backup.passing(n));
        let attributes = Attributes::new();
        Placement { disk: self.disk, project, passing, at, from: file.base, to: file.new, want, attributes }
            .begin()
    }

    /// A path that was not in its base state when the merge began, or that must stay in the layer.
    fn unprepared(&self, file: &MergeFile, at: &str) -> MergeState {
        match current(&self.layer.project, at) {
            Ok(state) if digest(&state) == file.new => MergeState::Already,
            Ok(state) if digest(&state) == file.base => {
                MergeState::Failed { reason: "it is not among what may leave the session's layer".into() }
            }
            Ok(state) => conflict(&state, file.base),
            Err(reason) => MergeState::Failed { reason },
        }
    }

    /// What the layer holds at `at`. Its digest is compared when its bytes are copied.
    fn want(&self, file: &MergeFile, at: &str) -> Result<Want, String> {
        if file.new.is_none() {
            return Ok(Want::Nothing);
        }
        let changed = || LAYER_CHANGED.to_owned();
        let (dir, name) = self.layer.upper.parent(at).map_err(|_| changed())?;
        let stat = super::beneath::look(&dir, name.as_ref()).ok().flatten().ok_or_else(changed)?;
        let mode = stat.st_mode & super::state::MODE_BITS;
        match super::read::kind(&stat) {
            FileKind::File => Ok(Want::File { mode, source: FileSource { dir, name: name.into() } }),
            FileKind::Directory => Ok(Want::Directory { mode: self.layer.directory_mode(at, mode) }),
            FileKind::Symlink => {
                let state = state_of(&dir, name.as_ref()).ok().flatten();
                state.and_then(|state| state.target).map(Want::Symlink).ok_or_else(changed)
            }
            FileKind::Other => Err("a device, FIFO or socket is never applied".into()),
        }
    }

    fn parents(&self, record: &PathBackup) -> Result<(), String> {
        record
            .made
            .iter()
            .try_for_each(|at| {
                let mode =
                    self.layer.upper.stat(at).ok().flatten().map_or(0o755, |stat| stat.st_mode & 0o777);
                let (dir, name) = self.layer.project.parent(at)?;
                match super::beneath::look(&dir, name.as_ref())? {
                    Some(_) => Ok(()),
                    None => self.disk.mkdir(&dir, name, mode).and_then(|()| self.disk.sync(&dir)),
                }
            })
            .map_err(|errno: rustix::io::Errno| {
                format!("its directory cannot be made: {}", super::error::plain(errno))
            })
    }

    /// Two merges could build, piece by piece, what one is refused.
    fn not_a_repository(&self, file: &MergeFile, at: &str) -> Result<(), String> {
        let made = |dir: &str, name: &str| {
            let there = |mark: &str| self.layer.project.holds(&join(dir, mark));
            is_of_repository(name) && is_shaped(|mark| mark == name || there(mark))
        };
        let steps = std::iter::once(at).chain(ancestors(at)).map(split);
        if file.new.is_some() && steps.into_iter().any(|(dir, name)| made(dir, name)) {
            return Err("it belongs to a bare git repository, or would make one".into());
        }
        Ok(())
    }
}

struct Undoing<'a> {
    disk: &'a Disk,
    project: Root,
    backup: Backup,
}

impl Undoing<'_> {
    fn all(&self, files: &[MergeFile], paths: &[&str]) -> Result<Vec<MergeState>, Error> {
        let known = self.backup.by_path();
        let records: Vec<Option<&PathBackup>> = paths.iter().map(|at| known.get(at).copied()).collect();
        for (file, record) in files.iter().zip(&records) {
            let pair = (file.base, file.new);
            if record
                .is_some_and(|record| pair != (record.old, record.new) && pair != (record.new, record.old))
            {
                return Err(Error::path(&file.path.0, "is not what the apply changed; nothing was undone"));
            }
        }
        let record = |n: usize| records.get(n).copied().flatten();
        let goes = |n: usize| record(n).is_some_and(|record| record.old.is_none());
        // A path without a record was not changed by the apply: there is nothing to take back.
        let states = work(self.disk, &self.project, paths, goes, |n| {
            record(n).map(|record| restore(self.disk, &self.project, &self.backup, record))
        });
        unmake(self.disk, &self.project, records.iter().flatten().flat_map(|record| &record.made));
        Ok(states)
    }
}

/// Gives a path its old state again.
fn restore<'a>(
    disk: &'a Disk,
    project: &'a Root,
    backup: &Backup,
    record: &'a PathBackup,
) -> PlacementProgress<'a> {
    let want = match backup.want(record) {
        Ok(want) => want,
        Err(reason) => return PlacementProgress::Over(MergeState::Failed { reason }),
    };
    let PathBackup { n, path, old, new, .. } = record;
    let (passing, attributes) = (backup.passing(*n), record.attributes());
    Placement { disk, project, passing, at: path, from: *new, to: *old, want, attributes }.begin()
}

/// Removes directories that were made for paths, but for those in which something lies.
fn unmake<'a>(disk: &Disk, project: &Root, made: impl Iterator<Item = &'a String>) {
    let made: BTreeSet<&str> = made.map(String::as_str).collect();
    for at in made.iter().rev() {
        if let Ok((dir, name)) = project.parent(at) {
            // Stays when the user put something into it.
            disk.rmdir(&dir, name).ok();
        }
    }
}

/// What an undo makes of a path when its apply was ended before the index of its backup was written.
fn untouched(project: &Root, file: &MergeFile, at: &str) -> MergeState {
    match current(project, at) {
        Ok(state) if digest(&state) == file.new && file.new != file.base => {
            MergeState::Failed { reason: "the backup of what was there before is missing".into() }
        }
        Ok(_) => MergeState::Already,
        Err(reason) => MergeState::Failed { reason },
    }
}

/// The state at `at`; nothing there when one of the directories above is not there.
fn current(project: &Root, at: &str) -> Result<Option<State>, String> {
    match project.place(at).map_err(super::error::plain)? {
        Some((dir, name)) => state_of(dir, name.as_ref()).map_err(|why| why.to_string()),
        None => Ok(None),
    }
}

fn digest(state: &Option<State>) -> Option<Digest> {
    state.as_ref().map(|state| state.digest)
}

/// Why `now` is kept instead of being replaced.
fn conflict(now: &Option<State>, base: Option<Digest>) -> MergeState {
    let reason = match (now, base) {
        (None, _) => "it is gone from the project".into(),
        (Some(now), None) => format!("the project has {} there now", noun(now.kind)),
        (Some(now), Some(_)) => {
            format!("the {} in the project is not the state that the merge starts from", word(now.kind))
        }
    };
    MergeState::Conflict { reason }
}

fn word(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "symbolic link",
        FileKind::Other => "special file",
    }
}

fn noun(kind: FileKind) -> String {
    format!("a {}", word(kind))
}

/// Directories above `at` that the project lacks and that the merge does not name itself, the top first.
/// Those that are `there` are not looked for again.
fn missing_parents<'a>(
    project: &Root,
    at: &'a str,
    named: &BTreeSet<&str>,
    there: &mut HashSet<&'a str>,
) -> Vec<String> {
    let mut missing = Vec::new();
    for dir in ancestors(at) {
        if named.contains(dir) || there.contains(dir) {
            continue;
        }
        match project.stat(dir) {
            Ok(None) => missing.push(dir.to_owned()),
            _ => drop(there.insert(dir)),
        }
    }
    missing.reverse();
    missing
}
