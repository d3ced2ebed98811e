//! Views: one text read in several ways, so that a spelling need not be listed to be found.
//!
//! Beside the bytes as they are there is a loose view, without what programs put between the characters of a value: line
//! breaks and indentation (Base64 is wrapped at 64 or 76 columns), quotes and backslashes (every escaping of JSON and of
//! shells, however often), colours of a terminal. The decoded view undoes percent-encoding as well, whichever characters
//! were encoded. What a view shows at a place depends on at most [`CONTEXT`] bytes before it, not on where reading began.

use crate::shape::CONTEXT;
use std::ops::Range;

/// What is left out between two characters of a value, at most, in bytes; a longer gap parts them.
const GAP_MAX: usize = 32;
/// Bytes that one character of a value may take in any view, with the gap before it.
pub(crate) const SPREAD_MAX: usize = GAP_MAX + 4;
/// Parameters of a colour, at most, in bytes.
const PARAMETERS_MAX: u8 = 16;

/// One way of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// The bytes as they are.
    Plain,
    /// Without white space, quotes, backslashes and colours.
    Loose,
    /// The same after percent-decoding.
    Decoded,
}

/// A byte as a view shows it.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) byte: u8,
    /// Where it stands in the text.
    pub(crate) place: Range<usize>,
    /// Whether too much was left out before it.
    pub(crate) parted: bool,
}

/// Reads a text through a view.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    view: View,
    bytes: &'a [u8],
    from: usize,
    at: usize,
    /// Whether nothing comes after `bytes`.
    end: bool,
    before: u8,
    color: Color,
    gap: usize,
}

/// Bytes with which nothing begins, and that change no other byte's meaning in any view.
#[derive(Debug)]
pub(crate) struct Dull([bool; 256]);

impl Dull {
    /// Those of which `begins` says that nothing begins with them.
    pub(crate) fn new(begins: impl Fn(u8) -> bool) -> Self {
        let mut dull = [false; 256];
        for (byte, dull) in (0..=u8::MAX).zip(&mut dull) {
            *dull = !begins(byte) && !matches!(byte, b'%' | b'\x1b');
        }
        Self(dull)
    }

    fn has(&self, byte: u8) -> bool {
        self.0.get(usize::from(byte)).copied().unwrap_or_default()
    }
}

/// How far a sequence of a terminal has been read (ECMA-48: ESC, `[`, parameters, a final byte).
#[derive(Debug, Clone, Copy)]
enum Color {
    None,
    Escape,
    Parameters(u8),
}

impl<'a> Reading<'a> {
    /// Shows what begins at `from` or later.
    pub(crate) fn new(view: View, bytes: &'a [u8], from: usize, end: bool) -> Self {
        let at = if view == View::Plain { from } else { from.saturating_sub(CONTEXT) };
        Self { view, bytes, from, at, end, before: 0, color: Color::None, gap: 0 }
    }

    /// Where reading ended: before an escape that is not complete yet, or at the end.
    pub(crate) fn stopped(&self) -> usize {
        self.at
    }

    /// Whether what comes next is too far from what was shown last.
    pub(crate) fn is_parted(&self) -> bool {
        self.gap > GAP_MAX
    }

    /// Goes on to the next byte that may be the first of something: what `dull` says is none is not shown, and neither is what
    /// is left out between. For a caller to whom nothing matters that was shown before.
    pub(crate) fn pass_over(&mut self, dull: &Dull) {
        if !matches!(self.color, Color::None) {
            return;
        }
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let skipped = rest.iter().position(|byte| !dull.has(*byte)).unwrap_or(rest.len());
        if let Some(last) = rest.get(..skipped).and_then(<[u8]>::last) {
            self.before = *last;
            self.at += skipped;
        }
    }

    /// The next byte and its length in the text.
    fn upcoming(&self) -> Option<(u8, usize)> {
        let rest = self.bytes.get(self.at..)?;
        match (self.view, rest) {
            (View::Decoded, [b'%', high, low, ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => Some((high << 4 | low, 3)),
                _ => Some((b'%', 1)),
            },
            (View::Decoded, [b'%'] | [b'%', _]) if !self.end => None,
            (_, [byte, ..]) => Some((*byte, 1)),
            (_, []) => None,
        }
    }

    fn leaves_out(&mut self, byte: u8) -> bool {
        let color = std::mem::replace(&mut self.color, Color::None);
        match (color, byte) {
            (Color::Escape, b'[') => self.color = Color::Parameters(PARAMETERS_MAX),
            (Color::Parameters(left), b' '..=b'?') if left > 0 => self.color = Color::Parameters(left - 1),
            (Color::Parameters(_), b'@'..=b'~') => {}
            (_, b'\x1b') => self.color = Color::Escape,
            (_, b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'\'' | b'\\') => {}
            (_, b'n' | b'r' | b't') => return self.before == b'\\',
            _ => return false,
        }
        true
    }
}

impl Iterator for Reading<'_> {
    type Item = Seen;

    fn next(&mut self) -> Option<Seen> {
        loop {
            let (byte, length) = self.upcoming()?;
            let place = self.at..self.at + length;
            self.at = place.end;
            if self.view == View::Plain {
                return Some(Seen { byte, place, parted: false });
            }
            let left_out = self.leaves_out(byte);
            self.before = byte;
            if left_out {
                self.gap += length;
                continue;
            }
            let parted = self.is_parted();
            self.gap = 0;
            if place.start >= self.from {
                return Some(Seen { byte, place, parted });
            }
        }
    }
}

/// The bytes as the loose view shows them.
pub(crate) fn loosen(bytes: &[u8]) -> Vec<u8> {
    Reading::new(View::Loose, bytes, 0, true).map(|seen| seen.byte).collect()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}
