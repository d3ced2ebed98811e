//! What effects leave in a session's layer, and what the project held there.

use super::Walls;
use crate::{
    config::{Shape, Yard},
    native::WorkError,
    worker::{Request, Response},
};
use bailey_protocol::{Isolation, Outside, SessionId, Touched, WsPath};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::PoisonError,
    time::{SystemTime, UNIX_EPOCH},
};
use tokio_util::sync::CancellationToken;

/// What the scans of a layer have found so far, so that the next scan tells only what is new.
#[derive(Debug, Default)]
pub(super) struct ScanState {
    paths: BTreeSet<WsPath>,
    /// Whether it holds something that can never leave it.
    is_holding: bool,
    /// What no outcome has told yet.
    untold: Vec<Touched>,
}

impl ScanState {
    /// Whether the layer held nothing.
    fn is_bare(&self) -> bool {
        self.paths.is_empty() && !self.is_holding
    }
}

impl Walls {
    /// Says that a session begins, so that nobody has to look whether its layer holds something.
    pub fn begin(&self, session: SessionId) {
        self.known(|known| drop(known.insert(session, ScanState::default())));
    }

    /// Sees what the layer holds before this process first does anything there: what a killed command left
    /// came there at an unknown time since the session began.
    pub(super) async fn look(&self, session: SessionId, isolation: &Isolation) {
        let _alone = self.looking.lock().await;
        if self.native.shape(session) == Shape::Direct {
            return;
        }
        if !self.known(|known| known.contains_key(&session)) {
            // Failing, it leaves the layer unknown, and what the next scan finds is unsure as well.
            self.scan_alone(session, isolation, UNIX_EPOCH).await.ok();
        }
    }

    /// Adds what the session's layer came to hold since, with what the project holds there, to what is to be
    /// told. What the host changed is answered as long as a process lives in the background.
    pub(super) async fn scan(
        &self,
        session: SessionId,
        isolation: &Isolation,
        since: SystemTime,
    ) -> Result<Outside, WorkError> {
        let _alone = self.looking.lock().await;
        if self.native.shape(session) == Shape::Direct {
            return Ok(Outside::default());
        }
        let scanned = self.scan_alone(session, isolation, since).await;
        scanned.inspect_err(|_| drop(self.known(|known| known.remove(&session))))
    }

    async fn scan_alone(
        &self,
        session: SessionId,
        isolation: &Isolation,
        since: SystemTime,
    ) -> Result<Outside, WorkError> {
        self.settle(session).await?;
        let yard = self.native.yard(session)?;
        let of_copy = self.of_copy(session);
        let (known, was_bare) = self.known(|known| match known.get(&session) {
            Some(it) => (Some(it.paths.iter().cloned().collect()), it.is_bare()),
            None => (None, true),
        });
        // What lives made some of it, at any time since it began.
        let (lives, is_background) =
            self.living(|living| (living.since(session), living.is_background(session)));
        let outside = is_background && known.is_some();
        if !outside && was_bare && self.native.is_bare(session).await {
            self.known(|known| {
                known.entry(session).or_default();
            });
            return Ok(Outside::default());
        }
        let since = if known.is_some() { lives.unwrap_or(since).min(since) } else { begun(yard) };
        let since = since.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let request = Request::Scan {
            upper: yard.upper().display().to_string(),
            project: yard.project.display().to_string(),
            known: of_copy.inward(known.unwrap_or_default()),
            since: u64::try_from(since).unwrap_or(0),
            outside,
            bases: self.native.bases(session, yard),
        };
        // The command is over; its cancellation is not the scan's.
        match self.native.work(session, request, isolation, &CancellationToken::new()).await? {
            (Response::Scanned { mut touched, is_holding, mut outside }, _) => {
                touched.iter_mut().for_each(|touched| of_copy.name_outward(&mut touched.path));
                outside.paths.iter_mut().for_each(|path| of_copy.name_outward(path));
                self.known(|known| {
                    let known = known.entry(session).or_default();
                    known.is_holding = is_holding;
                    known.paths.extend(touched.iter().map(|touched| touched.path.clone()));
                    known.untold.extend(touched);
                });
                Ok(outside)
            }
            (Response::Refused { reason }, _) => Err(WorkError::Refused(reason)),
            _ => Err(WorkError::NoAnswer),
        }
    }

    /// What of the session's layer is still to be told.
    pub(super) fn untold<T: Default>(
        &self,
        session: SessionId,
        with: impl FnOnce(&mut Vec<Touched>) -> T,
    ) -> T {
        self.known(|known| known.get_mut(&session).map(|known| with(&mut known.untold)).unwrap_or_default())
    }

    /// Whether the session's layer was looked at, after whatever ran there, and holds nothing.
    pub(super) fn is_empty(&self, session: SessionId) -> bool {
        if self.living(|living| living.is_any(session)) {
            return false;
        }
        self.known(|known| known.get(&session).is_some_and(ScanState::is_bare))
    }

    /// Whether nothing is at a path of the workspace, as the project alone says where it is known that the
    /// layer holds nothing.
    pub(super) async fn is_absent(&self, session: SessionId, path: &WsPath) -> bool {
        let Ok(yard) = self.native.yard(session) else { return false };
        let below = path.relative_to(&yard.project.display().to_string()).map(str::to_owned);
        match below {
            Some(below) if self.is_empty(session) => self.native.lacks(session, below).await,
            _ => false,
        }
    }

    pub(super) fn known<T>(&self, with: impl FnOnce(&mut BTreeMap<SessionId, ScanState>) -> T) -> T {
        with(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// When the session began. What nobody saw come into its layer may be as old as that: what the project
/// changed since is no base to rely on, what it did not change is.
fn begun(yard: &Yard) -> SystemTime {
    fs::metadata(&yard.folder).and_then(|folder| folder.created()).unwrap_or(UNIX_EPOCH)
}
