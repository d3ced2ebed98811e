//! Server-sent events (WHATWG HTML, section 9.2), read piece by piece and within bounds.
//!
//! Our own because what we need is small and the bound is the point. Only `data` is kept: both wires repeat
//! the event's name inside it.

/// The most bytes that one event, and so one line, may have.
pub(crate) const EVENT_BYTES_MAX: usize = 8 << 20;

/// A line or an event had more than [`EVENT_BYTES_MAX`] bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Reads a stream of events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_cr: bool,
    started: bool,
}

impl Events {
    /// The data of every event that these bytes complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut events = Vec::new();
        for part in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            self.part(part, &mut events)?;
        }
        Ok(events)
    }

    /// The data of an event that the end of the stream cut off before its blank line. The standard drops it;
    /// some servers end so on purpose, and whoever reads it must bear half an event.
    pub(crate) fn end(mut self) -> Option<String> {
        if !self.line.is_empty() {
            self.field().ok()?;
        }
        self.take()
    }

    /// A run of bytes of which at most the last ends a line.
    fn part(&mut self, part: &[u8], events: &mut Vec<String>) -> Result<(), TooLong> {
        let after_cr = std::mem::take(&mut self.after_cr);
        let (text, ending) = match part.split_last() {
            Some((end @ (b'\n' | b'\r'), text)) => (text, Some(*end)),
            _ => (part, None),
        };
        if after_cr && text.is_empty() && ending == Some(b'\n') {
            return Ok(());
        }
        if self.line.len() + text.len() > EVENT_BYTES_MAX {
            return Err(TooLong);
        }
        self.line.extend_from_slice(text);
        self.after_cr = ending == Some(b'\r');
        if ending.is_none() {
            return Ok(());
        }
        if !std::mem::replace(&mut self.started, true)
            && let Some(rest) = self.line.strip_prefix("\u{feff}".as_bytes())
        {
            self.line = rest.to_vec();
        }
        if self.line.is_empty() {
            events.extend(self.take());
            return Ok(());
        }
        self.field()
    }

    /// The line is one field of the event.
    fn field(&mut self) -> Result<(), TooLong> {
        let line = std::mem::take(&mut self.line);
        let value = match line.strip_prefix(b"data") {
            Some([]) => &[],
            Some([b':', b' ', value @ ..] | [b':', value @ ..]) => value,
            _ => return Ok(()),
        };
        if self.data.len() + value.len() > EVENT_BYTES_MAX {
            return Err(TooLong);
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
        Ok(())
    }

    /// None where the data is blank. The standard dispatches that too; no wire says anything with it, and
    /// some servers keep a connection alive so.
    fn take(&mut self) -> Option<String> {
        let data = std::mem::take(&mut self.data);
        self.has_data = false;
        (!data.trim_ascii().is_empty()).then(|| String::from_utf8_lossy(&data).into_owned())
    }
}

#[cfg(test)]
mod tests;
