//! `fs.edit`: exact text for exact text.

use crate::{
    aliases, arguments,
    change::{self, NewContent},
    edit,
    typed::{PerformedCall, Typed, writes},
};
use bailey_kernel::{Claims, Conclusion, Output, Plan};
use bailey_protocol::{Action, Kind, ToolSpec};
use serde::Deserialize;
use serde_json::json;

/// Replaces text in one file.
pub(crate) struct FsEdit;

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(crate) struct Args {
    path: String,
    old: String,
    new: String,
    replace_all: Option<bool>,
}

impl Typed for FsEdit {
    type Args = Args;
    const KINDS: Option<&'static [Kind]> = Some(&[Kind::Read, Kind::Change]);

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "fs.edit".into(),
            aliases: aliases::names("fs.edit"),
            summary: "Replace exact text in a file.".into(),
            description:
                "`old` must occur exactly once, white space included, or set `replace_all`. Copy it from \
                          fs.read and add neighbouring lines until it is unique. CRLF line ends are kept."
                    .into(),
            schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "old": {"type": "string", "description": "Text in the file now."},
                    "new": {"type": "string", "description": "Text to stand in its place."},
                    "replace_all": {"type": "boolean", "description": "Every occurrence; default false."}
                },
                "required": ["path", "old", "new"]
            }),
        }
    }

    fn claims(&self, args: &Args) -> Claims {
        writes(&args.path)
    }

    fn plan(&self, args: &Args, seen: &[Output]) -> Result<Plan, String> {
        let path = arguments::path("path", &args.path)?;
        let Some(read) = seen.first() else { return Ok(Plan::Need(vec![Action::Read { path }])) };
        let base = change::base(&path, read)?;
        let text = change::text(&path, base)?;
        let new = edit::replace(text, &args.old, &args.new, args.replace_all.unwrap_or(false))
            .map_err(|error| format!("cannot edit `{path}`: {error}"))?;
        change::plan(vec![NewContent { path, base: Some(base), source: None, new: Some(new.into_bytes()) }])
    }

    fn conclude(&self, done: &PerformedCall<'_, Args>) -> Conclusion {
        change::conclude(done)
    }
}
