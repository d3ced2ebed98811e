//! The way to further effects from inside a running one: what a sandbox or a sub-agent asks for goes the same
//! way as everything else, with the running effect as its parent.

use crate::{
    BoxFuture, Kernel, Output, Refused, Scope,
    admit::{Admission, Asked},
    live::Audience,
};
use bailey_journal::Purpose;
use bailey_protocol::{Action, Cost, EffectId, Labels};
use std::fmt;

/// The way to further effects from inside a running one. The kernel puts it into the effect's `Io`.
#[derive(Clone)]
pub struct Door {
    pub(crate) kernel: Kernel,
    pub(crate) scope: Scope,
    pub(crate) parent: EffectId,
    pub(crate) labels: Labels,
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("parent", &self.parent).finish_non_exhaustive()
    }
}

impl Door {
    /// Performs an action inside the running effect, on its authority and with its labels. Nobody can be
    /// asked from here: what would need a human is refused.
    ///
    /// # Errors
    /// When the gate refuses, or the journal cannot be written.
    pub fn act(&self, action: Action) -> BoxFuture<'_, Result<Output, Refused>> {
        Box::pin(async move {
            match self.kernel.admit(&self.scope, self.asked(action.clone()), &[]).await? {
                Admission::Run(started) => {
                    Ok(self.kernel.launch(&self.scope, *started, &action, Audience::Nobody).await?.output)
                }
                Admission::Denied(reasons) => Err(Refused::Denied(reasons)),
                Admission::Waits(id, _) => {
                    Err(Refused::Failed(format!("question {id} was asked from inside an effect")))
                }
            }
        })
    }

    /// Writes down that an action was refused by whoever would perform it, whatever the rules say of it.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn refuse(&self, action: Action, reason: String) -> BoxFuture<'_, Result<(), Refused>> {
        Box::pin(async move {
            let sealed = self.kernel.sealed(&self.scope, self.asked(action))?;
            self.kernel.deny(&self.scope, &sealed, vec![reason], None).await.map(drop)
        })
    }

    fn asked(&self, action: Action) -> Asked {
        Asked {
            action,
            purpose: Purpose::Own,
            for_a_change: false,
            call: None,
            parent: Some(self.parent),
            labels: self.labels.clone(),
            cost: Cost::default(),
        }
    }
}
