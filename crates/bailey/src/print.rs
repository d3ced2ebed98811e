//! Everything that is printed passes here: neutralised for a terminal, coloured only there.

use crate::{cli::Color, exit};
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
    pub(crate) fn line(&self, line: impl fmt::Display) {
        self.part(format_args!("{line}\n"));
    }

    /// The same without an end of line. When nobody reads any more there is nothing left to do, and the warden takes
    /// everything inside the walls with it.
    pub(crate) fn part(&self, part: impl fmt::Display) {
        let mut out = std::io::stdout().lock();
        if write!(out, "{part}").and_then(|()| out.flush()).is_err() {
            std::process::exit(exit::FAILED.into());
        }
    }

    /// A line on standard error, for what is not the result.
    pub(crate) fn note(&self, text: &str) {
        writeln!(std::io::stderr(), "{}", paint(self.err_color, Style::Dim, &neutralise(text))).ok();
    }

    /// One JSON object on a line of standard output.
    pub(crate) fn json(&self, value: &impl Serialize) {
        if let Ok(line) = serde_json::to_string(value) {
            self.line(line);
        }
    }

    /// An error on standard error: what, why, and how to fix it.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        let text = format!("{error:#}");
        if self.json {
            self.json(&serde_json::json!({ "type": "error", "error": text }));
        }
        writeln!(std::io::stderr(), "{} {}", paint(self.err_color, Style::Red, "error:"), neutralise(&text))
            .ok();
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
