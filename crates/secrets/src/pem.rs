//! Private key blocks (RFC 7468, and OpenPGP's armour): from their first line to their last.

use crate::shape::Found;

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

/// Decides by what follows [`BEGIN`] whether a private key follows. The line alone, as in a text about keys, is
/// none.
pub(crate) fn look(body: &[u8]) -> Found {
    let label = body.iter().take(LABEL_MAX).take_while(|byte| is_label(**byte)).count();
    let (Some(name), Some(rest)) = (body.get(..label), body.get(label..)) else { return Found::No };
    if !rest.starts_with(DASHES) {
        return if DASHES.starts_with(rest) { Found::More } else { Found::No };
    }
    if !(name.ends_with(b"PRIVATE KEY") || name.ends_with(b"PRIVATE KEY BLOCK")) {
        return Found::No;
    }
    let rest = rest.get(DASHES.len()..).unwrap_or_default();
    let mut run = 0;
    for byte in rest.iter().take(HEADERS_MAX) {
        run = if is_base64(*byte) { run + 1 } else { 0 };
        if run == MATERIAL_MIN {
            return Found::Yes(label + DASHES.len());
        }
        if !is_body(*byte) {
            return Found::No;
        }
    }
    if rest.len() < HEADERS_MAX { Found::More } else { Found::No }
}

/// How far a block has been swallowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    /// Between the first line and the last; so many bytes may follow.
    Body(usize),
    /// In the last line; so many bytes may follow.
    Last(usize),
}

impl Block {
    pub(crate) const START: Self = Self::Body(BODY_MAX);

    /// Swallows the last byte of `bytes`. Returns whether it belongs to the block, and the block if it goes on.
    pub(crate) fn swallow(self, bytes: &[u8]) -> (bool, Option<Self>) {
        let byte = bytes.last().copied().unwrap_or_default();
        match self {
            Self::Body(_) if bytes.ends_with(END) => (true, Some(Self::Last(LABEL_MAX + DASHES.len()))),
            Self::Body(left) if left > 0 && is_body(byte) => (true, Some(Self::Body(left - 1))),
            Self::Last(left) if left > 0 && byte != b'\n' => {
                (true, (!bytes.ends_with(DASHES)).then_some(Self::Last(left - 1)))
            }
            Self::Body(_) | Self::Last(_) => (false, None),
        }
    }
}

fn is_label(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' '
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// What may stand in a block as programs print it: Base64, header lines, line numbers, escapes and quotes.
fn is_body(byte: u8) -> bool {
    is_base64(byte) || b" \t\r\n\\\"'-:,|.>_".contains(&byte)
}
