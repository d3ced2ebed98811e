//! The changes of a session, in pieces that can be applied one by one.

use crate::{
    HostError,
    changes::{Change, Changes, marks},
    unified::{CONTEXT_LINES, by_lines, hunk, mode_lines, text},
};
use bailey_protocol::{
    Digest, FileDiff, FileKind, FileState, MergeFile, Part, Report, SPLICES_MAX, Splice, file_state, quoted,
};
use similar::{DiffOp, DiffTag, TextDiff};
use std::collections::{HashMap, HashSet};

/// The scheme of the hunks' numbers; numbers of another scheme are not understood.
const NUMBERING: &[u8] = b"hunks 2";
/// Hexadecimal digits of `FileHunks::shown`. Only half of them count against a search for two states with
/// one name.
const SHOWN_DIGITS: usize = 32;

/// One path that changed, in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHunks {
    /// Relative to the workspace.
    pub path: String,
    /// The name of the two states that the hunks are between.
    pub shown: String,
    /// Holds at least one hunk.
    pub hunks: Vec<Hunk>,
    /// Remarks for a person before a hunk is picked.
    pub remarks: Vec<String>,
}

/// A piece of a path's change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The text of the hunk in a unified diff. For content without lines, the diff's line about it.
    pub diff: String,
    /// Smaller hunks that together do the same; empty when this hunk holds one change.
    pub smaller: Vec<Hunk>,
    piece: Piece,
}

/// The part of a path's change that a hunk stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Whole,
    Mode,
    Lines(Vec<Splice>),
}

impl Changes {
    /// The changes that can be applied, path by path in pieces. A directory that is made or removed together
    /// with its content has no hunks: it is made with the first picked path in it, and removed with the
    /// last.
    #[must_use]
    pub fn hunks(&self) -> Vec<FileHunks> {
        let compared = self.by_path();
        let above = self.above();
        let open = self.changes.iter().filter(|change| change.refused.is_none());
        let found = open.filter_map(|change| Some((change, *compared.get(change.file.path.0.as_str())?)));
        found
            .filter(|(change, file)| !(is_directory(file) && above.contains(change.path.as_str())))
            .map(|(change, file)| in_pieces(change, file))
            .collect()
    }

    /// The picked part of these changes, for an apply: for each path, some of its [`Changes::hunks`].
    ///
    /// # Errors
    /// When nothing was picked, or a picked hunk does not belong to its path.
    pub fn pick(self, picked: &[(String, Vec<Hunk>)]) -> Result<Self, HostError> {
        let changes = self.chosen(picked)?;
        let mut red = self.red;
        let paths: HashSet<&str> = changes.iter().map(|change| change.path.as_str()).collect();
        red.retain(|red| paths.contains(red.as_str()));
        Ok(Self { changes, red, is_picked: true, ..self })
    }

    fn chosen(&self, picked: &[(String, Vec<Hunk>)]) -> Result<Vec<Change>, HostError> {
        let compared = self.by_path();
        let open = self.changes.iter().filter(|change| change.refused.is_none());
        let open: HashMap<&str, &Change> = open.map(|change| (change.path.as_str(), change)).collect();
        let mut changes = Vec::new();
        for (path, hunks) in picked.iter().filter(|(_, hunks)| !hunks.is_empty()) {
            let unknown = || HostError::Merge(format!("`{path}` has no such hunk"));
            let change = open.get(path.as_str()).copied();
            let change = change.ok_or_else(unknown)?;
            let file = compared.get(change.file.path.0.as_str()).ok_or_else(unknown)?;
            let file = picked_of(change, file, hunks).ok_or_else(unknown)?;
            changes.push(Change { file, ..change.clone() });
        }
        if changes.is_empty() {
            return Err(HostError::Merge("nothing was picked".into()));
        }
        changes.extend(self.emptied(&compared, &changes));
        changes.sort_by(|one, other| one.file.path.cmp(&other.file.path));
        Ok(changes)
    }

