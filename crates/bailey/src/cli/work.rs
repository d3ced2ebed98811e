//! The arguments of what gives an agent work, and of what came of it.

use bailey_session::TurnOptions;
use clap::{Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// Ask on the terminal; without one, answer with no
    Ask,
    /// Answer every question with no
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List sessions, the newest first, each with its state
    List {
        /// How many of the newest sessions to show [default: all]
        #[arg(long, short = 'n', value_name = "COUNT")]
        last: Option<usize>,
        /// Only sessions of this directory's project
        #[arg(long, short = 'p', value_name = "DIR")]
        project: Option<PathBuf>,
        /// Also show sessions of commands without an agent (`bailey sandbox run`)
        #[arg(long, short)]
        all: bool,
    },
    /// Search the messages and answers of all sessions
    Search {
        /// The words; a text fits that has all of them, in any letter case
        #[arg(required = true, value_name = "WORD")]
        words: Vec<String>,
        /// Only sessions of this directory's project
        #[arg(long, short = 'p', value_name = "DIR")]
        project: Option<PathBuf>,
        /// How many of the newest sessions to show
        #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 20)]
        last: usize,
    },
    /// Show the messages and actions of a session
    Show {
        /// The session, or some of the digits that the list shows
        session: String,
    },
    /// Show what the model sees, part by part, with tokens and labels
    Context {
        /// The session, or some of the digits that the list shows
        session: String,
    },
    /// Continue a session: finish an interrupted turn, or send another message
    Resume {
        /// The session, or some of the digits that the list shows
        session: String,
        /// The message for the agent
        message: Option<String>,
        #[command(flatten)]
        options: TurnOptions,
    },
    /// Show what the session changed
    Diff {
        /// The session, or some of the digits that the list shows
        session: String,
        /// Only these files and what lies below them; they count from the project's root, and something must
        /// have changed at each
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Only what is Red: a human is asked before it is applied
        #[arg(long)]
        red: bool,
        /// Show separate hunks, each with its name for `apply --only`
        #[arg(long)]
        hunks: bool,
    },
    /// Apply the session's changes to the project
    Apply {
        /// The session, or some of the digits that the list shows
        session: String,
        /// Only these files and what lies below them, also where git ignores what is named; they count from
        /// the project's root, and something must have changed at each
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Ask about each hunk, and apply those that you pick
        #[arg(long, conflicts_with = "only")]
        hunks: bool,
        /// Only these hunks, as `sessions diff --hunks` names them; refused where the file is not what was
        /// shown
        #[arg(long, value_name = "PATH:NUMBERS@DIGITS", conflicts_with = "paths")]
        only: Vec<String>,
        /// Whether to ask about what is Red; with `never` nothing is applied where something of it is Red, so
        /// name the files that are not
        #[arg(long, value_enum, default_value_t = Approve::Ask)]
        approve: Approve,
    },
    /// Discard the session's changes
    Discard {
        /// The session, or some of the digits that the list shows
        session: String,
    },
    /// Take the last apply back
    Undo {
        /// The session, or some of the digits that the list shows
        session: String,
    },
    /// Begin a new session from the state of this one, to try another way
    Fork {
        /// The session, or some of the digits that the list shows
        session: String,
        /// Use the state after this entry of the journal [default: the newest entry]
        #[arg(long, value_name = "ENTRY")]
        at: Option<u64>,
    },
    /// Print a session as JSON lines, to keep or to pass on
    Export {
        /// The session, or some of the digits that the list shows
        session: String,
        /// Write to this new file instead of standard output
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Erase a session's messages, actions and changes; the journal keeps the record that it existed
    Rm {
        /// The session, or some of the digits that the list shows
        session: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}
