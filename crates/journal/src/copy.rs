//! Copies of a journal, and what is written into one that was brought back.

use crate::{Entry, Fact, Journal, JournalError, Payload};
use bailey_protocol::number::Seq;
use std::path::Path;

impl Journal {
    /// Writes a copy of the journal as it is at one moment, while others go on; the keys beside it are not copied.
    ///
    /// # Errors
    /// When it cannot be read, or the copy cannot be written: a part of it may be there then.
    pub async fn copy_to(&self, copy: &Path) -> Result<(), JournalError> {
        Ok(self.store().copy_to(copy).await?)
    }

    /// Notes that this journal was brought back from a copy, which `from` names: what the home had after it is not here.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn note_restored(&self, from: String) -> Result<Seq, JournalError> {
        let payload = Some(Payload::Text(from));
        self.append(Entry { session: None, effect: None, fact: Fact::Restored, payload }).await
    }
}
