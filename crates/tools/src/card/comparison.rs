//! What was read of the paths of a merge.

use crate::typed::count;
use bailey_kernel::Output;
use bailey_protocol::{Blob, FileDiff, FileKind, FileState, MergeFile, Report, WsPath, file_state};
use std::{borrow::Cow, collections::HashMap};

/// Every comparison of a path that is at hand.
pub(super) struct Comparison<'a> {
    by_path: HashMap<&'a WsPath, Vec<&'a FileDiff>>,
}

impl<'a> Comparison<'a> {
    pub(super) fn of_seen(seen: &'a [Output]) -> Self {
        let reports = seen.iter().filter_map(|output| match output.report() {
            Report::Diff(report) => Some(&report.files),
            _ => None,
        });
        let mut by_path: HashMap<&WsPath, Vec<&FileDiff>> = HashMap::new();
        reports.flatten().for_each(|found| by_path.entry(&found.path).or_default().push(found));
        Self { by_path }
    }

    /// The comparison of exactly these two states of a path. Where a part of the change is taken over, what
    /// it comes to is made of the comparison that it is a part of.
    pub(super) fn of(&self, file: &MergeFile) -> Option<Cow<'a, FileDiff>> {
        let found = self.whole(file)?;
        let Some(part) = &file.part else { return Some(Cow::Borrowed(found)) };
        let (old, new) = (found.old.as_ref()?, found.new.as_ref()?);
        let bytes = part.compose(&old.content.as_ref()?.0, &new.content.as_ref()?.0)?;
        let state = file.new.filter(|state| *state == file_state(part.mode, &bytes))?;
        let size = u64::try_from(bytes.len()).ok()?;
        let new =
            FileState { state, kind: FileKind::File, mode: part.mode, size, content: Some(Blob(bytes)) };
        Some(Cow::Owned(FileDiff { new: Some(new), ..found.clone() }))
    }

    /// `2 files`, `1 file and 3 directories`.
    pub(super) fn counted<'b>(&self, files: impl Iterator<Item = &'b MergeFile>, kind: &str) -> String {
        let is_directory = |file: &&MergeFile| {
            let state = self.whole(file).and_then(|found| found.new.as_ref().or(found.old.as_ref()));
            state.is_some_and(|state| state.kind == FileKind::Directory)
        };
        let (directories, files): (Vec<_>, Vec<_>) = files.partition(is_directory);
        let directories = match directories.len() {
            0 => return count(files.len(), &format!("{kind}file")),
            1 => format!("1 {kind}directory"),
            more => format!("{more} {kind}directories"),
        };
        match files.len() {
            0 => directories,
            some => format!("{} and {directories}", count(some, &format!("{kind}file"))),
        }
    }

    /// The comparison that a path, or a part of it, was taken from.
    fn whole(&self, file: &MergeFile) -> Option<&'a FileDiff> {
        let state = |state: &Option<FileState>| state.as_ref().map(|state| state.state);
        let end = file.part.as_ref().map_or(file.new, |part| Some(part.of));
        let same = |found: &&&FileDiff| state(&found.old) == file.base && state(&found.new) == end;
        self.by_path.get(&file.path)?.iter().find(same).copied()
    }
}