    /// The directories that are removed because all of their content is removed.
    fn emptied(&self, compared: &HashMap<&str, &FileDiff>, picked: &[Change]) -> Vec<Change> {
        let gone: HashSet<&str> =
            picked.iter().filter(|change| change.file.new.is_none()).map(|c| c.path.as_str()).collect();
        let above = self.above();
        let is_removed = |change: &&Change| {
            let file = compared.get(change.file.path.0.as_str());
            file.is_some_and(|file| is_directory(file) && file.new.is_none())
        };
        let removed: HashSet<&str> =
            self.changes.iter().filter(is_removed).map(|change| change.path.as_str()).collect();
        let stays: HashSet<&str> = self
            .changes
            .iter()
            .filter(|change| !gone.contains(change.path.as_str()) && !removed.contains(change.path.as_str()))
            .flat_map(|change| ancestors(&change.path))
            .collect();
        let goes = |change: &&Change| {
            let path = change.path.as_str();
            change.refused.is_none()
                && removed.contains(path)
                && above.contains(path)
                && !stays.contains(path)
        };
        let touched: HashSet<&str> = gone.iter().flat_map(|path| ancestors(path)).collect();
        let goes = self.changes.iter().filter(goes).filter(|change| touched.contains(change.path.as_str()));
        goes.cloned().collect()
    }

    fn by_path(&self) -> HashMap<&str, &FileDiff> {
        let files = match self.compared.as_ref().map(|output| output.report()) {
            Some(Report::Diff(report)) => report.files.as_slice(),
            _ => &[],
        };
        files.iter().map(|file| (file.path.0.as_str(), file)).collect()
    }

    /// The directories with a change below them.
    fn above(&self) -> HashSet<&str> {
        self.changes.iter().flat_map(|change| ancestors(&change.path)).collect()
    }
}

/// The directories above a path, nearest first.
pub(crate) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(path.rsplit_once('/'), |(parent, _)| parent.rsplit_once('/'))
        .map(|(parent, _)| parent)
}

/// Whether the path is a directory that is made or removed.
fn is_directory(file: &FileDiff) -> bool {
    let is = |state: &FileState| state.kind == FileKind::Directory;
    match (&file.old, &file.new) {
        (None, Some(state)) | (Some(state), None) => is(state),
        _ => false,
    }
}

fn in_pieces(change: &Change, file: &FileDiff) -> FileHunks {
    let state = |side: &Option<FileState>| side.as_ref().map(|side| side.state);
    let name = |digest: Option<Digest>| digest.map_or_else(String::new, |digest| digest.to_string());
    let (old, new) = (name(state(&file.old)), name(state(&file.new)));
    let mut shown = Digest::of_parts(&[NUMBERING, old.as_bytes(), new.as_bytes()]).to_string();
    shown.truncate(SHOWN_DIGITS);
    let is_base = state(&file.old) == change.file.base;
    // A path that both sides changed goes as a whole: the layer then gets the merged result.
    let is_merged = change.file.part.is_some();
    let hunks = if is_base && !is_merged { pieces_of_file(&change.path, file) } else { None };
    let mut remarks = change.remarks.clone();
    remarks.extend(change.would_keep());
    let whole = || vec![Hunk { diff: change.diff.clone(), smaller: Vec::new(), piece: Piece::Whole }];
    FileHunks { path: change.path.clone(), shown, hunks: hunks.unwrap_or_else(whole), remarks }
}

/// The hunks of a text file that exists before and after; `None` when it has to go as a whole.
fn pieces_of_file(path: &str, file: &FileDiff) -> Option<Vec<Hunk>> {
    let (old, new) = (file.old.as_ref()?, file.new.as_ref()?);
    if old.kind != FileKind::File || new.kind != FileKind::File {
        return None;
    }
    let (before, after) = (text(Some(old))?, text(Some(new))?);
    let mut hunks = Vec::new();
    if old.mode != new.mode {
        let (from, to) = (quoted(&format!("a/{path}")), quoted(&format!("b/{path}")));
        let diff = mode_lines(&from, &to, Some(old), Some(new));
        hunks.push(Hunk { diff, smaller: Vec::new(), piece: Piece::Mode });
    }
    let lines = LineDiff::of(&before, &after);
    hunks.extend(lines.diff.grouped_ops(CONTEXT_LINES).iter().filter_map(|ops| lines.hunk(ops)));
    let splices = hunks.iter().map(|hunk| hunk.piece.splices().len()).sum::<usize>();
    (hunks.len() > 1 || hunks.iter().any(|hunk| !hunk.smaller.is_empty()))
        .then_some(hunks)
        .filter(|_| splices <= SPLICES_MAX)
}

/// Two texts, compared by lines.
struct LineDiff<'a> {
    diff: TextDiff<'a, 'a, str>,
    /// The byte offset of each line's beginning, and of the last line's end.
    old: Vec<u32>,
    new: Vec<u32>,
}

