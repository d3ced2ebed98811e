//! `fs.exists`: what stands at a path.

use crate::{
    aliases, arguments,
    typed::{PerformedCall, Typed, reads, unexpected},
};
use bailey_kernel::{Claims, Conclusion, Output, Plan};
use bailey_protocol::{Action, FileKind, Kind, Report, ToolSpec};
use serde::Deserialize;
use serde_json::json;

/// Looks at one path.
pub(crate) struct FsExists;

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(crate) struct Args {
    path: String,
}

impl Typed for FsExists {
    type Args = Args;
    const KINDS: Option<&'static [Kind]> = Some(&[Kind::Stat]);

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "fs.exists".into(),
            aliases: aliases::names("fs.exists"),
            summary: "Say whether a path exists and what it is.".into(),
            description: "Answers file with its size, directory, or that nothing is there; of a symlink, what it leads to.".into(),
            schema: json!({
                "type": "object",
                "properties": {"path": {"type": "string"}},
                "required": ["path"]
            }),
        }
    }

    fn claims(&self, args: &Args) -> Claims {
        reads(&args.path)
    }

    fn plan(&self, args: &Args, _seen: &[Output]) -> Result<Plan, String> {
        Ok(Plan::Act(Action::Stat { path: arguments::path("path", &args.path)? }))
    }

    fn conclude(&self, done: &PerformedCall<'_, Args>) -> Conclusion {
        let Report::Stat(stat) = &done.outcome.report else { return unexpected() };
        let what = match stat.found {
            None => "does not exist".into(),
            Some(FileKind::File) => format!("is a file of {} bytes", stat.size),
            Some(FileKind::Directory) => "is a directory".into(),
            Some(FileKind::Symlink) => "is a symbolic link".into(),
            Some(FileKind::Other) => "is no regular file".into(),
        };
        Conclusion { ok: true, text: format!("{} {what}", done.args.path), summary: what }
    }
}
