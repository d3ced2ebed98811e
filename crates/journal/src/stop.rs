//! The emergency stop: while it holds, no effect of this home begins, in whatever process and after whatever
//! restart. The transaction in which an effect begins looks.

use crate::{
    Clock, Entry, Fact, Journal, JournalError, JournalFile, Mint, Payload, begin::state, chain, given,
    project,
};
use bailey_protocol::{SessionId, Timestamp};
use bailey_secrets::Redactor;
use bailey_store::{Grade, OptionalExtension as _, Store, StoreError, Tx, params};
use std::{io, thread};

/// Why a journal is stopped from its beginning.
pub(crate) const AFTER_ANOTHER: &str =
    "the journal before this one is gone, and was stopped, or nobody can tell that it was not";

impl Mint {
    /// Stops everything. What has begun is ended by whoever calls this; nothing else begins. Once stopped, it
    /// stays so; and whatever was said yes to before is asked anew afterwards.
    ///
    /// # Errors
    /// When it cannot be written; then nothing begins either while the disk is full, but a later process
    /// might.
    pub async fn stop(&self, why: &str) -> Result<(), JournalError> {
        let (redactor, now) = self.journal().pen();
        let why = why.to_owned();
        self.journal().write(Grade::Full, move |tx| stop(tx, &redactor, now, why)).await
    }

    /// Lets effects begin again; whether anything was stopped.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn release(&self) -> Result<bool, JournalError> {
        let (redactor, now) = self.journal().pen();
        self.journal()
            .write(Grade::Full, move |tx| {
                if stopped(tx)?.is_none() {
                    return Ok(false);
                }
                let entry = Entry { session: None, effect: None, fact: Fact::Released, payload: None };
                chain::append(tx, &redactor, now, &entry)?;
                project::released(tx)?;
                Ok(true)
            })
            .await
    }
}

/// Writes that everything is stopped, unless it is.
pub(crate) fn stop(
    tx: &mut Tx<'_>,
    redactor: &Redactor,
    now: Timestamp,
    why: String,
) -> Result<(), StoreError> {
    if stopped(tx)?.is_some() {
        return Ok(());
    }
    let payload = Some(Payload::Text(why));
    let entry = Entry { session: None, effect: None, fact: Fact::Stopped, payload };
    chain::append(tx, redactor, now, &entry)?;
    project::stopped(tx, now)
}

/// Since when everything is stopped, where it is. What cannot be read as a time is a stop all the same.
pub(crate) fn since(db: &Tx<'_>) -> Result<Option<Timestamp>, StoreError> {
    Ok(stopped(db)?.map(|since| since.parse().unwrap_or_default()))
}

/// The same as it is written. A row that is gone lifts no stop: the newest
/// entry that stops or releases says so, too.
pub(crate) fn stopped(db: &Tx<'_>) -> Result<Option<String>, StoreError> {
    match state(db, project::STOPPED)? {
        None => given::stopped(db),
        since => Ok(since),
    }
}

impl JournalFile {
    /// Writes that everything is stopped, unless it is, and closes the file: for whoever cannot wait as a
    /// task does.
    pub(crate) fn stop(self, redactor: Redactor, clock: &dyn Clock, why: String) -> Result<(), JournalError> {
        let (path, now) = (self.files().into_iter().next().unwrap_or_default(), clock.now());
        let write = move || {
            let store = Store::start(self.database)?;
            store.write_blocking(Grade::Full, move |tx| stop(tx, &redactor, now, why))
        };
        // A thread of a runtime may not wait for a write.
        let written = thread::Builder::new().spawn(write).and_then(|thread| {
            thread.join().map_err(|_| io::Error::other("the thread that was to write a stop ended early"))
        });
        Ok(written.map_err(|source| JournalError::Io { path, source })??)
    }

    /// Since when everything is stopped, if it is, and how many sessions the journal knows but this one: for
    /// whoever tells of both before any thread begins.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn standing(&self, session: SessionId) -> Result<(Option<Timestamp>, u64), JournalError> {
        let (since, sessions) = self.database.glance(|db| {
            let sessions: i64 = db.query_row(
                "SELECT count(*) FROM session WHERE id <> ?1",
                params![session.to_string()],
                |row| row.get(0),
            )?;
            Ok((since(db)?, sessions))
        })?;
        Ok((since, u64::try_from(sessions).unwrap_or_default()))
    }

    /// The model that a session last used; `None` where there is no such session.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn model_of(&self, session: SessionId) -> Result<Option<String>, JournalError> {
        let model = self.database.glance(|db| {
            let sql = "SELECT model FROM session WHERE id = ?1";
            let model = db.query_row(sql, params![session.to_string()], |row| row.get::<_, String>(0));
            Ok(model.optional()?)
        })?;
        Ok(model.filter(|model| !model.is_empty()))
    }
}

impl Journal {
    /// Since when everything is stopped; none where it is not.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn stopped(&self) -> Result<Option<Timestamp>, JournalError> {
        Ok(self.store().glance(since).await?)
    }
}
