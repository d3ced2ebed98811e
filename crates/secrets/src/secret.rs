//! One secret value.

use std::fmt;
use zeroize::Zeroizing;

/// A secret value. It is zeroised when dropped, prints as `[secret]`, and can be neither cloned, compared nor
/// serialised; [`expose`](Self::expose) is the one way to its text.
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes the value over; the caller's string is not copied.
    #[must_use]
    pub fn new(value: String) -> Self {
        Self(Zeroizing::new(value))
    }

    /// The value itself, for the one who sends it to where it belongs.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self::new(value)
    }
}
