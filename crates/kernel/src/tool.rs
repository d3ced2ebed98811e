//! The seam to tools: pure functions from a model's arguments to actions, and from outputs to text.

use crate::{Attend, Errand, Output};
use bailey_protocol::{Action, Kind, ToolCall, ToolSpec, WsPath};
use bailey_secrets::Redactor;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a call will read and write, for running calls of one reply in parallel. Paths may be relative to the
/// workspace; `waves` compares them after lexical cleaning.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claims {
    /// Paths it reads (and everything beneath them).
    pub reads: Vec<WsPath>,
    /// Paths it writes (and everything beneath them).
    pub writes: Vec<WsPath>,
    /// It may write anything: an undeclared command.
    pub everything: bool,
    /// Whether what it writes stands in the place of all that is there, whatever that is.
    pub whole: bool,
}

/// What a call comes to.
#[derive(Debug)]
pub enum Plan {
    /// Do this; it is the call's one effect.
    Act(Action),
    /// Read these first (reads only, of files or of the web), then plan again with their outputs appended to
    /// `seen`.
    Need(Vec<Action>),
    /// Give this to a sub-agent; what it comes back with is the call's result.
    Delegate(Errand),
    /// Look at a process in the background, or end it. That is no effect of its own; `conclude` gets how the
    /// process stands.
    Attend(Attend),
    /// Nothing can be done: bad arguments, or what was read does not fit. The text goes to the model.
    Refuse(String),
}

/// What the model is told of a call's effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    /// Whether the tool did what it was asked (a command: exit code 0).
    pub ok: bool,
    /// One line for people.
    pub summary: String,
    /// What the model sees, before the screen.
    pub text: String,
}

/// A tool: three pure functions and a description. It does no I/O of its own.
pub trait Tool: Send + Sync + 'static {
    /// What the model is told of it.
    fn spec(&self) -> ToolSpec;
    /// The kinds of action that its plans may come to: what a sub-agent that is given it must be allowed. A
    /// tool that does not say is given to no sub-agent.
    fn kinds(&self) -> Option<&'static [Kind]> {
        None
    }
    /// What the call will read and write; arguments that cannot be read claim everything.
    fn claims(&self, call: &ToolCall) -> Claims;
    /// What the call comes to, given what was read so far.
    fn plan(&self, call: &ToolCall, seen: &[Output]) -> Plan;
    /// What the model is told of the effect. `seen` is what `plan` asked for before. A text that is shortened
    /// goes through the redactor before that: nobody knows half of a secret.
    fn conclude(&self, call: &ToolCall, seen: &[Output], output: &Output, redactor: &Redactor) -> Conclusion;
}

/// What a call will read and write. A tool that panics claims everything: its plan will say so.
#[must_use]
pub fn claims(tool: &dyn Tool, call: &ToolCall) -> Claims {
    let everything = |_| Claims { everything: true, ..Claims::default() };
    guarded(call, || tool.claims(call)).unwrap_or_else(everything)
}

pub(crate) fn plan(tool: &dyn Tool, call: &ToolCall, seen: &[Output]) -> Plan {
    guarded(call, || tool.plan(call, seen)).unwrap_or_else(Plan::Refuse)
}

pub(crate) fn conclude(
    tool: &dyn Tool,
    call: &ToolCall,
    seen: &[Output],
    output: &Output,
    redactor: &Redactor,
) -> Conclusion {
    let bug = |text: String| Conclusion {
        ok: false,
        summary: text.clone(),
        text: format!("{text}; what it was to do has been done: look before you do it again"),
    };
    guarded(call, || tool.conclude(call, seen, output, redactor)).unwrap_or_else(bug)
}

/// A tool that panics fails its call, not the turn.
fn guarded<T>(call: &ToolCall, code: impl FnOnce() -> T) -> Result<T, String> {
    let bug = |_| format!("the tool `{}` has a bug: it panicked; try another way", call.name);
    catch_unwind(AssertUnwindSafe(code)).map_err(bug)
}
