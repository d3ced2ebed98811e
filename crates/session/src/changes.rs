//! The changes of a session, and their way to the project and back.

mod path;
mod together;

use crate::{Host, HostError, history, host::who, threeway::Threeway};
use bailey_kernel::{Acted, Applied, Output, Preview, Scope, Settlement};
use bailey_protocol::{
    Action, Branch, DiffReport, Digest, Happening, Merge, MergeFile, MergeKind, MergeState, Op, PathCount,
    Report, Status, Tip, Touched, Verdict, WsPath,
};
use path::change;
pub(crate) use path::marks;
use std::collections::HashMap;
use tokio::sync::mpsc;

/// One path that a session changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Relative to the workspace.
    pub path: String,
    /// A unified diff, or one line where the content is not text.
    pub diff: String,
    /// The same in numbers.
    pub count: PathCount,
    /// The reason why the change stays in the session's layer; `None` when it can be applied.
    pub refused: Option<String>,
    /// Remarks for a person before the change is applied.
    pub remarks: Vec<String>,
    /// The reason why an apply keeps the project's version, such as that you changed it since; `None` when
    /// the apply does not keep it.
    pub conflict: Option<String>,
    pub(crate) file: MergeFile,
}

impl Change {
    /// The remark before an apply that would keep the project's version.
    #[must_use]
    pub fn would_keep(&self) -> Option<String> {
        self.conflict.as_ref().map(|why| format!("{why}: it would be kept as it is"))
    }

    /// Whether, after an apply of everything, the project has other content here than the session.
    fn is_mixed(&self) -> bool {
        self.stays() || self.file.part.is_some()
    }

    /// Whether an apply leaves the project's version as it is.
    fn stays(&self) -> bool {
        self.refused.is_some() || self.conflict.is_some()
    }
}

/// Everything that a session changed in its project.
#[derive(Debug, Default)]
pub struct Changes {
    /// Sorted by path.
    pub changes: Vec<Change>,
    /// The paths that a human is asked about before they are applied, relative to the workspace.
    pub red: Vec<String>,
    /// The reasons for this, one line for each rule that spoke.
    pub reasons: Vec<String>,
    /// Whether the gate denies all changes: then no question is asked, and all changes stay.
    pub is_denied: bool,
    /// Commits that the project lacks. Empty when a part was asked for, because an apply of a part moves no
    /// commits.
    pub branches: Vec<Branch>,
    /// One line for each branch, with the result of an apply for it, and one line for each commit.
    pub commits: Vec<String>,
    /// Commits that no apply takes along, each with the reason.
    pub stuck: Vec<String>,
    /// Paths that the session changed and git ignores, relative to the workspace. They stay unless an apply
    /// names them.
    pub ignored: Vec<String>,
    /// The requested paths, which include everything below them; empty means everything.
    pub(crate) only: Vec<String>,
    /// Whether a person picked these hunks out of all changes.
    pub(crate) is_picked: bool,
    /// The comparison, for the card of an apply.
    pub(crate) compared: Option<Output>,
}

/// The message about an apply that was killed.
pub const HALF_APPLIED: &str = "an apply of this session was interrupted, so the project holds only a part \
    of it, and temporary files (`.bailey-merge-…`)";

