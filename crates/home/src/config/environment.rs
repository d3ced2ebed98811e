//! The settings that the environment may change: enough to start without any file. It can name a model and a
//! provider of its own, and lower limits. It never lowers a wall: no variable can name a rule, raise a limit,
//! or redirect a provider of the file, because the new address would then get that provider's key.

use super::{
    Channel, Config, ConfigError, Origin, Provider,
    models::{is_url, wire_of},
};
use bailey_llm::Wire;
use bailey_protocol::Role;
use std::path::Path;

/// Every variable of Bailey's own, with its effect. Keys of providers have the names that `key_env` gives
/// them.
pub(crate) const VARIABLES: &[(&str, &str)] = &[
    (
        "BAILEY_HOME",
        "where everything lies; without it $XDG_DATA_HOME/bailey where that exists, else ~/.bailey",
    ),
    (MODEL, "the model, PROVIDER/NAME; beats `model` of config.toml"),
    (BASE_URL, "a provider named `env`: where it is; no variable changes a provider of config.toml"),
    (WIRE, "what the provider `env` speaks; without it `openai`"),
    (API_KEY, "the key of the provider `env`"),
    (SESSION_TOKENS, "lowers `limits.session_tokens`"),
    (TOOL_CALLS, "lowers `limits.tool_calls`"),
    (COMMAND_SECONDS, "lowers `limits.command_seconds`"),
    (KEY_FILE, "the key file of the sealed store, for `secrets.key_file`"),
    (
        TELEGRAM_WORKSPACE,
        "a channel named `telegram`: the full path of its project; its token is TELEGRAM_BOT_TOKEN",
    ),
    (TELEGRAM_OWNERS, "the ids of people who may write there as owners, with commas between them"),
    (TELEGRAM_USERS, "the same for users"),
];

const MODEL: &str = "BAILEY_MODEL";
const BASE_URL: &str = "BAILEY_BASE_URL";
const WIRE: &str = "BAILEY_WIRE";
const API_KEY: &str = "BAILEY_API_KEY";
const SESSION_TOKENS: &str = "BAILEY_SESSION_TOKENS";
const TOOL_CALLS: &str = "BAILEY_TOOL_CALLS";
const COMMAND_SECONDS: &str = "BAILEY_COMMAND_SECONDS";
const KEY_FILE: &str = "BAILEY_KEY_FILE";
const TELEGRAM_WORKSPACE: &str = "BAILEY_TELEGRAM_WORKSPACE";
const TELEGRAM_OWNERS: &str = "BAILEY_TELEGRAM_OWNERS";
const TELEGRAM_USERS: &str = "BAILEY_TELEGRAM_USERS";

/// The channel that the environment names, and the secret that identifies it.
const CHANNEL: &str = "telegram";
const CHANNEL_KEY: &str = "TELEGRAM_BOT_TOKEN";
/// The longest id of a person, in digits.
const ID_DIGITS_MAX: usize = 20;

/// The provider that the environment names.
const PROVIDER: &str = "env";

impl Config {
    /// Takes the settings of the environment. `get` returns a variable's value.
    ///
    /// # Errors
    /// When a value is not valid for its variable.
    pub(super) fn environment(&mut self, get: impl Fn(&str) -> Option<String>) -> Result<(), ConfigError> {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        if let Some(model) = get(MODEL) {
            self.model = Some(model);
            self.origins.note("model", Origin::Variable(MODEL));
        }
        self.environment_provider(&get)?;
        self.environment_channel(&get)?;
        people_of(&get)?;
        if let Some(file) = get(KEY_FILE) {
            self.secrets.key_file.get_or_insert_with(|| {
                self.origins.note("secrets.key_file", Origin::Variable(KEY_FILE));
                file.into()
            });
        }
        for (name, key) in [
            (SESSION_TOKENS, "session_tokens"),
            (TOOL_CALLS, "tool_calls"),
            (COMMAND_SECONDS, "command_seconds"),
        ] {
            let Some(value) = get(name) else { continue };
            let number = value.parse().map_err(|_| wrong(name, &value, "it must be a whole number"))?;
            if key == "tool_calls" && number == 0 {
                return Err(wrong(name, &value, "it must be 1 or more"));
            }
            if self.lower(key, number) {
                self.origins.note(&format!("limits.{key}"), Origin::Variable(name));
            }
        }
        Ok(())
    }

