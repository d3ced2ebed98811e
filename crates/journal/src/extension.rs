//! The health of the policy's extensions: what became of asking them, and whether they may be asked, for
//! every process of this home and after every restart.

use crate::{
    Entry, Fact, Journal, JournalError, Mint, Payload, begin::state, chain, fact::ExtensionFailure, project,
};
use bailey_policy::Health;
use bailey_protocol::SessionId;
use bailey_store::Grade;

impl Mint {
    /// Records that an extension gave no answer that counts in a session, with what it last wrote to its
    /// standard error. After a second crash too soon it is disabled.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn extension_failed(
        &self,
        session: SessionId,
        name: &str,
        failure: ExtensionFailure,
        told: String,
    ) -> Result<Health, JournalError> {
        let (redactor, now) = self.journal().pen();
        let extension = name.to_owned();
        self.journal()
            .write(Grade::Full, move |tx| {
                let before = health(state(tx, &project::of_extension(&extension))?);
                let fact = Fact::ExtensionFailed { extension: extension.clone(), failure };
                let entry = Entry {
                    payload: (!told.is_empty()).then_some(Payload::Text(told)),
                    ..Entry::of(session, fact)
                };
                chain::append(tx, &redactor, now, &entry)?;
                if !failure.is_crash() {
                    return Ok(before);
                }
                project::extension_crashed(tx, &extension, now)?;
                let after = before.crashed(now);
                if after.is_disabled() && !before.is_disabled() {
                    project::extension_disabled(tx, &extension)?;
                    let entry = Entry::of(session, Fact::ExtensionDisabled { extension });
                    chain::append(tx, &redactor, now, &entry)?;
                }
                Ok(after)
            })
            .await
    }

    /// Has an extension asked again, as one that never crashed; whether there was anything to forget.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn enable_extension(&self, name: &str) -> Result<bool, JournalError> {
        let (redactor, now) = self.journal().pen();
        let extension = name.to_owned();
        self.journal()
            .write(Grade::Full, move |tx| {
                if state(tx, &project::of_extension(&extension))?.is_none() {
                    return Ok(false);
                }
                project::extension_enabled(tx, &extension)?;
                let fact = Fact::ExtensionEnabled { extension };
                let entry = Entry { session: None, effect: None, fact, payload: None };
                chain::append(tx, &redactor, now, &entry)?;
                Ok(true)
            })
            .await
    }
}

impl Journal {
    /// Whether an extension may be asked.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn extension(&self, name: &str) -> Result<Health, JournalError> {
        let name = project::of_extension(name);
        Ok(health(self.store().glance(move |db| state(db, &name)).await?))
    }
}

/// What cannot be read as the time of a crash disables.
fn health(state: Option<String>) -> Health {
    match state.map(|state| state.parse()) {
        None => Health::Well,
        Some(Ok(then)) => Health::Restarted(then),
        Some(Err(_)) => Health::Disabled,
    }
}
