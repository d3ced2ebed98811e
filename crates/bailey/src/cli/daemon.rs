//! The arguments of what the daemon does besides: named agents, schedules, channels, the page.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    /// Make one
    New {
        /// What it is called
        name: String,
        /// The model it works with, PROVIDER/NAME [default: the configured one]
        #[arg(long)]
        model: Option<String>,
        /// The tools it has, and no others [default: all]
        #[arg(long, value_name = "TOOL,…", value_delimiter = ',')]
        tools: Vec<String>,
        /// How many tokens each of its sessions may use up, where `limits.session_tokens` is not lower
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
        tokens: Option<u64>,
    },
    /// Show all
    List,
    /// Remove one, with its personality and what it noted of itself; its sessions stay in the journal
    Remove {
        /// What it is called
        name: String,
    },
}
