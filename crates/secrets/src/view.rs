//! Views: one text read in several ways, so that a spelling need not be listed to be found.
//!
//! Beside the bytes as they are there is a loose view, without what programs put between the characters of a
//! value: line breaks and indentation (Base64 is wrapped at 64 or 76 columns), quotes and backslashes (every
//! escaping of JSON and of shells, however often), colours of a terminal. The escaped view undoes the escapes
//! of JSON and HTML as well, and the decoded one percent-encoding, too, whichever characters were encoded:
//! each library has a set of its own. They are two, for a value may hold a percent sign itself. Where an
//! ampersand may be escaped itself, what comes then is read both as more of an escape and as letters of a
//! value. Two more are in lower case, for hexadecimal whose digits are in both. What a view shows at a place
//! depends on at most [`CONTEXT`] bytes before it, not on where reading began.

use crate::escape::{self, Depth, ESCAPE_MAX, Escape};
use std::ops::Range;

/// How many bytes before a place what is shown there depends on: an escape, and a colour behind it.
pub(crate) const CONTEXT: usize = ESCAPE_MAX + 32;

/// What is left out between two characters of a value, at most, in bytes; a longer gap parts them.
pub(crate) const GAP_MAX: usize = 32;
/// Bytes that one character of a value may take in any view, with the gap before it.
pub(crate) const SPREAD_MAX: usize = GAP_MAX + ESCAPE_MAX;
/// Parameters of a colour, at most, in bytes.
const PARAMETERS_MAX: u8 = 16;

/// One way of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// The bytes as they are.
    Plain,
    /// Without white space, quotes, backslashes and colours.
    Loose,
    /// The same, with escapes and references undone, also where they are escaped twice.
    Escaped,
    /// The same, undone once: of an ampersand that is escaped, and letters of a value behind it, the other
    /// makes one character.
    EscapedOnce,
    /// The same after percent-decoding.
    Decoded,
    /// Percent-decoded, with escapes and references undone, and with all that stands between: for values of
    /// which a loose view leaves too much out, such as a short password with quotes in it.
    Strict,
    /// The same, undone once.
    StrictOnce,
    /// Like `Loose`, in lower case: for hexadecimal in both cases.
    LooseFolded,
    /// Like `Decoded`, in lower case.
    DecodedFolded,
}

/// The digits of the shortest value in hexadecimal.
pub(crate) const HEX_MIN: usize = 16;

impl View {
    /// The views that can show something else than the ones before them.
    pub(crate) fn of(bytes: &[u8], from: usize, has_strict: bool) -> impl Iterator<Item = Self> {
        let seen = bytes.get(from.saturating_sub(CONTEXT)..).unwrap_or_default();
        let escaped = escape::may_be_in(seen).then_some(Self::Escaped);
        let once = (escaped.is_some() && escape::may_be_twice(seen)).then_some(Self::EscapedOnce);
        let decoded = seen.contains(&b'%').then_some(Self::Decoded);
        let strict = (has_strict && (escaped.is_some() || decoded.is_some())).then_some(Self::Strict);
        let folded = may_be_mixed_hex(seen).then_some(Self::LooseFolded);
        let undone = (escaped.is_some() || decoded.is_some()).then_some(Self::DecodedFolded);
        [Self::Plain, Self::Loose]
            .into_iter()
            .chain(escaped)
            .chain(once)
            .chain(decoded)
            .chain(strict)
            .chain(once.and(strict).map(|_| Self::StrictOnce))
            .chain(folded)
            .chain(undone)
    }

    fn is_loose(self) -> bool {
        !matches!(self, Self::Plain | Self::Strict | Self::StrictOnce)
    }

    fn depth(self) -> Depth {
        if matches!(self, Self::EscapedOnce | Self::StrictOnce) { Depth::Once } else { Depth::Twice }
    }

    /// Whether it shows everything in lower case.
    pub(crate) fn is_folded(self) -> bool {
        matches!(self, Self::LooseFolded | Self::DecodedFolded)
    }
}

/// Whether a text has digits of hexadecimal in both cases, with nothing between them but what stands between
/// bytes or is left out, and enough of them for a value, or as many as there are at its end. As long as they
/// are in one case, other views know them.
fn may_be_mixed_hex(text: &[u8]) -> bool {
    let (mut digits, mut upper, mut lower) = (0, false, false);
    for byte in text {
        match byte {
            b'0'..=b'9' => digits += 1,
            b'a'..=b'f' => (digits, lower) = (digits + 1, true),
            b'A'..=b'F' => (digits, upper) = (digits + 1, true),
            b':' | b'-' | b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'\'' | b'\\' | b'n' | b'r' | b't' => {}
            // A colour as programs print it, whose parameters are digits, too.
            b'\x1b' | b'[' | b';' | b'm' | b'K' => {}
            _ => (digits, upper, lower) = (0, false, false),
        }
        if digits >= HEX_MIN && upper && lower {
            return true;
        }
    }
    upper && lower
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
    /// How many bytes of the character that is escaped at `at` were shown.
    shown: usize,
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
            *dull = !begins(byte) && !escape::begins(byte) && !matches!(byte, b'%' | b'\x1b');
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
        Self { view, bytes, from, at, end, shown: 0, before: 0, color: Color::None, gap: 0 }
    }

    /// Where reading ended: before an escape that is not complete yet, or at the end.
    pub(crate) fn stopped(&self) -> usize {
        self.at
    }

    /// Whether what comes next is too far from what was shown last.
    pub(crate) fn is_parted(&self) -> bool {
        self.gap > GAP_MAX
    }

    /// Goes on to the next byte that may be the first of something: what `dull` says is none is not shown,
    /// and neither is what is left out between. For a caller to whom nothing matters that was shown before.
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

    /// The next byte and its length in the text, which the last of a character has.
    fn upcoming(&self) -> Option<(u8, usize)> {
        let rest = self.bytes.get(self.at..)?;
        let first = *rest.first()?;
        if matches!(first, b'%' | b'\\' | b'&') { self.undone(first, rest) } else { Some((first, 1)) }
    }

    /// The same for what may begin an escape; few bytes do.
    #[inline(never)]
    fn undone(&self, first: u8, rest: &[u8]) -> Option<(u8, usize)> {
        match (self.view, first) {
            (View::Plain | View::Loose | View::LooseFolded, _)
            | (View::Escaped | View::EscapedOnce, b'%') => Some((first, 1)),
            (_, b'%') => self.percent(rest),
            _ => match escape::read(rest, self.view.depth(), self.end) {
                Escape::Of(c, length) => {
                    let last = c.len_utf8() - 1;
                    let byte = *c.encode_utf8(&mut [0; 4]).as_bytes().get(self.shown)?;
                    Some((byte, if self.shown == last { length } else { 0 }))
                }
                Escape::No => Some((first, 1)),
                Escape::More => None,
            },
        }
    }

    fn percent(&self, rest: &[u8]) -> Option<(u8, usize)> {
        match rest {
            [_, high, low, ..] => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => Some((high << 4 | low, 3)),
                _ => Some((b'%', 1)),
            },
            _ if !self.end => None,
            _ => Some((b'%', 1)),
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
            self.shown = if length == 0 { self.shown + 1 } else { 0 };
            let left_out = self.view.is_loose() && self.leaves_out(byte);
            self.before = byte;
            if left_out {
                self.gap += length;
                continue;
            }
            let parted = self.is_parted();
            self.gap = 0;
            if place.start >= self.from {
                let byte = if self.view.is_folded() { byte.to_ascii_lowercase() } else { byte };
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
