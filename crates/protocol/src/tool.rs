//! A tool of another program: that program runs it, and Bailey says whether it may.

use alloc::string::String;
use serde::{Deserialize, Serialize};

/// A use of another program's tool: judged and recorded, never performed here.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolUse {
    /// The tool's name.
    pub name: String,
    /// What it does to the world; none when nobody declared the tool, which is then denied by whatever rules.
    pub effect: Option<ToolEffect>,
    /// Its arguments, a JSON object (RFC 8259) as its caller wrote it.
    pub args: String,
}

/// What a tool does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    /// It only looks.
    Read,
    /// It changes what is the user's, in a way that can be taken back.
    Write,
    /// It leaves the user's domain of trust, or moves money.
    Egress,
    /// What it takes away cannot be brought back.
    Destructive,
    /// Nobody can tell: it fits no allow, and every review and deny.
    Unclear,
}

impl ToolEffect {
    /// All that a rule can name, from the mildest.
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
