//! Files that people send along with their messages.

use crate::Blob;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// The most files of one message. [`SENT_BYTES_MAX`] limits their total size.
pub const SENT_FILES_MAX: usize = 10;
/// The maximum total size of the files of one message, in bytes.
pub const SENT_BYTES_MAX: usize = 8 << 20;
/// The directory of these files, below the project, in the session's own layer.
pub const INBOX: &str = ".bailey-inbox";

/// A file that somebody sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SentFile {
    /// The sender's name for the file; it may be any text.
    pub name: String,
    /// Its content.
    #[serde(serialize_with = "crate::blob::as_base64")]
    pub bytes: Blob,
}

#[cfg(test)]
mod tests {
    use super::SentFile;
    use crate::Blob;

    #[test]
    fn no_file_becomes_much_longer_than_it_is() {
        for byte in [0, b'"', b'\n', b'a', 0xff] {
            let file = SentFile { name: "f".into(), bytes: Blob(alloc::vec![byte; 3000]) };
            let line = serde_json::to_string(&file).unwrap();
            assert!(line.len() < 3000 * 4 / 3 + 100, "{byte}: {}", line.len());
            assert_eq!(serde_json::from_str::<SentFile>(&line).unwrap(), file);
        }
    }
}
