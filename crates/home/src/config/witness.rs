//! `journal.witness`: a file or a server that receives each checkpoint.

use std::{fmt, path::PathBuf, str::FromStr};

/// The receiver of checkpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Witness {
    /// A file that grows.
    File(PathBuf),
    /// A server.
    Url(String),
}

impl FromStr for Witness {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("file:") {
            // Three slashes count as one: the host is empty.
            let path = path.strip_prefix("//").unwrap_or(path);
            let is_whole =
                path.starts_with('/') && !path.ends_with('/') && !path.split('/').any(|part| part == "..");
            return match is_whole {
                true => Ok(Self::File(path.into())),
                false => {
                    Err(format!("`{text}` names no file: write file:/ and the whole path, without `..`"))
                }
            };
        }
        match text.starts_with("https://") || text.starts_with("http://") {
            true => Ok(Self::Url(text.into())),
            false => Err(format!("`{text}` is no witness: it is file:/path, https://… or http://…")),
        }
    }
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Url(url) => f.write_str(url),
        }
    }
}
