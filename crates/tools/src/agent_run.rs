//! `agent.run`: a sub-agent with a task, some of the tools, and a part of what the session may use.

use crate::aliases;
use crate::typed::{PerformedCall, Typed, unexpected};
use bailey_kernel::{Claims, Conclusion, Errand, Output, Plan};
use bailey_protocol::{Kind, ToolSpec, WsPath};
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;

/// The tool's name.
pub(crate) const NAME: &str = "agent.run";
/// Tools that change nothing: sub-agents that have only these run beside each other. Whoever gives work on
/// gives these.
const READERS: [&str; 6] = ["fs.read", "fs.list", "fs.exists", "search.grep", "search.glob", NAME];
/// Effects of a sub-agent, where no number is given, and at most.
const OPERATIONS: (u64, u64) = (50, 1000);
/// Minutes that it may take, where no number is given, and at most.
const MINUTES: (u64, u64) = (10, 60);

/// Starts a sub-agent.
pub(crate) struct AgentRun;

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(crate) struct Args {
    task: String,
    tools: Vec<String>,
    paths: Option<Vec<String>>,
    operations: Option<u64>,
    minutes: Option<u64>,
    tokens: Option<u64>,
}

impl Typed for AgentRun {
    type Args = Args;
    // What a sub-agent gives on is done by the tools that it was given itself.
    const KINDS: Option<&'static [Kind]> = Some(&[]);

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.into(),
            aliases: aliases::names(NAME),
            summary: "Give a task to a sub-agent and get its answer.".into(),
            description: "It knows the task and nothing else of this conversation, has these tools alone, and reads and \
                          changes only these paths; commands it runs see the whole workspace. It asks the human nothing \
                          that you could not, and uses a part of this session's budget."
                .into(),
            schema: json!({
                "type": "object",
                "properties": {
                    "task": {"type": "string", "description": "All that it has to know."},
                    "tools": {"type": "array", "items": {"type": "string"}},
                    "paths": {
                        "type": "array", "items": {"type": "string"},
                        "description": "Files and folders. Default: the workspace."
                    },
                    "operations": {
                        "type": "integer", "minimum": 1, "maximum": OPERATIONS.1,
                        "description": format!("Effects it may have, model calls too. Default {}.", OPERATIONS.0)
                    },
                    "minutes": {
                        "type": "integer", "minimum": 1, "maximum": MINUTES.1,
                        "description": format!("Default {}.", MINUTES.0)
                    },
                    "tokens": {"type": "integer", "minimum": 1}
                },
                "required": ["task", "tools"]
            }),
        }
    }

    fn claims(&self, args: &Args) -> Claims {
        let only_reads = args.tools.iter().all(|tool| READERS.contains(&tool.replace('_', ".").as_str()));
        if !only_reads {
            return Claims { everything: true, ..Claims::default() };
        }
        let paths = args.paths.iter().flatten();
        let paths: Vec<WsPath> = paths.map(|path| WsPath(path.trim_end_matches("/**").into())).collect();
        Claims { reads: if paths.is_empty() { vec![".".into()] } else { paths }, ..Claims::default() }
    }

    fn plan(&self, args: &Args, _: &[Output]) -> Result<Plan, String> {
        if args.task.trim().is_empty() || args.tools.is_empty() {
            return Err("a sub-agent needs a task and at least one tool".into());
        }
        Ok(Plan::Delegate(Errand {
            task: args.task.clone(),
            tools: args.tools.clone(),
            paths: args.paths.clone().unwrap_or_else(|| vec![".".into()]),
            operations: args.operations.unwrap_or(OPERATIONS.0).clamp(1, OPERATIONS.1),
            lasts: Duration::from_secs(60 * args.minutes.unwrap_or(MINUTES.0).clamp(1, MINUTES.1)),
            tokens: args.tokens,
        }))
    }

    fn conclude(&self, _: &PerformedCall<'_, Args>) -> Conclusion {
        // It has no effect of its own.
        unexpected()
    }
}
