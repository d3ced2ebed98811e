//! The arguments of what sets Bailey up and looks after it.

use super::Store;
use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show every value in force
    #[command(after_help = "\
Example:
  bailey config show --origin      each value with the file and line, or the variable, that it came from")]
    Show {
        /// Say where each value came from
        #[arg(long)]
        origin: bool,
        /// As in this directory's repository
        #[arg(long, short = 'C', value_name = "DIR")]
        directory: Option<PathBuf>,
    },
    /// Open config.toml in $VISUAL or $EDITOR; it is replaced only when it has no mistake
    #[command(after_help = "\
Example:
  EDITOR=nano bailey config edit")]
    Edit,
    /// Say what is wrong with config.toml and the environment
    #[command(after_help = "\
Example:
  bailey config check && bailey run \"make the tests pass\"")]
    Check {
        /// This file instead
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Trust {
    /// Show what a repository's .bailey/config.toml sets, and whether it is used
    #[command(after_help = "\
Example:
  bailey trust show                this repository's own settings
  bailey trust show --all          every repository whose settings you trust")]
    Show {
        /// This directory's repository
        #[arg(long, short = 'C', value_name = "DIR")]
        directory: Option<PathBuf>,
        /// Every repository whose settings are trusted
        #[arg(long, conflicts_with = "directory")]
        all: bool,
    },
    /// Use this repository's settings from now on, as long as they stay as they are
    #[command(after_help = "\
Example:
  bailey trust add -C ~/src/project")]
    Add {
        /// This directory's repository
        #[arg(long, short = 'C', value_name = "DIR")]
        directory: Option<PathBuf>,
    },
    /// Use this repository's settings no more
    #[command(after_help = "\
Example:
  bailey trust rm -C ~/src/project")]
    Rm {
        /// This directory's repository
        #[arg(long, short = 'C', value_name = "DIR")]
        directory: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Secrets {
    /// Store a secret; it is read from standard input, or asked for without showing it
    #[command(after_help = "\
Example:
  bailey secrets set ANTHROPIC_API_KEY              asks for it
  pass show anthropic | bailey secrets set ANTHROPIC_API_KEY")]
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
    /// List names, where each lies, and which provider uses it; never a value
    #[command(after_help = "\
Example:
  bailey --json secrets list")]
    List,
    /// Remove a secret from wherever Bailey keeps it
    #[command(after_help = "\
Example:
  bailey secrets rm OLD_API_KEY")]
    Rm {
        /// Its name
        name: String,
        /// Only from here
        #[arg(long, value_enum)]
        store: Option<Store>,
    },
}
