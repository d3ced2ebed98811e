//! The options of a turn, which `run`, `chat` and `sessions resume` share.

use bailey_terminal::Answering;
use std::path::PathBuf;

/// Options of the turns of one session.
#[derive(Debug, Clone, clap::Args)]
pub struct TurnOptions {
    /// The model: PROVIDER/NAME, or replay:FILE to play a recording
    #[arg(long, short, value_name = "MODEL")]
    pub model: Option<String>,
    /// Record the exchange with the model to this file
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Who answers questions; those that are asked can be answered by `bailey approvals` as well
    #[arg(long, value_enum, default_value_t = Answering::Ask)]
    pub approve: Answering,
    /// Apply the changes at the end without a question (a Red change is still asked about)
    #[arg(long)]
    pub apply: bool,
    /// Reveal masked files to this session: one, such as .env, those of a directory, or those that a pattern
    /// in quotes names
    #[arg(long, value_name = "PATH")]
    pub reveal: Vec<PathBuf>,
    /// Keep these words in the model's context for the whole session, also after a summary
    #[arg(long, value_name = "TEXT")]
    pub pin: Vec<String>,
    /// Use this MCP server, and those that are named so alone
    #[arg(long = "mcp", value_name = "SERVER", conflicts_with = "no_mcp")]
    pub(crate) servers: Vec<String>,
    /// Use no MCP server
    #[arg(long)]
    pub(crate) no_mcp: bool,
    /// Show the output of commands while they run
    #[arg(long, short)]
    pub verbose: bool,
    /// The token limit of the session, unless `limits.session_tokens` is lower
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub tokens: Option<u64>,
}

impl TurnOptions {
    /// Whether the session uses an MCP server.
    pub(crate) fn uses(&self, server: &str) -> bool {
        !self.no_mcp && (self.servers.is_empty() || self.servers.iter().any(|named| named == server))
    }

    /// Whether an option holds for one session only, not for the next sessions of the same conversation.
    pub fn is_of_one_session(&self) -> bool {
        !(self.reveal.is_empty() && self.pin.is_empty())
    }

    /// Forgets those options: the session is over.
    pub fn forget_session(&mut self) {
        self.reveal.clear();
        self.pin.clear();
    }
}
