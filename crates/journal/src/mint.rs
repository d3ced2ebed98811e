//! The mint: the only source of permits. The kernel holds the one there is.

use crate::{
    BeginError, Clock, Grant, Journal, JournalError, Warrant,
    chain::{self, random},
    fact::{Admitted, Entry, Fact, Payload, Purpose},
    lock::SessionLock,
    permit::{Permit, Receipt},
    write,
};
use bailey_protocol::{
    Action, ApprovalId, CallId, Cost, Digest, Effect, EffectId, Kind, Merge, MergeKind, MergeResult,
    MergeState, Outcome, Report, Sealed, SessionId, Status, Timestamp, Touched, WsPath, event::Answer,
    number::Seq,
};
use bailey_secrets::Redactor;
use bailey_store::{Grade, OptionalExtension as _, StoreError, Tx, params};

/// Makes permits. Not `Clone`: whoever holds it decides what may be begun.
#[derive(Debug)]
pub struct Mint {
    journal: Journal,
}

/// What the journal should know of an effect besides the effect.
#[derive(Debug, Clone)]
pub struct Circumstances {
    /// Why it was asked for.
    pub purpose: Purpose,
    /// The rules' reasons, one line each.
    pub reasons: Vec<String>,
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
        Self { journal }
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
        let current = self.journal.store().read(move |db| state(db, "policy")).await?;
        if current.as_deref() == Some(text.as_str()) {
            return Ok(());
        }
        self.journal
            .store()
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
                tx.execute(
                    "INSERT OR REPLACE INTO state (name, value) VALUES ('policy', ?1)",
                    params![text],
                )?;
                tx.execute(
                    "UPDATE approval SET state = 'void' WHERE state IN ('open', 'yes', 'session')",
                    params![],
                )?;
                Ok(())
            })
            .await?;
        Ok(())
    }

    /// Begins an effect, in one transaction: the verdict is for this effect and for the policy in force, the grant is
    /// burnt, the cost reserved within `limit` (tokens of the whole session), the intent written. An approved effect's
    /// intent survives power loss, any other kill -9.
    ///
    /// # Errors
    /// [`BeginError::Stale`] means: decide again.
    pub async fn begin(
        &self,
        effect: Sealed,
        warrant: Warrant,
        circumstances: Circumstances,
        limit: Cost,
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
        let seq = self
            .journal
            .store()
            .write(grade, move |tx| begin(tx, &redactor, now, &intent, verdict_policy, grant.as_ref(), limit))
            .await??;
        let effect = effect.into_effect();
        let merge = match &effect.action {
            Action::Merge(merge) => Some(merge.clone()),
            _ => None,
        };
        let receipt =
            Receipt { effect: effect.id, session: effect.session, seq, reserved: effect.cost, merge };
        let permit =
            Permit { effect, isolation: warrant.isolation().clone(), seq, seal: self.journal.seal() };
        Ok((permit, receipt))
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
        let entry = outcome_entry(receipt.session, receipt.effect, outcome, used)?;
        let report = outcome.report.clone();
        let seq = self
            .journal
            .store()
            .write(Grade::Normal, move |tx| {
                let seq = chain::append(tx, &redactor, now, &entry)?;
                settle(tx, &receipt, seq, used)?;
                project(tx, &receipt, seq, &report)?;
                follow.iter().try_fold(seq, |_, entry| chain::append(tx, &redactor, now, entry))
            })
            .await?;
        Ok(seq)
    }

    /// Writes a question about an effect.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn ask(&self, effect: &Sealed, card: serde_json::Value) -> Result<ApprovalId, JournalError> {
        let (redactor, now) = self.journal.pen();
        let approval = ApprovalId::new(random()?);
        let (digest, action_digest) = (effect.digest(), effect.action_digest());
        let Effect { id, session, call, action, .. } = effect.effect().clone();
        self.journal
            .store()
            .write(Grade::Full, move |tx| {
                let fact = Fact::Asked { approval, digest, target: action.target(), call };
                let entry = Entry::of(session, fact).about(id).with(Payload::Json(card));
                chain::append(tx, &redactor, now, &entry)?;
                tx.execute(
                    "INSERT INTO approval (id, session, digest, action_digest, state) VALUES (?1, ?2, ?3, ?4, 'open')",
                    params![approval.to_string(), session.to_string(), digest.to_string(), action_digest.to_string()],
                )?;
                Ok(())
            })
            .await?;
        Ok(approval)
    }

    /// Settles a question. The first answer counts; a later one is refused.
    ///
    /// # Errors
    /// [`JournalError::Settled`] when it is not open any more.
    pub async fn answer(
        &self,
        id: ApprovalId,
        answer: Answer,
        by: &str,
        why: &str,
    ) -> Result<(), JournalError> {
        let (redactor, now) = self.journal.pen();
        let (by, why) = (by.to_owned(), why.to_owned());
        let state = match answer {
            Answer::Yes => "yes",
            Answer::YesForSession => "session",
            Answer::No => "no",
        };
        let settled = self
            .journal
            .store()
            .write(Grade::Full, move |tx| {
                let open = tx
                    .query_row(
                        "SELECT session FROM approval WHERE id = ?1 AND state = 'open'",
                        params![id.to_string()],
                        |row| row.get::<_, String>(0),
                    )
                    .optional()?;
                let Some(session) = open.as_deref().and_then(SessionId::parse) else { return Ok(false) };
                let entry =
                    Entry::of(session, Fact::Answered { approval: id, answer, by }).with(Payload::Text(why));
                chain::append(tx, &redactor, now, &entry)?;
                tx.execute("UPDATE approval SET state = ?2 WHERE id = ?1", params![id.to_string(), state])?;
                Ok(true)
            })
            .await?;
        if settled { Ok(()) } else { Err(JournalError::Settled(id)) }
    }

    /// The grant of an answered question for this very effect; it is burnt when the effect begins.
    ///
    /// # Errors
    /// [`JournalError::NotGranted`] when the answer was not yes, or was for another effect, or is used up.
    pub async fn grant(&self, id: ApprovalId, effect: &Sealed) -> Result<Grant, JournalError> {
        let digest = effect.digest().to_string();
        let state = self
            .journal
            .store()
            .read(move |db| {
                Ok(db
                    .query_row(
                        "SELECT state FROM approval WHERE id = ?1 AND digest = ?2",
                        params![id.to_string(), digest],
                        |row| row.get::<_, String>(0),
                    )
                    .optional()?)
            })
            .await?;
        match state.as_deref() {
            Some("yes" | "session") => Ok(Grant { approval: id }),
            _ => Err(JournalError::NotGranted(id)),
        }
    }

    /// The grant that a human gave for this exact action for the rest of its session, if there is one.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn session_grant(&self, effect: &Sealed) -> Result<Option<Grant>, JournalError> {
        let session = effect.effect().session.to_string();
        let action = effect.action_digest().to_string();
        let id = self
            .journal
            .store()
            .read(move |db| {
                Ok(db.query_row(
                    "SELECT id FROM approval WHERE session = ?1 AND action_digest = ?2 AND state = 'session' LIMIT 1",
                    params![session, action],
                    |row| row.get::<_, String>(0),
                )
                .optional()?)
            })
            .await?;
        Ok(id.as_deref().and_then(ApprovalId::parse).map(|approval| Grant { approval }))
    }

    /// The intents of a session that have no outcome. Only whoever holds the session's lock may look: anybody else
    /// would take an effect that is running for one that was lost.
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
                    "SELECT id, kind, target, call, purpose, reserved FROM effect
                     WHERE session = ?1 AND outcome IS NULL ORDER BY intent",
                )?;
                let rows = statement.query_map(params![session], |row| {
                    Ok((
                        row.get::<_, String>(0)?,
                        row.get(1)?,
                        row.get(2)?,
                        row.get::<_, Option<String>>(3)?,
                        row.get::<_, String>(4)?,
                        row.get(5)?,
                    ))
                })?;
                let mut found = Vec::new();
                for row in rows {
                    let (id, kind, target, call, purpose, tokens) = row?;
                    let Some(effect) = EffectId::parse(&id) else { continue };
                    let reserved = Cost { tokens };
                    let is_act = purpose == "act";
                    found.push(Unfinished { effect, kind, target, call: call.map(CallId), is_act, reserved });
                }
                Ok(found)
            })
            .await?)
    }

    /// Writes `unknown` as the outcome of an effect that nobody saw the end of. What was reserved counts as used.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn give_up(&self, lock: &SessionLock, lost: &Unfinished) -> Result<(), JournalError> {
        let outcome =
            Outcome { status: Status::Unknown, enforced: None, duration_ms: 0, report: Report::Nothing };
        let session = lock.session();
        let receipt =
            Receipt { effect: lost.effect, session, seq: Seq(0), reserved: lost.reserved, merge: None };
        self.finish(receipt, &outcome, lost.reserved, Vec::new()).await?;
        Ok(())
    }
}

