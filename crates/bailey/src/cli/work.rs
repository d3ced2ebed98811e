//! The arguments of what gives an agent work, and of what came of it.

use crate::front::Answering;
use clap::{Subcommand, ValueEnum};
use std::path::PathBuf;

/// What `run` and `sessions resume` share.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TurnOptions {
    /// The model: PROVIDER/NAME, or replay:FILE to play a recording
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Record the exchange with the model to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Who answers questions; those that are asked can be answered by `bailey approvals` as well
    #[arg(long, value_enum, default_value_t = Answering::Ask)]
    pub(crate) approve: Answering,
    /// Apply the changes at the end without a question (what is Red is still asked)
    #[arg(long)]
    pub(crate) apply: bool,
    /// Reveal masked files to this session: one, such as .env, those of a directory, or those that a pattern
    /// in quotes names
    #[arg(long, value_name = "PATH")]
    pub(crate) reveal: Vec<PathBuf>,
    /// Keep these words in front of the model for the whole session, whatever is summed up
    #[arg(long, value_name = "TEXT")]
    pub(crate) pin: Vec<String>,
    /// Show what commands print while they run
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Let the session use up so many tokens at most, where `limits.session_tokens` is not lower
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) tokens: Option<u64>,
}

impl TurnOptions {
    /// Whether something is said of one session, and of none that comes after it in the same conversation.
    pub(crate) fn is_of_one_session(&self) -> bool {
        !(self.reveal.is_empty() && self.pin.is_empty())
    }

    /// That one is over.
    pub(crate) fn forget_session(&mut self) {
        self.reveal.clear();
        self.pin.clear();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// Ask on the terminal; without one, answer with no
    Ask,
    /// Answer every question with no
    Never,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// What to do; `-` reads it from standard input
    pub(crate) task: String,
    /// Work in this directory's repository
    #[arg(long, short = 'C', value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Without any walls: commands and changes happen on this machine itself, at once, and each is asked
    /// about
    #[arg(long)]
    pub(crate) no_sandbox: bool,
    /// Begin in a workspace that `bailey pool add` made ready
    #[arg(long, conflicts_with = "no_sandbox")]
    pub(crate) warm: bool,
    /// By itself, and not beneath the daemon that runs
    #[arg(long)]
    pub(crate) alone: bool,
    #[command(flatten)]
    pub(crate) options: TurnOptions,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Chat {
    /// Go on with this session, by its name or its last digits
    #[arg(long, value_name = "SESSION", conflicts_with = "directory")]
    pub(crate) resume: Option<String>,
    /// Work in this directory's repository
    #[arg(long, short = 'C', value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Without any walls: commands and changes happen on this machine itself, at once, and each is asked
    /// about
    #[arg(long, conflicts_with = "resume")]
    pub(crate) no_sandbox: bool,
    /// Begin in a workspace that `bailey pool add` made ready
    #[arg(long, conflicts_with_all = ["resume", "no_sandbox"])]
    pub(crate) warm: bool,
    /// Without the questions that a home's first conversation begins with
    #[arg(long)]
    pub(crate) no_onboarding: bool,
    /// By itself, and not beneath the daemon that runs
    #[arg(long)]
    pub(crate) alone: bool,
    /// Private: the schedule whose time this session is, and which says what its agent may
    #[arg(long, hide = true, value_name = "NAME", conflicts_with = "resume")]
    pub(crate) schedule: Option<String>,
    #[command(flatten)]
    pub(crate) options: TurnOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List sessions, the newest first
    List {
        /// The newest so many [default: all]
        #[arg(long, short = 'n', value_name = "COUNT")]
        last: Option<usize>,
    },
    /// Show what was said and done
    Show {
        /// The session, or its last digits
        session: String,
    },
    /// Show what the model sees, part by part, with tokens and labels
    Context {
        /// The session, or its last digits
        session: String,
    },
    /// Go on with a session: finish an interrupted turn, or say something more
    Resume {
        /// The session, or its last digits
        session: String,
        /// What to say
        message: Option<String>,
        #[command(flatten)]
        options: TurnOptions,
    },
    /// Show what the session changed
    Diff {
        /// The session, or its last digits
        session: String,
        /// Only these files and what lies below them; they count from the project's root, and something must
        /// have changed at each
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Only what is Red: a human is asked before it is applied
        #[arg(long)]
        red: bool,
        /// In pieces, with what names each for `apply --only`
        #[arg(long)]
        hunks: bool,
    },
    /// Move the session's changes to the project
    Apply {
        /// The session, or its last digits
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
    /// Throw the session's changes away
    Discard {
        /// The session, or its last digits
        session: String,
    },
    /// Take the last apply back
    Undo {
        /// The session, or its last digits
        session: String,
    },
    /// Begin another session as this one stood, to try another way
    Fork {
        /// The session, or its last digits
        session: String,
        /// As it stood after this entry of the journal [default: as it stands]
        #[arg(long, value_name = "ENTRY")]
        at: Option<u64>,
    },
    /// Print a session as JSON lines, to keep or to pass on
    Export {
        /// The session, or its last digits
        session: String,
        /// Write to this new file instead of standard output
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Erase what a session said and did, and its changes; the journal keeps that it was there
    Rm {
        /// The session, or its last digits
        session: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}
