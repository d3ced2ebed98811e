//! How a session stands: its turn, its open questions, and whether the project lacks changes of it. All of it
//! is read back from the newest entries, so that a list of sessions costs little.

use crate::{Journal, JournalError, approval::open_questions};
use bailey_protocol::{MergeKind, SessionId, Timestamp};
use bailey_store::{OptionalExtension as _, StoreError, Tx, params};
use serde::Serialize;
use std::collections::HashSet;

/// How a session stands, as far as its entries say it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Whether the last turn has no end yet.
    pub is_open: bool,
    /// How the last turn ended; `None` where there was no turn, or the last one has no end yet.
    pub ended: Option<String>,
    /// Questions that wait for an answer.
    pub questions: usize,
    /// Its changes.
    pub changes: Standing,
}

/// How a session's changes stand, by its comparisons and merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "changes")]
pub enum Standing {
    /// It has no changes.
    None,
    /// The project has them.
    Applied,
    /// The project lacks some.
    Waiting {
        /// How many files and branches.
        files: usize,
    },
    /// It worked since they were compared, so it may have others.
    Uncompared,
}

impl Journal {
    /// How each of these sessions stands, in their order.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn progress(&self, sessions: Vec<SessionId>) -> Result<Vec<Progress>, JournalError> {
        let now = self.clock().now();
        let look = move |tx: &Tx<'_>| sessions.iter().map(|session| progress(tx, *session, now)).collect();
        Ok(self.store().read(look).await?)
    }
}

fn progress(tx: &Tx<'_>, id: SessionId, now: Timestamp) -> Result<Progress, StoreError> {
    let session = &id.to_string();
    let last = tx
        .prepare_cached(
            "SELECT type, json_extract(CAST(body AS TEXT), '$.reason') FROM entry
             WHERE session = ?1 AND type IN ('accepted', 'turn_ended') AND archive IS NULL ORDER BY seq DESC LIMIT 1",
        )?
        .query_row(params![session], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?)))
        .optional()?;
    let is_open = last.as_ref().is_some_and(|(kind, _)| kind == "accepted");
    Ok(Progress {
        is_open,
        ended: last.and_then(|(_, reason)| reason),
        questions: open_questions(tx, id, now)?,
        changes: standing(tx, session)?,
    })
}

/// A finished effect that says something of the session's changes.
struct Deed {
    seq: u64,
    intent: u64,
    kind: String,
    is_done: bool,
}

/// Goes back to the last comparison, and from there forward over the merges.
fn standing(tx: &Tx<'_>, session: &str) -> Result<Standing, StoreError> {
    let mut statement = tx.prepare_cached(
        "SELECT entry.seq, effect.intent, effect.kind, json_extract(CAST(body AS TEXT), '$.status')
         FROM entry JOIN effect ON effect.id = entry.effect
         WHERE entry.session = ?1 AND type = 'outcome' AND archive IS NULL
             AND kind IN ('exec', 'change', 'tool', 'diff', 'merge') ORDER BY entry.seq DESC",
    )?;
    let mut rows = statement.query_map(params![session], |row| {
        let status: Option<String> = row.get(3)?;
        let is_done = status.as_deref() == Some("done");
        Ok(Deed { seq: row.get(0)?, intent: row.get(1)?, kind: row.get(2)?, is_done })
    })?;
    let (mut merges, mut compared) = (Vec::new(), None);
    let mut has_worked = false;
    for deed in rows.by_ref() {
        let deed = deed?;
        match deed.kind.as_str() {
            "diff" if deed.is_done => {
                compared = Some(deed);
                break;
            }
            "diff" => {}
            "merge" => merges.push(deed),
            _ => has_worked |= merges.is_empty(),
        }
    }
    let mut waiting = match &compared {
        Some(deed) => paths(tx, deed.seq, COMPARED)?,
        None => HashSet::new(),
    };
    let mut is_applied = applied_before(tx, session, compared.as_ref().map_or(0, |deed| deed.seq))?;
    let mut applied = HashSet::new();
    for merge in merges.iter().rev().filter(|merge| merge.is_done) {
        let moved = moved(tx, merge)?;
        match direction(tx, merge)? {
            Some(MergeKind::Apply) => {
                waiting.retain(|path| !moved.contains(path));
                applied.extend(moved);
            }
            Some(MergeKind::Undo) => {
                applied.retain(|path| !moved.contains(path));
                is_applied = false;
                waiting.extend(moved);
            }
            Some(MergeKind::Discard) => waiting.clear(),
            None => {}
        }
    }
    Ok(match waiting.len() {
        _ if has_worked => Standing::Uncompared,
        0 if is_applied || !applied.is_empty() => Standing::Applied,
        0 => Standing::None,
        files => Standing::Waiting { files },
    })
}

