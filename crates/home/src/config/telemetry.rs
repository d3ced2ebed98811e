//! The telemetry that a collector receives, and the daemon's log: `[telemetry]`.

use super::{ConfigError, HAS_USER, document::Document, has_user, models};
use bailey_egress::is_key_header;
use serde::{Deserialize, Serialize};

/// The collector, and the form of the daemon's log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// The URL of an OpenTelemetry collector that takes OTLP over HTTP. Bailey appends `/v1/traces` and
    /// `/v1/metrics`.
    pub otlp: Option<String>,
    /// The name of the secret that the collector asks for.
    pub key_env: Option<String>,
    /// The header whose value is the secret.
    pub(crate) header: Option<String>,
    /// The form in which the daemon prints its log, if it prints one.
    pub logs: Option<Logs>,
}

/// The form of the log's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Logs {
    Json,
}

impl Telemetry {
    /// The header for the secret, if the collector asks for one.
    pub fn header(&self) -> Option<String> {
        self.key_env.as_ref().map(|_| self.header.clone().unwrap_or_else(|| "authorization".into()))
    }
}

/// Checks the settings of the file.
pub(super) fn check(document: &Document, telemetry: &Telemetry) -> Result<(), ConfigError> {
    let Telemetry { otlp, key_env, header, .. } = telemetry;
    let mistake = |key: &str, message: &str| Err(document.mistake(&format!("telemetry.{key}"), message));
    let Some(url) = otlp else {
        return match key_env.is_some() || header.is_some() {
            true => mistake(
                if key_env.is_some() { "key_env" } else { "header" },
                "name the collector as `otlp`, such as `http://127.0.0.1:4318`",
            ),
            false => Ok(()),
        };
    };
    if has_user(url) {
        return mistake("otlp", &format!("the URL {HAS_USER}"));
    }
    if let Err(why) = models::is_url(url) {
        return mistake("otlp", &format!("`{url}` is not the URL of a server: {why}"));
    }
    if !models::is_private(url) {
        return mistake("otlp", "what is done here would go there unencrypted: write `https://`");
    }
    let path = url.trim_end_matches('/');
    if url.contains(['?', '#']) || ["/v1/traces", "/v1/metrics"].iter().any(|end| path.ends_with(end)) {
        return mistake("otlp", "name where `/v1/traces` comes behind, such as `http://127.0.0.1:4318`");
    }
    if key_env.as_ref().is_some_and(String::is_empty) {
        return mistake("key_env", "name the secret, such as `OTLP_KEY`");
    }
    let is_fit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match header {
        Some(_) if key_env.is_none() => mistake("header", "name the secret that is its value as `key_env`"),
        Some(name) if name.is_empty() || !name.bytes().all(is_fit) => mistake(
            "header",
            &format!("`{name}` is not a header; a header has a-z, 0-9 and `-`, such as `x-api-key`"),
        ),
        // A request with such a header twice is not valid, so no telemetry would ever arrive.
        Some(name) if name == "content-type" || !is_key_header(name) => mistake(
            "header",
            &format!("`{name}` has another meaning in a request: a key stands in one such as `x-api-key`"),
        ),
        _ => Ok(()),
    }
}
