//! Private key blocks (RFC 7468, and OpenPGP's armour): from their first line to their last.

use crate::shape::ShapeMatch;

pub(crate) const BEGIN: &str = "-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";

/// The longest label between the dashes, such as `ENCRYPTED PRIVATE KEY`.
const LABEL_MAX: usize = 40;

/// How far after the first line key material must begin; before it may stand a few header lines.
const HEADERS_MAX: usize = 160;

/// Base64 characters in a row that are taken for key material.
const MATERIAL_MIN: usize = 16;

/// The longest body that is swallowed when no last line comes: four times an RSA key of 16,384 bits.
const BODY_MAX: usize = 64 << 10;

/// Decides by what follows [`BEGIN`] whether a private key follows. The line alone, as in a text about keys,
/// is none.
pub(crate) fn look(body: &[u8]) -> ShapeMatch {
    let label = body.iter().take(LABEL_MAX).take_while(|byte| is_label(**byte)).count();
    let (Some(name), Some(rest)) = (body.get(..label), body.get(label..)) else { return ShapeMatch::No };
    if !rest.starts_with(DASHES) {
        return if DASHES.starts_with(rest) { ShapeMatch::More } else { ShapeMatch::No };
    }
    if !(name.ends_with(b"PRIVATE KEY") || name.ends_with(b"PRIVATE KEY BLOCK")) {
        return ShapeMatch::No;
    }
    let rest = rest.get(DASHES.len()..).unwrap_or_default();
    let mut body = Body::START;
    for end in 1..=rest.len().min(HEADERS_MAX) {
        let Some(next) = body.swallow(rest.get(..end).unwrap_or_default()) else { return ShapeMatch::No };
        if next.run == MATERIAL_MIN {
            return ShapeMatch::Yes(label + DASHES.len());
        }
        body = next;
    }
    if rest.len() < HEADERS_MAX { ShapeMatch::More } else { ShapeMatch::No }
}

/// How far a block has been swallowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    /// Between the first line and the last.
    Body(Body),
    /// In the last line; so many bytes may follow.
    Last(usize),
}

impl Block {
    pub(crate) const START: Self = Self::Body(Body::START);

    /// Swallows the last byte of `bytes`. Returns whether it belongs to the block, and the block if it goes
    /// on.
    pub(crate) fn swallow(self, bytes: &[u8]) -> (bool, Option<Self>) {
        let byte = bytes.last().copied().unwrap_or_default();
        match self {
            Self::Body(_) if bytes.ends_with(END) => (true, Some(Self::Last(LABEL_MAX + DASHES.len()))),
            Self::Body(body) => match body.swallow(bytes) {
                Some(body) => (true, Some(Self::Body(body))),
                None => (false, None),
            },
            Self::Last(left) if left > 0 && byte != b'\n' => {
                (true, (!bytes.ends_with(DASHES)).then_some(Self::Last(left - 1)))
            }
            Self::Last(_) => (false, None),
        }
    }
}

/// What was read of a body: header lines, then words of Base64, parted by line ends or blanks. Whoever wants
/// something to be hidden writes it between two lines of a key, so no more is taken for a body than one has:
/// each word but the last has [`MATERIAL_MIN`] characters of Base64 in a row. Words without letters are line
/// numbers and quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Body {
    /// So many bytes may follow.
    left: usize,
    /// Base64 characters in a row up to here.
    run: usize,
    /// Whether this word is key material.
    is_material: bool,
    /// Whether it has a letter.
    has_letter: bool,
    place: Position,
}

/// Where in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Where a header line may begin.
    Headers,
    /// In one, behind its name.
    Header,
    /// Behind a word of key material.
    Material,
    /// Behind a shorter word, which only the last line follows.
    End,
}

impl Body {
    const START: Self =
        Self { left: BODY_MAX, run: 0, is_material: false, has_letter: false, place: Position::Headers };

    /// Swallows the last byte of `bytes`, where it belongs to the body.
    fn swallow(self, bytes: &[u8]) -> Option<Self> {
        let (byte, before) = bytes.split_last()?;
        let left = self.left.checked_sub(1).filter(|_| is_body(*byte))?;
        let is_escape = before.ends_with(b"\\") && matches!(byte, b'n' | b'r' | b't');
        let is_line_end = matches!(byte, b'\n' | b'\r') || is_escape && *byte != b't';
        if is_line_end || is_escape || matches!(byte, b' ' | b'\t') {
            let place = self.after_word(before, is_line_end);
            return Some(Self { left, place, ..Self::START });
        }
        let is_letter = byte.is_ascii_alphabetic();
        if self.place == Position::End && is_letter && !ends_with_start_of_end(bytes) {
            return None;
        }
        let run = match byte {
            // JSON may write `/` as `\/`.
            b'\\' => self.run,
            _ if is_base64(*byte) => self.run + 1,
            _ => 0,
        };
        let is_material = self.is_material || run >= MATERIAL_MIN;
        Some(Self { left, run, is_material, has_letter: self.has_letter || is_letter, place: self.place })
    }

    /// Where a body is when a word, which stands before, is over.
    fn after_word(self, before: &[u8], is_line_end: bool) -> Position {
        match self.place {
            Position::Header if is_line_end => Position::Headers,
            Position::Header => Position::Header,
            Position::Headers if self.has_letter && !is_line_end && before.ends_with(b":") => {
                Position::Header
            }
            Position::Headers | Position::Material if self.is_material => Position::Material,
            Position::Headers | Position::Material if self.has_letter => Position::End,
            place => place,
        }
    }
}

/// Whether the last line begins here, as far as its letters.
fn ends_with_start_of_end(bytes: &[u8]) -> bool {
    (DASHES.len() + 1..END.len()).any(|len| END.get(..len).is_some_and(|start| bytes.ends_with(start)))
}

fn is_label(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' '
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// What may stand in a block as programs print it: Base64, header lines, line numbers, escapes and quotes.
fn is_body(byte: u8) -> bool {
    is_base64(byte) || b" \t\r\n\\\"'-:,._".contains(&byte)
}
