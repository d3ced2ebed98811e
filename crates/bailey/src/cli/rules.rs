//! The arguments of what says what may be done: rules, questions, extensions.

use super::{Explain, TrustTier};
use clap::Subcommand;
use std::path::PathBuf;

const SIMULATE_HELP: &str = "\
The rules in force and the draft judge the same recorded actions, each with the time, the project and the
revealed files of that moment. Answers of people, tokens and extensions are not rules and are not counted.
BREAKING marks an action that is allowed now and would be denied, OPENS an action that would be allowed
without a question. The command names actions that the journal no longer holds whole.

Exit codes: 0 no decision would change, 1 a decision would change, 2 the draft has mistakes or breaks an
example.";

const UPDATE_HELP: &str = "\
The command reads the new rules together with all other files of the home, tests their examples, and judges
the last 100 decisions of the journal again (see `bailey policy simulate`). When more than five of them are
BREAKING, when one OPENS, or when nothing is recorded yet, you type a phrase on the terminal, or give it
with --confirm. Under compliance you always type it on the terminal, with a reason. The journal records the
change before and after it is made. The file is replaced whole or not at all, and running sessions obey from
their next action on.

Exit codes: 0 done or nothing to do, 1 not done, 2 the rules have mistakes or break an example, 3 not
confirmed or denied.";

#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List the questions that wait for an answer, the oldest first
    List {
        /// Also list questions that were answered, ran out of time or are void
        #[arg(long)]
        all: bool,
    },
    /// Show one question: what would be done, and why the gate asks
    Show {
        /// The question, or its first digits
        question: String,
    },
    /// Say yes to one question, once
    Approve {
        /// The question, or its first digits
        question: String,
        /// Allow this exact action for the rest of its session
        #[arg(long)]
        session: bool,
        /// Allow everything that the pattern on the card covers, for the rest of its session
        #[arg(long, conflicts_with = "session")]
        pattern: bool,
        /// The reason, which the journal keeps
        #[arg(long, short, default_value = "")]
        reason: String,
    },
    /// Say no, or take back a yes that was not used yet
    Reject {
        /// The question, or its first digits
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        question: Option<String>,
        /// The reason, in words, as with --reason
        #[arg(value_name = "WHY", conflicts_with_all = ["all", "reason"])]
        why: Vec<String>,
        /// Say no to all open questions
        #[arg(long)]
        all: bool,
        /// With --all, only the questions of this session
        #[arg(long, requires = "all", value_name = "SESSION")]
        session: Option<String>,
        /// With --all, only the questions about this kind of action, such as `exec`, `http` or `read`
        #[arg(long, requires = "all", value_name = "KIND")]
        kind: Option<String>,
        /// The reason, which the model and the journal get
        #[arg(long, short, default_value = "")]
        reason: String,
    },
    /// Ask a question again that ran out of time, so that it can be answered
    Again {
        /// The question, or its first digits
        question: String,
    },
    /// List the servers whose pages every session may fetch because you said yes
    Servers,
    /// Take back a yes to a server's pages, so that every session asks again
    Revoke {
        /// The server as `servers` lists it, or its name alone
        server: String,
        /// The reason, which the journal keeps
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
    /// Check the rule files for mistakes
    Check,
    /// Test the rules against their own examples; the exit code is 1 when an example fails
    ///
    /// A rule carries them as `examples = { allow = ["exec cargo test"], ask = [], deny = [] }`: read, stat,
    /// list, search or diff with a path, change, apply, undo or discard with paths, exec with a command, http
    /// or model with a URL. Bailey does not start while one of them fails.
    Test {
        /// These rule files, such as a draft, laid over those of the home
        files: Vec<PathBuf>,
    },
    /// Explain how each rule judges an action or an entry of the journal; nothing is done
    Explain(Explain),
    /// Decide the tool calls of another runtime, as JSON lines; `bailey guide extensions` has the protocol
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
    /// Decide recorded actions again with a draft of the rules, and show which decisions would change
    #[command(after_help = SIMULATE_HELP)]
    Simulate(Simulate),
    /// Add, replace or remove a rule file of the home, after showing which decisions would change
    #[command(after_help = UPDATE_HELP)]
    Update(Update),
    /// List or enable your own programs that judge actions besides the rules
    #[command(subcommand)]
    Extensions(Extensions),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Update {
    /// The new text of a rule file, or `-` for standard input; it replaces the home's file of the same name,
    /// or is added
    #[arg(required_unless_present = "remove", conflicts_with = "remove")]
    pub(crate) file: Option<PathBuf>,
    /// The name of the rule file in the home, when it differs from FILE
    #[arg(long, value_name = "NAME", conflicts_with = "remove")]
    pub(crate) name: Option<String>,
    /// Remove this rule file of the home instead
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
