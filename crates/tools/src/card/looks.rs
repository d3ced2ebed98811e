//! What of a value deceives the eye: its length, blanks that push the rest of it away, and characters that
//! look like others.

use crate::diff::line_ends;

/// Most lines of one value.
const VALUE_LINES_MAX: usize = 60;
/// Most characters of one line of a value.
const LINE_CHARS_MAX: usize = 2_000;
/// Most blanks in a row that are shown as they are.
const BLANKS_MAX: usize = 32;
/// Most marks on one letter.
const MARKS_MAX: usize = 4;
/// Most characters of a word that is spelled out.
const NAMED_CHARS_MAX: usize = 40;
/// Fewest letters of a word of prose that may be taken for another one as a whole.
const PROSE_LETTERS_MIN: usize = 3;

/// Letters of Cyrillic, Greek and Armenian that nobody can tell from Latin ones.
const TWINS: &str = "асеорхуіјѕһԁԛԝӏАВСЕНІЈКМОРЅТХУοανρικυΑΒΕΖΗΙΚΜΝΟΡΤΥΧոօսհցյզԼՏՍՕ";

/// A value by its beginning and its end, where it is long: what matters may stand in either. Whether it is
/// all of it.
pub(super) fn ends(value: &str) -> (String, bool) {
    // A carriage return before a line feed is part of the line, as a shell has it.
    let lines: Vec<&str> = value.split_inclusive('\n').collect();
    let half = VALUE_LINES_MAX / 2;
    let (head, tail, left_out) = match lines.len() {
        0..=VALUE_LINES_MAX => (lines.as_slice(), &[][..], 0),
        all => (
            lines.get(..half).unwrap_or_default(),
            lines.get(all - half..).unwrap_or_default(),
            all - 2 * half,
        ),
    };
    let bare = |line: &str| line.strip_suffix('\n').unwrap_or(line).chars().count();
    let shown = |line: &&str| match line.strip_suffix('\n') {
        Some(line) => line_ends(line, LINE_CHARS_MAX) + "\n",
        None => line_ends(line, LINE_CHARS_MAX),
    };
    let mut text: String = head.iter().map(shown).collect();
    if left_out > 0 {
        text.push_str(&format!("… {left_out} lines left out …\n"));
    }
    text.extend(tail.iter().map(shown));
    let whole = left_out == 0 && lines.iter().all(|line| bare(line) <= LINE_CHARS_MAX);
    (text, whole)
}

/// The value with its long runs of blanks, and of marks on one letter, counted: what stands behind rows of
/// nothing is not seen, nor what marks are drawn over. Whether there was one.
pub(super) fn gathered(value: &str) -> (String, bool) {
    let (mut text, mut found) = (String::with_capacity(value.len()), false);
    let mut rest = value;
    while let Some(first) = rest.chars().next() {
        let run = Run::of(first);
        let end = rest.find(|c| Run::of(c) != run).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        match (run.longest(), piece.chars().count()) {
            (Some((longest, name)), count) if count > longest => {
                found = true;
                text.push_str(&format!("⟨{count} {name}⟩"));
            }
            _ => text.push_str(piece),
        }
        rest = after;
    }
    (text, found)
}

/// What a run of characters is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    Blanks,
    Marks,
    Others,
}

impl Run {
    fn of(c: char) -> Self {
        match c {
            '\u{300}'..='\u{36f}'
            | '\u{483}'..='\u{489}'
            | '\u{1ab0}'..='\u{1aff}'
            | '\u{1dc0}'..='\u{1dff}' => Self::Marks,
            '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}' => Self::Marks,
            c if is_blank(c) => Self::Blanks,
            _ => Self::Others,
        }
    }

    /// The longest that is shown as it is, and what it is called.
    fn longest(self) -> Option<(usize, &'static str)> {
        match self {
            Self::Blanks => Some((BLANKS_MAX, "blanks")),
            Self::Marks => Some((MARKS_MAX, "marks")),
            Self::Others => None,
        }
    }
}

/// The first word that looks like another one, with what deceives in it spelled out: `pаypal` is another word
/// than `paypal`, and `a⁄b` is one name.
pub(super) fn alike(value: &str) -> Option<String> {
    let signs = || {
        let word = value.split_ascii_whitespace().find(|word| word.contains(is_twin_sign))?;
        Some(spelled(word, is_twin_sign))
    };
    alike_words(value, 1).or_else(signs)
}

