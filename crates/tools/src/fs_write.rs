//! `fs.write`: a whole file. What stands there now is looked at first, so that the change names what it
//! replaces.

use crate::{
    aliases, arguments,
    change::{self, NewContent, PathKnowledge},
    typed::{PerformedCall, Typed, writes},
};
use bailey_kernel::{Claims, Conclusion, Output, Plan, meant};
use bailey_protocol::{Kind, ToolSpec};
use serde::Deserialize;
use serde_json::json;

/// Writes one file.
pub(crate) struct FsWrite;

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(crate) struct Args {
    path: String,
    content: String,
}

impl Typed for FsWrite {
    type Args = Args;
    const KINDS: Option<&'static [Kind]> = Some(&[Kind::Stat, Kind::Read, Kind::Change]);

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "fs.write".into(),
            aliases: aliases::names("fs.write"),
            summary: "Create a file or replace its whole content.".into(),
            description:
                "Missing directories are made. Prefer fs.edit for a part of a file. What changed since you last read \
                          it is not written over. Like every change, it stays in the session's own layer until the human applies it."
                    .into(),
            schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Relative to the workspace."},
                    "content": {"type": "string", "description": "The whole new content."}
                },
                "required": ["path", "content"]
            }),
        }
    }

    fn claims(&self, args: &Args) -> Claims {
        Claims { whole: true, ..writes(&args.path) }
    }

    fn plan(&self, args: &Args, seen: &[Output]) -> Result<Plan, String> {
        let path = arguments::path("path", &args.path)?;
        let base = match change::standing(&path, seen)? {
            PathKnowledge::Unknown(look) => return Ok(Plan::Need(vec![look])),
            PathKnowledge::Known(base, _) => base,
        };
        let held = base.map(|base| String::from_utf8_lossy(&base.content.0)).unwrap_or_default();
        let new = Some(meant(&args.content, &held).into_owned().into_bytes());
        change::plan(vec![NewContent { path, base, source: None, new }])
    }

    fn conclude(&self, done: &PerformedCall<'_, Args>) -> Conclusion {
        change::conclude(done)
    }
}
