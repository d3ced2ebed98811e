//! How an effect begins, inside the one transaction: policy in force, grant burnt, token used, cost reserved, intent
//! written.

use crate::{
    Asker, BeginError, Budgets, Grant, JournalError, Sent,
    approval::terms_of,
    budget, chain,
    fact::{Admitted, Entry, Fact, Payload, Purpose},
    ledger::Uses,
    project, totals, write,
};
use bailey_protocol::{
    Action, CallId, Cost, Digest, Effect, EffectId, Kind, Sealed, SessionId, Timestamp, WsPath, number::Seq,
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
    /// What a grant must have been given for: this effect; or this action, for the rest of the session or for this call.
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

pub(crate) fn begin(
    tx: &mut Tx<'_>,
    redactor: &Redactor,
    now: Timestamp,
    intent: &Intent,
    policy: Digest,
    grant: Option<&Grant>,
    budgets: &Budgets,
) -> Result<Result<Seq, BeginError>, StoreError> {
    let stopped = state(tx, project::STOPPED)?;
    #[cfg(bailey_break)]
    let stopped = if bailey_protocol::broken::broken("stop") { None } else { stopped };
    if let Some(since) = stopped {
        return Ok(Err(BeginError::Stopped { since }));
    }
    let in_force = state(tx, "policy")?.is_some_and(|digest| digest == policy.to_string());
    #[cfg(bailey_break)]
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
    let begun = project::Begun {
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
    #[cfg(bailey_break)]
    if bailey_protocol::broken::broken("single_use") {
        return Ok(true);
    }
    let call = intent.call.as_ref().map(|call| redactor.redact(&call.0).text.into_owned());
    let id = grant.approval.to_string();
    let session = intent.session.to_string();
    let [effect, action] = &intent.digests;
    if let (Some(wider), Some(action)) = (&grant.wider, &intent.action) {
        let terms = tx
            .query_row(
                "SELECT terms FROM approval WHERE id = ?1 AND (session = ?2 OR ?3) AND state = 'pattern'",
                params![id, session, wider.pattern.is_of_home()],
                |row| row.get::<_, Option<String>>(0),
            )
            .optional()?;
        return Ok(terms.is_some_and(|terms| {
            let terms = terms_of(terms.as_deref());
            terms.is_of(Some(intent.asker)) && terms.covers(wider, action)
        }));
    }
    let good = tx
        .query_row(
            "SELECT digest = ?3, terms FROM approval WHERE id = ?1 AND session = ?2
             AND (digest = ?3 AND state IN ('yes', 'session', 'pattern')
                  OR action_digest = ?4 AND (state = 'session' OR state = 'yes' AND call = ?5))",
            params![id, session, effect, action, call],
            |row| Ok((row.get::<_, bool>(0)?, row.get::<_, Option<String>>(1)?)),
        )
        .optional()?;
    // The very effect that was shown is its asker's: there is no other of its name.
    Ok(good.is_some_and(|(is_it, terms)| is_it || terms_of(terms.as_deref()).is_of(Some(intent.asker))))
}
