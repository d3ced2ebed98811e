//! A tool that is not built in: a peer of the session runs it, or a program that only asks whether it may.

use super::{Description, Portrait, Resource};
use crate::Digest;
use alloc::{format, string::String};
use serde::{Deserialize, Serialize};

/// A use of a tool. Without a peer it is judged and recorded, and the program that asked performs it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolUse {
    /// The tool's name; a peer's tool is named `PEER.TOOL`.
    pub name: String,
    /// The tool's effect on the world. `None` when the tool is not declared: Bailey then denies it under any
    /// rules.
    pub effect: Option<ToolEffect>,
    /// Its arguments, a JSON object (RFC 8259) as its caller wrote it.
    pub args: String,
    /// The peer that performs it. `None`: the program that asked performs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The digest of the tool's description and schema as the model was told them ([`ToolSpec::digest`]). The
    /// peer performs nothing for a tool that has changed since.
    ///
    /// [`ToolSpec::digest`]: crate::ToolSpec::digest
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Digest>,
}

impl ToolUse {
    pub(super) fn describe(&self) -> Description<'_> {
        Description {
            resources: [Resource::Tool(self)].into(),
            argument_bytes: self.name.len() + self.args.len(),
            ..Description::default()
        }
    }

    pub(super) fn portrait(&self) -> Portrait<'_> {
        let Self { name, effect, args, peer, .. } = self;
        let title = match peer {
            Some(_) => format!("Use the tool {name}"),
            None => format!("Let another program use its tool {name}"),
        };
        Portrait::new(title)
            .with("tool", &**name)
            .with_some("peer", peer.as_deref())
            .with_some("effect", effect.map(ToolEffect::name))
            .with("arguments", &**args)
    }

    /// A use that Bailey judges and does not perform.
    #[must_use]
    pub fn judged(name: String, effect: Option<ToolEffect>, args: String) -> Self {
        Self { name, effect, args, peer: None, pinned: None }
    }
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

#[cfg(test)]
mod tests {
    use super::{ToolEffect, ToolUse};
    use crate::Action;

    /// What journals held before there were peers reads as it did, and is written as it was.
    #[test]
    fn an_entry_of_before_stays_as_it_is() {
        let old = r#"{"kind":"tool","name":"send","effect":"egress","args":"{}"}"#;
        let action: Action = serde_json::from_str(old).unwrap();
        let tool = ToolUse::judged("send".into(), Some(ToolEffect::Egress), "{}".into());
        assert_eq!(action, Action::Tool(tool));
        assert_eq!(serde_json::to_string(&action).unwrap(), old);
    }
}
