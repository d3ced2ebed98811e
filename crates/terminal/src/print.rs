//! All printed text passes through this module. The text leaves it without the keys that Bailey holds,
//! neutralised for a terminal, and coloured only there.

mod fold;
mod out;
mod waiting;

pub use fold::fold;
pub use out::unstick;

use bailey_protocol::exit;
use bailey_secrets::{Redactor, neutralise};
use out::Out;
use rustix::termios::tcgetwinsize;
use serde::Serialize;
use serde_json::Value;
use std::{
    borrow::Cow,
    fmt,
    io::{self, IsTerminal as _},
    os::fd::AsFd,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// A style of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// As it is.
    Plain,
    /// Bold.
    Bold,
    /// Dimmed.
    Dim,
    /// Green.
    Green,
    /// Red.
    Red,
    /// Yellow.
    Yellow,
    /// Cyan.
    Cyan,
    /// Emphasis.
    Italic,
    /// Code within text.
    Code,
}

/// Prints to standard output and standard error.
#[derive(Debug)]
pub struct Printer {
    json: bool,
    out: Out,
    err: Out,
    out_color: bool,
    err_color: bool,
    is_live: bool,
    is_dumb: bool,
    /// Whether standard output is for the answer alone.
    is_answer: AtomicBool,
    redactor: OnceLock<Redactor>,
    /// Whether a caller wants to know when nothing can be printed any more.
    is_watched: AtomicBool,
    /// The exit code for the case that nothing can be printed any more.
    closed: OnceLock<u8>,
}

