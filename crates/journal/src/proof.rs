//! A proof in a file: that an entry is in a journal, or that the journal goes on from an earlier state of it,
//! for somebody who has one public key and nothing else. `docs/audit_check.py` checks the same files, in
//! sixty lines.
//!
//! Whoever reads such a file has it from a stranger: it is bounded, and nothing in it is believed before
//! `check`.

use crate::{
    chain,
    checkpoint::{Checkpoint, Forged, PublicKey, Statement, follow},
    fact::Commitment,
    merkle::{Consistency, Inclusion, Unproven, leaf},
};
use bailey_protocol::{Blob, Digest, Timestamp, number::Seq};
use serde::{Deserialize, Serialize};

/// The shape of the file.
const FORMAT: &str = "bailey proof 1";
/// The largest file that is read, in bytes: a line of a hundred thousand checkpoints.
pub const PROOF_BYTES_MAX: usize = 64 << 20;

/// What a proof file holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    format: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry: Option<ProvenEntry>,
    /// The epoch of the checkpoint that the last one goes on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<u64>,
    path: Vec<Digest>,
    checkpoints: Vec<Checkpoint>,
}

/// An entry as its chain has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProvenEntry {
    pub(crate) number: u64,
    /// The hash of the entry before.
    pub(crate) previous: Digest,
    /// The bytes that the chain's hash is over.
    pub(crate) body: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<ProvenPayload>,
}

/// What lies beside the chain, with what the entry's commitment was made with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProvenPayload {
    /// 32 hexadecimal digits.
    pub(crate) salt: String,
    pub(crate) bytes: Blob,
}

/// What a proof showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "proven")]
pub enum Proven {
    /// The entry was there when the checkpoint was signed, at that place, with every byte.
    Entry {
        /// Its number.
        number: u64,
        /// Its bytes, as JSON.
        body: String,
        /// What lay beside it, where the proof has it.
        payload: Option<Blob>,
        /// What the checkpoint states.
        signed: Statement,
    },
    /// Every entry of the first state is in the second one, at its place.
    Growth {
        /// What the earlier checkpoint states.
        from: Statement,
        /// What the later one states.
        to: Statement,
    },
}

/// Why a proof shows nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The file is too large.
    #[error("it is larger than {} MiB, which no proof is", PROOF_BYTES_MAX >> 20)]
    Size,
    /// The file is none.
    #[error("it is no proof that this program reads: {0}")]
    Shape(String),
    /// A checkpoint is not believed.
    #[error("{0}")]
    Forged(#[from] Forged),
    /// The key signs nothing of it yet.
    #[error("the key is newer than every checkpoint in it: make the proof anew")]
    NewerKey,
    /// The hashes lead elsewhere.
    #[error("what it says is not what was signed: {0}")]
    Unproven(#[from] Unproven),
    /// The entry contradicts its number.
    #[error("the entry says that it is another one than number {0}")]
    OtherEntry(u64),
    /// The payload is another one.
    #[error("the payload is not the one that the entry was written with")]
    OtherPayload,
}

/// What of an entry's body is looked at.
#[derive(Deserialize)]
struct Head {
    seq: Seq,
    #[serde(rename = "time")]
    _time: Timestamp,
    payload: Option<Commitment>,
}

impl Proof {
    pub(crate) fn of_entry(entry: ProvenEntry, path: Inclusion, checkpoints: Vec<Checkpoint>) -> Self {
        Self { format: FORMAT.into(), entry: Some(entry), since: None, path: path.0, checkpoints }
    }

    pub(crate) fn of_growth(since: u64, path: Consistency, checkpoints: Vec<Checkpoint>) -> Self {
        Self { format: FORMAT.into(), entry: None, since: Some(since), path: path.0, checkpoints }
    }

    /// Reads a file's bytes; nothing in it is proven by that.
    ///
    /// # Errors
    /// [`ProofError::Size`] and [`ProofError::Shape`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ProofError> {
        if bytes.len() > PROOF_BYTES_MAX {
            return Err(ProofError::Size);
        }
        let proof: Self = serde_json::from_slice(bytes).map_err(|error| shape(&error))?;
        if proof.format != FORMAT {
            return Err(ProofError::Shape(format!("it has not the format `{FORMAT}`")));
        }
        Ok(proof)
    }

    /// As the file has it.
    ///
    /// # Errors
    /// None that a proof can have.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// What it shows to whoever has this key: the first of its line, or a later one that somebody kept.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(&self, key: &PublicKey) -> Result<Proven, ProofError> {
        let mut stated = follow(&self.checkpoints, key)?;
        let signed = stated.pop().ok_or(ProofError::NewerKey)?;
        match (&self.entry, self.since) {
            (Some(entry), None) => self.entry(entry, signed),
            (None, Some(since)) => {
                let from = stated.into_iter().find(|says| says.epoch == since);
                let from = from.ok_or_else(|| {
                    ProofError::Shape(format!("it has no checkpoint {since} that the key vouches for"))
                })?;
                let path = Consistency(self.path.clone());
                path.check((from.entries, &from.root), (signed.entries, &signed.root))?;
                Ok(Proven::Growth { from, to: signed })
            }
            _ => Err(ProofError::Shape("it must be about an entry or about two checkpoints".into())),
        }
    }

    fn entry(&self, entry: &ProvenEntry, signed: Statement) -> Result<Proven, ProofError> {
        let number = entry.number;
        let chained = chain::link(&entry.previous, entry.body.as_bytes());
        let place = number.checked_sub(1).ok_or(Unproven::Outside)?;
        Inclusion(self.path.clone()).check(leaf(&chained), place, signed.entries, &signed.root)?;
        let EntryStatement { payload, .. } = entry.open()?;
        Ok(Proven::Entry { number, body: entry.body.clone(), payload, signed })
    }
}

