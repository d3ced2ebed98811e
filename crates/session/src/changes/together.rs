//! Changes that belong together: a directory and its content.

use super::Change;
use crate::hunks::ancestors;
use bailey_protocol::{FileDiff, FileKind, FileState};
use std::collections::{HashMap, HashSet};

/// The change of a path that is a directory on one side only.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DirectoryChange {
    /// The directory is removed.
    Gone,
    /// The directory replaces something else, or something else replaces it.
    Replaced,
}

fn turn(file: &FileDiff) -> Option<DirectoryChange> {
    let is_directory = |state: &FileState| state.kind == FileKind::Directory;
    match (file.old.as_ref().map(is_directory), file.new.as_ref().map(is_directory)) {
        (Some(true), None) => Some(DirectoryChange::Gone),
        (Some(old), Some(new)) if old != new => Some(DirectoryChange::Replaced),
        _ => None,
    }
}

/// Holds back changes that cannot be applied without a change that stays. A directory stays when something
/// in it stays. When the replacement of a directory stays, everything that would be removed for it stays.
/// When a new directory would have to replace something that stays, its content stays.
pub(super) fn hold(files: &[FileDiff], changes: &mut [Change]) {
    let turns: HashMap<&str, DirectoryChange> =
        files.iter().filter_map(|file| Some((file.path.0.as_str(), turn(file)?))).collect();
    let turn = |change: &Change| turns.get(change.file.path.0.as_str()).copied();
    let mut filled: HashMap<String, String> = HashMap::new();
    for change in changes.iter().filter(|change| change.stays()) {
        for dir in ancestors(&change.path).filter(|dir| !filled.contains_key(*dir)).collect::<Vec<_>>() {
            filled.insert(dir.to_owned(), change.path.clone());
        }
    }
    for change in changes.iter_mut().filter(|change| !change.stays()) {
        let Some((turn, inner)) = turn(change).zip(filled.get(&change.path)) else { continue };
        match turn {
            DirectoryChange::Gone => {
                change.conflict = Some(format!("holds `{inner}`, which stays"));
            }
            DirectoryChange::Replaced => {
                change.refused = Some(format!("replaces a directory that holds `{inner}`, which stays"));
            }
        }
    }
    let kept =
        changes.iter().filter(|change| change.stays() && turn(change) == Some(DirectoryChange::Replaced));
    let kept: HashSet<String> = kept.map(|change| change.path.clone()).collect();
    for change in changes.iter_mut().filter(|change| change.refused.is_none()) {
        if let Some(above) = ancestors(&change.path).find(|dir| kept.contains(*dir)) {
            change.refused = Some(format!("comes or goes with `{above}`, which stays"));
            change.conflict = None;
        }
    }
}

#[cfg(test)]
mod tests;
