//! Money: whole nano-units of a currency, never a float.

use crate::number::decimal;
use alloc::{format, string::String};
use core::{fmt, str::FromStr};
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
    /// `0.0123 USD`: four places, rounded up, so that a price above zero never shows as zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenthousandths = self.nanos.div_ceil(100_000);
        write!(f, "{}.{:04} {}", tenthousandths / 10_000, tenthousandths % 10_000, self.currency)
    }
}

/// The error for a text that is not an amount of money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoneyError;

impl fmt::Display for MoneyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an amount is a number with at most nine places and a currency, such as `2.50 USD`")
    }
}

impl core::error::Error for MoneyError {}

impl FromStr for Money {
    type Err = MoneyError;

    /// `2.50 USD`, `5 EUR`: at most nine places, and three capital letters.
    fn from_str(text: &str) -> Result<Self, MoneyError> {
        const PLACES: usize = 9;
        let (amount, currency) = text.split_once(' ').ok_or(MoneyError)?;
        let (whole, part) = amount.split_once('.').unwrap_or((amount, "0"));
        let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_code = currency.len() == 3 && currency.bytes().all(|byte| byte.is_ascii_uppercase());
        if !is_code || !are_digits(whole) || !are_digits(part) || part.len() > PLACES {
            return Err(MoneyError);
        }
        let digits = format!("{whole}{part:0<PLACES$}");
        let nanos = digits.parse().map_err(|_| MoneyError)?;
        Ok(Self { nanos, currency: currency.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::Money;

    #[test]
    fn an_amount_is_read_to_the_last_place() {
        let read = |text: &str| text.parse::<Money>().ok().map(|money| (money.nanos, money.currency));
        assert_eq!(read("2.50 USD"), Some((2_500_000_000, "USD".into())));
        assert_eq!(read("0.000000001 EUR"), Some((1, "EUR".into())));
        assert_eq!(read("18446744073 USD"), Some((18_446_744_073_000_000_000, "USD".into())));
        let wrong = [
            "",
            "5",
            "5USD",
            "5 usd",
            "5 USDT",
            "-5 USD",
            "+5 USD",
            "5. USD",
            ".5 USD",
            "1.0000000001 USD",
            "5  USD",
        ];
        for text in wrong.into_iter().chain(["18446744074 USD", "1e9 USD", "٥ USD"]) {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