impl Printer {
    /// Prints JSON lines when `json` is set, else text.
    pub fn new(json: bool, color: Color) -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        let color = |terminal: bool| match color {
            Color::Auto => terminal && !no_color && !is_dumb,
            Color::Always => true,
            Color::Never => false,
        };
        let is_terminal = io::stdout().is_terminal();
        Self {
            json,
            out: Out::new(&io::stdout()),
            err: Out::new(&io::stderr()),
            out_color: color(is_terminal),
            err_color: color(io::stderr().is_terminal()),
            is_live: is_terminal && !is_dumb && !json,
            is_dumb,
            is_answer: AtomicBool::new(false),
            redactor: OnceLock::new(),
            is_watched: AtomicBool::new(false),
            closed: OnceLock::new(),
        }
    }

    /// Whether standard output is a terminal whose rows can be redrawn for the user.
    pub(crate) fn is_live(&self) -> bool {
        self.is_live && !self.is_answer()
    }

    /// From now on standard output is for [`Printer::answer`] alone; everything else for it is dropped.
    pub fn only_answer(&self) {
        self.is_answer.store(true, Relaxed);
    }

    /// Whether standard output is for the answer alone.
    pub fn is_answer(&self) -> bool {
        self.is_answer.load(Relaxed)
    }

    /// Prints the answer, where standard output is for it alone.
    pub fn answer(&self, text: &str) {
        if !text.is_empty() {
            self.write_out(&(self.paint_lines(Style::Plain, text.trim_end()).join("\n") + "\n"));
        }
    }

    /// Whether the terminal is a dumb one: `TERM` is missing, empty or `dumb`.
    pub(crate) fn is_dumb(&self) -> bool {
        self.is_dumb
    }

    /// The width of standard output in cells. `None` when it is not a terminal or does not say its width.
    pub fn columns(&self) -> Option<usize> {
        self.size().map(|(columns, _)| columns)
    }

    /// The same, but without a limit when the width is unknown.
    pub fn cells(&self) -> usize {
        self.columns().unwrap_or(usize::MAX)
    }

    /// The width of standard output in cells and its height in rows. `None` when it is not a terminal or does
    /// not say its size.
    pub(crate) fn size(&self) -> Option<(usize, usize)> {
        size(&io::stdout())
    }

    /// The size for text that the terminal itself must never break. `None` when standard output is not a
    /// terminal.
    pub fn sheet(&self) -> Option<(usize, usize)> {
        io::stdout().is_terminal().then(|| usual(self.size()))
    }

    /// The redactor that takes secrets out of all printed text.
    pub fn redactor(&self) -> Redactor {
        self.redactor.get().cloned().unwrap_or_default()
    }

    /// From now on the printer remembers when nothing can be printed any more. Without this call, the program
    /// ends there.
    pub fn watch(&self) {
        self.is_watched.store(true, Relaxed);
    }

    /// The exit code, once nothing can be printed any more: there is no reader, or there is no room.
    pub fn closed(&self) -> Option<u8> {
        self.closed.get().copied()
    }

    /// Whether the output is JSON for scripts.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// From now on these secrets are taken out of all printed text.
    pub fn hide(&self, redactor: Redactor) {
        // A second call has no effect: a caller that loads the same keys again hides the same secrets.
        self.redactor.set(redactor).ok();
    }

    /// Foreign text without secrets.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redactor.get().map_or(Cow::Borrowed(text), |redactor| redactor.redact(text).text)
    }

    /// Foreign text, made safe and styled for standard output. It stays on its line: a line feed in it is
    /// shown as `\n`, so that a name chosen by others cannot draw a line of its own.
    pub fn paint(&self, style: Style, text: &str) -> String {
        paint(self.out_color, style, &neutralise(&self.redact(text)).replace('\n', "\\n"))
    }

    /// The same for text that may have several lines. Secrets are taken out of the whole text, because a
    /// secret may have several lines, too.
    pub fn paint_lines(&self, style: Style, text: &str) -> Vec<String> {
        self.redact(text).split('\n').map(|line| self.paint(style, line)).collect()
    }

    /// Prints a line on standard output. The text was painted or is Bailey's own.
    pub fn line(&self, line: impl fmt::Display) {
        self.part(format_args!("{line}\n"));
    }

    /// The same without an end of line. When nothing can be printed any more, the program ends, unless a
    /// caller watches for that because it has work to end.
    pub fn part(&self, part: impl fmt::Display) {
        if !self.is_answer() {
            self.write_out(&part.to_string());
        }
    }

    fn write_out(&self, text: &str) {
        if self.closed().is_some() {
            return;
        }
        if let Err(error) = self.out.write(text.as_bytes()) {
            let code = self.unprinted(error);
            if !self.is_watched.load(Relaxed) {
                crate::quit(code);
            }
            self.closed.set(code).ok();
        }
    }

    /// Prints bytes of another program on standard output, unchanged. They no longer contain secrets.
    ///
    /// # Errors
    /// When the bytes cannot be written.
    pub fn bytes(&self, bytes: &[u8]) -> io::Result<()> {
        self.out.write(bytes)
    }

    /// The same on standard error, where a missing reader is not an error.
    pub fn error_bytes(&self, bytes: &[u8]) {
        self.err.write(bytes).ok();
    }

    /// Says why nothing can be printed, and returns the exit code. It says nothing when the reader went away,
    /// because a reader that has seen enough does so.
    pub fn unprinted(&self, error: io::Error) -> u8 {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return exit::UNREAD;
        }
        self.warned("error:", Style::Red, &format!("standard output cannot be written: {error}"));
        exit::FAILED
    }

    /// Prints a line on standard error, for text that is not the result.
    pub fn note(&self, text: &str) {
        let text = folded(&neutralise(&self.redact(text)));
        for line in text.split('\n') {
            let line = paint(self.err_color, Style::Dim, line);
            self.err.write(format!("{line}\n").as_bytes()).ok();
        }
    }

    /// Prints each of these lines in the same way.
    pub fn notes(&self, lines: impl IntoIterator<Item = String>) {
        lines.into_iter().for_each(|line| self.note(&line));
    }

    /// Prints a line on standard error that the user should see.
    pub fn warn(&self, text: &str) {
        self.warned("note:", Style::Yellow, text);
    }

    /// Prints a warning on standard error that the user must not overlook.
    pub fn alarm(&self, text: &str) {
        self.warned("WARNING:", Style::Red, text);
    }

    fn warned(&self, label: &str, style: Style, text: &str) {
        let text = folded(&format!("{label} {}", neutralise(&self.redact(text))));
        let rest = text.strip_prefix(label).unwrap_or(&text);
        let line = format!("{}{rest}\n", paint(self.err_color, style, label));
        self.err.write(line.as_bytes()).ok();
    }

    /// Prints one JSON object on a line of standard output.
    pub fn json(&self, value: &impl Serialize) {
        if let Ok(line) = self.json_line(value) {
            self.line(line);
        }
    }

    /// The same line as text, without its line end: it has no secrets and is harmless where it is shown.
    pub fn json_line(&self, value: &impl Serialize) -> serde_json::Result<String> {
        let line = serde_json::to_string(value)?;
        if matches!(self.redact(&line), Cow::Borrowed(_)) {
            return Ok(escaped(&line).into_owned());
        }
        // Secrets are taken out string by string, so that the line is still JSON afterwards.
        let mut value = serde_json::from_str(&line)?;
        self.redact_json(&mut value);
        Ok(escaped(&value.to_string()).into_owned())
    }

    /// Prints a line of JSON that a script wants byte for byte. On a terminal the line is escaped.
    pub fn verbatim(&self, line: &str) {
        if std::io::stdout().is_terminal() { self.line(escaped(line)) } else { self.line(line) }
    }

    fn redact_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.redact(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_json(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.redact_json(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Prints an error for scripts, as JSON.
    pub fn json_error(&self, text: &str) {
        self.json(&serde_json::json!({ "v": 1, "type": "error", "error": text }));
    }

    /// Prints an error on standard error: the error, its cause, and how to fix it.
    pub fn error(&self, error: &anyhow::Error) {
        let text = self.redact(&whole(error)).into_owned();
        if self.json {
            self.json_error(&text);
        }
        let label = "error:";
        let text = folded(&format!("{label} {}", neutralise(&text)));
        // Text that an error quotes may have several lines. No such line begins where another error would
        // begin.
        let rest = text.strip_prefix(label).unwrap_or(&text).replace('\n', "\n  ");
        let line = format!("{}{rest}\n", paint(self.err_color, Style::Red, label));
        self.err.write(line.as_bytes()).ok();
    }
}

/// Text for standard error: on a terminal, folded between words.
fn folded(text: &str) -> String {
    size(&io::stderr())
        .map_or_else(|| text.to_owned(), |(columns, _)| fold(text, columns - 2.min(columns), 0))
}

/// The width of a terminal in cells and its height in rows. `None` when it is not a terminal or does not say
/// its size.
pub(crate) fn size(stream: &impl AsFd) -> Option<(usize, usize)> {
    let size = tcgetwinsize(stream).ok().filter(|size| size.ws_col > 0)?;
    Some((usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// The size to draw in. It is 80 cells and 24 rows when the terminal does not say its size, and 24 rows high
/// when the terminal says only its width.
pub(crate) fn usual(size: Option<(usize, usize)>) -> (usize, usize) {
    let (columns, rows) = size.unwrap_or((80, 24));
    (columns, if rows > 0 { rows } else { 24 })
}

/// An error with its causes, each said once: many messages already contain the words of their cause.
pub fn whole(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |said, cause| match cause.to_string() {
        words if said.contains(&words) => said,
        words if said.is_empty() => words,
        words => format!("{said}: {words}"),
    })
}

/// JSON with its deceptive characters as escapes: the same JSON for a parser, and harmless where it is shown.
/// JSON's own escapes cover U+0000 to U+001F only; C1 controls, bidirectional controls, invisible characters
/// and tags remain.
fn escaped(json: &str) -> Cow<'_, str> {
    let deceives = |c: char| {
        matches!(c,
            '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    };
    if !json.contains(deceives) {
        return json.into();
    }
    let mut safe = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if deceives(c) {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| safe.push_str(&format!("\\u{unit:04x}")));
        } else {
            safe.push(c);
        }
    }
    safe.into()
}

fn paint(color: bool, style: Style, text: &str) -> String {
    let code = match style {
        Style::Plain => return text.into(),
        _ if !color => return text.into(),
        Style::Bold => 1,
        Style::Dim => 2,
        Style::Italic => 3,
        Style::Red => 31,
        Style::Green => 32,
        Style::Yellow => 33,
        Style::Cyan | Style::Code => 36,
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

#[cfg(test)]
mod tests {
    use super::{Printer, Style, escaped};
    use crate::print::Color;

    #[test]
    fn painted_text_stays_on_its_line() {
        let printer = Printer::new(false, Color::Never);
        let text = "a model\nerror: your account is locked";
        assert_eq!(printer.paint(Style::Plain, text), r"a model\nerror: your account is locked");
        let lines = printer.paint_lines(Style::Plain, text);
        assert_eq!(
            lines,
            ["a model", "error: your account is locked"],
            "the control: what may have lines has them"
        );
    }

    #[test]
    fn json_deceives_nobody_and_stays_the_same() {
        let text = "a\u{9b}31m\u{202e}b\u{200b}c\u{e0041}";
        let line = serde_json::to_string(text).unwrap();
        let safe = escaped(&line);
        assert!(safe.is_ascii(), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
        assert_eq!(escaped("plain ä"), "plain ä");
    }
}
