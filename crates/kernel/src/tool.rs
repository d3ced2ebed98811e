//! The seam to tools: pure functions from a model's arguments to actions, and from outputs to text.

use crate::Output;
use bailey_protocol::{Action, ToolCall, ToolSpec, WsPath};

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
}

/// What a call comes to.
#[derive(Debug)]
pub enum Plan {
    /// Do this; it is the call's one effect.
    Act(Action),
    /// Read these first (reads only), then plan again with their outputs appended to `seen`.
    Need(Vec<Action>),
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
    /// What the call will read and write; arguments that cannot be read claim everything.
    fn claims(&self, call: &ToolCall) -> Claims;
    /// What the call comes to, given what was read so far.
    fn plan(&self, call: &ToolCall, seen: &[Output]) -> Plan;
    /// What the model is told of the effect. `seen` is what `plan` asked for before.
    fn conclude(&self, call: &ToolCall, seen: &[Output], output: &Output) -> Conclusion;
}