pub(crate) fn state(db: &Tx<'_>, name: &str) -> Result<Option<String>, StoreError> {
    Ok(db.query_row("SELECT value FROM state WHERE name = ?1", params![name], |row| row.get(0)).optional()?)
}

/// An intent, ready to be written.
struct Intent {
    entry: Entry,
    session: SessionId,
    effect: EffectId,
    /// What a grant must have been given for: this effect, or this action for the rest of the session.
    digests: [String; 2],
    kind: Kind,
    target: String,
    purpose: Purpose,
    call: Option<CallId>,
    cost: Cost,
    /// Masked files that the human revealed, now or before.
    reveals: Vec<WsPath>,
}

impl Intent {
    fn of(
        sealed: &Sealed,
        grant: Option<&Grant>,
        circumstances: Circumstances,
        reveals: Vec<WsPath>,
    ) -> Result<Self, JournalError> {
        let effect = sealed.effect();
        let fact = Fact::Intent {
            kind: effect.action.kind(),
            target: effect.action.target(),
            digest: sealed.digest(),
            admitted: if grant.is_some() { Admitted::Approved } else { Admitted::Allowed },
            reasons: circumstances.reasons,
            approval: grant.map(|grant| grant.approval),
            purpose: circumstances.purpose,
            call: effect.call.clone(),
            parent: effect.parent,
            role: effect.role,
            labels: effect.labels.clone(),
            reserved: effect.cost,
        };
        Ok(Self {
            entry: Entry::of(effect.session, fact).about(effect.id).with(Payload::Json(effect_json(effect)?)),
            session: effect.session,
            effect: effect.id,
            digests: [sealed.digest(), sealed.action_digest()].map(|digest| digest.to_string()),
            kind: effect.action.kind(),
            target: effect.action.target(),
            purpose: circumstances.purpose,
            call: effect.call.clone(),
            cost: effect.cost,
            reveals,
        })
    }
}