/// What an entry says of itself.
pub(crate) struct EntryStatement {
    /// Its hash in the chain.
    pub(crate) chained: Digest,
    /// Whether it was written with a payload.
    pub(crate) has_payload: bool,
    /// That, where it is there.
    pub(crate) payload: Option<Blob>,
}

impl ProvenEntry {
    /// The same, without its payload where that is not wanted.
    pub(crate) fn with_payload(self, wanted: bool) -> Self {
        Self { payload: self.payload.filter(|_| wanted), ..self }
    }

    /// Looks whether body, number and payload fit together; where it stands is not looked at.
    pub(crate) fn open(&self) -> Result<EntryStatement, ProofError> {
        let Self { number, previous, body, payload } = self;
        let head: Head = serde_json::from_str(body).map_err(|error| shape(&error))?;
        if head.seq.0 != *number {
            return Err(ProofError::OtherEntry(*number));
        }
        let payload = payload.as_ref().map(|payload| payload.check(head.payload.as_ref())).transpose()?;
        let chained = chain::link(previous, body.as_bytes());
        Ok(EntryStatement { chained, has_payload: head.payload.is_some(), payload })
    }
}

impl ProvenPayload {
    pub(crate) fn new(salt: &[u8], bytes: Vec<u8>) -> Self {
        Self { salt: salt.iter().map(|byte| format!("{byte:02x}")).collect(), bytes: Blob(bytes) }
    }

    fn check(&self, commitment: Option<&Commitment>) -> Result<Blob, ProofError> {
        // Written twice, the salt has the length of a digest and its reader.
        let salt = Digest::parse(&self.salt.repeat(2)).ok_or(ProofError::OtherPayload)?;
        let (salt, _) = salt.0.split_at(16);
        let is_it = commitment.is_some_and(|it| it.digest == chain::commit_to(salt, &self.bytes.0));
        if is_it { Ok(self.bytes.clone()) } else { Err(ProofError::OtherPayload) }
    }
}

/// Where it is wrong, without any word of a stranger's: it could be long, or look like an answer of ours.
fn shape(error: &serde_json::Error) -> ProofError {
    ProofError::Shape(format!("line {}, column {} is not as in one", error.line(), error.column()))
}
