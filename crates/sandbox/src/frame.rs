//! Frames, in which an extension and the runtime speak: the length as four bytes, the highest first, and so
//! many bytes of JSON. What an extension writes is foreign: nothing is kept of it beyond one frame.

use bailey_kernel::extension::Answer;
use bytes::{Buf as _, BytesMut};
use serde::Deserialize;
use serde_json::Value;

/// The most bytes of JSON in a frame.
pub const FRAME_BYTES_MAX: usize = 1 << 20;
/// The bytes of a length.
const LENGTH: usize = 4;
/// The version of what is spoken.
const VERSION: u32 = 1;

/// Why something that an extension wrote is not what it may write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    /// It would have to be kept.
    #[error("it began a frame of {0} bytes, and the most is {FRAME_BYTES_MAX}")]
    TooLong(u32),
    /// No JSON, or another document.
    #[error("it wrote something else than {0}")]
    Other(&'static str),
}

/// What it says of itself first.
#[derive(Debug, Deserialize)]
struct Ready {
    ready: u32,
}

/// Its answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Said {
    /// The question's number.
    pub(crate) number: u64,
    pub(crate) answer: Word,
    #[serde(default)]
    pub(crate) reason: String,
}

/// What it may answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    Allow,
    Deny,
    Review,
    Pass,
}

impl From<Word> for Answer {
    fn from(word: Word) -> Self {
        match word {
            Word::Allow => Self::Allow,
            Word::Deny => Self::Deny,
            Word::Review => Self::Review,
            Word::Pass => Self::Pass,
        }
    }
}

/// A document as a frame; none when it is too long for one.
pub(crate) fn frame(document: &Value) -> Option<Vec<u8>> {
    let json = serde_json::to_vec(document).ok().filter(|json| json.len() <= FRAME_BYTES_MAX)?;
    let length = u32::try_from(json.len()).ok()?;
    Some([&length.to_be_bytes(), json.as_slice()].concat())
}

/// What was read of a stream of frames and not taken yet.
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

/// A frame's JSON, where that is an object: serde takes an array for one, too.
fn object(json: &[u8]) -> &[u8] {
    if json.trim_ascii_start().starts_with(b"{") { json } else { &[] }
}

/// Reads a frame as the first that an extension writes.
///
/// # Errors
/// When it is not that, or of another version.
pub(crate) fn ready(json: &[u8]) -> Result<(), FrameError> {
    match serde_json::from_slice(object(json)) {
        Ok(Ready { ready: VERSION }) => Ok(()),
        _ => Err(FrameError::Other("{\"ready\":1}, which comes first")),
    }
}

/// Reads a frame as an answer.
///
/// # Errors
/// When it is none.
pub(crate) fn said(json: &[u8]) -> Result<Said, FrameError> {
    serde_json::from_slice(object(json)).map_err(|_| {
        FrameError::Other("{\"number\":…,\"answer\":\"allow|deny|review|pass\",\"reason\":\"…\"}")
    })
}

#[cfg(test)]
mod tests;
