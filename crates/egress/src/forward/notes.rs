//! What a command's result says of its requests, beside what each of them was answered: a tool often shows
//! its own words instead.

use bailey_kernel::{RequestSummary, Turned};
use std::sync::{Mutex, PoisonError};

/// The most requests that a command's result names, of those that were refused and of those that failed.
const NAMED_MAX: usize = 8;
/// The most characters of a request that it names, and of why it did not pass.
const CHARS_MAX: usize = 200;
const WHY_CHARS_MAX: usize = 500;

/// What did not pass.
#[derive(Debug, Default)]
pub(super) struct Notes(Mutex<Turned>);

/// Why a request that was allowed did not pass, or not to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Broken {
    /// Its command wanted it no more, which is no news to it.
    #[error("the command went away{0}")]
    Gone(&'static str),
    /// Something was in the way.
    #[error("{0}")]
    Because(String),
}

impl From<String> for Broken {
    fn from(why: String) -> Self {
        Self::Because(why)
    }
}

impl From<&str> for Broken {
    fn from(why: &str) -> Self {
        Self::Because(why.to_owned())
    }
}

impl Notes {
    pub(super) fn refused(&self, what: &str, why: &str) {
        self.note(what, why, |turned| &mut turned.refused);
    }

    pub(super) fn failed(&self, what: &str, why: &str) {
        self.note(what, why, |turned| &mut turned.failed);
    }

    pub(super) fn take(&self) -> Turned {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, what: &str, why: &str, of: impl Fn(&mut Turned) -> &mut RequestSummary) {
        let mut turned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let told = of(&mut turned);
        let (begins, because): (String, String) =
            (what.chars().take(CHARS_MAX).collect(), why.chars().take(WHY_CHARS_MAX).collect());
        let said = format!("{begins}: {because}");
        // Two that are cut off alike may be two.
        if begins.len() == what.len() && told.first.contains(&said) {
            return;
        }
        if told.first.len() < NAMED_MAX {
            told.first.push(said);
        } else {
            told.more = told.more.saturating_add(1);
        }
    }
}
