//! `search.glob`: files by name.

use crate::{
    aliases, arguments,
    config::ToolConfig,
    search_grep::beneath,
    typed::{PerformedCall, Typed, count, reads, unexpected},
};
use bailey_kernel::{Claims, Conclusion, Output, Plan};
use bailey_protocol::{Action, Kind, Report, ToolSpec};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// Finds files.
pub(crate) struct SearchGlob(pub(crate) Arc<ToolConfig>);

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(crate) struct Args {
    pattern: String,
    path: Option<String>,
}

impl Typed for SearchGlob {
    type Args = Args;
    const KINDS: Option<&'static [Kind]> = Some(&[Kind::Search]);

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "search.glob".into(),
            aliases: aliases::names("search.glob"),
            summary: "Find files by name.".into(),
            description: "Recursive; passes over files that git ignores. One path a line.".into(),
            schema: json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "gitignore syntax: `*.rs`, `src/**/mod.rs`."},
                    "path": {"type": "string", "minLength": 1, "description": "Where; default: the workspace."}
                },
                "required": ["pattern"]
            }),
        }
    }

    fn claims(&self, args: &Args) -> Claims {
        reads(args.path.as_ref().unwrap_or(&self.0.start))
    }

    fn plan(&self, args: &Args, _seen: &[Output]) -> Result<Plan, String> {
        if args.pattern.is_empty() {
            return Err("`pattern` is empty; `*` matches every file".into());
        }
        let root =
            args.path.as_deref().map_or_else(|| Ok(self.0.start()), |path| arguments::path("path", path))?;
        Ok(Plan::Act(Action::Search { root, pattern: None, glob: Some(args.pattern.clone()) }))
    }

    fn conclude(&self, done: &PerformedCall<'_, Args>) -> Conclusion {
        let Report::Search(report) = &done.outcome.report else { return unexpected() };
        let found = report.found.iter();
        let mut lines: Vec<String> = found.map(|hit| beneath(done.args.path.as_deref(), &hit.path)).collect();
        if lines.is_empty() {
            lines.push("no files".into());
        }
        if report.cut {
            lines.push("(there are more; narrow the pattern or the path)".into());
        }
        Conclusion { ok: true, summary: count(report.found.len(), "file"), text: lines.join("\n") }
    }
}
