//! The arguments of every command.

mod daemon;
mod examples;
mod groups;
mod journal;
mod mcp;
mod rules;
mod setup;
#[cfg(test)]
mod tests;
mod work;

pub(crate) use crate::config::Store;
use bailey_channels::command as channels;
use bailey_conversation::{chat, run};
use bailey_daemon::schedule;
use bailey_replay::command as replay;
use bailey_session::{compose::HANDOFF, prewarm};
use bailey_web::command as page;
pub(crate) use daemon::Agent;
pub(crate) use journal::{Archive, Audit, Export};
pub(crate) use mcp::{Add, Mcp, Sees};
pub(crate) use rules::{Approvals, Extensions, Policy, Simulate, Update};
pub(crate) use setup::{
    Config, Does, Explain, Init, NO_ARGUMENT, Role, Secrets, Soul, Tools, Trust, TrustTier,
};
pub(crate) use work::{Approve, Sessions};

use crate::{
    commands::is_terminal,
    exit,
    print::{Color, Printer},
};
use bailey_protocol::spell::meant;
use clap::{
    CommandFactory as _, FromArgMatches as _, Parser, Subcommand,
    builder::PossibleValuesParser,
    error::{ContextKind, ContextValue, ErrorKind},
};
use std::{ffi::OsString, path::PathBuf};

/// The heading of the options that every command takes.
const GENERAL: &str = "General options";

const EXIT_CODES: &str = "\
Exit codes:
  0  done                      4    no model answered
  1  failed                    5    the journal is broken or cannot be written
  2  wrong arguments, rules    6    conflicts: some changes were not applied
     or configuration          7    the turn pauses at a limit, or waits for you
  3  denied, or not approved   129  ended, because the terminal was closed
                               130  ended by Ctrl-C
                               141  ended, because its output was closed
                               143  ended by a signal (SIGTERM)";

/// A self-hosted runtime for AI agents: inside the walls an agent may do anything; through the gate nothing
/// passes without a permit.
#[derive(Debug, Parser)]
#[command(
    name = "bailey", version, after_help = EXIT_CODES, max_term_width = 100,
    override_usage = "bailey [OPTIONS] [COMMAND]"
)]
pub(crate) struct Cli {
    /// Print JSON, one object per line
    #[arg(long, global = true, help_heading = GENERAL)]
    pub(crate) json: bool,
    /// When to use colour
    #[arg(long, global = true, help_heading = GENERAL, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
    /// Bailey's home [default: $BAILEY_HOME, or ~/.bailey]
    #[arg(long, global = true, help_heading = GENERAL, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// Use this named agent of the home instead of the home's own agent
    #[arg(long, global = true, help_heading = GENERAL, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Private: the process that serves one session of a conversation, and the descriptors of what is left to
    /// the next one; of a task beneath the daemon, its session and the name of what is said to it
    #[arg(long, alias = "seat", hide = true, value_name = "FD,FD")]
    pub(crate) handoff: Option<String>,
    /// Private: the process that serves a session beneath the daemon
    #[arg(long, hide = true)]
    pub(crate) desk: bool,
    /// Whether no command was typed, on a terminal.
    #[arg(skip)]
    pub(crate) is_bare: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// What was typed. A mistake, or a request for help, is answered, and the program ends.
    pub(crate) fn typed() -> Self {
        let typed: Vec<OsString> = std::env::args_os().collect();
        let (matches, is_bare) = match command().try_get_matches_from(&typed) {
            Ok(matches) => (matches, false),
            Err(error) => {
                completed(&error, &typed, is_terminal()).unwrap_or_else(|| match talked(&error, &typed) {
                    Some(Ok(matches)) => (matches, is_terminal()),
                    Some(Err(error)) => ended(&error),
                    None => ended(&setup::without_values(suggested(error, &typed), typed.iter().cloned())),
                })
            }
        };
        let cli = Self::from_arg_matches(&matches).unwrap_or_else(|error| ended(&error));
        Self { is_bare, ..cli }
    }
}

/// The commands that a group stands for by itself: it shows what is there.
const SHOWN: [(&str, &str); 14] = [
    ("agent", "list"),
    ("approvals", "list"),
    ("audit", "log"),
    ("channels", "list"),
    ("config", "show"),
    ("policy", "show"),
    ("prewarm", "list"),
    ("schedule", "list"),
    ("secrets", "list"),
    ("sessions", "list"),
    ("soul", "show"),
    ("tools", "list"),
    ("trust", "show"),
    ("web", "list"),
];

