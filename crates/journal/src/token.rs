//! Capability tokens: who has one may do what it says, and nobody asks the file rules again.
//!
//! A token is a *macaroon* (Birgisson and others, 2014): a name, the digest of the policy that it was minted
//! under, and caveats, held together by a chain of HMAC-SHA-256 (RFC 2104). Each link is keyed by the one
//! before it, and only the last is in the token: so whoever has one can add a caveat, and nobody can take one
//! away. The first link is keyed by a secret of the home.
//!
//! What is not here: whether it holds for an action (that is `policy`), and how often it was used
//! (`ledger.rs`).

use crate::checkpoint::Secret;
use bailey_policy::{CAVEATS_MAX, Caveat};
use bailey_protocol::{Digest, TokenId};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use std::fmt;
use zeroize::Zeroizing;

/// How a token's text begins, with the version of its shape.
pub const TOKEN_PREFIX: &str = "bailey-token-1.";
/// The longest text of a token, in bytes.
pub const TOKEN_BYTES_MAX: usize = 32 * 1024;
/// The longest caveat, in bytes.
pub const CAVEAT_BYTES_MAX: usize = 2048;

/// What the first link is about: no other use of the secret has this beginning.
const MINTED: &[u8] = b"bailey capability token 1: minted";
/// What each further link is about.
const NARROWED: &[u8] = b"bailey capability token 1: narrowed";
/// What the name of a count is about.
const COUNTED: &[u8] = b"bailey capability token 1: counted";

/// A token as its holder has it. Whoever has it can use it: it is shown by [`Macaroon::text`] and nothing
/// else.
#[derive(Clone, PartialEq, Eq)]
pub struct Macaroon {
    id: TokenId,
    policy: Digest,
    /// JSON, as the chain is over it.
    caveats: Vec<Vec<u8>>,
    tag: Zeroizing<[u8; 32]>,
}

/// Why bytes are no token, or one that does not hold whatever it is used for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    /// It is too long.
    #[error("it is longer than a token is")]
    TooLong,
    /// It is not written as one is.
    #[error("it is not written as a token is: it begins with `{TOKEN_PREFIX}`, and is copied whole")]
    Malformed,
    /// A caveat cannot be read; what is not understood cannot be kept.
    #[error("a caveat cannot be read: {0}")]
    Caveat(String),
    /// No more narrowings.
    #[error("it has been narrowed as often as a token can be")]
    Full,
    /// The chain does not hold.
    #[error("its signature is not this home's: it is another home's, or was changed")]
    Forged,
    /// The ledger does not know it.
    #[error("this home's journal knows no such token")]
    Unknown,
    /// It was minted in another session.
    #[error("it was minted in another session, and is good in that one")]
    Elsewhere,
    /// It is over: its task ended, or the rules changed.
    #[error("it is over: its task has ended, or the rules changed since it was minted")]
    Over,
}

impl Macaroon {
    /// A new one of these caveats.
    pub(crate) fn mint(
        secret: &Secret,
        id: TokenId,
        policy: Digest,
        caveat: &Caveat,
    ) -> Result<Self, BadToken> {
        let tag = first(secret, id, policy);
        Self { id, policy, caveats: Vec::new(), tag }.narrow(caveat)
    }

    /// The same, which holds only where this caveat holds, too. Nobody need be asked for that.
    ///
    /// # Errors
    /// When it has all the caveats that a token can have, or this one is too long.
    pub fn narrow(mut self, by: &Caveat) -> Result<Self, BadToken> {
        if self.caveats.len() >= CAVEATS_MAX {
            return Err(BadToken::Full);
        }
        let caveat = json(by)?;
        self.tag = next(&self.tag, &caveat);
        self.caveats.push(caveat);
        Ok(self)
    }

    /// Who has it, for people, as the last narrowing that names anybody says; the minting names somebody
    /// first.
    #[must_use]
    pub fn holder(&self) -> Option<String> {
        self.read_caveats().ok()?.into_iter().rev().find_map(|caveat| caveat.holder)
    }

    /// How many caveats it has: the one that it was minted with, and one for each narrowing.
    #[must_use]
    pub fn caveats(&self) -> usize {
        self.caveats.len()
    }

    /// Its name in the ledger, which those have, too, that were narrowed from it.
    #[must_use]
    pub fn id(&self) -> TokenId {
        self.id
    }

