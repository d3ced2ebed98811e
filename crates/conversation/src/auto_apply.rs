//! The changes of a run are applied without a question where the owner said under which conditions, and all
//! of them hold.

use crate::{Change, Changes, Host, HostError, config::AutoApply, front::Front};
use bailey_kernel::Acted;
use bailey_protocol::{Action, Command, Limits, Report, WsPath};
use std::collections::BTreeMap;

/// The changes, where they may be applied unasked; else why not.
pub(super) async fn tested(
    front: &mut Front<'_>,
    host: &Host,
    auto: &AutoApply,
    limits: &Limits,
    changes: &Changes,
) -> Result<Result<Changes, String>, HostError> {
    if let Err(why) = is_small(auto, changes) {
        return Ok(Err(why));
    }
    let command = Command {
        argv: ["sh", "-c", &auto.test].map(str::to_owned).into(),
        cwd: WsPath(host.workspace().0.clone()),
        env: BTreeMap::new(),
        stdin: None,
        network: false,
        background: false,
        limits: limits.clone(),
    };
    let ended = match front.during(host.act(Action::Exec(command))).await? {
        Acted::Done(output) => match output.report() {
            Report::Exec(report) if report.exit == Some(0) => Ok(()),
            Report::Exec(report) => Err(match (report.exit, &report.limit) {
                (_, Some(limit)) => format!("was ended by its {limit}"),
                (Some(code), None) => format!("ended with {code}"),
                (None, None) => "was ended by a signal".into(),
            }),
            _ => Err("did not run".into()),
        },
        Acted::Denied(reasons) => Err(format!("is denied: {}", reasons.join("; "))),
        Acted::Waiting(_) => Err("is asked about by a rule".into()),
    };
    if let Err(why) = ended {
        return Ok(Err(format!("`{}` {why}", auto.test)));
    }
    front.during(host.quiet()).await;
    // The changes that were looked at are applied, and no others.
    let now = front.during(host.changes()).await?;
    if now.changes != changes.changes || now.branches != changes.branches || now.red != changes.red {
        return Ok(Err(format!("`{}` changed files, so it did not test the final files", auto.test)));
    }
    Ok(Ok(now))
}

fn is_small(auto: &AutoApply, changes: &Changes) -> Result<(), String> {
    if changes.is_denied {
        return Err("the rules deny it".into());
    }
    if let Some(path) = changes.red.first() {
        return Err(format!("an apply of {path} is asked about"));
    }
    if let Some(change) = changes.changes.iter().find(|change| change.refused.is_some()) {
        return Err(format!("{} stays in the session", change.path));
    }
    // The text that its commits hold in between is in no line that is counted.
    if changes.branches.iter().any(|branch| branch.refused.is_none()) {
        return Err("it has commits that nobody has looked at".into());
    }
    let files: Vec<&Change> = changes.changes.iter().filter(|change| !is_directory(change)).collect();
    if files.len() > auto.files {
        return Err(format!("{} files changed, and {} may", files.len(), auto.files));
    }
    let mut lines = 0;
    for change in files {
        lines += lines_of(change)
            .ok_or_else(|| format!("the change of {} has no lines to compare", change.path))?;
    }
    if lines > auto.lines {
        return Err(format!("{lines} lines changed, and {} may", auto.lines));
    }
    Ok(())
}

/// Lines that a change adds and takes away; `None` where it is more than text: another mode, a link, bytes,
/// or something that a person is to know.
fn lines_of(change: &Change) -> Option<usize> {
    if !change.remarks.is_empty() || change.conflict.is_some() {
        return None;
    }
    // The part that is split off begins with the rest of the first hunk's own line.
    let (_, hunks) = change.diff.split_once("\n@@ ")?;
    let is_plain = change.diff.starts_with("--- ");
    let lines = hunks.lines().skip(1).filter(|line| line.starts_with(['+', '-']));
    // To some who read it, a carriage return ends a line, too.
    let count = lines.map(|line| 1 + line.trim_end_matches('\r').matches('\r').count()).sum();
    is_plain.then_some(count)
}

/// Whether a directory comes or goes, and nothing else.
fn is_directory(change: &Change) -> bool {
    ["\nnothing -> directory\n", "\ndirectory -> nothing\n"].iter().any(|end| change.diff.ends_with(end))
}
