//! The arguments of what says what may be done: rules, questions, extensions.

use super::{Explain, TrustTier};
use clap::Subcommand;
use std::path::PathBuf;

const SIMULATE_HELP: &str = "\
The rules in force and the draft judge the same recorded actions, each with the time, the project and the revealed files of
then. Answers of humans, tokens and extensions are no rules and are not counted. BREAKING marks what is allowed and would be
denied, OPENS what would be allowed without a question. What the journal does not hold in full any more is named.

Exit codes: 0 nothing would be decided otherwise, 1 something would, 2 the draft has mistakes or breaks an example.";

const UPDATE_HELP: &str = "\
The new rules are read with all other files of the home, their examples are tried, and they judge again the last 100 decisions
of the journal (see `bailey policy simulate`). Where more than five are BREAKING, anything OPENS, or nothing was recorded yet, a
phrase must be typed on the terminal, or given with --confirm; under compliance always, on the terminal and with a reason. The
change is recorded before and after it is made; the file is replaced whole or not at all, and running sessions obey from their
next action on.

Exit codes: 0 done or nothing to do, 1 not done, 2 the rules have mistakes or break an example, 3 not confirmed or denied.";

#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List what waits for an answer, the oldest first
    List {
        /// Also what was answered, has run out or is void
        #[arg(long)]
        all: bool,
    },
    /// Show one question: what would be done, and why the gate asks
    Show {
        /// The question, or its first digits
        question: String,
    },
    /// Say yes, for this once
    Approve {
        /// The question, or its first digits
        question: String,
        /// For this exact action for the rest of its session
        #[arg(long)]
        session: bool,
        /// For all that the card says its pattern covers, for the rest of its session
        #[arg(long, conflicts_with = "session")]
        pattern: bool,
        /// Why; the journal keeps it
        #[arg(long, short, default_value = "")]
        reason: String,
    },
    /// Say no, or take back a yes that was not used yet
    Reject {
        /// The question, or its first digits
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        question: Option<String>,
        /// Say no to all open questions
        #[arg(long)]
        all: bool,
        /// Of all, those of this session alone
        #[arg(long, requires = "all", value_name = "SESSION")]
        session: Option<String>,
        /// Of all, those about this kind of action alone, such as `exec`, `http` or `read`
        #[arg(long, requires = "all", value_name = "KIND")]
        kind: Option<String>,
        /// Why; the model and the journal are told
        #[arg(long, short, default_value = "")]
        reason: String,
    },
    /// Ask once more what has run out, so that it can be answered
    Again {
        /// The question, or its first digits
        question: String,
    },
    /// List the servers whose pages every session may fetch because you said yes
    Servers,
    /// Take back a yes to a server's pages: every session asks again
    Revoke {
        /// The server as `servers` lists it, or its name alone
        server: String,
        /// Why; the journal keeps it
        #[arg(long, short, default_value = "")]
        reason: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Show the rules in force, Bailey's own first
    Show {
        /// This rule in full
        rule: Option<String>,
    },
    /// Read the rule files and say what is wrong with them
    Check,
    /// Try the examples that rules carry, and say which of them the rules do not keep; exit code 1 when one
    /// fails
    ///
    /// A rule carries them as `examples = { allow = ["exec cargo test"], ask = [], deny = [] }`: read, stat,
    /// list, search or diff with a path, change, apply, undo or discard with paths, exec with a command, http
    /// or model with a URL. Bailey does not start while one of them fails.
    Test {
        /// These rule files, such as a draft, laid over those of the home
        files: Vec<PathBuf>,
    },
    /// Say of an action, or of an entry of the journal, what each rule makes of it; nothing is done
    Explain(Explain),
    /// Answer another runtime whether it may use its tools, line by line as JSON; docs/extensions.md has
    /// the protocol
    ///
    /// Nothing is done here: that runtime runs its tools, and asks its own human where the answer is "ask".
    /// Each answer is an entry of the journal. A task ends with its input, or with a signal.
    Decide {
        /// Take questions from standard input, and answer on standard output
        #[arg(long, required = true)]
        stdio: bool,
        /// How far that runtime is trusted, for rules that say so
        #[arg(long, value_enum, value_name = "TIER", default_value = "untrusted")]
        trust: TrustTier,
    },
    /// Decide again what the journal recorded, by a draft of the rules, and say what would be decided
    /// otherwise
    #[command(after_help = SIMULATE_HELP)]
    Simulate(Simulate),
    /// Put a rule file into the home's policy, or take one away, once it is shown what that means
    #[command(after_help = UPDATE_HELP)]
    Update(Update),
    /// The programs of yours that judge besides the rules
    #[command(subcommand)]
    Extensions(Extensions),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Update {
    /// The new text of a rule file, or `-`: standard input; the home's file of the same name is replaced, or
    /// it is one more
    #[arg(required_unless_present = "remove", conflicts_with = "remove")]
    pub(crate) file: Option<PathBuf>,
    /// The name of the home's rule file, where it is another one
    #[arg(long, value_name = "NAME", conflicts_with = "remove")]
    pub(crate) name: Option<String>,
    /// Take this rule file of the home away instead
    #[arg(long, value_name = "NAME")]
    pub(crate) remove: Option<String>,
    /// Only show what would change, and print the phrase that it needs
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The phrase that a dry run printed; it is good for that very change
    #[arg(long, value_name = "PHRASE", conflicts_with = "dry_run")]
    pub(crate) confirm: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Simulate {
    /// A rule file, or a folder of them, laid over those of the home: one of the same name is replaced, any
    /// other added
    #[arg(value_name = "PATH")]
    pub(crate) drafts: Vec<PathBuf>,
    /// Leave this rule file of the home out
    #[arg(long, value_name = "NAME")]
    pub(crate) without: Vec<String>,
    /// How many of the newest decisions are decided again
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) last: u32,
    /// All decisions of this session instead
    #[arg(long, value_name = "SESSION", conflicts_with = "last")]
    pub(crate) session: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Extensions {
    /// List what config.toml declares, and whether each may be asked
    List,
    /// Have one asked again that crashed twice within 30 seconds; until then its kinds of action are denied
    Enable {
        /// Its name
        name: String,
    },
}
