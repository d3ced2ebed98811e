//! A comparison of a session's layer with its project, and what moves between them.

use super::Walls;
use crate::{commits::Commits, worker::Request};
use bailey_kernel::Io;
use bailey_protocol::{Action, DiffReport, EffectId, Isolation, Merge, Outcome, Report, SessionId, Status};
use std::time::Instant;

impl Walls {
    pub(super) async fn merge(
        &self,
        session: SessionId,
        effect: EffectId,
        merge: Merge,
        isolation: &Isolation,
        io: &Io,
    ) -> Outcome {
        let begin = Instant::now();
        let _alone = self.carrying.lock().await;
        self.known(|known| known.remove(&session));
        let carried = Commits { native: &self.native, session, cancel: &io.cancel }.ready(&merge).await;
        let request = self.native.yard(session).map(|yard| Request::Merge {
            // An undo finds what its apply replaced under the apply's name.
            backup: yard.backups().join(merge.of.unwrap_or(effect).to_string()).display().to_string(),
            merge,
            upper: yard.upper().display().to_string(),
            project: yard.project.display().to_string(),
            carried,
            bases: Some(self.native.bases(yard)),
        });
        self.work(session, request, isolation, io, begin).await
    }

    pub(super) async fn diff(&self, session: SessionId, isolation: &Isolation, io: &Io) -> Outcome {
        let begin = Instant::now();
        let request = self.native.yard(session).map(|yard| Request::Diff {
            upper: yard.upper().display().to_string(),
            project: yard.project.display().to_string(),
            bases: Some(self.native.bases(yard)),
        });
        let mut outcome = self.work(session, request, isolation, io, begin).await;
        if let Report::Diff(report) = &mut outcome.report {
            let _alone = self.carrying.lock().await;
            Commits { native: &self.native, session, cancel: &io.cancel }.compare(report).await;
        }
        outcome
    }
}

/// What there is to compare or to move in a session that has no layer.
pub(super) fn without_layer(action: &Action) -> Outcome {
    if matches!(action, Action::Merge(_)) {
        return Outcome::failed("this session had no layer: what it did, it did in the project itself");
    }
    let report = Report::Diff(DiffReport::default());
    Outcome { status: Status::Done, enforced: None, duration_ms: 0, report }
}