/// The same by its letters alone, for prose and code, where signs of other scripts have a place.
pub(super) fn alike_letters(value: &str) -> Option<String> {
    alike_words(value, PROSE_LETTERS_MIN)
}

fn alike_words(value: &str, letters_min: usize) -> Option<String> {
    let mut words = value.split(|c: char| !c.is_alphanumeric());
    let word = words.find(|word| is_mixed(word) || is_twin(word, letters_min))?;
    Some(spelled(word, is_alike))
}

/// Latin letters beside such as look like them.
fn is_mixed(word: &str) -> bool {
    word.contains(|c: char| c.is_ascii_alphabetic()) && word.contains(is_alike)
}

/// A word of another alphabet, all of whose letters look like Latin ones, or one in letters of another width
/// or face.
fn is_twin(word: &str, letters_min: usize) -> bool {
    let mut letters = word.chars().filter(|c| !c.is_ascii_digit());
    let count = letters.clone().count();
    // The letters of Lisu and most of Cherokee and Coptic were made after Latin ones, or look like them.
    let is_twin_letter = |c: char| {
        TWINS.contains(c)
            || matches!(c, '\u{13a0}'..='\u{13ff}' | '\u{2c80}'..='\u{2cff}' | '\u{a4d0}'..='\u{a4ff}' | '\u{ab70}'..='\u{abbf}')
    };
    let is_face =
        |c| matches!(c, '\u{2160}'..='\u{217f}' | '\u{ff10}'..='\u{ff5a}' | '\u{1d400}'..='\u{1d7ff}');
    word.contains(is_face) || (count >= letters_min && letters.all(is_twin_letter))
}

/// A letter of Greek, Cyrillic, Armenian, Cherokee, Coptic or Lisu, one for sounds, or a Latin one of another
/// width or face.
fn is_alike(c: char) -> bool {
    matches!(c,
        '\u{131}' | '\u{250}'..='\u{2af}' | '\u{370}'..='\u{58f}' | '\u{13a0}'..='\u{13ff}' | '\u{1d00}'..='\u{1dbf}'
        | '\u{1f00}'..='\u{1fff}' | '\u{2070}'..='\u{209f}' | '\u{2100}'..='\u{218f}' | '\u{24b6}'..='\u{24e9}'
        | '\u{2c80}'..='\u{2cff}' | '\u{a4d0}'..='\u{a4ff}' | '\u{ab70}'..='\u{abbf}' | '\u{ff01}'..='\u{ff5e}'
        | '\u{10400}'..='\u{1044f}' | '\u{1d400}'..='\u{1d7ff}')
}

/// What looks like a sign that means something in paths, addresses and commands: `/`, `\`, `.`, `:`, `;`,
/// `-`, `|`, `%`, or a blank.
fn is_twin_sign(c: char) -> bool {
    let is_other_blank = !c.is_ascii() && is_blank(c);
    is_other_blank
        || matches!(c,
            '\u{1c0}' | '\u{37e}' | '\u{66a}' | '\u{2010}'..='\u{2012}' | '\u{2024}' | '\u{2044}' | '\u{2212}' | '\u{2215}' | '\u{2216}'
            | '\u{2223}' | '\u{2236}' | '\u{2500}'..='\u{2503}' | '\u{2571}' | '\u{29f8}' | '\u{2f00}'..='\u{2fd5}' | '\u{3002}' | '\u{ff61}' | '\u{a789}' | '\u{ff01}'..='\u{ff0f}' | '\u{ff1a}'..='\u{ff20}'
            | '\u{ff3b}'..='\u{ff40}' | '\u{ff5b}'..='\u{ff5e}')
}

