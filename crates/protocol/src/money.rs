//! Money: whole nano-units of a currency, never a float.

use crate::number::decimal;
use alloc::string::String;
use core::fmt;
use serde::{Deserialize, Serialize};

/// An amount of money.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Money {
    /// Billionths of one unit of the currency.
    #[serde(with = "decimal")]
    pub nanos: u64,
    /// The currency's code (ISO 4217), such as `USD`.
    pub currency: String,
}

impl fmt::Display for Money {
    /// `0.0123 USD`: four places, rounded up, so that what costs something never shows as nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenthousandths = self.nanos.div_ceil(100_000);
        write!(f, "{}.{:04} {}", tenthousandths / 10_000, tenthousandths % 10_000, self.currency)
    }
}