/// What was meant where only a command is missing: that of the group that was named; or, on a terminal, a
/// conversation.
fn completed(error: &clap::Error, typed: &[OsString], is_here: bool) -> Option<(clap::ArgMatches, bool)> {
    let is_missing = [ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, ErrorKind::MissingSubcommand];
    if !is_missing.contains(&error.kind()) {
        return None;
    }
    let with = |word: &str| {
        let words = typed.iter().cloned().chain([word.into()]);
        command().try_get_matches_from(words).ok()
    };
    let named = SHOWN.iter().filter(|(group, _)| typed.iter().any(|word| word == group));
    let shown = named.filter_map(|(group, shows)| {
        let found = with(shows)?;
        (found.subcommand_name() == Some(*group)).then_some((found, false))
    });
    let talk = || with("chat").filter(|_| is_here).map(|found| (found, true));
    shown.into_iter().next().or_else(talk)
}

/// A conversation, where options of `bailey chat` were typed without a command; or what is wrong with them.
fn talked(
    error: &clap::Error,
    typed: &[OsString],
) -> Option<std::result::Result<clap::ArgMatches, clap::Error>> {
    let root = command();
    let is_command = |word: &OsString| word.to_str().is_some_and(|word| root.find_subcommand(word).is_some());
    let is_known = error.get(ContextKind::SuggestedArg).is_some();
    if error.kind() != ErrorKind::UnknownArgument || is_known || typed.iter().skip(1).any(is_command) {
        return None;
    }
    // The option with which the program starts itself again comes first.
    let is_own = |word: &&OsString| word.to_str().is_some_and(|word| word.starts_with(HANDOFF));
    let own = 1 + typed.iter().skip(1).take_while(is_own).count();
    let mut words = typed.to_vec();
    words.insert(own.min(typed.len()), "chat".into());
    Some(command().try_get_matches_from(words))
}

/// The same error, with the command that was probably meant.
fn suggested(mut error: clap::Error, typed: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return error;
    }
    let root = command();
    let mut group = &root;
    for typed in typed.iter().skip(1).filter_map(|typed| typed.to_str()).take_while(|typed| typed != word) {
        group = group.find_subcommand(typed).unwrap_or(group);
    }
    let known = group.get_subcommands().filter(|known| !known.is_hide_set()).map(clap::Command::get_name);
    if let Some(meant) = meant(word, known).map(str::to_owned) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![meant]));
    }
    error
}

/// Says what is wrong with what was typed, or helps.
fn ended(said: &clap::Error) -> ! {
    let code = u8::try_from(said.exit_code()).unwrap_or(exit::WRONG);
    // What a script is told of any other error, it is told of this one, too.
    if said.use_stderr() && std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json") {
        Printer::new(true, Color::Never).json_error(said.render().to_string().trim_end());
    }
    let code =
        said.print().map_or_else(|error| Printer::new(false, Color::Never).unprinted(error), |()| code);
    crate::front::quit(code)
}

/// The whole command line, with its examples.
pub(crate) fn command() -> clap::Command {
    groups::add(examples::add(Cli::command()))
}

const MODELS_HELP: &str = "\
The check costs nothing: it asks each provider for its list of models. The exit code is 4 when the provider
of a model in use does not answer or refuses its key.";

const PROVE_HELP: &str = "\
The command makes a temporary home, project and home directory with baits in them, and attacks them with
this program, the limits of your configuration and the rules of the organisation. It touches none of your
files and sends nothing anywhere. Each line has a control: the same attack without the wall. `held` means
that the attack was stopped and its control succeeded. `NOT HELD` means that the attack succeeded. `untried`
means that the line shows nothing on this machine, and says why. The exit code is 1 when a line is NOT HELD,
and when no line held. Without --all the command shows how many lines held, and each line that did not.
With --all the end lists, as `not here`, the claims of docs/security/claims.md that no line tries, each with
what a try would need.

With --json each line is an object: line (its name), says, verdict (held, not_held, untried), because (how
the attack ended), control (how the same attack ended without the wall), wall, claim (in
docs/security/claims.md), millis; then one object with claim, verdict (elsewhere) and because for each claim
that no line tries.";

const REPLAY_HELP: &str = "\
The turn loop, the gate with the rules in force, the tools and the screen run again, over a journal of their
own in a temporary folder. The replies of models, the results of effects and the answers of people come from
the recording. The replay asks, performs and writes nothing else. `bailey guide audit` says which sessions cannot
be replayed.

