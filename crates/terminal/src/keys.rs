//! Turns the bytes that a terminal sends into keys. The terminal's own replies to queries and every unknown
//! sequence are thrown away, so that text which makes a terminal answer cannot type.

/// The longest escape sequence that is looked for, in bytes.
const SEQUENCE_BYTES_MAX: usize = 256;
/// The longest paste that is taken whole, in bytes.
const PASTE_BYTES_MAX: usize = 1 << 20;
const PASTE_END: &[u8] = b"\x1b[201~";

/// A key, or a paste.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Paste(String),
    Enter,
    /// Alt-Enter, or Ctrl-J: a new line in the message.
    NewLine,
    Tab,
    Backspace,
    Delete,
    Left,
    Right,
    WordLeft,
    WordRight,
    Up,
    Down,
    Home,
    End,
    /// Ctrl-U.
    KillBefore,
    /// Ctrl-K.
    KillAfter,
    /// Ctrl-W, Alt-Backspace.
    KillWord,
    /// Ctrl-L.
    Redraw,
    /// Ctrl-D.
    Eof,
    /// Escape, alone.
    Escape,
}

/// Turns bytes into keys, also when a key is split between reads.
#[derive(Debug, Default)]
pub(super) struct Keys {
    rest: Vec<u8>,
    paste: Option<Vec<u8>>,
    /// Whether the Escape in `rest` was given as a key. It still begins a sequence when the rest of one
    /// follows late, so that no part of a paste becomes typed text.
    is_given: bool,
}

/// The meaning of the first bytes.
enum Decoded {
    /// A key of this many bytes; with `None`, bytes to throw away.
    Key(usize, Option<Key>),
    Paste(usize),
    /// More bytes must come.
    Part,
}

impl Keys {
    pub(super) const fn new() -> Self {
        Self { rest: Vec::new(), paste: None, is_given: false }
    }

    /// Whether more must come before a paste has ended.
    pub(super) fn is_pasting(&self) -> bool {
        self.paste.is_some()
    }

    /// Whether more must come before a key or a paste has ended.
    pub(super) fn is_cut(&self) -> bool {
        self.paste.is_some() || !self.rest.is_empty()
    }

    /// Whether an Escape waits to be a key, or the beginning of a sequence.
    pub(super) fn is_escape(&self) -> bool {
        self.rest == [0x1b] && self.paste.is_none() && !self.is_given
    }

    /// Gives a lone Escape as a key, because nothing has followed it.
    pub(super) fn escape(&mut self) -> Option<Key> {
        let is_escape = self.is_escape();
        self.is_given |= is_escape;
        is_escape.then_some(Key::Escape)
    }

    /// Takes the bytes of a read and gives the keys in them.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Key> {
        let mut keys = Vec::new();
        // A lone Escape was a key of its own, unless the next bytes make a sequence of it. Alt-Enter comes at
        // once: after an Escape that was given, Enter is Enter.
        let is_one = match bytes.first() {
            Some(b'[' | b'O') => true,
            Some(b'\r' | b'\n') => !self.is_given,
            _ => false,
        };
        if self.rest == [0x1b] && !is_one {
            keys.extend(self.escape());
            self.rest.clear();
        }
        self.is_given = false;
        self.rest.extend_from_slice(bytes);
        loop {
            if self.paste.is_some() {
                match self.pasted() {
                    Some(text) => keys.push(Key::Paste(text)),
                    None => return keys,
                }
            }
            match found(&self.rest) {
                Decoded::Key(length, key) => {
                    self.rest.drain(..length);
                    keys.extend(key);
                }
                Decoded::Paste(length) => {
                    self.rest.drain(..length);
                    self.paste = Some(Vec::new());
                }
                Decoded::Part if self.rest.len() > SEQUENCE_BYTES_MAX => self.rest.clear(),
                Decoded::Part => return keys,
            }
        }
    }

    /// Moves the bytes that belong to the paste. Gives the paste's text when the paste has ended.
    fn pasted(&mut self) -> Option<String> {
        let paste = self.paste.as_mut()?;
        let end = self.rest.windows(PASTE_END.len()).position(|window| window == PASTE_END);
        // The end mark may be cut in two.
        let take = end.unwrap_or(self.rest.len().saturating_sub(PASTE_END.len() - 1));
        let room = PASTE_BYTES_MAX.saturating_sub(paste.len());
        paste.extend(self.rest.drain(..take).take(room));
        end?;
        self.rest.drain(..PASTE_END.len());
        let paste = self.paste.take()?;
        Some(String::from_utf8_lossy(&paste).into_owned())
    }
}

