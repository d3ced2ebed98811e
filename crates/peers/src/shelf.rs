//! The tools of a peer, as it describes them.

use crate::{Effects, frame::FrameError};
use bailey_protocol::{ToolEffect, ToolSpec};
use bailey_tools::PeerTool;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};

/// The most tools of one peer.
pub const TOOLS_MAX: usize = 128;
/// The longest name of a tool with the peer's, in bytes: every provider takes it.
const NAME_BYTES_MAX: usize = 64;
/// The most bytes of a description, and of a schema.
const DESCRIPTION_BYTES_MAX: usize = 8 << 10;
const SCHEMA_BYTES_MAX: usize = 32 << 10;

/// The tools that a peer has now.
#[derive(Debug)]
pub(crate) struct Shelf {
    peer: String,
    effects: Effects,
    tools: Mutex<Arc<[PeerTool]>>,
}

impl Shelf {
    pub(crate) fn new(peer: String, effects: Effects) -> Self {
        Self { peer, effects, tools: Mutex::new(Arc::from([])) }
    }

    pub(crate) fn tools(&self) -> Arc<[PeerTool]> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes another list.
    ///
    /// # Errors
    /// When there are too many.
    pub(crate) fn replace(&self, tools: Vec<PeerTool>) -> Result<(), FrameError> {
        if tools.len() > TOOLS_MAX {
            return Err(FrameError::Other("at most 128 tools"));
        }
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = tools.into();
        Ok(())
    }

    /// Reads one tool: `{"name":"…","description":"…","schema":{…},"effect":"…"}`.
    ///
    /// # Errors
    /// When its name could be taken for another's, or it is too long.
    pub(crate) fn read(&self, tool: &Value) -> Result<PeerTool, FrameError> {
        let text = |name: &str| tool.get(name).and_then(Value::as_str);
        let most = NAME_BYTES_MAX.saturating_sub(self.peer.len() + 1);
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let is_name = |name: &&str| (1..=most).contains(&name.len()) && name.bytes().all(is_of_name);
        let name = text("name").filter(is_name);
        let name = name.ok_or(FrameError::Other(
            "a tool's name: of a-z, A-Z, 0-9, `_` and `-`, with the peer's 64 at most",
        ))?;
        let description = text("description").unwrap_or_default();
        if description.len() > DESCRIPTION_BYTES_MAX {
            return Err(FrameError::Other("a tool's description of at most 8192 bytes"));
        }
        let schema = tool.get("schema").cloned().unwrap_or_else(|| json!({ "type": "object" }));
        let is = |name: &str, fits: fn(&Value) -> bool| schema.get(name).is_none_or(fits);
        let is_object = schema.get("type").and_then(Value::as_str) == Some("object")
            && is("properties", Value::is_object)
            && is("required", Value::is_array);
        if !is_object || schema.to_string().len() > SCHEMA_BYTES_MAX {
            return Err(FrameError::Other("a schema of \"type\":\"object\" of at most 32768 bytes"));
        }
        let hint = match text("effect") {
            None => ToolEffect::Read,
            Some(name) => ToolEffect::NAMED
                .into_iter()
                .find(|effect| effect.name() == name)
                .ok_or(FrameError::Other("an \"effect\" of \"read|write|egress|destructive\""))?,
        };
        let spec = ToolSpec {
            name: format!("{}.{name}", self.peer),
            aliases: Vec::new(),
            summary: description.lines().next().unwrap_or_default().into(),
            description: description.split_once('\n').map_or("", |(_, rest)| rest.trim_start()).into(),
            schema,
        };
        // The peer's word on itself counts only where it is stricter than the owner's.
        let effect = self.effects.of(name).map_or(ToolEffect::Unclear, |owners| owners.max(hint));
        Ok(PeerTool { peer: self.peer.clone(), spec, effect })
    }
}

#[cfg(test)]
mod tests;
