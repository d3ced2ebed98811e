//! Since when what a session's effects see of its project may be as it was.

use super::Walls;
use bailey_protocol::{Isolation, SessionId, Touched, WsPath};
use std::{
    sync::{Arc, PoisonError},
    time::SystemTime,
};

/// The effects that may look at a session's project or change its layer, of all sessions.
#[derive(Debug, Default)]
pub(super) struct Living {
    lives: Vec<Life>,
    /// The number of the last one.
    last: u64,
}

#[derive(Debug)]
struct Life {
    number: u64,
    session: SessionId,
    since: SystemTime,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Foreground,
    Background,
    /// A peer that sees the workspace. It ends before a merge.
    Peer,
    /// It is over, and its worker waits for what is asked next.
    Waiting,
}

impl Living {
    /// Since when what shows now in the layer may have been made, or what it was made of been read; none
    /// where nothing lives.
    pub(super) fn since(&self, session: SessionId) -> Option<SystemTime> {
        self.of(session).map(|life| life.since).min()
    }

    /// Whether something is at work.
    pub(super) fn is_any(&self, session: SessionId) -> bool {
        self.of(session).any(|life| life.kind != Kind::Waiting)
    }

    /// Whether a process lives in the background.
    pub(super) fn is_background(&self, session: SessionId) -> bool {
        self.of(session).any(|life| matches!(life.kind, Kind::Background | Kind::Peer))
    }

    fn begin(&mut self, session: SessionId, kind: Kind) -> (u64, SystemTime) {
        let since = self.since(session).into_iter().fold(SystemTime::now(), Ord::min);
        self.last += 1;
        self.lives.push(Life { number: self.last, session, since, kind });
        (self.last, since)
    }

    fn of(&self, session: SessionId) -> impl Iterator<Item = &Life> {
        self.lives.iter().filter(move |life| life.session == session)
    }
}

/// An effect, as long as it may change its session's layer, or keeps what others see of the project from
/// being renewed.
pub(super) struct Lives<'a> {
    walls: &'a Walls,
    session: SessionId,
    number: u64,
    /// How old what it sees of the project may be. The overlay is mounted anew when nothing lives any more
    /// that looked at it, so what begins beside another is shown no more than that one; and a private copy is
    /// brought up to date after this.
    pub(super) since: SystemTime,
}

impl<'a> Lives<'a> {
    pub(super) fn begin(walls: &'a Walls, session: SessionId, is_background: bool) -> Self {
        let is_waited = walls.native.has_waiting(session);
        walls.living(|living| {
            let is_gone = |life: &Life| life.session == session && life.kind == Kind::Waiting && !is_waited;
            living.lives.retain(|life| !is_gone(life));
            let kind = if is_background { Kind::Background } else { Kind::Foreground };
            let (number, since) = living.begin(session, kind);
            Self { walls, session, number, since }
        })
    }
}

impl Drop for Lives<'_> {
    fn drop(&mut self) {
        let is_waited = self.walls.native.has_waiting(self.session);
        self.walls.living(|living| match living.lives.iter_mut().find(|life| life.number == self.number) {
            Some(life) if is_waited => life.kind = Kind::Waiting,
            _ => living.lives.retain(|life| life.number != self.number),
        });
    }
}

/// A peer in the workspace of a session, as long as it lives.
#[derive(Debug)]
pub(crate) struct Stay {
    walls: Arc<Walls>,
    session: SessionId,
    isolation: Isolation,
    number: u64,
    since: SystemTime,
}

impl Stay {
    pub(super) fn begin(walls: Arc<Walls>, session: SessionId, isolation: Isolation) -> Self {
        let (number, since) = walls.living(|living| living.begin(session, Kind::Peer));
        Self { walls, session, isolation, number, since }
    }

    /// The paths that came to differ since the last look. When the look fails, a merge takes the texts of
    /// before for unknown, and keeps what the project holds.
    pub(crate) async fn look(&self) -> Vec<Touched> {
        let yard = self.walls.native.yard(self.session);
        let is_unchanged = |path: &WsPath| yard.as_ref().is_ok_and(|yard| yard.project == *path.0);
        if self.isolation.unchanged.iter().any(is_unchanged)
            || self.walls.scan(self.session, &self.isolation, self.since).await.is_err()
        {
            return Vec::new();
        }
        self.walls.untold(self.session, std::mem::take)
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.walls.living(|living| living.lives.retain(|life| life.number != self.number));
    }
}

impl Walls {
    pub(super) fn living<T>(&self, with: impl FnOnce(&mut Living) -> T) -> T {
        with(&mut self.living.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
