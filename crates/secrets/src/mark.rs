//! The mark that stands where a secret stood: `[redacted:NAME]`.

use std::collections::BTreeMap;

const OPEN: &str = "[redacted:";

/// The longest name in a mark, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The mark for a name. Whatever is not a letter, a digit, `_`, `-` or `.` becomes `_`, so that a mark needs
/// no escaping in JSON, in a shell or on a screen.
pub(crate) fn mark(name: &str) -> String {
    let name = name.chars().take(NAME_BYTES_MAX);
    let name: String = name.map(|c| if is_name(c) { c } else { '_' }).collect();
    format!("{OPEN}{name}]")
}

/// Whether the text holds a mark.
#[must_use]
pub fn has_mark(text: &str) -> bool {
    marks(text).next().is_some()
}

/// The names in the marks of a text, in order, with repetitions.
pub fn marks(text: &str) -> impl Iterator<Item = &str> {
    text.split(OPEN).skip(1).filter_map(|rest| {
        let end = rest.find(|c| !is_name(c)).filter(|end| (1..=NAME_BYTES_MAX).contains(end))?;
        rest.get(end..)?.starts_with(']').then(|| rest.get(..end)).flatten()
    })
}

/// How many marks are told apart in one text, and how many lines are named for each.
const MARKS_MAX: usize = 1000;
const LINES_MAX: usize = 10;

/// The marks of a text that comes in pieces, with the lines that hold them.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    found: BTreeMap<String, Occurrences>,
    /// Line feeds so far.
    lines: u64,
    /// The beginning of a mark, or of something else.
    open: String,
}

#[derive(Debug, Clone, Default)]
struct Occurrences {
    times: u64,
    lines: Vec<u64>,
}

impl Marks {
    /// The marks of a whole text.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        let mut marks = Self::default();
        marks.update(text);
        marks
    }

    /// Takes the next piece of the text.
    pub fn update(&mut self, piece: &[u8]) {
        let mut rest = piece;
        loop {
            if self.open.is_empty() {
                let start = rest.iter().position(|byte| *byte == b'[');
                let (passed, from) = rest.split_at(start.unwrap_or(rest.len()));
                self.lines += passed.iter().filter(|byte| **byte == b'\n').count() as u64;
                rest = from;
            }
            let Some((byte, after)) = rest.split_first() else { return };
            if self.goes_on(char::from(*byte)) {
                rest = after;
            }
        }
    }

    /// The marks that this text holds more often than another one, each with the first lines that hold it.
    #[must_use]
    pub fn beyond(&self, other: &Self) -> Vec<(String, Vec<u64>)> {
        let times = |mark: &str| other.found.get(mark).map_or(0, |found| found.times);
        let more = self.found.iter().filter(|(mark, found)| found.times > times(mark));
        more.map(|(mark, found)| (mark.clone(), found.lines.clone())).collect()
    }

    /// Whether a character was taken. A character that ends an unfinished mark is looked at once more.
    fn goes_on(&mut self, c: char) -> bool {
        let name = self.open.len().checked_sub(OPEN.len());
        let fits = match name {
            None => OPEN.as_bytes().get(self.open.len()).is_some_and(|next| char::from(*next) == c),
            Some(length) => is_name(c) && length < NAME_BYTES_MAX,
        };
        if fits {
            self.open.push(c);
            return true;
        }
        let mut mark = std::mem::take(&mut self.open);
        let is_mark = c == ']' && name.is_some_and(|length| length > 0);
        if is_mark {
            mark.push(c);
            self.count(mark);
        }
        is_mark
    }

    fn count(&mut self, mark: String) {
        let is_known = self.found.len() < MARKS_MAX || self.found.contains_key(&mark);
        let found = self.found.entry(if is_known { mark } else { format!("{OPEN}…]") }).or_default();
        found.times += 1;
        let line = self.lines + 1;
        if found.lines.len() < LINES_MAX && found.lines.last() != Some(&line) {
            found.lines.push(line);
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

#[cfg(test)]
mod tests {
    use super::Marks;

    const TEXT: &[u8] =
        b"a [redacted:one]\n[[redacted:two] [redacted:] [redacted:a b] [red\nx[redacted:one][redacted:one]";

    #[test]
    fn marks_are_found_however_a_text_is_cut() {
        let expected =
            vec![("[redacted:one]".to_owned(), vec![1, 3]), ("[redacted:two]".to_owned(), vec![2])];
        assert_eq!(Marks::of(TEXT).beyond(&Marks::default()), expected);
        for size in 1..TEXT.len() {
            let mut marks = Marks::default();
            TEXT.chunks(size).for_each(|piece| marks.update(piece));
            assert_eq!(marks.beyond(&Marks::default()), expected, "{size}");
        }
    }

    #[test]
    fn what_was_there_before_does_not_count() {
        let before = Marks::of(b"[redacted:one] [redacted:two]");
        let beyond = |text: &[u8]| Marks::of(text).beyond(&before);
        assert_eq!(beyond(b"[redacted:two]\n[redacted:one]"), []);
        assert_eq!(beyond(b"[redacted:two]\n[redacted:two]"), [("[redacted:two]".to_owned(), vec![1, 2])]);
        assert_eq!(beyond(b"\n[redacted:three]"), [("[redacted:three]".to_owned(), vec![2])]);
    }

    /// The author of a file must not choose how much memory its marks take.
    #[test]
    fn what_is_kept_is_bounded() {
        let text: String = (0..50_000).map(|number| format!("[redacted:{number}]\n")).collect();
        let beyond = Marks::of(text.as_bytes()).beyond(&Marks::default());
        assert_eq!(beyond.len(), super::MARKS_MAX + 1);
        assert!(beyond.iter().all(|(_, lines)| lines.len() <= super::LINES_MAX));
    }
}
