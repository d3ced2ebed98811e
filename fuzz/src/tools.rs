//! What models write: arguments of tools, patches, edits.

use bailey_kernel::{Output, Plan, Redactor, Tool};
use bailey_protocol::{
    Action, CallId, Digest, FileKind, FileReport, Limits, Outcome, Report, StatReport, Status, ToolCall,
};
use bailey_tools::{ToolConfig, Toolbox};
use serde_json::json;
use std::sync::{Arc, OnceLock};

/// A file for patches and edits that name no other.
const FILE: &str = "one\ntwo\nthree\nfour\nfive\nsix\n";
/// A plan asks for more at most so many times.
const ROUNDS_MAX: usize = 8;

/// Any text as the arguments of every tool.
pub(crate) fn arguments(text: &str) {
    for spec in toolbox().specs() {
        drive(tool(&spec.name), call(&spec.name, text.into()), FILE);
    }
    assert!(!toolbox().unavailable(text).is_empty());
}

/// A patch, after the file that it is for where a NUL stands between them.
pub(crate) fn patch(text: &str) {
    let (file, patch) = text.split_once('\0').unwrap_or((FILE, text));
    drive(tool("fs.patch"), call("fs.patch", json!({ "patch": patch }).to_string()), file);
}

/// A file, a text of it and another, with NULs between them.
pub(crate) fn edit(text: &str) {
    let mut parts = text.splitn(3, '\0');
    let mut part = || parts.next().unwrap_or_default();
    let (file, old, new) = (part(), part(), part());
    for all in [false, true] {
        let arguments = json!({ "path": "a.txt", "old": old, "new": new, "replace_all": all });
        drive(tool("fs.edit"), call("fs.edit", arguments.to_string()), file);
    }
}

/// Plans until there is an effect, with every file read as `file`; a change starts from what was read.
fn drive(tool: &dyn Tool, call: ToolCall, file: &str) {
    let _ = tool.claims(&call);
    let mut seen = Vec::new();
    for _ in 0..ROUNDS_MAX {
        match tool.plan(&call, &seen) {
            Plan::Refuse(why) => return assert!(!why.is_empty()),
            Plan::Need(reads) => {
                assert!(
                    reads.iter().all(|action| action.kind().is_read()),
                    "a plan asks for more than reads"
                );
                seen.extend(reads.iter().map(|action| answer(action, file)));
            }
            Plan::Attend(_) => return,
            Plan::Delegate(errand) => {
                return assert!(!errand.task.trim().is_empty() && !errand.tools.is_empty());
            }
            Plan::Act(action) => {
                if let Action::Change { files } = &action {
                    let held = Digest::of(file.as_bytes());
                    assert!(files.iter().all(|change| change.base.is_none_or(|base| base == held)));
                }
                let output = Output::failed("not done");
                return assert!(!tool.conclude(&call, &seen, &output, &Redactor::default()).text.is_empty());
            }
        }
    }
    panic!("a plan asks for ever more");
}

fn answer(action: &Action, file: &str) -> Output {
    let report = match action {
        Action::Read { .. } => Report::File(FileReport {
            content: file.into(),
            size: file.len() as u64,
            digest: Some(Digest::of(file.as_bytes())),
            mode: 0o644,
        }),
        // What a patch creates must not be there; other tools ask whether a file is there.
        Action::Stat { path } => {
            let found = path.0.ends_with('t').then_some(FileKind::File);
            Report::Stat(StatReport { found, size: 0 })
        }
        _ => return Output::failed("not here"),
    };
    Output::new(Outcome { status: Status::Done, enforced: None, duration_ms: 0, report })
}

fn call(name: &str, arguments: String) -> ToolCall {
    ToolCall { id: CallId("c1".into()), name: name.into(), arguments }
}

fn tool(name: &str) -> &'static dyn Tool {
    toolbox().find(name).map(Arc::as_ref).expect("a built-in tool")
}

fn toolbox() -> &'static Toolbox {
    static TOOLBOX: OnceLock<Toolbox> = OnceLock::new();
    TOOLBOX.get_or_init(|| {
        Toolbox::built_in(ToolConfig {
            workspace: "/home/ann/project".into(),
            start: "/home/ann/project".into(),
            shell: "/bin/sh".into(),
            limits: Limits::default(),
            max_wall_ms: 3_600_000,
        })
    })
}
