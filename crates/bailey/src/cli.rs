//! The arguments of every command.

mod daemon;
mod examples;
mod journal;
mod rules;
mod setup;
#[cfg(test)]
mod tests;
mod work;

pub(crate) use crate::config::Store;
use bailey_channels::command as channels;
use bailey_daemon::schedule;
use bailey_replay::command as replay;
use bailey_session::{chat, pool, run};
use bailey_web::command as page;
pub(crate) use daemon::Agent;
pub(crate) use journal::{Archive, Audit, Export};
pub(crate) use rules::{Approvals, Extensions, Policy, Simulate, Update};
pub(crate) use setup::{Config, Does, Explain, NO_ARGUMENT, Role, Secrets, Soul, Tools, Trust, TrustTier};
pub(crate) use work::{Approve, Sessions};

use crate::{
    exit,
    print::{Color, Printer},
};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::path::PathBuf;

/// The heading of what every command takes.
const GENERAL: &str = "General options";

const EXIT_CODES: &str = "\
Exit codes:
  0  done                      4    no model answered
  1  failed                    5    the journal is broken or cannot be written
  2  wrong arguments, rules    6    changes kept back: the project had changed meanwhile
     or configuration          7    the turn pauses at a limit, or waits for you
  3  denied, or not approved   129  ended because the terminal was closed
                               130  ended by Ctrl-C
                               141  ended because nobody reads its output
                               143  ended because it was asked to (SIGTERM)";

/// A self-hosted runtime for AI agents: inside the walls an agent may do anything; through the gate nothing
/// passes without a permit.
#[derive(Debug, Parser)]
#[command(name = "bailey", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    /// Print JSON, one object a line
    #[arg(long, global = true, help_heading = GENERAL)]
    pub(crate) json: bool,
    /// When to use colour
    #[arg(long, global = true, help_heading = GENERAL, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
    /// Bailey's home [default: $BAILEY_HOME, or ~/.bailey]
    #[arg(long, global = true, help_heading = GENERAL, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// One of the home's named agents, in place of the home's own
    #[arg(long, global = true, help_heading = GENERAL, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Private: the process that serves one session of a conversation, and the descriptors of what is left to
    /// the next one; of a task beneath the daemon, its session and the name of what is said to it
    #[arg(long, hide = true, value_name = "FD,FD")]
    pub(crate) seat: Option<String>,
    /// Private: the process that serves a session beneath the daemon
    #[arg(long, hide = true)]
    pub(crate) desk: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// What was typed; who typed something wrong, or asked for help, gets that and the program ends.
    pub(crate) fn typed() -> Self {
        let matches = command().try_get_matches();
        let matches =
            matches.unwrap_or_else(|error| ended(&setup::without_values(error, std::env::args_os())));
        Self::from_arg_matches(&matches).unwrap_or_else(|error| ended(&error))
    }
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
    examples::add(Cli::command())
}

const MODELS_HELP: &str = "\
Asking costs nothing: each provider is asked for its list of models. Exit code 4 when the provider of a model
that is in use is not there or refuses its key.";

const PROVE_HELP: &str = "\
Everything is tried in a temporary home, project and home directory with baits in them, by this program, with your
configuration's limits and the organisation's rules; nothing of yours is touched, and nothing is sent anywhere. Each line
has a control: the same attack without the wall. `held` says that the attack was stopped and its control succeeded, `NOT
HELD` that the attack succeeded, `untried` that it shows nothing here, and why. Exit code 1 when a line is NOT HELD, and
when none held, for then nothing is shown. Claims of docs/security/claims.md that no line tries are named at the end,
`not here`, each with what a try would need.

With --json each line is an object: line (its name), says, verdict (held, not_held, untried), because (how the attack
ended), control (how the same ended without the wall), wall, claim (in docs/security/claims.md), millis; then one with
claim, verdict (elsewhere) and because for each claim that no line tries.";

const REPLAY_HELP: &str = "\
The turn loop, the gate with the rules in force, the tools and the screen do their work once more, over a journal of their own in
a temporary folder; what models said and what effects brought comes from the recording, as do answers of humans. Nothing is
asked, performed or written anywhere else. See docs/audit.md for what cannot be run again.

Exit codes: 0 the same, 1 it parts from the recording (the entry, what was recorded and what came now are shown), 2 wrong arguments or
rules, 5 the journal is broken.";

