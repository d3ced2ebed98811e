//! A list on the controlling terminal, of which the user picks one row: type to filter, arrows to move, Enter
//! to pick, Esc to leave. On a terminal that cannot redraw rows, each row has a number and the user types it.

use super::{
    card::one_line,
    keys::Key,
    prompt::Prompt,
    signals::Signals,
    terminal::Terminal,
    text::{self, Span, cut, span},
};
use crate::{
    code_of,
    print::{Printer, Style},
    quit, restore,
};
use std::{
    fs::OpenOptions,
    future::Future,
    io::{self, Write as _},
    ops::ControlFlow,
};

/// The most rows of the list that are on the screen.
const ROWS_MAX: usize = 12;
/// Rows of the screen that stay free of the list: the title, the filter, the count, and a row to spare.
const ROWS_FREE: usize = 4;
/// The longest filter or line of text, in characters.
const FILTER_CHARS_MAX: usize = 200;
/// The most rows that a terminal which cannot redraw is shown.
const NUMBERED_MAX: usize = 200;

/// Asks the user to pick one of `rows`; gives its index. `None` when the user leaves with Esc or Ctrl-D, when
/// there is nothing to pick, and without a terminal. Ctrl-C ends the program. Rows may be foreign text.
pub async fn pick_one(printer: &Printer, title: &str, rows: &[String]) -> Option<usize> {
    or_quit(pick(printer, title, rows)).await.ok().flatten()
}

/// The same for a process that has to stay with one thread: a signal ends the process, and its parent
/// restores the terminal.
pub async fn pick_without_signals(printer: &Printer, title: &str, rows: &[String]) -> Option<usize> {
    pick(printer, title, rows).await.ok().flatten()
}

async fn pick(printer: &Printer, title: &str, rows: &[String]) -> io::Result<Option<usize>> {
    if rows.is_empty() {
        return Ok(None);
    }
    let prompt = Prompt::open(printer)?;
    match printer.is_dumb() {
        true => numbered(printer, &prompt, title, rows).await,
        false => listed(printer, prompt.terminal(), title, rows).await,
    }
}

/// Asks for a line of text, which may be pasted. `None` when the user leaves with Ctrl-D, and without a
/// terminal. Ctrl-C ends the program.
pub async fn ask_text(printer: &Printer, question: &str) -> Option<String> {
    let asked = async {
        let prompt = Prompt::open(printer)?;
        typed(printer, prompt.terminal(), question).await
    };
    or_quit(asked).await.ok().flatten()
}

/// Does `work` to its end. A signal that asks the program to end, such as Ctrl-C, ends it at once, and leaves
/// the shell a line of its own.
pub async fn or_quit<T>(work: impl Future<Output = T>) -> T {
    // Without ears a signal ends the program all the same.
    let Ok(mut signals) = Signals::listen() else { return work.await };
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            heard = signals.next() => if let Some(code) = code_of(heard) {
                restore();
                end_line();
                quit(code);
            },
        }
    }
}

/// Ends the line on the controlling terminal.
pub fn end_line() {
    if let Ok(mut terminal) = OpenOptions::new().write(true).open("/dev/tty") {
        terminal.write_all(b"\r\n").ok();
    }
}

/// Reads the text, and shows it while it is typed.
async fn typed(printer: &Printer, terminal: &Terminal, question: &str) -> io::Result<Option<String>> {
    terminal.drain();
    let mut text = String::new();
    loop {
        let shown = printer.paint(Style::Plain, &text);
        terminal.write(&format!("\r\x1b[K{question} {shown}")).await?;
        let Some(read) = terminal.read_keys().await? else { return Ok(None) };
        for key in read.keys {
            match key {
                Key::Enter | Key::NewLine => {
                    let shown = printer.paint(Style::Plain, &text);
                    terminal.write(&format!("\r\x1b[K{question} {shown}\r\n")).await?;
                    return Ok(Some(text.trim().to_owned()));
                }
                Key::Eof if text.is_empty() => {
                    terminal.write("\r\n").await?;
                    return Ok(None);
                }
                Key::Char(c) => add(&mut text, &c.to_string()),
                Key::Paste(pasted) => add(&mut text, &pasted),
                Key::Backspace => drop(text.pop()),
                Key::KillBefore | Key::KillWord => text.clear(),
                _ => {}
            }
        }
    }
}

/// Adds typed or pasted text, as far as it is one line.
fn add(text: &mut String, more: &str) {
    let room = FILTER_CHARS_MAX.saturating_sub(text.chars().count());
    text.extend(more.chars().filter(|c| !c.is_control()).take(room));
}

