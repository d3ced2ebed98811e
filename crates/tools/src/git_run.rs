//! `git.run`: git without a shell between.

use crate::{
    aliases, arguments,
    config::ToolConfig,
    exec,
    typed::{PerformedCall, Typed, reads},
};
use bailey_kernel::{Claims, Conclusion, Output, Plan};
use bailey_protocol::{Command, Kind, ToolSpec};
use serde::Deserialize;
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc};

/// Subcommands that only read, when they come first and no option sends their output elsewhere.
const READING: [&str; 4] = ["status", "diff", "log", "show"];

/// Runs git.
pub(crate) struct GitRun(pub(crate) Arc<ToolConfig>);

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(crate) struct Args {
    args: Vec<String>,
    cwd: Option<String>,
    timeout_s: Option<u64>,
}

impl Typed for GitRun {
    type Args = Args;
    const KINDS: Option<&'static [Kind]> = Some(&[Kind::Exec]);

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "git.run".into(),
            aliases: aliases::names("git.run"),
            summary: "Run git.".into(),
            description:
                "As command.run: no network, so no push, pull or clone; no editor, so give messages with \
                          -m."
                .into(),
            schema: json!({
                "type": "object",
                "properties": {
                    "args": {
                        "type": "array", "items": {"type": "string"},
                        "description": "After `git`, such as [\"diff\", \"--stat\"]."
                    },
                    "cwd": {"type": "string", "minLength": 1, "description": "Default: the workspace."},
                    "timeout_s": {"type": "integer", "minimum": 1}
                },
                "required": ["args"]
            }),
        }
    }

    fn claims(&self, args: &Args) -> Claims {
        if only_reads(&args.args) {
            return reads(&self.0.workspace);
        }
        Claims { everything: true, ..Claims::default() }
    }

    fn plan(&self, args: &Args, _seen: &[Output]) -> Result<Plan, String> {
        let cwd =
            args.cwd.as_deref().map_or_else(|| Ok(self.0.start()), |path| arguments::path("cwd", path))?;
        exec::plan(Command {
            argv: std::iter::once("git".to_owned()).chain(args.args.iter().cloned()).collect(),
            cwd,
            env: BTreeMap::new(),
            stdin: None,
            network: false,
            background: false,
            limits: self.0.limits(args.timeout_s)?,
        })
    }

    fn conclude(&self, done: &PerformedCall<'_, Args>) -> Conclusion {
        exec::conclude(done.action, done.outcome, self.0.max_wall_ms)
    }
}

/// `--output=FILE` and `--ext-diff`, which git takes abbreviated too, make a reading subcommand write or run
/// something.
fn only_reads(args: &[String]) -> bool {
    let reading = args.first().is_some_and(|first| READING.contains(&first.as_str()));
    reading && !args.iter().any(|arg| arg.starts_with("--ou") || arg.starts_with("--ext"))
}
