//! Letters that look alike: a text that is not in a file may be there with others of them.

use std::{collections::HashMap, sync::LazyLock};

/// Differences that are named.
const NAMED_MAX: usize = 3;

/// How the wanted text differs from a text in the file that looks the
/// same; `None` where the file has no such text.
pub(super) fn difference(text: &str, wanted: &str) -> Option<String> {
    let (folded, old, wanted) = (Folded::of(text), wanted, Folded::of(wanted));
    if wanted.text.is_empty() {
        return None;
    }
    let at = folded.text.find(&wanted.text)?;
    let first = folded.units.partition_point(|unit| unit.folded < at);
    let pairs = (0..wanted.units.len()).map(|place| {
        let (there, written) = (folded.raw(text, first + place), wanted.raw(old, place));
        let is_last = place + 1 == wanted.units.len();
        // Unseen letters that follow the place are no part of it.
        let there = if is_last && there.starts_with(written) { written } else { there };
        (first + place, there, written)
    });
    let mut differ =
        pairs.filter(|(_, there, written)| there != written && !there.is_empty() && !written.is_empty());
    let told = |(unit, there, written): (usize, &str, &str)| {
        let start = folded.units.get(unit).map_or(0, |unit| unit.raw);
        format!("{} has {} where you wrote {}", place(text, start), named(there), named(written))
    };
    let shown: Vec<String> = differ.by_ref().take(NAMED_MAX).map(told).collect();
    let more = match differ.count() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    (!shown.is_empty()).then(|| format!("{}{more}", shown.join("; ")))
}

/// A text without the differences between letters that look the same.
#[derive(Default)]
struct Folded {
    text: String,
    units: Vec<Unit>,
}

/// Where a letter begins, in the folded text and in the raw one. Unseen
/// letters and accents behind it belong to it.
struct Unit {
    folded: usize,
    raw: usize,
}

impl Folded {
    fn of(text: &str) -> Self {
        let mut own = Self::default();
        let mut letters = text.char_indices().peekable();
        // An unseen letter belongs to the letter before it; at the beginning there is no letter before it.
        let mut begins = Some(0);
        while let Some((at, c)) = letters.next() {
            let is_line_end = c == '\r' && letters.peek().is_some_and(|(_, next)| *next == '\n');
            if is_line_end || is_unseen(c) {
                continue;
            }
            let start = begins.take().unwrap_or(at);
            own.unit(start, plain(c));
            rest(c).for_each(|letter| own.unit(at + c.len_utf8(), letter));
        }
        own
    }

    fn unit(&mut self, raw: usize, plain: char) {
        self.units.push(Unit { folded: self.text.len(), raw });
        self.text.push(plain);
    }

    /// A unit as it stands in the text itself.
    fn raw<'a>(&self, text: &'a str, unit: usize) -> &'a str {
        let start = |unit: usize| self.units.get(unit).map_or(text.len(), |unit| unit.raw);
        text.get(start(unit)..start(unit + 1)).unwrap_or_default()
    }
}

fn place(text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}")
}

fn named(letters: &str) -> String {
    let names: Vec<String> = letters.chars().map(name).collect();
    names.join(" and ")
}

fn name(c: char) -> String {
    let what = match c {
        ' ' => return "a space".into(),
        '\n' => return "a line feed".into(),
        '!'..='~' => return format!("`{c}`"),
        '\r' => "carriage return",
        '\u{a0}' => "no-break space",
        '\u{202f}' => "narrow no-break space",
        '\u{ad}' => "soft hyphen",
        '\u{200b}' => "zero width space",
        '\u{200c}' => "zero width non-joiner",
        '\u{200d}' => "zero width joiner",
        '\u{2060}' => "word joiner",
        '\u{feff}' => "byte order mark",
        '\u{2018}' => "left single quote",
        '\u{2019}' => "right single quote",
        '\u{201c}' => "left double quote",
        '\u{201d}' => "right double quote",
        '\u{2010}' | '\u{2011}' => "hyphen",
        '\u{2013}' => "en dash",
        '\u{2014}' => "em dash",
        '\u{2212}' => "minus sign",
        _ if plain(c) == ' ' => "a kind of space",
        _ if is_accent(c) => "an accent by itself",
        _ if is_unseen(c) => "not seen",
        _ => return format!("U+{:04X} ({c})", u32::from(c)),
    };
    format!("U+{:04X} ({what})", u32::from(c))
}

/// Accents that are letters of their own, such as behind a letter on macOS (NFD).
fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{3099}' | '\u{309a}')
}

