//! The arguments of what sets Bailey up and looks after it.

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
