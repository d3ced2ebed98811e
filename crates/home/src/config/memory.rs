//! From where on memory is short for the daemon.

use super::{ConfigError, Document};
use serde::{Deserialize, Serialize};

/// Of what the daemon may use, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Memory {
    /// From here on nothing new begins.
    pub hold_percent: u64,
    /// From here on sessions make room.
    pub shed_percent: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Self { hold_percent: 80, shed_percent: 90 }
    }
}

/// # Errors
/// When they are no percentages, or room is made before anything is held back.
pub(super) fn check(document: &Document, memory: Memory) -> Result<(), ConfigError> {
    let Memory { hold_percent, shed_percent } = memory;
    for (key, percent) in [("memory.hold_percent", hold_percent), ("memory.shed_percent", shed_percent)] {
        if !(10..=100).contains(&percent) {
            let message = format!("`{percent}` is no percentage from 10 to 100");
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
