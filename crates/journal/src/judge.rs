//! What another program was told when it asked whether it may use a tool of its own. Nothing is begun by it,
//! so there is no permit; but as where something begins, one transaction looks whether the verdict is of
//! today, counts the use of a token, and writes it down: what is not on disk was not said.

use crate::{
    BeginError, JournalError, Mint,
    begin::{effect_json, state},
    chain,
    fact::{Entry, Fact, Payload},
    ledger::Uses,
    project,
};
use bailey_policy::Verdict as Decision;
use bailey_protocol::{Digest, Sealed, Verdict, number::Seq};
use bailey_store::Grade;

impl Mint {
    /// Writes down what the rules say about another program's use of a tool, and gives what that is.
    ///
    /// # Errors
    /// [`BeginError::Stale`] and [`BeginError::Spent`] mean: decide again. While everything is stopped, only
    /// a denial is written.
    pub async fn judge(
        &self,
        effect: &Sealed,
        decision: &Decision,
        reasons: Vec<String>,
        uses: Option<Uses>,
    ) -> Result<(Seq, Verdict), BeginError> {
        let (of, policy, verdict) = told(decision);
        if of != effect.digest() {
            return Err(BeginError::OtherEffect);
        }
        // A question is no use of a token.
        let uses = uses.filter(|_| verdict != Verdict::Asked);
        let (redactor, now) = self.journal().pen();
        let entry = entry(effect, verdict, reasons, uses.as_ref())?;
        // A no is a security event; a yes by thousands a second is made as sure by whatever comes next.
        let grade = if verdict == Verdict::Denied { Grade::Full } else { Grade::Normal };
        let written = self.journal().write(grade, move |tx| {
            if verdict != Verdict::Denied {
                if let Some(since) = state(tx, project::STOPPED)? {
                    return Ok(Err(BeginError::Stopped { since }));
                }
                if state(tx, "policy")?.as_deref() != Some(policy.to_string().as_str()) {
                    return Ok(Err(BeginError::Stale));
                }
            }
            if let Some(uses) = &uses {
                if verdict == Verdict::Allowed && !uses.is_left(tx)? {
                    return Ok(Err(BeginError::Spent));
                }
                project::used(tx, &uses.under())?;
            }
            Ok(Ok(chain::append(tx, &redactor, now, &entry)?))
        });
        Ok((written.await??, verdict))
    }

    /// Writes down that another program was told no, for a reason that is not the rules'.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn judge_no(&self, effect: &Sealed, why: String) -> Result<Seq, JournalError> {
        self.journal().append(entry(effect, Verdict::Denied, vec![why], None)?).await
    }
}

/// Whose decision it is, by which rules, and what it comes to.
fn told(decision: &Decision) -> (Digest, Digest, Verdict) {
    match decision {
        Decision::Allow(proof) => (proof.effect_digest(), proof.policy_digest(), Verdict::Allowed),
        Decision::Review(proof) => (proof.effect_digest(), proof.policy_digest(), Verdict::Asked),
        Decision::Deny(proof) => (proof.effect_digest(), proof.policy_digest(), Verdict::Denied),
    }
}

fn entry(
    effect: &Sealed,
    verdict: Verdict,
    reasons: Vec<String>,
    uses: Option<&Uses>,
) -> Result<Entry, JournalError> {
    let digest = effect.digest();
    let effect = effect.effect();
    let (tool, role, labels) = (effect.action.target(), effect.role, effect.labels.clone());
    let under = uses.map(Uses::under);
    let fact = Fact::Judged { tool, digest, verdict, reasons, role, labels, under };
    Ok(Entry::of(effect.session, fact).about(effect.id).with(Payload::Json(effect_json(effect)?)))
}
