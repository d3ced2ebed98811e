//! Tables: lines of cells between bars, the second of which says how the columns are aligned.

use super::inline;
use crate::{
    print::{Printer, Style},
    text::{Span, width, wrap},
};

/// The most rows of a table. A longer one is drawn in pieces.
pub(super) const ROWS_MAX: usize = 200;
/// The most columns. A line with more is no row of a table.
const COLUMNS_MAX: usize = 20;
/// The blanks between columns.
const GAP: usize = 2;
/// The narrowest column.
const NARROW: usize = 4;

/// Whether a line looks like a row of a table.
pub(super) fn is_row(line: &str) -> bool {
    line.trim_start().starts_with('|')
}

/// The rows of a table as it is drawn. Lines that are no table are drawn as they are written.
pub(super) fn draw(printer: &Printer, lines: &[String], cells: usize) -> Vec<Vec<Span>> {
    let rows: Vec<Vec<String>> = lines.iter().map(|line| split(line)).collect();
    let columns = rows.first().map_or(0, Vec::len);
    let ruler = rows.get(1).filter(|row| row.iter().all(|cell| is_ruler(cell)));
    let Some(ruler) = ruler.filter(|row| row.len() == columns && columns <= COLUMNS_MAX) else {
        let plain = |line: &String| wrap(&inline(printer, line, Style::Plain), cells, 0);
        return lines.iter().flat_map(plain).collect();
    };
    let is_right: Vec<bool> =
        ruler.iter().map(|cell| cell.ends_with(':') && !cell.starts_with(':')).collect();
    let drawn: Vec<Vec<Vec<Span>>> = rows
        .iter()
        .enumerate()
        .filter(|(at, _)| *at != 1)
        .map(|(at, row)| {
            let base = if at == 0 { Style::Bold } else { Style::Plain };
            let cell = |column| row.get(column).map(String::as_str).unwrap_or_default();
            (0..columns).map(|column| inline(printer, cell(column), base)).collect()
        })
        .collect();
    let widths = fitted(&natural(&drawn, columns), cells);
    let mut out = Vec::new();
    for (at, row) in drawn.into_iter().enumerate() {
        out.extend(laid_out(row, &widths, &is_right));
        if at == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            out.push(vec![(Style::Dim, rule.join(&" ".repeat(GAP)))]);
        }
    }
    out
}

/// The cells of a line. A bar behind a backslash, or in code, belongs to its cell.
fn split(line: &str) -> Vec<String> {
    let line = line.trim().trim_start_matches('|');
    let (mut cells, mut cell, mut is_code, mut is_escaped) = (Vec::new(), String::new(), false, false);
    for c in line.chars() {
        match c {
            '|' if is_escaped => {
                cell.pop();
                cell.push(c);
            }
            '|' if !is_code => cells.push(std::mem::take(&mut cell).trim().to_owned()),
            c => {
                is_code ^= c == '`';
                cell.push(c);
            }
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    if !cell.trim().is_empty() {
        cells.push(cell.trim().to_owned());
    }
    cells
}

fn is_ruler(cell: &str) -> bool {
    let line = cell.trim_matches(':');
    !line.is_empty() && line.chars().all(|c| c == '-')
}

fn cell_width(cell: &[Span]) -> usize {
    cell.iter().map(|(_, text)| width(text)).sum()
}

fn natural(rows: &[Vec<Vec<Span>>], columns: usize) -> Vec<usize> {
    let of = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell_width(cell)).max().unwrap_or(0).max(1)
    };
    (0..columns).map(of).collect()
}

/// The widths with which the table fits: the widest columns give first.
fn fitted(natural: &[usize], cells: usize) -> Vec<usize> {
    let mut widths = natural.to_vec();
    let room = cells.saturating_sub(GAP * natural.len().saturating_sub(1));
    while widths.iter().sum::<usize>() > room {
        let Some(widest) = widths.iter_mut().max_by_key(|width| **width).filter(|width| **width > NARROW)
        else {
            break;
        };
        *widest -= 1;
    }
    widths
}

/// A row's cells side by side, each in as many lines as it needs.
fn laid_out(row: Vec<Vec<Span>>, widths: &[usize], is_right: &[bool]) -> Vec<Vec<Span>> {
    let cells: Vec<Vec<Vec<Span>>> =
        row.iter().zip(widths).map(|(cell, width)| wrap(cell, *width, 0)).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let line = |at: usize| {
        let mut spans: Vec<Span> = Vec::new();
        let mut pending = 0;
        for (column, cell) in cells.iter().enumerate() {
            let mut text = cell.get(at).cloned().unwrap_or_default();
            if let Some((_, last)) = text.last_mut() {
                last.truncate(last.trim_end().len());
            }
            let free = widths.get(column).copied().unwrap_or(0).saturating_sub(cell_width(&text));
            let before = if is_right.get(column) == Some(&true) { free } else { 0 };
            pending += before;
            // Blanks at the end of a line are not drawn.
            if cell_width(&text) > 0 {
                if pending > 0 {
                    spans.push((Style::Plain, " ".repeat(pending)));
                }
                pending = 0;
                spans.extend(text.into_iter().filter(|(_, text)| !text.is_empty()));
            }
            pending += free - before + GAP;
        }
        spans
    };
    (0..height).map(line).collect()
}
