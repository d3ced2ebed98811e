//! Write, create or delete files in the session's layer.

use super::{Description, PathUse, Value};
use crate::{Blob, Digest, WsPath};
use serde::{Deserialize, Serialize};

/// The new content of one file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileChange {
    /// The file; its parent directories are made as needed.
    pub path: WsPath,
    /// The digest of the content that it must have now; `None` when it must not exist.
    pub base: Option<Digest>,
    /// The new content; `None` deletes the file.
    pub new: Option<Blob>,
}

pub(super) fn describe(files: &[FileChange]) -> Description<'_> {
    let bytes = |file: &FileChange| file.new.as_ref().map_or(0, |new| new.0.len());
    let touches = |file| PathUse { bytes: Some(bytes(file)), ..PathUse::at(&file.path) };
    Description {
        resources: files.iter().map(|file| touches(file).into()).collect(),
        content_bytes: files.iter().map(bytes).sum(),
        ..Description::default()
    }
}

/// The path and the content of a file.
pub(super) fn values(file: &FileChange) -> impl Iterator<Item = Value<'_>> {
    [Value::Path(&file.path)].into_iter().chain(file.new.as_ref().map(Value::Content))
}
