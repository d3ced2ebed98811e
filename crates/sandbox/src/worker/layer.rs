//! What the upper directory of an overlay says was changed (kernel: Documentation/filesystems/overlayfs.rst,
//! mounted with `userxattr`, no redirects).
//!
//! A whiteout (a character device 0:0, or an empty file with `user.overlay.whiteout`) hides what the project
//! holds. A directory with `user.overlay.opaque` = `y` hides all that the project's directory of the same
//! name holds (`x` only says that whiteouts may be files). Everything else stands as it is.
//!
//! INVARIANT: what this module does not put into [`Survey::entries`] never leaves the layer: ignored build
//! outputs (A52), anything of version control's (A53), devices, names that no path can carry.

use super::beneath::{Root, ancestors, join, look, names, type_of};
use super::error::{Error, plain};
use super::ignores::{Ignores, Unusable, rules_text};
use super::index::Tracked;
use super::read::{noun, size};
use super::references::MOVED;
use super::repository::{is_of_repository, is_shaped, is_vcs};
use super::state::{FILE_BYTES_MAX, MODE_BITS, Seen, State, Unreadable, seen, state_of};
use bailey_protocol::{FileKind, INBOX};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, StatxFlags, fgetxattr, openat, statx};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::rc::Rc;

/// Entries looked at in one survey.
const VISITS_MAX: usize = 200_000;
/// Ignored paths that are named.
const IGNORED_MAX: usize = 1_000;
/// Names that the worker itself uses beside the files it writes.
const OWN_NAMES: [&str; 2] = [".bailey-merge-", ".bailey-change-"];
/// Of what stays of a repository so many are named.
const NAMED_MAX: usize = 3;
/// What a commit, a switch of branches and a tidying up change in a repository.
const OF_COMMITS: [&str; 12] = [
    "COMMIT_EDITMSG",
    "HEAD",
    "MERGE_MSG",
    "ORIG_HEAD",
    "gc.log",
    "gc.pid",
    "index",
    "index.lock",
    "logs",
    "objects",
    "packed-refs",
    "refs",
];
/// The bits by which a file runs with another's rights, and by which a
/// file made in a directory belongs to another.
const SET_ID: u32 = 0o6000;
const SET_GROUP_ID: u32 = 0o2000;
const OVER_DIRECTORY: &str = "replaces a directory of the project in which something stays";
/// How it is noted in the layer of a copy that what the session has at a path stays with it: by an empty file
/// with this attribute.
pub(super) const STAYS: &str = "user.bailey.stays";
/// What it means that rules cannot be known: to take what may be ignored for what is not would carry a
/// build's outputs to the project, and delete the user's there.
const UNKNOWN: &str = ": what git does not track there counts as ignored, and stays";
/// Why what lies on a mount stays. The overlay of a session shows what lies beneath it; a copy holds what is
/// mounted.
const MOUNTED: &str = "is, or lies on, something that is mounted in the project, which an apply stays off";
/// Why what git obeys in a bare repository stays, and what makes one.
const OF_REPOSITORY: &str =
    "belongs to a bare git repository, whose configuration and hooks the host would run";

/// Why what a session over a copy has at a path stays with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stays {
    TooDeep,
    OverHidden,
    OverDirectory,
    TooManyNames,
}

impl Stays {
    const ALL: [Self; 4] = [Self::TooDeep, Self::OverHidden, Self::OverDirectory, Self::TooManyNames];

    pub(super) fn mark(self) -> &'static [u8] {
        match self {
            Self::TooDeep => b"deep",
            Self::OverHidden => b"hidden",
            Self::OverDirectory => b"replaces",
            Self::TooManyNames => b"names",
        }
    }

    fn why(self) -> &'static str {
        match self {
            Self::TooDeep => "lies too deep, or has too long a path, for a session over a copy",
            Self::OverHidden => "lies where the project has something that the session is not shown",
            Self::OverDirectory => OVER_DIRECTORY,
            Self::TooManyNames => "is a file of as many names as there can be",
        }
    }
}

/// An overlay's upper directory over a project.
pub(super) struct Layer {
    pub(super) upper: Root,
    pub(super) project: Root,
}

/// What a layer holds, by path relative to the project.
#[derive(Default)]
pub(super) struct Survey {
    pub(super) entries: BTreeMap<String, LayerEntry>,
    /// What stays in the layer and why; the path may hold U+FFFD.
    pub(super) held: Vec<(String, String)>,
    /// Whether references of the project's repository were moved there.
    pub(super) commits: bool,
    /// Whether the limit of entries cut the survey.
    pub(super) cut: bool,
    /// What git ignores of it, each as high in the tree as all of it is ignored: the first of them.
    pub(super) ignored: Vec<String>,
}