Exit codes: 0 the same, 1 the replay differs from the recording (the command shows the entry and both
versions), 2 wrong arguments or rules, 5 the journal is broken.";

const START_HELP: &str = "\
While the daemon runs, `bailey chat` connects to it: the agent goes on when the terminal is closed, and
`bailey chat --resume SESSION` comes back to it, from several terminals at once. The end of the daemon is
not an emergency stop: that is `bailey estop`. A turn that was cut off, also by a power cut, goes on at the
next start. See `bailey guide daemon`.";

#[derive(Debug, clap::Args)]
pub(crate) struct Models {
    /// Only show the configuration; ask no provider
    #[arg(long)]
    pub(crate) offline: bool,
    /// Also list the models that this provider names
    #[arg(value_name = "PROVIDER")]
    pub(crate) provider: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give the agent a task in this repository
    Run(run::Args),
    /// Run tasks on a schedule, under the daemon
    #[command(subcommand)]
    Schedule(schedule::Args),
    /// Back up this home: its journal, settings, rules and people, as files that anybody can check
    Backup(bailey_backup::Args),
    /// Restore this home from a backup
    Restore(bailey_backup::RestoreArgs),
    /// Manage the chat channels, such as Telegram, and the people who may write there
    #[command(subcommand)]
    Channels(channels::Args),
    /// Manage MCP servers, whose tools the agent may use inside the walls
    #[command(subcommand)]
    Mcp(Mcp),
    /// Manage the logins of the web page, where you work with the agent in a browser
    #[command(subcommand, alias = "page")]
    Web(page::Args),
    /// Talk with the agent about this repository
    Chat(chat::Args),
    /// Start the daemon of this home, so that sessions go on when a terminal is closed
    #[command(after_help = START_HELP)]
    Start {
        /// Run the daemon in the foreground, for a service manager
        #[arg(long)]
        foreground: bool,
        /// Private: let the terminal go
        #[arg(long, hide = true, requires = "foreground")]
        detached: bool,
        /// End when standard input ends, for a program that supervises the daemon
        #[arg(long, requires = "foreground")]
        held: bool,
    },
    /// Stop the daemon after its running turns have ended
    Stop {
        /// How long to wait for running turns; a turn that still runs then goes on at the next start
        #[arg(long, value_name = "SECONDS", default_value_t = 30)]
        patience: u64,
    },
    /// Show whether the daemon runs, and its sessions
    ///
    /// The exit code is 1 when no daemon runs.
    Status,
    /// Make the daemon read the configuration and the rules again; after a mistake it keeps the old ones
    Reload,
    /// Show the log of the daemon; `bailey audit log` shows what sessions did
    Logs {
        /// Keep showing new lines
        #[arg(long, short)]
        follow: bool,
        /// How many of the last lines to show first
        #[arg(long, short = 'n', value_name = "LINES", default_value_t = 50)]
        lines: usize,
    },
    /// List sessions, and apply, discard or undo their changes
    #[command(subcommand)]
    Sessions(Sessions),
    /// List and answer the questions of waiting sessions, from any terminal
    #[command(subcommand)]
    Approvals(Approvals),
    /// Stop all agents of this home at once; nothing begins until you release the stop
    Estop {
        /// The reason, which the journal keeps
        #[arg(long, short, default_value = "", conflicts_with = "release")]
        reason: String,
        /// Release the stop; this asks on the terminal
        #[arg(long)]
        release: bool,
        /// With --release: drop what would go on by itself, messages that wait in channels and the work of
        /// the daemon's sessions
        #[arg(long, requires = "release")]
        drop: bool,
    },
    /// List the background processes of agents, such as servers, or end one
    ///
    /// A background process ends with its session's process at the latest: with the turn of `bailey run`, or
    /// with the conversation of `bailey chat`.
    Ps {
        /// End this process, and wait until it has ended
        #[arg(long, value_name = "SESSION/NUMBER")]
        stop: Option<String>,
    },
    /// Show the usage of today, and the limits
    Budget {
        /// Show what this session and its sub-agents used in all, instead
        #[arg(long, value_name = "SESSION")]
        session: Option<String>,
    },
    /// Read and verify the journal
    #[command(subcommand)]
    Audit(Audit),
    /// Show, check and explain the rules
    #[command(subcommand)]
    Policy(Policy),
    /// Replay a session from the journal, without a model and without effects, and show where it differs from
    /// the recording
    #[command(after_help = REPLAY_HELP)]
    Replay(replay::Args),
    /// Run a command inside the walls without an agent, or check the walls
    #[command(subcommand)]
    Sandbox(Sandbox),
    /// Prepare workspaces in advance, with the dependencies of a project installed
    #[command(subcommand, alias = "pool")]
    Prewarm(prewarm::Args),
    /// Set up this home: the configuration, the default rules, and on a terminal a model
    Init(Init),
    /// Check everything that Bailey needs, and say how to fix what is missing
    Doctor {
        /// Ask no model provider
        #[arg(long)]
        offline: bool,
        /// Also show which tiers of code may run here, and the details of warnings
        #[arg(long, short)]
        verbose: bool,
    },
    /// Attack this installation in a temporary place, and show for each wall and check whether it held
    #[command(after_help = PROVE_HELP)]
    Prove {
        /// Only the lines whose names begin with this word
        #[arg(value_name = "LINE")]
        lines: Vec<String>,
        /// Show every line with its control, and the claims that no line tries
        #[arg(long)]
        all: bool,
    },
    /// Show, set, edit and check the configuration
    #[command(subcommand)]
    Config(Config),
    /// Store keys where only Bailey finds them
    #[command(subcommand)]
    Secrets(Secrets),
    /// Show the configured models, and check that each provider answers and accepts its key
    #[command(after_help = MODELS_HELP)]
    Models(Models),
    /// Show or change whether a repository's own settings are used
    #[command(subcommand)]
    Trust(Trust),
    /// Manage the named agents of this home, each with its own personality, model, tools and limits
    #[command(subcommand)]
    Agent(Agent),
    /// Show or accept SOUL.md, the personality of your agent in every session
    #[command(subcommand)]
    Soul(Soul),
    /// Show the tools that a model gets
    #[command(subcommand)]
    Tools(Tools),
    /// Print a guide: how something is done, in a few minutes of reading
    Guide {
        /// The guide; without it, the list of them
        #[arg(value_parser = PossibleValuesParser::new(crate::commands::guide_names()))]
        name: Option<String>,
    },
    /// Print a completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the man page, or write a page for each command
    Man {
        /// Write the pages to this directory
        directory: Option<PathBuf>,
    },
    /// Print the version and how this program was built
    Version,
    /// Say which version this is, and how to get the next one
    Update,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Prove {
    /// The number of the entry, as `audit log` shows it
    #[arg(required_unless_present = "since", conflicts_with = "since")]
    pub(crate) entry: Option<u64>,
    /// Prove that what was there at this checkpoint is still there, and came first
    #[arg(long, value_name = "CHECKPOINT")]
    pub(crate) since: Option<u64>,
    /// Also show what the entry says beside the chain: the message, the command, the output
    #[arg(long, requires = "entry")]
    pub(crate) payload: bool,
    /// Begin at this later public key, which whoever checks it has: the proof is shorter
    #[arg(long, value_name = "PUB")]
    pub(crate) from: Option<String>,
    /// Write the proof to this file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sandbox {
    /// Run a command inside the walls in this directory, and discard its changes
    ///
    /// Its output is printed as it comes, with the keys that Bailey knows taken out; of more than 1 MiB of a
    /// stream the last 64 KiB come at the end, and what lies between is left out. It reads nothing from
    /// standard input. The exit code is the command's own, or 128 and its signal.
    Run {
        /// Work in this directory's repository
        #[arg(long, short = 'C', value_name = "DIR")]
        directory: Option<PathBuf>,
        /// The system calls that the command may make: strict, standard, standard-net, or a profile of your
        /// own [default: the profile of the configuration]
        #[arg(long, value_name = "NAME")]
        profile: Option<String>,
        /// Give the command a way to the network: the network door passes the requests that your rules allow
        /// (`bailey guide network`)
        #[arg(long)]
        network: bool,
        /// Keep the session, so that you can look at its changes or apply them
        #[arg(long)]
        keep: bool,
        /// Give the session this name
        #[arg(long = "as", value_name = "SESSION", hide = true, requires = "keep")]
        session: Option<String>,
        /// The command
        #[arg(required = true, last = true)]
        command: Vec<String>,
    },
    /// Try the walls on this machine, and show which of them hold
    Doctor,
}
