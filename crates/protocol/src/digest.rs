//! SHA-256 (FIPS 180-4), the one hash of Bailey.

use alloc::string::String;
use core::fmt;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::Digest as _;

/// A SHA-256 digest, written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// The digest of several parts, each preceded by its length, so that no two lists of parts collide.
    #[must_use]
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Hasher::default();
        for part in parts {
            hasher.part(part.len() as u64);
            hasher.update(part);
        }
        hasher.finish()
    }

    /// The first 12 hexadecimal digits, for people; never compared.
    #[must_use]
    pub fn short(&self) -> String {
        let mut text = alloc::format!("{self}");
        text.truncate(12);
        text
    }

    /// Reads 64 hexadecimal digits; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let high = char::from(*pair.first()?).to_digit(16)?;
            let low = char::from(*pair.last()?).to_digit(16)?;
            *byte = u8::try_from(high << 4 | low).ok()?;
        }
        Some(Self(bytes))
    }
}

/// A digest taken piece by piece, for data that should not be held in memory.
#[derive(Clone, Default)]
pub struct Hasher(sha2::Sha256);

impl Hasher {
    /// Begins a part of `len` bytes, as [`Digest::of_parts`] does; its bytes follow by [`Hasher::update`].
    pub fn part(&mut self, len: u64) {
        self.0.update(len.to_be_bytes());
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all added bytes.
    #[must_use]
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One write for all digits: a comparison of many files writes many digests.
        let mut text = [0; 64];
        let digits = self.0.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
        for (place, digit) in text.iter_mut().zip(digits) {
            *place = digit + if digit < 10 { b'0' } else { b'a' - 10 };
        }
        f.write_str(core::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = alloc::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("expected 64 hexadecimal digits"))
    }
}
