//! The merges of a session: what its applies moved, and what an undo can take back.

use crate::{
    Journal, JournalError,
    fact::{Fact, Recorded},
    read::{recorded, stored_row},
};
use bailey_protocol::{
    Action, Effect, EffectId, Kind, Merge, MergeFile, MergeKind, MergeState, Outcome, Report, SessionId,
    Status, Tip, TipResult, WsPath,
};
use bailey_store::params;
use std::collections::{HashMap, HashSet};

/// An apply, with what it moved and is not taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Its effect.
    pub id: EffectId,
    /// The files.
    pub files: Vec<MergeFile>,
    /// The references; as they were asked for where its end was not seen.
    pub tips: Vec<Tip>,
    /// Whether an undo of it was done, and kept that back.
    pub is_tried: bool,
}

impl Journal {
    /// The session's applies of which something is still to be taken back, as [`Journal::last_apply`] tells
    /// of the newest, the oldest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn applies(&self, session: SessionId) -> Result<Vec<Applied>, JournalError> {
        Ok(standing(&self.merges(session).await?))
    }

    /// The session's newest apply that no undo has taken back whole, with what it moved and what is still to
    /// be taken back. An apply that failed touched nothing; one without an outcome may have, and so counts.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn last_apply(&self, session: SessionId) -> Result<Option<Applied>, JournalError> {
        Ok(self.applies(session).await?.pop())
    }

    /// The apply of [`Journal::last_apply`] when its end was not seen and nothing has finished it since:
    /// another apply *of* it, or a discard, which leaves nothing to go on with.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn unfinished_apply(&self, session: SessionId) -> Result<Option<Applied>, JournalError> {
        let merges = self.merges(session).await?;
        let finishes = |begun: &MergeRecord, id| match begun.merge.direction {
            MergeKind::Apply => begun.id == id || begun.merge.of == Some(id),
            MergeKind::Discard => true,
            MergeKind::Undo => begun.merge.of == Some(id),
        };
        Ok(standing(&merges).pop().filter(|applied| {
            let since = merges.iter().skip_while(|begun| begun.id != applied.id);
            !since.filter(|begun| begun.is_done()).any(|begun| finishes(begun, applied.id))
        }))
    }

    /// Every merge that the session began, in order.
    async fn merges(&self, session: SessionId) -> Result<Vec<MergeRecord>, JournalError> {
        // What else the session did is not read: a comparison alone may be as large as all its merges.
        let entries = self.store().read(move |db| {
            let mut statement = db.prepare_cached(
                "SELECT body, bytes FROM entry JOIN effect ON effect.id = entry.effect LEFT JOIN payload USING (seq)
                 WHERE entry.session = ?1 AND archive IS NULL AND kind = 'merge' AND type IN ('intent', 'outcome')
                 ORDER BY seq",
            )?;
            let rows = statement.query_map(params![session.to_string()], stored_row)?;
            rows.map(|row| recorded(row?)).collect::<Result<Vec<Recorded>, _>>()
        });
        let entries = entries.await?;
        let ends: HashMap<EffectId, End> = entries.iter().filter_map(end).collect();
        let mut merges = Vec::new();
        for recorded in &entries {
            let Fact::Intent { kind: Kind::Merge, .. } = recorded.entry.fact else { continue };
            let payload = recorded.payload.as_deref().unwrap_or_default();
            let effect: Effect =
                serde_json::from_slice(payload).map_err(|error| JournalError::Json(error.to_string()))?;
            let Action::Merge(merge) = effect.action else { continue };
            merges.push(MergeRecord { id: effect.id, merge, end: ends.get(&effect.id).cloned() });
        }
        Ok(merges)
    }
}

/// How an effect ended, and what became of each path and reference of a merge.
#[derive(Clone)]
struct End {
    status: Status,
    files: HashMap<WsPath, MergeState>,
    tips: Vec<TipResult>,
}

fn end(recorded: &Recorded) -> Option<(EffectId, End)> {
    let Fact::Outcome { status, .. } = &recorded.entry.fact else { return None };
    let outcome = recorded.payload.as_deref().and_then(|payload| serde_json::from_slice(payload).ok());
    let (files, tips) = match outcome.map(|outcome: Outcome| outcome.report) {
        Some(Report::Merged { files, tips }) => {
            (files.into_iter().map(|file| (file.path, file.state)).collect(), tips)
        }
        _ => (HashMap::new(), Vec::new()),
    };
    Some((recorded.entry.effect?, End { status: status.clone(), files, tips }))
}

/// A merge, and how it ended where that is known.
struct MergeRecord {
    id: EffectId,
    merge: Merge,
    end: Option<End>,
}

impl MergeRecord {
    fn is_done(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.status == Status::Done)
    }

    /// Its files but those of which it told this.
    fn files_but(&self, told: impl Fn(&MergeState) -> bool) -> Vec<MergeFile> {
        let state = |file: &MergeFile| self.end.as_ref().and_then(|end| end.files.get(&file.path));
        self.merge.files.iter().filter(|file| !state(file).is_some_and(&told)).cloned().collect()
    }

    /// Its references, each as it was moved; as it was asked for where that was not seen.
    fn tips(&self) -> Vec<Tip> {
        if !self.is_done() {
            return self.merge.tips.clone();
        }
        let results = self.end.iter().flat_map(|end| &end.tips);
        let moved = self.merge.tips.iter().zip(results).filter_map(|(tip, result)| {
            let name = result.at.clone().filter(|_| is_over(&result.state))?;
            let old = tip.old.clone().filter(|_| name == tip.name);
            Some(Tip { name, old, new: tip.new.clone(), aside: None })
        });
        moved.collect()
    }
}

/// Whether nothing was done there that could be taken back.
fn is_untouched(state: &MergeState) -> bool {
    matches!(state, MergeState::Conflict { .. } | MergeState::Untouched { .. })
}

fn is_over(state: &MergeState) -> bool {
    matches!(state, MergeState::Done | MergeState::Already)
}

fn standing(merges: &[MergeRecord]) -> Vec<Applied> {
    let mut applied: Vec<Applied> = Vec::new();
    for begun in merges {
        let status = begun.end.as_ref().map(|end| &end.status);
        match (begun.merge.direction, begun.merge.of, status) {
            (MergeKind::Apply, None, Some(Status::Failed { .. })) => {}
            (MergeKind::Apply, None, _) => applied.push(Applied {
                id: begun.id,
                files: begun.files_but(is_untouched),
                tips: begun.tips(),
                is_tried: false,
            }),
            // It ended what was cut off, and so knows where the references are.
            (MergeKind::Apply, Some(of), Some(Status::Done)) => {
                applied.iter_mut().filter(|it| it.id == of).for_each(|it| it.tips = begun.tips());
            }
            // What it kept back can be taken back another time.
            (MergeKind::Undo, Some(of), Some(Status::Done)) => {
                let taken: HashSet<WsPath> =
                    begun.files_but(|told| !is_over(told)).into_iter().map(|file| file.path).collect();
                let back: HashSet<String> = begun.tips().into_iter().map(|tip| tip.name).collect();
                for it in applied.iter_mut().filter(|it| it.id == of) {
                    it.files.retain(|file| !taken.contains(&file.path));
                    it.tips.retain(|tip| !back.contains(&tip.name));
                    it.is_tried = true;
                }
            }
            (MergeKind::Apply | MergeKind::Undo | MergeKind::Discard, _, _) => {}
        }
        applied.retain(|it| !it.files.is_empty() || !it.tips.is_empty());
    }
    applied
}
