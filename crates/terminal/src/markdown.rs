//! Markdown as models write it, drawn line by line while it comes: headings, lists, quotes, rules, tables,
//! fenced code, links, bold, emphasis and inline code. A table is drawn when it has ended. Text that is not
//! recognised is shown as it is written. Nothing is hidden, and a link's address stays visible. A full parser
//! would need the whole document, but the user reads this text while the model writes it.

mod code;
mod table;

use super::text::{Span, span, wrap};
use crate::print::{Printer, Style};

/// A line that is longer than this, in bytes, is drawn in pieces: a line without an end must not be held.
const LINE_BYTES_MAX: usize = 4096;
/// The widest rule, in cells.
const RULE_CELLS_MAX: usize = 40;

/// One stream of markdown.
#[derive(Debug, Default)]
pub(super) struct Markdown {
    /// The line that has not ended yet.
    line: String,
    /// The fence that ends the code block; `None` outside a code block.
    fence: Option<String>,
    /// The language of the code block.
    language: String,
    /// The lines of a table that has not ended yet.
    table: Vec<String>,
}

/// A row and its spans.
type Rows = Vec<Vec<Span>>;

impl Markdown {
    /// Takes a piece of text and gives the rows that are ready.
    pub(super) fn push(&mut self, printer: &Printer, piece: &str, cells: usize) -> Rows {
        let mut rows = Vec::new();
        for part in piece.split_inclusive('\n') {
            self.line.push_str(part.trim_end_matches('\n'));
            if part.ends_with('\n') || self.line.len() > LINE_BYTES_MAX {
                rows.extend(self.end_line(printer, cells));
            }
        }
        rows
    }

    /// Whether a line or a table has not ended yet.
    pub(super) fn is_open(&self) -> bool {
        !(self.line.is_empty() && self.table.is_empty())
    }

    /// The text that has not ended yet, as it would be drawn now.
    pub(super) fn open(&self, printer: &Printer, cells: usize) -> Rows {
        // The widths of a table are known at its end.
        let count = self.table.len();
        let told = (count > 0).then(|| vec![(Style::Dim, format!("… a table, {count} lines"))]);
        let mut rows: Rows = told.into_iter().collect();
        if !self.line.is_empty() {
            rows.extend(self.draw(printer, &self.line, cells));
        }
        rows
    }

    /// Ends the text.
    pub(super) fn end(&mut self, printer: &Printer, cells: usize) -> Rows {
        let mut rows = if self.line.is_empty() { Vec::new() } else { self.end_line(printer, cells) };
        rows.extend(table::draw(printer, &std::mem::take(&mut self.table), cells));
        rows
    }

    /// A whole text as lines to print.
    pub(super) fn lines(printer: &Printer, text: &str, cells: usize) -> Vec<String> {
        let mut markdown = Self::default();
        let mut rows = markdown.push(printer, text, cells);
        rows.extend(markdown.end(printer, cells));
        let line = |row: Vec<Span>| row.iter().map(|(style, text)| printer.paint(*style, text)).collect();
        rows.into_iter().map(line).collect()
    }

    fn end_line(&mut self, printer: &Printer, cells: usize) -> Rows {
        let line = std::mem::take(&mut self.line);
        if self.fence.is_none() && table::is_row(&line) && self.table.len() < table::ROWS_MAX {
            self.table.push(line);
            return Vec::new();
        }
        let mut rows = table::draw(printer, &std::mem::take(&mut self.table), cells);
        rows.extend(self.other_line(printer, &line, cells));
        rows
    }

    fn other_line(&mut self, printer: &Printer, line: &str, cells: usize) -> Rows {
        let fence = fence(line);
        match (&self.fence, fence) {
            (None, Some((open, language))) => {
                self.fence = Some(open);
                self.language.clone_from(&language);
                let label = span(printer, Style::Dim, &language);
                return if language.is_empty() {
                    Vec::new()
                } else {
                    wrap(&[(Style::Plain, "  ".into()), label], cells, 2)
                };
            }
            (Some(open), Some((close, language)))
                if language.is_empty() && close.starts_with(open.as_str()) =>
            {
                self.fence = None;
                return Vec::new();
            }
            _ => {}
        }
        self.draw(printer, line, cells)
    }

    fn draw(&self, printer: &Printer, line: &str, cells: usize) -> Rows {
        if self.fence.is_some() {
            let blank = std::iter::once((Style::Plain, "  ".into()));
            let spans: Vec<Span> = blank.chain(code::spans(printer, &self.language, line)).collect();
            return wrap(&spans, cells, 2);
        }
        let text = line.trim_start();
        let depth = line.len() - text.len();
        let blank = " ".repeat(depth.min(16));
        if let Some(heading) = heading(text) {
            return wrap(&[span(printer, Style::Bold, &plain(heading))], cells, 0);
        }
        if is_rule(text) {
            return vec![vec![(Style::Dim, "─".repeat(cells.min(RULE_CELLS_MAX)))]];
        }
        if let Some(quote) = text.strip_prefix('>') {
            let mut spans = vec![(Style::Dim, format!("{blank}▏ "))];
            spans.extend(inline(printer, quote.trim_start(), Style::Dim));
            return wrap(&spans, cells, blank.len() + 2);
        }
        if let Some((mark, item)) = item(text) {
            let indent = blank.len() + mark.chars().count();
            let mut spans = vec![(Style::Plain, blank), (Style::Cyan, mark)];
            spans.extend(inline(printer, item, Style::Plain));
            return wrap(&spans, cells, indent);
        }
        let mut spans = vec![(Style::Plain, blank.clone())];
        spans.extend(inline(printer, text, Style::Plain));
        wrap(&spans, cells, blank.len())
    }
}