/// The files and branches of a comparison.
const COMPARED: &str = "
    SELECT json_extract(value, '$.path') FROM payload, json_each(CAST(bytes AS TEXT), '$.report.files') WHERE seq = ?1
    UNION SELECT 'branch ' || json_extract(value, '$.name') FROM payload,
        json_each(CAST(bytes AS TEXT), '$.report.branches') WHERE seq = ?1";

/// The files and branches that a merge moved.
const MOVED: &str = "
    SELECT json_extract(value, '$.path') FROM payload, json_each(CAST(bytes AS TEXT), '$.report.files')
        WHERE seq = ?1 AND json_extract(value, '$.state.state') IN ('done', 'already')
    UNION SELECT 'branch ' || json_extract(value, '$.name') FROM payload,
        json_each(CAST(bytes AS TEXT), '$.report.tips')
        WHERE seq = ?1 AND json_extract(value, '$.state.state') IN ('done', 'already')";

/// Whether the last merge before this entry brought something to the project.
fn applied_before(tx: &Tx<'_>, session: &str, before: u64) -> Result<bool, StoreError> {
    let last = tx
        .prepare_cached(
            "SELECT entry.seq, effect.intent FROM entry JOIN effect ON effect.id = entry.effect
             WHERE entry.session = ?1 AND entry.seq < ?2 AND type = 'outcome' AND archive IS NULL AND kind = 'merge'
                 AND json_extract(CAST(body AS TEXT), '$.status') = 'done' ORDER BY entry.seq DESC LIMIT 1",
        )?
        .query_row(params![session, before], |row| {
            Ok(Deed { seq: row.get(0)?, intent: row.get(1)?, kind: String::new(), is_done: true })
        })
        .optional()?;
    let Some(last) = last else { return Ok(false) };
    Ok(direction(tx, &last)? == Some(MergeKind::Apply) && !moved(tx, &last)?.is_empty())
}

/// The paths that a merge moved.
fn moved(tx: &Tx<'_>, merge: &Deed) -> Result<HashSet<String>, StoreError> {
    paths(tx, merge.seq, MOVED)
}

fn paths(tx: &Tx<'_>, seq: u64, sql: &str) -> Result<HashSet<String>, StoreError> {
    let paths = tx.query_all(sql, params![seq], |row| row.get::<_, Option<String>>(0))?;
    Ok(paths.into_iter().flatten().collect())
}

fn direction(tx: &Tx<'_>, merge: &Deed) -> Result<Option<MergeKind>, StoreError> {
    let direction: Option<Option<String>> = tx
        .prepare_cached(
            "SELECT json_extract(CAST(bytes AS TEXT), '$.action.direction') FROM payload WHERE seq = ?1",
        )?
        .query_row(params![merge.intent], |row| row.get(0))
        .optional()?;
    Ok(match direction.flatten().as_deref() {
        Some("apply") => Some(MergeKind::Apply),
        Some("undo") => Some(MergeKind::Undo),
        Some("discard") => Some(MergeKind::Discard),
        _ => None,
    })
}
