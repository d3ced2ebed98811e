//! 64-bit numbers, which JSON readers in other languages would round: written as decimal strings.

use core::fmt;
use serde::{Deserialize, Deserializer, Serializer};

/// Position of an entry in the journal; the genesis entry is 1.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize,
)]
pub struct Seq(#[serde(with = "decimal")] pub u64);

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// `#[serde(with = "decimal")]` for a `u64`: `"18446744073709551615"`.
pub mod decimal {
    use super::{Deserialize, Deserializer, Serializer};
    use alloc::borrow::Cow;
    use serde::de::Error as _;

    /// Writes the number as a decimal string.
    ///
    /// # Errors
    /// The serializer's own error.
    pub fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    /// Reads a decimal string.
    ///
    /// # Errors
    /// When it is not a string of decimal digits that fits 64 bits.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(|_| D::Error::custom("expected a 64-bit number as a decimal string"))
    }
}
