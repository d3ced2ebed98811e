//! Removing a session: what it said and did is erased; that it was there, the chain keeps.

use crate::{Entry, Fact, Journal, JournalError, SessionLock, chain, project, project::FAMILY};
use bailey_store::{Grade, params};

/// What a removal left and took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Removed {
    /// Entries that stay in the chain, without what lay beside them.
    pub entries: u64,
    /// Payloads that are erased.
    pub payloads: u32,
}

impl Journal {
    /// Erases a session's payloads and its rows in every projection, and says so in an entry. The entries
    /// stay, because the chain is over them: kinds, targets, reasons and times, never messages or outputs.
    /// Erased bytes are overwritten.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is erased.
    pub async fn remove_session(&self, lock: &SessionLock) -> Result<Removed, JournalError> {
        let (redactor, now) = self.pen();
        let session = lock.session();
        let removed = self
            .write(Grade::Full, move |tx| {
                let id = session.to_string();
                let erased = tx.execute(
                    &format!(
                        "{FAMILY} DELETE FROM payload
                         WHERE seq IN (SELECT seq FROM entry WHERE session IN (SELECT id FROM family))"
                    ),
                    params![id],
                )?;
                let entries =
                    tx.query_row("SELECT count(*) FROM entry WHERE session = ?1", params![id], |row| {
                        row.get(0)
                    })?;
                let payloads = u32::try_from(erased).unwrap_or(u32::MAX);
                chain::append(tx, &redactor, now, &Entry::of(session, Fact::SessionRemoved { payloads }))?;
                project::removed(tx, session)?;
                Ok(Removed { entries, payloads })
            })
            .await?;
        // What was erased still stands in the write-ahead log; another process that reads it will move it
        // later.
        self.store().checkpoint().await.ok();
        Ok(removed)
    }
}
