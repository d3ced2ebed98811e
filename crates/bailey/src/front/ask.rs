//! Cards: answered on the controlling terminal only, after what was typed ahead is thrown away.

use crate::print::{Printer, Style};
use bailey_protocol::{Answer, Card, CardPart};
use rustix::termios::{QueueSelector, tcflush};
use std::{
    fs::{File, OpenOptions},
    io::{BufRead as _, BufReader, Write as _},
};

/// Who answers cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The person at the controlling terminal.
    Terminal,
    /// Nobody: every answer is no.
    Nobody,
}

const NOBODY: &str = "there is no terminal to ask on";

impl Asker {
    /// The terminal, where there is one and nobody said never.
    pub(crate) fn new(never: bool) -> Self {
        if never || controlling_terminal().is_err() { Self::Nobody } else { Self::Terminal }
    }

    /// Whether nobody can answer.
    pub(crate) fn is_nobody(self) -> bool {
        self == Self::Nobody
    }

    /// Shows a card and takes the answer.
    pub(crate) async fn ask(self, printer: &Printer, card: &Card) -> (Answer, String) {
        if self == Self::Nobody {
            return (Answer::No, NOBODY.into());
        }
        let text = draw(printer, card);
        let answered = tokio::task::spawn_blocking(move || ask_terminal(&text)).await;
        match answered {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => (Answer::No, format!("the terminal could not be read: {error}")),
            Err(_) => (Answer::No, "the question was interrupted".into()),
        }
    }
}

fn controlling_terminal() -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

fn ask_terminal(text: &str) -> std::io::Result<(Answer, String)> {
    let mut terminal = controlling_terminal()?;
    terminal.write_all(text.as_bytes())?;
    // What was typed before the question was seen is no answer to it.
    tcflush(&terminal, QueueSelector::IFlush)?;
    let mut reader = BufReader::new(terminal.try_clone()?);
    loop {
        terminal.write_all(b"  [y]es once, yes for this [s]ession, or [n]o and why: ")?;
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok((Answer::No, "the terminal was closed".into()));
        }
        let (word, why) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        match word.to_lowercase().as_str() {
            "y" | "yes" => return Ok((Answer::Yes, String::new())),
            "s" | "session" => return Ok((Answer::YesForSession, String::new())),
            "n" | "no" => return Ok((Answer::No, why.trim().to_owned())),
            _ => terminal.write_all(b"  Please type y, s or n.\n")?,
        }
    }
}

/// Asks a plain yes-or-no question on the controlling terminal; no where there is none.
pub(crate) async fn confirm(question: String) -> bool {
    let asked = move || -> std::io::Result<bool> {
        let mut terminal = controlling_terminal()?;
        tcflush(&terminal, QueueSelector::IFlush)?;
        terminal.write_all(format!("{question} [y/N] ").as_bytes())?;
        let mut line = String::new();
        BufReader::new(terminal).read_line(&mut line)?;
        Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
    };
    tokio::task::spawn_blocking(asked).await.is_ok_and(|answer| answer.unwrap_or(false))
}

fn draw(printer: &Printer, card: &Card) -> String {
    let mut lines =
        vec![String::new(), printer.paint(Style::Yellow, &format!("? {}", one_line(&card.title)))];
    for reason in &card.reasons {
        lines.push(printer.paint(Style::Dim, &format!("  {}", one_line(reason))));
    }
    for part in &card.parts {
        match part {
            CardPart::Field { name, value } => {
                lines.push(format!(
                    "  {}: {}",
                    printer.paint(Style::Bold, name),
                    printer.paint(Style::Plain, &one_line(value))
                ));
            }
            CardPart::Diff { diff, .. } => lines.extend(diff_lines(printer, diff)),
        }
    }
    for caveat in &card.caveats {
        lines.push(printer.paint(Style::Dim, &format!("  note: {}", one_line(caveat))));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// A diff's lines, indented and coloured. Secrets are taken out of the whole: one may have several lines.
pub(crate) fn diff_lines(printer: &Printer, diff: &str) -> Vec<String> {
    let style = |line: &str| match line.as_bytes().first() {
        Some(b'+') => Style::Green,
        Some(b'-') => Style::Red,
        Some(b'@') => Style::Cyan,
        _ => Style::Dim,
    };
    let diff = printer.redact(diff);
    diff.lines().map(|line| format!("    {}", printer.paint(style(line), line))).collect()
}

/// A value on one line: a line feed in it cannot draw a line of its own.
pub(crate) fn one_line(text: &str) -> String {
    text.replace('\n', "\\n").replace('\t', " ")
}
