//! The arguments of `bailey mcp`.

use crate::config::Sight;
use bailey_protocol::ToolEffect;
use clap::{Subcommand, ValueEnum};
use std::path::PathBuf;

const ADD_HELP: &str = "\
Known names, with their least rights: filesystem, git-server, fetch, github, memory, time. For any other server write
the command behind `--`. A command that begins with `npx` or `uvx` is installed once, inside the walls, into
Bailey's home, with a way to the package registry alone; from then on the server starts offline.

A server runs inside the walls: it has a directory of its own as its home, no network but the hosts that you
name, and no sight of your project unless you say so. Bailey starts it once, shows its tools and asks whether
the agent may use them. See `bailey guide mcp`.";

#[derive(Debug, Subcommand)]
pub(crate) enum Mcp {
    /// Add a server, and agree to its tools
    #[command(after_help = ADD_HELP)]
    Add(Add),
    /// List the servers
    List,
    /// Show one server: its rights and its tools
    Show {
        /// The server
        name: String,
    },
    /// Start a server inside the walls, and list the tools that it has now
    Test {
        /// The server
        name: String,
    },
    /// Use the servers of this project's own `.mcp.json`, as the file is now, in this project's sessions
    Trust {
        /// The project
        #[arg(long, short = 'C', value_name = "DIR")]
        directory: Option<PathBuf>,
        /// Their sight of the project
        #[arg(long, value_enum)]
        workspace: Option<Sees>,
        /// Agree to the file and to the tools without a question
        #[arg(long)]
        yes: bool,
    },
    /// Look at a server's tools, and agree to them as they are now
    Approve {
        /// The server
        name: String,
        /// Give a tool another effect: read, write, egress or destructive
        #[arg(long = "effect", value_name = "TOOL=EFFECT", value_parser = effect)]
        effects: Vec<(String, ToolEffect)>,
        /// Agree without a question
        #[arg(long)]
        yes: bool,
    },
    /// Install the newest version of a server's package, and show the difference
    Update {
        /// The server
        name: String,
        /// Agree to the tools without a question
        #[arg(long)]
        yes: bool,
    },
    /// Private: run an installation
    #[command(hide = true)]
    Install {
        /// The server
        name: String,
        /// The kind of package, the package as its registry's client takes it, its name, its program
        #[arg(num_args = 4)]
        words: Vec<String>,
    },
    /// Remove a server, with its program, its state and your consent
    #[command(alias = "rm")]
    Remove {
        /// The server
        name: String,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Add {
    /// The server's name; its tools are called NAME.TOOL
    pub(crate) name: String,
    /// A host that it may ask, such as api.example.com or *.example.com
    #[arg(long = "host", value_name = "HOST")]
    pub(crate) hosts: Vec<String>,
    /// Its sight of the project
    #[arg(long, value_enum)]
    pub(crate) workspace: Option<Sees>,
    /// A secret of [[network.key]] that it uses; it holds a stand-in, and Bailey puts the key in at the door
    #[arg(long = "key", value_name = "SECRET")]
    pub(crate) keys: Vec<String>,
    /// A variable that is no secret
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Agree to everything without a question
    #[arg(long)]
    pub(crate) yes: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

impl Sees {
    /// The same in an entry.
    pub(crate) fn sight(self) -> Sight {
        match self {
            Self::None => Sight::None,
            Self::Read => Sight::Read,
            Self::Write => Sight::Write,
        }
    }
}

/// A server's sight of the project.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Sees {
    /// Nothing
    None,
    /// Its files, which it cannot change
    Read,
    /// Its files; its changes wait to be applied
    Write,
}

fn effect(text: &str) -> Result<(String, ToolEffect), String> {
    let (tool, effect) = text.split_once('=').ok_or("write TOOL=EFFECT")?;
    let known = ToolEffect::NAMED.into_iter().find(|known| known.name() == effect);
    let known = known.ok_or("an effect is `read`, `write`, `egress` or `destructive`")?;
    Ok((tool.to_owned(), known))
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
