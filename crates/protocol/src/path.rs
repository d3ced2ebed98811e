//! Paths as the inside of the walls sees them.

use alloc::{format, string::String};
use core::fmt;
use serde::{Deserialize, Serialize};

/// A path as seen inside the walls. The workspace lies at the same absolute path inside and outside.
///
/// A model may name any path, so before `resolve` this is only a name: it may be relative to the workspace,
/// contain `..` and go through symlinks. After `resolve` it is absolute and canonical, and is opened beneath
/// the same root. Names that are not UTF-8 have no `WsPath`; commands can still reach such files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WsPath(pub String);

impl WsPath {
    /// Whether this is `dir` itself or something beneath it, compared segment by segment.
    /// Both must be canonical.
    #[must_use]
    pub fn is_within(&self, dir: &str) -> bool {
        let dir = dir.trim_end_matches('/');
        match self.0.strip_prefix(dir) {
            Some(rest) => rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }

    /// The part below `dir` without a leading slash; `None` when it is not within.
    #[must_use]
    pub fn relative_to(&self, dir: &str) -> Option<&str> {
        self.is_within(dir)
            .then(|| self.0.get(dir.trim_end_matches('/').len()..))
            .flatten()
            .map(|rest| rest.trim_start_matches('/'))
    }

    /// This path with the directory `from` replaced by `to`; `None` when it is not within `from`.
    #[must_use]
    pub fn moved(&self, from: &str, to: &str) -> Option<Self> {
        let below = self.relative_to(from)?;
        Some(Self(if below.is_empty() { to.into() } else { format!("{}/{below}", to.trim_end_matches('/')) }))
    }

    /// Whether two canonical paths are the same or one contains the other.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.is_within(&other.0) || other.is_within(&self.0)
    }
}

/// A file's name as git writes it for people and in diffs. A name with a quote, a backslash or a control
/// character is put in quotes with the escapes of C, so that no character can leave the line or act on the
/// screen.
#[must_use]
pub fn quoted(name: &str) -> String {
    if !name.contains(|c: char| c.is_control() || matches!(c, '"' | '\\')) {
        return name.into();
    }
    let mut quoted = String::from("\"");
    for c in name.chars() {
        match c {
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            '"' | '\\' => quoted.extend(['\\', c]),
            _ if c.is_control() => {
                let mut bytes = [0; 4];
                c.encode_utf8(&mut bytes).bytes().for_each(|byte| quoted.push_str(&format!("\\{byte:03o}")));
            }
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

impl From<&str> for WsPath {
    fn from(path: &str) -> Self {
        Self(path.into())
    }
}

impl fmt::Display for WsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
