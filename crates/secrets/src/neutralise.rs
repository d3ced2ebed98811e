//! Characters that deceive whoever reads: made visible.

use std::{borrow::Cow, collections::BTreeSet, fmt::Write as _};

/// Replaces what acts on a terminal or hides from the eye by a visible mark: control characters except line
/// feed and tab by their pictures (`␛`, and `␍` for a carriage return), and with them every ANSI and OSC
/// sequence; directional and zero-width characters, line separators, tags and other invisible ones by their
/// numbers (`⟨U+202E⟩`). The emoji selector U+FE0F is kept after a visible character that is not an ASCII
/// letter.
///
/// No language writes a character so: whoever sees a mark knows that the character itself stands there, and
/// not an escape for it. Doing it twice does the same as doing it once.
#[must_use]
pub fn neutralise(text: &str) -> Cow<'_, str> {
    let mut clean = String::new();
    let mut copied = 0;
    let mut before = None;
    for (at, c) in text.char_indices() {
        let keep = if c == '\u{fe0f}' { before.is_some_and(takes_selector) } else { !is_deceptive(c) };
        before = keep.then_some(c);
        if keep {
            continue;
        }
        clean.push_str(text.get(copied..at).unwrap_or_default());
        escape(&mut clean, c);
        copied = at + c.len_utf8();
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    clean.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(clean)
}

/// Shows spaces that look like a plain one by their numbers (`⟨U+00A0⟩`), for somebody who copies a text to
/// change it. [`neutralise`] leaves them, for they harm no reader: many languages write them.
#[must_use]
pub fn show_spaces(text: &str) -> Cow<'_, str> {
    if !text.contains(is_odd_space) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    for c in text.chars() {
        if is_odd_space(c) { escape(&mut shown, c) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// Unicode's `Space_Separator` without the plain space, and without the wide one of Chinese and Japanese.
fn is_odd_space(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}')
}

fn escape(clean: &mut String, c: char) {
    match picture(c) {
        Some(picture) => clean.push(picture),
        // Writing to a string cannot fail.
        None => drop(write!(clean, "{OPEN}{:04X}{CLOSE}", u32::from(c))),
    }
}

/// What stands around a character's number.
const OPEN: &str = "⟨U+";
const CLOSE: char = '⟩';

/// The picture of a control character of ASCII (Unicode, block Control Pictures).
fn picture(c: char) -> Option<char> {
    match c {
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)),
        '\x7f' => Some('␡'),
        _ => None,
    }
}

/// The meaning of a text whose author was shown `held` by [`neutralise`] and [`show_spaces`]. The mark of a
/// character that `held` holds stands for that
/// character, where `held` has no such mark itself.
#[must_use]
pub fn meant<'a>(written: &'a str, held: &str) -> Cow<'a, str> {
    let mut text = Cow::Borrowed(written);
    if !written.contains(|c| c == '⟨' || ('\u{2400}'..='␡').contains(&c)) {
        return text;
    }
    let hidden: BTreeSet<char> = held.chars().filter(|c| is_deceptive(*c) || is_odd_space(*c)).collect();
    for c in hidden {
        let mut mark = String::new();
        escape(&mut mark, c);
        if text.contains(&mark) && !held.contains(&mark) {
            text = Cow::Owned(text.replace(&mark, c.encode_utf8(&mut [0; 4])));
        }
    }
    text
}

fn takes_selector(c: char) -> bool {
    matches!(c, '0'..='9' | '#' | '*') || !(c.is_ascii() || c.is_whitespace() || c == '\u{fe0f}')
}

/// Unicode's `Default_Ignorable_Code_Point` and `Bidi_Control`, control characters, line separators and the
/// interlinear marks.
fn is_deceptive(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        _ if c.is_control() => true,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}
