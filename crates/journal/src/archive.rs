//! The file of an archive: entries that left the database, each as its chain has it, under the checkpoint
//! that was the newest when they left. Whoever has a public key of the line checks it without a database;
//! `docs/audit_check.py` does too.
//!
//! It is lines of JSON. The first says what it is, with the hashes that lead to the signed root, and the
//! checkpoints; each other one is an entry, in order. Whoever reads it has it from a stranger: a line is
//! bounded, and it is read line by line.

use crate::{
    checkpoint::{Checkpoint, Forged, PublicKey, Statement, follow},
    merkle::{Several, Unproven, leaf},
    proof::{PROOF_BYTES_MAX, ProofError, ProvenEntry},
};
use bailey_protocol::{Digest, number::Seq};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::io::{self, BufRead, Read as _, Write};

/// The shape of the file.
const FORMAT: &str = "bailey archive 1";
/// How every such file begins; no proof does.
pub const BEGINS: &[u8] = b"{\"format\":\"bailey archive 1\"";
/// The most entries of one file.
const ENTRIES_MAX: usize = 10_000_000;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    format: String,
    path: Several,
    checkpoints: Vec<Checkpoint>,
}

impl Head {
    pub(crate) fn new(path: Several, checkpoints: Vec<Checkpoint>) -> Self {
        Self { format: FORMAT.into(), path, checkpoints }
    }
}

/// Why an archive is not believed.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A line is not as in one.
    #[error("line {0} is not as in an archive")]
    Shape(u64),
    /// An entry is not the one that it says.
    #[error("entry {number}: {why}")]
    Entry {
        /// Which.
        number: u64,
        /// What does not fit.
        why: ProofError,
    },
    /// A checkpoint is not believed.
    #[error("{0}")]
    Forged(#[from] Forged),
    /// The key signs nothing of it.
    #[error("the key is newer than every checkpoint in it")]
    NewerKey,
    /// The hashes lead elsewhere.
    #[error("its entries are not those that were signed: {0}")]
    Unproven(#[from] Unproven),
}

/// What an archive holds, once all of it was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sealed {
    /// How many entries.
    pub entries: u64,
    /// The number of the first.
    pub first: Seq,
    /// The number of the last.
    pub last: Seq,
    /// Payloads, each the one that its entry was written with.
    pub payloads: u64,
    /// Payloads that were erased before.
    pub erased: u64,
    /// The checkpoint that all of it stands under.
    pub signed: Statement,
}

/// What was read of an archive, whoever signed it.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) head: Head,
    /// Each entry's number and hash.
    pub(crate) entries: Vec<(u64, Digest)>,
    pub(crate) payloads: u64,
    pub(crate) erased: u64,
    /// Over all its bytes.
    pub(crate) digest: Digest,
}

/// Checks a whole archive with a key: the first of its line, or a later one that somebody kept.
///
/// # Errors
/// The first thing that does not hold.
pub fn check(file: impl BufRead, key: &PublicKey) -> Result<Sealed, ArchiveError> {
    Contents::read(file)?.check(key)
}

impl Contents {
    /// Reads all of it, and looks whether each entry fits itself.
    pub(crate) fn read(file: impl BufRead) -> Result<Self, ArchiveError> {
        let mut lines = ArchiveLines { file, hasher: Sha256::new(), number: 0 };
        let head: Head = lines.parse()?.ok_or(ArchiveError::Shape(1))?;
        if head.format != FORMAT {
            return Err(ArchiveError::Shape(1));
        }
        let (mut entries, mut payloads, mut erased) = (Vec::new(), 0, 0);
        while let Some(entry) = lines.parse::<ProvenEntry>()? {
            let number = entry.number;
            let opened = entry.open().map_err(|why| ArchiveError::Entry { number, why })?;
            match (opened.payload.is_some(), opened.has_payload) {
                (true, _) => payloads += 1,
                (false, true) => erased += 1,
                (false, false) => {}
            }
            entries.push((number, opened.chained));
            if entries.len() > ENTRIES_MAX {
                return Err(ArchiveError::Shape(lines.number));
            }
        }
        let digest = Digest(lines.hasher.finalize().into());
        Ok(Self { head, entries, payloads, erased, digest })
    }

    pub(crate) fn check(self, key: &PublicKey) -> Result<Sealed, ArchiveError> {
        let signed = follow(&self.head.checkpoints, key)?.pop().ok_or(ArchiveError::NewerKey)?;
        let (Some((first, _)), Some((last, _))) = (self.entries.first(), self.entries.last()) else {
            return Err(Unproven::Outside.into());
        };
        let leaves: Vec<_> =
            self.entries.iter().map(|(number, hash)| (number.wrapping_sub(1), leaf(hash))).collect();
        self.head.path.check(&leaves, signed.entries, &signed.root)?;
        let (entries, payloads, erased) = (leaves.len() as u64, self.payloads, self.erased);
        Ok(Sealed { entries, first: Seq(*first), last: Seq(*last), payloads, erased, signed })
    }
}

/// One entry of an archive; none where it is not in it. Nothing but that entry is looked at.
pub(crate) fn find(file: impl BufRead, number: u64) -> Result<Option<ProvenEntry>, ArchiveError> {
    let mut lines = ArchiveLines { file, hasher: Sha256::new(), number: 0 };
    lines.parse::<Head>()?;
    while let Some(entry) = lines.parse::<ProvenEntry>()? {
        if entry.number == number {
            return Ok(Some(entry));
        }
    }
    Ok(None)
}

/// Over numbers and hashes: what an entry says of those that left, so that nothing else can pass for them.
#[derive(Debug, Default, Clone)]
pub(crate) struct List {
    hasher: Sha256,
    pub(crate) entries: u64,
    pub(crate) last: u64,
}

impl List {
    pub(crate) fn push(&mut self, number: u64, hash: &Digest) {
        self.hasher.update(number.to_be_bytes());
        self.hasher.update(hash.0);
        (self.entries, self.last) = (self.entries + 1, number);
    }

    pub(crate) fn digest(self) -> Digest {
        Digest(self.hasher.finalize().into())
    }
}

/// A file that is being written, with the digest and the length of what was.
pub(crate) struct Writer<W> {
    pub(crate) to: W,
    hasher: Sha256,
    pub(crate) bytes: u64,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, hasher: Sha256::new(), bytes: 0 }
    }

    pub(crate) fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.hasher.update(&line);
        self.bytes += line.len() as u64;
        self.to.write_all(&line)
    }

    pub(crate) fn digest(self) -> Digest {
        Digest(self.hasher.finalize().into())
    }
}

/// The lines of an archive, hashed as they are read.
struct ArchiveLines<R> {
    file: R,
    hasher: Sha256,
    number: u64,
}

impl<R: BufRead> ArchiveLines<R> {
    /// The next line as a value; none at the end.
    fn parse<T: serde::de::DeserializeOwned>(&mut self) -> Result<Option<T>, ArchiveError> {
        let mut line = Vec::new();
        let limit = PROOF_BYTES_MAX as u64 + 1;
        self.file.by_ref().take(limit).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        self.hasher.update(&line);
        let body = line.strip_suffix(b"\n").ok_or(ArchiveError::Shape(self.number))?;
        serde_json::from_slice(body).map(Some).map_err(|_| ArchiveError::Shape(self.number))
    }
}

#[cfg(test)]
mod tests;
