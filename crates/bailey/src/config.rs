//! The configuration: defaults, then the human's `config.toml`, then a closed list of names from the project, then the
//! environment and flags. Only the human's own file names endpoints, paths and headers.

use crate::project;
use anyhow::{Context as _, Result, anyhow, bail};
use bailey_llm::Wire;
use bailey_protocol::Limits;
use serde::Deserialize;
use std::{collections::BTreeMap, fs, path::Path};

/// The most that a configuration file may hold, in bytes.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// The configuration in force.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// `provider/model`; none: chosen by the keys that are there.
    pub(crate) model: Option<String>,
    /// By name.
    pub(crate) providers: BTreeMap<String, Provider>,
    /// Tokens of one session.
    pub(crate) session_tokens: u64,
    /// Tool calls of one turn.
    pub(crate) tool_calls: usize,
    /// Tokens of one reply.
    pub(crate) reply_tokens: u32,
    /// Of one command.
    pub(crate) command: Limits,
}

/// A provider of models.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Provider {
    /// What it speaks: `anthropic` or `openai`.
    #[serde(deserialize_with = "wire")]
    pub(crate) wire: Wire,
    /// Where it is.
    pub(crate) base_url: String,
    /// The name of the variable that holds its key; none for servers that ask for none.
    pub(crate) key_env: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    model: Option<String>,
    providers: BTreeMap<String, Provider>,
    limits: FileLimits,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileLimits {
    session_tokens: Option<u64>,
    tool_calls: Option<usize>,
    reply_tokens: Option<u32>,
    command_seconds: Option<u64>,
    command_memory_mib: Option<u64>,
    command_disk_mib: Option<u64>,
    command_processes: Option<u32>,
}

