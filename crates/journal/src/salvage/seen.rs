//! What a torn journal is at one moment: what is written into it after it was read would be put away with it,
//! and a stop may be among that.

use super::{PAGE, PIECE, swap};
use crate::JournalError;
use bailey_protocol::{Digest, Hasher};
use std::{fs::File, io, os::unix::fs::FileExt as _, path::Path};

/// The digests of a file and of its log, where there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) file: Option<Digest>,
    pub(super) log: Option<Digest>,
}

impl Seen {
    pub(super) fn of(journal: &Path) -> Result<Self, JournalError> {
        Ok(Self { file: digest(journal)?, log: digest(&swap::beside(journal, "-wal"))? })
    }

    /// That the journal still is what it was then.
    ///
    /// # Errors
    /// When it is not, or cannot be read.
    pub(super) fn holds(&self, journal: &Path) -> Result<(), JournalError> {
        if Self::of(journal)? == *self {
            return Ok(());
        }
        let source =
            io::Error::other("somebody wrote into it meanwhile, and nothing was changed: run it again");
        Err(JournalError::Io { path: journal.into(), source })
    }
}

/// The digest of a file; none where there is none. What the disk does not give counts as zeros.
fn digest(path: &Path) -> Result<Option<Digest>, JournalError> {
    let io = |source| JournalError::Io { path: path.into(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(error)),
    };
    let length = file.metadata().map_err(io)?.len();
    Ok(Some(digest_of(length, |piece, at| file.read_at(piece, at))))
}

/// The digest of so many bytes, of which `read` gives some from a place on. Where it cannot, the page counts
/// as zeros, and it goes on behind: a disk that does not give all is what a salvage is for.
fn digest_of(length: u64, read: impl Fn(&mut [u8], u64) -> io::Result<usize>) -> Digest {
    let (mut hasher, mut piece, mut at) = (Hasher::default(), vec![0; PIECE], 0);
    while at < length {
        let left = usize::try_from(length - at).unwrap_or(PIECE);
        let room = piece.get_mut(..left.min(PIECE)).unwrap_or_default();
        let bytes = match read(room, at) {
            // It was cut off meanwhile.
            Ok(0) => break,
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => {
                room.fill(0);
                let on_page = usize::try_from(at % PAGE as u64).unwrap_or_default();
                room.len().min(PAGE - on_page)
            }
        };
        hasher.update(room.get(..bytes).unwrap_or_default());
        at += bytes as u64;
    }
    hasher.finish()
}

#[cfg(test)]
mod tests;
