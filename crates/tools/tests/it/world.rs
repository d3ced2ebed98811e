//! Canned outputs, and short ways to ask a tool.

use bailey_kernel::{Claims, Conclusion, Output, Plan, Redactor};
use bailey_protocol::{
    Action, Blob, CallId, Digest, Enforced, ExecReport, FileKind, FileReport, Limits, Outcome, Report,
    StatReport, Status, Stream, ToolCall,
};
use bailey_tools::{ToolConfig, Toolbox};
use serde_json::Value;

pub(crate) fn toolbox() -> Toolbox {
    Toolbox::built_in(ToolConfig {
        workspace: "/w".into(),
        start: "/w".into(),
        shell: "/bin/sh".into(),
        limits: Limits::default(),
        max_wall_ms: 3_600_000,
    })
}

pub(crate) fn call(name: &str, arguments: impl ToString) -> ToolCall {
    ToolCall { id: CallId("c1".into()), name: name.into(), arguments: arguments.to_string() }
}

pub(crate) fn plan(name: &str, arguments: Value, seen: &[Output]) -> Plan {
    toolbox().find(name).unwrap().plan(&call(name, arguments), seen)
}

/// The action that the call comes to.
pub(crate) fn act(name: &str, arguments: Value, seen: &[Output]) -> Action {
    match plan(name, arguments, seen) {
        Plan::Act(action) => action,
        other => panic!("not an action: {other:?}"),
    }
}

/// The reads that the call needs.
pub(crate) fn need(name: &str, arguments: Value, seen: &[Output]) -> Vec<Action> {
    match plan(name, arguments, seen) {
        Plan::Need(reads) => {
            assert!(reads.iter().all(|action| action.is_read()));
            reads
        }
        other => panic!("not a need: {other:?}"),
    }
}

/// Why the call is refused.
pub(crate) fn refusal(name: &str, arguments: Value, seen: &[Output]) -> String {
    match plan(name, arguments, seen) {
        Plan::Refuse(reason) => reason,
        other => panic!("not refused: {other:?}"),
    }
}

pub(crate) fn claims(name: &str, arguments: Value) -> Claims {
    toolbox().find(name).unwrap().claims(&call(name, arguments))
}

pub(crate) fn conclude(name: &str, arguments: Value, seen: &[Output], output: &Output) -> Conclusion {
    toolbox().find(name).unwrap().conclude(&call(name, arguments), seen, output, &Redactor::default())
}

pub(crate) fn done(report: Report) -> Output {
    Output::new(Outcome { status: Status::Done, enforced: None, duration_ms: 1234, report })
}

pub(crate) fn file(content: impl AsRef<[u8]>) -> Output {
    let content = content.as_ref();
    done(Report::File(FileReport {
        content: Blob(content.to_vec()),
        size: content.len() as u64,
        digest: Some(Digest::of(content)),
        mode: 0o644,
    }))
}

pub(crate) fn stat(found: Option<FileKind>) -> Output {
    done(Report::Stat(StatReport { found, size: 12 }))
}

pub(crate) fn stream(text: &str) -> Stream {
    Stream { head: text.into(), tail: Blob::default(), total: text.len() as u64 }
}

pub(crate) fn exec(report: ExecReport) -> Output {
    done(Report::Exec(report))
}

/// A command behind walls that saw so many packets without a way out.
pub(crate) fn exec_without_routes(report: ExecReport, out_no_routes: u64) -> Output {
    let enforced = Some(Enforced { out_no_routes, ..Enforced::default() });
    Output::new(Outcome { status: Status::Done, enforced, duration_ms: 1, report: Report::Exec(report) })
}

pub(crate) fn with_status(status: Status, report: Report) -> Output {
    Output::new(Outcome { status, enforced: None, duration_ms: 1, report })
}
