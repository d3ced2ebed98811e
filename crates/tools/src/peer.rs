//! The tools of peers. The description of each comes from a party that Bailey does not know, and a call is an
//! effect.

use bailey_kernel::{BoxFuture, Claims, Conclusion, Output, Plan, Redactor, Tool};
use bailey_protocol::{Action, CallReport, Outcome, Report, Status, ToolCall, ToolEffect, ToolSpec, ToolUse};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most characters of a result that the model is shown.
const SHOWN_CHARS: usize = 40_000;

/// A source of tools beside the built-in ones. Its tools may change between the steps of a turn.
pub trait ToolSource: Send + Sync + 'static {
    /// The tools that it has now. It returns in bounded time.
    fn tools(&self) -> BoxFuture<'_, Vec<PeerTool>>;
}

/// A tool of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerTool {
    /// The peer's name.
    pub peer: String,
    /// Its description for the model. Its name is `PEER.TOOL`.
    pub spec: ToolSpec,
    /// Its effect on the world. `Unclear`: the human is asked.
    pub effect: ToolEffect,
}

impl Tool for PeerTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    /// A peer may read and write anything.
    fn claims(&self, _: &ToolCall) -> Claims {
        Claims { everything: true, ..Claims::default() }
    }

    fn plan(&self, call: &ToolCall, _: &[Output]) -> Plan {
        let args = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
        match serde_json::from_str::<Value>(args) {
            Ok(Value::Object(_)) => Plan::Act(Action::Tool(ToolUse {
                name: self.spec.name.clone(),
                effect: Some(self.effect),
                args: args.into(),
                peer: Some(self.peer.clone()),
                pinned: Some(self.spec.digest()),
            })),
            Ok(_) => Plan::Refuse("the arguments are no JSON object".into()),
            Err(error) => Plan::Refuse(format!("the arguments are no JSON: {error}")),
        }
    }

    fn conclude(&self, _: &ToolCall, _: &[Output], output: &Output, _: &Redactor) -> Conclusion {
        let Outcome { status, report, .. } = output.outcome();
        let (ok, text) = match (status, report) {
            (_, Report::Called(CallReport { ok, text, .. })) => (*ok, shown(text)),
            (Status::Failed { reason }, _) => (false, format!("not done: {reason}")),
            _ => (false, "the peer gave no result".into()),
        };
        Conclusion { ok, summary: text.lines().next().unwrap_or_default().into(), text }
    }
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        None => text.into(),
        Some((end, _)) => {
            let (shown, left_out) = text.split_at_checked(end).unwrap_or((text, ""));
            format!("{shown}\n({} more characters are left out)", left_out.chars().count())
        }
    }
}
