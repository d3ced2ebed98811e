//! Server-sent events (WHATWG HTML, section 9.2), read piece by piece and within a bound. Bytes that are no
//! UTF-8 are replaced, as the standard has it; a character may be torn between two pieces.

use super::StreamMessage;

/// The longest id of an event that is kept, in bytes: each event after it has a copy.
const ID_BYTES_MAX: usize = 1 << 10;

/// A line or an event is longer than the bound.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Reads a stream of events.
#[derive(Debug)]
pub(super) struct Events {
    bytes_max: usize,
    line: Vec<u8>,
    name: String,
    data: String,
    has_data: bool,
    /// The id of the last event that had one.
    id: String,
    is_after_cr: bool,
    is_begun: bool,
}

impl Events {
    /// `bytes_max` bounds a line, and an event.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            line: Vec::new(),
            name: String::new(),
            data: String::new(),
            has_data: false,
            id: String::new(),
            is_after_cr: false,
            is_begun: false,
        }
    }

    /// The events that these bytes complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<StreamMessage>, TooLong> {
        let mut events = Vec::new();
        for part in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let (text, end) = match part.split_last() {
                Some((end @ (b'\n' | b'\r'), text)) => (text, Some(*end)),
                _ => (part, None),
            };
            // The second half of an end that was torn.
            if std::mem::take(&mut self.is_after_cr) && text.is_empty() && end == Some(b'\n') {
                continue;
            }
            if self.line.len() + text.len() > self.bytes_max {
                return Err(TooLong);
            }
            self.line.extend_from_slice(text);
            if end.is_some() {
                self.is_after_cr = end == Some(b'\r');
                events.extend(self.line()?);
            }
        }
        Ok(events)
    }

    /// Whether an event or a line has begun and is not whole.
    pub(super) fn is_within(&self) -> bool {
        !self.line.is_empty() || self.has_data || !self.name.is_empty()
    }

    /// A line is whole: a field, or the end of an event.
    fn line(&mut self) -> Result<Option<StreamMessage>, TooLong> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        let line = if is_first { line.strip_prefix('\u{feff}').unwrap_or(&line) } else { &line };
        if line.is_empty() {
            return Ok(self.event());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "id" if !value.contains('\0') && value.len() <= ID_BYTES_MAX => value.clone_into(&mut self.id),
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(value);
                if self.data.len() > self.bytes_max {
                    return Err(TooLong);
                }
            }
            _ => {}
        }
        Ok(None)
    }

    /// The event, where it has data.
    fn event(&mut self) -> Option<StreamMessage> {
        let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
        let has_data = std::mem::take(&mut self.has_data);
        has_data.then(|| StreamMessage { name, id: self.id.clone(), data })
    }
}

#[cfg(test)]
mod tests {
    use super::{Events, StreamMessage, TooLong};

    fn read(pieces: &[&[u8]]) -> Vec<StreamMessage> {
        let mut events = Events::new(64);
        pieces.iter().flat_map(|piece| events.push(piece).unwrap()).collect()
    }

    fn event(name: &str, id: &str, data: &str) -> StreamMessage {
        StreamMessage { name: name.into(), id: id.into(), data: data.into() }
    }

    #[test]
    fn events_are_read_as_the_standard_has_it() {
        let stream = "\u{feff}: a comment\n\nevent: add\r\nid: 7\r\ndata: one\r\ndata:two\r\n\r\n\
                      data\n\nretry: 5\nid\nevent: none\n\ndata:  three\r\r";
        let expected = [event("add", "7", "one\ntwo"), event("", "7", ""), event("", "", " three")];
        assert_eq!(read(&[stream.as_bytes()]), expected);
        // However it is torn.
        let torn: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        assert_eq!(read(&torn), expected);
        // An event that is cut off in the middle is dropped.
        assert_eq!(read(&[b"data: one\n"]), []);
    }

    #[test]
    fn hostile_bytes_are_replaced_and_a_torn_character_is_not() {
        let snowman = "data: \u{2603}\n\n".as_bytes();
        assert_eq!(read(&[&snowman[..7], &snowman[7..]]), [event("", "", "\u{2603}")]);
        assert_eq!(read(&[b"data: \xff\xc3(\n\n"]), [event("", "", "\u{fffd}\u{fffd}(")]);
        assert_eq!(read(&[b"id: a\0b\ndata: x\n\n"]), [event("", "", "x")]);
    }

    #[test]
    fn lines_and_events_are_bounded() {
        let mut events = Events::new(64);
        assert_eq!(events.push(&[b'x'; 65]), Err(TooLong));
        let mut events = Events::new(64);
        let many = "data: 0123456789\n".repeat(6);
        assert_eq!(events.push(many.as_bytes()), Err(TooLong));
        // The control: as long, and in events of their own; comments without end are thrown away.
        let mut events = Events::new(64);
        assert_eq!(events.push("data: 0123456789\n\n".repeat(60).as_bytes()).unwrap().len(), 60);
        assert_eq!(events.push(":0123456789\n".repeat(600).as_bytes()), Ok(Vec::new()));
    }
}
