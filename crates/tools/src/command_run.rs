//! `command.run`: any command, as a list of arguments or as a line for a shell.

use crate::{
    aliases, arguments,
    config::ToolConfig,
    exec, process,
    typed::{PerformedCall, Typed},
};
use bailey_kernel::{Claims, Conclusion, Output, Plan};
use bailey_protocol::{Action, Blob, Command, Kind, Report, ToolSpec, WsPath};
use serde::Deserialize;
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc};

/// Runs a command.
pub(crate) struct CommandRun(pub(crate) Arc<ToolConfig>);

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(crate) struct Args {
    command: Option<String>,
    argv: Option<Vec<String>>,
    cwd: Option<String>,
    stdin: Option<String>,
    env: Option<BTreeMap<String, String>>,
    timeout_s: Option<u64>,
    network: Option<bool>,
    background: Option<bool>,
    reads: Option<Vec<String>>,
    writes: Option<Vec<String>>,
}

impl Typed for CommandRun {
    type Args = Args;
    const KINDS: Option<&'static [Kind]> = Some(&[Kind::Exec]);

    fn spec(&self) -> ToolSpec {
        let (most, usual) = (self.0.max_wall_ms / 1000, self.0.limits.wall_ms / 1000);
        ToolSpec {
            name: "command.run".into(),
            aliases: aliases::names("command.run"),
            summary: "Run a command, either `command` or `argv`.".into(),
            description: "Runs inside walls, without a terminal and, unless it asks, without network. It sees the workspace with the \
                          session's changes, and its own changes join them: nothing reaches the project until the \
                          human applies it. Processes that it leaves behind end with it; `background` keeps one."
                .into(),
            schema: json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string", "minLength": 1, "description": "A line for the shell."},
                    "argv": {
                        "type": "array", "items": {"type": "string"}, "minItems": 1,
                        "description": "Program and arguments, without a shell."
                    },
                    "cwd": {"type": "string", "minLength": 1, "description": "Default: the workspace."},
                    "stdin": {"type": "string"},
                    "env": {
                        "type": "object", "additionalProperties": {"type": "string"},
                        "description": "Variables to add."
                    },
                    "timeout_s": {
                        "type": "integer", "minimum": 1, "maximum": most,
                        "description": format!("Default {usual}.")
                    },
                    "background": {
                        "type": "boolean",
                        "description": "For a server or a watcher: the call answers once it runs, and it goes on until \
                                        process.stop, or the end of the session (of your turn, where one task is \
                                        run). Other commands reach its ports on 127.0.0.1. process.log shows what it \
                                        prints."
                    },
                    "network": {"type": "boolean", "description": "Ask for a way to the network; hosts are the human's to allow."},
                    "reads": {
                        "type": "array", "items": {"type": "string"},
                        "description": "All paths it reads, from the workspace; helps calls run in parallel."
                    },
                    "writes": {
                        "type": "array", "items": {"type": "string"},
                        "description": "All paths it writes; may be empty."
                    }
                },
                "required": []
            }),
        }
    }

    fn claims(&self, args: &Args) -> Claims {
        let paths = |paths: &[String]| paths.iter().map(|path| WsPath(path.clone())).collect();
        let Some(writes) = &args.writes else { return Claims { everything: true, ..Claims::default() } };
        let reads = args.reads.as_deref().map_or_else(|| vec![self.0.start()], paths);
        Claims { reads, writes: paths(writes), ..Claims::default() }
    }

    fn plan(&self, args: &Args, _seen: &[Output]) -> Result<Plan, String> {
        let argv = match (&args.command, &args.argv) {
            (Some(line), None) => vec![self.0.shell.clone(), "-c".into(), line.clone()],
            (None, Some(argv)) => argv.clone(),
            (None, None) => {
                return Err("give `command` (a line for the shell) or `argv` (a list); both are empty".into());
            }
            (Some(_), Some(_)) => {
                return Err(
                    "give either `command` (a line for the shell) or `argv` (a list), not both".into()
                );
            }
        };
        let declared = args.reads.iter().chain(&args.writes).flatten();
        declared.map(|path| arguments::path("reads or writes", path)).collect::<Result<Vec<_>, _>>()?;
        let cwd =
            args.cwd.as_deref().map_or_else(|| Ok(self.0.start()), |path| arguments::path("cwd", path))?;
        let background = args.background.unwrap_or(false);
        exec::plan(Command {
            argv,
            cwd,
            env: args.env.clone().unwrap_or_default(),
            stdin: args.stdin.clone().map(|text| Blob(text.into_bytes())),
            network: args.network.unwrap_or(false),
            limits: if background {
                self.0.background_limits(args.timeout_s)?
            } else {
                self.0.limits(args.timeout_s)?
            },
            background,
        })
    }

    fn conclude(&self, done: &PerformedCall<'_, Args>) -> Conclusion {
        match (done.action, &done.outcome.report) {
            (Some(Action::Exec(command)), Report::Process(report)) => {
                process::begun(command, report, done.redactor)
            }
            _ => exec::conclude(done.action, done.outcome, self.0.max_wall_ms),
        }
    }
}
