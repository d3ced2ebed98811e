//! The rows on the screen below the last line of the summary so far: the line that the model is writing, the
//! work that Bailey waits for, and the message that the user is writing. These rows are redrawn whenever
//! something is printed above them. For this, a terminal must only move the cursor and erase the rows below
//! it. Without such a terminal, lines simply follow lines.

use super::{terminal, text};
use crate::print::Printer;

/// A row that may change, painted, and how many cells it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) painted: String,
    pub(super) cells: usize,
}

impl Row {
    pub(super) fn of(printer: &Printer, spans: &[text::Span]) -> Self {
        let cells = spans.iter().map(|(_, text)| text::width(text)).sum();
        Self { painted: text::paint(printer, spans), cells }
    }
}

/// The rows that may change, and where the cursor stands in them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Live {
    pub(super) rows: Vec<Row>,
    /// Row and cell; `None` for the end of the last row.
    pub(super) cursor: Option<(usize, usize)>,
}

/// The end of the printed output.
#[derive(Debug)]
pub(super) struct Screen<'a> {
    printer: &'a Printer,
    is_live: bool,
    drawn: Live,
    /// Lines that are printed with the next drawing.
    lines: String,
}

impl<'a> Screen<'a> {
    pub(super) fn new(printer: &'a Printer) -> Self {
        Self { printer, is_live: printer.is_live(), drawn: Live::default(), lines: String::new() }
    }

    /// Whether rows can change.
    pub(super) fn is_live(&self) -> bool {
        self.is_live
    }

    /// How many cells a row may have without being wrapped by the terminal itself.
    pub(super) fn cells(&self) -> usize {
        if self.is_live { terminal::size().0.saturating_sub(1).max(20) } else { usize::MAX }
    }

    /// Adds a painted line above the rows that may change.
    pub(super) fn line(&mut self, line: &str) {
        self.lines.push_str(line);
        self.lines.push('\n');
    }

    /// Adds a painted piece of a line, for an output whose rows cannot change.
    pub(super) fn part(&mut self, part: &str) {
        self.lines.push_str(part);
    }

    /// Prints the lines, and draws the rows that may change below them.
    pub(super) fn draw(&mut self, live: Live) {
        let lines = std::mem::take(&mut self.lines);
        if !self.is_live {
            if !lines.is_empty() {
                self.printer.part(&lines);
            }
            return;
        }
        if lines.is_empty() && live == self.drawn {
            return;
        }
        let mut out = self.erasure();
        out.push_str(&lines);
        let last = live.rows.len().saturating_sub(1);
        for (at, row) in live.rows.iter().enumerate() {
            out.push_str(&row.painted);
            if at < last {
                out.push('\n');
            }
        }
        if let Some((row, cell)) = live.cursor {
            if last > row {
                out.push_str(&format!("\x1b[{}A", last - row));
            }
            out.push('\r');
            if cell > 0 {
                out.push_str(&format!("\x1b[{cell}C"));
            }
        }
        self.drawn = live;
        self.printer.part(&out);
    }

    /// Removes the rows that may change, so that other code can print.
    pub(super) fn clear(&mut self) {
        self.draw(Live::default());
    }

    /// Clears the screen and begins again at its top.
    pub(super) fn wipe(&mut self) {
        if self.is_live {
            self.drawn = Live::default();
            self.printer.part("\x1b[H\x1b[2J");
        }
    }

    /// Assumes that the cursor stands at the start of a free row.
    pub(super) fn forget(&mut self) {
        self.drawn = Live::default();
    }

    fn erasure(&self) -> String {
        if self.drawn.rows.is_empty() {
            return String::new();
        }
        // A terminal that became narrower has wrapped one row into several.
        let columns = terminal::size().0.max(1);
        let rows = |row: &Row| row.cells.saturating_sub(1) / columns + 1;
        let at = self.drawn.cursor.map_or(self.drawn.rows.len() - 1, |(row, _)| row);
        let mut up: usize = self.drawn.rows.iter().take(at).map(rows).sum();
        up += match self.drawn.cursor {
            Some((_, cell)) => cell / columns,
            None => self.drawn.rows.last().map_or(0, |row| rows(row) - 1),
        };
        if up > 0 { format!("\r\x1b[{up}A\x1b[J") } else { "\r\x1b[J".into() }
    }
}