const START_HELP: &str = "\
Where the daemon runs, `bailey chat` is its client: what the agent does goes on when the terminal is closed, and `bailey chat
--resume SESSION` comes back to it, from several terminals at once. The end of the daemon is no emergency stop: that is
`bailey estop`. A turn that was cut off, also by a power cut, goes on with the next start. See docs/daemon.md.";

#[derive(Debug, clap::Args)]
pub(crate) struct Models {
    /// Ask nobody: only show what is configured
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
    /// Tasks that are done by the clock, beneath the daemon
    #[command(subcommand)]
    Schedule(schedule::Args),
    /// Copy this home: its journal, settings, rules and people, in files that everybody can check
    Backup(bailey_backup::Args),
    /// Put a copy of a home in this home's place
    Restore(bailey_backup::RestoreArgs),
    /// Talk with the agent from a phone: chat channels, and who may speak there
    #[command(subcommand)]
    Channels(channels::Args),
    /// Work with the agent in a browser: who is let in at the page
    #[command(subcommand)]
    Page(page::Args),
    /// Talk with the agent about this repository
    Chat(chat::Args),
    /// Start the daemon of this home: sessions that live on when a terminal is closed
    #[command(after_help = START_HELP)]
    Start {
        /// Stay here and run it, for a service manager
        #[arg(long)]
        foreground: bool,
        /// Private: let the terminal go
        #[arg(long, hide = true, requires = "foreground")]
        detached: bool,
        /// End when standard input ends: whoever holds it looks after this daemon
        #[arg(long, requires = "foreground")]
        held: bool,
    },
    /// End the daemon, once the turns that run have ended
    Stop {
        /// How long they are waited for; what still runs then is begun again with the next start
        #[arg(long, value_name = "SECONDS", default_value_t = 30)]
        patience: u64,
    },
    /// Show the daemon, and the sessions that it runs
    ///
    /// Exit code 1 where none runs.
    Status,
    /// Have the daemon read the configuration and the rules again, whole or not at all
    Reload,
    /// Show what happened to the daemon; what happened in sessions is in the journal
    Logs {
        /// Go on showing what happens
        #[arg(long, short)]
        follow: bool,
        /// How many lines of what was before
        #[arg(long, short = 'n', value_name = "LINES", default_value_t = 50)]
        lines: usize,
    },
    /// Look at sessions, and move what they changed to the project and back
    #[command(subcommand)]
    Sessions(Sessions),
    /// Answer the questions of sessions that wait, from any terminal
    #[command(subcommand)]
    Approvals(Approvals),
    /// Stop everything that any agent of this home does, at once, until it is released
    Estop {
        /// Why; the journal is told
        #[arg(long, short, default_value = "", conflicts_with = "release")]
        reason: String,
        /// Let things begin again; asked on the terminal
        #[arg(long)]
        release: bool,
    },
    /// Show what agents run in the background, such as servers, or end one
    ///
    /// Such a process ends with its session's process at the latest: of `bailey run` with the turn, of
    /// `bailey chat` with the conversation.
    Ps {
        /// End this one, and wait until it has ended
        #[arg(long, value_name = "SESSION/NUMBER")]
        stop: Option<String>,
    },
    /// Show what was used up today, and what may be
    Budget,
    /// Read and verify the journal
    #[command(subcommand)]
    Audit(Audit),
    /// Show, check and explain the rules
    #[command(subcommand)]
    Policy(Policy),
    /// Run a session again from its journal, without a model and without effects, and say where it parts from
    /// what was recorded
    #[command(after_help = REPLAY_HELP)]
    Replay(replay::Args),
    /// Use the walls without an agent
    #[command(subcommand)]
    Sandbox(Sandbox),
    /// Make workspaces ready ahead, with a project's dependencies loaded
    #[command(subcommand)]
    Pool(pool::Args),
    /// Write a commented configuration and the default rules
    Init,
    /// Say whether everything that Bailey stands on is there, and how to get what is not
    Doctor {
        /// Ask no provider of models
        #[arg(long)]
        offline: bool,
    },
    /// Attack this installation in a place of its own, and say of each wall and check whether it held
    #[command(after_help = PROVE_HELP)]
    Prove {
        /// Only the lines whose names begin so
        #[arg(value_name = "LINE")]
        lines: Vec<String>,
    },
    /// Show, edit and check the configuration
    #[command(subcommand)]
    Config(Config),
    /// Keep keys where Bailey finds them and nobody else does
    #[command(subcommand)]
    Secrets(Secrets),
    /// Show which models are configured, and ask each provider whether it is there and takes its key
    #[command(after_help = MODELS_HELP)]
    Models(Models),
    /// Say whether a repository's own settings are used
    #[command(subcommand)]
    Trust(Trust),
    /// Several agents in one home, each with a personality, a model, tools and limits of its own
    #[command(subcommand)]
    Agent(Agent),
    /// The personality that your agent has in every session: SOUL.md of Bailey's home
    #[command(subcommand)]
    Soul(Soul),
    /// Show the tools that a model gets
    #[command(subcommand)]
    Tools(Tools),
    /// Print a completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the man page, or write a page for each command
    Man {
        /// Write them to this directory
        directory: Option<PathBuf>,
    },
    /// Print the version and how this program was built
    Version,
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
    /// Run a command inside the walls, over this directory; its changes are thrown away
    ///
    /// Its output is printed as it comes, with the keys that Bailey knows taken out; of more than 1 MiB of a
    /// stream the last 64 KiB come at the end, and what lies between is left out. It reads nothing from
    /// standard input. The exit code is the command's own, or 128 and its signal.
    Run {
        /// Work over this directory's repository
        #[arg(long, short = 'C', value_name = "DIR")]
        directory: Option<PathBuf>,
        /// The system calls that it may make: strict, standard, standard-net, or a profile of your own
        /// [default: that of the configuration]
        #[arg(long, value_name = "NAME")]
        profile: Option<String>,
        /// With a way to the network: the door lets pass what your rules allow (docs/network.md)
        #[arg(long)]
        network: bool,
        /// Keep the session, to look at its changes or to apply them
        #[arg(long)]
        keep: bool,
        /// Name the session so
        #[arg(long = "as", value_name = "SESSION", hide = true, requires = "keep")]
        session: Option<String>,
        /// The command
        #[arg(required = true, last = true)]
        command: Vec<String>,
    },
    /// Try the walls, and say which of them stand here
    Doctor,
}
