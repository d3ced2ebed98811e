//! Providers and models: the servers, the model for each use, and the models that may stand in.

use super::Config;
use anyhow::{Context as _, Result};
use bailey_agent::ModelRole;
use bailey_llm::Wire;
use bailey_protocol::exit::Mistyped;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, net::IpAddr};

/// How long a server may take to its first byte: a server on the public Internet, and a server in the own
/// network. The latter may load a model first, and read a long prompt slowly.
const FIRST_BYTE_SECONDS: u64 = 30;
const OWN_FIRST_BYTE_SECONDS: u64 = 600;

/// Parameters that Bailey sets in each request: the conversation, and the form of the answer.
const OWN_PARAMETERS: [&str; 8] =
    ["model", "messages", "contents", "input", "tools", "stream", "system", "instructions"];

/// The window that Bailey asks Ollama to give a model. Ollama's own default is a few thousand tokens, too few
/// for any work.
const OLLAMA_WINDOW_TOKENS: u64 = 32_768;

/// The default models: the first key that is present decides.
pub(crate) const BY_KEY: [(&str, &str); 3] = [
    ("ANTHROPIC_API_KEY", "anthropic/claude-sonnet-5-5"),
    ("OPENAI_API_KEY", "openai/gpt-6.1-sol"),
    ("GEMINI_API_KEY", "gemini/gemini-3.5-flash"),
];

/// The advice for a user who has no model yet.
const NO_MODEL: &str = "no model is configured: `bailey init` on a terminal asks for one; or set \
    ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY (in the environment or in Bailey's own .env), name a \
    model with --model PROVIDER/MODEL (such as ollama/qwen3-coder for a local model), or run `bailey config \
    set model PROVIDER/MODEL`; `bailey models` shows the providers";

/// A provider of models.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// The wire format that it speaks.
    #[serde(deserialize_with = "wire", serialize_with = "write_wire")]
    pub wire: Wire,
    /// The URL of its server.
    pub base_url: String,
    /// The name of the variable that holds its key. `None` for servers that ask for no key.
    pub key_env: Option<String>,
    /// Tokens that a request and its reply may have together. Needed where the catalogue does not know the
    /// window, or knows another one.
    pub window_tokens: Option<u64>,
    /// Seconds to the first byte, for a server that needs longer than others.
    pub first_byte_seconds: Option<u64>,
    /// Parameters of requests: `false` leaves a parameter out, a text names the parameter
    /// in its place, and any other value is sent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, serde_json::Value>,
}

/// The models for particular uses, besides the default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelsByUse {
    /// Writes summaries of the messages that fall out of the context.
    pub(crate) summary: Option<String>,
    /// Writes remarks for the memory.
    pub(crate) observer: Option<String>,
    /// Writes plans.
    pub(crate) planner: Option<String>,
    /// The models that may stand in when a model's provider is down, in order. By default, no model stands
    /// in.
    pub fallback: Vec<String>,
    /// The models of skills, by the skill's name.
    pub skills: BTreeMap<String, String>,
}

impl ModelsByUse {
    /// Each role that has a model of its own.
    pub fn roles(&self) -> impl Iterator<Item = (ModelRole, &str)> {
        let named = [
            (ModelRole::Summary, &self.summary),
            (ModelRole::Observer, &self.observer),
            (ModelRole::Planner, &self.planner),
        ];
        named.into_iter().filter_map(|(role, model)| Some((role, model.as_deref()?)))
    }

    /// Every model that these settings name, with the key that names it.
    pub fn named(&self) -> impl Iterator<Item = (String, &str)> {
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
    /// When the text is no such name, or the provider does not exist.
    pub fn find<'a>(&self, model: &'a str) -> Result<(&str, &Provider, &'a str)> {
        let known = || self.providers.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let parts = model.split_once('/').filter(|(provider, name)| !provider.is_empty() && !name.is_empty());
        let (provider, name) = parts.with_context(|| {
            format!("`{model}` is not a model; write PROVIDER/MODEL, with one of the providers {}", known())
        })?;
        let (provider, found) = self.providers.get_key_value(provider).with_context(|| {
            format!(
                "there is no provider `{provider}`; the providers are {}; add yours to config.toml under \
                 [providers.{provider}]",
                known()
            )
        })?;
        Ok((provider, found, name))
    }

