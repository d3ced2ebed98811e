//! The home's named agents. Each has a directory of its own under `agents/`, with the owner's settings for
//! it, its own personality, and its own notes. Rules, keys and people belong to the home and hold for all
//! agents.

use crate::{
    home::{Home, make_private, write_private},
    schedules::Schedules,
};
use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use std::fs;

/// The owner's settings for an agent, a file in its directory.
pub(crate) const SETTINGS: &str = "settings.toml";
/// The most agents that a home may have, and the longest name of one.
const AGENTS_MAX: usize = 64;
const NAME_CHARS_MAX: usize = 40;

/// The owner's settings for a named agent. For a missing setting, the home's own holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The model that it works with, `PROVIDER/NAME`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tools it has, and no others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Limits of its sessions, where the home allows them more.
    #[serde(default, skip_serializing_if = "Limits::is_empty")]
    pub limits: Limits,
}

/// Limits that can only lower those of the home.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Tokens of one session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_tokens: Option<u64>,
    /// Tokens of one turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_tokens: Option<u64>,
    /// Tool calls of one turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    /// Seconds that one command may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_seconds: Option<u64>,
}

impl Limits {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether an agent can have this name: it must be a valid directory name everywhere, and must not lead
/// elsewhere.
pub(crate) fn is_name(name: &str) -> bool {
    let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    // Commands would take a name that begins with a dash for an option.
    !name.starts_with('-') && !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(is_fit)
}

/// The names of the home's agents, in order.
///
/// # Errors
/// When the directory cannot be read.
pub fn names(home: &Home) -> Result<Vec<String>> {
    let found = match fs::read_dir(home.agents()) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        found => found.with_context(|| format!("cannot read `{}`", home.agents().display()))?,
    };
    let mut names = Vec::new();
    for entry in found {
        let name = entry?.file_name().into_string().unwrap_or_default();
        if home.of_agent(Some(&name)).is_ok() {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Makes an agent.
///
/// # Errors
/// When an agent of this name exists, the name is not valid, there are too many agents, or the agent cannot
/// be written.
pub fn make(home: &Home, name: &str, settings: &Settings) -> Result<Home> {
    if !is_name(name) {
        bail!(
            "`{name}` cannot name an agent: a name has at most {NAME_CHARS_MAX} characters of a-z, 0-9, `-` \
             and `_`, and does not begin with `-`"
        );
    }
    let new = Home { agent: Some(name.to_owned()), ..home.clone() };
    if new.agent_settings().exists() {
        bail!("there is an agent `{name}` already: change `{}`", new.agent_settings().display());
    }
    if names(home)?.len() >= AGENTS_MAX {
        bail!("there are {AGENTS_MAX} agents, which is the most");
    }
    make_private(&home.agents())?;
    make_private(&home.agents().join(name))?;
    write_private(&new.agent_settings(), toml::to_string(settings)?.as_bytes())?;
    Ok(new)
}

/// Removes an agent, with its personality and its own notes. Its sessions stay as they are.
///
/// # Errors
/// When no agent has this name, a channel or a schedule still names it, or it cannot be removed.
pub fn remove(home: &Home, name: &str, channels: &[&str]) -> Result<()> {
    let of_agent = home.of_agent(Some(name))?;
    if let Some(channel) = channels.first() {
        bail!("the channel `{channel}` is this agent's: name another one in config.toml first");
    }
    let schedules = Schedules::of(home)?.0;
    if let Some((schedule, _)) = schedules.iter().find(|(_, it)| it.agent.as_deref() == Some(name)) {
        bail!("the schedule `{schedule}` is this agent's: `bailey schedule rm {schedule}` first");
    }
    let folder = home.agents().join(name);
    // The settings go first: a directory without them is no agent, so an interrupted removal leaves no agent
    // behind.
    let cannot = || format!("cannot remove `{}`", folder.display());
    fs::remove_file(of_agent.agent_settings()).with_context(cannot)?;
    fs::remove_dir_all(&folder).with_context(cannot)?;
    crate::identity::accept(&of_agent, None)
}
