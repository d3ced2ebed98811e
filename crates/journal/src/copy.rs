//! Copies of a journal, and what is written into one that was brought back.

use crate::{
    Clock, Entry, Fact, Journal, JournalError, JournalFile, Payload, Verified, chain, is_stopped, project,
    stop,
};
use bailey_protocol::number::Seq;
use bailey_secrets::{Redactor, Vault};
use bailey_store::{Database, Grade, Store, StoreError, params};
use std::path::{Path, PathBuf};

/// Why a journal that was brought back is stopped.
const WAS_STOPPED: &str = "a copy was brought back in the place of a journal that is stopped, or may be";
/// What the name of the empty database has behind that of the journal, by which a copy is read.
const EMPTY: &str = "look.db";

impl Journal {
    /// Writes a copy of the journal as it is at one moment, while others go on, and verifies what was
    /// written, from its first entry to its last: one that nobody could bring back would push out those that
    /// somebody can. The keys beside the journal are not copied.
    ///
    /// # Errors
    /// [`JournalError::Broken`] names the first entry of the copy that does not fit; others when the journal
    /// cannot be read, or the copy cannot be written. A part of it, or all, may be there then.
    pub async fn copy_to(&self, copy: &Path) -> Result<Verified, JournalError> {
        self.store().copy_to(copy).await?;
        verify(self.store().path(), copy.to_path_buf()).await
    }

    /// Notes that this journal was brought back from a copy, which `from` names: what the home had after it
    /// is not here. A yes that stands in the copy may have been used since, so no question, no yes and no
    /// token of before counts any more; and where the journal that it takes the place of is stopped
    /// (`is_stopped`, as [`crate::is_stopped`] says), so is this one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn note_restored(&self, from: String, is_stopped: bool) -> Result<Seq, JournalError> {
        let (redactor, now) = self.pen();
        self.write(Grade::Full, move |tx| {
            let payload = Some(Payload::Text(from));
            let entry = Entry { session: None, effect: None, fact: Fact::Restored, payload };
            let seq = chain::append(tx, &redactor, now, &entry)?;
            project::void(tx)?;
            if is_stopped {
                stop::stop(tx, &redactor, now, WAS_STOPPED.into())?;
            }
            Ok(seq)
        })
        .await
    }
}

impl JournalFile {
    /// Stops the journal at `path` where the one whose place it took is stopped, as [`is_stopped`] says of
    /// `old`, where that lies now: a stop may have been written there up to the last moment. Where nothing is
    /// left of `old`'s home, nobody can tell.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn stop_as(path: &Path, old: &Path, clock: &dyn Clock) -> Result<(), JournalError> {
        let is_there = old.parent().is_some_and(Path::is_dir);
        if is_there && !is_stopped(old) {
            return Ok(());
        }
        Self::open(path)?.stop(Redactor::new(&Vault::default()), clock, WAS_STOPPED.into())
    }
}

/// Verifies a copy of the journal at `journal`, to which nothing is written: opened by itself it would get a
/// log, which not every disk for copies can have, and its header would change. So it is read as a part of an
/// empty database, which stays beside the journal: several may look at once.
async fn verify(journal: &Path, copy: PathBuf) -> Result<Verified, JournalError> {
    let store = Store::start(Database::open(&journal.with_extension(EMPTY), &[])?)?;
    let name = copy.display().to_string();
    // Where a reader goes last, it leaves the log.
    let found = store.glance(move |tx| {
        // No name in the empty one hides one of its.
        tx.prepare_cached("ATTACH DATABASE ?1 AS copy")?.execute(params![name])?;
        chain::verify(tx, 0)
    });
    let found = found.await.map_err(|error| match error {
        StoreError::Corrupt { detail, .. } => StoreError::Corrupt { path: copy, detail },
        error => error,
    })?;
    Ok(found?)
}
