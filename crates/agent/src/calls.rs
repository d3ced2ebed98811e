//! How many tool calls a turn may still make: its own, and those of the sub-agents that it begins.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The number, shared by all that work in one turn; without a limit until a turn sets it.
#[derive(Debug, Clone)]
pub struct CallsLeft(Arc<AtomicUsize>);

impl Default for CallsLeft {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(usize::MAX)))
    }
}

impl CallsLeft {
    /// Lets there be so many from now on.
    pub(crate) fn allow(&self, calls: usize) {
        self.0.store(calls, Ordering::Relaxed);
    }

    /// Takes as many of these as there are left, and says how many that is.
    pub(crate) fn take(&self, calls: usize) -> usize {
        let rest = |left: usize| Some(left.saturating_sub(calls));
        // It is never refused.
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).unwrap_or_default().min(calls)
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}