/// A path that the layer created, changed or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LayerEntry {
    /// Its type in the layer; none: the layer deleted it.
    pub(super) upper: Option<FileType>,
    /// Its type in the project; none: nothing is there.
    pub(super) project: Option<FileType>,
    /// Of both sides, in bytes.
    pub(super) size: u64,
}

impl Layer {
    pub(super) fn open(upper: &str, project: &str) -> Result<Self, Error> {
        Ok(Self { upper: Root::open(upper)?, project: Root::of_project(project)? })
    }

    /// Walks the layer once. What git ignores is passed over, but for what is `wanted` all the same: paths,
    /// with what lies beneath them.
    pub(super) fn survey(&self, wanted: &[&str]) -> Survey {
        let mut survey = Survey::default();
        let rules = Ignores::of_repository(&self.project).unwrap_or_else(|Unusable(why)| {
            survey.held.push((".git/info/exclude".into(), format!("{why}{UNKNOWN}")));
            Ignores::of_anything()
        });
        let root =
            Pending { at: String::new(), view: DirectoryView::Merged, ignored: false, taken: false, rules };
        let mut walk = LayerWalk {
            layer: self,
            tracked: Tracked::of(&self.project),
            survey,
            wanted: wanted.iter().map(|at| (*at).to_owned()).collect(),
            kept: Vec::new(),
            visits: 0,
            pending: vec![root],
        };
        while let Some(next) = walk.pending.pop() {
            walk.directory(next);
        }
        walk.finish()
    }
}

impl Layer {
    /// Whether the session sees at `at` what the project holds there.
    pub(super) fn shows_the_project(&self, at: &str) -> Result<bool, Unreadable> {
        let mut above: Vec<&str> = std::iter::once(at).chain(ancestors(at)).collect();
        above.reverse();
        let mut is_opaque = false;
        for step in above {
            let Ok((dir, name)) = self.upper.parent(step) else { break };
            let Some(stat) = look(&dir, name.as_ref())? else { break };
            match node(&dir, name, &stat) {
                Node::Directory { opaque, .. } if step != at => is_opaque |= opaque,
                Node::Whiteout => return Ok(self.of_project(at)?.is_none()),
                _ if step != at => return Ok(self.of_project(at)?.is_none()),
                _ => return Ok(state_of(&dir, name.as_ref())? == self.of_project(at)?),
            }
        }
        Ok(!is_opaque || self.of_project(at)?.is_none())
    }

    fn of_project(&self, at: &str) -> Result<Option<State>, Unreadable> {
        match self.project.place(at)? {
            Some((dir, name)) => state_of(&dir, name.as_ref()),
            None => Ok(None),
        }
    }
}

impl Layer {
    /// The layer's entry at `at`, as an apply brings it.
    pub(super) fn above(&self, at: &str, content_max: u64) -> Result<Option<Seen>, Unreadable> {
        let mut above = seen(&self.upper, at, content_max)?;
        if let Some(Seen { state, .. }) = &mut above
            && state.kind == FileKind::Directory
        {
            *state = State::directory(self.directory_mode(at, state.mode));
        }
        Ok(above)
    }

    /// The mode that an apply gives a directory. By set-user-id and set-group-id, a program that works
    /// beneath it on the host would give files away. So these bits are those that the directory has in the
    /// project, or that the host itself gives a new one there.
    pub(super) fn directory_mode(&self, at: &str, mode: u32) -> u32 {
        let of_project = |at: &str| {
            let stat = self.project.stat(at).ok().flatten();
            stat.filter(|stat| type_of(stat) == FileType::Directory).map(|stat| stat.st_mode & SET_ID)
        };
        let set_id = of_project(at).unwrap_or_else(|| {
            let above = ancestors(at).chain([""]).find_map(of_project);
            above.unwrap_or_default() & mode & SET_GROUP_ID
        });
        mode & !SET_ID | set_id
    }

