//! The limits from which on memory counts as short for the daemon.

use super::{ConfigError, Document};
use serde::{Deserialize, Serialize};

/// Percentages of the memory that the daemon may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Memory {
    /// From this limit on, nothing new begins.
    pub hold_percent: u64,
    /// From this limit on, sessions make room.
    pub shed_percent: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Self { hold_percent: 80, shed_percent: 90 }
    }
}

/// Checks the two limits.
///
/// # Errors
/// When a limit is no percentage from 10 to 100, or sessions would make room before new work is held back.
pub(super) fn check(document: &Document, memory: Memory) -> Result<(), ConfigError> {
    let Memory { hold_percent, shed_percent } = memory;
    for (key, percent) in [("memory.hold_percent", hold_percent), ("memory.shed_percent", shed_percent)] {
        if !(10..=100).contains(&percent) {
            let message = format!("`{percent}` is not a percentage from 10 to 100");
            return Err(document.mistake(key, message));
        }
    }
    if shed_percent < hold_percent {
        let message = format!(
            "sessions would make room at {shed_percent} % for others that begin until {hold_percent} %: it must not be lower \
             than `hold_percent`"
        );
        return Err(document.mistake("memory.shed_percent", message));
    }
    Ok(())
}
