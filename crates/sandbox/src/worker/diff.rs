//! What a session changed, told for the manifest ([`scan`]) and for people's eyes ([`diff()`]).

use super::attributes;
use super::bases::{Bases, Keep};
use super::beneath::{Root, ancestors, look, split};
use super::error::Error;
use super::layer::{Layer, LayerEntry, changed};
use super::links;
use super::read::size;
use super::state::{MODE_BITS, Seen, State, Unreadable, seen, state_of};
use bailey_protocol::{
    Blob, DiffReport, FileDiff, FileKind, FileState, Marked, Touched, WsPath, file_state, quoted,
};
use rustix::fs::FileType;
use std::collections::{BTreeSet, HashMap};
use std::io::ErrorKind;
use std::path::Path;

/// Paths in one report.
const PATHS_MAX: usize = 100_000;
/// Bytes of one side's content, and of all contents together.
const CONTENT_MAX: u64 = 1 << 20;
const CONTENTS_MAX: u64 = 16 << 20;

/// Whether what a session has in its folder may hold changes of its project: there are some that git does not
/// ignore, or they cannot be looked at. Told by names alone, of a session in which nothing lives.
#[must_use]
pub fn may_hold_changes(folder: &Path, project: &Path) -> bool {
    let upper = folder.join("upper");
    if matches!(upper.symlink_metadata(), Err(error) if error.kind() == ErrorKind::NotFound) {
        return false;
    }
    let (Some(upper), Some(project)) = (upper.to_str(), project.to_str()) else { return true };
    let survey = Layer::open(upper, project).map(|layer| layer.survey(&[]));
    survey.map_or(true, |survey| !survey.entries.is_empty() || !survey.held.is_empty() || survey.cut)
}

/// What the layer holds that is not in `known`, each with the project's state now. A project's file that
/// changed at or after `since` (Unix time in nanoseconds), or since the layer hides it, makes its base
/// unsure: the session may not have seen it. And whether it holds what no path tells of: what never leaves
/// it, or commits. Texts that the project holds of it are kept in `bases`.
pub(super) fn scan(
    upper: &str,
    project: &str,
    known: &[WsPath],
    since: u64,
    bases: Option<&Keep>,
) -> Result<(Vec<Touched>, bool), Error> {
    let layer = Layer::open(upper, project)?;
    // Without it a change of both sides is a conflict, which is no reason to fail.
    let mut bases = bases.and_then(|keep| Bases::open(keep).ok());
    let known: BTreeSet<&str> = known.iter().map(|path| path.0.as_str()).collect();
    let mut touched = Vec::new();
    let survey = layer.survey(&[]);
    let is_holding = !survey.held.is_empty() || survey.commits;
    for (at, entry) in survey.entries {
        let path = layer.project.absolute(&at);
        if known.contains(path.as_str()) {
            continue;
        }
        let path = WsPath(path);
        let (touch, since) = match entry.project {
            None => (Touched { path, base: None, unsure: false }, None),
            Some(kind) => {
                let is_changed = kind == FileType::RegularFile && entry.upper == Some(FileType::RegularFile);
                // Kept before it is looked at, so that what changes meanwhile is another state than what is
                // kept.
                if let Some(bases) = bases.as_mut().filter(|_| is_changed) {
                    bases.keep(&layer.project, &at);
                }
                let since = layer.hides_since(&at).unwrap_or(i128::MAX).min(since.into());
                (touch(&layer.project, &at, path, since), Some(since))
            }
        };
        touched.push((at, touch, since));
    }
    // Looked at when all of it was read, so that what is moved meanwhile shows.
    let mut moves = Moves { project: &layer.project, times: HashMap::new() };
    let touched = touched.into_iter().map(|(at, touch, since)| {
        let unsure = touch.unsure || since.is_some_and(|since| moves.may_be_new(&at, since));
        Touched { unsure, ..touch }
    });
    Ok((touched.collect(), is_holding))
}

