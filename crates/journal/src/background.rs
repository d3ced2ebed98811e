//! Processes in the background, as the journal knows them: commands that began and have no outcome yet, and
//! who wants one to end. Whoever runs it looks here, so it does not matter which process asks.

use crate::{Entry, Fact, Journal, JournalError, Person, chain, fact::Stored};
use bailey_protocol::{EffectId, SessionId, Timestamp, number::Seq};
use bailey_store::{Grade, OptionalExtension as _, params};

/// A command in the background without an outcome. It lives while some process holds its session.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Background {
    /// The session that it belongs to.
    pub session: SessionId,
    /// Its number there.
    pub number: u32,
    /// The effect.
    pub effect: EffectId,
    /// The command in one line.
    pub command: String,
    /// When it began.
    pub since: Timestamp,
    /// Whether somebody asked that it ends.
    pub ending: bool,
}

impl Journal {
    /// The number of the process in the background that this intent is: how many of its session began until
    /// then.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn process_number(&self, session: SessionId, intent: Seq) -> Result<u32, JournalError> {
        Ok(self
            .store()
            .read(move |db| {
                let count = db.query_row(
                    "SELECT count(*) FROM effect JOIN payload ON payload.seq = intent
                     WHERE session = ?1 AND kind = 'exec' AND intent <= ?2
                     AND json_extract(CAST(bytes AS TEXT), '$.action.background')",
                    params![session.to_string(), intent.0],
                    |row| row.get(0),
                )?;
                Ok(count)
            })
            .await?)
    }

    /// The processes in the background whose end is not written, the oldest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn in_background(&self) -> Result<Vec<Background>, JournalError> {
        let found = self.store().read(|db| {
            let mut statement = db.prepare_cached(
                "SELECT effect.id, effect.session, effect.target, effect.intent, body,
                    EXISTS (SELECT 1 FROM entry AS asked WHERE asked.session = effect.session
                        AND asked.seq > effect.intent AND asked.type = 'end_asked' AND asked.effect = effect.id)
                 FROM effect JOIN entry ON entry.seq = intent JOIN payload ON payload.seq = intent
                 WHERE outcome IS NULL AND kind = 'exec'
                 AND json_extract(CAST(bytes AS TEXT), '$.action.background') ORDER BY intent",
            )?;
            let rows = statement.query_map(params![], |row| {
                let (effect, session): (String, String) = (row.get(0)?, row.get(1)?);
                let (command, intent, body): (String, u64, Vec<u8>) = (row.get(2)?, row.get(3)?, row.get(4)?);
                Ok((effect, session, command, intent, body, row.get::<_, bool>(5)?))
            })?;
            rows.collect::<Result<Vec<_>, _>>().map_err(Into::into)
        });
        let mut processes = Vec::new();
        for (effect, session, command, intent, body, ending) in found.await? {
            let unreadable = || JournalError::Json(format!("the row of effect {effect} cannot be read"));
            let entry: Stored =
                serde_json::from_slice(&body).map_err(|error| JournalError::Json(error.to_string()))?;
            let id = EffectId::parse(&effect).ok_or_else(unreadable)?;
            let session = SessionId::parse(&session).ok_or_else(unreadable)?;
            let number = self.process_number(session, Seq(intent)).await?;
            processes.push(Background { session, number, effect: id, command, since: entry.time, ending });
        }
        Ok(processes)
    }

    /// Asks whoever runs a process in the background to end it. Whether it had not ended yet.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn ask_end(&self, process: &Background, person: Option<Person>) -> Result<bool, JournalError> {
        let (redactor, now) = self.pen();
        let (session, effect) = (process.session, process.effect);
        self.write(Grade::Full, move |tx| {
            let lives = tx
                .query_row(
                    "SELECT 1 FROM effect WHERE id = ?1 AND session = ?2 AND outcome IS NULL",
                    params![effect.to_string(), session.to_string()],
                    |_| Ok(()),
                )
                .optional()?;
            if lives.is_some() {
                let entry = Entry::of(session, Fact::EndAsked { person }).about(effect);
                chain::append(tx, &redactor, now, &entry)?;
            }
            Ok(lives.is_some())
        })
        .await
    }

    /// Whether an effect has its outcome.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn has_ended(&self, effect: EffectId) -> Result<bool, JournalError> {
        Ok(self
            .store()
            .glance(move |db| {
                let open = "SELECT 1 FROM effect WHERE id = ?1 AND outcome IS NULL";
                Ok(db.query_row(open, params![effect.to_string()], |_| Ok(())).optional()?.is_none())
            })
            .await?)
    }

    /// Whether somebody asked after this entry that an effect ends, and the newest entry that was looked at.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn is_end_asked(
        &self,
        session: SessionId,
        effect: EffectId,
        after: Seq,
    ) -> Result<(bool, Seq), JournalError> {
        Ok(self
            .store()
            .glance(move |db| {
                let session = session.to_string();
                let newest: Option<u64> =
                    db.query_row("SELECT max(seq) FROM entry WHERE session = ?1", params![session], |row| {
                        row.get(0)
                    })?;
                let newest = newest.unwrap_or(0).max(after.0);
                if newest == after.0 {
                    return Ok((false, after));
                }
                let asked = db
                    .query_row(
                        "SELECT 1 FROM entry WHERE session = ?1 AND seq > ?2 AND seq <= ?3
                         AND type = 'end_asked' AND effect = ?4 LIMIT 1",
                        params![session, after.0, newest, effect.to_string()],
                        |_| Ok(()),
                    )
                    .optional()?;
                Ok((asked.is_some(), Seq(newest)))
            })
            .await?)
    }
}
