//! A comparison of a session's layer with its project, and what moves between them.

use super::Walls;
use crate::{commits::Commits, config::Shape, worker::Request};
use bailey_kernel::Io;
use bailey_protocol::{
    Action, DiffReport, EffectId, Isolation, Merge, MergeKind, Outcome, Report, SessionId, Status, WsPath,
};
use std::time::Instant;

impl Walls {
    pub(super) async fn merge(
        &self,
        session: SessionId,
        effect: EffectId,
        mut merge: Merge,
        isolation: &Isolation,
        io: &Io,
    ) -> Outcome {
        let of_copy = self.of_copy(session);
        merge.files.iter_mut().for_each(|file| of_copy.name_inward(&mut file.path));
        merge.also.iter_mut().for_each(|path| of_copy.name_inward(path));
        let (direction, paths) =
            (merge.direction, merge.files.iter().map(|file| file.path.clone()).collect::<Vec<_>>());
        let begin = Instant::now();
        let _alone = self.carrying.lock().await;
        // Beside it, nothing is told what is the session's before it is over.
        let _still = self.settling.lock().await;
        self.known(|known| known.remove(&session));
        // Before the project holds again what was there before the apply: this process may end at any time.
        if direction == MergeKind::Undo
            && let Err(error) = self.settle_alone(session, &paths, false).await
        {
            return Outcome::failed(error.to_string());
        }
        let carried = Commits { native: &self.native, session, cancel: &io.cancel }.ready(&merge).await;
        let request = self.native.yard(session).map(|yard| Request::Merge {
            // An undo finds what its apply replaced under the apply's name.
            backup: yard.backups().join(merge.of.unwrap_or(effect).to_string()).display().to_string(),
            merge,
            upper: yard.upper().display().to_string(),
            project: yard.project.display().to_string(),
            carried,
            bases: self.native.bases(session, yard),
        });
        let mut outcome = self.work(session, request, isolation, io, begin).await;
        // What was thrown away becomes what the project holds; what an undo took from the project stays the
        // session's.
        let settled = match direction {
            MergeKind::Discard => self.settle_alone(session, &[], true).await,
            MergeKind::Undo => self.settle_alone(session, &[], false).await,
            MergeKind::Apply => Ok(()),
        };
        if let Err(error) = settled {
            return Outcome::failed(error.to_string());
        }
        if let Report::Merged { files, .. } = &mut outcome.report {
            files.iter_mut().for_each(|file| of_copy.name_outward(&mut file.path));
        }
        outcome
    }

    pub(super) async fn diff(
        &self,
        session: SessionId,
        also: Vec<WsPath>,
        isolation: &Isolation,
        io: &Io,
    ) -> Outcome {
        let begin = Instant::now();
        let also = self.of_copy(session).inward(also);
        let request = self.native.yard(session).map(|yard| Request::Diff {
            is_copy: self.native.shape(session) == Shape::Copied,
            upper: yard.upper().display().to_string(),
            project: yard.project.display().to_string(),
            also,
            bases: self.native.bases(session, yard),
        });
        let mut outcome = self.work(session, request, isolation, io, begin).await;
        if let Report::Diff(report) = &mut outcome.report {
            let _alone = self.carrying.lock().await;
            Commits { native: &self.native, session, cancel: &io.cancel }.compare(report).await;
            let of_copy = self.of_copy(session);
            let paths = report.files.iter_mut().map(|file| &mut file.path).chain(&mut report.ignored);
            paths.for_each(|path| of_copy.name_outward(path));
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
