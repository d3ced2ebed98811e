//! Names of other programs' tools, and globs over them.

use crate::fit::Fit;
use alloc::{
    format,
    string::{String, ToString},
};
use bailey_protocol::ToolEffect;
use core::fmt;
use serde::{Deserialize, Serialize, Serializer};

/// The longest name of a tool, in bytes.
pub const TOOL_NAME_MAX: usize = 128;

/// A glob over names of tools: `*` is any run of characters, `?` any one. Letters are compared as they are.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ToolGlob(String);

/// Why a glob over names of tools cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no tool's name: write 1 to {TOOL_NAME_MAX} letters, digits and `_-./:@+`, with `*` for any run of them"
)]
pub struct ToolGlobError(String);

/// Whether this can be the name of a tool: ASCII letters, digits and `_-./:@+`, so that no two look alike and
/// none means something else in a rule.
#[must_use]
pub fn is_tool_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:@+".contains(&byte);
    (1..=TOOL_NAME_MAX).contains(&text.len()) && text.bytes().all(plain)
}

impl ToolGlob {
    /// Reads one.
    ///
    /// # Errors
    /// When no tool's name could fit it.
    pub fn new(text: &str) -> Result<Self, ToolGlobError> {
        let plain = text.replace(['*', '?'], "_");
        if is_tool_name(&plain) { Ok(Self(text.to_string())) } else { Err(ToolGlobError(shown(text))) }
    }

    /// That which fits this one name; none where that is no tool's name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        is_tool_name(name).then(|| Self(name.to_string()))
    }

    /// Whether it fits a name.
    pub(crate) fn fit(&self, name: &str) -> bool {
        matches(self.0.as_bytes(), name.as_bytes())
    }

    /// How it fits every name that another glob does.
    pub(crate) fn fit_all(&self, names: &Self) -> Fit {
        if self == names || self.0 == "*" {
            return Fit::Yes;
        }
        if names.0.contains(['*', '?']) { Fit::Maybe } else { self.fit(&names.0).into() }
    }
}

/// Only the last `*` is ever tried again, so the time is at most the product of both lengths.
fn matches(glob: &[u8], name: &[u8]) -> bool {
    let (mut glob, mut name, mut retry) = (glob, name, None);
    loop {
        match (glob.split_first(), name.split_first()) {
            (Some((b'*', rest)), _) => {
                retry = Some((rest, name));
                glob = rest;
            }
            (Some((own, rest)), Some((given, after))) if *own == b'?' || own == given => {
                (glob, name) = (rest, after);
            }
            (None, None) => return true,
            _ => {
                let Some((rest, [_, after @ ..])) = retry else { return false };
                retry = Some((rest, after));
                (glob, name) = (rest, after);
            }
        }
    }
}

/// A name that somebody wrote, if it is one.
#[cfg(feature = "std")]
pub(crate) fn named(text: &str) -> Result<&str, String> {
    if is_tool_name(text) { Ok(text) } else { Err(ToolGlobError(shown(text)).to_string()) }
}

/// What a tool does, as it is written in rules, in examples and by clients.
///
/// # Errors
/// When it is none of them; the text names them.
pub fn tool_effect(text: &str) -> Result<ToolEffect, String> {
    let found = ToolEffect::NAMED.into_iter().find(|effect| effect.name() == text);
    found.ok_or_else(|| {
        format!("unknown effect `{}`: there are `read`, `write`, `egress`, `destructive`", shown(text))
    })
}

fn shown(text: &str) -> String {
    crate::shape::plain(text)
}

impl TryFrom<String> for ToolGlob {
    type Error = ToolGlobError;

    fn try_from(text: String) -> Result<Self, ToolGlobError> {
        Self::new(&text)
    }
}

impl fmt::Display for ToolGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for ToolGlob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
