//! A tool of another program: that program runs the tool, and Bailey says whether it may.

use alloc::string::String;
use serde::{Deserialize, Serialize};

/// A use of another program's tool: judged and recorded, never performed here.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolUse {
    /// The tool's name.
    pub name: String,
    /// The tool's effect on the world. `None` when the tool is not declared: Bailey then denies it under any
    /// rules.
    pub effect: Option<ToolEffect>,
    /// Its arguments, a JSON object (RFC 8259) as its caller wrote it.
    pub args: String,
}

/// The effect of a tool on the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    /// It only looks.
    Read,
    /// It changes things of the user's in a way that can be taken back.
    Write,
    /// It leaves the user's domain of trust, or moves money.
    Egress,
    /// It removes things that cannot be brought back.
    Destructive,
    /// The effect is unclear: it fits no allow rule, and every review and deny rule.
    Unclear,
}

impl ToolEffect {
    /// All effects that a rule can name, the mildest first.
    pub const NAMED: [Self; 4] = [Self::Read, Self::Write, Self::Egress, Self::Destructive];

    /// Its name in rules and in the journal.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Egress => "egress",
            Self::Destructive => "destructive",
            Self::Unclear => "unclear",
        }
    }
}
