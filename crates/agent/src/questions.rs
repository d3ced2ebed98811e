//! Questions to a human that calls of this turn wait for.

use bailey_protocol::{Answer, ApprovalId};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::oneshot;

/// How a question was settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The answer.
    pub answer: Answer,
    /// The human's reason.
    pub why: String,
}

/// The meeting point of calls that wait and answers that come. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Questions {
    slots: Arc<Mutex<HashMap<ApprovalId, Slot>>>,
}

#[derive(Debug)]
enum Slot {
    Waiting(oneshot::Sender<Settled>),
    Settled(Settled),
}

impl Questions {
    /// Hands an answer to whoever waits for it, or keeps it until they come. The first answer counts.
    pub fn settle(&self, id: ApprovalId, settled: Settled) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        match slots.remove(&id) {
            Some(Slot::Waiting(sender)) => {
                sender.send(settled).ok();
            }
            Some(Slot::Settled(first)) => {
                slots.insert(id, Slot::Settled(first));
            }
            None => {
                slots.insert(id, Slot::Settled(settled));
            }
        }
    }

    /// Waits for the answer; none when nobody can give it any more.
    pub(crate) async fn wait(&self, id: ApprovalId) -> Option<Settled> {
        let receiver = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(Slot::Settled(settled)) = slots.remove(&id) {
                return Some(settled);
            }
            let (sender, receiver) = oneshot::channel();
            slots.insert(id, Slot::Waiting(sender));
            receiver
        };
        receiver.await.ok()
    }
}
