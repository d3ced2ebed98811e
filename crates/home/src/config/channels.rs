//! Chat channels: `[channels.NAME]`.

use super::{ConfigError, document::Document, models};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf};

/// The most channels that there may be.
const CHANNELS_MAX: usize = 16;
const NAME_CHARS_MAX: usize = 32;

/// A channel, as the file declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Channel {
    /// The platform, by the name that the table of kinds has for it. The crate of the channels checks it.
    pub kind: String,
    /// The name of the secret that identifies the channel to the platform.
    pub key_env: String,
    /// The project that its conversations are about.
    pub workspace: PathBuf,
    /// The model of its conversations. `None`: the configured one.
    pub model: Option<String>,
    /// The named agent that speaks there. `None`: the home's own agent.
    pub agent: Option<String>,
    /// The platform's server. `None`: the usual one.
    pub base_url: Option<String>,
}

/// Checks the channels in the file.
pub(super) fn check(document: &Document, channels: &BTreeMap<String, Channel>) -> Result<(), ConfigError> {
    if channels.len() > CHANNELS_MAX {
        let message = format!("there are {} channels, and {CHANNELS_MAX} at most", channels.len());
        return Err(document.mistake("channels", message));
    }
    for (name, channel) in channels {
        let at = |key: &str| format!("channels.{}.{key}", super::document::bare(name));
        let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_fit) {
            let message = format!(
                "`{name}` cannot name a channel: a name has at most {NAME_CHARS_MAX} characters of a-z, \
                 0-9, `-` and `_`"
            );
            return Err(document.mistake(&format!("channels.{}", super::document::bare(name)), message));
        }
        if let Some(url) = &channel.base_url {
            if let Err(why) = models::is_url(url) {
                let message = format!("`{url}` is not the URL of a server: {why}");
                return Err(document.mistake(&at("base_url"), message));
            }
            if !models::is_private(url) {
                let message = "the key and all messages would go there unencrypted; write `https://`";
                return Err(document.mistake(&at("base_url"), message));
            }
        }
        if !channel.workspace.is_absolute() {
            let message = format!(
                "`{}` is not a full path; write the full path of the project",
                channel.workspace.display()
            );
            return Err(document.mistake(&at("workspace"), message));
        }
        if channel.key_env.is_empty() {
            return Err(document.mistake(&at("key_env"), "name the secret, such as `TELEGRAM_BOT_TOKEN`"));
        }
    }
    Ok(())
}
