//! Lines of JSON (NDJSON), read piece by piece and within bounds.

use crate::sse::{EVENT_BYTES_MAX, TooLong};

/// Reads a stream of lines.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    line: Vec<u8>,
}

impl Lines {
    /// Every line that these bytes complete; blank ones are passed over.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut lines = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + part.len() > EVENT_BYTES_MAX {
                return Err(TooLong);
            }
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                lines.extend(self.take());
            }
        }
        Ok(lines)
    }

    /// The last line, where no line feed ends it.
    pub(crate) fn end(mut self) -> Option<String> {
        self.take()
    }

    fn take(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }
}
