//! Change a rule file of the home.

use super::{Description, PathUse};
use crate::{Blob, Digest, WsPath};
use serde::{Deserialize, Serialize};

/// A change of a rule file of the home.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Amendment {
    /// The file, absolute.
    pub path: WsPath,
    /// Its present content; `None` when it does not exist.
    pub old: Option<Blob>,
    /// The new content; `None` deletes the file.
    pub new: Option<Blob>,
    /// Names all rule files of the home as they are. When the files are different, the amendment changes
    /// nothing.
    pub files: Digest,
    /// The policy that these files make; `None` when they cannot be read.
    pub from: Option<Digest>,
    /// The policy that they make after the change.
    pub to: Digest,
}

impl Amendment {
    pub(super) fn describe(&self) -> Description<'_> {
        Description {
            resources: [PathUse::at(&self.path).into()].into(),
            content_bytes: [&self.old, &self.new].into_iter().flatten().map(|text| text.0.len()).sum(),
            ..Description::default()
        }
    }
}
