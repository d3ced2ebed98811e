//! How many tokens a text comes to, before a provider has counted it, or where its count is not believed.
//!
//! Tokenizers differ and most are not public, so this is an estimate: it walks over the text as byte-pair
//! tokenizers cut it (words, runs of digits, runs of white space, punctuation) and charges each piece what it
//! costs the worse of the two reference tokenizers. `tests/data/tokens.json` holds samples with the counts of
//! both; the estimate is not below the larger by more than a hundredth, but for invented words without
//! meaning, where a third may be missing. On prose and code it is a third to a half above.

use crate::{Context, Segment};
use std::{borrow::Cow, cmp::Reverse};

/// What a picture counts as, whatever it shows: about the most that a provider reads one as, since how large
/// it is stands in bytes that nobody here reads.
pub const IMAGE_TOKENS: u64 = 4_800;

/// Quarters of a token: small enough for a piece that often joins its neighbour.
type Quarters = u64;

/// The estimate for a text, in tokens. Never more than its length in bytes: a tokenizer falls back to single
/// bytes.
#[must_use]
pub fn tokens(text: &str) -> u64 {
    let mut quarters: Quarters = 0;
    let mut before = Class::Space;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let class = rest.bytes().next().map_or(Class::Other, Class::of);
        let length = run(rest, first, class);
        let (piece, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        quarters += cost(piece, first, class, before);
        (before, rest) = (class, after);
    }
    quarters.div_ceil(4).min(text.len() as u64)
}

/// The estimate for a request with this context: pictures in it are no text, though they are written in
/// letters.
pub(crate) fn request_tokens(context: &Context, body: &str) -> u64 {
    let images = context.segments().iter().flat_map(Segment::images);
    let mut written: Vec<String> = images.map(bailey_protocol::Image::base64).collect();
    // A small one may be written as a larger one begins.
    written.sort_by_key(|image| Reverse(image.len()));
    let (mut text, mut images) = (Cow::Borrowed(body), 0);
    for image in written {
        if let Some((before, after)) = text.split_once(&image) {
            (text, images) = (Cow::Owned([before, after].concat()), images + 1);
        }
    }
    tokens(&text) + IMAGE_TOKENS * images
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Space,
    Line,
    Mark,
    Other,
}

/// By the first byte of a character, since each request is walked over from its beginning.
#[expect(clippy::indexing_slicing, reason = "evaluated as it is compiled")]
static CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    let mut byte = 0;
    while byte < classes.len() {
        classes[byte] = Class::of_first(byte as u8);
        byte += 1;
    }
    classes
};

impl Class {
    const fn of_first(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' => Self::Lower,
            b'A'..=b'Z' => Self::Upper,
            b'0'..=b'9' => Self::Digit,
            b' ' | b'\t' => Self::Space,
            b'\n' | b'\r' => Self::Line,
            0..=0x7F => Self::Mark,
            _ => Self::Other,
        }
    }

    fn of(byte: u8) -> Self {
        CLASSES.get(usize::from(byte)).copied().unwrap_or(Self::Other)
    }
}

/// The length of the piece that a text begins with, in bytes: a word (`Word`, `word`, `WORD`), digits, white
/// space, or one sign repeated.
fn run(text: &str, first: char, class: Class) -> usize {
    if class == Class::Other {
        return text.chars().take_while(|c| *c == first).map(char::len_utf8).sum();
    }
    // What is left is ASCII, and of another class than any byte of what is not.
    let rest = text.as_bytes().get(1..).unwrap_or_default();
    let like = match class {
        Class::Upper if rest.first().map(|second| Class::of(*second)) != Some(Class::Upper) => Class::Lower,
        class => class,
    };
    let belongs = |byte: &&u8| {
        if class == Class::Mark { char::from(**byte) == first } else { Class::of(**byte) == like }
    };
    1 + rest.iter().take_while(belongs).count()
}

fn cost(piece: &str, first: char, class: Class, before: Class) -> Quarters {
    let length = piece.len() as u64;
    match class {
        Class::Lower | Class::Upper => {
            word(piece, matches!(before, Class::Lower | Class::Upper | Class::Digit))
        }
        Class::Digit => 4 * length.div_ceil(3),
        // One space goes with the word behind it.
        Class::Space => {
            if length > 1 {
                4
            } else {
                0
            }
        }
        Class::Line => 4,
        Class::Mark => {
            let alone = if matches!(before, Class::Mark | Class::Digit) { 4 } else { 3 };
            alone + length / 4
        }
        Class::Other => letter(first) + 2 * (length / first.len_utf8() as u64 - 1),
    }
}

/// A word of few vowels is no word, and falls to pieces; so does what stands in the middle of letters and
/// digits.
fn word(word: &str, joined: bool) -> Quarters {
    let length = word.len() as u64;
    // All of it letters, which differ by one bit from the same ones in upper case.
    let vowels = word.bytes().filter(|byte| b"aeiouy".contains(&(byte | 0x20))).count() as u64;
    let whole = match length {
        0..=3 => 4,
        _ if vowels * 4 < length => length * 5 / 2,
        _ => ((length * 5 + 2) / 4).max(4),
    };
    if joined && length <= 3 { whole + 2 } else { whole }
}

/// A sign outside ASCII, by its script.
fn letter(sign: char) -> Quarters {
    match u32::from(sign) {
        // Latin with marks; Greek and Cyrillic; Hebrew and Arabic; the scripts of India.
        0..0x250 => 3,
        0x250..0x530 => 2,
        0x530..0x800 => 4,
        0x800..0xE00 => 5,
        // Thai and Lao; signs of all kinds; Chinese and Japanese; Korean and what follows.
        0xE00..0xE80 => 4,
        0xE80..0x2E80 => 9,
        0x2E80..0xAC00 => 4,
        0xAC00..0x1_0000 => 5,
        // Emoji and rare scripts.
        _ => 12,
    }
}
