//! The arguments of what the daemon does besides: named agents, schedules, channels, the page.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    /// Make an agent
    New {
        /// The name of the agent
        name: String,
        /// The model of the agent, PROVIDER/NAME [default: the configured model]
        #[arg(long)]
        model: Option<String>,
        /// The only tools of the agent [default: all tools]
        #[arg(long, value_name = "TOOL,…", value_delimiter = ',')]
        tools: Vec<String>,
        /// The token limit of each of its sessions, unless `limits.session_tokens` is lower
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
        tokens: Option<u64>,
    },
    /// List the agents
    List,
    /// Remove an agent, with its personality and its own notes; its sessions stay in the journal
    Remove {
        /// The name of the agent
        name: String,
    },
}
