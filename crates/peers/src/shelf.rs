//! The tools of a peer, as it describes them.

use crate::{Effects, frame::FrameError};
use bailey_protocol::{Digest, ToolEffect, ToolSpec};
use bailey_tools::PeerTool;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The most tools of one peer.
pub const TOOLS_MAX: usize = 128;
/// The longest name of a tool with the peer's, in bytes: every provider takes it.
pub const NAME_BYTES_MAX: usize = 64;
/// The most bytes of a description, and of a schema.
const DESCRIPTION_BYTES_MAX: usize = 8 << 10;
const SCHEMA_BYTES_MAX: usize = 32 << 10;

/// A tool as its peer describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    /// Its name, without the peer's: of a-z, A-Z, 0-9, `_` and `-`.
    pub name: String,
    /// Its purpose, for the model.
    #[serde(default)]
    pub description: String,
    /// The JSON schema of its arguments: one object.
    pub schema: Value,
    /// The peer's word on its effect, where it gives one. It counts only where it is stricter than the
    /// owner's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<ToolEffect>,
}

impl Described {
    /// The tool for the model, as one of this peer with this effect.
    ///
    /// # Errors
    /// When its name could be taken for another's, or it is too long.
    fn of(self, peer: &str, effect: ToolEffect) -> Result<PeerTool, &'static str> {
        let Self { name, description, schema, .. } = self;
        let most = NAME_BYTES_MAX.saturating_sub(peer.len() + 1);
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if !(1..=most).contains(&name.len()) || !name.bytes().all(is_of_name) {
            return Err("a tool's name: of a-z, A-Z, 0-9, `_` and `-`, with the peer's 64 at most");
        }
        if description.len() > DESCRIPTION_BYTES_MAX {
            return Err("a tool's description of at most 8192 bytes");
        }
        let is = |name: &str, fits: fn(&Value) -> bool| schema.get(name).is_none_or(fits);
        let is_object = schema.get("type").and_then(Value::as_str) == Some("object")
            && is("properties", Value::is_object)
            && is("required", Value::is_array);
        if !is_object || schema.to_string().len() > SCHEMA_BYTES_MAX {
            return Err("a schema of \"type\":\"object\" of at most 32768 bytes");
        }
        let spec = ToolSpec {
            name: format!("{peer}.{name}"),
            aliases: Vec::new(),
            summary: description.lines().next().unwrap_or_default().into(),
            description: description.split_once('\n').map_or("", |(_, rest)| rest.trim_start()).into(),
            schema,
        };
        Ok(PeerTool { peer: peer.to_owned(), spec, effect })
    }
}

/// A tool that the owner agreed to, as it was then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approved {
    /// The tool.
    pub tool: Described,
    /// Its effect, by the owner's word.
    pub effect: ToolEffect,
}

/// Which of a peer's tools are offered.
#[derive(Debug)]
enum Consent {
    /// All, with these effects.
    Declared(Effects),
    /// Those that are as they were when the owner agreed to them: their digests and effects.
    Approved(BTreeMap<String, (Digest, ToolEffect)>),
}

/// The tools that a peer has now.
#[derive(Debug)]
pub struct Shelf {
    peer: String,
    consent: Consent,
    tools: Mutex<Arc<[PeerTool]>>,
    /// The tools that its program described last, of those that a peer can have.
    seen: Mutex<Vec<Described>>,
}

impl Shelf {
    pub(crate) fn new(peer: String, effects: Effects) -> Self {
        let consent = Consent::Declared(effects);
        Self { peer, consent, tools: Mutex::new(Arc::from([])), seen: Mutex::default() }
    }

    /// A shelf of tools that the owner agreed to. They are there before the program runs.
    pub(crate) fn approved(peer: String, approved: Vec<Approved>) -> Self {
        let tools: Vec<PeerTool> =
            approved.into_iter().filter_map(|it| it.tool.of(&peer, it.effect).ok()).collect();
        let digests = tools.iter().map(|it| (it.spec.name.clone(), (it.spec.digest(), it.effect))).collect();
        let consent = Consent::Approved(digests);
        Self { peer, consent, tools: Mutex::new(tools.into()), seen: Mutex::default() }
    }

    /// The peer's name.
    #[must_use]
    pub fn peer(&self) -> &str {
        &self.peer
    }

    pub(crate) fn tools(&self) -> Arc<[PeerTool]> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a tool is one that a peer can have.
    #[must_use]
    pub fn takes(&self, tool: &Described) -> bool {
        tool.clone().of(&self.peer, ToolEffect::Unclear).is_ok()
    }

    /// Whether a tool of this name, without the peer's, is offered.
    #[must_use]
    pub fn offers(&self, tool: &str) -> bool {
        let is = |now: &PeerTool| now.spec.name.strip_prefix(&*self.peer) == Some(&format!(".{tool}"));
        self.tools().iter().any(is)
    }

    /// The tools that the program described last.
    #[must_use]
    pub fn seen(&self) -> Vec<Described> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes another list.
    ///
    /// # Errors
    /// When there are too many, or one cannot be a peer's tool. The list before holds then.
    pub fn offer(&self, described: Vec<Described>) -> Result<(), &'static str> {
        if described.len() > TOOLS_MAX {
            return Err("at most 128 tools");
        }
        let mut tools = Vec::new();
        for tool in &described {
            let hint = tool.hint.unwrap_or(ToolEffect::Read);
            let of = |effect| tool.clone().of(&self.peer, effect);
            match &self.consent {
                // The peer's word on itself counts only where it is stricter than the owner's.
                Consent::Declared(effects) => {
                    let effect = effects.of(&tool.name).map_or(ToolEffect::Unclear, |own| own.max(hint));
                    tools.push(of(effect)?);
                }
                Consent::Approved(approved) => {
                    let mut tool = of(hint)?;
                    match approved.get(&tool.spec.name) {
                        Some((digest, effect)) if *digest == tool.spec.digest() => {
                            tool.effect = hint.max(*effect);
                            tools.push(tool);
                        }
                        _ => {}
                    }
                }
            }
        }
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = tools.into();
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = described;
        Ok(())
    }

    /// Whether the owner agreed to a tool of this name, which is not offered: it is gone, or has changed.
    pub(crate) fn has_changed(&self, tool: &str) -> bool {
        match &self.consent {
            Consent::Declared(_) => false,
            Consent::Approved(approved) => approved.contains_key(tool),
        }
    }

    /// Reads one tool: `{"name":"…","description":"…","schema":{…},"effect":"…"}`.
    ///
    /// # Errors
    /// When its parts are of other types.
    pub(crate) fn read(tool: &Value) -> Result<Described, FrameError> {
        let text = |name: &str| tool.get(name).and_then(Value::as_str);
        let name = text("name").ok_or(FrameError::Other("a tool's \"name\""))?;
        let hint = match text("effect") {
            None => None,
            Some(name) => Some(
                ToolEffect::NAMED
                    .into_iter()
                    .find(|effect| effect.name() == name)
                    .ok_or(FrameError::Other("an \"effect\" of \"read|write|egress|destructive\""))?,
            ),
        };
        Ok(Described {
            name: name.into(),
            description: text("description").unwrap_or_default().into(),
            schema: tool.get("schema").cloned().unwrap_or_else(|| json!({ "type": "object" })),
            hint,
        })
    }
}

#[cfg(test)]
mod tests;