fn is_unseen(c: char) -> bool {
    is_accent(c)
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// The plainest letter that looks so.
fn plain(c: char) -> char {
    match c {
        '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => '\n',
        _ if c.is_ascii() => c,
        // Full width forms of ASCII.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        _ => PLAIN.get(&c).copied().unwrap_or(c),
    }
}

/// The letters behind the first that a letter stands for: an ellipsis is three dots, a
/// syllable of Hangul two or three letters.
fn rest(c: char) -> impl Iterator<Item = char> {
    let syllable = u32::from(c).checked_sub(0xac00).filter(|syllable| *syllable < 11_172);
    let hangul = syllable.into_iter().flat_map(|syllable| {
        let (vowel, tail) = (syllable / 28 % 21, syllable % 28);
        [Some(0x1161 + vowel), (tail > 0).then_some(0x11a7 + tail)]
            .into_iter()
            .flatten()
            .filter_map(char::from_u32)
    });
    let dots = if c == '…' { 2 } else { 0 };
    hangul.chain(std::iter::repeat_n('.', dots))
}

/// [`ALIKE`] and [`BASES`], each letter with its plain one, and the first letter of each syllable of Hangul.
static PLAIN: LazyLock<HashMap<char, char>> = LazyLock::new(|| {
    let rows =
        BASES.iter().chain(ALIKE).flat_map(|(plain, others)| others.chars().map(|other| (other, *plain)));
    let first =
        |syllable: u32| Some((char::from_u32(0xac00 + syllable)?, char::from_u32(0x1100 + syllable / 588)?));
    rows.chain((0..11_172).filter_map(first)).collect()
});

/// Marks and letters of other alphabets that look like one of ASCII.
const ALIKE: &[(char, &str)] = &[
    (
        ' ',
        "\u{a0}\u{1680}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\u{2005}\u{2006}\u{2007}\u{2008}\u{2009}\u{200a}\u{202f}\u{205f}\u{3000}",
    ),
    ('\'', "‘’‚‛′´ʹʼˈ"),
    ('"', "“”„‟″«»"),
    ('-', "‐‑‒–—―−﹣"),
    ('.', "…․"),
    (':', "∶ː"),
    ('/', "⁄∕"),
    ('*', "∗"),
    ('~', "∼˜"),
    ('|', "∣ǀ"),
    ('A', "АΑ"),
    ('B', "ВΒ"),
    ('C', "С"),
    ('E', "ЕΕ"),
    ('H', "НΗ"),
    ('I', "ІΙ"),
    ('J', "Ј"),
    ('K', "КΚ"),
    ('M', "МΜ"),
    ('N', "Ν"),
    ('O', "ОΟ"),
    ('P', "РΡ"),
    ('S', "Ѕ"),
    ('T', "ТΤ"),
    ('X', "ХΧ"),
    ('Y', "УΥ"),
    ('Z', "Ζ"),
    ('a', "а"),
    ('c', "с"),
    ('d', "ԁ"),
    ('e', "е"),
    ('h', "һ"),
    ('i', "іı"),
    ('j', "ј"),
    ('o', "оο"),
    ('p', "р"),
    ('s', "ѕ"),
    ('v', "ν"),
    ('x', "х×"),
    ('y', "у"),
];

/// Letters with accents, by their letter (Unicode, canonical decomposition).
const BASES: &[(char, &str)] = &[
    ('A', "ÀÁÂÃÄÅĀĂĄǍǞǠǺȀȂȦḀẠẢẤẦẨẪẬẮẰẲẴẶ"),
    ('B', "ḂḄḆ"),
    ('C', "ÇĆĈĊČḈ"),
    ('D', "ĎḊḌḎḐḒ"),
    ('E', "ÈÉÊËĒĔĖĘĚȄȆȨḔḖḘḚḜẸẺẼẾỀỂỄỆ"),
    ('F', "Ḟ"),
    ('G', "ĜĞĠĢǦǴḠ"),
    ('H', "ĤȞḢḤḦḨḪ"),
    ('I', "ÌÍÎÏĨĪĬĮİǏȈȊḬḮỈỊ"),
    ('J', "Ĵ"),
    ('K', "ĶǨḰḲḴ"),
    ('L', "ĹĻĽḶḸḺḼ"),
    ('M', "ḾṀṂ"),
    ('N', "ÑŃŅŇǸṄṆṈṊ"),
    ('O', "ÒÓÔÕÖŌŎŐƠǑǪǬȌȎȪȬȮȰṌṎṐṒỌỎỐỒỔỖỘỚỜỞỠỢ"),
    ('P', "ṔṖ"),
    ('R', "ŔŖŘȐȒṘṚṜṞ"),
    ('S', "ŚŜŞŠȘṠṢṤṦṨ"),
    ('T', "ŢŤȚṪṬṮṰ"),
    ('U', "ÙÚÛÜŨŪŬŮŰŲƯǓǕǗǙǛȔȖṲṴṶṸṺỤỦỨỪỬỮỰ"),
    ('V', "ṼṾ"),
    ('W', "ŴẀẂẄẆẈ"),
    ('X', "ẊẌ"),
    ('Y', "ÝŶŸȲẎỲỴỶỸ"),
    ('Z', "ŹŻŽẐẒẔ"),
    ('a', "àáâãäåāăąǎǟǡǻȁȃȧḁạảấầẩẫậắằẳẵặ"),
    ('b', "ḃḅḇ"),
    ('c', "çćĉċčḉ"),
    ('d', "ďḋḍḏḑḓ"),
    ('e', "èéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếềểễệ"),
    ('f', "ḟ"),
    ('g', "ĝğġģǧǵḡ"),
    ('h', "ĥȟḣḥḧḩḫẖ"),
    ('i', "ìíîïĩīĭįǐȉȋḭḯỉị"),
    ('j', "ĵǰ"),
    ('k', "ķǩḱḳḵ"),
    ('l', "ĺļľḷḹḻḽ"),
    ('m', "ḿṁṃ"),
    ('n', "ñńņňǹṅṇṉṋ"),
    ('o', "òóôõöōŏőơǒǫǭȍȏȫȭȯȱṍṏṑṓọỏốồổỗộớờởỡợ"),
    ('p', "ṕṗ"),
    ('r', "ŕŗřȑȓṙṛṝṟ"),
    ('s', "śŝşšșṡṣṥṧṩ"),
    ('t', "ţťțṫṭṯṱẗ"),
    ('u', "ùúûüũūŭůűųưǔǖǘǚǜȕȗṳṵṷṹṻụủứừửữự"),
    ('v', "ṽṿ"),
    ('w', "ŵẁẃẅẇẉẘ"),
    ('x', "ẋẍ"),
    ('y', "ýÿŷȳẏẙỳỵỷỹ"),
    ('z', "źżžẑẓẕ"),
    ('¨', "΅"),
    ('Æ', "ǢǼ"),
    ('Ø', "Ǿ"),
    ('æ', "ǣǽ"),
    ('ø', "ǿ"),
    ('ſ', "ẛ"),
    ('Ʒ', "Ǯ"),
    ('ʒ', "ǯ"),
    ('̈', "̈́"),
    ('Α', "Ά"),
    ('Ε', "Έ"),
    ('Η', "Ή"),
    ('Ι', "ΊΪ"),
    ('Ο', "Ό"),
    ('Υ', "ΎΫ"),
    ('Ω', "Ώ"),
    ('α', "ά"),
    ('ε', "έ"),
    ('η', "ή"),
    ('ι', "ΐίϊ"),
    ('ο', "ό"),
    ('υ', "ΰϋύ"),
    ('ω', "ώ"),
    ('ϒ', "ϓϔ"),
    ('І', "Ї"),
    ('Г', "Ѓ"),
    ('Е', "ЀЁ"),
    ('И', "ЍЙ"),
    ('К', "Ќ"),
    ('У', "Ў"),
    ('г', "ѓ"),
    ('е', "ѐё"),
    ('и', "йѝ"),
    ('к', "ќ"),
    ('у', "ў"),
    ('і', "ї"),
    ('う', "ゔ"),
    ('か', "が"),
    ('き', "ぎ"),
    ('く', "ぐ"),
    ('け', "げ"),
    ('こ', "ご"),
    ('さ', "ざ"),
    ('し', "じ"),
    ('す', "ず"),
    ('せ', "ぜ"),
    ('そ', "ぞ"),
    ('た', "だ"),
    ('ち', "ぢ"),
    ('つ', "づ"),
    ('て', "で"),
    ('と', "ど"),
    ('は', "ばぱ"),
    ('ひ', "びぴ"),
    ('ふ', "ぶぷ"),
    ('へ', "べぺ"),
    ('ほ', "ぼぽ"),
    ('ゝ', "ゞ"),
    ('ウ', "ヴ"),
    ('カ', "ガ"),
    ('キ', "ギ"),
    ('ク', "グ"),
    ('ケ', "ゲ"),
    ('コ', "ゴ"),
    ('サ', "ザ"),
    ('シ', "ジ"),
    ('ス', "ズ"),
    ('セ', "ゼ"),
    ('ソ', "ゾ"),
    ('タ', "ダ"),
    ('チ', "ヂ"),
    ('ツ', "ヅ"),
    ('テ', "デ"),
    ('ト', "ド"),
    ('ハ', "バパ"),
    ('ヒ', "ビピ"),
    ('フ', "ブプ"),
    ('ヘ', "ベペ"),
    ('ホ', "ボポ"),
    ('ワ', "ヷ"),
    ('ヰ', "ヸ"),
    ('ヱ', "ヹ"),
    ('ヲ', "ヺ"),
    ('ヽ', "ヾ"),
];

#[cfg(test)]
mod tests;