impl Changes {
    /// Whether there is nothing to apply.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.iter().all(|change| change.refused.is_some())
            && (self.is_picked || self.branches.iter().all(|branch| branch.refused.is_some()))
    }

    /// One unified diff over all files.
    #[must_use]
    pub fn diff(&self) -> String {
        self.changes.iter().map(|change| change.diff.as_str()).collect()
    }

    /// The paths that an apply would keep as they are, each with the reason.
    #[must_use]
    pub fn conflicts(&self) -> Vec<String> {
        self.told(Change::would_keep)
    }

    /// The paths that no apply takes along, each with the reason.
    #[must_use]
    pub fn stays(&self) -> Vec<String> {
        self.told(|change| change.refused.clone())
    }

    /// The digest that names these changes. It covers the states of files and branches before and after an
    /// apply.
    #[must_use]
    pub fn shown(&self) -> Digest {
        let state = |of: Option<Digest>| of.map_or_else(Vec::new, |digest| digest.0.to_vec());
        let files = self.changes.iter().map(|change| &change.file);
        let files =
            files.flat_map(|file| [file.path.0.clone().into_bytes(), state(file.base), state(file.new)]);
        let branches = self.branches.iter().flat_map(|branch| {
            [branch.name.clone(), branch.old.clone().unwrap_or_default(), branch.new.clone()]
                .map(String::into_bytes)
        });
        let named =
            |parts: Vec<Vec<u8>>| Digest::of_parts(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let (files, branches) = (named(files.collect()), named(branches.collect()));
        Digest::of_parts(&[&files.0, &branches.0])
    }

    fn told<'a>(&'a self, why: impl Fn(&'a Change) -> Option<String>) -> Vec<String> {
        let told =
            self.changes.iter().filter_map(|change| Some(format!("{}: {}", change.path, why(change)?)));
        told.collect()
    }

    /// The paths, relative to the workspace.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        self.changes.iter().map(|change| change.path.clone()).collect()
    }
}

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Merged {
    /// Paths that are now as the merge wants them, relative to the workspace.
    pub files: Vec<String>,
    /// Paths that were kept, each with the reason.
    pub conflicts: Vec<String>,
    /// The result for commits, one line for each branch.
    pub commits: Vec<String>,
    /// Paths that stay in the session, each with the reason.
    pub stays: Vec<String>,
}

impl Host {
    /// Compares the session's layer with the project.
    ///
    /// # Errors
    /// When the comparison failed or was refused.
    pub async fn changes(&self) -> Result<Changes, HostError> {
        self.changes_at(&[]).await
    }

    /// The same for some paths, relative to the workspace, and everything below them; an empty list means
    /// all.
    ///
    /// # Errors
    /// As [`Host::changes`], and when nothing changed at one of the paths.
    pub async fn changes_at(&self, only: &[String]) -> Result<Changes, HostError> {
        let changes = self.compare(only).await?;
        let happening = Happening::Diff {
            diff: changes.diff(),
            files: changes.paths(),
            counts: changes.changes.iter().map(|change| change.count.clone()).collect(),
            red: changes.red.clone(),
            reasons: changes.reasons.clone(),
            commits: changes.commits.clone(),
            conflicts: changes.conflicts(),
            stays: changes.stays(),
            ignored: changes.ignored.clone(),
            shown: Some(changes.shown()),
        };
        self.kernel.tell(&self.registrar.owner(&self.connection), happening).await?;
        Ok(changes)
    }

