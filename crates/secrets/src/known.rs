//! Known values: which of them are matched exactly, and in which spellings.
//!
//! The rule (a redactor that masks guessable values is an oracle that confirms guesses, and one that masks
//! common words ruins every text): a value, trimmed, is matched when it
//! - has 8 to 8,192 bytes,
//! - holds at least 20 bits by Shannon's measure over its own characters (8 characters, 6 of them distinct),
//! - mixes two of lower case, upper case, digits and the rest, or has 16 characters,
//! - is no run of neighbours such as `12345678` or `abcdefgh1`, no well-known password, and
//! - occurs in no mark of this redactor.
//!
//! Spellings: as it is; each line of a value of several lines; Base64 at each of the three alignments,
//! standard and URL-safe, without the characters that depend on neighbours or padding; in upper and in lower
//! case, where that is strong by itself; hexadecimal in both cases, also mixed, and with `:` or `-` between
//! bytes; percent-encoded, with the sets of characters that common libraries leave alone; escaped for JSON
//! once and twice; as UTF-16 and UTF-32; and each of these as the module `view` shows it. A value of 8 bytes
//! has 10 characters in Base64 that do not depend on its neighbours, and 16 in hexadecimal.

use crate::{
    escape::{self, ESCAPE_MAX},
    view::{GAP_MAX, loosen},
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use std::{collections::BTreeSet, fmt::Write as _};

const BYTES_MIN: usize = 8;
const BYTES_MAX: usize = 8192;
const BITS_MIN: f64 = 20.0;
const LONG: usize = 16;

/// Values that stand in examples and default configurations, in lower case.
const COMMON: &[&str] = &[
    "password",
    "password1",
    "password12",
    "password123",
    "password1234",
    "passw0rd",
    "p@ssw0rd",
    "p@ssword1",
    "changeme",
    "change-me",
    "changeme1",
    "changeme123",
    "changethis",
    "letmein1",
    "letmein123",
    "welcome1",
    "welcome123",
    "admin123",
    "admin1234",
    "administrator",
    "qwerty123",
    "qwertyuiop",
    "1q2w3e4r",
    "1qaz2wsx",
    "zaq12wsx",
    "trustno1",
    "iloveyou1",
    "test1234",
    "testing123",
    "secret123",
    "default1",
    "postgres1",
    "mysecretpassword",
    "your-api-key",
    "your_api_key",
    "your-api-key-here",
    "your_api_key_here",
    "placeholder",
    "your-token-here",
    "your_token_here",
    "insert-key-here",
    "not-needed",
    "no-key-required",
    "sk-no-key-required",
];

/// Whether a value, trimmed, is strong enough to be matched exactly.
pub(crate) fn is_strong(value: &str) -> bool {
    (BYTES_MIN..=BYTES_MAX).contains(&value.len())
        && bits(value) >= BITS_MIN
        && (classes(value) >= 2 || value.chars().count() >= LONG)
        && !is_run(value.as_bytes())
        && !COMMON.contains(&value.to_ascii_lowercase().as_str())
}

/// Shannon's entropy of the value's own characters, times their number.
fn bits(value: &str) -> f64 {
    let mut chars: Vec<char> = value.chars().collect();
    chars.sort_unstable();
    let total = chars.len() as f64;
    chars.chunk_by(|a, b| a == b).map(|same| same.len() as f64 * (total / same.len() as f64).log2()).sum()
}

fn classes(value: &str) -> usize {
    let class = |c: char| match c {
        'a'..='z' => 0,
        'A'..='Z' => 1,
        '0'..='9' => 2,
        _ => 3,
    };
    value.chars().map(class).collect::<BTreeSet<_>>().len()
}

/// Whether nearly every character is the neighbour of the one before.
fn is_run(value: &[u8]) -> bool {
    let steps = value.iter().zip(value.iter().skip(1)).filter(|(a, b)| a.abs_diff(**b) <= 1).count();
    steps + 2 >= value.len()
}

/// Every spelling of a value that is searched for, each once.
pub(crate) fn spellings(value: &str) -> BTreeSet<Vec<u8>> {
    let mut all = BTreeSet::from([value.as_bytes().to_vec()]);
    for between in ["", ":", "-"] {
        all.extend(hex(value, between));
    }
    for before in 0..3 {
        all.extend(base64(value, before));
    }
    for left_alone in ["", "-._~", "-._~!'()*", "-._~/", "-._", "-._~!'()*;/?:@&=+$,#"] {
        all.extend(percent(value, left_alone));
    }
    for ascii in [false, true] {
        for slash in [false, true] {
            let once = json(value, ascii, slash);
            all.insert(json(&once, ascii, false).into_bytes());
            all.insert(once.into_bytes());
        }
    }
    for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
        all.insert(value.encode_utf16().flat_map(bytes).collect());
    }
    for bytes in [u32::to_le_bytes, u32::to_be_bytes] {
        all.insert(value.chars().map(u32::from).flat_map(bytes).collect());
    }
    let cased = [value.to_ascii_uppercase(), value.to_ascii_lowercase()];
    all.extend(cased.into_iter().filter(|cased| is_strong(cased)).map(String::into_bytes));
    all.insert(value.replace(' ', "+").into_bytes());
    // What of it looks like an escape itself is undone where others of its characters are escaped.
    let undone = escape::undo(value);
    all.extend(is_strong(&undone).then(|| undone.into_bytes()));
    all.extend(lines(value).map(|line| line.as_bytes().to_vec()));
    let loose: Vec<_> = all.iter().map(|spelling| loosen(spelling)).collect();
    all.extend(loose.into_iter().filter(|text| is_strong_text(text)));
    all
}