    fn environment_channel(&mut self, get: &impl Fn(&str) -> Option<String>) -> Result<(), ConfigError> {
        // A channel in the user's file stays as it is.
        let Some(workspace) = get(TELEGRAM_WORKSPACE).filter(|_| !self.channels.contains_key(CHANNEL)) else {
            return Ok(());
        };
        if !Path::new(&workspace).is_absolute() {
            return Err(wrong(TELEGRAM_WORKSPACE, &workspace, "write the full path of the project"));
        }
        let channel = Channel {
            kind: CHANNEL.into(),
            key_env: CHANNEL_KEY.into(),
            workspace: workspace.into(),
            model: None,
            agent: None,
            base_url: None,
        };
        self.channels.insert(CHANNEL.into(), channel);
        for field in ["kind", "key_env", "workspace"] {
            self.origins.note(&format!("channels.{CHANNEL}.{field}"), Origin::Variable(TELEGRAM_WORKSPACE));
        }
        Ok(())
    }

    fn environment_provider(&mut self, get: &impl Fn(&str) -> Option<String>) -> Result<(), ConfigError> {
        let Some(base_url) = get(BASE_URL) else {
            return match get(WIRE) {
                Some(wire) => Err(wrong(WIRE, &wire, "it says nothing without BAILEY_BASE_URL")),
                None => Ok(()),
            };
        };
        if super::has_user(&base_url) {
            return Err(wrong(BASE_URL, "…", super::HAS_USER));
        }
        is_url(&base_url).map_err(|why| wrong(BASE_URL, &base_url, why))?;
        let wire = match get(WIRE) {
            Some(wire) => wire_of(&wire).map_err(|why| wrong(WIRE, &wire, why))?,
            None => Wire::OpenAiChat,
        };
        let provider = Provider {
            wire,
            base_url,
            key_env: get(API_KEY).map(|_| API_KEY.into()),
            window_tokens: None,
            first_byte_seconds: None,
            parameters: std::collections::BTreeMap::new(),
        };
        // A provider in the user's file stays as it is, and its key goes to no other address.
        if self.providers.contains_key(PROVIDER) {
            return Ok(());
        }
        self.providers.insert(PROVIDER.into(), provider);
        for (field, name) in [("base_url", BASE_URL), ("wire", WIRE), ("key_env", API_KEY)] {
            if get(name).is_some() {
                self.origins.note(&format!("providers.{PROVIDER}.{field}"), Origin::Variable(name));
            }
        }
        Ok(())
    }
}

/// The people whom the environment lets write on a channel, each with a role. Only the owner's own
/// environment is read, and only for the channel that it can name.
///
/// # Errors
/// When a value is no list of ids.
pub fn people(channel: &str) -> Result<Vec<(String, Role)>, ConfigError> {
    if channel != CHANNEL {
        return Ok(Vec::new());
    }
    people_of(&|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

fn people_of(get: &impl Fn(&str) -> Option<String>) -> Result<Vec<(String, Role)>, ConfigError> {
    let mut people = Vec::new();
    for (name, role) in [(TELEGRAM_OWNERS, Role::Owner), (TELEGRAM_USERS, Role::User)] {
        let Some(value) = get(name) else { continue };
        for id in value.split(',').map(str::trim) {
            let is_id = !id.is_empty() && id.len() <= ID_DIGITS_MAX && id.bytes().all(|b| b.is_ascii_digit());
            if !is_id {
                return Err(wrong(name, &value, "write the numbers of people, with commas between them"));
            }
            if !people.iter().any(|(known, _)| known == id) {
                people.push((id.to_owned(), role));
            }
        }
    }
    Ok(people)
}

/// The names of Bailey's own variables.
pub fn known() -> Vec<&'static str> {
    VARIABLES.iter().map(|(name, _)| *name).collect()
}

/// Variables that look like Bailey's own, but have no meaning to it.
pub fn unknown(names: impl Iterator<Item = String>) -> Vec<String> {
    let known = |name: &str| VARIABLES.iter().any(|(known, _)| *known == name);
    // Only the control program obeys the variables `BAILEY_CONTROL_…`.
    let strange =
        |name: &String| name.starts_with("BAILEY_") && !name.starts_with("BAILEY_CONTROL_") && !known(name);
    names.filter(strange).collect()
}

fn wrong(name: &'static str, value: &str, why: impl Into<String>) -> ConfigError {
    ConfigError::Variable { name, value: value.into(), why: why.into() }
}
