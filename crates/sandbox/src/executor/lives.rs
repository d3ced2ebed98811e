//! Since when processes live in the background.

use super::Walls;
use bailey_protocol::SessionId;
use std::time::SystemTime;

/// A process in the background, as long as it may change its session's layer.
pub(super) struct Lives<'a> {
    walls: &'a Walls,
    session: SessionId,
    since: SystemTime,
}

impl<'a> Lives<'a> {
    pub(super) fn begin(walls: &'a Walls, session: SessionId, since: SystemTime) -> Self {
        walls.living(|living| living.entry(session).or_default().push(since));
        Self { walls, session, since }
    }
}

impl Drop for Lives<'_> {
    fn drop(&mut self) {
        self.walls.living(|living| {
            let Some(of_session) = living.get_mut(&self.session) else { return };
            if let Some(place) = of_session.iter().position(|since| *since == self.since) {
                of_session.remove(place);
            }
            if of_session.is_empty() {
                living.remove(&self.session);
            }
        });
    }
}