impl<'a> LineDiff<'a> {
    fn of(before: &'a str, after: &'a str) -> Self {
        let diff = by_lines(before, after);
        let starts = |lines: &mut dyn Iterator<Item = &str>| {
            let mut starts = vec![0];
            let mut end = 0_usize;
            for line in lines {
                end += line.len();
                // A diff holds contents of 1 MiB at most.
                starts.push(u32::try_from(end).unwrap_or(u32::MAX));
            }
            starts
        };
        let old = starts(&mut diff.iter_old_slices());
        let new = starts(&mut diff.iter_new_slices());
        Self { diff, old, new }
    }

    /// A hunk of neighbouring operations; `None` when nothing in it changes.
    fn hunk(&self, ops: &[DiffOp]) -> Option<Hunk> {
        let runs: Vec<&[DiffOp]> = ops.chunk_by(|one, other| is_equal(one) == is_equal(other)).collect();
        let changes =
            || (0..runs.len()).filter(|n| !runs.get(*n).is_some_and(|run| run.iter().all(is_equal)));
        let splices: Option<Vec<Splice>> = changes().map(|n| self.splice(runs.get(n)?)).collect();
        let splices = splices.filter(|splices| !splices.is_empty())?;
        let diff = hunk(&self.diff, ops);
        let smaller = match splices.len() {
            1 => Vec::new(),
            _ => changes().filter_map(|n| self.hunk(&around(&runs, n))).collect(),
        };
        Some(Hunk { diff, smaller, piece: Piece::Lines(splices) })
    }

    fn splice(&self, run: &[DiffOp]) -> Option<Splice> {
        let (first, last) = (run.first()?, run.last()?);
        let bytes = |starts: &[u32], from: usize, to: usize| {
            let (from, to) = (*starts.get(from)?, *starts.get(to)?);
            Some((from, to.checked_sub(from)?))
        };
        let (at, cut) = bytes(&self.old, first.old_range().start, last.old_range().end)?;
        let (from, take) = bytes(&self.new, first.new_range().start, last.new_range().end)?;
        Some(Splice { at, cut, from, take })
    }
}

fn is_equal(op: &DiffOp) -> bool {
    op.tag() == DiffTag::Equal
}

/// One run of changes, with the lines around it.
fn around(runs: &[&[DiffOp]], n: usize) -> Vec<DiffOp> {
    let equal = |run: Option<&&[DiffOp]>| run.and_then(|run| run.first()).copied();
    let near = |op: DiffOp, is_before: bool| {
        let (old, new) = (op.old_range(), op.new_range());
        let len = old.len().min(CONTEXT_LINES);
        let (old_index, new_index) =
            if is_before { (old.end - len, new.end - len) } else { (old.start, new.start) };
        DiffOp::Equal { old_index, new_index, len }
    };
    let before = n.checked_sub(1).and_then(|n| equal(runs.get(n)));
    let mut ops = Vec::from_iter(before.map(|op| near(op, true)));
    ops.extend(runs.get(n).into_iter().copied().flatten());
    ops.extend(equal(runs.get(n + 1)).map(|op| near(op, false)));
    ops
}

impl Piece {
    fn splices(&self) -> &[Splice] {
        match self {
            Self::Lines(splices) => splices,
            Self::Whole | Self::Mode => &[],
        }
    }
}

/// The path as an apply of these hunks leaves it; `None` when they do not belong to this path.
fn picked_of(change: &Change, file: &FileDiff, hunks: &[Hunk]) -> Option<MergeFile> {
    if hunks.iter().any(|hunk| hunk.piece == Piece::Whole) {
        return Some(change.file.clone());
    }
    let (old, new) = (file.old.as_ref()?, file.new.as_ref()?);
    let mode = if hunks.iter().any(|hunk| hunk.piece == Piece::Mode) { new.mode } else { old.mode };
    let mut splices: Vec<Splice> = hunks.iter().flat_map(|hunk| hunk.piece.splices()).copied().collect();
    splices.sort_by_key(|splice| (splice.at, splice.from));
    let part = Part { of: new.state, mode, splices, rebases: false };
    let before = &old.content.as_ref()?.0;
    let bytes = part.compose(before, &new.content.as_ref()?.0)?;
    let marks = marks(before, &bytes);
    let state = file_state(mode, &bytes);
    let part = (state != new.state).then_some(part);
    Some(MergeFile { new: Some(state), part, marks, ..change.file.clone() })
}

#[cfg(test)]
mod tests;