fn found(bytes: &[u8]) -> Decoded {
    let Some(&first) = bytes.first() else { return Decoded::Part };
    match first {
        0x1b => escape(bytes),
        0..0x20 | 0x7f => Decoded::Key(1, control(first)),
        0x20..0x80 => Decoded::Key(1, Some(Key::Char(char::from(first)))),
        _ => letter(bytes, first),
    }
}

fn control(byte: u8) -> Option<Key> {
    Some(match byte {
        0x01 => Key::Home,
        0x02 => Key::Left,
        0x04 => Key::Eof,
        0x05 => Key::End,
        0x06 => Key::Right,
        b'\t' => Key::Tab,
        b'\n' => Key::NewLine,
        0x0b => Key::KillAfter,
        0x0c => Key::Redraw,
        b'\r' => Key::Enter,
        0x0e => Key::Down,
        0x10 => Key::Up,
        0x15 => Key::KillBefore,
        0x17 => Key::KillWord,
        0x08 | 0x7f => Key::Backspace,
        _ => return None,
    })
}

/// A character of several bytes.
fn letter(bytes: &[u8], first: u8) -> Decoded {
    let length = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Decoded::Key(1, None),
    };
    match bytes.get(..length) {
        None => Decoded::Part,
        Some(letter) => match std::str::from_utf8(letter) {
            // A control character of two bytes (U+0080 to U+009F) acts on some terminals as an escape does.
            Ok(letter) => {
                Decoded::Key(length, letter.chars().next().filter(|c| !c.is_control()).map(Key::Char))
            }
            Err(_) => Decoded::Key(1, None),
        },
    }
}

fn escape(bytes: &[u8]) -> Decoded {
    match bytes.get(1) {
        None => Decoded::Part,
        Some(b'[') => sequence(bytes),
        Some(b'O') => match bytes.get(2) {
            None => Decoded::Part,
            Some(&end) => Decoded::Key(3, arrow(end, false)),
        },
        // A string that a terminal sends. It ends with BEL or ESC \.
        Some(b']' | b'P' | b'_' | b'^' | b'X') => {
            let end = bytes.iter().position(|byte| *byte == 0x07).map(|at| at + 1);
            let end =
                end.or_else(|| bytes.windows(2).skip(1).position(|pair| pair == b"\x1b\\").map(|at| at + 3));
            end.map_or(Decoded::Part, |length| Decoded::Key(length, None))
        }
        Some(b'\r' | b'\n') => Decoded::Key(2, Some(Key::NewLine)),
        Some(b'b') => Decoded::Key(2, Some(Key::WordLeft)),
        Some(b'f') => Decoded::Key(2, Some(Key::WordRight)),
        Some(0x7f) => Decoded::Key(2, Some(Key::KillWord)),
        Some(_) => Decoded::Key(2, None),
    }
}

/// `ESC [`, parameters, and a last byte.
fn sequence(bytes: &[u8]) -> Decoded {
    let body = bytes.get(2..).unwrap_or_default();
    let Some(end) = body.iter().position(|byte| matches!(byte, 0x40..=0x7e)) else { return Decoded::Part };
    let length = end + 3;
    let (parameters, last) =
        (body.get(..end).unwrap_or_default(), body.get(end).copied().unwrap_or_default());
    let key = match (parameters, last) {
        (b"200", b'~') => return Decoded::Paste(length),
        (b"1" | b"7", b'~') => Some(Key::Home),
        (b"4" | b"8", b'~') => Some(Key::End),
        (b"3", b'~') => Some(Key::Delete),
        // Enter with a modifier, on terminals that report the modifier.
        (b"13;2" | b"13;3" | b"13;5", b'u') | (b"27;2;13" | b"27;3;13" | b"27;5;13", b'~') => {
            Some(Key::NewLine)
        }
        (b"", end) => arrow(end, false),
        (b"1;3" | b"1;5", end) => arrow(end, true),
        _ => None,
    };
    Decoded::Key(length, key)
}