    /// Since when (Unix time in nanoseconds) the layer hides what the project holds at `at`, as far as that
    /// can be told; none where it hides nothing there.
    pub(super) fn hides_since(&self, at: &str) -> Option<i128> {
        let mut steps: Vec<&str> = std::iter::once(at).chain(ancestors(at)).collect();
        steps.reverse();
        for step in steps {
            let (dir, name) = self.upper.parent(step).ok()?;
            let stat = look(&dir, name.as_ref()).ok()??;
            match node(&dir, name, &stat) {
                Node::Directory { opaque: false, .. } if step != at => {}
                // One whiteout may have many names, and a directory changes with what is in it.
                Node::Directory { .. } | Node::Whiteout => return born(&dir, name),
                // It may have had another name before, which hid something else.
                Node::Leaf(_) | Node::Held(_) => return Some(changed(&stat)),
            }
        }
        None
    }
}

/// How the layer and the project show in one directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DirectoryView {
    /// The layer's entries over the project's.
    Merged,
    /// The layer's entries only; the project has such a directory, whose entries are hidden.
    Opaque,
    /// The layer's entries only; the project has no such directory.
    Fresh,
    /// Nothing; the project has such a directory.
    Removed,
}

struct Pending {
    at: String,
    view: DirectoryView,
    /// Whether it lies in an ignored directory.
    ignored: bool,
    /// Whether all of it is taken although git ignores it.
    taken: bool,
    rules: Rc<Ignores>,
}

/// What stands at a path of the layer.
enum Node {
    Whiteout,
    Held(String),
    Directory { opaque: bool, mode: u32 },
    Leaf(FileType),
}

struct LayerWalk<'a> {
    layer: &'a Layer,
    tracked: Tracked,
    survey: Survey,
    /// Paths that are taken although git ignores them.
    wanted: BTreeSet<String>,
    /// Paths of the project that stay although the layer removed a directory above them.
    kept: Vec<String>,
    visits: usize,
    pending: Vec<Pending>,
}

