//! `[auto_apply]`: when what a run changed is applied without a question. Only the owner's file says so;
//! without it nothing is.

use super::{ConfigError, document::Document};
use serde::{Deserialize, Serialize};

/// The most that one may allow, so that "small" stays a word.
const FILES_MAX: usize = 100;
const LINES_MAX: usize = 5_000;

/// What must hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AutoApply {
    /// A line of the shell that ends with 0, run inside the walls after the run.
    pub test: String,
    /// The most files.
    #[serde(default = "files")]
    pub files: usize,
    /// The most lines, added and taken away together.
    #[serde(default = "lines")]
    pub lines: usize,
}

fn files() -> usize {
    10
}

fn lines() -> usize {
    200
}

/// Looks at what the file says.
pub(super) fn check(document: &Document, auto: &AutoApply) -> Result<(), ConfigError> {
    if auto.test.trim().is_empty() {
        let message =
            "it must name a command, such as `cargo test`: what nobody tested is not applied unasked";
        return Err(document.mistake("auto_apply.test", message));
    }
    for (key, value, most) in [("files", auto.files, FILES_MAX), ("lines", auto.lines, LINES_MAX)] {
        if value == 0 || value > most {
            let message = format!("it is {value}, and must be 1 to {most}");
            return Err(document.mistake(&format!("auto_apply.{key}"), message));
        }
    }
    Ok(())
}
