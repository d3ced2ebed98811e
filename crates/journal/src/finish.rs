//! How an effect ends, inside one transaction: its outcome, its reservation settled, what a session's layer
//! now holds.

use crate::{
    JournalError, budget,
    fact::{Entry, Fact, Payload},
    permit::Receipt,
    totals::{self, Sent},
};
use bailey_protocol::{
    CallReport, Cost, EffectId, ExecReport, Merge, MergeKind, MergeResult, MergeState, Outcome, Report,
    SessionId, Status, Touched, WsPath, number::Seq,
};
use bailey_secrets::Redactor;
use bailey_store::{StoreError, Tx, params};
use std::collections::HashSet;

pub(crate) fn outcome_entry(
    session: SessionId,
    effect: EffectId,
    outcome: &Outcome,
    used: Cost,
) -> Result<Entry, JournalError> {
    let exit = match &outcome.report {
        Report::Exec(report) => report.exit,
        _ => None,
    };
    let fact = Fact::Outcome {
        status: outcome.status.clone(),
        exit,
        enforced: outcome.enforced.clone(),
        duration_ms: u32::try_from(outcome.duration_ms).unwrap_or(u32::MAX),
        used,
    };
    let payload = serde_json::to_value(outcome).map_err(|error| JournalError::Json(error.to_string()))?;
    Ok(Entry::of(session, fact).about(effect).with(Payload::Json(payload)))
}

pub(crate) fn settle(tx: &mut Tx<'_>, receipt: &Receipt, seq: Seq, used: &Cost) -> Result<(), StoreError> {
    tx.execute("UPDATE effect SET outcome = ?2 WHERE id = ?1", params![receipt.effect.to_string(), seq.0])?;
    budget::settle(tx, receipt.effect, used)
}

/// Projects an outcome: the paths that the session's layer came to hold, the paths whose base a merge moved,
/// and a request that did not leave.
pub(crate) fn project(
    tx: &mut Tx<'_>,
    redactor: &Redactor,
    receipt: &Receipt,
    seq: Seq,
    outcome: &Outcome,
) -> Result<(), StoreError> {
    if let (Some(sent), true) = (&receipt.sent, is_unsent(outcome)) {
        totals::unsent(tx, redactor, receipt.session, sent)?;
    }
    let report = &outcome.report;
    let mut remember = |touched: &Touched| remember(tx, redactor, receipt.session, seq, touched);
    match report {
        Report::Exec(ExecReport { touched, .. }) | Report::Called(CallReport { touched, .. }) => {
            touched.iter().try_for_each(remember)
        }
        Report::Changed { files } => {
            files.iter().filter_map(|file| file.touched.as_ref()).try_for_each(&mut remember)
        }
        Report::Merged { files, .. } => match &receipt.merge {
            Some(merge) => rebase(tx, redactor, receipt.session, merge, files),
            None => Ok(()),
        },
        Report::Relayed(relayed) if !relayed.counted => {
            let beyond = Sent { host: relayed.host.clone(), bytes: relayed.out };
            totals::sent(tx, redactor, receipt.session, &beyond)
        }
        _ => Ok(()),
    }
}

/// Whether the network door refused a request before there was a connection. The next card names only the
/// data that left. For a request that was cut off, that is not known.
fn is_unsent(outcome: &Outcome) -> bool {
    let is_failed = matches!(outcome.status, Status::Failed { .. });
    let sent = match &outcome.report {
        Report::Http(report) => report.sent,
        Report::Relayed(report) => report.sent,
        _ => true,
    };
    is_failed && !sent
}

/// After a merge the project holds something else, and that is the base of the next one.
fn rebase(
    tx: &mut Tx<'_>,
    redactor: &Redactor,
    session: SessionId,
    merge: &Merge,
    results: &[MergeResult],
) -> Result<(), StoreError> {
    let session = session.to_string();
    if merge.direction == MergeKind::Discard {
        tx.execute("DELETE FROM touched WHERE session = ?1", params![session])?;
        return Ok(());
    }
    let is_merged = |result: &&MergeResult| matches!(result.state, MergeState::Done | MergeState::Already);
    let merged: HashSet<&WsPath> = results.iter().filter(is_merged).map(|result| &result.path).collect();
    for file in merge.files.iter().filter(|file| merged.contains(&file.path)) {
        let now = if merge.direction == MergeKind::Apply { file.new } else { file.base };
        tx.execute(
            "UPDATE touched SET base = ?3, unsure = 0 WHERE session = ?1 AND path = ?2",
            params![session, redactor.redact(&file.path.0).text, now.map(|state| state.to_string())],
        )?;
    }
    Ok(())
}

/// The first base that a session saw of a path is the one that counts. A path whose name holds a secret is
/// kept without it: no merge carries such a file, so nothing asks for its base.
fn remember(
    tx: &mut Tx<'_>,
    redactor: &Redactor,
    session: SessionId,
    seq: Seq,
    touched: &Touched,
) -> Result<(), StoreError> {
    tx.execute(
        "INSERT OR IGNORE INTO touched (session, path, base, unsure, seq) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![
            session.to_string(),
            redactor.redact(&touched.path.0).text,
            touched.base.map(|base| base.to_string()),
            touched.unsure,
            seq.0
        ],
    )?;
    Ok(())
}