/// Everything that the session changed, with contents as far as they fit, and everything that stays in the
/// layer although nothing ignores it. `is_copy`: the layer's files are links to those of a copy. `also`: what
/// is looked at although git ignores it.
pub(super) fn diff(
    upper: &str,
    project: &str,
    is_copy: bool,
    also: &[WsPath],
    bases: Option<&Keep>,
) -> Result<DiffReport, Error> {
    let layer = Layer::open(upper, project)?;
    let also: Vec<&str> = also.iter().filter_map(|path| path.relative_to(project)).collect();
    let survey = layer.survey(&also);
    let bases = bases.and_then(|keep| Bases::open(keep).ok());
    let mut reporter = Reporter { layer: &layer, is_copy, bases, left: CONTENTS_MAX, files: Vec::new() };
    if survey.cut {
        reporter.refuse(
            "",
            "holds more than 200,000 entries in the layer; the rest is not shown and stays there",
        );
    }
    for (at, why) in &survey.held {
        reporter.refuse(at, why);
    }
    // The smallest first, so that nobody hides what a short one says behind long ones.
    let mut entries: Vec<_> = survey.entries.into_iter().collect();
    entries.sort_by_key(|(_, entry)| entry.size);
    for (at, entry) in entries {
        if reporter.files.len() >= PATHS_MAX {
            reporter.refuse("", "has more than 100,000 changes; the rest is not shown");
            break;
        }
        if let Err(why) = reporter.add(&at, entry) {
            reporter.refuse(&at, &format!("cannot be compared: {why}"));
        }
    }
    reporter.files.sort_by(|one, other| one.path.cmp(&other.path));
    let ignored = survey.ignored.iter().map(|at| WsPath(layer.project.absolute(at))).collect();
    Ok(DiffReport { files: reporter.files, ignored, ..DiffReport::default() })
}

fn touch(project: &Root, at: &str, path: WsPath, since: i128) -> Touched {
    let is_changed = |dir: &_, name: &str| match look(dir, name.as_ref()) {
        Ok(Some(stat)) => changed(&stat) >= since,
        _ => true,
    };
    let state = project.parent(at).map_err(Unreadable::System).and_then(|(dir, name)| {
        let state = state_of(&dir, name.as_ref())?;
        // Looked at after the content was read, so that a change meanwhile shows.
        Ok((state, is_changed(&dir, name)))
    });
    match state {
        Ok((Some(state), unsure)) => Touched { path, base: Some(state.digest), unsure },
        // Gone meanwhile or not readable: a merge will find another state, and keep it.
        Ok((None, _)) | Err(_) => Touched { path, base: None, unsure: true },
    }
}

/// Which directories of a project may have got their names lately. What lies in one that was moved tells
/// nothing of it.
struct Moves<'a> {
    project: &'a Root,
    /// When each changed last, in nanoseconds of Unix time; none where that cannot be told.
    times: HashMap<String, Option<i128>>,
}

impl Moves<'_> {
    /// Whether one of the directories above `at` may have been moved there at or after `since`: a move
    /// changes what is moved, and what it is moved to.
    fn may_be_new(&mut self, at: &str, since: i128) -> bool {
        let mut is_changed = |dir: &str| self.changed(dir).is_none_or(|time| time >= since);
        ancestors(at).any(|dir| is_changed(dir) && is_changed(split(dir).0))
    }

    fn changed(&mut self, dir: &str) -> Option<i128> {
        if let Some(known) = self.times.get(dir) {
            return *known;
        }
        let time = self.project.stat(dir).ok().flatten().map(|stat| changed(&stat));
        *self.times.entry(dir.to_owned()).or_insert(time)
    }
}

struct Reporter<'a> {
    layer: &'a Layer,
    is_copy: bool,
    bases: Option<Bases>,
    /// Bytes of content that still fit.
    left: u64,
    files: Vec<FileDiff>,
}