fn arrow(end: u8, by_word: bool) -> Option<Key> {
    Some(match (end, by_word) {
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'C', false) => Key::Right,
        (b'C', true) => Key::WordRight,
        (b'D', false) => Key::Left,
        (b'D', true) => Key::WordLeft,
        (b'H', _) => Key::Home,
        (b'F', _) => Key::End,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Key, Keys};

    fn check(bytes: &str, expected: &[Key]) {
        let mut whole = Keys::default();
        assert_eq!(whole.push(bytes.as_bytes()), expected);
        // A read may end anywhere except after a lone Escape.
        for cut in 1..bytes.len() {
            if bytes.as_bytes()[cut - 1] == 0x1b && !matches!(bytes.as_bytes()[cut], b'[' | b'O' | b'\r') {
                continue;
            }
            let mut parts = Keys::default();
            let mut keys = parts.push(&bytes.as_bytes()[..cut]);
            keys.extend(parts.push(&bytes.as_bytes()[cut..]));
            assert_eq!(keys, expected, "cut at {cut}");
        }
    }

    #[test]
    fn letters_and_keys() {
        check("aä漢\r", &[Key::Char('a'), Key::Char('ä'), Key::Char('漢'), Key::Enter]);
        check("\x1b[A\x1bOB\x1b[3~\x1b[1;5D", &[Key::Up, Key::Down, Key::Delete, Key::WordLeft]);
        check("\x1b\rx", &[Key::NewLine, Key::Char('x')]);
        check("\u{8f}\u{9b}2Jx", &[Key::Char('2'), Key::Char('J'), Key::Char('x')]);
    }

    #[test]
    fn a_paste_is_one_key_whatever_is_in_it() {
        check("\x1b[200~one\rtwo\x1b[A\x1b[201~!", &[Key::Paste("one\rtwo\x1b[A".into()), Key::Char('!')]);
    }

    #[test]
    fn what_a_terminal_answers_is_no_typing() {
        check("\x1b[?62;1c\x1b[12;40R\x1b]11;rgb:0/0/0\x07\x1bP1$r0m\x1b\\\x1b[8;24;80ty", &[Key::Char('y')]);
    }

    #[test]
    fn a_lone_escape_is_a_key_and_takes_nothing_with_it() {
        let mut keys = Keys::default();
        assert_eq!(keys.push(b"\x1b"), []);
        assert_eq!(keys.push(b"h"), [Key::Escape, Key::Char('h')]);
        assert_eq!(keys.push(b"\x1b"), []);
        assert_eq!((keys.escape(), keys.escape()), (Some(Key::Escape), None));
        assert_eq!(keys.push(b"h"), [Key::Char('h')]);
    }

    #[test]
    fn enter_after_an_escape_that_was_given_is_enter() {
        let mut keys = Keys::default();
        assert_eq!(keys.push(b"\x1b"), []);
        assert_eq!(keys.escape(), Some(Key::Escape));
        assert_eq!(keys.push(b"\r"), [Key::Enter]);
        // The control: what comes at once is Alt-Enter, also in two reads.
        assert_eq!(keys.push(b"\x1b"), []);
        assert_eq!(keys.push(b"\r"), [Key::NewLine]);
    }

    #[test]
    fn a_paste_whose_beginning_is_late_is_still_a_paste() {
        let mut keys = Keys::default();
        assert_eq!(keys.push(b"\x1b"), []);
        assert_eq!(keys.escape(), Some(Key::Escape));
        assert_eq!(keys.push(b"[200~y\r\x1b[201~"), [Key::Paste("y\r".into())]);
    }
}
