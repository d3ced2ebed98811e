//! `[auto_apply]`: when Bailey applies the changes of a run without a question. Only the owner's file can
//! allow this. Without the setting, Bailey applies nothing without a question.

use super::{ConfigError, document::Document};
use serde::{Deserialize, Serialize};

/// The highest limits that the owner may set, so that automatic changes stay small.
const FILES_MAX: usize = 100;
const LINES_MAX: usize = 5_000;

/// The conditions that must hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AutoApply {
    /// A shell command that must exit with 0. It runs inside the walls after the run.
    pub test: String,
    /// The most files.
    #[serde(default = "files")]
    pub files: usize,
    /// The most lines, added and removed together.
    #[serde(default = "lines")]
    pub lines: usize,
}

fn files() -> usize {
    10
}

fn lines() -> usize {
    200
}

/// Checks the settings of the file.
pub(super) fn check(document: &Document, auto: &AutoApply) -> Result<(), ConfigError> {
    if auto.test.trim().is_empty() {
        let message = "it must name a command, such as `cargo test`, because untested changes are not \
            applied automatically";
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