/// Shows each row with a number, and asks for the number.
async fn numbered(
    printer: &Printer,
    prompt: &Prompt,
    title: &str,
    rows: &[String],
) -> io::Result<Option<usize>> {
    let mut page = format!("{title}\n");
    for (at, row) in rows.iter().take(NUMBERED_MAX).enumerate() {
        let row = printer.paint(Style::Plain, &one_line(row));
        page.push_str(&format!("{:>4}  {row}\n", at + 1));
    }
    if rows.len() > NUMBERED_MAX {
        page.push_str(&format!("      and {} more\n", rows.len() - NUMBERED_MAX));
    }
    prompt.terminal().write(&page).await?;
    let mut question = "Number (Enter leaves): ".to_owned();
    loop {
        let Some(line) = prompt.line(&question).await? else { return Ok(None) };
        match line.trim().parse::<usize>() {
            _ if line.trim().is_empty() => return Ok(None),
            Ok(number) if (1..=rows.len()).contains(&number) => return Ok(Some(number - 1)),
            _ => question = format!("Please type a number from 1 to {} (Enter leaves): ", rows.len()),
        }
    }
}

/// Shows the list and follows the keys. The list is gone from the screen afterwards; the picked row stays.
async fn listed(
    printer: &Printer,
    terminal: &Terminal,
    title: &str,
    rows: &[String],
) -> io::Result<Option<usize>> {
    // Keys that were typed before the list was seen pick nothing.
    terminal.drain();
    let mut picker = Picker { rows, filter: String::new(), chosen: 0, first: 0 };
    let mut drawn = 0;
    let picked = 'picked: loop {
        let page = picker.page(printer, title, terminal.size());
        terminal.write(&format!("{}{}", erasure(drawn), page.join("\r\n"))).await?;
        drawn = page.len();
        let Some(read) = terminal.read_keys().await? else { break None };
        for key in read.keys {
            if let ControlFlow::Break(picked) = picker.press(key) {
                break 'picked picked;
            }
        }
    };
    let row = picked.and_then(|at| rows.get(at)).map_or("", String::as_str);
    let (columns, _) = terminal.size();
    let end = [
        span(printer, Style::Plain, &format!("{}: ", title.trim_end_matches('?'))),
        span(printer, Style::Bold, &one_line(row)),
    ];
    let end = if row.is_empty() { String::new() } else { painted(printer, &end, columns) + "\r\n" };
    terminal.write(&format!("{}{end}", erasure(drawn))).await?;
    Ok(picked)
}

/// The bytes that remove so many drawn rows, of which the cursor stands in the last.
fn erasure(rows: usize) -> String {
    match rows {
        0 => String::new(),
        1 => "\r\x1b[J".into(),
        rows => format!("\r\x1b[{}A\x1b[J", rows - 1),
    }
}

/// A row that the terminal does not wrap.
fn painted(printer: &Printer, spans: &[Span], columns: usize) -> String {
    let mut room = columns.saturating_sub(1);
    let mut row = String::new();
    for (style, text) in spans {
        if room == 0 {
            break;
        }
        let text = cut(text, room);
        room = room.saturating_sub(text::width(&text));
        row.push_str(&text::paint(printer, &[(*style, text)]));
    }
    row
}

/// A list in which the user looks for a row.
struct Picker<'a> {
    rows: &'a [String],
    filter: String,
    /// The marked row, counted among the rows that fit the filter.
    chosen: usize,
    /// The first row on the screen, counted in the same way.
    first: usize,
}

