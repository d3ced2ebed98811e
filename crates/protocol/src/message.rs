//! Messages and tool calls.

use crate::{CallId, Digest, Image, Role, SentFile};
use alloc::{
    format,
    string::{String, ToString as _},
    vec::Vec,
};
use serde::{Deserialize, Serialize};

/// A message that arrived over a registered connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Inbound {
    /// The text.
    pub text: String,
    /// The name that the message's source gave it, unique in its session. Bailey accepts only one message
    /// with this name, so a source that does not know whether its message arrived can send it again. `None`
    /// when the source sends no message twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether the speaker only passes on the words of somebody else: data, and no instruction.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_quoted: bool,
    /// Pictures that came with it, together at most [`crate::IMAGES_BYTES_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Files that came with it, together at most [`crate::SENT_BYTES_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<SentFile>,
    /// Paths of pictures that the speaker named: typed, chosen by completion, or pasted alone. A path inside
    /// a longer pasted text is not among them, because somebody else may have written that text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<String>,
    /// The speaker, if not the owner at a terminal. It comes from the connection, never from the content of
    /// a message.
    #[serde(skip)]
    pub by: Option<Speaker>,
}

impl From<&str> for Inbound {
    fn from(text: &str) -> Self {
        text.to_string().into()
    }
}

impl From<String> for Inbound {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// A person at a channel, as the owner let them in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Speaker {
    /// The channel's name in the configuration.
    pub channel: String,
    /// The person's identity at the channel. The channel vouches for it, such as for a number; it is never a
    /// name that people give themselves.
    pub id: String,
    /// The person's name, for people to read.
    pub name: String,
    /// The person's role in this home.
    pub role: Role,
}

impl Speaker {
    /// One line for people.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{} {} ({} {})", self.role.name(), self.name, self.channel, self.id)
    }
}

/// A tool call as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's name for the call.
    pub id: CallId,
    /// The tool's name or alias.
    pub name: String,
    /// The arguments: a JSON object as text, but the model may have written any text.
    pub arguments: String,
}

/// The description of a tool for a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The canonical name, such as `fs.read`.
    pub name: String,
    /// Other names that it answers to.
    pub aliases: alloc::vec::Vec<String>,
    /// One line.
    pub summary: String,
    /// The facts that the model needs to use it well.
    pub description: String,
    /// The JSON Schema (2020-12) of its arguments.
    pub schema: serde_json::Value,
}

/// Namespaces that templates of models put before the names of tools.
const NAMESPACES: [&str; 2] = ["functions", "default_api"];

impl ToolSpec {
    /// The digest of all that a model is told of the tool.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let schema = self.schema.to_string();
        let parts = [&self.name, &self.summary, &self.description, &schema].map(|part| part.as_bytes());
        Digest::of_parts(&parts)
    }

    /// A tool's name in the form that every wire format accepts, `[A-Za-z0-9_-]{1,64}`. A model knows the
    /// tool by this name: `fs_read` for `fs.read`.
    #[must_use]
    pub fn wire_name(name: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let name: String = name.chars().take(64).map(plain).collect();
        if name.is_empty() { "_".into() } else { name }
    }

    /// A tool's name in the form in which names are compared. Models write capitals, and an underscore for a
    /// dot. Some models put their template's namespace before the name, and the template's marks or a number
    /// behind it.
    #[must_use]
    pub fn plain_name(written: &str) -> String {
        let written = written.trim().trim_matches(['"', '`', '\'']).to_ascii_lowercase();
        let mut name = written.as_str();
        while let Some(rest) = without_namespace(name) {
            name = rest;
        }
        let is_cut = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '.');
        name.split(is_cut).next().unwrap_or_default().replace('.', "_")
    }
}

fn without_namespace(name: &str) -> Option<&str> {
    NAMESPACES.iter().find_map(|space| name.strip_prefix(space)?.strip_prefix(['.', ':', '/', '_']))
}
