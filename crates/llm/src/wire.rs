//! The wires, and what they write alike.

use bailey_protocol::ToolSpec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// Anthropic's Messages API, version 2023-06-01.
    Anthropic,
    /// OpenAI's Chat Completions API and the many servers that are compatible with it.
    OpenAiChat,
}

impl Wire {
    /// Its name in the configuration and in recorded messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAiChat => "open-ai-chat",
        }
    }
}

/// A tool's name as both wires allow it: `[A-Za-z0-9_-]{1,64}`, so `fs.read` is sent as `fs_read`.
pub(crate) fn wire_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = name.chars().take(64).map(plain).collect();
    if name.is_empty() { "_".into() } else { name }
}

/// What a model is told of a tool.
pub(crate) fn description(tool: &ToolSpec) -> String {
    match (tool.summary.trim(), tool.description.trim()) {
        (summary, "") => summary.into(),
        ("", description) => description.into(),
        (summary, description) => format!("{summary}\n{description}"),
    }
}

/// Sets a field of an object.
pub(crate) fn set(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Some(object) = object.as_object_mut() {
        object.insert(name.into(), value.into());
    }
}
