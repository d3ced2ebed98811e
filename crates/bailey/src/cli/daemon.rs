//! The arguments of what the daemon does besides: named agents, schedules, channels, the page.

use clap::{Subcommand, ValueEnum};
use std::path::PathBuf;

const CRON_HELP: &str = "\
Five fields of crontab(5): minute, hour, day of the month, month, day of the week, in this machine's local time; `*`, `1,15`, `mon-fri`, `*/10`, and @hourly, @daily, @weekly, @monthly,
@yearly. What was due while no daemon ran is done once when the next one starts. Each time is a session of its own, under your rules; a question waits for you (`bailey approvals`).";

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

#[derive(Debug, Subcommand)]
pub(crate) enum Schedule {
    /// Write a task down
    #[command(after_help = CRON_HELP)]
    Add {
        /// What it is called
        name: String,
        /// When, as crontab(5) has it
        #[arg(long, value_name = "FIELDS")]
        cron: String,
        /// What the agent is told
        task: String,
        /// The project [default: the one you are in]
        #[arg(short = 'C', long, value_name = "DIR")]
        directory: Option<PathBuf>,
        /// The model, PROVIDER/NAME
        #[arg(long)]
        model: Option<String>,
        /// How many tokens each time may use up, where `limits.session_tokens` is not lower
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
        tokens: Option<u64>,
        /// What each time may do, and nothing else: `read,list:src`, `exec:cargo test`, `http:HOST`; several
        /// times [default: all that your rules allow, or ask you about]
        #[arg(long, value_name = "KIND,…[:WHAT]")]
        may: Vec<String>,
    },
    /// Show all, with the next time of each
    List,
    /// Do one now
    Run {
        /// What it is called
        name: String,
    },
    /// Do one no more
    Rm {
        /// What it is called
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Channels {
    /// Show the configured channels, and whether they are up
    List,
    /// Show who may speak over them, and who asks to
    People,
    /// Let somebody speak over a channel: who was told this code there
    Pair {
        /// The channel's name in config.toml
        channel: String,
        /// The code that they were told
        code: String,
        /// What they are to this home
        #[arg(long = "as", value_name = "ROLE", value_enum, default_value_t = PersonRole::User)]
        role: PersonRole,
    },
    /// Let somebody speak over a channel no more
    Forget {
        /// The channel's name in config.toml
        channel: String,
        /// Who it is there, as `bailey channels people` shows it
        id: String,
    },
    /// Private: the process that talks with a platform, beneath the daemon
    #[command(hide = true)]
    Run {
        /// The channel's name
        channel: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Page {
    /// Print a link that lets one browser in, once
    Link,
    /// Show who is let in
    List,
    /// Print a token by which a collector reads figures at `/metrics`
    Token {
        /// What it is called
        name: String,
    },
    /// Let one in no more; what it has open ends at once
    Revoke {
        /// Its number, as `bailey page list` shows it
        #[arg(value_name = "NUMBER")]
        login: Option<u64>,
        /// All of them
        #[arg(long, conflicts_with = "login")]
        all: bool,
    },
    /// Private: the process that hears browsers, beneath the daemon
    #[command(hide = true)]
    Serve,
}

/// What somebody at a channel is to a home.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PersonRole {
    /// You, on your phone: answers questions, stops everything
    Owner,
    /// Somebody who looks after it for you: the same
    Operator,
    /// Somebody who gives the agent work, and answers no questions
    User,
    /// Somebody whose words are data to the agent and no instruction
    Guest,
}
