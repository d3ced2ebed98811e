//! Frames, in which a program and the runtime speak: the length as four bytes, the highest first, and so many
//! bytes of JSON, an object. The bytes of a program are foreign: at most one frame of them is kept.
//!
//! The program's first frame is `{"ready":1}`. Each question has a `number`, and so has its answer.

use bytes::{Buf as _, BytesMut};
use serde_json::{Map, Value};

/// The most bytes of JSON in a frame.
pub const FRAME_BYTES_MAX: usize = 1 << 20;
/// The bytes of a length.
const LENGTH: usize = 4;
/// The version of the protocol.
const VERSION: u64 = 1;

/// The content of a frame.
pub(crate) type Object = Map<String, Value>;

/// Why a program may not write this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    /// It would have to be kept.
    #[error("it began a frame of {0} bytes, and the most is {FRAME_BYTES_MAX}")]
    TooLong(u32),
    /// No JSON, or another document.
    #[error("it wrote something else than {0}")]
    Other(&'static str),
    /// An answer without a question.
    #[error("it answered {0}, which was not asked")]
    Unasked(u64),
}

/// A document as a frame; `None` when it is too long for one.
pub(crate) fn frame(document: &Object) -> Option<Vec<u8>> {
    let json = serde_json::to_vec(document).ok().filter(|json| json.len() <= FRAME_BYTES_MAX)?;
    let length = u32::try_from(json.len()).ok()?;
    Some([&length.to_be_bytes(), json.as_slice()].concat())
}

/// The bytes of a stream of frames that were read and not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    pub(crate) bytes: BytesMut,
}

impl Frames {
    /// The first frame's bytes, where it is whole.
    ///
    /// # Errors
    /// As soon as its length is too much.
    pub(crate) fn next(&mut self) -> Result<Option<BytesMut>, FrameError> {
        let Some(length) = self.bytes.first_chunk::<LENGTH>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length);
        let most = usize::try_from(length).ok().filter(|length| *length <= FRAME_BYTES_MAX);
        let Some(length) = most else { return Err(FrameError::TooLong(length)) };
        if self.bytes.len() < LENGTH + length {
            return Ok(None);
        }
        self.bytes.advance(LENGTH);
        Ok(Some(self.bytes.split_to(length)))
    }
}

/// Reads the first frame that a program writes.
///
/// # Errors
/// When it is something else, or of another version.
pub(crate) fn ready(json: &[u8]) -> Result<Object, FrameError> {
    let object = object(json).filter(|object| object.get("ready").and_then(Value::as_u64) == Some(VERSION));
    object.ok_or(FrameError::Other("{\"ready\":1}, which comes first"))
}

/// Reads a frame as the answer to a question, and takes the question's number out of it. `form` is the form
/// that an answer has, for the error.
///
/// # Errors
/// When it has no number.
pub(crate) fn answer(json: &[u8], form: &'static str) -> Result<(u64, Object), FrameError> {
    let mut object = object(json).ok_or(FrameError::Other(form))?;
    let number = object.remove("number").and_then(|number| number.as_u64());
    Ok((number.ok_or(FrameError::Other(form))?, object))
}

/// An object in which no name stands twice: readers differ about the value that counts then.
fn object(json: &[u8]) -> Option<Object> {
    struct Once;
    impl<'de> serde::de::Visitor<'de> for Once {
        type Value = Object;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
            let mut object = Object::new();
            while let Some((name, value)) = map.next_entry::<String, Value>()? {
                if object.insert(name, value).is_some() {
                    return Err(serde::de::Error::custom("a name stands twice"));
                }
            }
            Ok(object)
        }
    }
    let mut reader = serde_json::Deserializer::from_slice(json);
    let object = serde::Deserializer::deserialize_map(&mut reader, Once).ok()?;
    reader.end().ok().map(|()| object)
}

#[cfg(test)]
mod tests;
