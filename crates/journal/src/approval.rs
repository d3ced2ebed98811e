//! Questions to a human and what they grant: each is an entry, single use, bound to the bytes that were shown.

use crate::{
    Grant, JournalError, Mint,
    chain::{self, random},
    fact::{Entry, Fact, Payload},
    project,
};
use bailey_protocol::{ApprovalId, Digest, Effect, Sealed, SessionId, event::Answer};
use bailey_store::{Grade, OptionalExtension as _, params};

impl Mint {
    /// Writes a question about an effect.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn ask(&self, effect: &Sealed, card: serde_json::Value) -> Result<ApprovalId, JournalError> {
        let (redactor, now) = self.journal().pen();
        let approval = ApprovalId::new(random()?);
        let (digest, action_digest) = (effect.digest(), effect.action_digest());
        let Effect { id, session, call, action, .. } = effect.effect().clone();
        self.journal()
            .write(Grade::Full, move |tx| {
                let fact = Fact::Asked {
                    approval,
                    digest,
                    action: Some(action_digest),
                    target: action.target(),
                    call,
                };
                let entry = Entry::of(session, fact).about(id).with(Payload::Json(card));
                chain::append(tx, &redactor, now, &entry)?;
                project::asked(tx, approval, session, digest, Some(action_digest))
            })
            .await?;
        Ok(approval)
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
    ) -> Result<ApprovalId, JournalError> {
        let (redactor, now) = self.journal().pen();
        let approval = ApprovalId::new(random()?);
        let digest = Digest::of(card.to_string().as_bytes());
        self.journal()
            .write(Grade::Full, move |tx| {
                let fact = Fact::Asked { approval, digest, action: None, target, call: None };
                let entry = Entry::of(session, fact).with(Payload::Json(card));
                chain::append(tx, &redactor, now, &entry)?;
                project::asked(tx, approval, session, digest, None)
            })
            .await?;
        Ok(approval)
    }

    /// Settles a question of a session. The first answer counts; a later one is refused.
    ///
    /// # Errors
    /// [`JournalError::Settled`] when it is not open any more, or is another session's.
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
        let settled = self
            .journal()
            .write(Grade::Full, move |tx| {
                let open = tx
                    .query_row(
                        "SELECT 1 FROM approval WHERE id = ?1 AND session = ?2 AND state = 'open'",
                        params![id.to_string(), session.to_string()],
                        |_| Ok(()),
                    )
                    .optional()?;
                if open.is_none() {
                    return Ok(false);
                }
                let entry =
                    Entry::of(session, Fact::Answered { approval: id, answer, by }).with(Payload::Text(why));
                chain::append(tx, &redactor, now, &entry)?;
                project::answered(tx, id, answer)?;
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

    /// The grant that a human gave for this exact action for the rest of its session, if there is one.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn session_grant(&self, effect: &Sealed) -> Result<Option<Grant>, JournalError> {
        let session = effect.effect().session.to_string();
        let action = effect.action_digest().to_string();
        let id = self
            .journal()
            .store()
            .glance(move |db| {
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
}
