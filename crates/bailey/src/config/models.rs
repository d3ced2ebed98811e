//! Providers and models: who serves them, which is asked for what, and who may stand in.

use super::Config;
use anyhow::{Context as _, Result};
use bailey_agent::ModelRole;
use bailey_llm::Wire;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How long a server on this machine may load a model before its first byte.
const LOADING_SECONDS: u64 = 600;

/// The window that Ollama is asked to give a model: its own default is a few thousand tokens, too few for any work.
const OLLAMA_WINDOW_TOKENS: u64 = 32_768;

/// What is asked where nobody names a model, by the key that is there.
pub(crate) const BY_KEY: [(&str, &str); 3] = [
    ("ANTHROPIC_API_KEY", "anthropic/claude-sonnet-5-5"),
    ("OPENAI_API_KEY", "openai/gpt-6.1-sol"),
    ("GEMINI_API_KEY", "gemini/gemini-3.5-flash"),
];

/// A provider of models.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Provider {
    /// What it speaks.
    #[serde(deserialize_with = "wire", serialize_with = "write_wire")]
    pub(crate) wire: Wire,
    /// Where it is.
    pub(crate) base_url: String,
    /// The name of the variable that holds its key; none for servers that ask for none.
    pub(crate) key_env: Option<String>,
    /// Tokens that a request and its reply may have together, where the catalogue does not know it or it is another.
    pub(crate) window_tokens: Option<u64>,
    /// Seconds to the first byte, where it needs longer than others.
    pub(crate) first_byte_seconds: Option<u64>,
}

/// Which model is asked for what, besides the default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ModelsByUse {
    /// Summaries of what falls out of the context.
    pub(crate) summary: Option<String>,
    /// Remarks for the memory.
    pub(crate) observer: Option<String>,
    /// Plans.
    pub(crate) planner: Option<String>,
    /// Who may stand in for a model whose provider is down, in order; nobody unless named.
    pub(crate) fallback: Vec<String>,
    /// By the name of a skill.
    pub(crate) skills: BTreeMap<String, String>,
}

impl ModelsByUse {
    /// Each role that has a model of its own.
    pub(crate) fn roles(&self) -> impl Iterator<Item = (ModelRole, &str)> {
        let named = [
            (ModelRole::Summary, &self.summary),
            (ModelRole::Observer, &self.observer),
            (ModelRole::Planner, &self.planner),
        ];
        named.into_iter().filter_map(|(role, model)| Some((role, model.as_deref()?)))
    }

    /// Every model that it names, with the key that names it.
    pub(crate) fn named(&self) -> impl Iterator<Item = (String, &str)> {
        let roles = self.roles().map(|(role, model)| (format!("models.{}", role.name()), model));
        let fallback = self.fallback.iter().map(|model| ("models.fallback".to_owned(), model.as_str()));
        let skills = self.skills.iter();
        let skills = skills.map(|(skill, model)| {
            (format!("models.skills.{}", super::document::bare(skill)), model.as_str())
        });
        roles.chain(fallback).chain(skills)
    }
}

impl Config {
    /// The provider and the model's name in `PROVIDER/MODEL`.
    ///
    /// # Errors
    /// When it is no such name, or the provider is not there.
    pub(crate) fn find<'a>(&self, model: &'a str) -> Result<(&str, &Provider, &'a str)> {
        let known = || self.providers.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let parts = model.split_once('/').filter(|(provider, name)| !provider.is_empty() && !name.is_empty());
        let (provider, name) = parts.with_context(|| {
            format!("`{model}` names no model: write PROVIDER/MODEL; providers: {}", known())
        })?;
        let (provider, found) = self.providers.get_key_value(provider).with_context(|| {
            format!(
                "there is no provider `{provider}`: there are {}; add it to config.toml under [providers.{provider}]",
                known()
            )
        })?;
        Ok((provider, found, name))
    }

    /// The model when nobody named one: that of the first key found.
    ///
    /// # Errors
    /// When there is no key.
    pub(crate) fn default_model(&self, has_key: impl Fn(&str) -> bool) -> Result<String> {
        if let Some(model) = &self.model {
            return Ok(model.clone());
        }
        BY_KEY.into_iter().find(|(key, _)| has_key(key)).map(|(_, model)| model.to_owned()).context(
            "no model is configured: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY (in the environment or in \
             Bailey's own .env), name one with --model PROVIDER/MODEL (such as ollama/qwen3-coder for one of your own \
             machine), or set `model` in config.toml; `bailey models` shows what is there",
        )
    }
}

/// Whether a server can be asked at this URL; else what is wrong with it.
pub(super) fn is_url(url: &str) -> Result<(), &'static str> {
    if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err("it must begin with `https://` or `http://`");
    }
    if !bailey_policy::is_judged(url) {
        return Err("write `https://HOST` or `http://HOST:PORT`, with a port of digits");
    }
    Ok(())
}

/// Whether nobody on the way can read what goes to this URL: it is encrypted, or stays on this machine.
pub(crate) fn is_private(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return true };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // The colons of an address of version 6 stand in brackets.
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    ["127.0.0.1", "localhost", "[::1]"].contains(&host)
}

/// Whether a text is the URL of a server and of nothing on it: a path would say more than is looked at.
pub(super) fn is_place(url: &str) -> Result<(), &'static str> {
    is_url(url)?;
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.contains(['/', '?', '#']) {
        return Err("it names a whole server: write it without a path");
    }
    Ok(())
}

/// The providers that are there without a word of configuration.
pub(super) fn providers() -> BTreeMap<String, Provider> {
    let provider = |wire, base_url: &str, key: Option<&str>| Provider {
        wire,
        base_url: base_url.into(),
        key_env: key.map(Into::into),
        window_tokens: None,
        first_byte_seconds: None,
    };
    let ollama = Provider {
        window_tokens: Some(OLLAMA_WINDOW_TOKENS),
        first_byte_seconds: Some(LOADING_SECONDS),
        ..provider(Wire::Ollama, "http://127.0.0.1:11434", None)
    };
    let gemini = "https://generativelanguage.googleapis.com";
    BTreeMap::from([
        (
            "anthropic".into(),
            provider(Wire::Anthropic, "https://api.anthropic.com", Some("ANTHROPIC_API_KEY")),
        ),
        (
            "openai".into(),
            provider(Wire::OpenAiResponses, "https://api.openai.com/v1", Some("OPENAI_API_KEY")),
        ),
        ("gemini".into(), provider(Wire::Gemini, gemini, Some("GEMINI_API_KEY"))),
        ("ollama".into(), ollama),
    ])
}

/// The wire of this name.
pub(super) fn wire_of(name: &str) -> Result<Wire, String> {
    let found = Wire::ALL.into_iter().find(|wire| wire.setting() == name);
    found.ok_or_else(|| {
        let names = Wire::ALL.map(|wire| format!("`{}`", wire.setting())).join(", ");
        format!("`{name}` is no wire format: use one of {names}")
    })
}

fn wire<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Wire, D::Error> {
    wire_of(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn write_wire<S: serde::Serializer>(wire: &Wire, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(wire.setting())
}