    /// The configured model, or else the model of the first key found.
    ///
    /// # Errors
    /// When no model is configured and there is no key.
    pub fn default_model(&self, has_key: impl Fn(&str) -> bool) -> Result<String> {
        if let Some(model) = &self.model {
            return Ok(model.clone());
        }
        let found = BY_KEY.into_iter().find(|(key, _)| has_key(key)).map(|(_, model)| model.to_owned());
        found.ok_or_else(|| Mistyped(NO_MODEL.into()).into())
    }
}

/// Checks that Bailey can send requests to a server at this URL. The error says what is wrong with the URL.
pub(super) fn is_url(url: &str) -> Result<(), &'static str> {
    if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err("it must begin with `https://` or `http://`");
    }
    if !bailey_policy::is_judged(url) {
        return Err("write `https://HOST` or `http://HOST:PORT`, with a port of digits");
    }
    Ok(())
}

/// The first parameter that a provider's table sets although Bailey sets it itself.
pub(super) fn taken_parameter(provider: &Provider) -> Option<&str> {
    provider.parameters.keys().map(String::as_str).find(|name| OWN_PARAMETERS.contains(name))
}

/// The default seconds that a server at this URL may take to its first byte.
pub fn first_byte_seconds(url: &str) -> u64 {
    if is_of_the_own_network(url) { OWN_FIRST_BYTE_SECONDS } else { FIRST_BYTE_SECONDS }
}

/// Whether a server is on this machine or in its own network, by its name or address.
fn is_of_the_own_network(url: &str) -> bool {
    let Some(host) = host(url) else { return false };
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(IpAddr::V4(v4)) => {
            // Private networks that run over other networks have their addresses in 100.64.0.0/10 (RFC 6598).
            let is_shared = matches!(v4.octets(), [100, 64..=127, ..]);
            v4.is_loopback() || v4.is_private() || v4.is_link_local() || is_shared
        }
        Ok(IpAddr::V6(v6)) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
        Err(_) => {
            let names =
                [".local", ".localhost", ".lan", ".home", ".internal", ".intranet", ".home.arpa", ".ts.net"];
            !host.contains('.') || names.iter().any(|name| host.ends_with(name))
        }
    }
}

/// The host of a URL, in lower case.
fn host(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // The colons of an IPv6 address stand in brackets.
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    Some(host.to_ascii_lowercase())
}

/// Whether requests to this URL are safe from readers on the way: they are encrypted, or stay on this
/// machine.
pub fn is_private(url: &str) -> bool {
    let is_plain = url.starts_with("http://");
    !is_plain || host(url).is_some_and(|host| ["127.0.0.1", "localhost", "[::1]"].contains(&host.as_str()))
}

/// Checks that a text is the URL of a server without a path. A path would promise more than Bailey checks.
pub(super) fn is_place(url: &str) -> Result<(), &'static str> {
    is_url(url)?;
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.contains(['/', '?', '#']) {
        return Err("it names a whole server: write it without a path");
    }
    Ok(())
}

/// The providers that exist without any configuration.
pub(super) fn providers() -> BTreeMap<String, Provider> {
    let provider = |wire, base_url: &str, key: Option<&str>| Provider {
        wire,
        base_url: base_url.into(),
        key_env: key.map(Into::into),
        window_tokens: None,
        first_byte_seconds: None,
        parameters: BTreeMap::new(),
    };
    let ollama = Provider {
        window_tokens: Some(OLLAMA_WINDOW_TOKENS),
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
        format!("`{name}` is not a wire format; use one of {names}")
    })
}

fn wire<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Wire, D::Error> {
    wire_of(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn write_wire<S: serde::Serializer>(wire: &Wire, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(wire.setting())
}

#[cfg(test)]
mod tests {
    use super::first_byte_seconds;

    #[test]
    fn a_server_of_the_own_network_may_take_its_time() {
        for own in [
            "http://127.0.0.1:8080/v1",
            "http://localhost:1234",
            "http://[::1]:1",
            "http://10.1.2.3/v1",
            "http://192.168.1.5:11434",
            "http://172.20.0.2",
            "http://100.101.102.103:8000",
            "http://gpu-box:8000/v1",
            "https://llm.lan",
            "http://[fd00::1]:8080/v1",
            "http://GPU.local",
        ] {
            assert_eq!(first_byte_seconds(own), 600, "{own}");
        }
        for world in
            ["https://api.openai.com/v1", "https://8.8.8.8", "http://172.32.0.1", "https://local.example.com"]
        {
            assert_eq!(first_byte_seconds(world), 30, "{world}");
        }
    }
}
