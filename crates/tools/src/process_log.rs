//! `process.log`: what a process in the background printed, and whether it lives.

use crate::{
    aliases,
    process::{self, LINES},
    typed::{PerformedCall, Typed},
};
use bailey_kernel::{Attend, Claims, Conclusion, Output, Plan};
use bailey_protocol::{Kind, ToolSpec};
use serde::Deserialize;
use serde_json::json;

/// Shows a process's log.
pub(crate) struct ProcessLog;

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(crate) struct Args {
    process: u32,
    lines: Option<usize>,
}

impl Typed for ProcessLog {
    type Args = Args;
    // It is given to no sub-agent, which starts nothing in the background.
    const KINDS: Option<&'static [Kind]> = None;

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "process.log".into(),
            aliases: aliases::names("process.log"),
            summary: "Look at a process in the background.".into(),
            description: "Says whether it runs or how it ended, and the end of what it printed.".into(),
            schema: json!({
                "type": "object",
                "properties": {
                    "process": {"type": "integer", "minimum": 1, "description": "Its number."},
                    "lines": {
                        "type": "integer", "minimum": 1, "maximum": LINES.1,
                        "description": format!("Of each stream. Default {}.", LINES.0)
                    }
                },
                "required": ["process"]
            }),
        }
    }

    fn claims(&self, _: &Args) -> Claims {
        // What other calls of the same reply do before, it may tell of.
        Claims { everything: true, ..Claims::default() }
    }

    fn plan(&self, args: &Args, _: &[Output]) -> Result<Plan, String> {
        Ok(Plan::Attend(Attend { process: args.process, stop: false }))
    }

    fn conclude(&self, done: &PerformedCall<'_, Args>) -> Conclusion {
        process::conclude(done.outcome, done.args.lines.unwrap_or(LINES.0).clamp(1, LINES.1))
    }
}