/// The effect as the journal keeps it. A model call's body is the session so far, which the journal holds already:
/// only its digest is kept.
pub(crate) fn effect_json(effect: &Effect) -> Result<serde_json::Value, JournalError> {
    let mut effect = effect.clone();
    if let Action::Model { request, .. } = &mut effect.action {
        let digest = Digest::of(&request.body.0);
        request.body = format!("sha256:{digest}").as_str().into();
    }
    serde_json::to_value(&effect).map_err(|error| JournalError::Json(error.to_string()))
}

fn begin(
    tx: &mut Tx<'_>,
    redactor: &Redactor,
    now: Timestamp,
    intent: &Intent,
    policy: Digest,
    grant: Option<&Grant>,
    limit: Cost,
) -> Result<Result<Seq, BeginError>, StoreError> {
    if state(tx, "policy")?.as_deref() != Some(policy.to_string().as_str()) {
        return Ok(Err(BeginError::Stale));
    }
    if let Some(grant) = grant
        && !burn(tx, grant, intent)?
    {
        return Ok(Err(BeginError::Burnt));
    }
    if let Err(error) = reserve(tx, intent, limit)? {
        return Ok(Err(error));
    }
    for path in &intent.reveals {
        write::reveal(tx, redactor, now, intent.session, path)?;
    }
    let seq = chain::append(tx, redactor, now, &intent.entry)?;
    tx.execute(
        "INSERT INTO effect (id, session, kind, target, purpose, call, intent, reserved)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            intent.effect.to_string(),
            intent.session.to_string(),
            intent.kind.name(),
            redactor.redact(&intent.target).text,
            match intent.purpose {
                Purpose::Act => "act",
                Purpose::Need => "need",
                Purpose::Own => "own",
            },
            intent.call.as_ref().map(|call| &call.0),
            seq.0,
            intent.cost.tokens
        ],
    )?;
    Ok(Ok(seq))
}

/// Uses a grant up; one for the rest of the session stays. False when it is not good any more, or was never given for
/// this.
fn burn(tx: &mut Tx<'_>, grant: &Grant, intent: &Intent) -> Result<bool, StoreError> {
    let id = grant.approval.to_string();
    let session = intent.session.to_string();
    let [effect, action] = &intent.digests;
    let burnt = tx.execute(
        "UPDATE approval SET state = 'burnt' WHERE id = ?1 AND session = ?2 AND digest = ?3 AND state = 'yes'",
        params![id, session, effect],
    )?;
    if burnt == 1 {
        return Ok(true);
    }
    let standing = tx
        .query_row(
            "SELECT 1 FROM approval WHERE id = ?1 AND session = ?2 AND action_digest = ?3 AND state = 'session'",
            params![id, session, action],
            |_| Ok(()),
        )
        .optional()?;
    Ok(standing.is_some())
}

