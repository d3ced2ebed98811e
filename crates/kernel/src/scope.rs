//! Authority: what somebody may ask for comes from the connection they speak over, and from nothing they say.

use crate::screen;
use bailey_journal::Journal;
use bailey_protocol::{Cost, Event, Happening, Role, Seq, SessionId, WsPath, event::EVENT_VERSION};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A connection of an authenticated person to one session. Made by `Registrar::connect` only.
#[derive(Debug, Clone)]
pub struct Connection {
    pub(crate) session: SessionId,
    pub(crate) workspace: WsPath,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) limit: Cost,
}

/// The authority of one turn, or of one command of the owner's. Made by `Kernel::accept` and `Kernel::resume_turn` for
/// an agent, by `Registrar::owner` for the owner.
#[derive(Debug, Clone)]
pub struct Scope {
    pub(crate) connection: Connection,
    pub(crate) role: Role,
    pub(crate) cancel: CancellationToken,
}

impl Scope {
    /// The session.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.connection.session
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

    /// Tells the front end, past the redactor. A front end that is gone is no error.
    pub(crate) async fn tell(&self, journal: &Journal, seq: Seq, happening: Happening) {
        let happening = screen::happening(journal.redactor(), happening);
        let event = Event { v: EVENT_VERSION, seq, happening };
        self.connection.events.send(event).await.ok();
    }
}
