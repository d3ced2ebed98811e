//! Sessions over a private copy: it is brought up to date around whatever is done, and its paths stand for
//! the project's.

use super::Walls;
use crate::{
    config::Shape,
    native::WorkError,
    worker::{Request, Response},
};
use bailey_protocol::{Isolation, SessionId, WsPath};
use tokio_util::sync::CancellationToken;

/// Where a project and its copy lie; none where the session works at the project's own path.
#[derive(Debug, Default)]
pub(super) struct OfCopy(Option<(String, String)>);

impl OfCopy {
    /// A path in the copy to the project's, which the worker compares.
    pub(super) fn name_inward(&self, path: &mut WsPath) {
        if let Some((project, copy)) = &self.0 {
            *path = path.moved(copy, project).unwrap_or_else(|| path.clone());
        }
    }

    /// A path in the project to the copy's, at which the session knows it.
    pub(super) fn name_outward(&self, path: &mut WsPath) {
        if let Some((project, copy)) = &self.0 {
            *path = path.moved(project, copy).unwrap_or_else(|| path.clone());
        }
    }

    pub(super) fn inward(&self, mut paths: Vec<WsPath>) -> Vec<WsPath> {
        paths.iter_mut().for_each(|path| self.name_inward(path));
        paths
    }
}

impl Walls {
    pub(super) fn of_copy(&self, session: SessionId) -> OfCopy {
        let is_copied = self.native.shape(session) == Shape::Copied;
        let yard = self.native.yard(session).ok().filter(|_| is_copied);
        OfCopy(yard.map(|yard| (yard.project.display().to_string(), yard.copy().display().to_string())))
    }

    /// Brings a session's copy up to date, where it has one.
    pub(super) async fn settle(&self, session: SessionId) -> Result<(), WorkError> {
        if self.native.shape(session) != Shape::Copied {
            return Ok(());
        }
        // Two at once would each write what the other one goes by.
        let _alone = self.settling.lock().await;
        self.settle_alone(session, &[], false).await
    }

    /// The same, for whoever holds `settling`. What is in `own` is the session's, whatever the project comes
    /// to hold, until the next time that nothing is named; `anew`: the copy is thrown away first.
    pub(super) async fn settle_alone(
        &self,
        session: SessionId,
        own: &[WsPath],
        anew: bool,
    ) -> Result<(), WorkError> {
        if self.native.shape(session) != Shape::Copied {
            return Ok(());
        }
        let yard = self.native.yard(session)?;
        let request = Request::Settle {
            project: yard.project.display().to_string(),
            copy: yard.copy().display().to_string(),
            upper: yard.upper().display().to_string(),
            record: yard.copied().display().to_string(),
            own: own.to_vec(),
            anew,
            masks: Vec::new(),
        };
        // It writes what later looks rely on, so it is not cut off.
        let never = CancellationToken::new();
        match self.native.work(session, request, &Isolation::default(), &never).await? {
            (Response::Settled, _) => Ok(()),
            (Response::Refused { reason }, _) => Err(WorkError::Refused(reason)),
            _ => Err(WorkError::NoAnswer),
        }
    }
}
