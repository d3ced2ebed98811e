//! Promises of the journal broken, for tests alone: a crash test that does not notice has shown nothing. Only
//! the program `bailey-controls` has this, and no release has that program.

use crate::{JournalError, Mint};
use bailey_protocol::{Action, Sealed};
use bailey_store::{Grade, StoreError, Tx};
use std::{sync::mpsc, thread, time::Duration};

/// A promise to break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breach {
    /// A command begins before its intent is committed, which happens so much later.
    Late(Duration),
    /// No write waits for the disk.
    Careless,
}

impl Mint {
    /// Breaks a promise from now on.
    ///
    /// # Errors
    /// When the store is closed.
    pub async fn breach(&mut self, breach: Breach) -> Result<(), JournalError> {
        match breach {
            Breach::Late(by) => self.late = Some(by),
            Breach::Careless => self.journal().store().careless().await?,
        }
        Ok(())
    }

    /// The value of a command's intent comes back before its rows are on disk, any other's when they are.
    pub(crate) async fn write_intent<T: Send + 'static>(
        &self,
        grade: Grade,
        effect: &Sealed,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.journal().store();
        let is_command = matches!(effect.effect().action, Action::Exec(_));
        let Some(late) = self.late.filter(|_| is_command) else { return store.write(grade, work).await };
        let store = store.clone();
        let (early, value) = mpsc::channel();
        thread::spawn(move || {
            store.write_blocking(grade, move |tx| {
                let _ = early.send(work(tx));
                thread::sleep(late);
                Ok(())
            })
        });
        value.recv().unwrap_or_else(|_| Err(StoreError::custom("the store took no write")))
    }
}
