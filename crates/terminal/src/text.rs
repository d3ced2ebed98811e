//! Styled text in cells: measured, cut and wrapped, so that only whole rows reach the screen.

use crate::print::{Printer, Style};
use bailey_secrets::neutralise;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// A piece of text in one style, neutralised.
pub(super) type Span = (Style, String);

/// A span of foreign text. The text is made safe before it is measured, because an escape is wider than the
/// character that it stands for. Line feeds and tabs are replaced, because they would leave the row.
pub(super) fn span(printer: &Printer, style: Style, text: &str) -> Span {
    let text = printer.redact(text);
    (style, neutralise(&text).replace('\n', "\\n").replace('\t', "    "))
}

/// How many cells a neutralised text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// One row as it is printed.
pub(super) fn paint(printer: &Printer, row: &[Span]) -> String {
    row.iter().map(|(style, text)| printer.paint(*style, text)).collect()
}

/// The start of a text that fits into `cells` cells, with `…` where it was cut.
pub(super) fn cut(text: &str, cells: usize) -> String {
    if text.width() <= cells {
        return text.to_owned();
    }
    let mut used = 0;
    let mut short = String::new();
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used >= cells {
            break;
        }
        short.push(c);
    }
    short.push('…');
    short
}

/// How many files are named on a line.
const NAMED_MAX: usize = 30;

/// Files on one line. If there are many, it names some and says how many more there are.
pub fn some_of(files: &[String]) -> String {
    let named = files.get(..files.len().min(NAMED_MAX)).unwrap_or_default().join(", ");
    match files.len().saturating_sub(NAMED_MAX) {
        0 if files.is_empty() => "nothing".into(),
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// The smallest width of a row: the least indent and a wide character.
const CELLS_MIN: usize = LEAST_INDENT + 2;
/// With a smaller indent, continuation rows would begin where other rows begin.
const LEAST_INDENT: usize = 3;
/// How many cells of a row an indent leaves free, where that is possible.
const FREE: usize = 4;

/// Wraps spans to rows of at most `cells` cells (five, if `cells` is smaller), between words where that is
/// possible. Rows after the first begin with `indent` blanks, or with fewer where there is no room.
pub(super) fn wrap(spans: &[Span], cells: usize, indent: usize) -> Vec<Vec<Span>> {
    let cells = cells.max(CELLS_MIN);
    let indent = indent.min(cells.saturating_sub(FREE).max(LEAST_INDENT));
    let mut wrap = Wrap { rows: Vec::new(), row: Vec::new(), used: 0, cells, indent };
    for (style, text) in spans {
        for word in words(text) {
            wrap.word(*style, word);
        }
    }
    wrap.rows.push(wrap.row);
    wrap.rows
}

struct Wrap {
    rows: Vec<Vec<Span>>,
    row: Vec<Span>,
    used: usize,
    cells: usize,
    indent: usize,
}

impl Wrap {
    fn word(&mut self, style: Style, word: &str) {
        let needs = word.width();
        let blank = word.trim().is_empty();
        if self.used + needs > self.cells {
            let is_fresh = self.used <= self.indent;
            if !is_fresh {
                self.next();
            }
            if blank {
                return;
            }
        }
        if self.used + needs <= self.cells {
            return self.put(style, word);
        }
        // A word longer than a row is broken where the row ends.
        let mut piece = String::new();
        for c in word.chars() {
            let more = c.width().unwrap_or(0);
            if self.used + piece.width() + more > self.cells {
                self.put(style, &std::mem::take(&mut piece));
                self.next();
            }
            piece.push(c);
        }
        self.put(style, &piece);
    }

    fn put(&mut self, style: Style, text: &str) {
        self.used += text.width();
        match self.row.last_mut() {
            Some((last, row)) if *last == style => row.push_str(text),
            _ => self.row.push((style, text.to_owned())),
        }
    }

    fn next(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
        self.used = 0;
        if self.indent > 0 {
            self.put(Style::Plain, &" ".repeat(self.indent));
        }
    }
}

/// Runs of blanks and runs of other characters, in turn.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut was_blank = None;
    for (at, c) in text.char_indices() {
        let is_blank = c == ' ';
        if was_blank.is_some_and(|was| was != is_blank) {
            words.extend(text.get(start..at));
            start = at;
        }
        was_blank = Some(is_blank);
    }
    words.extend(text.get(start..).filter(|rest| !rest.is_empty()));
    words
}

#[cfg(test)]
mod tests {
    use super::{NAMED_MAX, Style, cut, some_of, wrap};

    #[test]
    fn of_many_files_some_are_named() {
        let files = |count| (0..count).map(|n| format!("f{n}")).collect::<Vec<_>>();
        assert_eq!((some_of(&[]), some_of(&files(2))), ("nothing".into(), "f0, f1".into()));
        assert!(some_of(&files(NAMED_MAX)).ends_with(&format!("f{}", NAMED_MAX - 1)));
        let many = some_of(&files(60_000));
        assert!(many.ends_with(&format!(" and {} more", 60_000 - NAMED_MAX)) && many.len() < 1000, "{many}");
    }

    fn rows(text: &str, cells: usize, indent: usize) -> Vec<String> {
        let rows = wrap(&[(Style::Plain, text.to_owned())], cells, indent);
        rows.iter().map(|row| row.iter().map(|(_, text)| text.as_str()).collect()).collect()
    }

    #[test]
    fn text_is_wrapped_between_words_and_a_long_word_is_broken() {
        assert_eq!(rows("one two three", 9, 0), ["one two ", "three"]);
        assert_eq!(rows("abcdefghijkl", 8, 0), ["abcdefgh", "ijkl"]);
        assert_eq!(rows("- one two three", 12, 2), ["- one two ", "  three"]);
        assert_eq!(rows("", 12, 0), [""]);
        // Where the indent leaves no room, the indent is smaller, and no row is wider than its limit.
        assert_eq!(rows("one two", 10, 8), ["one two"]);
        assert_eq!(rows("abcdefghijklmno", 10, 8), ["abcdefghij", "      klmn", "      o"]);
        assert_eq!(rows("漢字漢字", 5, 6), ["漢字", "   漢", "   字"]);
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(rows("漢字漢字漢", 8, 0), ["漢字漢字", "漢"]);
        assert_eq!(cut("漢字漢字漢", 6), "漢字…");
        assert_eq!(cut("abc", 3), "abc");
    }
}
