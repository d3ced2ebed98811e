//! Mistakes in rule files, told so that they can be found and mended.

use bailey_protocol::spell::meant;
use std::{
    fmt, format,
    string::{String, ToString},
    vec,
};

/// Why rule files cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum RuleFileError {
    /// A mistake in the text.
    #[error(transparent)]
    Mistake(#[from] Mistake),
    /// A file is larger than 1 MiB.
    #[error("{0} is larger than 1 MiB: split it")]
    TooLarge(String),
    /// There are more than 100 files.
    #[error("{0} rule files: at most 100, join some")]
    TooManyFiles(usize),
    /// A name says no format.
    #[error("{0} is no rule file: its name must end in `.toml`, `.yaml` or `.yml`")]
    Format(String),
    /// Rules of the organisation that somebody else could change.
    #[error(
        "`{path}` could be changed by others than the administrator ({why}): rules of the organisation are root's and \
         writable by nobody else: chown root and chmod go-w"
    )]
    Unguarded {
        /// The file or directory.
        path: String,
        /// Whose it is, and its mode.
        why: String,
    },
    /// A file or its directory cannot be read.
    #[error("cannot read {file}")]
    Read {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
}

/// A mistake at one place of a rule file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Mistake {
    /// The file's name.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong and how to mend it.
    pub message: String,
    /// The line's text, at most 120 characters of it, control characters escaped.
    pub excerpt: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}\n  | {}", self.file, self.line, self.column, self.message, self.excerpt)
    }
}

/// A place in a text; lines and columns count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextPosition {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl TextPosition {
    /// The place of a byte.
    pub(super) fn of(text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
        Self { line: before.matches('\n').count() + 1, column }
    }
}

impl Mistake {
    /// A mistake at a byte of any file that a human wrote, such as the configuration. To serde's sentence
    /// about a field that does not exist it adds what was probably meant.
    #[must_use]
    pub fn at(file: &str, text: &str, byte: usize, message: impl Into<String>) -> Self {
        Self::new(file, text, TextPosition::of(text, byte), message.into())
    }

    pub(super) fn new(file: &str, text: &str, at: TextPosition, message: String) -> Self {
        let line = text.lines().nth(at.line.saturating_sub(1)).unwrap_or_default();
        let shown = line.trim_end().chars().take(120);
        let excerpt =
            shown.flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect();
        Self {
            file: file.to_string(),
            line: at.line,
            column: at.column,
            message: with_suggestion(message),
            excerpt,
        }
    }
}

/// Adds what was probably meant to serde's sentence about a field that does not exist.
fn with_suggestion(message: String) -> String {
    if !message.starts_with("unknown field") {
        return message;
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let suggestion = quoted.next().and_then(|word| meant(word, quoted));
    match suggestion {
        Some(meant) => format!("{message}; did you mean `{meant}`?"),
        None => message,
    }
}
