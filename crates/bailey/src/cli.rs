//! The arguments of every command.

mod examples;
mod reference;
mod setup;
#[cfg(test)]
mod tests;

pub(crate) use crate::config::Store;
pub(crate) use reference::reference;
pub(crate) use setup::{Config, Does, Explain, NO_ARGUMENT, Role, Secrets, Soul, Tools, Trust, TrustTier};

use crate::{exit, print::Printer};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
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

/// A self-hosted runtime for AI agents: inside the walls an agent may do anything; through the gate nothing passes
/// without a permit.
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
    /// Private: the process that serves one session of a conversation, and the descriptors of what is left to the next one; of a task
    /// beneath the daemon, its session and the name of what is said to it
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
    exit::now(code)
}

/// The whole command line, with its examples.
pub(crate) fn command() -> clap::Command {
    examples::add(Cli::command())
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

const MODELS_HELP: &str = "\
Asking costs nothing: each provider is asked for its list of models. Exit code 4 when the provider of a model
that is in use is not there or refuses its key.";

const PROVE_HELP: &str = "\
Everything is tried in a temporary home, project and home directory with baits in them, by this program, with your
configuration's limits and the organisation's rules; nothing of yours is touched, and nothing is sent anywhere. Each line
has a control: the same attack without the wall. `held` says that the attack was stopped and its control succeeded, `NOT
HELD` that the attack succeeded, `untried` that it shows nothing here, and why. Exit code 1 when a line is NOT HELD, and
when none held, for then nothing is shown. What SECURITY.md claims beyond that is named at the end, `not here`, each with
what a try would need.

With --json each line is an object: line (its name), says, verdict (held, not_held, untried), because (how the attack
ended), control (how the same ended without the wall), wall, claim (in SECURITY.md), millis; then one with claim, verdict
(elsewhere) and because for each claim that no line tries.";

const SIMULATE_HELP: &str = "\
The rules in force and the draft judge the same recorded actions, each with the time, the project and the revealed files of
then. Answers of humans, tokens and extensions are no rules and are not counted. BREAKING marks what is allowed and would be
denied, OPENS what would be allowed without a question. What the journal does not hold in full any more is named.

Exit codes: 0 nothing would be decided otherwise, 1 something would, 2 the draft has mistakes or breaks an example.";

const REPLAY_HELP: &str = "\
The turn loop, the gate with the rules in force, the tools and the screen do their work once more, over a journal of their own in
a temporary folder; what models said and what effects brought comes from the recording, as do answers of humans. Nothing is
asked, performed or written anywhere else. See docs/replay.md for what cannot be run again.

Exit codes: 0 the same, 1 it parts from the recording (the entry, what was recorded and what came now are shown), 2 wrong arguments or
rules, 5 the journal is broken.";

const START_HELP: &str = "\
Where the daemon runs, `bailey chat` is its client: what the agent does goes on when the terminal is closed, and `bailey chat
--resume SESSION` comes back to it, from several terminals at once. The end of the daemon is no emergency stop: that is
`bailey estop`. A turn that was cut off, also by a power cut, goes on with the next start. See docs/daemon.md.";

const BACKUP_HELP: &str = "\
The copy is whole or not there. `sha256sum -c SHA256SUMS` in it checks it without Bailey. It has no key that signs the journal; keys are in it where they lie sealed,
and those of .env with --with-keys. What sessions have not applied yet is not in it.";

const RESTORE_HELP: &str = "\
The copy is checked first, file by file, and the journal in it from its first entry to its last; then it takes the home's place at once, or nothing changes. What was there is
moved beside the home, and named. Keys, waiting changes of sessions and the other copies go on in the new one. Nobody may use the home meanwhile.

Exit codes: 0 done, 1 not done, 5 the copy's journal does not hold.";

const UPDATE_HELP: &str = "\
The new rules are read with all other files of the home, their examples are tried, and they judge again the last 100 decisions
of the journal (see `bailey policy simulate`). Where more than five are BREAKING, anything OPENS, or nothing was recorded yet, a
phrase must be typed on the terminal, or given with --confirm; under compliance always, on the terminal and with a reason. The
change is recorded before and after it is made; the file is replaced whole or not at all, and running sessions obey from their
next action on.

Exit codes: 0 done or nothing to do, 1 not done, 2 the rules have mistakes or break an example, 3 not confirmed or denied.";

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
        #[arg(long, value_name = "NUMBER")]
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
        #[arg(long, value_name = "NUMBER")]
        tokens: Option<u64>,
        /// What each time may do, and nothing else: `read,list:src`, `exec:cargo test`, `http:HOST`; several times [default: all that your
        /// rules allow, or ask you about]
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
    Run(Run),
    /// Tasks that are done by the clock, beneath the daemon
    #[command(subcommand)]
    Schedule(Schedule),
    /// Copy this home: its journal, settings, rules and people, in files that everybody can check
    #[command(after_help = BACKUP_HELP)]
    Backup {
        /// Where to; without it into the home's own `backups`, of which the last five are kept
        #[arg(value_name = "DIR")]
        to: Option<PathBuf>,
        /// With the keys of `.env`, too
        #[arg(long)]
        with_keys: bool,
    },
    /// Put a copy of a home in this home's place
    #[command(after_help = RESTORE_HELP)]
    Restore {
        /// A copy that `bailey backup` made
        #[arg(value_name = "DIR")]
        from: PathBuf,
    },
    /// Talk with the agent from a phone: chat channels, and who may speak there
    #[command(subcommand)]
    Channels(Channels),
    /// Work with the agent in a browser: who is let in at the page
    #[command(subcommand)]
    Page(Page),
    /// Talk with the agent about this repository
    Chat(Chat),
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
    /// Such a process ends with its session's process at the latest: of `bailey run` with the turn, of `bailey chat` with the
    /// conversation.
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
    /// Run a session again from its journal, without a model and without effects, and say where it parts from what was recorded
    #[command(after_help = REPLAY_HELP)]
    Replay(Replay),
    /// Use the walls without an agent
    #[command(subcommand)]
    Sandbox(Sandbox),
    /// Make workspaces ready ahead, with a project's dependencies loaded
    #[command(subcommand)]
    Pool(Pool),
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
    /// Print the help of all commands as one Markdown document: docs/commands.md
    #[command(hide = true)]
    Reference,
}

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
    /// Reveal a masked file, such as .env, to this session
    #[arg(long, value_name = "PATH")]
    pub(crate) reveal: Vec<PathBuf>,
    /// Keep these words in front of the model for the whole session, whatever is summed up
    #[arg(long, value_name = "TEXT")]
    pub(crate) pin: Vec<String>,
    /// Show what commands print while they run
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Let the session use up so many tokens at most, where `limits.session_tokens` is not lower
    #[arg(long, value_name = "NUMBER")]
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

/// Who answers the questions of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Answering {
    /// Ask on the terminal; without one, answer with no
    Ask,
    /// Ask nobody here: the model works on, and the turn ends while `bailey approvals` has questions to answer
    Later,
    /// Answer every question with no
    Never,
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
    /// Without any walls: commands and changes happen on this machine itself, at once, and each is asked about
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
    /// Without any walls: commands and changes happen on this machine itself, at once, and each is asked about
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
        /// Only these files and what lies below them; they count from the project's root, and something must have changed at
        /// each
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
        /// Only these files and what lies below them; they count from the project's root, and something must have changed at
        /// each
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Ask about each hunk, and apply those that you pick
        #[arg(long, conflicts_with = "only")]
        hunks: bool,
        /// Only these hunks, as `sessions diff --hunks` names them; refused where the file is not what was shown
        #[arg(long, value_name = "PATH:NUMBERS@DIGITS", conflicts_with = "paths")]
        only: Vec<String>,
        /// Whether to ask about what is Red; with `never` nothing is applied where something of it is Red, so name
        /// the files that are not
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
        question: String,
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
pub(crate) enum Audit {
    /// Show the newest entries
    Log {
        /// How many
        #[arg(long, short = 'n', default_value_t = 50)]
        last: u32,
        /// Of this session only
        #[arg(long, value_name = "SESSION")]
        session: Option<String>,
    },
    /// Check every link of the chain, every payload and every checkpoint, and say up to when they are signed
    Verify {
        /// The first public key, as it was kept elsewhere: what is signed must follow from it
        #[arg(long, value_name = "PUB")]
        key: Option<String>,
    },
    /// Prove to somebody else that an entry is in the journal, or that the journal only grew since a checkpoint
    Prove(Prove),
    /// Check a proof or an archive; this needs no journal, only the key
    ///
    /// The exit code is 0 where it holds and 1 where it does not. docs/audit_check.py does the same.
    Check {
        /// The file of the proof or the archive, or - for standard input
        file: PathBuf,
        /// The public key: 64 hexadecimal digits, or a file that holds them
        #[arg(long, value_name = "PUB")]
        key: String,
    },
    /// Sign what the journal holds, and print the first public key, to keep it elsewhere
    Key,
    /// Print every entry as a JSON line, with its hash and payload; or what was done as spans
    Export(Export),
    /// Private: the process that tells a collector what is done, beneath the daemon
    #[command(hide = true)]
    Send,
    /// Move sessions that nobody needs any more out of the journal, into files beside it
    ///
    /// A session leaves whole; what is needed stays: changes to apply or to take back, open questions, tokens, what a process
    /// has. The hashes stay, so that the journal proves what it proved. With `keep_days` in config.toml this happens by itself.
    Archive(Archive),
    /// Verify the chain, then make everything that follows from it anew, and say what was not as the chain says
    Rebuild,
    /// Bring what can still be read of a damaged journal into a new one, which takes its place, and say what was lost
    ///
    /// Nobody may use the home meanwhile. What is damaged is kept beside it and deleted by nobody. The copies of the home
    /// (`backups/`) are asked for what is missing.
    Salvage {
        /// Another copy of this home to ask; may be given several times
        #[arg(long = "copy", value_name = "DIR")]
        copies: Vec<PathBuf>,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// Print spans for a collector of OpenTelemetry, without what was said: OTLP/JSON, a request in each line
    #[arg(long, group = "spans")]
    pub(crate) otlp: bool,
    /// Print stacks with milliseconds, which tools for flame graphs read
    #[arg(long, group = "spans")]
    pub(crate) folded: bool,
    /// Of this session only, with its sub-agents
    #[arg(long, value_name = "SESSION", requires = "spans")]
    pub(crate) session: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Archive {
    /// Sessions that were last used before this day (UTC), such as 2026-01-31; else `journal.keep_days` says
    #[arg(long, value_name = "DAY")]
    pub(crate) before: Option<String>,
    /// Only say what would leave, and what stays
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Show the archives there are
    #[arg(long, conflicts_with_all = ["before", "dry_run"])]
    pub(crate) list: bool,
    /// As a session starts it
    #[arg(long, hide = true)]
    pub(crate) due: bool,
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
pub(crate) enum Policy {
    /// Show the rules in force, Bailey's own first
    Show {
        /// This rule in full
        rule: Option<String>,
    },
    /// Read the rule files and say what is wrong with them
    Check,
    /// Try the examples that rules carry, and say which of them the rules do not keep; exit code 1 when one fails
    ///
    /// A rule carries them as `examples = { allow = ["exec cargo test"], ask = [], deny = [] }`: read, stat, list, search or
    /// diff with a path, change, apply, undo or discard with paths, exec with a command, http or model with a URL. Bailey
    /// does not start while one of them fails.
    Test {
        /// These rule files, such as a draft, laid over those of the home
        files: Vec<PathBuf>,
    },
    /// Say of an action, or of an entry of the journal, what each rule makes of it; nothing is done
    Explain(Explain),
    /// Answer another runtime whether it may use its tools, line by line as JSON; docs/decide.md is the protocol
    ///
    /// Nothing is done here: that runtime runs its tools, and asks its own human where the answer is "ask". Each answer is an
    /// entry of the journal. A task ends with its input, or with a signal.
    Decide {
        /// Take questions from standard input, and answer on standard output
        #[arg(long, required = true)]
        stdio: bool,
        /// How far that runtime is trusted, for rules that say so
        #[arg(long, value_enum, value_name = "TIER", default_value = "untrusted")]
        trust: TrustTier,
    },
    /// Decide again what the journal recorded, by a draft of the rules, and say what would be decided otherwise
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
pub(crate) struct Replay {
    /// The session, or its last digits
    pub(crate) session: String,
    /// Only say what would have been decided otherwise with this rule file, or folder of them, laid over those of the home
    #[arg(long, value_name = "PATH")]
    pub(crate) policy: Vec<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Update {
    /// The new text of a rule file, or `-`: standard input; the home's file of the same name is replaced, or it is one more
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
    /// A rule file, or a folder of them, laid over those of the home: one of the same name is replaced, any other added
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

#[derive(Debug, Subcommand)]
pub(crate) enum Sandbox {
    /// Run a command inside the walls, over this directory; its changes are thrown away
    ///
    /// Its output is printed as it comes, with the keys that Bailey knows taken out; of more than 1 MiB of a stream the last
    /// 64 KiB come at the end, and what lies between is left out. It reads nothing from standard input. The exit code is the command's own, or 128 and its signal.
    Run {
        /// Work over this directory's repository
        #[arg(long, short = 'C', value_name = "DIR")]
        directory: Option<PathBuf>,
        /// The system calls that it may make: strict, standard, standard-net, or a profile of your own [default: that
        /// of the configuration]
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

#[derive(Debug, Subcommand)]
pub(crate) enum Pool {
    /// Run a command in new sessions, and keep each for a task to begin in
    ///
    /// It runs inside the walls, like any command: what it writes stays in the session's private layer and home. A task takes one with
    /// `bailey run --warm`, and goes on there.
    Add(Ready),
    /// List what is ready, and what became stale because a manifest of the project changed
    List,
    /// Let no task take this one
    Remove {
        /// Its session
        session: String,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Ready {
    /// Work over this directory's repository
    #[arg(long, short = 'C', value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// With a way to the network: the door lets pass what your rules allow (docs/network.md)
    #[arg(long)]
    pub(crate) network: bool,
    /// Make so many ready, one after the other
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=32))]
    pub(crate) count: u8,
    /// The command, such as `npm ci`
    #[arg(required = true, last = true)]
    pub(crate) command: Vec<String>,
}