impl LayerWalk<'_> {
    fn directory(&mut self, here: Pending) {
        let text = self.rules_of(&here);
        let rules = text.and_then(|text| here.rules.within(&here.at, text.as_deref()));
        let rules = rules.unwrap_or_else(|Unusable(why)| {
            self.hold_directory(&here, format!("`.gitignore` in it {why}{UNKNOWN}"));
            Ignores::of_anything()
        });
        let here = Pending { rules, ..here };
        // What the layer has there decides what of the project it hides.
        let Some(shown) = self.layer_entries(&here) else { return };
        if matches!(here.view, DirectoryView::Opaque | DirectoryView::Removed)
            && let Err(errno) = self.project_entries(&here, &shown)
        {
            self.hold_directory(&here, format!("cannot be listed in the project: {}", plain(errno)));
        }
    }

    /// Has a directory itself stay as it is on both sides.
    fn hold_directory(&mut self, here: &Pending, why: String) {
        if here.view == DirectoryView::Removed {
            self.kept.push(join(&here.at, "…"));
        } else {
            self.survey.entries.remove(&here.at);
        }
        self.hold(&here.at, why);
    }

    /// The text of the `.gitignore` that the merged view shows; in a removed directory, the project's.
    fn rules_of(&self, here: &Pending) -> Result<Option<String>, Unusable> {
        let at = join(&here.at, ".gitignore");
        let Layer { upper, project } = self.layer;
        let above = if here.view == DirectoryView::Removed { None } else { upper.stat(&at).ok().flatten() };
        match (above, here.view) {
            (Some(_), _) => rules_text(upper, &at),
            (None, DirectoryView::Merged | DirectoryView::Removed) => rules_text(project, &at),
            (None, DirectoryView::Opaque | DirectoryView::Fresh) => Ok(None),
        }
    }

    /// Takes the layer's entries of a directory; gives their names, or none where they cannot be told.
    fn layer_entries(&mut self, here: &Pending) -> Option<BTreeSet<OsString>> {
        let mut seen = BTreeSet::new();
        if here.view == DirectoryView::Removed {
            return Some(seen);
        }
        let left = VISITS_MAX.saturating_sub(self.visits);
        // With no right to go through it, it is opened all the same, and read no more.
        let listed = self.layer.upper.dir(&here.at).and_then(|dir| {
            let listed = names(&dir, left)?;
            Ok((dir, listed))
        });
        let (dir, (names, cut)) = match listed {
            Ok(listed) => listed,
            Err(errno) => {
                self.hold_directory(here, format!("cannot be listed: {}", plain(errno)));
                return None;
            }
        };
        self.visits += names.len();
        self.survey.cut |= cut;
        let shaped = self.is_repository(here);
        if shaped && !matches!(here.view, DirectoryView::Merged | DirectoryView::Opaque) {
            self.survey.entries.remove(&here.at);
            self.hold(
                &here.at,
                "has the shape of a bare git repository, whose configuration the host would run",
            );
            return None;
        }
        for raw in names {
            if let Some(name) = raw.to_str() {
                let at = join(&here.at, name);
                if shaped && is_of_repository(name) {
                    self.hold(&at, OF_REPOSITORY);
                } else if let Ok(Some(stat)) = look(&dir, name.as_ref()) {
                    self.layer_entry(here, &at, name, node(&dir, name, &stat), size(&stat));
                }
            } else {
                let at = join(&here.at, &raw.to_string_lossy());
                self.hold(&at, "cannot be applied: its name is not UTF-8");
            }
            seen.insert(raw);
        }
        Some(seen)
    }

    fn layer_entry(&mut self, here: &Pending, at: &str, name: &str, node: Node, above: u64) {
        let (below, mounted) = match here.view {
            DirectoryView::Merged | DirectoryView::Opaque => match self.layer.project.stat(at) {
                Err(Errno::XDEV) => (None, true),
                found => (found.ok().flatten(), false),
            },
            DirectoryView::Fresh | DirectoryView::Removed => (None, false),
        };
        let project = below.as_ref().map(type_of);
        if is_vcs(name) {
            let was = below.as_ref().map(|stat| (type_of(stat), stat.st_mode & MODE_BITS));
            let is_as_it_was = here.view == DirectoryView::Merged
                && matches!(node, Node::Directory { opaque: false, mode } if was == Some((FileType::Directory, mode)));
            return self.version_control(at, is_as_it_was);
        }
        if OWN_NAMES.iter().any(|own| name.starts_with(own)) {
            return self.hold(at, "has a name that is kept for unfinished writes");
        }
        let held = project.is_some() || mounted;
        let is_dir = match node {
            Node::Whiteout if mounted => self.layer.project.is_dir(at),
            Node::Whiteout => project == Some(FileType::Directory),
            Node::Directory { .. } => true,
            Node::Held(_) | Node::Leaf(_) => false,
        };
        // Files that a person sent go to the project only where the agent copies them.
        let ignored = here.ignored || at == INBOX || here.rules.ignored(at, is_dir);
        if ignored && !self.is_tracked(at, is_dir, held) && !self.is_wanted(here, at) {
            let is_change = !(matches!(node, Node::Whiteout) && project.is_none());
            if is_change && !here.ignored && self.survey.ignored.len() < IGNORED_MAX {
                self.survey.ignored.push(at.into());
            }
            return;
        }
        if mounted {
            return self.hold(at, MOUNTED);
        }
        if let Some(stat) = below.as_ref().filter(|stat| !is_carried(stat)) {
            return self
                .hold(at, format!("takes the place of {}, which no undo could bring back", noun(stat)));
        }
        let gone = project == Some(FileType::Directory);
        // What stands there may be ignored where what takes its place is not: a rule may be one for
        // directories alone.
        if is_dir && held && !gone && here.rules.ignored(at, false) && !self.is_tracked(at, false, held) {
            return self.hold(at, "replaces a file of the project that git ignores");
        }
        let upper = match node {
            Node::Held(why) => return self.hold(at, why),
            Node::Whiteout if project.is_none() => return,
            Node::Whiteout => None,
            Node::Leaf(kind) => Some(kind),
            Node::Directory { opaque, mode } => {
                let view = match (gone, opaque || here.view == DirectoryView::Opaque) {
                    (false, _) => DirectoryView::Fresh,
                    (true, true) => DirectoryView::Opaque,
                    (true, false) => DirectoryView::Merged,
                };
                self.descend(here, at, view, ignored);
                if below.is_some_and(|stat| gone && stat.st_mode & MODE_BITS == mode) {
                    return;
                }
                Some(FileType::Directory)
            }
        };
        if gone && upper != Some(FileType::Directory) {
            self.descend(here, at, DirectoryView::Removed, here.ignored || here.rules.ignored(at, true));
        }
        let size = above.saturating_add(below.as_ref().map_or(0, size));
        self.survey.entries.insert(at.into(), LayerEntry { upper, project, size });
    }

    /// Takes the project's entries of a directory that the layer hides, but for the names in `seen`.
    fn project_entries(&mut self, here: &Pending, seen: &BTreeSet<OsString>) -> Result<(), Errno> {
        let project = &self.layer.project;
        let dir = project.dir(&here.at)?;
        let (names, cut) = names(&dir, VISITS_MAX.saturating_sub(self.visits))?;
        self.visits += names.len();
        self.survey.cut |= cut;
        if cut {
            self.kept.push(join(&here.at, "…"));
        }
        let shaped = here.view == DirectoryView::Opaque && self.is_repository(here);
        for raw in names.iter().filter(|name| !seen.contains(*name)) {
            let at = join(&here.at, &raw.to_string_lossy());
            let stat = look(&dir, raw).ok().flatten();
            let kind = stat.as_ref().map(type_of);
            let plain = stat.as_ref().is_some_and(is_carried);
            let is_dir = kind == Some(FileType::Directory);
            let ignored = here.ignored || here.rules.ignored(&at, is_dir);
            if ignored && !self.is_tracked(&at, is_dir, true) {
                self.kept.push(at);
            } else if raw.to_str().is_some() && project.is_mounted(&at) {
                self.hold(&at, MOUNTED);
                self.kept.push(at);
            } else if shaped && raw.to_str().is_some_and(is_of_repository) {
                self.hold(&at, OF_REPOSITORY);
                self.kept.push(at);
            } else if raw.to_str().is_none_or(is_vcs) || !plain {
                self.hold(&at, "was deleted in the layer, but is nothing that may be deleted from there");
                self.kept.push(at);
            } else {
                if is_dir {
                    self.descend(here, &at, DirectoryView::Removed, ignored);
                }
                let size = stat.as_ref().map_or(0, size);
                self.survey.entries.insert(at, LayerEntry { upper: None, project: kind, size });
            }
        }
        Ok(())
    }

    /// What lies below a repository's own directory stays. A mere look at a repository renews the index
    /// there, or locks it and leaves an empty directory, which is nobody's change; commits, of which the rest
    /// of this list tells, are carried by themselves.
    fn version_control(&mut self, at: &str, is_as_it_was: bool) {
        let upper = &self.layer.upper;
        let below = upper.dir(at).ok().and_then(|dir| names(&dir, VISITS_MAX).ok());
        if is_as_it_was && below.as_ref().is_some_and(|(names, _)| names.is_empty()) {
            return;
        }
        let below = below.map(|(names, _)| names).unwrap_or_default();
        let is = |name: &OsString, known: &[&str]| known.iter().any(|known| name == known);
        // A tidying up lists the references for a way of fetching that nobody uses any more.
        let info = upper.dir(&join(at, "info")).ok().and_then(|dir| names(&dir, VISITS_MAX).ok());
        let is_listed = info.is_some_and(|(names, _)| names.iter().all(|name| name == "refs"));
        let is_fit = |name: &OsString| is(name, &OF_COMMITS) || (is_listed && name == "info");
        let is_of_commits = at == ".git" && !below.is_empty() && below.iter().all(is_fit);
        self.survey.commits |= at == ".git" && below.iter().any(|name| is(name, &MOVED));
        if at == ".git" && self.survey.commits && !is_of_commits {
            let of_it = below.iter().filter(|name| !is_fit(name)).map(|name| name.to_string_lossy());
            let named: Vec<_> = of_it.take(NAMED_MAX).map(|name| format!("`{name}`")).collect();
            let named = named.join(", ");
            self.hold(
                at,
                format!("{named} in it never leaves the session's layer; commits are carried by themselves"),
            );
        } else if !is_of_commits {
            self.hold(at, "is version control's own and never leaves the session's layer");
        }
    }

    fn is_tracked(&self, at: &str, is_dir: bool, held: bool) -> bool {
        if is_dir { self.tracked.below(at, held) } else { self.tracked.file(at, held) }
    }

    /// Whether an ignored path is taken all the same: it is wanted, or what it lies in is, or what lies in
    /// it.
    fn is_wanted(&self, here: &Pending, at: &str) -> bool {
        let below = format!("{at}/");
        let first = || self.wanted.range(below.clone()..).next();
        here.taken || self.wanted.contains(at) || first().is_some_and(|first| first.starts_with(&below))
    }

    fn descend(&mut self, here: &Pending, at: &str, view: DirectoryView, ignored: bool) {
        let taken = ignored && (here.taken || self.wanted.contains(at));
        self.pending.push(Pending { at: at.into(), view, ignored, taken, rules: Rc::clone(&here.rules) });
    }

    fn hold(&mut self, at: &str, why: impl Into<String>) {
        self.survey.held.push((at.into(), why.into()));
    }

    /// Whether git would take a directory for a repository, in the project or as the layer shows it.
    fn is_repository(&self, here: &Pending) -> bool {
        let Layer { upper, project } = self.layer;
        let in_project = |name: &str| project.holds(&join(&here.at, name));
        let in_view = |name: &str| match upper.stat(&join(&here.at, name)) {
            Ok(Some(stat)) => !is_device(&stat),
            _ => here.view == DirectoryView::Merged && in_project(name),
        };
        is_shaped(in_project) || is_shaped(in_view)
    }

    /// Leaves out what cannot be removed because something below it stays, and what is removed only for what
    /// replaces it.
    fn finish(mut self) -> Survey {
        let above: BTreeSet<&str> = self.kept.iter().flat_map(|kept| ancestors(kept)).collect();
        let stays = |at: &String, entry: &mut LayerEntry| {
            entry.project == Some(FileType::Directory)
                && entry.upper != Some(FileType::Directory)
                && above.contains(at.as_str())
        };
        let staying: Vec<_> = self.survey.entries.extract_if(.., stays).collect();
        for (at, _) in staying.into_iter().filter(|(_, entry)| entry.upper.is_some()) {
            let below = format!("{at}/");
            let from = below.clone()..;
            self.survey.entries.extract_if(from, |path, _| path.starts_with(&below)).for_each(drop);
            self.survey.held.push((at, OVER_DIRECTORY.into()));
        }
        self.survey
    }
}

