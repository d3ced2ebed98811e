//! A journal that is opened to be read, and the home of a session in it.

use crate::compose::{self, Keys};
use anyhow::Result;
use bailey_home::{Home, config::Config, home::reserve};
use bailey_journal::{JournalError, JournalFile};
use bailey_protocol::{SessionId, Timestamp, exit::Mistyped};
use bailey_terminal::{print::Printer, short};

/// The home as the agent of a session has it, which goes on with it.
///
/// # Errors
/// When that one is gone, or another one was asked for.
pub async fn home_of(home: &Home, journal: &bailey_journal::Journal, session: SessionId) -> Result<Home> {
    let agent = journal.agent_of(session).await?;
    let name =
        |agent: &Option<String>| agent.as_ref().map_or("the home's own".into(), |name| format!("`{name}`"));
    if home.agent.is_some() && home.agent != agent {
        return Err(Mistyped(format!(
            "session {} is that of another agent: {}, and not {}",
            short(&session),
            name(&agent),
            name(&home.agent)
        ))
        .into());
    }
    home.of_agent(agent.as_deref())
}

/// The journal of a home, to be read.
pub async fn journal(home: &Home, printer: &Printer) -> Result<bailey_journal::Journal> {
    let config = Config::load(home)?;
    let keys = Keys::load(home, &config, printer)?;
    let (journal, _) = compose::journal(home, &keys).await?;
    journal.sound().await?;
    Ok(journal)
}

/// Since when everything is stopped.
///
/// # Errors
/// When the journal cannot be opened.
pub fn standing(home: &Home) -> Result<Option<Timestamp>, JournalError> {
    let journal = home.journal();
    if !journal.exists() {
        return Ok(None);
    }
    Ok(JournalFile::open(&journal)?.standing(SessionId::new(0, [0; 10]))?.0)
}

/// Signs a stop: the key then knows of it, so that an older copy of the journal does not undo it. The stop
/// holds without that, too. Returns whether it is signed.
pub async fn sign_stop(home: &Home, journal: &bailey_journal::Journal, printer: &Printer) -> bool {
    let mut signed = journal.checkpoint().await;
    if signed.is_err() && reserve::give_up(&home.root) {
        signed = journal.checkpoint().await;
    }
    if let Err(error) = &signed {
        printer.warn(&format!("the stop holds, and is not signed: {error}"));
    }
    signed.is_ok()
}
