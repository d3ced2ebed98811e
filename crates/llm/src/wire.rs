//! The wires, and what they write alike.

use bailey_protocol::{Digest, Image, ToolSpec};
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
    /// OpenAI's Responses API.
    OpenAiResponses,
    /// Google's Gemini API, version v1beta.
    Gemini,
    /// Ollama's own API.
    Ollama,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Anthropic, Self::OpenAiChat, Self::OpenAiResponses, Self::Gemini, Self::Ollama];

    /// Its name in recorded messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAiChat => "open-ai-chat",
            Self::OpenAiResponses => "open-ai-responses",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Its name in config.toml, and so where people read of it.
    #[must_use]
    pub fn setting(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic | Self::Gemini | Self::Ollama => self.name(),
        }
    }
}

/// A tool's name as every wire allows it: `[A-Za-z0-9_-]{1,64}`, so `fs.read` is sent as `fs_read`.
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

/// A picture as a URL that holds it (RFC 2397).
pub(crate) fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.kind().media_type(), image.base64())
}

/// An identifier for a call that came without one, made from what is there: the same bytes give the same one, and other
/// replies another.
pub(crate) fn made_id(reply: &str, place: usize, name: &str, arguments: &str) -> String {
    let parts = [reply.as_bytes(), &place.to_be_bytes(), name.as_bytes(), arguments.as_bytes()];
    format!("call_{}", Digest::of_parts(&parts).short())
}

/// A call's arguments as the object that some wires demand. What is no object is kept as text inside one, so that the
/// model sees what it wrote.
pub(crate) fn input(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(object @ Value::Object(_)) => object,
        _ if arguments.trim().is_empty() => serde_json::json!({}),
        _ => serde_json::json!({ "unreadable_arguments": arguments }),
    }
}

/// Sets a field of an object.
pub(crate) fn set(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Some(object) = object.as_object_mut() {
        object.insert(name.into(), value.into());
    }
}

/// The text of a field; empty where there is none.
pub(crate) fn word<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The elements of a field that is a list; none where it is not.
pub(crate) fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// The count in a field.
pub(crate) fn count(value: &Value, name: &str) -> Option<u64> {
    value.get(name).and_then(Value::as_u64)
}