/// White space within a line, and the pattern of Braille that has no dots.
fn is_blank(c: char) -> bool {
    c == '\u{2800}'
        || c.is_whitespace()
            && !matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// A part of the word around the first of these characters, all of them spelled out.
fn spelled(word: &str, deceives: fn(char) -> bool) -> String {
    let first = word.chars().position(deceives).unwrap_or_default();
    let shown = word.chars().skip(first.saturating_sub(NAMED_CHARS_MAX / 2)).take(NAMED_CHARS_MAX);
    let spell = |c| if deceives(c) { format!("⟨U+{:04X}⟩", u32::from(c)) } else { String::from(c) };
    shown.map(spell).collect()
}

#[cfg(test)]
mod tests {
    use super::{alike, alike_letters, ends, gathered};

    #[test]
    fn words_that_look_like_others_are_spelled_out() {
        for (value, spelled) in [
            ("curl https://p\u{430}ypal.com/x", "p\u{430}ypal"),
            // All of it Cyrillic: no alphabet is mixed.
            ("https://\u{430}\u{440}\u{440}\u{4cf}\u{435}.com", "\u{430}\u{440}\u{440}\u{4cf}\u{435}"),
            ("/w/\u{41c}akefile", "\u{41c}akefile"),
            ("g\u{131}thub", "g\u{131}thub"),
            ("\u{ff52}\u{ff4d} x", "\u{ff52}\u{ff4d}"),
            ("\u{1d42b}\u{1d426}", "\u{1d42b}\u{1d426}"),
            ("https://good.example\u{2044}x.evil.example/", "https://good.example\u{2044}x.evil.example/"),
            ("rm \u{2212}rf x", "\u{2212}rf"),
            ("ls\u{37e} id", "ls\u{37e}"),
            ("ls\u{a0}-l", "ls\u{a0}-l"),
            ("cat \u{a4df}\u{a4ee}\u{a4da}\u{a4f0}", "\u{a4df}\u{a4ee}\u{a4da}\u{a4f0}"),
            ("\u{13de}\u{13da} -la", "\u{13de}\u{13da}"),
            ("ls \u{578}\u{585}", "\u{578}\u{585}"),
            ("rm \u{430}\u{432} \u{441}\u{440}", "\u{441}\u{440}"),
            ("http:\u{2f00}\u{2f00}x", "http:\u{2f00}\u{2f00}x"),
            ("cat a \u{2502} sh", "\u{2502}"),
        ] {
            let expected: String = spelled
                .chars()
                .map(|c| if c.is_ascii() { c.to_string() } else { format!("⟨U+{:04X}⟩", u32::from(c)) })
                .collect();
            assert_eq!(alike(value), Some(expected), "{value}");
        }
        // Far behind in a long word it is shown all the same.
        let long = format!("{}\u{430}", "a".repeat(500));
        assert!(alike(&long).is_some_and(|word| word.ends_with("a⟨U+0430⟩")));
        // Controls: words of one alphabet, and scripts that look like none of these.
        for plain in [
            "cargo test --all",
            "naïve Übergröße",
            "привет мир",
            "καλημέρα",
            "Gitを使う",
            "東京",
            "한국어",
            "ab–cd",
        ] {
            assert_eq!(alike(plain), None, "{plain}");
        }
        assert_eq!(alike_letters("ls\u{a0}-l: one of French prose"), None);
    }

    #[test]
    fn blanks_that_push_the_rest_away_are_counted() {
        let hidden = format!("echo fine{}; rm -rf ~", " ".repeat(1_900));
        assert_eq!(gathered(&hidden), ("echo fine⟨1900 blanks⟩; rm -rf ~".into(), true));
        assert_eq!(gathered(&"\u{2800}\t ".repeat(20)), ("⟨60 blanks⟩".into(), true));
        let struck = format!("rm{} -rf ~", "\u{336}".repeat(90));
        assert_eq!(gathered(&struck), ("rm⟨90 marks⟩ -rf ~".into(), true));
        // The control: what people write, and lines stay lines.
        let plain = format!("a  be\u{301}\n{}\n{}c", " ".repeat(32), "\t".repeat(8));
        assert_eq!(gathered(&plain), (plain.clone(), false));
    }

    #[test]
    fn a_long_value_has_two_ends() {
        let (text, whole) = ends(&format!("{}middle{}end", "a".repeat(2_000), "b".repeat(2_000)));
        assert!(
            !whole && text.starts_with('a') && text.ends_with("end") && !text.contains("middle"),
            "{text}"
        );
        assert_eq!(ends("a\nb"), ("a\nb".into(), true));
    }
}
