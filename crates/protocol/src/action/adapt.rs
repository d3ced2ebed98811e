//! Change the agent's own file.

use super::{Description, PathUse};
use crate::{Blob, WsPath};
use serde::{Deserialize, Serialize};

/// The maximum length of the agent's own file, in bytes.
pub const AGENT_FILE_BYTES_MAX: usize = 16 << 10;

/// A change of the agent's own file of the home, `agent.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Adaptation {
    /// The file, absolute. The code that plans the change need not know its place, because there is only
    /// one.
    pub path: WsPath,
    /// The content that it must have now; `None` when it must not exist. Known once the action is resolved.
    pub old: Option<Blob>,
    /// The new content; `None` deletes the file.
    pub new: Option<Blob>,
}

impl Adaptation {
    pub(super) fn describe(&self) -> Description<'_> {
        let bytes = self.new.as_ref().map_or(0, |new| new.0.len());
        Description {
            resources: [PathUse { bytes: Some(bytes), ..PathUse::at(&self.path) }.into()].into(),
            content_bytes: [&self.old, &self.new].into_iter().flatten().map(|text| text.0.len()).sum(),
            ..Description::default()
        }
    }
}
