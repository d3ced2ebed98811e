//! How often and how long a failed model call is tried again. Each attempt is an effect of its own.

use bailey_kernel::ModelErrorKind;
use std::time::Duration;

/// The pauses between attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// Attempts in all, at least one.
    pub attempts: u32,
    /// The first pause; each further one is twice as long.
    pub first_pause: Duration,
    /// No pause is longer, even where a provider asks for it: then the call fails, and the user is told.
    pub longest_pause: Duration,
}

impl Default for Retry {
    /// Four attempts, 1, 2 and 4 seconds apart; a provider may ask for up to a minute.
    fn default() -> Self {
        Self { attempts: 4, first_pause: Duration::from_secs(1), longest_pause: Duration::from_secs(60) }
    }
}

impl Retry {
    /// How long to wait after the failed attempt of this number (from 1); none when it is over.
    pub(crate) fn pause(&self, attempt: u32, kind: ModelErrorKind) -> Option<Duration> {
        if attempt >= self.attempts || !kind.is_passing() {
            return None;
        }
        let own = self.first_pause.saturating_mul(1 << (attempt - 1).min(16));
        let asked = match kind {
            ModelErrorKind::RateLimited(after) | ModelErrorKind::Overloaded(after) => after,
            _ => None,
        };
        match asked {
            Some(asked) if asked > self.longest_pause => None,
            Some(asked) => Some(asked),
            None => Some(own.min(self.longest_pause)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        let retry = Retry::default();
        let pause = |attempt| retry.pause(attempt, ModelErrorKind::Overloaded(None));
        assert_eq!(pause(1), Some(Duration::from_secs(1)));
        assert_eq!(pause(3), Some(Duration::from_secs(4)));
        assert_eq!(pause(4), None);
    }

    #[test]
    fn a_provider_may_ask_for_up_to_a_minute() {
        let retry = Retry::default();
        let asked = |secs| retry.pause(1, ModelErrorKind::RateLimited(Some(Duration::from_secs(secs))));
        assert_eq!(asked(7), Some(Duration::from_secs(7)));
        assert_eq!(asked(3600), None);
    }

    #[test]
    fn a_wrong_key_is_not_tried_again() {
        assert_eq!(Retry::default().pause(1, ModelErrorKind::Auth), None);
    }
}
