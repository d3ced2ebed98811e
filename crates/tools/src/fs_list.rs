//! `fs.list`: the entries of one directory.

use crate::{
    aliases, arguments,
    config::ToolConfig,
    typed::{PerformedCall, Typed, count, reads, unexpected},
};
use bailey_kernel::{Claims, Conclusion, Output, Plan};
use bailey_protocol::{Action, FileKind, Kind, ListReport, Listed, Report, ToolSpec, quoted};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// Lists one directory.
pub(crate) struct FsList(pub(crate) Arc<ToolConfig>);

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(crate) struct Args {
    path: Option<String>,
}

impl Typed for FsList {
    type Args = Args;
    const KINDS: Option<&'static [Kind]> = Some(&[Kind::List]);

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "fs.list".into(),
            aliases: aliases::names("fs.list"),
            summary: "List a directory.".into(),
            description:
                "One entry a line: `name/` for a directory, `name@` for a symlink, else name and size. \
                          Not recursive; see search.glob."
                    .into(),
            schema: json!({
                "type": "object",
                "properties": {"path": {"type": "string", "minLength": 1, "description": "Default: the workspace."}},
                "required": []
            }),
        }
    }

    fn claims(&self, args: &Args) -> Claims {
        reads(args.path.as_ref().unwrap_or(&self.0.start))
    }

    fn plan(&self, args: &Args, _seen: &[Output]) -> Result<Plan, String> {
        let path =
            args.path.as_deref().map_or_else(|| Ok(self.0.start()), |path| arguments::path("path", path))?;
        Ok(Plan::Act(Action::List { path }))
    }

    fn conclude(&self, done: &PerformedCall<'_, Args>) -> Conclusion {
        match &done.outcome.report {
            Report::List(list) => show(list),
            _ => unexpected(),
        }
    }
}

fn show(list: &ListReport) -> Conclusion {
    let mut lines: Vec<String> = list.entries.iter().map(line).collect();
    if list.more > 0 {
        lines.push(format!("({} more entries)", list.more));
    }
    if lines.is_empty() {
        lines.push("(empty)".into());
    }
    let total = list.entries.len().saturating_add(usize::try_from(list.more).unwrap_or(usize::MAX));
    Conclusion { ok: true, summary: count(total, "entry"), text: lines.join("\n") }
}

fn line(entry: &Listed) -> String {
    // A name with a line feed is one entry.
    let name = quoted(&entry.name);
    match entry.kind {
        FileKind::File => format!("{name}  {} bytes", entry.size),
        FileKind::Directory => format!("{name}/"),
        FileKind::Symlink => format!("{name}@"),
        FileKind::Other => format!("{name}  (no regular file)"),
    }
}
