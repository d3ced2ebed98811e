//! The mint: the only source of permits. The kernel holds the one of its process; a process that performs
//! nothing may hold one to answer questions or to stop a home, since without executors a permit opens
//! nothing.

use crate::{
    BeginError, Budgets, Clock, Journal, JournalError, Warrant,
    begin::{Circumstances, Intent, begin, state},
    chain,
    fact::{Entry, Fact},
    finish::{self, outcome_entry, settle},
    lock::SessionLock,
    permit::{Permit, Receipt},
    project,
    totals::Sent,
};
use bailey_protocol::{
    Action, CallId, Cost, Digest, EffectId, Outcome, Report, Sealed, Status, Timestamp, number::Seq,
};
use bailey_secrets::Redactor;
use bailey_store::{Grade, StoreError, Tx, params};

/// Makes permits. Not `Clone`: whoever holds it decides what may be begun.
#[derive(Debug)]
pub struct Mint {
    journal: Journal,
    #[cfg(feature = "controls")]
    pub(crate) late: Option<std::time::Duration>,
}

/// An intent without an outcome: it may have happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// The effect.
    pub effect: EffectId,
    /// Its kind.
    pub kind: String,
    /// One line for people.
    pub target: String,
    /// The call it served.
    pub call: Option<CallId>,
    /// Whether it was what the call came to, and not a read on the way.
    pub is_act: bool,
    /// What was reserved for it.
    pub reserved: Cost,
}

impl Mint {
    pub(crate) fn new(journal: Journal) -> Self {
        Self {
            journal,
            #[cfg(feature = "controls")]
            late: None,
        }
    }

