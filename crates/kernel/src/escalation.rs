//! Escalation: a question that nobody answers is taken further, step by step, each an entry of the journal,
//! until it runs out and is a no. A step grants nothing and lets nobody else answer: it tells.

use crate::Kernel;
use bailey_journal::{Entry, Fact};
use bailey_protocol::{ApprovalId, Kind, SessionId};
use std::{fmt, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until};

/// Tells somebody of a step: its number from 0, the question, and the kind of what waits; none where no
/// effect does. Says whether somebody was told.
pub type Tell = Arc<dyn Fn(usize, ApprovalId, Option<Kind>) -> bool + Send + Sync>;

/// The steps of a question that nobody answers.
#[derive(Clone, Default)]
pub struct Escalation {
    /// How long after the question each begins, in order.
    pub after: Vec<Duration>,
    /// Who tells; none: steps are written to the journal only.
    pub tell: Option<Tell>,
}

impl fmt::Debug for Escalation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Escalation").field("after", &self.after).finish_non_exhaustive()
    }
}

impl Kernel {
    /// Takes a question further while nobody answers it and this process lives.
    pub(crate) fn escalate(&self, session: SessionId, id: ApprovalId, kind: Option<Kind>) {
        let Escalation { after, tell } = self.inner.config.escalation.clone();
        if after.is_empty() {
            return;
        }
        let (kernel, since) = (self.clone(), Instant::now());
        tokio::spawn(async move {
            for (step, after) in after.into_iter().enumerate() {
                sleep_until(since + after).await;
                // Settled, or a journal that cannot be read: then there is nothing to be told.
                let Ok(None) = kernel.journal().settlement(id).await else { return };
                let told = tell.as_ref().is_some_and(|tell| tell(step, id, kind));
                let number = u32::try_from(step + 1).unwrap_or(u32::MAX);
                let fact = Fact::Escalated { approval: id, step: number, told };
                if kernel.journal().append(Entry::of(session, fact)).await.is_err() {
                    return;
                }
            }
        });
    }
}
