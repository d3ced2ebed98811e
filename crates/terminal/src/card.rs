//! Cards as a person reads them. What a card quotes is foreign: it stays behind the margin of its own row,
//! however narrow the terminal is, so that no row of it can be taken for one of Bailey's.

use super::text::{self, Span, span, wrap};
use crate::print::{Printer, Style};
use bailey_protocol::{Card, CardPart, Origin, OriginKind};

/// What a line feed is drawn as.
const LINE_FEED: &str = "⏎";
/// Where rows begin that go on with what began above: no row of a card begins there.
const MORE: usize = 6;
/// Where the lines of a diff begin, and where they go on.
const DIFF: &str = "    ";
const DIFF_MORE: usize = 8;

/// A card, for a terminal of so many cells and rows; none: each value stays on one line. One that is higher
/// than the terminal says at its end, too, what it asks.
pub fn draw(printer: &Printer, card: &Card, size: Option<(usize, usize)>) -> String {
    let sheet = Sheet { printer, cells: size.map_or(usize::MAX, |(columns, _)| columns) };
    let title = sheet.rows(&[(Style::Yellow, "? "), (Style::Yellow, &card.title)], MORE);
    let mut rows = title.clone();
    rows.extend(card.reasons.iter().flat_map(|reason| sheet.remark(Style::Dim, reason)));
    for part in &card.parts {
        match part {
            CardPart::Field { name, value } => rows.extend(sheet.rows(
                &[(Style::Plain, "  "), (Style::Bold, name), (Style::Plain, ": "), (Style::Plain, value)],
                MORE,
            )),
            CardPart::Diff { diff, .. } => rows.extend(sheet.diff(diff)),
        }
    }
    rows.extend(card.origins.iter().flat_map(|origin| sheet.origin(origin)));
    if let Some(pattern) = card.pattern.as_ref().filter(|_| !card.once) {
        rows.extend(sheet.remark(Style::Dim, &format!("a yes for the pattern covers {pattern}")));
    }
    rows.extend(card.caveats.iter().flat_map(|caveat| sheet.remark(Style::Dim, &format!("note: {caveat}"))));
    // A blank row stands above, and the question, which may be broken, below.
    if size.is_some_and(|(_, height)| height > 0 && rows.len() + 3 > height) {
        let high = format!("the card has {} rows, more than fit here, and begins with:", rows.len());
        rows.extend(sheet.remark(Style::Yellow, &high));
        rows.extend(title);
        rows.extend(card.reasons.first().into_iter().flat_map(|reason| sheet.remark(Style::Dim, reason)));
    }
    format!("\n{}\n", rows.join("\n"))
}

/// A diff's lines, indented and coloured, in rows of so many cells. Secrets are taken out of the whole: one
/// may have several lines.
pub fn diff_lines(printer: &Printer, diff: &str, cells: usize) -> Vec<String> {
    Sheet { printer, cells }.diff(diff)
}

/// A value on one line: a line feed in it cannot draw a line of its own. It is drawn as a sign that nothing
/// else is drawn as: `\n` may be two characters of a command.
pub fn one_line(text: &str) -> String {
    text.replace(LINE_FEED, "⟨U+23CE⟩").replace('\n', LINE_FEED).replace('\t', " ")
}

/// What is drawn on.
struct Sheet<'a> {
    printer: &'a Printer,
    cells: usize,
}

impl Sheet<'_> {
    /// Secrets are taken out before a text is broken up: half of one is no longer known.
    fn rows(&self, pieces: &[(Style, &str)], indent: usize) -> Vec<String> {
        let clean = |text: &str| one_line(&self.printer.redact(text));
        let spans: Vec<Span> =
            pieces.iter().map(|(style, text)| span(self.printer, *style, &clean(text))).collect();
        wrap(&spans, self.cells, indent).iter().map(|row| text::paint(self.printer, row)).collect()
    }

    fn remark(&self, style: Style, text: &str) -> Vec<String> {
        self.rows(&[(style, "  "), (style, text)], MORE)
    }

    fn origin(&self, Origin { value, kind, words, entry }: &Origin) -> Vec<String> {
        let entry = entry.map_or_else(String::new, |entry| format!(" (entry {entry})"));
        let style = if *kind == OriginKind::Person { Style::Dim } else { Style::Yellow };
        self.remark(style, &format!("from: `{value}`: {words}{entry}"))
    }

    fn diff(&self, diff: &str) -> Vec<String> {
        let style = |line: &str| match line.as_bytes().first() {
            Some(b'+') => Style::Green,
            Some(b'-') => Style::Red,
            Some(b'@') => Style::Cyan,
            _ => Style::Dim,
        };
        // What comes and goes may differ by a tab alone.
        let tab = |line: &str| if line.starts_with(['+', '-']) { "→   " } else { "    " };
        let diff = self.printer.redact(diff);
        let row = |line: &str| {
            let shown = line.replace('\t', tab(line));
            self.rows(&[(Style::Plain, DIFF), (style(line), &shown)], DIFF_MORE)
        };
        diff.split_terminator('\n').flat_map(row).collect()
    }
}

#[cfg(test)]
mod tests;
