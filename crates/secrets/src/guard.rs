//! The input guard: what is said to an agent from outside, looked at before anything else sees it.
//!
//! Whoever pastes a credential into a chat meant to store it, not to tell it to a model: such a message is
//! not taken, and its sender is told what to do instead. It is for front ends that take messages from far
//! away, before they are accepted; in longer ones secrets are redacted, as the kernel does with every message
//! that it accepts.

use crate::{Redactor, marks};

/// A message of which at least one part in so many is credentials is mostly one.
const MOSTLY: usize = 2;

/// What the guard says of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guarded {
    /// There is no known secret and no credential of a known shape in it.
    Pass,
    /// The message without them.
    Redacted(String),
    /// It is mostly a credential, and not to be taken; what to tell its sender.
    Blocked(String),
}

impl Redactor {
    /// Judges a message. It holds no state, and costs what redacting does.
    #[must_use]
    pub fn guard(&self, text: &str) -> Guarded {
        let clean = self.redact(text);
        if clean.hits == 0 {
            return Guarded::Pass;
        }
        if clean.covered.saturating_mul(MOSTLY) < text.trim().len() {
            return Guarded::Redacted(clean.text.into_owned());
        }
        let name = marks(&clean.text).next().unwrap_or("credential");
        Guarded::Blocked(format!(
            "this message is mostly a credential (`{name}`) and was not taken: what a model was told cannot be taken back; keep \
             it with `bailey secrets set NAME` and say its name instead, and where somebody else may have read it here, have \
             its issuer replace it"
        ))
    }
}