    /// The journal that this mint writes to.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Puts a policy into force; open questions and grants of another policy are void.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn adopt(&self, policy: Digest) -> Result<(), JournalError> {
        let (redactor, now) = self.journal.pen();
        let text = policy.to_string();
        let current = self.journal.store().glance(move |db| state(db, "policy")).await?;
        if current.as_deref() == Some(text.as_str()) {
            return Ok(());
        }
        self.journal
            .write(Grade::Full, move |tx| {
                // Another process may have been faster, and asked questions since.
                if state(tx, "policy")?.as_deref() == Some(text.as_str()) {
                    return Ok(());
                }
                let entry = Entry {
                    session: None,
                    effect: None,
                    fact: Fact::PolicyAdopted { policy },
                    payload: None,
                };
                chain::append(tx, &redactor, now, &entry)?;
                project::adopted(tx, &text)
            })
            .await?;
        Ok(())
    }

    /// Begins an effect, in one transaction: the verdict is for this effect and for the policy in force, the
    /// grant is burnt, the cost reserved within `budgets`, the intent written. An approved effect's intent
    /// survives power loss, any other kill -9.
    ///
    /// # Errors
    /// [`BeginError::Stale`] means: decide again.
    pub async fn begin(
        &self,
        effect: Sealed,
        warrant: Warrant,
        circumstances: Circumstances,
        budgets: &Budgets,
    ) -> Result<(Permit, Receipt), BeginError> {
        let (verdict_effect, verdict_policy) = warrant.digests();
        if verdict_effect != effect.digest() {
            return Err(BeginError::OtherEffect);
        }
        let grade = if matches!(warrant, Warrant::Approved(..)) { Grade::Full } else { Grade::Normal };
        let grant = warrant.grant().cloned();
        let reveals = warrant.isolation().revealed.clone();
        let intent = Intent::of(&effect, grant.as_ref(), circumstances, reveals)?;
        let (redactor, now) = self.journal.pen();
        let budgets = budgets.clone();
        let work = move |tx: &mut Tx<'_>| {
            begin(tx, &redactor, now, &intent, verdict_policy, grant.as_ref(), &budgets)
        };
        self.journal.sound().await?;
        let seq = self.write_intent(grade, &effect, work).await??;
        self.journal.saw(seq.0);
        let effect = effect.into_effect();
        let merge = match &effect.action {
            Action::Merge(merge) => Some(merge.clone()),
            _ => None,
        };
        let sent = Sent::of(&effect.action);
        let receipt = Receipt { effect: effect.id, session: effect.session, seq, merge, sent };
        let (isolation, named) = (warrant.isolation().clone(), warrant.named());
        let permit = Permit { effect, isolation, named, seq, seal: self.journal.seal() };
        Ok((permit, receipt))
    }

    /// The value comes back when its rows are on disk.
    #[cfg(not(feature = "controls"))]
    async fn write_intent<T: Send + 'static>(
        &self,
        grade: Grade,
        _: &Sealed,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.journal.store().write(grade, work).await
    }

    /// Writes how an effect ended, what it used up, and what follows from it, in one transaction.
    ///
    /// # Errors
    /// When it cannot be written; the effect then counts as unfinished.
    pub async fn finish(
        &self,
        receipt: Receipt,
        outcome: &Outcome,
        used: Cost,
        follow: Vec<Entry>,
    ) -> Result<Seq, JournalError> {
        let (redactor, now) = self.journal.pen();
        let entry = outcome_entry(receipt.session, receipt.effect, outcome, used.clone())?;
        let outcome = outcome.clone();
        let seq = self
            .journal
            .write(Grade::Normal, move |tx| {
                let seq = chain::append(tx, &redactor, now, &entry)?;
                settle(tx, &receipt, seq, &used)?;
                finish::project(tx, &redactor, &receipt, seq, &outcome)?;
                follow.iter().try_fold(seq, |_, entry| chain::append(tx, &redactor, now, entry))
            })
            .await?;
        Ok(seq)
    }

    /// The intents of a session that have no outcome. Only whoever holds the session's lock may look: anybody
    /// else would take an effect that is running for one that was lost.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn unfinished(&self, lock: &SessionLock) -> Result<Vec<Unfinished>, JournalError> {
        let session = lock.session().to_string();
        Ok(self
            .journal
            .store()
            .read(move |db| {
                let mut statement = db.prepare_cached(
                    "SELECT id, kind, target, call, purpose, json_extract(CAST(body AS TEXT), '$.reserved')
                     FROM effect JOIN entry ON seq = intent
                     WHERE effect.session = ?1 AND outcome IS NULL ORDER BY intent",
                )?;
                let rows = statement.query_map(params![session], |row| {
                    Ok((
                        row.get::<_, String>(0)?,
                        row.get(1)?,
                        row.get(2)?,
                        row.get::<_, Option<String>>(3)?,
                        row.get::<_, String>(4)?,
                        row.get::<_, String>(5)?,
                    ))
                })?;
                let mut found = Vec::new();
                for row in rows {
                    let (id, kind, target, call, purpose, reserved) = row?;
                    let Some(effect) = EffectId::parse(&id) else { continue };
                    let reserved = serde_json::from_str(&reserved)
                        .map_err(|error| StoreError::custom(format!("what `{id}` reserved: {error}")))?;
                    let is_act = purpose == "act";
                    found.push(Unfinished { effect, kind, target, call: call.map(CallId), is_act, reserved });
                }
                Ok(found)
            })
            .await?)
    }

    /// Writes `unknown` as the outcome of an effect that nobody saw the end of. What was reserved counts as
    /// used.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn give_up(&self, lock: &SessionLock, lost: &Unfinished) -> Result<(), JournalError> {
        let outcome =
            Outcome { status: Status::Unknown, enforced: None, duration_ms: 0, report: Report::Nothing };
        self.settle(lock, lost, &outcome).await
    }

    /// Writes what is known now of the end of an effect whose process did not see it. What was reserved
    /// counts as used.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn settle(
        &self,
        lock: &SessionLock,
        lost: &Unfinished,
        outcome: &Outcome,
    ) -> Result<(), JournalError> {
        let session = lock.session();
        let receipt = Receipt { effect: lost.effect, session, seq: Seq(0), merge: None, sent: None };
        self.finish(receipt, outcome, lost.reserved.clone(), Vec::new()).await?;
        Ok(())
    }
}

impl Journal {
    /// What every write needs: the redactor and the time.
    pub(crate) fn pen(&self) -> (Redactor, Timestamp) {
        (self.redactor().clone(), Clock::now(self.clock()))
    }
}
