//! Copies of a journal, and what is written into one that was brought back.

use crate::{Entry, Fact, Journal, JournalError, Payload, chain, project, stop};
use bailey_protocol::number::Seq;
use bailey_store::Grade;
use std::path::Path;

impl Journal {
    /// Writes a copy of the journal as it is at one moment, while others go on; the keys beside it are not copied.
    ///
    /// # Errors
    /// When it cannot be read, or the copy cannot be written: a part of it may be there then.
    pub async fn copy_to(&self, copy: &Path) -> Result<(), JournalError> {
        Ok(self.store().copy_to(copy).await?)
    }

    /// Notes that this journal was brought back from a copy, which `from` names: what the home had after it is not here. A yes
    /// that stands in the copy may have been used since, so no question, no yes and no token of before counts any more; and
    /// where the journal that it takes the place of is stopped (`is_stopped`, as [`crate::is_stopped`] says), so is this one.
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
                let why = "a copy was brought back in the place of a journal that is stopped, or may be";
                stop::stop(tx, &redactor, now, why.into())?;
            }
            Ok(seq)
        })
        .await
    }
}
