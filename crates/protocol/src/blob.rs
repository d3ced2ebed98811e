//! Bytes of any kind inside JSON.

use alloc::{string::String, vec::Vec};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use core::fmt;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Bytes; in JSON a string where they are valid UTF-8, else `{"base64": "…"}` (RFC 4648, padded).
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Blob(pub Vec<u8>);

impl Blob {
    /// The bytes as text, with U+FFFD where they are not UTF-8.
    #[must_use]
    pub fn lossy(&self) -> alloc::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} bytes)", self.0.len())
    }
}

impl From<Vec<u8>> for Blob {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<&str> for Blob {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Form<'a> {
    Text(alloc::borrow::Cow<'a, str>),
    Bytes { base64: alloc::borrow::Cow<'a, str> },
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match core::str::from_utf8(&self.0) {
            Ok(text) => Form::Text(text.into()).serialize(serializer),
            Err(_) => Form::Bytes { base64: STANDARD.encode(&self.0).into() }.serialize(serializer),
        }
    }
}

/// Writes all bytes as base64, even valid UTF-8. It is for values that may have their maximum length: in
/// text, one byte may become six.
pub(crate) fn as_base64<S: Serializer>(bytes: &Blob, serializer: S) -> Result<S::Ok, S::Error> {
    Form::Bytes { base64: STANDARD.encode(&bytes.0).into() }.serialize(serializer)
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Form::deserialize(deserializer)? {
            Form::Text(text) => Ok(Self(text.into_owned().into_bytes())),
            Form::Bytes { base64 } => {
                STANDARD.decode(base64.as_bytes()).map(Self).map_err(|_| D::Error::custom("expected base64"))
            }
        }
    }
}
