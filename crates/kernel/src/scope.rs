//! Authority: what somebody may ask for comes from the connection they speak over, and from nothing they say.

use crate::{bearer::Bearer, screen};
use bailey_journal::Journal;
use bailey_policy::Trust;
use bailey_protocol::{Event, Happening, Role, Seq, SessionId, WsPath, event::EVENT_VERSION};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A connection of an authenticated person to one session. Made by `Registrar::connect` only.
#[derive(Debug, Clone)]
pub struct Connection {
    pub(crate) session: SessionId,
    pub(crate) workspace: WsPath,
    pub(crate) outlet: Outlet,
    /// By what the session's agent acts, where that is not the rules.
    pub(crate) bearer: Option<Bearer>,
}

/// The authority of one turn, or of one command of the owner's. Made by `Kernel::accept` and `Kernel::resume_turn` for
/// an agent, by `Registrar::owner` for the owner.
#[derive(Debug, Clone)]
pub struct Scope {
    pub(crate) connection: Connection,
    pub(crate) role: Role,
    pub(crate) cancel: CancellationToken,
    /// How far whoever has it is trusted, where the owner says otherwise than the role does.
    pub(crate) trust: Option<Trust>,
    /// By what whoever has it acts.
    pub(crate) bearer: Option<Bearer>,
    /// Where what is said lies, where that is not the session itself.
    pub(crate) conversation: Option<SessionId>,
}

impl Scope {
    /// The session.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.connection.session
    }

    /// Where what is said lies: the session's own entries, or those of a sub-agent's conversation.
    pub(crate) fn conversation(&self) -> SessionId {
        self.conversation.unwrap_or(self.connection.session)
    }

    /// The project.
    #[must_use]
    pub fn workspace(&self) -> &WsPath {
        &self.connection.workspace
    }

    /// Ends the turn when cancelled.
    #[must_use]
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// The authority of what runs inside an effect: what a command asks for is not its owner's word.
    pub(crate) fn inside(&self) -> Self {
        let role = if self.role == Role::Owner { Role::Agent } else { self.role };
        Self { role, ..self.clone() }
    }

    /// Tells the front end, past the redactor. A front end that is gone is no error.
    pub(crate) async fn tell(&self, journal: &Journal, seq: Seq, happening: Happening) {
        let happening = match self.conversation {
            None => happening,
            Some(_) => match of_a_sub_agent(happening) {
                Some(happening) => happening,
                None => return,
            },
        };
        let happening = screen::happening(journal.redactor(), happening);
        let event = Event { v: EVENT_VERSION, seq, happening };
        self.connection.outlet.send(event).await;
    }
}

/// Where a session's events go. A front end that takes none for too long is cut off, so that it cannot hold up the
/// session; its channel then ends, and what it missed stands in the journal.
#[derive(Debug, Clone)]
pub(crate) struct Outlet {
    events: Arc<Mutex<Option<mpsc::Sender<Event>>>>,
    patience: Duration,
}

impl Outlet {
    pub(crate) fn new(events: mpsc::Sender<Event>, patience: Duration) -> Self {
        Self { events: Arc::new(Mutex::new(Some(events))), patience }
    }

    async fn send(&self, event: Event) {
        let open = self.events.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(events) = open else { return };
        if events.send_timeout(event, self.patience).await.is_err() {
            *self.events.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

/// What a front end hears of a sub-agent: what it asks for and uses, and a line for each of its calls. What it says is for
/// whoever began it.
fn of_a_sub_agent(happening: Happening) -> Option<Happening> {
    match happening {
        Happening::Call { tool, target, .. } => {
            Some(Happening::Notice { text: format!("sub-agent: {tool} {target}") })
        }
        Happening::Notice { text } => Some(Happening::Notice { text: format!("sub-agent: {text}") }),
        Happening::Ask { .. } | Happening::Answered { .. } | Happening::Usage { .. } => Some(happening),
        _ => None,
    }
}