fn wire<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Wire, D::Error> {
    let name = String::deserialize(deserializer)?;
    match name.as_str() {
        "anthropic" => Ok(Wire::Anthropic),
        "openai" => Ok(Wire::OpenAiChat),
        _ => {
            Err(serde::de::Error::custom(format!("`{name}` is no wire format: use `anthropic` or `openai`")))
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        let provider = |wire, base_url: &str, key: Option<&str>| Provider {
            wire,
            base_url: base_url.into(),
            key_env: key.map(Into::into),
        };
        let providers = BTreeMap::from([
            (
                "anthropic".into(),
                provider(Wire::Anthropic, "https://api.anthropic.com", Some("ANTHROPIC_API_KEY")),
            ),
            (
                "openai".into(),
                provider(Wire::OpenAiChat, "https://api.openai.com/v1", Some("OPENAI_API_KEY")),
            ),
            ("ollama".into(), provider(Wire::OpenAiChat, "http://127.0.0.1:11434/v1", None)),
        ]);
        Self {
            model: None,
            providers,
            session_tokens: 4_000_000,
            tool_calls: 200,
            reply_tokens: 16_384,
            command: Limits::default(),
        }
    }
}

impl Config {
    /// Reads the human's file, where there is one.
    pub(crate) fn load(path: &Path) -> Result<Self> {
        let mut config = Self::default();
        if let Some(text) = read(path)? {
            let file: File = parse(path, &text)?;
            config.model = file.model;
            config.providers.extend(file.providers);
            config.limit(&file.limits);
        }
        Ok(config)
    }

    /// Narrows by the project's file: only names of a closed list, limits only downwards.
    pub(crate) fn narrow(&mut self, workspace: &Path) -> Result<()> {
        let path = workspace.join(project::SETTINGS);
        let Some(text) = project::settings(workspace)? else { return Ok(()) };
        let table: toml::Table = parse(&path, &text)?;
        for (name, value) in &table {
            match (name.as_str(), value) {
                ("model", toml::Value::String(model)) => self.project_model(&path, model)?,
                ("limits", toml::Value::Table(limits)) => self.narrow_limits(&path, limits)?,
                ("model" | "limits", _) => bail!("{}: `{name}` is of the wrong type", path.display()),
                (name, _) => bail!(
                    "{}: `{name}` may not be set by a project: only `model` and `limits` may; endpoints, commands, \
                     paths, headers, variables and trust are yours alone, in your own config.toml",
                    path.display()
                ),
            }
        }
        Ok(())
    }

    /// A project may choose among the models of providers that the human configured.
    fn project_model(&mut self, path: &Path, model: &str) -> Result<()> {
        let provider = model.split_once('/').map(|(provider, _)| provider);
        if !provider.is_some_and(|provider| self.providers.contains_key(provider)) {
            bail!(
                "{}: `model` is `{model}`, but a project can only name PROVIDER/MODEL of a provider that you configured",
                path.display()
            );
        }
        self.model.get_or_insert_with(|| model.to_owned());
        Ok(())
    }

    fn narrow_limits(&mut self, path: &Path, limits: &toml::Table) -> Result<()> {
        for (name, value) in limits {
            let value = value.as_integer().and_then(|value| u64::try_from(value).ok());
            let value =
                value.ok_or_else(|| anyhow!("{}: `limits.{name}` must be a whole number", path.display()))?;
            match name.as_str() {
                "session_tokens" => self.session_tokens = self.session_tokens.min(value),
                "tool_calls" => self.tool_calls = self.tool_calls.min(usize::try_from(value)?),
                "command_seconds" => {
                    self.command.wall_ms = self.command.wall_ms.min(value.saturating_mul(1000));
                }
                _ => bail!(
                    "{}: `limits.{name}` may not be set by a project: only session_tokens, tool_calls and \
                     command_seconds may, and only downwards",
                    path.display()
                ),
            }
        }
        Ok(())
    }

    fn limit(&mut self, limits: &FileLimits) {
        let set = |field: &mut u64, value: Option<u64>| *field = value.unwrap_or(*field);
        set(&mut self.session_tokens, limits.session_tokens);
        self.tool_calls = limits.tool_calls.unwrap_or(self.tool_calls);
        self.reply_tokens = limits.reply_tokens.unwrap_or(self.reply_tokens);
        self.command.pids = limits.command_processes.unwrap_or(self.command.pids);
        set(&mut self.command.wall_ms, limits.command_seconds.map(|s| s.saturating_mul(1000)));
        set(&mut self.command.memory_bytes, limits.command_memory_mib.map(|mib| mib.saturating_mul(1 << 20)));
        set(&mut self.command.disk_bytes, limits.command_disk_mib.map(|mib| mib.saturating_mul(1 << 20)));
    }

    /// The provider and the model's name in `PROVIDER/MODEL`.
    pub(crate) fn find<'a>(&self, model: &'a str) -> Result<(&str, &Provider, &'a str)> {
        let known = || self.providers.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let (provider, name) = model.split_once('/').with_context(|| {
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
    pub(crate) fn default_model(&self, has_key: impl Fn(&str) -> bool) -> Result<String> {
        if let Some(model) = &self.model {
            return Ok(model.clone());
        }
        const BY_KEY: [(&str, &str); 2] =
            [("ANTHROPIC_API_KEY", "anthropic/claude-sonnet-4-5"), ("OPENAI_API_KEY", "openai/gpt-5")];
        BY_KEY.into_iter().find(|(key, _)| has_key(key)).map(|(_, model)| model.to_owned()).context(
            "no model is configured: set ANTHROPIC_API_KEY or OPENAI_API_KEY (in the environment or in Bailey's own \
             .env), name one with --model PROVIDER/MODEL, or set `model` in config.toml",
        )
    }
}

fn read(path: &Path) -> Result<Option<String>> {
    match fs::metadata(path) {
        Ok(meta) if meta.len() > CONFIG_BYTES_MAX => {
            bail!("`{}` is {} bytes long: at most {CONFIG_BYTES_MAX} are read", path.display(), meta.len())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        _ => {}
    }
    fs::read_to_string(path).map(Some).with_context(|| format!("cannot read `{}`", path.display()))
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T> {
    toml::from_str(text).map_err(|error| anyhow!("{}: {}", path.display(), error.to_string().trim_end()))
}

/// What `bailey init` writes: every setting, commented out at its default.
pub(crate) const TEMPLATE: &str = include_str!("config.toml");
