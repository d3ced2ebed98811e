//! A checkpoint: a signed statement of how many entries a journal has and what the root over them is.
//!
//! Each is signed by a key of its own, which names the public key of the next one and is then overwritten:
//! who takes the machine over later can sign what comes, and nothing that came before. So a *line* of
//! checkpoints leads from its first public key, which its owner keeps elsewhere, to the newest. What is
//! signed is a note of eight lines of text; it is read only if it is written again the same, so that nobody
//! can say one thing in two ways.

use bailey_protocol::{Digest, Timestamp};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;
use zeroize::Zeroizing;

/// The first line of a note, with the version of its shape.
const TITLE: &str = "bailey checkpoint 1";
/// The longest note, in bytes; one with the largest numbers has 450.
const NOTE_BYTES_MAX: usize = 512;

/// A public key (RFC 8032, Ed25519), written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PublicKey(Digest);

impl PublicKey {
    /// Reads 64 hexadecimal digits; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Digest::parse(text).map(Self)
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0.0
    }

    pub(crate) fn of_bytes(bytes: [u8; 32]) -> Self {
        Self(Digest(bytes))
    }

    /// The public key of a secret one.
    pub(crate) fn of(secret: &Secret) -> Self {
        Self::of_bytes(SigningKey::from_bytes(secret).verifying_key().to_bytes())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

/// A secret key, overwritten in memory when it is dropped.
pub(crate) type Secret = Zeroizing<[u8; 32]>;

/// What a checkpoint states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Statement {
    /// Which journal: the hash of its genesis entry.
    pub journal: Digest,
    /// The place in its line, from 0.
    pub epoch: u64,
    /// How many entries it is about.
    pub entries: u64,
    /// The root of the tree over them.
    pub root: Digest,
    /// The hash of the last of them.
    pub head: Digest,
    /// When it was signed, by the clock of that machine.
    pub time: Timestamp,
    /// The key that the next one is signed by.
    pub next: PublicKey,
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { journal, epoch, entries, root, head, time, next } = self;
        write!(
            f,
            "{TITLE}\njournal {journal}\nepoch {epoch}\nentries {entries}\nroot {root}\nhead {head}\n\
             time {time}\nnext {next}\n"
        )
    }
}

impl Statement {
    /// Reads a note.
    fn parse(note: &str) -> Option<Self> {
        let mut lines = note.lines();
        let mut value = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        if value("bailey")? != &TITLE["bailey ".len()..] {
            return None;
        }
        let statement = Self {
            journal: Digest::parse(value("journal")?)?,
            epoch: value("epoch")?.parse().ok()?,
            entries: value("entries")?.parse().ok()?,
            root: Digest::parse(value("root")?)?,
            head: Digest::parse(value("head")?)?,
            time: value("time")?.parse().ok()?,
            next: PublicKey::parse(value("next")?)?,
        };
        (statement.entries > 0 && statement.to_string() == note).then_some(statement)
    }
}

/// Why a checkpoint is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Forged {
    /// The note is none.
    #[error("a checkpoint is not written as one is")]
    Note,
    /// The key did not sign the note.
    #[error("checkpoint {epoch} is not signed by the key that was to sign it")]
    Signature {
        /// Which one.
        epoch: u64,
    },
    /// It does not follow from the one before.
    #[error("checkpoint {epoch} does not follow from the one before it: {what}")]
    Order {
        /// Which one.
        epoch: u64,
        /// What differs.
        what: &'static str,
    },
    /// No key of the line is the one that was asked for.
    #[error("none of these checkpoints is signed by the key `{0}` or by one that follows from it")]
    OtherKey(PublicKey),
}

/// A checkpoint as it is kept and handed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    note: String,
    #[serde(serialize_with = "hex", deserialize_with = "from_hex")]
    signature: [u8; 64],
}

impl Checkpoint {
    pub(crate) fn sign(statement: &Statement, secret: &Secret) -> Self {
        let note = statement.to_string();
        let signature = SigningKey::from_bytes(secret).sign(note.as_bytes()).to_bytes();
        Self { note, signature }
    }

    pub(crate) fn of_parts(note: String, signature: [u8; 64]) -> Self {
        Self { note, signature }
    }

    pub(crate) fn parts(&self) -> (&str, &[u8; 64]) {
        (&self.note, &self.signature)
    }

    /// What it states, whoever signed it.
    ///
    /// # Errors
    /// [`Forged::Note`].
    pub fn statement(&self) -> Result<Statement, Forged> {
        let is_long = self.note.len() > NOTE_BYTES_MAX;
        if is_long { None } else { Statement::parse(&self.note) }.ok_or(Forged::Note)
    }

    /// What it states, if this key signed it.
    ///
    /// # Errors
    /// [`Forged::Note`] and [`Forged::Signature`].
    pub fn check(&self, key: &PublicKey) -> Result<Statement, Forged> {
        let statement = self.statement()?;
        let signature = Signature::from_bytes(&self.signature);
        let is_signed = VerifyingKey::from_bytes(key.bytes())
            .is_ok_and(|key| key.verify_strict(self.note.as_bytes(), &signature).is_ok());
        if is_signed { Ok(statement) } else { Err(Forged::Signature { epoch: statement.epoch }) }
    }
}

/// What a line of checkpoints states, from the one on that `key` signed: the key of the first of them, or the
/// next of any.
///
/// # Errors
/// The first that is not signed by the key that the one before names, or says less than that one.
pub fn follow(line: &[Checkpoint], key: &PublicKey) -> Result<Vec<Statement>, Forged> {
    let from = match line.first() {
        Some(first) if first.check(key).is_ok() => 0,
        _ => {
            let names = |checkpoint: &Checkpoint| checkpoint.statement().is_ok_and(|says| says.next == *key);
            1 + line.iter().position(names).ok_or(Forged::OtherKey(*key))?
        }
    };
    let (mut key, mut stated) = (*key, Vec::<Statement>::new());
    for checkpoint in line.get(from..).unwrap_or_default() {
        let statement = checkpoint.check(&key)?;
        if let Some(before) = stated.last() {
            let epoch = statement.epoch;
            let order = |what| Err(Forged::Order { epoch, what });
            if before.epoch.checked_add(1) != Some(epoch) {
                return order("one is left out");
            }
            if before.journal != statement.journal {
                return order("it is of another journal");
            }
            if before.entries > statement.entries {
                return order("it is about fewer entries");
            }
        }
        key = statement.next;
        stated.push(statement);
    }
    Ok(stated)
}

fn hex<S: Serializer>(bytes: &[u8; 64], serializer: S) -> Result<S::Ok, S::Error> {
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    serializer.serialize_str(&text)
}

fn from_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 64], D::Error> {
    let text = String::deserialize(deserializer)?;
    let half = |range| text.get(range).and_then(Digest::parse);
    let (Some(Digest(one)), Some(Digest(other)), 128) = (half(0..64), half(64..128), text.len()) else {
        return Err(D::Error::custom("expected 128 hexadecimal digits"));
    };
    let mut bytes = [0; 64];
    let (left, right) = bytes.split_at_mut(32);
    left.copy_from_slice(&one);
    right.copy_from_slice(&other);
    Ok(bytes)
}

#[cfg(test)]
mod tests;
