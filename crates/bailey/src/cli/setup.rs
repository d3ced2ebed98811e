//! The arguments of what sets Bailey up and looks after it.

use super::Store;
use clap::{Subcommand, ValueEnum};
use std::{ffi::OsString, path::PathBuf};

/// Said of a value among the arguments of `secrets set`.
pub(crate) const NO_ARGUMENT: &str = "do not give a secret as an argument: every user of this machine could \
    read it there, and the shell keeps it; if the secret is real, revoke it at its issuer, and give the new \
    one on standard input or when asked";

/// What is wrong with what was typed, without what was typed where a secret may be in it.
pub(super) fn without_values(error: clap::Error, typed: impl IntoIterator<Item = OsString>) -> clap::Error {
    let typed: Vec<OsString> = typed.into_iter().collect();
    let is_set = ["secrets", "set"].iter().all(|word| typed.iter().any(|typed| typed == word));
    if !is_set || !error.use_stderr() {
        return error;
    }
    let mut command = super::command();
    command.build();
    let set = command.find_subcommand_mut("secrets").and_then(|secrets| secrets.find_subcommand_mut("set"));
    let message = format!("these arguments are wrong, and are not shown: {NO_ARGUMENT}");
    match set {
        Some(set) => set.error(error.kind(), message),
        None => command.error(error.kind(), message),
    }
}

/// The arguments of `bailey init`.
#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// Ask nothing, also on a terminal
    #[arg(long)]
    pub(crate) no_questions: bool,
    /// Private: ask these providers for their models, and print what they answer
    #[arg(long, hide = true, value_name = "PROVIDER,…")]
    pub(crate) look: Option<String>,
    /// Private: the URL of a provider that config.toml does not have yet
    #[arg(long, hide = true, value_name = "URL", requires = "look")]
    pub(crate) url: Option<String>,
    /// Private: the variable of its key
    #[arg(long, hide = true, value_name = "NAME", requires = "url")]
    pub(crate) key_env: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show every value in force
    Show {
        /// Say where each value came from
        #[arg(long)]
        origin: bool,
        /// As in this directory's repository
        #[arg(long, short = 'C', value_name = "DIR")]
        directory: Option<PathBuf>,
    },
    /// Set one value of config.toml; everything else in the file stays as it is
    Set {
        /// The key, as `config show` prints it, such as `model` or `limits.day_tokens`
        key: String,
        /// The value: as TOML, or a text as it is
        value: String,
    },
    /// Open config.toml in $VISUAL or $EDITOR; it is replaced only when it has no mistake
    Edit,
    /// Check config.toml and the environment for mistakes
    Check {
        /// This file instead
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Trust {
    /// Show what a repository's .bailey/config.toml sets, and whether it is used
    Show {
        /// This directory's repository
        #[arg(long, short = 'C', value_name = "DIR")]
        directory: Option<PathBuf>,
        /// Every repository whose settings are trusted
        #[arg(long, conflicts_with = "directory")]
        all: bool,
    },
    /// Trust this repository's settings until they change
    Add {
        /// This directory's repository
        #[arg(long, short = 'C', value_name = "DIR")]
        directory: Option<PathBuf>,
    },
    /// Stop trusting this repository's settings
    Rm {
        /// This directory's repository
        #[arg(long, short = 'C', value_name = "DIR")]
        directory: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Soul {
    /// Show SOUL.md, and whether it is what you accepted
    Show,
    /// Accept SOUL.md as it is now, or its absence; sessions begin only with an accepted one
    Accept,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Secrets {
    /// Store a secret; it is read from standard input, or asked for without showing it
    Set {
        /// Its name, such as ANTHROPIC_API_KEY
        name: String,
        /// Where to keep it [default: `secrets.store` of config.toml]
        #[arg(long, value_enum)]
        store: Option<Store>,
        /// Never given: a value among the arguments could be read by every user of this machine
        #[arg(hide = true, num_args = 0..)]
        value: Vec<String>,
    },
    /// List the names, with the place and the provider of each, and never a value
    List,
    /// Remove a secret from wherever Bailey keeps it
    Rm {
        /// Its name
        name: String,
        /// Only from here
        #[arg(long, value_enum)]
        store: Option<Store>,
    },
    /// Private: names the keys that commands may use to the daemon, which reads none
    #[command(hide = true)]
    Names,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    /// List the tools that a model gets
    List,
    /// Show one tool: what the model is told of it, its arguments, what it reads and writes
    Show {
        /// Its name or an alias
        name: String,
    },
}

/// What `policy explain` asks about.
#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// What the journal's entry of this number was about, then and by the rules of today
    #[arg(long, value_name = "SEQ", conflicts_with = "action")]
    pub(crate) entry: Option<u64>,
    /// Who asks [default: you, of what only your own commands do: diff, apply, undo, discard; a plugin, of a
    /// tool; else the agent]
    #[arg(long, value_enum)]
    pub(crate) role: Option<Role>,
    /// Also show the rules that do not fit
    #[arg(long)]
    pub(crate) all: bool,
    /// As if the command asked for a way to the network
    #[arg(long)]
    pub(crate) network: bool,
    /// What the tool does [default: what its name tells]
    #[arg(long, value_enum)]
    pub(crate) effect: Option<Does>,
    /// In this directory's repository
    #[arg(long, short = 'C', value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// read, stat, list, search or diff with a PATH; change, apply, undo or discard with PATHs; exec --
    /// COMMAND; http [METHOD] URL; model PROVIDER/NAME; tool NAME, of another program
    #[arg(required_unless_present = "entry")]
    pub(crate) action: Vec<String>,
}

/// What another program's tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Does {
    /// It only looks
    Read,
    /// It changes what is yours, in a way that can be taken back
    Write,
    /// It leaves your domain of trust, or moves money
    Egress,
    /// What it takes away cannot be brought back
    Destructive,
}

/// How far another program is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TrustTier {
    /// As what you wrote or vouched for
    Trusted,
    /// As what works in your own workspace
    Internal,
    /// As anybody else's
    Untrusted,
    /// As code that a model made or fetched
    LlmGenerated,
}

impl From<TrustTier> for bailey_policy::Trust {
    fn from(tier: TrustTier) -> Self {
        match tier {
            TrustTier::Trusted => Self::Trusted,
            TrustTier::Internal => Self::Internal,
            TrustTier::Untrusted => Self::Untrusted,
            TrustTier::LlmGenerated => Self::LlmGenerated,
        }
    }
}

/// Who asks for an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// The agent
    Agent,
    /// You, at a command of your own
    Owner,
    /// Somebody who looks after this home for you
    Operator,
    /// Somebody whom you let in
    User,
    /// Anybody
    Guest,
    /// A plugin
    Plugin,
}
