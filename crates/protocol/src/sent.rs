//! Files that people send along with what they say.

use crate::Blob;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// The most files of one message, and the most that they may come to together, in bytes.
pub const SENT_FILES_MAX: usize = 10;
/// See [`SENT_FILES_MAX`].
pub const SENT_BYTES_MAX: usize = 8 << 20;
/// Where they lie, below the project, in the session's own layer.
pub const INBOX: &str = ".bailey-inbox";

/// A file that somebody sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SentFile {
    /// What they call it: it may be anything.
    pub name: String,
    /// What it holds.
    pub bytes: Blob,
}
