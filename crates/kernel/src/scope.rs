//! Authority: what somebody may ask for comes from the connection they speak over, and from nothing they say.

use crate::{Instruction, bearer::Bearer, screen};
use bailey_journal::Journal;
use bailey_policy::Trust;
use bailey_protocol::{Event, Happening, Role, Seq, SessionId, WsPath, event::EVENT_VERSION};
use serde::{Deserialize, Serialize};
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
    pub(crate) standpoint: Standpoint,
    pub(crate) outlet: Outlet,
    /// By what the session's agent acts, where that is not the rules.
    pub(crate) bearer: Option<Bearer>,
}

impl Connection {
    /// The same of a person who stands there.
    #[must_use]
    pub fn at(self, standpoint: Standpoint) -> Self {
        Self { standpoint, ..self }
    }
}

/// Where a person stands in a project, and how they write its path. Only how a name is read depends on it:
/// the path that is found is made canonical and judged as ever.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standpoint {
    /// The directory below the workspace in which relative paths and commands begin; `None` for the workspace
    /// itself.
    pub start: Option<WsPath>,
    /// The workspace's path as the person writes it, where that leads there through a link.
    pub spelled: Option<WsPath>,
}

impl Standpoint {
    fn place(&self, path: &WsPath, workspace: &WsPath) -> WsPath {
        let is_at_home = path.0 == "~" || path.0.starts_with("~/");
        match (&self.start, &self.spelled) {
            (Some(start), _) if !path.0.starts_with('/') && !is_at_home => {
                let parts = path.0.split('/').filter(|part| !matches!(*part, "" | "."));
                WsPath(parts.fold(start.0.clone(), |placed, part| placed + "/" + part))
            }
            (_, Some(spelled)) => path.moved(&spelled.0, &workspace.0).unwrap_or_else(|| path.clone()),
            _ => path.clone(),
        }
    }

    /// An instruction that says so to a model that works in this workspace.
    #[must_use]
    pub fn told(&self, instruction: Instruction, workspace: &WsPath) -> Instruction {
        let mut told = instruction.with_fact("Workspace", &workspace.0);
        if let Some(start) = &self.start {
            let below = start.relative_to(&workspace.0).unwrap_or(&start.0);
            told = told.with_fact(
                "Started in",
                &format!(
                    "{start} (`{below}` of the workspace). The person stands there, and means that directory. Commands start \
                     there, and relative paths begin there, where a tool speaks of the workspace as well; name files elsewhere \
                     by absolute paths."
                ),
            );
        }
        match &self.spelled {
            Some(spelled) => told.with_fact("Workspace, as the person writes it", &spelled.0),
            None => told,
        }
    }
}

/// The authority of one turn, or of one command of the owner's. Made by `Kernel::accept` and
/// `Kernel::resume_turn` for an agent, by `Registrar::owner` for the owner.
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

    /// An instruction that says where its reader works.
    #[must_use]
    pub fn told(&self, instruction: Instruction) -> Instruction {
        self.connection.standpoint.told(instruction, self.workspace())
    }

    /// The directory in which relative paths and commands begin.
    #[must_use]
    pub fn start(&self) -> &WsPath {
        self.connection.standpoint.start.as_ref().unwrap_or(&self.connection.workspace)
    }

    /// A path as it is named to one that reads the same from the workspace.
    #[must_use]
    pub fn place(&self, path: &WsPath) -> WsPath {
        self.connection.standpoint.place(path, self.workspace())
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

/// Where a session's events go. A front end that takes none for too long is cut off, so that it cannot hold
/// up the session; its channel then ends, and what it missed stands in the journal.
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

/// What a front end hears of a sub-agent: what it asks for and uses, and a line for each of its calls. What
/// it says is for whoever began it.
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

#[cfg(test)]
mod tests {
    use super::Standpoint;
    use bailey_protocol::WsPath;

    #[test]
    fn a_name_is_read_from_where_its_person_stands() {
        let at = |start: Option<&str>, spelled: Option<&str>, path: &str| {
            let standpoint =
                Standpoint { start: start.map(WsPath::from), spelled: spelled.map(WsPath::from) };
            standpoint.place(&path.into(), &"/data/p".into()).0
        };
        let (start, spelled) = (Some("/data/p/web"), Some("/home/ann/p"));
        for (path, placed) in [
            ("a.js", "/data/p/web/a.js"),
            ("./src//a.js", "/data/p/web/src/a.js"),
            (".", "/data/p/web"),
            ("../a.js", "/data/p/web/../a.js"),
            ("~/a.js", "~/a.js"),
            ("~a.js", "/data/p/web/~a.js"),
            ("/home/ann/p/a.js", "/data/p/a.js"),
            ("/home/ann/p", "/data/p"),
            ("/home/ann/pp/a.js", "/home/ann/pp/a.js"),
            ("/data/p/a.js", "/data/p/a.js"),
        ] {
            assert_eq!(at(start, spelled, path), placed, "{path}");
        }
        assert_eq!(at(None, spelled, "./a.js"), "./a.js");
        assert_eq!(at(None, None, "/home/ann/p/a.js"), "/home/ann/p/a.js");
    }
}