    /// The same, without an event.
    pub(crate) async fn compare(&self, only: &[String]) -> Result<Changes, HostError> {
        let scope = self.registrar.owner(&self.connection);
        let action = Action::Diff { root: self.workspace.clone(), also: self.named(only) };
        let output = match self.kernel.act(&scope, action, &[]).await? {
            Acted::Done(output) => output,
            Acted::Denied(reasons) => {
                return Err(HostError::Denied(format!("denied: {}", reasons.join("; "))));
            }
            Acted::Waiting(_) => return Err(HostError::Merge("a comparison cannot wait for a human".into())),
        };
        let report = diff_report(&output)?;
        let touched = self.kernel.journal().touched(self.session).await?;
        let touched: HashMap<&str, &Touched> = touched.iter().map(|t| (t.path.0.as_str(), t)).collect();
        let root = self.workspace.0.as_str();
        let mut threeway = Threeway::default();
        let changes = report.files.iter().filter_map(|file| change(file, &touched, root, &mut threeway));
        let mut changes: Vec<Change> = changes.collect();
        narrow(&mut changes, only)?;
        self.hold_secret_names(&mut changes);
        self.hold_denied(&scope, &mut changes).await?;
        together::hold(&report.files, &mut changes);
        let Preview { verdict, reasons, red } = self.judge(&scope, changes.iter()).await?;
        let red = red.iter().map(|path| path.relative_to(root).unwrap_or(&path.0).to_owned()).collect();
        let reasons = if verdict == Verdict::Allowed { Vec::new() } else { reasons };
        let is_denied = verdict == Verdict::Denied;
        let (branches, bound) = match only {
            [] => (report.branches.clone(), report.bound.clone()),
            _ => (Vec::new(), None),
        };
        let ignored =
            report.ignored.iter().filter_map(|path| path.relative_to(root)).map(str::to_owned).collect();
        let (only, compared, commits, stuck) = (only.to_vec(), Some(output), Vec::new(), Vec::new());
        let is_picked = false;
        let mut changes = Changes {
            changes,
            red,
            reasons,
            is_denied,
            branches,
            commits,
            stuck,
            ignored,
            only,
            is_picked,
            compared,
        };
        self.look_at_history(&scope, &mut changes).await?;
        let mixed = changes.changes.iter().filter(|change| change.is_mixed());
        let mixed: Vec<&str> = mixed.map(|change| change.path.as_str()).collect();
        changes.commits = history::before(&changes.branches, &mixed, bound.as_ref(), self.session);
        if !changes.branches.is_empty() {
            changes.commits.extend(self.commits_differ.clone());
        }
        changes.stuck = history::staying(&changes.branches, bound.as_ref());
        Ok(changes)
    }

    /// The paths that are taken although git ignores them, because a person named them. The root of the
    /// project does not count as a named path.
    fn named(&self, only: &[String]) -> Vec<WsPath> {
        let named = only.iter().filter(|at| !at.is_empty());
        named.map(|at| WsPath(format!("{}/{at}", self.workspace))).collect()
    }

