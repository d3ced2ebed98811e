//! Sizes and times as people write them. Exact and case-sensitive: `KB` is 1,000 bytes, `KiB` is 1,024, and
//! `kb` is nothing.

use alloc::string::{String, ToString};

const SIZES: [(&str, u64); 9] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];
const TIMES: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

/// Why a size or a time cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// It does not begin with a whole number.
    #[error("`{0}` does not begin with a whole number")]
    Number(String),
    /// Its unit does not exist.
    #[error("unknown unit `{unit}`: {hint}")]
    Unit {
        /// The unit as it was written.
        unit: String,
        /// What there is instead.
        hint: String,
    },
    /// A time has no unit.
    #[error("`{0}` has no unit: write `ms`, `s`, `m` or `h`")]
    Missing(String),
    /// It does not fit 64 bits.
    #[error("`{0}` is too large")]
    TooLarge(String),
}

/// Reads a size in bytes, such as `10 MiB`; a bare number is bytes.
///
/// # Errors
/// When it is no whole number with a known unit.
pub fn size(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split(text)?;
    if unit.is_empty() { Ok(number) } else { scale(text, number, unit, &SIZES) }
}

/// Reads a time in milliseconds, such as `10 m`.
///
/// # Errors
/// When it is no whole number with a known unit; a bare number is an error, too.
pub fn time(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split(text)?;
    if unit.is_empty() {
        Err(UnitError::Missing(text.to_string()))
    } else {
        scale(text, number, unit, &TIMES)
    }
}

fn split(text: &str) -> Result<(u64, &str), UnitError> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    if digits.is_empty() {
        return Err(UnitError::Number(text.to_string()));
    }
    let number = digits.parse().map_err(|_| UnitError::TooLarge(text.to_string()))?;
    Ok((number, unit.strip_prefix(' ').unwrap_or(unit)))
}

fn scale(text: &str, number: u64, unit: &str, units: &[(&str, u64)]) -> Result<u64, UnitError> {
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        let hint = match units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
            Some((name, _)) => alloc::format!("did you mean `{name}`?"),
            None => {
                let names: alloc::vec::Vec<_> =
                    units.iter().map(|(name, _)| alloc::format!("`{name}`")).collect();
                alloc::format!("there are {}", names.join(", "))
            }
        };
        return Err(UnitError::Unit { unit: unit.to_string(), hint });
    };
    number.checked_mul(*factor).ok_or_else(|| UnitError::TooLarge(text.to_string()))
}
