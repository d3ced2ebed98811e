//! MCP servers, `[mcp.NAME]`.

use super::{
    ConfigError,
    document::Document,
    peers::{self, Sight},
};
use bailey_policy::HostGlob;
use bailey_protocol::Tier;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// The most servers.
const SERVERS_MAX: usize = 32;
/// How long a call may take, in seconds.
const SECONDS: u64 = 120;

/// A server of the Model Context Protocol: a program that others wrote, inside the walls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpServer {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The package that `command` starts, which Bailey installed, such as `npm:@scope/name@1.2.3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The digest of the lock file of the installed package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    /// The name of the package's program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The hosts that it may ask over the network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Its sight of the project.
    #[serde(default, skip_serializing_if = "is_none")]
    pub workspace: Sight,
    /// Secrets of `[[network.key]]` that it uses and never holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Further variables, which are no secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Further files that it reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PathBuf>,
    /// The project in whose sessions alone it is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
    /// The digest of the project's own file that named it: another file is not trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<String>,
    /// The tier of trust in its code.
    #[serde(default = "untrusted", skip_serializing_if = "is_untrusted")]
    pub tier: Tier,
    /// How long a call may take, in seconds.
    #[serde(default = "seconds", skip_serializing_if = "is_usual")]
    pub seconds: u64,
}

impl McpServer {
    /// A server with this command that may do nothing else.
    #[must_use]
    pub fn new(command: Vec<String>) -> Self {
        Self {
            command,
            package: None,
            lock: None,
            program: None,
            hosts: Vec::new(),
            workspace: Sight::None,
            keys: Vec::new(),
            env: BTreeMap::new(),
            files: Vec::new(),
            project: None,
            trusted: None,
            tier: untrusted(),
            seconds: SECONDS,
        }
    }

    /// The server's own files that the entry names.
    pub(crate) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        let words = self.command.iter().map(PathBuf::from).filter(|word| word.is_absolute());
        words.chain(self.files.iter().cloned())
    }

    /// Whether sessions about this project use it.
    #[must_use]
    pub fn is_for(&self, project: &Path) -> bool {
        self.project.as_ref().is_none_or(|own| own == project)
    }

    /// The hosts that it may ask.
    pub fn host_globs(&self) -> Vec<HostGlob> {
        // The file was checked when it was read.
        self.hosts.iter().filter_map(|host| host.clone().try_into().ok()).collect()
    }
}

fn untrusted() -> Tier {
    Tier::Untrusted
}

fn seconds() -> u64 {
    SECONDS
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(sight: &Sight) -> bool {
    *sight == Sight::None
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_untrusted(tier: &Tier) -> bool {
    *tier == untrusted()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_usual(seconds: &u64) -> bool {
    *seconds == SECONDS
}

/// Checks the servers in the file. `taken` are the names of extensions and peers; `keys` those of the secrets
/// of `[[network.key]]`.
pub(super) fn check(
    document: &Document,
    servers: &BTreeMap<String, McpServer>,
    taken: &[&str],
    keys: &[&str],
) -> Result<(), ConfigError> {
    if servers.len() > SERVERS_MAX {
        let message = format!("there are {} MCP servers, and {SERVERS_MAX} at most", servers.len());
        return Err(document.mistake("mcp", message));
    }
    for (name, server) in servers {
        let table = format!("mcp.{}", super::document::bare(name));
        let at = |key: &str| format!("{table}.{key}");
        if let Err(message) = peers::named(name) {
            return Err(document.mistake(&table, message));
        }
        if taken.contains(&name.as_str()) {
            let message = format!("an extension or a peer is named `{name}`, too: take another name");
            return Err(document.mistake(&table, message));
        }
        if server.command.first().is_none_or(String::is_empty) {
            return Err(document.mistake(&at("command"), "it names no program"));
        }
        peers::reach(document, &table, &server.files, server.paths(), &server.hosts)?;
        if let Some(key) = server.keys.iter().find(|key| !keys.contains(&key.as_str())) {
            let message = format!("no [[network.key]] is for the secret `{key}` (`bailey guide network`)");
            return Err(document.mistake(&at("keys"), message));
        }
        let is_name = |name: &String| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        if let Some(name) = server.env.keys().find(|name| !is_name(name)) {
            return Err(document.mistake(&at("env"), format!("`{name}` cannot name a variable")));
        }
        peers::lasts(document, &table, server.seconds)?;
    }
    Ok(())
}