fn node(dir: &rustix::fd::OwnedFd, name: &str, stat: &Stat) -> Node {
    match type_of(stat) {
        FileType::Directory => {
            let opaque = attribute(dir, name, "user.overlay.opaque").is_some_and(|value| value == b"y");
            Node::Directory { opaque, mode: stat.st_mode & MODE_BITS }
        }
        _ if is_device(stat) => Node::Whiteout,
        FileType::RegularFile
            if stat.st_size == 0 && attribute(dir, name, "user.overlay.whiteout").is_some() =>
        {
            Node::Whiteout
        }
        FileType::RegularFile if let Some(stays) = stays(dir, name, stat) => Node::Held(stays.why().into()),
        FileType::RegularFile if stat.st_mode & SET_ID != 0 => {
            Node::Held("would run with another user's or group's rights (set-user-id or set-group-id)".into())
        }
        FileType::RegularFile if size(stat) > FILE_BYTES_MAX => Node::Held("is larger than 1 GiB".into()),
        kind @ (FileType::RegularFile | FileType::Symlink) => Node::Leaf(kind),
        _ => Node::Held(format!("is {}, which no merge can carry", noun(stat))),
    }
}

fn stays(dir: &rustix::fd::OwnedFd, name: &str, stat: &Stat) -> Option<Stays> {
    let mark = (stat.st_size == 0).then(|| attribute(dir, name, STAYS)).flatten()?;
    Stays::ALL.into_iter().find(|stays| stays.mark() == mark)
}

