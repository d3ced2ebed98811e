//! Bytes from the world, before the screen.

use bailey_protocol::{Outcome, Report};

/// What an executor brought back. It is seen by reference by a tool's `plan` and `conclude`, and by nobody
/// else: there is no way from here into a context but through the screen.
#[derive(Debug)]
pub struct Output {
    outcome: Box<Outcome>,
}

impl Output {
    /// What came of an effect.
    #[must_use]
    pub fn new(outcome: Outcome) -> Self {
        Self { outcome: Box::new(outcome) }
    }

    /// An effect that was not done, and why.
    #[must_use]
    pub fn failed(reason: impl Into<String>) -> Self {
        Self::new(Outcome::failed(reason))
    }

    /// How it ended, what the walls were, what it brought.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    pub(crate) fn into_outcome(self) -> Outcome {
        *self.outcome
    }

    /// What it brought.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.outcome.report
    }
}
