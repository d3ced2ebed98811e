//! Questions to a human and what they grant: each is an entry, single use, bound to the bytes that were shown, and runs out.

use crate::{
    Grant, JournalError, Mint,
    begin::effect_json,
    chain::{self, random},
    fact::{Entry, Fact, Payload, Stored},
    project,
};
use bailey_protocol::{ApprovalId, CallId, Digest, Effect, Sealed, SessionId, Timestamp, event::Answer};
use bailey_secrets::Redactor;
use bailey_store::{Grade, OptionalExtension as _, StoreError, Tx, params};
use std::time::Duration;

/// Why a question that ran out counts as a no.
pub const RAN_OUT: &str = "nobody answered in time";

/// A question that is to be written.
struct Asking {
    session: SessionId,
    /// The digest of the effect that waits, or of the card where none does.
    digest: Digest,
    action: Option<Digest>,
    target: String,
    call: Option<CallId>,
    /// The digest of the files that the action names.
    named: Option<Digest>,
    /// The question that ran out before.
    again: Option<ApprovalId>,
    card: serde_json::Value,
}

/// What became of an answer.
enum Given {
    Taken,
    Settled,
    RanOut,
}

impl Mint {
    /// Writes a question about an effect, which runs out after `lasts`. `named` is the digest of the files that its action
    /// names. The effect stands beside the card, so that other rules can be tried on it also where nothing comes of it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn ask(
        &self,
        effect: &Sealed,
        named: Option<Digest>,
        mut card: serde_json::Value,
        lasts: Duration,
    ) -> Result<ApprovalId, JournalError> {
        let (digest, action_digest) = (effect.digest(), effect.action_digest());
        if let Some(card) = card.as_object_mut() {
            card.insert("effect".into(), effect_json(effect.effect())?);
        }
        let Effect { id, session, call, action, .. } = effect.effect().clone();
        let target = action.target();
        let asking =
            Asking { session, digest, action: Some(action_digest), target, call, named, again: None, card };
        self.write_question(asking, lasts, move |entry| entry.about(id)).await
    }

    /// Writes a question about no effect, such as whether a turn goes on. Its answer grants nothing: no effect has a
    /// card's digest.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn ask_of(
        &self,
        session: SessionId,
        target: String,
        card: serde_json::Value,
        lasts: Duration,
    ) -> Result<ApprovalId, JournalError> {
        let digest = Digest::of(card.to_string().as_bytes());
        let asking =
            Asking { session, digest, action: None, target, call: None, named: None, again: None, card };
        self.write_question(asking, lasts, |entry| entry).await
    }

    /// Asks once more what has run out: the same card about the same effect, as a new question.
    ///
    /// # Errors
    /// [`JournalError::NotRunOut`] when it did not run out, or is of an older journal.
    pub async fn ask_again(&self, id: ApprovalId, lasts: Duration) -> Result<ApprovalId, JournalError> {
        let found = self
            .journal()
            .store()
            .read(move |db| {
                Ok(db
                    .query_row(
                        "SELECT body, bytes FROM approval JOIN entry ON entry.seq = asked JOIN payload USING (seq)
                         WHERE id = ?1 AND state IN ('open', 'no')",
                        params![id.to_string()],
                        |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, Vec<u8>>(1)?)),
                    )
                    .optional()?)
            })
            .await?;
        let (body, card) = found.ok_or(JournalError::NotRunOut(id))?;
        let json = |error: serde_json::Error| JournalError::Json(error.to_string());
        let Stored { session: Some(session), effect, time: _, fact, .. } =
            serde_json::from_slice(&body).map_err(json)?
        else {
            return Err(JournalError::NotRunOut(id));
        };
        let Fact::Asked { digest, action, target, call, named, until: Some(until), .. } = fact else {
            return Err(JournalError::NotRunOut(id));
        };
        if until > self.journal().clock().now() || !self.ran_out(id).await? {
            return Err(JournalError::NotRunOut(id));
        }
        let card = serde_json::from_slice(&card).map_err(json)?;
        let asking = Asking { session, digest, action, target, call, named, again: Some(id), card };
        self.write_question(asking, lasts, move |entry| match effect {
            Some(effect) => entry.about(effect),
            None => entry,
        })
        .await
    }

    /// Whether a question whose time is over was answered by nobody.
    async fn ran_out(&self, id: ApprovalId) -> Result<bool, JournalError> {
        let settlement = self.journal().settlement(id).await?;
        Ok(settlement.is_none_or(|settlement| settlement.answer == Answer::No && settlement.why == RAN_OUT))
    }

    async fn write_question(
        &self,
        asking: Asking,
        lasts: Duration,
        of: impl FnOnce(Entry) -> Entry + Send + 'static,
    ) -> Result<ApprovalId, JournalError> {
        let (redactor, now) = self.journal().pen();
        let approval = ApprovalId::new(random()?);
        let until = now.checked_add(lasts).ok();
        self.journal()
            .write(Grade::Full, move |tx| {
                let Asking { session, digest, action, target, call, named, again, card } = asking;
                let stored = call.as_ref().map(|call| redactor.redact(&call.0).text.into_owned());
                let fact = Fact::Asked { approval, digest, action, target, call, until, named, again };
                let entry = of(Entry::of(session, fact)).with(Payload::Json(card));
                let entry = chain::append(tx, &redactor, now, &entry)?;
                let asked = project::Asked { effect: digest, action, entry, until, call: stored, named };
                project::asked(tx, approval, session, &asked)
            })
            .await?;
        Ok(approval)
    }

    /// Settles a question of a session. The first answer counts; a later one is refused, and so is one to a question that
    /// ran out, which is settled with no.
    ///
    /// # Errors
    /// [`JournalError::Settled`] when it is not open any more, or is another session's; [`JournalError::RanOut`].
    pub async fn answer(
        &self,
        session: SessionId,
        id: ApprovalId,
        answer: Answer,
        by: &str,
        why: &str,
    ) -> Result<(), JournalError> {
        let (redactor, now) = self.journal().pen();
        let (by, why) = (by.to_owned(), why.to_owned());
        let given = self
            .journal()
            .write(Grade::Full, move |tx| {
                let Some(until) = open_until(tx, session, id)? else { return Ok(Given::Settled) };
                if until.is_some_and(|until| until <= now) {
                    let settled = Settling {
                        session,
                        id,
                        answer: Answer::No,
                        by: "bailey".into(),
                        why: RAN_OUT.into(),
                    };
                    settled.write(tx, &redactor, now)?;
                    return Ok(Given::RanOut);
                }
                Settling { session, id, answer, by, why }.write(tx, &redactor, now)?;
                Ok(Given::Taken)
            })
            .await?;
        match given {
            Given::Taken => Ok(()),
            Given::Settled => Err(JournalError::Settled(id)),
            Given::RanOut => Err(JournalError::RanOut(id)),
        }
    }

    /// Takes back a yes that nothing has used yet.
    ///
    /// # Errors
    /// [`JournalError::Settled`] when there is none.
    pub async fn revoke(
        &self,
        session: SessionId,
        id: ApprovalId,
        by: &str,
        why: &str,
    ) -> Result<(), JournalError> {
        let (redactor, now) = self.journal().pen();
        let (by, why) = (by.to_owned(), why.to_owned());
        let was_there = self
            .journal()
            .write(Grade::Full, move |tx| {
                let found = tx
                    .query_row(
                        "SELECT 1 FROM approval WHERE id = ?1 AND session = ?2 AND state IN ('yes', 'session')",
                        params![id.to_string(), session.to_string()],
                        |_| Ok(()),
                    )
                    .optional()?;
                if found.is_some() {
                    Settling { session, id, answer: Answer::No, by, why }.write(tx, &redactor, now)?;
                }
                Ok(found.is_some())
            })
            .await?;
        if was_there { Ok(()) } else { Err(JournalError::Settled(id)) }
    }

    /// The grant of an answered question for this very effect; it is burnt when the effect begins.
    ///
    /// # Errors
    /// [`JournalError::NotGranted`] when the answer was not yes, or was for another effect, or is used up.
    pub async fn grant(&self, id: ApprovalId, effect: &Sealed) -> Result<Grant, JournalError> {
        let digest = effect.digest().to_string();
        let state = self
            .journal()
            .store()
            .glance(move |db| {
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

    /// A grant that a human gave for this exact action before: for the rest of its session, or once for the tool call that
    /// asked for it in a process that has ended since; while the files that it names (`named`) are what they were.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn standing_grant(
        &self,
        effect: &Sealed,
        named: Option<Digest>,
    ) -> Result<Option<Grant>, JournalError> {
        let Effect { session, call, .. } = effect.effect();
        let session = session.to_string();
        let call = call.as_ref().map(|call| self.journal().redactor().redact(&call.0).text.into_owned());
        let action = effect.action_digest().to_string();
        let named = named.map(|named| named.to_string());
        let id = self
            .journal()
            .store()
            .glance(move |db| {
                Ok(db
                    .query_row(
                        "SELECT id FROM approval WHERE session = ?1 AND action_digest = ?2
                         AND named IS ?4 AND (state = 'session' OR state = 'yes' AND call = ?3) LIMIT 1",
                        params![session, action, call, named],
                        |row| row.get::<_, String>(0),
                    )
                    .optional()?)
            })
            .await?;
        Ok(id.as_deref().and_then(ApprovalId::parse).map(|approval| Grant { approval }))
    }
}

/// An answer that is to be written.
struct Settling {
    session: SessionId,
    id: ApprovalId,
    answer: Answer,
    by: String,
    why: String,
}

impl Settling {
    fn write(self, tx: &mut Tx<'_>, redactor: &Redactor, now: Timestamp) -> Result<(), StoreError> {
        let Self { session, id, answer, by, why } = self;
        let entry = Entry::of(session, Fact::Answered { approval: id, answer, by }).with(Payload::Text(why));
        chain::append(tx, redactor, now, &entry)?;
        project::answered(tx, id, answer)
    }
}

/// When an open question of this session runs out; none when there is no such question.
fn open_until(
    tx: &Tx<'_>,
    session: SessionId,
    id: ApprovalId,
) -> Result<Option<Option<Timestamp>>, StoreError> {
    let found = tx
        .query_row(
            "SELECT until FROM approval WHERE id = ?1 AND session = ?2 AND state = 'open'",
            params![id.to_string(), session.to_string()],
            |row| row.get::<_, Option<String>>(0),
        )
        .optional()?;
    Ok(found.map(|until| until.and_then(|until| until.parse().ok())))
}
