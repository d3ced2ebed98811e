//! A clock that moves only when it is told to.

use bailey_journal::Clock;
use bailey_protocol::Timestamp;
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// Tells the time that a test set. Share it as `Arc<FakeClock>`.
#[derive(Debug)]
pub struct FakeClock {
    now: Mutex<Timestamp>,
}

impl FakeClock {
    /// A clock that stands at this time, written as RFC 3339.
    ///
    /// # Panics
    /// When the text is no time.
    #[must_use]
    pub fn at(text: &str) -> Self {
        Self { now: Mutex::new(text.parse().expect("an RFC 3339 time")) }
    }

    /// Moves it forward.
    ///
    /// # Panics
    /// When the time is beyond the year 9999.
    pub fn advance(&self, by: Duration) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.checked_add(by).expect("a time that exists");
    }
}

impl Default for FakeClock {
    /// Stands at 2026-01-02T03:04:05Z.
    fn default() -> Self {
        Self::at("2026-01-02T03:04:05Z")
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