impl Picker<'_> {
    /// The rows that have each word of the filter, in any letter case.
    fn fitting(&self) -> Vec<usize> {
        let filter = self.filter.to_lowercase();
        let words: Vec<&str> = filter.split_whitespace().collect();
        let fits = |row: &str| {
            let row = row.to_lowercase();
            words.iter().all(|word| row.contains(word))
        };
        let rows = self.rows.iter().enumerate();
        rows.filter(|(_, row)| words.is_empty() || fits(row)).map(|(at, _)| at).collect()
    }

    /// Takes a key; breaks with the picked row, or without a row when the user leaves.
    fn press(&mut self, key: Key) -> ControlFlow<Option<usize>> {
        let fitting = self.fitting();
        let last = fitting.len().saturating_sub(1);
        match key {
            Key::Enter | Key::NewLine => {
                if let Some(row) = fitting.get(self.chosen) {
                    return ControlFlow::Break(Some(*row));
                }
            }
            Key::Eof | Key::Escape => return ControlFlow::Break(None),
            Key::Up => self.chosen = self.chosen.checked_sub(1).unwrap_or(last),
            Key::Down | Key::Tab => self.chosen = if self.chosen == last { 0 } else { self.chosen + 1 },
            Key::Home => self.chosen = 0,
            Key::End => self.chosen = last,
            Key::Char(c) => self.narrow(&c.to_string()),
            Key::Paste(text) => self.narrow(&text),
            Key::Backspace => {
                self.filter.pop();
                (self.chosen, self.first) = (0, 0);
            }
            Key::KillBefore | Key::KillWord => {
                self.filter.clear();
                (self.chosen, self.first) = (0, 0);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn narrow(&mut self, text: &str) {
        add(&mut self.filter, text);
        (self.chosen, self.first) = (0, 0);
    }

    /// The title, the rows around the marked one, and the filter, for a screen of this size.
    fn page(&mut self, printer: &Printer, title: &str, (columns, rows): (usize, usize)) -> Vec<String> {
        let fitting = self.fitting();
        let height = rows.saturating_sub(ROWS_FREE).clamp(1, ROWS_MAX);
        self.first = self.first.clamp((self.chosen + 1).saturating_sub(height), self.chosen);
        let keys = "  type to filter · ↑ ↓ · Enter picks · Esc leaves";
        let head = [span(printer, Style::Bold, title), (Style::Dim, keys.into())];
        let mut page = vec![painted(printer, &head, columns)];
        for (at, row) in fitting.iter().enumerate().skip(self.first).take(height) {
            let (mark, style) = if at == self.chosen { ("❯ ", Style::Cyan) } else { ("  ", Style::Plain) };
            let row = self.rows.get(*row).map_or("", String::as_str);
            let row = [(style, mark.to_owned()), span(printer, style, &one_line(row))];
            page.push(painted(printer, &row, columns));
        }
        let shown = fitting.len().min(height);
        let count = match fitting.len() {
            0 => "  nothing fits".to_owned(),
            all if all > shown => format!("  {} of {all}", self.chosen + 1),
            _ => String::new(),
        };
        let foot = [span(printer, Style::Plain, &format!("› {}", self.filter)), (Style::Dim, count)];
        page.push(painted(printer, &foot, columns));
        page
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Picker};
    use crate::print::{Color, Printer};
    use std::ops::ControlFlow;

    fn rows() -> Vec<String> {
        (0..30).map(|n| format!("model-{n} {}", if n % 2 == 0 { "Even" } else { "odd" })).collect()
    }

    fn typed(picker: &mut Picker<'_>, text: &str) {
        text.chars().for_each(|c| assert!(picker.press(Key::Char(c)).is_continue()));
    }

    #[test]
    fn words_filter_and_enter_picks_the_marked_row() {
        let rows = rows();
        let mut picker = Picker { rows: &rows, filter: String::new(), chosen: 0, first: 0 };
        typed(&mut picker, "even 2");
        // 2, 12, 20, 22, 24, 26, 28.
        assert_eq!(picker.fitting(), [2, 12, 20, 22, 24, 26, 28]);
        assert!(picker.press(Key::Down).is_continue());
        assert_eq!(picker.press(Key::Enter), ControlFlow::Break(Some(12)));
        assert!(picker.press(Key::Up).is_continue());
        assert!(picker.press(Key::Up).is_continue());
        assert_eq!(picker.press(Key::Enter), ControlFlow::Break(Some(28)));
        typed(&mut picker, "nothing has this");
        assert!(picker.press(Key::Enter).is_continue(), "an empty list picks nothing");
        assert_eq!(picker.press(Key::Eof), ControlFlow::Break(None));
    }

    #[test]
    fn the_page_scrolls_fits_the_screen_and_shows_nothing_that_acts() {
        let mut rows = rows();
        rows[0] = "evil\u{1b}[2J\u{202e}\nrow".into();
        let printer = Printer::new(false, Color::Never);
        let mut picker = Picker { rows: &rows, filter: String::new(), chosen: 0, first: 0 };
        for size in [(80, 24), (20, 5), (10, 2), (1, 1)] {
            let page = picker.page(&printer, "Model", size);
            assert!(page.len() <= size.1.max(3), "{size:?}: {page:?}");
            for row in &page {
                assert!(crate::text::width(row) < size.0.max(2), "{size:?}: {row:?}");
                assert!(!row.chars().any(|c| c.is_control() || c == '\u{202e}'), "{row:?}");
            }
        }
        assert!(picker.press(Key::End).is_continue());
        let page = picker.page(&printer, "Model", (80, 24));
        assert!(page.iter().any(|row| row.contains("❯ model-29")), "{page:?}");
        assert!(page.last().is_some_and(|row| row.contains("30 of 30")), "{page:?}");
    }
}