    /// The token itself, as text.
    #[must_use]
    pub fn text(&self) -> Zeroizing<String> {
        let id = self.id.bytes();
        let mut bytes = Zeroizing::new([id.as_slice(), &self.policy.0].concat());
        for caveat in &self.caveats {
            let length = u16::try_from(caveat.len()).unwrap_or(u16::MAX);
            bytes.extend(length.to_be_bytes());
            bytes.extend(caveat);
        }
        bytes.extend(self.tag.as_slice());
        Zeroizing::new(format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(&*bytes)))
    }

    /// Reads a token's text. That it can be read says nothing about who made it.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, BadToken> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(BadToken::TooLong);
        }
        let body = text.strip_prefix(TOKEN_PREFIX).ok_or(BadToken::Malformed)?;
        let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(body).map_err(|_| BadToken::Malformed)?);
        let token = read(&bytes).ok_or(BadToken::Malformed)?;
        token.read_caveats()?;
        Ok(token)
    }

    /// Its caveats.
    ///
    /// # Errors
    /// [`BadToken::Caveat`].
    pub(crate) fn read_caveats(&self) -> Result<Vec<Caveat>, BadToken> {
        let read = |bytes: &Vec<u8>| {
            serde_json::from_slice(bytes).map_err(|error| BadToken::Caveat(error.to_string()))
        };
        self.caveats.iter().map(read).collect()
    }

    pub(crate) fn policy(&self) -> Digest {
        self.policy
    }

    /// Whether the chain begins with this secret. The time that takes says nothing about where it differs.
    pub(crate) fn is_of(&self, secret: &Secret) -> bool {
        let (last, before) = match self.caveats.split_last() {
            Some((last, before)) => (last, before),
            None => return false,
        };
        let tag = before.iter().fold(first(secret, self.id, self.policy), |tag, caveat| next(&tag, caveat));
        link(&tag, &[NARROWED, last]).is_some_and(|mac| mac.verify_slice(self.tag.as_slice()).is_ok())
    }

    /// The names of its counts, of the token as minted first: each is of the caveats so far, and tells no
    /// link.
    pub(crate) fn counts(&self) -> Vec<Digest> {
        let begin = Digest::of_parts(&[COUNTED, &self.id.bytes()]);
        let next = |count: &mut Digest, caveat: &Vec<u8>| {
            *count = Digest::of_parts(&[COUNTED, &count.0, caveat]);
            Some(*count)
        };
        self.caveats.iter().scan(begin, next).collect()
    }
}

impl fmt::Debug for Macaroon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Macaroon")
            .field("id", &self.id)
            .field("caveats", &self.caveats.len())
            .finish_non_exhaustive()
    }
}

/// Name, policy, caveats each with its length, last link.
fn read(bytes: &[u8]) -> Option<Macaroon> {
    let (id, rest) = bytes.split_first_chunk::<16>()?;
    let (policy, rest) = rest.split_first_chunk::<32>()?;
    let (mut rest, tag) = rest.split_last_chunk::<32>()?;
    let mut caveats = Vec::new();
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<2>()?;
        let (caveat, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        if caveats.len() >= CAVEATS_MAX || caveat.len() > CAVEAT_BYTES_MAX {
            return None;
        }
        caveats.push(caveat.to_vec());
        rest = after;
    }
    Some(Macaroon { id: TokenId::new(*id), policy: Digest(*policy), caveats, tag: Zeroizing::new(*tag) })
}

/// A caveat without what it does not narrow.
fn json(caveat: &Caveat) -> Result<Vec<u8>, BadToken> {
    let unreadable = |error: serde_json::Error| BadToken::Caveat(error.to_string());
    let mut value = serde_json::to_value(caveat).map_err(unreadable)?;
    drop_nulls(&mut value);
    let bytes = serde_json::to_vec(&value).map_err(unreadable)?;
    if bytes.len() > CAVEAT_BYTES_MAX {
        return Err(BadToken::Caveat(format!("it is longer than {CAVEAT_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn first(secret: &Secret, id: TokenId, policy: Digest) -> Zeroizing<[u8; 32]> {
    tag(secret, &[MINTED, &id.bytes(), &policy.0])
}

fn next(tag_before: &Zeroizing<[u8; 32]>, caveat: &[u8]) -> Zeroizing<[u8; 32]> {
    tag(tag_before, &[NARROWED, caveat])
}

fn tag(key: &Zeroizing<[u8; 32]>, parts: &[&[u8]]) -> Zeroizing<[u8; 32]> {
    // A key of HMAC may have any length; were there an error, no chain would hold.
    let tag = link(key, parts).map_or([0; 32], |mac| mac.finalize().into_bytes().into());
    Zeroizing::new(tag)
}

fn link(key: &Zeroizing<[u8; 32]>, parts: &[&[u8]]) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_slice()).ok()?;
    for part in parts {
        mac.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        mac.update(part);
    }
    Some(mac)
}

#[cfg(test)]
mod tests;
