//! Credentials of the owner's own kind: what they begin with, and what follows.
//!
//! No regular expressions: a match is decided as the bytes come, by a bounded number of them, and what
//! matches must not be able to eat the names and digests that the journal itself is written in.

use crate::shape::{Class, Kind, Shape};

/// Bytes of a prefix.
const PREFIX_BYTES: std::ops::RangeInclusive<usize> = 3..=64;
/// Characters that follow it: where at least as many are, the whole run is taken out.
const AT_LEAST: std::ops::RangeInclusive<usize> = 6..=64;

/// The characters that follow a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Characters {
    /// `0` to `9`.
    Digits,
    /// Digits and `a` to `f`, also as capitals.
    Hex,
    /// Letters and digits.
    Alnum,
    /// Letters, digits and `_`.
    Word,
    /// Letters, digits, `_` and `-`.
    Dash,
}

/// A kind of credential. Other characters than digits are taken out only where they look random: eight
/// different ones, of two of lower case, upper case and digits, so that a word or a placeholder is none.
#[derive(Debug, Clone)]
pub struct OwnShape(pub(crate) Shape);

/// Why a kind of credential cannot be looked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OwnShapeError {
    /// A mark shows the name.
    #[error("`{0}` is no name for a mark: it has 1 to 64 letters, digits, `-`, `_` and `.`")]
    Name(String),
    /// The prefix is too short or too long, or is more than visible ASCII.
    #[error("the prefix `{0}` must have {min} to {max} visible ASCII characters", min = PREFIX_BYTES.start(), max = PREFIX_BYTES.end())]
    Prefix(String),
    /// Digests and other names could begin so.
    #[error(
        "the prefix `{0}` could begin a digest or a date: it needs a letter beyond `f`, or a sign that is none of `-:.`"
    )]
    Common(String),
    /// Too few characters would match anything, too many cannot be decided as they come.
    #[error("`at_least` must be {min} to {max}, not {0}", min = AT_LEAST.start(), max = AT_LEAST.end())]
    AtLeast(usize),
}

impl OwnShape {
    /// A kind of credential: `prefix`, then at least so many of these characters; marks show `name`.
    ///
    /// # Errors
    /// When it would match too much, or cannot be decided as bytes come.
    pub fn new(
        name: &str,
        prefix: &str,
        characters: Characters,
        at_least: usize,
    ) -> Result<Self, OwnShapeError> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !(1..=64).contains(&name.len()) || !name.chars().all(is_name) {
            return Err(OwnShapeError::Name(name.into()));
        }
        if !PREFIX_BYTES.contains(&prefix.len()) || !prefix.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(OwnShapeError::Prefix(prefix.into()));
        }
        let is_common = |c: char| c.is_ascii_hexdigit() || matches!(c, '-' | ':' | '.');
        if prefix.chars().all(is_common) {
            return Err(OwnShapeError::Common(prefix.into()));
        }
        if !AT_LEAST.contains(&at_least) {
            return Err(OwnShapeError::AtLeast(at_least));
        }
        let (class, kind) = match characters {
            Characters::Digits => (Class::Digits, Kind::Counted),
            Characters::Hex => (Class::Hex, Kind::Plain),
            Characters::Alnum => (Class::Alnum, Kind::Plain),
            Characters::Word => (Class::Word, Kind::Plain),
            Characters::Dash => (Class::Dash, Kind::Plain),
        };
        let (id, prefix) = (name.to_owned().into(), prefix.to_owned().into());
        Ok(Self(Shape { id, prefix, class, min: at_least, kind }))
    }
}
