//! Processes in the background: what the model is told of one. The text holds nothing that differs from run
//! to run but what the process printed.

use crate::{exec, typed::unexpected};
use bailey_kernel::{Conclusion, Redactor};
use bailey_protocol::{Command, Outcome, ProcessReport, Report, Status};

/// Lines of each stream that are shown where no number is given, and at most.
pub(crate) const LINES: (usize, usize) = (50, 500);
/// The same where nobody asked for them: at an end that is told by itself.
const LINES_OF_END: usize = 20;
const BYTES_OF_END: usize = 4 << 10;
/// Characters of a command that ended.
const COMMAND_CHARS_MAX: usize = 200;

/// What is told of a command that was begun in the background.
pub(crate) fn begun(command: &Command, report: &ProcessReport, redactor: &Redactor) -> Conclusion {
    let conclusion = match report.ended {
        Some(_) => stands(report, LINES_OF_END, BYTES_OF_END),
        None => {
            let number = report.number;
            let text = format!(
                "runs in the background as process {number}: `process.log` shows what it prints, `process.stop` ends it"
            );
            Conclusion { ok: true, summary: format!("runs as process {number}"), text }
        }
    };
    let text = format!("$ {}\n{}", line(command, report, redactor), conclusion.text);
    Conclusion { text, ..conclusion }
}

/// Of one that ended earlier a part says which one it is.
fn line(command: &Command, report: &ProcessReport, redactor: &Redactor) -> String {
    let line = redactor.redact(&command.line()).text.into_owned();
    match line.char_indices().nth(COMMAND_CHARS_MAX) {
        Some((end, _)) if report.ended.is_some() => format!("{}…", line.get(..end).unwrap_or_default()),
        _ => line,
    }
}

/// What is told of one that was looked at or stopped.
pub(crate) fn conclude(outcome: &Outcome, lines: usize) -> Conclusion {
    match &outcome.report {
        Report::Process(report) => stands(report, lines, usize::MAX),
        _ => unexpected(),
    }
}

fn stands(report: &ProcessReport, lines: usize, bytes: usize) -> Conclusion {
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
            text.push(last(&exec::shown(stream), lines, bytes));
        }
    }
    let ok = matches!(ended, None | Some(Status::Cancelled)) || exec.exit == Some(0) && exec.limit.is_none();
    Conclusion { ok, summary, text: text.join("\n") }
}

/// The last lines of a text that has no secrets any more.
fn last(text: &str, lines: usize, bytes: usize) -> String {
    if text.len() > bytes {
        let start = text.ceil_char_boundary(text.len() - bytes);
        return format!("…{}", last(text.get(start..).unwrap_or_default(), lines, bytes));
    }
    let all: Vec<&str> = text.lines().collect();
    match all.len().checked_sub(lines) {
        None | Some(0) => text.to_owned(),
        Some(earlier) => {
            let rest = all.get(earlier..).unwrap_or_default();
            format!("… {earlier} lines before …\n{}", rest.join("\n"))
        }
    }
}
