//! Cards as the user reads them. The text that a card quotes is foreign. It stays behind the margin of its
//! own row, however narrow the terminal is, so that no row of it can be mistaken for one of Bailey's.

use super::text::{self, Span, span, wrap};
use crate::print::{Printer, Style};
use bailey_protocol::{Card, CardPart, Origin, OriginKind};

/// The sign for a line feed.
const LINE_FEED: &str = "⏎";
/// The column where continuation rows begin. No row of a card begins there.
const MORE: usize = 6;
/// The indent of a diff's lines, and below it the indent of their continuation rows.
const DIFF: &str = "    ";
const DIFF_MORE: usize = 8;

/// Draws a card for a terminal of this many cells and rows. With `None`, each value stays on one line. A card
/// that is higher than the terminal also says at its end the question that it asks.
pub fn draw(printer: &Printer, card: &Card, size: Option<(usize, usize)>) -> String {
    let sheet = Sheet { printer, cells: size.map_or(usize::MAX, |(columns, _)| columns) };
    let title = sheet.rows(&[(Style::Yellow, "? "), (Style::Yellow, &card.title)], MORE);
    let mut rows = title.clone();
    rows.extend(card.reasons.iter().flat_map(|reason| sheet.remark(Style::Dim, reason)));
    for part in &card.parts {
        match part {
            CardPart::Field { name, value, .. } => rows.extend(sheet.rows(
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
    // A blank row stands above the card. The question, which may be wrapped, stands below it.
    if size.is_some_and(|(_, height)| height > 0 && rows.len() + 3 > height) {
        let high = format!("the card has {} rows, more than fit on this screen; it begins with:", rows.len());
        rows.extend(sheet.remark(Style::Yellow, &high));
        rows.extend(title);
        rows.extend(card.reasons.first().into_iter().flat_map(|reason| sheet.remark(Style::Dim, reason)));
    }
    format!("\n{}\n", rows.join("\n"))
}

/// Draws the short card: the effect, its brief fields, and why the gate asks. Everything else stands in the
/// details, which [`draw`] draws.
pub(crate) fn draw_brief(printer: &Printer, card: &Card, cells: usize) -> String {
    let sheet = Sheet { printer, cells };
    let mut rows = sheet.rows(&[(Style::Yellow, "? "), (Style::Yellow, &card.title)], MORE);
    let (mut short, mut long) = (Vec::new(), Vec::new());
    for part in &card.parts {
        if let CardPart::Field { name, value, brief: true } = part {
            let fits = name.len() + value.len() <= SHORT_BYTES && !value.contains('\n');
            // A value cannot draw a field of its own: characters that look like the dot take a row.
            let fits = fits && value.is_ascii();
            let one = || format!("{name}: {value}");
            if fits { short.push(one()) } else { long.push((name, value)) }
        }
    }
    let more = short.len().saturating_sub(SHORT_MAX);
    short.truncate(SHORT_MAX);
    short.extend((more > 0).then(|| format!("and {more} more")));
    if !short.is_empty() {
        rows.extend(sheet.remark(Style::Plain, &short.join(" · ")));
    }
    for (name, value) in long {
        let pieces = [(Style::Plain, "  "), (Style::Bold, name), (Style::Plain, ": "), (Style::Plain, value)];
        rows.extend(sheet.some(sheet.rows(&pieces, MORE), LONG_ROWS_MAX));
    }
    let diffs = card.parts.iter().filter_map(|part| match part {
        CardPart::Diff { diff, .. } => Some(diff),
        CardPart::Field { .. } => None,
    });
    let diff: Vec<String> = diffs.flat_map(|diff| sheet.diff(diff)).collect();
    rows.extend(sheet.some(diff, DIFF_ROWS_MAX));
    // Words of the person or of the model itself are the usual case.
    let is_foreign = |kind: OriginKind| !matches!(kind, OriginKind::Person | OriginKind::Model);
    let foreign = card.origins.iter().filter(|origin| is_foreign(origin.kind));
    rows.extend(foreign.flat_map(|origin| sheet.origin(origin)));
    rows.extend(
        card.caveats.iter().flat_map(|caveat| sheet.remark(Style::Yellow, &format!("note: {caveat}"))),
    );
    if let Some((first, others)) = card.reasons.split_first() {
        let more = if others.is_empty() { String::new() } else { format!(" (and {} more)", others.len()) };
        rows.extend(sheet.remark(Style::Dim, &format!("why: {first}{more}")));
    }
    if let Some(pattern) = card.pattern.as_ref().filter(|_| !card.once) {
        rows.extend(sheet.remark(Style::Dim, &format!("the pattern: {pattern}")));
    }
    format!("\n{}\n", rows.join("\n"))
}

/// A diff's lines, indented and coloured, in rows of at most `cells` cells. Secrets are taken out of the
/// whole diff, because a secret may have several lines.
pub fn diff_lines(printer: &Printer, diff: &str, cells: usize) -> Vec<String> {
    Sheet { printer, cells }.diff(diff)
}

/// A value on one line: a line feed in it cannot draw a line of its own. The line feed is drawn as a sign
/// that stands for nothing else, because `\n` may be two characters of a command.
pub fn one_line(text: &str) -> String {
    text.replace(LINE_FEED, "⟨U+23CE⟩").replace('\n', LINE_FEED).replace('\t', " ")
}

/// The longest field that shares a row with others on a short card, in bytes.
const SHORT_BYTES: usize = 70;
/// How many fields share a row.
const SHORT_MAX: usize = 6;
/// How many rows of a longer field, and of all diffs, a short card shows.
const LONG_ROWS_MAX: usize = 4;
const DIFF_ROWS_MAX: usize = 12;

/// The surface that a card is drawn on.
struct Sheet<'a> {
    printer: &'a Printer,
    cells: usize,
}

impl Sheet<'_> {
    /// Secrets are taken out before a text is broken into rows, because half of a secret is no longer
    /// recognised.
    fn rows(&self, pieces: &[(Style, &str)], indent: usize) -> Vec<String> {
        let clean = |text: &str| one_line(&self.printer.redact(text));
        let spans: Vec<Span> =
            pieces.iter().map(|(style, text)| span(self.printer, *style, &clean(text))).collect();
        wrap(&spans, self.cells, indent).iter().map(|row| text::paint(self.printer, row)).collect()
    }

    fn remark(&self, style: Style, text: &str) -> Vec<String> {
        self.rows(&[(style, "  "), (style, text)], MORE)
    }

    /// The first rows, and how many more there are.
    fn some(&self, mut rows: Vec<String>, most: usize) -> Vec<String> {
        let more = rows.len().saturating_sub(most);
        // A row that says that one more is there takes the place of that one.
        if more > 1 {
            rows.truncate(most);
            let text = format!("{DIFF}… {more} more lines: [d]etails shows them");
            rows.extend(self.rows(&[(Style::Yellow, &text)], DIFF_MORE));
        }
        rows
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
        // An added line and a removed line may differ only by a tab.
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
