//! How an effect begins, inside the one transaction: policy in force, grant burnt, token used, cost reserved,
//! intent written.

use crate::{
    Asker, BeginError, Budgets, Grant, JournalError, Sent, budget, chain,
    fact::{Admitted, Entry, Fact, Payload, Purpose},
    given::Given,
    ledger::Uses,
    project, stop, totals, write,
};
use bailey_protocol::{
    Action, CallId, Cost, Digest, Effect, EffectId, Kind, Sealed, SessionId, Timestamp, WsPath,
    event::Answer, number::Seq,
};
use bailey_secrets::Redactor;
use bailey_store::{OptionalExtension as _, StoreError, Tx, params};

/// What the journal should know of an effect besides the effect.
#[derive(Debug, Clone)]
pub struct Circumstances {
    /// Why it was asked for.
    pub purpose: Purpose,
    /// The session that pays, where that is not the effect's own.
    pub payer: Option<SessionId>,
    /// The rules' reasons, one line each.
    pub reasons: Vec<String>,
    /// The use of a capability token that it is, where it was asked under one.
    pub uses: Option<Uses>,
}

impl Circumstances {
    /// Who asks for an effect of theirs.
    #[must_use]
    pub fn asker(&self, effect: &Effect) -> Asker {
        Asker { role: effect.role, conversation: self.payer, token: self.uses.as_ref().map(Uses::token) }
    }
}

pub(crate) fn state(db: &Tx<'_>, name: &str) -> Result<Option<String>, StoreError> {
    Ok(db.query_row("SELECT value FROM state WHERE name = ?1", params![name], |row| row.get(0)).optional()?)
}

/// An intent, ready to be written.
pub(crate) struct Intent {
    entry: Entry,
    session: SessionId,
    /// Whose accounts it is on.
    payer: SessionId,
    effect: EffectId,
    /// What a grant must have been given for: this effect; or this action, for the rest of the session or for
    /// this call.
    digests: [String; 2],
    asker: Asker,
    /// What a grant for a pattern must cover.
    action: Option<Action>,
    kind: Kind,
    target: String,
    purpose: Purpose,
    call: Option<CallId>,
    cost: Cost,
    sent: Option<Sent>,
    /// Masked files that the human revealed, now or before.
    reveals: Vec<WsPath>,
    uses: Option<Uses>,
}

impl Intent {
    pub(crate) fn of(
        sealed: &Sealed,
        grant: Option<&Grant>,
        circumstances: Circumstances,
        reveals: Vec<WsPath>,
    ) -> Result<Self, JournalError> {
        let effect = sealed.effect();
        let asker = circumstances.asker(effect);
        let sent = Sent::of(&effect.action);
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
            reserved: effect.cost.clone(),
            sent: sent.clone(),
            payer: circumstances.payer,
            under: circumstances.uses.as_ref().map(Uses::under),
        };
        Ok(Self {
            entry: Entry::of(effect.session, fact).about(effect.id).with(Payload::Json(effect_json(effect)?)),
            session: effect.session,
            payer: circumstances.payer.unwrap_or(effect.session),
            effect: effect.id,
            digests: [sealed.digest(), sealed.action_digest()].map(|digest| digest.to_string()),
            asker,
            action: match &effect.action {
                action @ (Action::Exec(_) | Action::Fetch { .. }) => Some(action.clone()),
                _ => None,
            },
            kind: effect.action.kind(),
            target: effect.action.target(),
            purpose: circumstances.purpose,
            call: effect.call.clone(),
            cost: effect.cost.clone(),
            sent,
            reveals,
            uses: circumstances.uses,
        })
    }
}

/// The effect as the journal keeps it. A model call's body is the session so far, which the journal holds
/// already: only its digest is kept.
pub(crate) fn effect_json(effect: &Effect) -> Result<serde_json::Value, JournalError> {
    let mut effect = effect.clone();
    if let Action::Model { request, .. } = &mut effect.action {
        let digest = Digest::of(&request.body.0);
        request.body = format!("sha256:{digest}").as_str().into();
    }
    serde_json::to_value(&effect).map_err(|error| JournalError::Json(error.to_string()))
}