impl Reporter<'_> {
    fn add(&mut self, at: &str, entry: LayerEntry) -> Result<(), Unreadable> {
        let project = &self.layer.project;
        let most = CONTENT_MAX.min(self.left);
        let new = if entry.upper.is_some() { self.layer.above(at, most)? } else { None };
        let old = seen(project, at, most)?;
        let set = set_inside(new.as_ref(), old.as_ref());
        if state(new.as_ref()) == state(old.as_ref()) {
            if let Some(names) = set {
                self.refuse(
                    at,
                    &format!("has extended attributes ({names}) that the session set, which stay there"),
                );
            }
            return Ok(());
        }
        let mut remarks = linked(new.as_ref(), old.as_ref(), self.is_copy);
        if let Some(new) = &new
            && new.state.kind == FileKind::Directory
            && new.state.mode != new.stat.st_mode & MODE_BITS
        {
            remarks.push(
                "is a set-user-id or set-group-id directory in the session: applied, it is none".into(),
            );
        }
        // A namespace has nobody else to give it to.
        if let (Some(new), Some(old)) = (&new, &old)
            && (new.stat.st_uid, new.stat.st_gid) != (old.stat.st_uid, old.stat.st_gid)
        {
            remarks
                .push("belongs to another user or group in the project: applied, it belongs to you".into());
        }
        remarks.extend(set.map(|names| {
            format!("has extended attributes ({names}) that the session set, which stay there")
        }));
        // On the host, whoever writes or reads there would follow it.
        let target = state(new.as_ref()).and_then(|state| state.target.as_deref());
        let out = target.is_some_and(|target| links::lead_out(self.layer, at, target));
        let refused = if out {
            Some("a link that leads, or may lead, out of the project stays in the session".into())
        } else if old.as_ref().is_some_and(|old| self.names_others(at, old, new.as_ref())) {
            Some("has an access control list that names others, which nobody inside can give it again: apply by hand".into())
        } else {
            None
        };
        let marks = marks(old.as_ref(), new.as_ref());
        let old = old.map(|seen| self.side(seen));
        let new = new.map(|seen| self.side(seen));
        let base = self.base(at, old.as_ref(), new.as_ref());
        self.files.push(FileDiff {
            path: WsPath(project.absolute(at)),
            old,
            new,
            base,
            refused,
            remarks,
            marks,
        });
        Ok(())
    }

    /// Whether an apply or its undo would have to set a list that it cannot.
    fn names_others(&self, at: &str, old: &Seen, new: Option<&Seen>) -> bool {
        if old.state.kind != FileKind::Directory {
            return attributes::names_others(&old.attributes);
        }
        // One that stays a directory keeps what it has.
        if new.is_some_and(|new| new.state.kind == FileKind::Directory) {
            return false;
        }
        let own = self.layer.project.dir(at).and_then(attributes::of);
        own.is_ok_and(|own| attributes::names_others(&own))
    }

    /// The base of a file whose content is at hand on both sides, where the project's is another one by now.
    fn base(&mut self, at: &str, old: Option<&FileState>, new: Option<&FileState>) -> Option<FileState> {
        let is_shown = |state: &FileState| state.kind == FileKind::File && state.content.is_some();
        let old = old.filter(|old| is_shown(old) && new.is_some_and(is_shown))?;
        let text = self.bases.as_ref()?.text(at)?;
        let (state, size) = (file_state(text.mode, &text.bytes), text.bytes.len() as u64);
        if state == old.state || size > self.left {
            return None;
        }
        self.left -= size;
        let content = Some(Blob(text.bytes));
        Some(FileState { state, kind: FileKind::File, mode: text.mode, size, content })
    }

    fn side(&mut self, Seen { state, content, .. }: Seen) -> FileState {
        let content = match state.target {
            Some(target) => Some(Blob(target)),
            None => content.filter(|_| state.size <= self.left).map(|bytes| {
                self.left -= state.size;
                Blob(bytes)
            }),
        };
        FileState { state: state.digest, kind: state.kind, mode: state.mode, size: state.size, content }
    }

    /// Tells of a path that stays in the layer.
    fn refuse(&mut self, at: &str, why: &str) {
        if self.files.len() <= PATHS_MAX {
            let path = WsPath(self.layer.project.absolute(at));
            self.files.push(FileDiff {
                path,
                old: None,
                new: None,
                base: None,
                refused: Some(why.into()),
                remarks: Vec::new(),
                marks: Vec::new(),
            });
        }
    }
}

/// The redaction marks that only the layer has.
fn marks(old: Option<&Seen>, new: Option<&Seen>) -> Vec<Marked> {
    let Some(new) = new else { return Vec::new() };
    let before = old.map(|old| &old.marks).cloned().unwrap_or_default();
    let beyond = new.marks.beyond(&before);
    beyond.into_iter().map(|(mark, lines)| Marked { mark, lines }).collect()
}

/// The names of the extended attributes that the layer's file has and the project's has not so; none where
/// there are none.
fn set_inside(new: Option<&Seen>, old: Option<&Seen>) -> Option<String> {
    let own = |name| old.and_then(|old| old.attributes.get(name));
    let set = new?.attributes.iter().filter(|(name, value)| own(*name) != Some(*value));
    let names: Vec<String> = set.map(|(name, _)| quoted(&String::from_utf8_lossy(name))).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// What becomes of hard links: each name that is applied gets a file of its own. In the layer of a copy a
/// file has two names, its own and the copy's; one that has several there was laid out apart and has one, as
/// empty ones do, or could not be and has more.
fn linked(new: Option<&Seen>, old: Option<&Seen>, is_copy: bool) -> Vec<String> {
    let names = |seen: Option<&Seen>| {
        seen.filter(|seen| seen.state.kind == FileKind::File).map_or(0, |seen| seen.stat.st_nlink)
    };
    let is_several = match names(new) {
        1 => is_copy && new.is_some_and(|new| size(&new.stat) > 0),
        names => names >= if is_copy { 3 } else { 2 },
    };
    if names(old) >= 2 {
        vec!["is one of several hard links in the project: applied, it is a file of its own, and the others stay as they are".into()]
    } else if is_several {
        vec!["is one of several hard links in the session: applied, each is a file of its own".into()]
    } else {
        Vec::new()
    }
}

fn state(of: Option<&Seen>) -> Option<&State> {
    of.map(|seen| &seen.state)
}
