//! Peers: programs with tools of their own, `[peers.NAME]`.

use super::{ConfigError, document::Document, extensions::Calls};
use bailey_policy::HostGlob;
use bailey_protocol::{Tier, ToolEffect};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf};

/// How long a call may take, in seconds: the default and the maximum.
const SECONDS: u64 = 60;
const SECONDS_MAX: u64 = 3_600;
/// The most peers, and the most characters of a name.
const PEERS_MAX: usize = 32;
const NAME_CHARS_MAX: usize = 32;
/// Names that the built-in tools begin with.
const TAKEN: [&str; 12] = [
    "agent",
    "bailey",
    "command",
    "default-api",
    "fs",
    "functions",
    "git",
    "message",
    "process",
    "search",
    "test",
    "web",
];

/// A program in the walls with tools of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// The program and its arguments. The program sees the files that an absolute path names here.
    pub command: Vec<String>,
    /// Further files that it reads, such as modules.
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// The hosts that it may ask over the network, such as `api.example.org` or `*.example.org:8443`.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Its sight of the project.
    #[serde(default)]
    pub workspace: Sight,
    /// The effects of its tools, by their names; `*` names all others. Bailey asks about each other tool.
    #[serde(default)]
    pub effects: BTreeMap<String, ToolEffect>,
    /// The system calls that it may make.
    #[serde(default = "standard")]
    pub profile: Calls,
    /// The tier of trust in its code, which decides how isolated it runs.
    #[serde(default = "trusted")]
    pub tier: Tier,
    /// How long a call may take, in seconds.
    #[serde(default = "seconds")]
    pub seconds: u64,
}

/// A peer's sight of the session's workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sight {
    /// Nothing.
    #[default]
    None,
    /// Its files, which it cannot change.
    Read,
    /// Its files. The changes lie in the session's layer, like those of a command.
    Write,
}

impl Peer {
    /// The peer's own files that the entry names.
    pub(crate) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        let words = self.command.iter().map(PathBuf::from).filter(|word| word.is_absolute());
        words.chain(self.files.iter().cloned())
    }

    /// The hosts that it may ask.
    pub fn host_globs(&self) -> Vec<HostGlob> {
        // The file was checked when it was read.
        self.hosts.iter().filter_map(|host| host.clone().try_into().ok()).collect()
    }
}

fn standard() -> Calls {
    Calls::Standard
}

/// The default tier is trusted, because the owner named the program.
fn trusted() -> Tier {
    Tier::Trusted
}

fn seconds() -> u64 {
    SECONDS
}

/// Checks the peers in the file. `extensions` are the names that extensions of the policy have.
pub(super) fn check(
    document: &Document,
    peers: &BTreeMap<String, Peer>,
    extensions: &[super::Declared],
) -> Result<(), ConfigError> {
    if peers.len() > PEERS_MAX {
        let message = format!("there are {} peers, and {PEERS_MAX} at most", peers.len());
        return Err(document.mistake("peers", message));
    }
    for (name, peer) in peers {
        let table = format!("peers.{}", super::document::bare(name));
        let at = |key: &str| format!("{table}.{key}");
        if let Err(message) = named(name) {
            return Err(document.mistake(&table, message));
        }
        if extensions.iter().any(|extension| extension.name == *name) {
            let message = format!("an extension of the policy is named `{name}`, too: take another name");
            return Err(document.mistake(&table, message));
        }
        if peer.command.first().is_none_or(String::is_empty) {
            return Err(document.mistake(&at("command"), "it names no program"));
        }
        reach(document, &table, &peer.files, peer.paths(), &peer.hosts)?;
        if !peer.hosts.is_empty() && peer.profile == Calls::Strict {
            return Err(
                document.mistake(&at("profile"), "`strict` has no calls for the network: `standard` has")
            );
        }
        if let Some((tool, _)) = peer.effects.iter().find(|(_, effect)| **effect == ToolEffect::Unclear) {
            let message = format!("leave `{tool}` out: a tool of unknown effect is asked about");
            return Err(document.mistake(&at("effects"), message));
        }
        lasts(document, &table, peer.seconds)?;
    }
    Ok(())
}

/// Checks a name of a peer: the tools are named after it.
///
/// # Errors
/// Says what is wrong with it.
pub fn named(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_plain) {
        return Err(format!(
            "`{name}` cannot name a peer: a name has 1 to {NAME_CHARS_MAX} characters of a-z, 0-9 and `-`"
        ));
    }
    if TAKEN.contains(&name) {
        return Err(format!("`{name}` is the beginning of built-in tools' names: take another"));
    }
    Ok(())
}

/// Checks the files and the hosts that a program may reach.
pub(super) fn reach(
    document: &Document,
    table: &str,
    files: &[PathBuf],
    mut paths: impl Iterator<Item = PathBuf>,
    hosts: &[String],
) -> Result<(), ConfigError> {
    let at = |key: &str| format!("{table}.{key}");
    let home = document.path().parent().filter(|home| home.is_absolute());
    if let Some(file) = files.iter().find(|file| !file.is_absolute()) {
        return Err(document.mistake(&at("files"), format!("`{}` is no absolute path", file.display())));
    }
    if let Some(file) = paths.find(|file| home.is_some_and(|home| file.starts_with(home))) {
        let message = format!(
            "`{}` lies in Bailey's own home, which nothing inside the walls may see: keep it elsewhere",
            file.display()
        );
        return Err(document.mistake(&at("command"), message));
    }
    for host in hosts {
        if let Err(error) = HostGlob::try_from(host.clone()) {
            return Err(document.mistake(&at("hosts"), format!("`{host}`: {error}")));
        }
    }
    Ok(())
}

/// Checks how long a call may take.
pub(super) fn lasts(document: &Document, table: &str, seconds: u64) -> Result<(), ConfigError> {
    match (1..=SECONDS_MAX).contains(&seconds) {
        true => Ok(()),
        false => Err(document.mistake(&format!("{table}.seconds"), format!("it must be 1 to {SECONDS_MAX}"))),
    }
}
