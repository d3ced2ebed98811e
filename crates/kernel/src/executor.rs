//! The seam to the world: who performs effects.

use crate::{Door, Output};
use bailey_journal::Permit;
use bailey_protocol::{Action, Digest, Enforced, Isolation, SessionId, Status, WsPath};
use bytes::Bytes;
use std::{future::Future, pin::Pin};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A boxed future, so that executors can be chosen at run time.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Who performs a kind of effect. The composition root registers one executor for each route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Route {
    /// Everything that touches a workspace or runs a command.
    Walls,
    /// What Bailey itself sends off the machine.
    Network,
    /// What commands inside the walls send.
    Relay,
    /// What the agent itself asks of the web.
    Web,
    /// Chat channels and collectors.
    Uplink,
    /// The rules of the home.
    Law,
    /// The agent's own file.
    Agent,
    /// The peers of the session, which have tools.
    Peer,
}

impl Route {
    /// All routes.
    pub const ALL: [Self; 8] = [
        Self::Walls,
        Self::Network,
        Self::Relay,
        Self::Web,
        Self::Uplink,
        Self::Law,
        Self::Agent,
        Self::Peer,
    ];

    /// The route of an action; `None` for a tool of another program, which Bailey judges and does not
    /// perform.
    #[must_use]
    pub fn of(action: &Action) -> Option<Self> {
        match action {
            Action::Exec(_)
            | Action::Read { .. }
            | Action::Stat { .. }
            | Action::List { .. }
            | Action::Search { .. }
            | Action::Change { .. }
            | Action::Diff { .. }
            | Action::Merge(_) => Some(Self::Walls),
            Action::Model { .. } | Action::Http(_) => Some(Self::Network),
            Action::Relay(_) => Some(Self::Relay),
            Action::Fetch { .. } => Some(Self::Web),
            Action::Uplink(_) => Some(Self::Uplink),
            Action::Amend(_) => Some(Self::Law),
            Action::Adapt(_) => Some(Self::Agent),
            Action::Tool(tool) => tool.peer.is_some().then_some(Self::Peer),
        }
    }
}

/// A piece of an effect's output while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// The head of an HTTP response: status code, headers with names in lower case.
    Head(u16, Vec<(String, String)>),
    /// Bytes of an HTTP response's body.
    Body(Bytes),
    /// A command runs from here on, behind these walls.
    Begun(Enforced),
    /// Bytes of a command's standard output.
    Stdout(Bytes),
    /// Bytes of a command's standard error.
    Stderr(Bytes),
}

/// What a running effect holds besides its permit.
pub struct Io {
    /// Takes output while it comes. Bounded: an executor waits here when nobody reads. A closed channel is no
    /// error.
    pub out: mpsc::Sender<Chunk>,
    /// Asks the effect to end.
    pub cancel: CancellationToken,
    /// The way to further effects from inside this one.
    pub door: Door,
}

/// Named paths could not be made canonical, or lead nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ResolveError(pub String);

/// Who performs effects. It can do so only with a [`Permit`], which it redeems against the seal of its
/// journal.
pub trait Executor: Send + Sync + 'static {
    /// The routes it serves.
    fn routes(&self) -> Vec<Route>;

    /// Says that effects of this session may follow soon: a model was asked. An executor that has something
    /// to make ready does it meanwhile; nothing depends on it.
    fn expect(&self, _session: SessionId) {}

    /// Turns named paths into absolute canonical ones, inside the walls. It returns names only and is no
    /// effect; `perform` opens beneath the same root and checks again.
    fn resolve<'a>(
        &'a self,
        session: SessionId,
        action: Action,
    ) -> BoxFuture<'a, Result<Action, ResolveError>>;

    /// Whether it is plain from the project's names alone that the session's workspace has nothing at this
    /// absolute path. Where that takes a look inside the walls, the answer is no. Like `resolve` it brings
    /// nothing into a context, and is no effect.
    fn lacks<'a>(&'a self, _session: SessionId, _path: &'a WsPath) -> BoxFuture<'a, bool> {
        Box::pin(async { false })
    }

    /// The digest of the files that an action names besides those it is about, as a command names its program
    /// and its script: what a human's yes is about, too. None where the action says it all.
    fn named<'a>(
        &'a self,
        _session: SessionId,
        _action: &'a Action,
        _isolation: &'a Isolation,
    ) -> BoxFuture<'a, Result<Option<Digest>, ResolveError>> {
        Box::pin(async { Ok(None) })
    }

    /// What came of an action that was cut off, where what it left behind says so; none where nobody can
    /// tell.
    fn aftermath<'a>(&'a self, _session: SessionId, _action: &'a Action) -> BoxFuture<'a, Option<Status>> {
        Box::pin(async { None })
    }

    /// Performs the effect. Ends only when the effect has ended, also when it was cancelled.
    fn perform<'a>(&'a self, permit: Permit, io: Io) -> BoxFuture<'a, Output>;
}