    /// Whether an apply of this session was killed in the middle. The next apply first ends it.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn is_half_applied(&self) -> Result<bool, HostError> {
        Ok(self.kernel.journal().unfinished_apply(self.session).await?.is_some())
    }

    /// Whether the project holds something that the session applied and that no undo has taken back. An
    /// apply without a recorded end counts.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn has_applied(&self) -> Result<bool, HostError> {
        Ok(self.kernel.journal().last_apply(self.session).await?.is_some())
    }

    /// Moves changes to the project. A card asks about the Red changes first; answers come over `ops`.
    ///
    /// # Errors
    /// When the gate denies, the human rejects, or the merge cannot be made.
    pub async fn apply(&self, changes: &Changes, ops: &mut mpsc::Receiver<Op>) -> Result<Merged, HostError> {
        let Some(mut merged) = self.finish_apply(changes, ops).await? else {
            return self.apply_all(changes, ops).await;
        };
        // Hunks that were picked from one comparison do not fit another one.
        if changes.is_picked {
            return Err(HostError::Merge(
                "an apply had been cut in the middle and is whole now: look at the hunks again".into(),
            ));
        }
        // The layer is the same, so the rest is a part of the changes that were shown.
        let rest = self.changes_at(&changes.only).await?;
        if !rest.is_empty() {
            let more = self.apply_all(&rest, ops).await?;
            merged.files.extend(more.files);
            (merged.conflicts, merged.stays) = (more.conflicts, more.stays);
            merged.commits.extend(more.commits);
        }
        Ok(merged)
    }

    /// Ends an apply that was killed in the middle, so that a later comparison sees a stable project.
    /// Returns `None` when there is no such apply.
    ///
    /// # Errors
    /// As [`Host::apply`].
    pub async fn finish(&self, ops: &mut mpsc::Receiver<Op>) -> Result<Option<Merged>, HostError> {
        self.finish_apply(&Changes::default(), ops).await
    }

    /// Takes the last apply back: every path that is still as the apply left it gets its earlier state. When
    /// an undo of this apply was tried before, and the kept paths cannot be taken back now either, this
    /// takes back the apply before it.
    ///
    /// # Errors
    /// As [`Host::apply`], and when the session has applied nothing.
    pub async fn undo(&self, ops: &mut mpsc::Receiver<Op>) -> Result<Merged, HostError> {
        let mut applies = self.kernel.journal().applies(self.session).await?;
        let mut kept = Vec::new();
        while let Some(Applied { id, files, mut tips, is_tried }) = applies.pop() {
            tips.iter_mut().for_each(|tip| tip.aside = None);
            let undo = Merge { tips, ..Merge::of_files(MergeKind::Undo, Some(id), files) };
            let mut merged = self.merge(undo, &Changes::default(), ops).await?;
            kept.append(&mut merged.conflicts);
            let is_kept = merged.files.is_empty() && merged.commits.is_empty();
            if !(is_tried && is_kept) || applies.is_empty() {
                return Ok(Merged { conflicts: kept, ..merged });
            }
        }
        Err(HostError::Merge("this session has applied nothing that could be undone".into()))
    }

    /// Throws the session's layer away; the project stays as it is.
    ///
    /// # Errors
    /// As [`Host::apply`], and while an apply is half done: only that merge can end or take back its part in
    /// the project.
    pub async fn discard(&self, ops: &mut mpsc::Receiver<Op>) -> Result<Merged, HostError> {
        if self.is_half_applied().await? {
            return Err(HostError::Merge(format!(
                "{HALF_APPLIED}: `bailey sessions undo` takes it back, `bailey sessions apply` finishes it; \
                 then discard"
            )));
        }
        self.merge(Merge::of_files(MergeKind::Discard, None, Vec::new()), &Changes::default(), ops).await
    }

    async fn apply_all(&self, changes: &Changes, ops: &mut mpsc::Receiver<Op>) -> Result<Merged, HostError> {
        let files = changes.changes.iter().filter(|change| change.refused.is_none());
        let files = files.map(|change| change.file.clone()).collect();
        let tips =
            if changes.is_picked { Vec::new() } else { history::tips(&changes.branches, self.session) };
        let also = self.named(&changes.only);
        self.merge(Merge { tips, also, ..Merge::of_files(MergeKind::Apply, None, files) }, changes, ops).await
    }

    /// Ends an apply that was killed in the middle: only the same merge knows which files lie half-way in
    /// the project.
    async fn finish_apply(
        &self,
        changes: &Changes,
        ops: &mut mpsc::Receiver<Op>,
    ) -> Result<Option<Merged>, HostError> {
        match self.kernel.journal().unfinished_apply(self.session).await? {
            None => Ok(None),
            Some(Applied { id, files, tips, .. }) => {
                let merge = Merge { tips, ..Merge::of_files(MergeKind::Apply, Some(id), files) };
                self.merge(merge, changes, ops).await.map(Some)
            }
        }
    }

    async fn merge(
        &self,
        merge: Merge,
        changes: &Changes,
        ops: &mut mpsc::Receiver<Op>,
    ) -> Result<Merged, HostError> {
        let living = self.kernel.processes(self.session);
        if let Some((number, line)) = living.first() {
            let error = format!(
                "process {number} (`{line}`) runs in the background and may change files meanwhile: have the agent stop it, or \
                 end it from another terminal (`bailey ps`)"
            );
            return Err(HostError::Merge(error));
        }
        let scope = self.registrar.owner(&self.connection);
        let (direction, tips) = (merge.direction, merge.tips.clone());
        let mut acted = self.kernel.act(&scope, Action::Merge(merge), changes.compared.as_slice()).await?;
        let output = loop {
            acted = match acted {
                Acted::Done(output) => break output,
                Acted::Denied(reasons) => {
                    return Err(HostError::Denied(format!("denied: {}", reasons.join("; "))));
                }
                Acted::Waiting(id) => match self.answer_to(id, ops).await? {
                    Some(Settlement { answer, .. }) if answer.is_yes() => {
                        self.kernel.act_approved(&scope, id).await?
                    }
                    Some(Settlement { why, .. }) if !why.is_empty() => {
                        return Err(HostError::Denied(format!("not approved: {why}; nothing was changed")));
                    }
                    _ => return Err(HostError::Denied("not approved; nothing was changed".into())),
                },
            };
        };
        let stuck = if changes.is_picked { &[] } else { changes.stuck.as_slice() };
        let stays = [changes.stays().as_slice(), stuck].concat();
        let merged = Merged { stays, ..self.merged(direction, &tips, &output, changes)? };
        let name = match direction {
            MergeKind::Apply => "apply",
            MergeKind::Undo => "undo",
            MergeKind::Discard => "discard",
        };
        let happening = Happening::Merged {
            direction: name.into(),
            files: merged.files.clone(),
            conflicts: merged.conflicts.clone(),
            commits: merged.commits.clone(),
            stays: merged.stays.clone(),
        };
        self.kernel.tell(&scope, happening).await?;
        Ok(merged)
    }

    /// Waits for the answer to one card outside a turn, from here or from another terminal. Returns `None`
    /// when the front end is gone or cancels.
    async fn answer_to(
        &self,
        asked: bailey_protocol::ApprovalId,
        ops: &mut mpsc::Receiver<Op>,
    ) -> Result<Option<Settlement>, HostError> {
        let scope = self.kernel.turn_of(&self.connection);
        loop {
            let op = tokio::select! {
                settlement = self.kernel.settled(&scope, asked) => return Ok(Some(settlement?)),
                op = ops.recv() => op,
            };
            match op {
                Some(Op::Answer { id, answer, why, by }) if id == asked => {
                    let who = who(by.as_ref(), || self.who());
                    self.kernel.take_answer(&self.connection, id, answer, who, &why).await?;
                }
                None | Some(Op::Cancel) => {
                    self.kernel.withdraw(&scope, asked, "cancelled").await?;
                    return Ok(None);
                }
                Some(
                    op @ (Op::Answer { .. }
                    | Op::AskAgain { .. }
                    | Op::Say(_)
                    | Op::Follow { .. }
                    | Op::Pin { .. }
                    | Op::Unpin { .. }
                    | Op::Changes
                    | Op::Apply { .. }
                    | Op::Undo
                    | Op::Discard { .. }
                    | Op::Sessions
                    | Op::Model { .. }
                    | Op::Run { .. }
                    | Op::Files { .. }
                    | Op::TakeBack
                    | Op::Compact
                    | Op::Show { .. }),
                ) => {
                    let error = "a question about the changes is open; answer it first".to_owned();
                    self.kernel.tell(&scope, Happening::Failed { op: op.name().into(), error }).await?;
                }
            }
        }
    }

    /// Keeps paths with a secret in their name in the layer: an undo is read from the journal, and the
    /// journal cannot name such a path.
    fn hold_secret_names(&self, changes: &mut [Change]) {
        let redactor = self.kernel.journal().redactor();
        for change in changes.iter_mut().filter(|change| redactor.redact(&change.path).hits > 0) {
            change.refused = Some("its name holds a secret: rename it, or copy it by hand".into());
        }
    }

    /// Keeps the denied changes in the layer, so that one path that no merge may carry does not hold up the
    /// rest. When the gate denies everything, this keeps nothing back, and the apply reports the denial.
    async fn hold_denied(&self, scope: &Scope, changes: &mut [Change]) -> Result<(), HostError> {
        let mut denied = Vec::new();
        let mut waiting = Vec::from_iter(std::iter::once(0..changes.len()));
        while let Some(part) = waiting.pop() {
            let some = changes.get(part.clone()).unwrap_or_default();
            let Preview { verdict, reasons, .. } = self.judge(scope, some.iter()).await?;
            match part.len() {
                _ if verdict != Verdict::Denied => {}
                0 | 1 => denied.push((part.start, reasons.join("; "))),
                length => {
                    waiting.extend([part.start..part.start + length / 2, part.start + length / 2..part.end])
                }
            }
        }
        if denied.len() < changes.iter().filter(|change| change.refused.is_none()).count() {
            for (at, why) in denied {
                changes.get_mut(at).into_iter().for_each(|change| change.refused = Some(why.clone()));
            }
        }
        Ok(())
    }

    /// The gate's decision about applying these changes, without those that stay in the layer anyway.
    async fn judge<'a>(
        &self,
        scope: &Scope,
        changes: impl Iterator<Item = &'a Change>,
    ) -> Result<Preview, HostError> {
        let files = changes.filter(|change| change.refused.is_none());
        let files: Vec<MergeFile> = files.map(|change| change.file.clone()).collect();
        if files.is_empty() {
            return Ok(Preview { verdict: Verdict::Allowed, reasons: Vec::new(), red: Vec::new() });
        }
        self.preview_of(scope, Merge::of_files(MergeKind::Apply, None, files)).await
    }

    /// The gate's decision about a merge.
    pub(crate) async fn preview_of(&self, scope: &Scope, merge: Merge) -> Result<Preview, HostError> {
        Ok(self.kernel.preview(scope, Action::Merge(merge)).await?)
    }

    fn merged(
        &self,
        direction: MergeKind,
        asked: &[Tip],
        output: &Output,
        changes: &Changes,
    ) -> Result<Merged, HostError> {
        let Report::Merged { files, tips } = output.report() else { return Err(failure(output)) };
        let (commits, conflicts) = history::after(direction, asked, tips);
        let mut merged = Merged { commits, conflicts, ..Merged::default() };
        // The merge sees only digests. The comparison saw lines, so its reason is better.
        let known = changes
            .changes
            .iter()
            .filter_map(|change| Some((change.path.as_str(), change.conflict.as_ref()?)));
        let known: HashMap<&str, &String> = known.collect();
        for result in files {
            let path = result.path.relative_to(&self.workspace.0).unwrap_or(&result.path.0).to_owned();
            let Some(reason) = result.state.kept() else {
                merged.files.push(path);
                continue;
            };
            let is_conflict = matches!(result.state, MergeState::Conflict { .. });
            let seen = known.get(path.as_str()).filter(|_| is_conflict);
            let reason = seen.map_or(reason, |seen| seen.as_str());
            merged.conflicts.push(format!("{path}: {reason}"));
        }
        Ok(merged)
    }
}

/// Drops the changes that do not lie at or below these paths.
fn narrow(changes: &mut Vec<Change>, only: &[String]) -> Result<(), HostError> {
    let lies = |change: &Change, at: &str| {
        let below = change.path.strip_prefix(at);
        at.is_empty() || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    for at in only {
        if !changes.iter().any(|change| lies(change, at)) {
            return Err(HostError::Merge(format!("this session has no changes at `{at}`")));
        }
    }
    if !only.is_empty() {
        changes.retain(|change| only.iter().any(|at| lies(change, at)));
    }
    Ok(())
}

fn diff_report(output: &Output) -> Result<&DiffReport, HostError> {
    match output.report() {
        Report::Diff(report) => Ok(report),
        _ => Err(failure(output)),
    }
}

fn failure(output: &Output) -> HostError {
    HostError::Merge(match &output.outcome().status {
        Status::Failed { reason } => reason.clone(),
        Status::Cancelled => "cancelled".into(),
        Status::Done | Status::Unknown => "its end was not seen; run it again".into(),
    })
}
