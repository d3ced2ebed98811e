//! `search.grep`: lines by content.

use crate::{
    aliases, arguments,
    config::ToolConfig,
    typed::{PerformedCall, Typed, count, reads, unexpected},
};
use bailey_kernel::{Claims, Conclusion, Output, Plan, show_spaces};
use bailey_protocol::{Action, Kind, Report, ToolSpec};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// Finds lines.
pub(crate) struct SearchGrep(pub(crate) Arc<ToolConfig>);

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(crate) struct Args {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    ignore_case: Option<bool>,
}

impl Typed for SearchGrep {
    type Args = Args;
    const KINDS: Option<&'static [Kind]> = Some(&[Kind::Search]);

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "search.grep".into(),
            aliases: aliases::names("search.grep"),
            summary: "Find lines that match a regular expression.".into(),
            description:
                "Recursive; passes over files that git ignores. Answers `path:line: text`, at most 1000 \
                          hits."
                    .into(),
            schema: json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "Rust regex syntax, for one line."},
                    "path": {"type": "string", "minLength": 1, "description": "Where; default: the workspace."},
                    "glob": {"type": "string", "minLength": 1, "description": "Only these files, such as `*.rs`."},
                    "ignore_case": {"type": "boolean"}
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
            return Err("`pattern` is empty; it would match every line".into());
        }
        let root =
            args.path.as_deref().map_or_else(|| Ok(self.0.start()), |path| arguments::path("path", path))?;
        let case = if args.ignore_case == Some(true) { "(?i)" } else { "" };
        let pattern = Some(format!("{case}{}", args.pattern));
        Ok(Plan::Act(Action::Search { root, pattern, glob: args.glob.clone() }))
    }

    fn conclude(&self, done: &PerformedCall<'_, Args>) -> Conclusion {
        let Report::Search(report) = &done.outcome.report else { return unexpected() };
        let name = |path: &str| beneath(done.args.path.as_deref(), path);
        let hits = report.found.iter();
        let mut lines: Vec<String> =
            hits.map(|hit| format!("{}:{}: {}", name(&hit.path), hit.line, show_spaces(&hit.text))).collect();
        if lines.is_empty() {
            lines.push("no matches".into());
        }
        if !report.partly.is_empty() {
            let files: Vec<String> = report.partly.iter().map(|path| name(path)).collect();
            lines.push(format!(
                "(not searched to the end, for they hold more than 16 MiB or a line of more than 4: {}; use command.run)",
                files.join(", ")
            ));
        }
        if report.cut {
            lines.push("(there is more; narrow the pattern, the path or the glob)".into());
        }
        Conclusion { ok: true, summary: count(report.found.len(), "match"), text: lines.join("\n") }
    }
}

/// A path that a search found, as the model can name it again.
pub(crate) fn beneath(root: Option<&str>, path: &str) -> String {
    match root.map(|root| root.trim_end_matches('/')) {
        None | Some("." | "") => path.into(),
        Some(root) if path.is_empty() => root.into(),
        Some(root) => format!("{root}/{path}"),
    }
}