/// A fence, and the language after it.
fn fence(line: &str) -> Option<(String, String)> {
    let text = line.trim_start();
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let fence: String = text.chars().take_while(|c| *c == mark).collect();
    let rest = text.get(fence.len()..)?.trim();
    (fence.len() >= 3 && !rest.contains('`')).then(|| (fence, rest.to_owned()))
}

fn heading(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches('#');
    let depth = text.len() - rest.len();
    ((1..=6).contains(&depth) && rest.starts_with(' ')).then(|| rest.trim())
}

fn is_rule(text: &str) -> bool {
    let mark = text.chars().next().filter(|c| matches!(c, '-' | '*' | '_'));
    mark.is_some_and(|mark| text.trim_end().len() >= 3 && text.trim_end().chars().all(|c| c == mark))
}

/// A list item: its mark as it is drawn, and its text.
fn item(text: &str) -> Option<(String, &str)> {
    if let Some(rest) = ["- ", "* ", "+ "].into_iter().find_map(|mark| text.strip_prefix(mark)) {
        return Some(("• ".into(), rest.trim_start()));
    }
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, rest) = text.split_at_checked(digits)?;
    let rest = rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "))?;
    (1..=9).contains(&digits).then(|| (format!("{number}. "), rest))
}

/// Bold, emphasis, links and code within a line.
fn inline(printer: &Printer, text: &str, base: Style) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut written = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let is_in_word = written.ends_with(char::is_alphanumeric);
        let found = link(rest).map(|(text, at, after)| {
            let at = if at == text { String::new() } else { format!(" ({at})") };
            (vec![(base, text.to_owned()), (Style::Dim, at)], after)
        });
        let found = found.or_else(|| {
            let (style, inner, after) = marked(rest, is_in_word)?;
            Some((vec![(style, inner.to_owned())], after))
        });
        if let Some((pieces, after)) = found {
            if !written.is_empty() {
                spans.push(span(printer, base, &std::mem::take(&mut written)));
            }
            let pieces = pieces.iter().filter(|(_, text)| !text.is_empty());
            spans.extend(pieces.map(|(style, text)| span(printer, *style, text)));
            rest = after;
            continue;
        }
        let escaped =
            rest.strip_prefix('\\').and_then(|next| next.chars().next()).filter(char::is_ascii_punctuation);
        written.push(escaped.unwrap_or(c));
        rest = rest.get(escaped.map_or(c.len_utf8(), |_| 2)..).unwrap_or_default();
    }
    if !written.is_empty() || spans.is_empty() {
        spans.push(span(printer, base, &written));
    }
    spans
}

/// A link at the start of `rest`, `[text](address)`: its text, its address, and the text that follows it.
fn link(rest: &str) -> Option<(&str, &str, &str)> {
    let (text, after) = rest.strip_prefix('[')?.split_once("](")?;
    let (address, after) = after.split_once(')')?;
    let is_whole = !text.is_empty() && !text.contains(['[', ']']) && !address.is_empty();
    (is_whole && !address.contains([' ', '('])).then_some((text, address, after))
}

/// The style and the text of a marked piece at the start of `rest`, and the text that follows it. Within a
/// word only code and bold asterisks are marks.
fn marked(rest: &str, is_in_word: bool) -> Option<(Style, &str, &str)> {
    const MARKS: [(&str, Style); 6] = [
        ("``", Style::Code),
        ("`", Style::Code),
        ("**", Style::Bold),
        ("__", Style::Bold),
        ("*", Style::Italic),
        ("_", Style::Italic),
    ];
    for (mark, style) in MARKS {
        let Some(after) = rest.strip_prefix(mark) else { continue };
        if is_in_word && (mark.starts_with('_') || mark == "*") {
            return None;
        }
        let end = after.find(mark)?;
        let (inner, after) = (after.get(..end)?, after.get(end + mark.len()..)?);
        let is_tight = !inner.is_empty() && (style == Style::Code || inner.trim() == inner);
        let ends_word = !mark.starts_with('_') || !after.starts_with(char::is_alphanumeric);
        return (is_tight && ends_word).then_some((style, inner, after));
    }
    None
}

/// A text without its marks, for headings, which are bold already.
fn plain(text: &str) -> String {
    text.replace("**", "").replace('`', "")
}

#[cfg(test)]
mod tests;