/// Whether it is something that a merge carries.
fn is_carried(stat: &Stat) -> bool {
    matches!(type_of(stat), FileType::RegularFile | FileType::Directory | FileType::Symlink)
}

/// When anything of this changed last, in nanoseconds of Unix time.
pub(super) fn changed(stat: &Stat) -> i128 {
    i128::from(stat.st_ctime) * 1_000_000_000 + i128::from(stat.st_ctime_nsec)
}

/// When this came to be, in nanoseconds of Unix time; when it changed last, where the file system keeps no
/// such time.
fn born(dir: &rustix::fd::OwnedFd, name: &str) -> Option<i128> {
    let wanted = StatxFlags::BTIME | StatxFlags::CTIME;
    let stat = statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, wanted).ok()?;
    let is_known = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    let time = if is_known { stat.stx_btime } else { stat.stx_ctime };
    Some(i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec))
}

/// Whether this is the character device 0:0, overlayfs's whiteout.
fn is_device(stat: &Stat) -> bool {
    type_of(stat) == FileType::CharacterDevice && stat.st_rdev == 0
}

/// A short extended attribute; what cannot be opened has none.
fn attribute(dir: &rustix::fd::OwnedFd, name: &str, attribute: &str) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = openat(dir, name, flags, Mode::empty()).ok()?;
    let mut value = [0; 8];
    let length = fgetxattr(fd, attribute, &mut value).ok()?;
    value.get(..length).map(<[u8]>::to_vec)
}