fn reserve(tx: &mut Tx<'_>, intent: &Intent, limit: Cost) -> Result<Result<(), BeginError>, StoreError> {
    let session = intent.session.to_string();
    let taken = tx
        .query_row(
            "SELECT tokens_used + tokens_reserved FROM session WHERE id = ?1",
            params![session],
            |row| row.get::<_, u64>(0),
        )
        .optional()?;
    let Some(taken) = taken else { return Ok(Err(BeginError::NoSession(intent.session))) };
    let wanted = intent.cost.tokens;
    if wanted > 0 && taken.saturating_add(wanted) > limit.tokens {
        return Ok(Err(BeginError::Budget { taken, wanted, limit: limit.tokens }));
    }
    tx.execute(
        "UPDATE session SET tokens_reserved = tokens_reserved + ?2 WHERE id = ?1",
        params![session, wanted],
    )?;
    Ok(Ok(()))
}

fn outcome_entry(
    session: SessionId,
    effect: EffectId,
    outcome: &Outcome,
    used: Cost,
) -> Result<Entry, JournalError> {
    let exit = match &outcome.report {
        Report::Exec(report) => report.exit,
        _ => None,
    };
    let fact = Fact::Outcome {
        status: outcome.status.clone(),
        exit,
        enforced: outcome.enforced.clone(),
        duration_ms: u32::try_from(outcome.duration_ms).unwrap_or(u32::MAX),
        used,
    };
    let payload = serde_json::to_value(outcome).map_err(|error| JournalError::Json(error.to_string()))?;
    Ok(Entry::of(session, fact).about(effect).with(Payload::Json(payload)))
}

fn settle(tx: &mut Tx<'_>, receipt: &Receipt, seq: Seq, used: Cost) -> Result<(), StoreError> {
    tx.execute("UPDATE effect SET outcome = ?2 WHERE id = ?1", params![receipt.effect.to_string(), seq.0])?;
    tx.execute(
        "UPDATE session SET tokens_reserved = max(0, tokens_reserved - ?2), tokens_used = tokens_used + ?3 WHERE id = ?1",
        params![receipt.session.to_string(), receipt.reserved.tokens, used.tokens],
    )?;
    Ok(())
}

/// What a report says of the session's layer: paths it came to hold, paths whose base moved by a merge.
fn project(tx: &mut Tx<'_>, receipt: &Receipt, seq: Seq, report: &Report) -> Result<(), StoreError> {
    match report {
        Report::Exec(report) => {
            report.touched.iter().try_for_each(|touched| remember(tx, receipt.session, seq, touched))
        }
        Report::Changed { files } => files
            .iter()
            .filter_map(|file| file.touched.as_ref())
            .try_for_each(|touched| remember(tx, receipt.session, seq, touched)),
        Report::Merged { files } => match &receipt.merge {
            Some(merge) => rebase(tx, receipt.session, merge, files),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// After a merge the project holds something else, and that is the base of the next one.
fn rebase(
    tx: &mut Tx<'_>,
    session: SessionId,
    merge: &Merge,
    results: &[MergeResult],
) -> Result<(), StoreError> {
    let session = session.to_string();
    if merge.direction == MergeKind::Discard {
        tx.execute("DELETE FROM touched WHERE session = ?1", params![session])?;
        return Ok(());
    }
    let merged = |path| {
        let of_path = |result: &&MergeResult| &result.path == path;
        results
            .iter()
            .find(of_path)
            .is_some_and(|r| matches!(r.state, MergeState::Done | MergeState::Already))
    };
    for file in merge.files.iter().filter(|file| merged(&file.path)) {
        let now = if merge.direction == MergeKind::Apply { file.new } else { file.base };
        tx.execute(
            "UPDATE touched SET base = ?3, unsure = 0 WHERE session = ?1 AND path = ?2",
            params![session, file.path.0, now.map(|state| state.to_string())],
        )?;
    }
    Ok(())
}

/// The first base that a session saw of a path is the one that counts.
fn remember(tx: &mut Tx<'_>, session: SessionId, seq: Seq, touched: &Touched) -> Result<(), StoreError> {
    tx.execute(
        "INSERT OR IGNORE INTO touched (session, path, base, unsure, seq) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![
            session.to_string(),
            touched.path.0,
            touched.base.map(|base| base.to_string()),
            touched.unsure,
            seq.0
        ],
    )?;
    Ok(())
}

impl Journal {
    /// What every write needs: the redactor and the time.
    pub(crate) fn pen(&self) -> (Redactor, Timestamp) {
        (self.redactor().clone(), Clock::now(self.clock()))
    }
}
