//! Processes in the background: what the model is told of one. The text holds nothing that differs from run to run but what the
//! process printed.

use crate::{exec, typed::unexpected};
use bailey_kernel::Conclusion;
use bailey_protocol::{Command, Outcome, ProcessReport, Report, Status};

/// Lines of each stream that are shown where no number is given, and at most.
pub(crate) const LINES: (usize, usize) = (50, 500);

/// What is told of a command that was begun in the background.
pub(crate) fn begun(command: &Command, report: &ProcessReport) -> Conclusion {
    let conclusion = match report.ended {
        Some(_) => stands(report, LINES.0),
        None => {
            let number = report.number;
            let text = format!(
                "runs in the background as process {number}: `process.log` shows what it prints, `process.stop` ends it"
            );
            Conclusion { ok: true, summary: format!("runs as process {number}"), text }
        }
    };
    let text = format!("$ {}\n{}", command.line(), conclusion.text);
    Conclusion { text, ..conclusion }
}

/// What is told of one that was looked at or stopped.
pub(crate) fn conclude(outcome: &Outcome, lines: usize) -> Conclusion {
    match &outcome.report {
        Report::Process(report) => stands(report, lines),
        _ => unexpected(),
    }
}

fn stands(report: &ProcessReport, lines: usize) -> Conclusion {
    let ProcessReport { number, ended, exec } = report;
    let how = match (ended, &exec.limit) {
        (None, _) => "runs".to_owned(),
        (Some(Status::Cancelled), _) => "was stopped".into(),
        (Some(Status::Unknown), _) => "has ended; nobody saw how".into(),
        (Some(Status::Failed { reason }), _) => format!("failed: {reason}"),
        (Some(Status::Done), Some(limit)) => format!("was ended by the {limit}"),
        (Some(Status::Done), None) => format!("has ended; {}", exec::how(exec)),
    };
    let summary = format!("process {number} {how}");
    let mut text = vec![summary.clone()];
    for (name, stream) in [("stdout", &exec.stdout), ("stderr", &exec.stderr)] {
        if stream.total > 0 {
            text.push(format!("--- {name} ---"));
            text.push(last(&exec::shown(stream), lines));
        }
    }
    let ok = matches!(ended, None | Some(Status::Cancelled)) || exec.exit == Some(0) && exec.limit.is_none();
    Conclusion { ok, summary, text: text.join("\n") }
}

/// The last lines of a text that has no secrets any more.
fn last(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    match all.len().checked_sub(lines) {
        None | Some(0) => text.to_owned(),
        Some(earlier) => {
            let rest = all.get(earlier..).unwrap_or_default();
            format!("… {earlier} lines before …\n{}", rest.join("\n"))
        }
    }
}
