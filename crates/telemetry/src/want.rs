//! What the process that reports to a collector asks the daemon for.

use crate::Figures;
use bailey_session::packet::{Asking, Refusable};
use serde::{Deserialize, Serialize};

/// The requests of the process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Want {
    /// Asks for news when the journal has grown since this count.
    News(u64),
    /// Tells others why the collector takes nothing; empty when it does take.
    Failing(String),
}

/// The answers to the process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Had {
    /// The count now, and the daemon's figures.
    News(u64, Figures),
    /// It is noted.
    Noted,
}

impl Asking for Want {}

impl Refusable for Had {
    fn refused(_: String) -> Option<Self> {
        None
    }
}
