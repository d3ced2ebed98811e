//! Messages and tool calls.

use crate::CallId;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// What somebody said over a registered connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Inbound {
    /// The text.
    pub text: String,
}

/// A tool call as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's name for the call.
    pub id: CallId,
    /// The tool's name or alias.
    pub name: String,
    /// The arguments, a JSON object as text; it may be anything.
    pub arguments: String,
}

/// What a model is told of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The canonical name, such as `fs.read`.
    pub name: String,
    /// Other names that it answers to.
    pub aliases: alloc::vec::Vec<String>,
    /// One line.
    pub summary: String,
    /// What the model needs to know to use it well.
    pub description: String,
    /// The JSON Schema (2020-12) of its arguments.
    pub schema: serde_json::Value,
}
