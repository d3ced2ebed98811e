//! Where the time comes from: an argument, so that tests can say what time it is.

use bailey_protocol::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    /// The time in UTC, to the nanosecond.
    fn now(&self) -> Timestamp;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i128::try_from(since.as_nanos())
            .ok()
            .and_then(|ns| Timestamp::from_nanosecond(ns).ok())
            .unwrap_or_default()
    }
}