pub(crate) fn begin(
    tx: &mut Tx<'_>,
    redactor: &Redactor,
    now: Timestamp,
    intent: &Intent,
    policy: Digest,
    grant: Option<&Grant>,
    budgets: &Budgets,
) -> Result<Result<Seq, BeginError>, StoreError> {
    let stopped = stop::stopped(tx)?;
    #[cfg(feature = "controls")]
    let stopped = if bailey_protocol::broken::broken("stop") { None } else { stopped };
    if let Some(since) = stopped {
        return Ok(Err(BeginError::Stopped { since }));
    }
    let in_force = state(tx, "policy")?.is_some_and(|digest| digest == policy.to_string());
    #[cfg(feature = "controls")]
    let in_force = match bailey_protocol::broken::broken("rules_in_force") {
        true => true,
        false => in_force,
    };
    if !in_force {
        return Ok(Err(BeginError::Stale));
    }
    if let Some(grant) = grant
        && !is_good(tx, redactor, grant, intent)?
    {
        return Ok(Err(BeginError::Burnt));
    }
    if let Some(uses) = &intent.uses
        && !uses.is_left(tx)?
    {
        return Ok(Err(BeginError::Spent));
    }
    if let Err(error) = budget::reserve(tx, intent.effect, intent.payer, now, &intent.cost, budgets)? {
        return Ok(Err(error));
    }
    for path in &intent.reveals {
        write::reveal(tx, redactor, now, intent.session, path)?;
    }
    let seq = chain::append(tx, redactor, now, &intent.entry)?;
    if let Some(grant) = grant {
        project::burnt(tx, grant.approval)?;
    }
    if let Some(uses) = &intent.uses {
        project::used(tx, &uses.under())?;
    }
    let begun = project::NewEffect {
        id: intent.effect,
        session: intent.session,
        kind: intent.kind,
        target: &redactor.redact(&intent.target).text,
        purpose: intent.purpose,
        call: intent.call.as_ref().map(|call| redactor.redact(&call.0).text.into_owned()),
    };
    project::begun(tx, seq, &begun)?;
    if let Some(sent) = &intent.sent {
        totals::sent(tx, redactor, intent.session, sent)?;
    }
    Ok(Ok(seq))
}

/// Whether a grant was given for this, and is not used up.
fn is_good(tx: &Tx<'_>, redactor: &Redactor, grant: &Grant, intent: &Intent) -> Result<bool, StoreError> {
    #[cfg(feature = "controls")]
    if bailey_protocol::broken::broken("single_use") {
        return Ok(true);
    }
    // The row may say no more than its entries do: a yes that was taken
    // back, used up or voided counts no more.
    let row = "SELECT state FROM approval WHERE id = ?1";
    let row = tx.query_row(row, params![grant.approval.to_string()], |row| row.get::<_, String>(0));
    let Some(given) = Given::read(tx, grant.approval)? else { return Ok(false) };
    if row.optional()?.as_deref() != Some(project::state_of(given.answer)) {
        return Ok(false);
    }
    let is_of = given.terms.is_of(Some(intent.asker));
    if let (Some(wider), Some(action)) = (&grant.wider, &intent.action) {
        let is_here = given.session == intent.session || wider.pattern.is_of_home();
        let is_pattern = given.answer == Answer::YesForPattern;
        return Ok(is_here && is_pattern && is_of && given.terms.covers(wider, action));
    }
    let [effect, action] = &intent.digests;
    let call = intent.call.as_ref().map(|call| redactor.redact(&call.0).text.into_owned());
    let is_it = given.effect.to_string() == *effect;
    let is_alike = given.action.is_some_and(|given| given.to_string() == *action);
    let is_given = match given.answer {
        Answer::No => false,
        Answer::Yes => !given.is_used && (is_it || is_alike && call.is_some() && given.call == call),
        Answer::YesForSession => is_it || is_alike,
        Answer::YesForPattern => is_it,
    };
    // The very effect that was shown is its asker's: there is no other of its name.
    Ok(given.session == intent.session && is_given && (is_it || is_of))
}
