//! Move a session's changes to the project, or back.

use super::{Description, PathUse, Resource};
use crate::{Digest, EffectId, Part, Tip, WsPath};
use alloc::{string::String, vec::Vec};
use core::fmt;
use serde::{Deserialize, Serialize};

/// Files that move between a session's layer and the project.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Merge {
    /// The direction.
    pub direction: MergeKind,
    /// The apply that an undo takes back, or the apply that this one continues because it was killed in the
    /// middle.
    pub of: Option<EffectId>,
    /// The files that change, sorted by path.
    pub files: Vec<MergeFile>,
    /// References of the project's repository that move along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tips: Vec<Tip>,
    /// Paths that a person named. Their files leave the layer even when git ignores them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<WsPath>,
}

impl Merge {
    pub(super) fn describe(&self) -> Description<'_> {
        let files = self.files.iter().map(|file| {
            let has_marks = !file.marks.is_empty();
            Resource::from(PathUse { has_marks, ..PathUse::at(&file.path) })
        });
        Description {
            resources: files.chain(self.tips.iter().map(Resource::Branch)).collect(),
            direction: Some(self.direction),
            ..Description::default()
        }
    }

    /// A merge of files that moves no reference.
    #[must_use]
    pub fn of_files(direction: MergeKind, of: Option<EffectId>, files: Vec<MergeFile>) -> Self {
        Self { direction, of, files, tips: Vec::new(), also: Vec::new() }
    }
}

/// Which way a merge goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeKind {
    /// From the session's layer to the project.
    Apply,
    /// Back to what the project held before an apply.
    Undo,
    /// Throw the session's layer away.
    Discard,
}

/// One path of a merge. A *state* digest covers type, mode and content, so that a mode or a symlink is
/// restored as exactly as text; `None` means that nothing exists at the path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MergeFile {
    /// Absolute path in the project.
    pub path: WsPath,
    /// The state that the merge starts from. Any other state is a conflict, and the merge keeps that state.
    pub base: Option<Digest>,
    /// The state that it ends with.
    pub new: Option<Digest>,
    /// The part of the file's change that an apply takes over; `None` means the whole change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Redaction marks that an apply would bring into the project. The secrets that they stand for would be
    /// lost there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Marked>,
}

/// A redaction mark that a change brings into a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Marked {
    /// The mark, such as `[redacted:NAME]`.
    pub mark: String,
    /// The first lines of the new text that hold it, from 1.
    pub lines: Vec<u64>,
}

impl fmt::Display for Marked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mark, lines } = self;
        f.write_str(if lines.len() == 1 { "line " } else { "lines " })?;
        for (place, line) in lines.iter().enumerate() {
            write!(f, "{}{line}", if place == 0 { "" } else { ", " })?;
        }
        let hold = if lines.len() == 1 { "holds" } else { "hold" };
        write!(
            f,
            " {hold} the mark {mark} in place of a secret: applied, the file has the mark and not the secret"
        )
    }
}

impl MergeFile {
    /// A path that goes from one state to another as a whole.
    #[must_use]
    pub fn whole(path: WsPath, base: Option<Digest>, new: Option<Digest>) -> Self {
        Self { path, base, new, part: None, marks: Vec::new() }
    }
}
