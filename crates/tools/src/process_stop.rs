//! `process.stop`: ends a process in the background.

use crate::{
    aliases,
    process::{self, LINES},
    typed::{PerformedCall, Typed},
};
use bailey_kernel::{Attend, Claims, Conclusion, Output, Plan};
use bailey_protocol::{Kind, ToolSpec};
use serde::Deserialize;
use serde_json::json;

/// Ends a process.
pub(crate) struct ProcessStop;

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(crate) struct Args {
    process: u32,
}

impl Typed for ProcessStop {
    type Args = Args;
    // It is given to no sub-agent, which starts nothing in the background.
    const KINDS: Option<&'static [Kind]> = None;

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "process.stop".into(),
            aliases: aliases::names("process.stop"),
            summary: "End a process in the background.".into(),
            description: "It gets SIGTERM, and SIGKILL where that does not end it; nothing of it is left."
                .into(),
            schema: json!({
                "type": "object",
                "properties": {"process": {"type": "integer", "minimum": 1, "description": "Its number."}},
                "required": ["process"]
            }),
        }
    }

    fn claims(&self, _: &Args) -> Claims {
        Claims { everything: true, ..Claims::default() }
    }

    fn plan(&self, args: &Args, _: &[Output]) -> Result<Plan, String> {
        Ok(Plan::Attend(Attend { process: args.process, stop: true }))
    }

    fn conclude(&self, done: &PerformedCall<'_, Args>) -> Conclusion {
        process::conclude(done.outcome, LINES.0)
    }
}
