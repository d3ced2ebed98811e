//! The shape of a built-in tool: functions of arguments that were already parsed. Parsing, failed effects and
//! arguments nobody knows are handled here, once, for all of them.

use crate::arguments;
use bailey_kernel::{Claims, Conclusion, Output, Plan, Redactor, Tool};
use bailey_protocol::{Action, Kind, Outcome, Report, Status, ToolCall, ToolSpec, WsPath};
use serde::de::DeserializeOwned;

/// A tool with typed arguments.
pub(crate) trait Typed: Send + Sync + 'static {
    /// What the schema describes.
    type Args: DeserializeOwned;
    /// The kinds of action that its plans may come to; none where it is given to no sub-agent.
    const KINDS: Option<&'static [Kind]>;
    /// What the model is told of it.
    fn spec(&self) -> ToolSpec;
    /// What the call will read and write.
    fn claims(&self, args: &Self::Args) -> Claims;
    /// What the call comes to; an error is a refusal, told to the model as it is.
    fn plan(&self, args: &Self::Args, seen: &[Output]) -> Result<Plan, String>;
    /// What the model is told of an effect that was performed or cancelled.
    fn conclude(&self, done: &PerformedCall<'_, Self::Args>) -> Conclusion;
}

/// A performed call.
pub(crate) struct PerformedCall<'a, A> {
    /// The call's arguments.
    pub(crate) args: &'a A,
    /// What was planned, with the names that the model gave; none when what was read is only left in its
    /// redacted form, so that the plan cannot be made again.
    pub(crate) action: Option<&'a Action>,
    /// What the plan had asked for.
    pub(crate) seen: &'a [Output],
    /// How it ended and what it brought.
    pub(crate) outcome: &'a Outcome,
    /// Takes secrets out of a text that is shortened.
    pub(crate) redactor: &'a Redactor,
}

/// A [`Typed`] tool behind the kernel's seam.
pub(crate) struct Parsed<T> {
    tool: T,
    spec: ToolSpec,
}

impl<T: Typed> Parsed<T> {
    /// Puts a tool behind the seam.
    pub(crate) fn new(tool: T) -> Self {
        Self { spec: tool.spec(), tool }
    }

    fn arguments(&self, call: &ToolCall) -> Result<arguments::Parsed<T::Args>, String> {
        arguments::parse(&self.spec, &call.arguments)
    }
}

impl<T: Typed> Tool for Parsed<T> {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn kinds(&self) -> Option<&'static [Kind]> {
        T::KINDS
    }

    fn claims(&self, call: &ToolCall) -> Claims {
        match self.arguments(call) {
            Ok(parsed) => self.tool.claims(&parsed.args),
            Err(_) => Claims { everything: true, ..Claims::default() },
        }
    }

    fn plan(&self, call: &ToolCall, seen: &[Output]) -> Plan {
        let plan = self.arguments(call).and_then(|parsed| self.tool.plan(&parsed.args, seen));
        plan.unwrap_or_else(Plan::Refuse)
    }

    fn conclude(&self, call: &ToolCall, seen: &[Output], output: &Output, redactor: &Redactor) -> Conclusion {
        let outcome = output.outcome();
        match &outcome.status {
            Status::Failed { reason } => return failed(reason),
            Status::Unknown => return failed("nobody saw how it ended; it may have happened"),
            Status::Cancelled if outcome.report == Report::Nothing => return failed("it was cancelled"),
            Status::Done | Status::Cancelled => {}
        }
        let parsed = match self.arguments(call) {
            Ok(parsed) => parsed,
            Err(reason) => return failed(&reason),
        };
        let plan = self.tool.plan(&parsed.args, seen);
        let action = if let Ok(Plan::Act(action)) = &plan { Some(action) } else { None };
        let done = PerformedCall { args: &parsed.args, action, seen, outcome, redactor };
        let mut conclusion = self.tool.conclude(&done);
        if let Some(note) = parsed.note() {
            conclusion.text.push_str(&note);
        }
        conclusion
    }
}

/// An effect that did not happen, and why.
pub(crate) fn failed(reason: &str) -> Conclusion {
    Conclusion { ok: false, summary: first_line(reason), text: format!("not done: {reason}") }
}

/// An executor brought something that does not answer the action.
pub(crate) fn unexpected() -> Conclusion {
    failed("the executor's report does not answer this call; the effect itself may have happened")
}

/// The first line, cut to what fits one line of a screen.
pub(crate) fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(160).collect();
    if short.len() < text.trim_end().len() {
        short.push('…');
    }
    short
}

/// Claims that only read one path.
pub(crate) fn reads(path: impl Into<String>) -> Claims {
    Claims { reads: vec![WsPath(path.into())], ..Claims::default() }
}

/// Claims that write one path.
pub(crate) fn writes(path: impl Into<String>) -> Claims {
    Claims { writes: vec![WsPath(path.into())], ..Claims::default() }
}

/// `1 file`, `2 files`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    let plural = match noun {
        "match" | "branch" => "es",
        "entry" => return if number == 1 { "1 entry".into() } else { format!("{number} entries") },
        _ => "s",
    };
    format!("{number} {noun}{}", if number == 1 { "" } else { plural })
}
