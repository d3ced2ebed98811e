//! The verb `act`: one action of the owner's, outside any tool call.

use crate::{
    Kernel, Output, Refused, Scope,
    admit::{ActionRequest, Admission},
    call::{EffectResult, Pending},
    live::{Audience, Printed},
};
use bailey_journal::Purpose;
use bailey_protocol::{Action, ApprovalId, Cost, Integrity, Labels, Secrecy};
use std::collections::VecDeque;
use tokio::sync::mpsc;

/// What an action of the owner's came to.
#[derive(Debug)]
pub enum Acted {
    /// It ran.
    Done(Output),
    /// The gate refused, and why.
    Denied(Vec<String>),
    /// A human is asked.
    Waiting(ApprovalId),
}

impl Kernel {
    /// Performs one action outside any tool call, on the scope's own authority. `seen` is what was read for
    /// it, for the card where a human is asked.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn act(&self, scope: &Scope, action: Action, seen: &[Output]) -> Result<Acted, Refused> {
        self.act_before(scope, action, own(), seen, Audience::Nobody).await
    }

    /// The same with what came from somebody else, as these labels say.
    pub(crate) async fn act_with(
        &self,
        scope: &Scope,
        action: Action,
        labels: Labels,
    ) -> Result<Acted, Refused> {
        self.act_before(scope, action, labels, &[], Audience::Nobody).await
    }

    /// The same, where what a command prints goes to `out` while it runs, without secrets and within its
    /// limit of output. The command waits for whoever takes it; a closed channel is no error. What waits for
    /// a human prints to nobody.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn act_printing(
        &self,
        scope: &Scope,
        action: Action,
        out: mpsc::Sender<Printed>,
    ) -> Result<Acted, Refused> {
        self.act_before(scope, action, own(), &[], Audience::Bytes(out)).await
    }

    async fn act_before(
        &self,
        scope: &Scope,
        action: Action,
        labels: Labels,
        seen: &[Output],
        audience: Audience,
    ) -> Result<Acted, Refused> {
        let purpose = Purpose::Own;
        let asked = ActionRequest {
            action: action.clone(),
            purpose,
            for_a_change: false,
            call: None,
            parent: None,
            labels,
            cost: Cost::default(),
        };
        match self.admit(scope, asked, seen).await? {
            Admission::Run(started) => {
                let finished = self.launch(scope, *started, &action, audience).await?;
                Ok(Acted::Done(finished.output))
            }
            Admission::Denied(reasons) => Ok(Acted::Denied(reasons)),
            Admission::Waits(id, shown) => {
                let (seen, needed, labels) = (Vec::new(), VecDeque::new(), Labels::default());
                self.pend(id, Pending { shown: *shown, purpose, seen, needed, labels });
                Ok(Acted::Waiting(id))
            }
        }
    }

    /// Goes on with an action whose question was answered with yes.
    ///
    /// # Errors
    /// When the question is unknown or not granted, or the journal cannot be written.
    pub async fn act_approved(&self, scope: &Scope, id: ApprovalId) -> Result<Acted, Refused> {
        let Pending { shown, purpose, .. } = self.unpend(id).ok_or(Refused::NoQuestion(id))?;
        let action = shown.sealed.effect().action.clone();
        let admission = self.admit_approved(scope, shown, id, purpose).await?;
        Ok(match self.settle(scope, admission, &action, None).await? {
            EffectResult::Finished(finished) => Acted::Done(finished.output),
            EffectResult::Denied(reasons) => Acted::Denied(reasons),
            EffectResult::Waits(id, _) => Acted::Waiting(id),
        })
    }
}

/// What is the owner's own word.
fn own() -> Labels {
    Labels::new(Integrity::Owner, Secrecy::Private)
}
