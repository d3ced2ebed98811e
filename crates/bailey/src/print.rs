//! Everything that is printed passes here: neutralised for a terminal, coloured only there.

use crate::cli::Color;
use bailey_secrets::neutralise;
use serde::Serialize;
use std::{
    fmt,
    io::{IsTerminal as _, Write as _},
};

/// A style of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Bold,
    Dim,
    Green,
    Red,
    Yellow,
    Cyan,
}

/// Prints to standard output and standard error.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    json: bool,
    out_color: bool,
    err_color: bool,
}

impl Printer {
    pub(crate) fn new(json: bool, color: Color) -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let color = |terminal: bool| match color {
            Color::Auto => terminal && !no_color,
            Color::Always => true,
            Color::Never => false,
        };
        Self {
            json,
            out_color: color(std::io::stdout().is_terminal()),
            err_color: color(std::io::stderr().is_terminal()),
        }
    }

    /// Whether scripts read this.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Foreign text, made safe and styled for standard output.
    pub(crate) fn paint(&self, style: Style, text: &str) -> String {
        paint(self.out_color, style, &neutralise(text))
    }

    /// A line on standard output, of text that was painted or is our own.
    #[expect(clippy::print_stdout, reason = "the one place that prints")]
    pub(crate) fn line(&self, line: impl fmt::Display) {
        println!("{line}");
    }

    /// The same without an end of line.
    #[expect(clippy::print_stdout, reason = "the one place that prints")]
    pub(crate) fn part(&self, part: impl fmt::Display) {
        print!("{part}");
        std::io::stdout().flush().ok();
    }

    /// A line on standard error, for what is not the result.
    #[expect(clippy::print_stderr, reason = "the one place that prints")]
    pub(crate) fn note(&self, text: &str) {
        eprintln!("{}", paint(self.err_color, Style::Dim, &neutralise(text)));
    }

    /// One JSON object on a line of standard output.
    pub(crate) fn json(&self, value: &impl Serialize) {
        if let Ok(line) = serde_json::to_string(value) {
            self.line(line);
        }
    }

    /// An error on standard error: what, why, and how to fix it.
    #[expect(clippy::print_stderr, reason = "the one place that prints")]
    pub(crate) fn error(&self, error: &anyhow::Error) {
        let text = format!("{error:#}");
        if self.json {
            self.json(&serde_json::json!({ "type": "error", "error": text }));
        }
        eprintln!("{} {}", paint(self.err_color, Style::Red, "error:"), neutralise(&text));
    }
}

fn paint(color: bool, style: Style, text: &str) -> String {
    let code = match style {
        Style::Plain => return text.into(),
        _ if !color => return text.into(),
        Style::Bold => 1,
        Style::Dim => 2,
        Style::Red => 31,
        Style::Green => 32,
        Style::Yellow => 33,
        Style::Cyan => 36,
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}
