//! The gate by itself: rules, journal and tokens, without walls, tools or a way out. Other runtimes ask it.

use super::{Keys, command_line, kernel_config, new_session, policy};
use crate::{config::Config, confinement, extensions::Extensions, home::Home, program};
use anyhow::{Context as _, Result};
use bailey_journal::{BeginError, Clock as _, Holder, Journal, JournalFile, SessionLock, SystemClock};
use bailey_kernel::{Connection, Kernel, Registrar, Scope};
use bailey_policy::Trust;
use bailey_protocol::{SessionId, WsPath};
use std::sync::Arc;
use tokio::sync::mpsc;

/// A gate for one client, with the trust that it gives this client.
pub struct Gate {
    /// Decides the calls.
    pub kernel: Kernel,
    registrar: Registrar,
    workspace: WsPath,
    trust: Option<Trust>,
    /// The session whose lock this process holds, until a task takes it.
    first: Option<SessionId>,
    /// An emergency stop finds this process by this lock.
    _lock: SessionLock,
}

impl Gate {
    /// The authority of the client's next task, in a session of its own.
    pub fn connect(&mut self) -> Result<(Connection, Scope)> {
        let session = self.first.take().map_or_else(new_session, Ok)?;
        // Verdicts go back as answers; there is no front end.
        let (events, _) = mpsc::channel(1);
        let connection = self.registrar.connect(session, self.workspace.clone(), events);
        let scope = self.registrar.client(&connection, self.trust);
        Ok((connection, scope))
    }
}

/// Opens the gate. From here on this process is bound: it reads rules and writes the journal, and reaches
/// nothing else.
///
/// # Errors
/// When everything is stopped, or the rules or the journal cannot be read.
pub async fn gate(home: &Home, config: &Config, keys: Keys, trust: Option<Trust>) -> Result<Gate> {
    let programs = program::kept(config)?;
    let workspace = std::env::current_dir().context("the current directory is gone")?;
    let workspace = WsPath(workspace.display().to_string());
    let file = JournalFile::open(&home.journal())?;
    let session = new_session()?;
    let folder = home.session(session, false)?.path;
    let extensions = Extensions::read(config);
    confinement::bind_gate(home, &folder, &file)?;
    let (journal, mint) = Journal::start(file, keys.redactor.clone(), Arc::new(SystemClock)).await?;
    if let Some(since) = journal.stopped().await? {
        return Err(BeginError::Stopped { since: since.to_string() }.into());
    }
    let command = journal.redactor().redact(&command_line()).text.into_owned();
    let holder = Holder { pid: std::process::id(), since: SystemClock.now(), command };
    let lock = SessionLock::take(session, &folder, &holder)?;
    let (rules, _) = policy(home, &extensions)?;
    let (kernel, registrar) = Kernel::new(mint, rules, kernel_config(home, config, programs)).await?;
    let of_home = home.clone();
    registrar.reread_rules(Box::new(move || {
        policy(&of_home, &extensions).map(|(policy, _)| policy).map_err(|error| format!("{error:#}"))
    }));
    Ok(Gate { kernel, registrar, workspace, trust, first: Some(session), _lock: lock })
}