fn is_strong_text(text: &[u8]) -> bool {
    str::from_utf8(text).is_ok_and(is_strong)
}

/// Whether loose views may miss a value where it is escaped: too little of it is left in them, or they leave
/// so much out in one place that, escaped, it is too wide a gap.
pub(crate) fn is_strict(value: &str) -> bool {
    let is_left_out = |c| matches!(c, ' ' | '\t' | '\r' | '\n' | '"' | '\'' | '\\' | 'n' | 'r' | 't');
    let is_wide =
        |run: &str| run.len() * ESCAPE_MAX > GAP_MAX && !run.bytes().all(|b| b.is_ascii_alphabetic());
    !is_strong_text(&loosen(value.as_bytes())) || value.split(|c| !is_left_out(c)).any(is_wide)
}

/// The lines of a value of several: a reader of a part of a file shows some of them without the others. What
/// a block in RFC 7468's armour begins and ends with is no secret.
fn lines(value: &str) -> impl Iterator<Item = &str> {
    let several = value.contains('\n');
    let is_told = |line: &&str| line.len() >= LONG && !line.starts_with("-----") && is_strong(line);
    value.lines().map(str::trim).filter(move |line| several && is_told(line))
}

/// In lower and in upper case, with this between two bytes.
fn hex(value: &str, between: &str) -> [Vec<u8>; 2] {
    let bytes: Vec<String> = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    let lower = bytes.join(between);
    [lower.to_ascii_uppercase(), lower].map(String::into_bytes)
}

/// Both alphabets, with `before` unknown bytes ahead. Characters that hold bits of a neighbour are cut off.
fn base64(value: &str, before: usize) -> [Vec<u8>; 2] {
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(value.as_bytes());
    let known = (8 * before).div_ceil(6)..8 * bytes.len() / 6;
    [STANDARD_NO_PAD, URL_SAFE_NO_PAD]
        .map(|alphabet| alphabet.encode(&bytes).as_bytes().get(known.clone()).unwrap_or_default().to_vec())
}

/// Percent-encoded with upper-case and lower-case digits, and with `+` for a space.
fn percent(value: &str, left_alone: &str) -> [Vec<u8>; 3] {
    let (mut upper, mut lower) = (String::new(), String::new());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || left_alone.as_bytes().contains(&byte) {
            upper.push(byte.into());
            lower.push(byte.into());
        } else {
            let _ = write!(upper, "%{byte:02X}");
            let _ = write!(lower, "%{byte:02x}");
        }
    }
    let form = upper.replace("%20", "+");
    [upper, lower, form].map(String::into_bytes)
}

/// The inside of a JSON string (RFC 8259), optionally in ASCII only and with `/` escaped.
fn json(value: &str, ascii: bool, slash: bool) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '/' if slash => text.push_str("\\/"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            _ if c < ' ' || (ascii && !c.is_ascii()) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
            _ => text.push(c),
        }
    }
    text
}
