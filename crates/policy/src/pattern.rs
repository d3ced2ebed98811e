//! What a human may grant beyond one exact action: of commands a program, maybe with its subcommand, and any
//! plain arguments; of the web, the pages of one server.

use crate::{
    command::{CommandPrefix, Invocation, is_shell, programs},
    host::Host,
    programs::{Nature, Programs},
};
use alloc::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};
use bailey_protocol::{Action, Command, HttpRequest, Limits, WsPath};
use core::fmt;
use serde::{Deserialize, Serialize};

/// What one yes may cover.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Pattern {
    /// Commands that begin alike, until their session ends.
    Commands(Commands),
    /// Pages of one server, from whichever session.
    Pages(Pages),
}

/// Pages of a server: what is only fetched there, without headers or a body of the asker's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pages {
    /// Scheme, name and port.
    server: String,
}

/// A pattern of commands: those that begin like one of them, written as that one was (alone, or as the line
/// of the same shell), in its directory, within its limits. It covers no command that runs another program or
/// code of its arguments, none with variables, standard input or a way to the network, none in the
/// background, and none that cannot be read for certain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commands {
    command: CommandPrefix,
    /// The shell whose line it is.
    shell: Option<String>,
    cwd: WsPath,
    limits: Limits,
}

/// Why a command can be granted as it is only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPattern {
    /// It is neither a command nor a page of the web.
    #[error("it is neither a command nor a page of the web")]
    Kind,
    /// A request that sends something.
    #[error("it sends something of its own")]
    Sends,
    /// It is not one plain program with a plain beginning.
    #[error("what it runs cannot be told from its words")]
    Hidden,
    /// It brings variables, standard input or a way to the network, or goes on in the background.
    #[error("it brings variables, standard input or a way to the network, or goes on in the background")]
    Circumstances,
    /// The program is not known, or not by its plain name.
    #[error("`{0}` is not known to run nothing else")]
    Unknown(String),
    /// The program is there to run others, or code.
    #[error("`{0}` is there to run other programs or code")]
    Runs(String),
    /// Settings in files tell the program what to run.
    #[error("files in the workspace can tell `{0}` what to run")]
    Obeys(String),
    /// An argument makes the program run another one, or write.
    #[error("its argument `{0}` makes it run something else, or write where nobody looks")]
    Option(String),
}

impl Pattern {
    /// The pattern around an action.
    ///
    /// # Errors
    /// When only the action itself can be granted; the text says why.
    pub fn around(action: &Action) -> Result<Self, NoPattern> {
        match action {
            Action::Exec(command) => Commands::around(command).map(Self::Commands),
            Action::Fetch { request, .. } => Pages::around(request).map(Self::Pages),
            _ => Err(NoPattern::Kind),
        }
    }

    /// Whether it covers an action.
    #[must_use]
    pub fn covers(&self, action: &Action) -> bool {
        match (self, action) {
            (Self::Commands(own), Action::Exec(command)) => own.covers(command),
            (Self::Pages(own), Action::Fetch { request, .. }) => Pages::around(request).as_ref() == Ok(own),
            _ => false,
        }
    }

    /// Whether it holds in every session of the home, and not only where it was granted.
    #[must_use]
    pub fn is_of_home(&self) -> bool {
        matches!(self, Self::Pages(_))
    }

    /// The server whose pages it covers: scheme, name and port.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::Commands(_) => None,
            Self::Pages(own) => Some(&own.server),
        }
    }

    /// The command that a covered one begins with, alone; none of what is no command.
    #[must_use]
    pub fn bare(&self) -> Option<Command> {
        match self {
            Self::Commands(own) => Some(own.bare()),
            Self::Pages(_) => None,
        }
    }

    /// All that a yes to it covers, in words.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Commands(own) => own.words(),
            Self::Pages(own) => own.words(),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commands(own) => write!(f, "{} …", own.command),
            Self::Pages(own) => write!(f, "{}/…", own.server),
        }
    }
}

impl Pages {
    fn around(request: &HttpRequest) -> Result<Self, NoPattern> {
        let is_plain = matches!(request.method.as_str(), "GET" | "HEAD")
            && request.headers.is_empty()
            && request.body.0.is_empty();
        let host = Host::of(&request.url).filter(|_| is_plain).ok_or(NoPattern::Sends)?;
        let scheme = if request.url.starts_with("https://") { "https" } else { "http" };
        Ok(Self { server: format!("{scheme}://{}:{}", host.name, host.port) })
    }

    fn words(&self) -> String {
        format!(
            "every page of {} that is only fetched, in every session, until the rules change or you take it back; whoever runs that \
             server reads what the address says",
            self.server
        )
    }
}

impl Commands {
    /// The pattern around a command: its program.
    ///
    /// # Errors
    /// When only the command itself can be granted; the text says why.
    fn around(command: &Command) -> Result<Self, NoPattern> {
        let words = plain(command)?;
        let prefix = CommandPrefix::new(words.first().map_or("", String::as_str));
        let command_of = |prefix| Self {
            command: prefix,
            shell: shell(command).map(ToString::to_string),
            cwd: command.cwd.clone(),
            limits: command.limits.clone(),
        };
        prefix.map(command_of).map_err(|_| NoPattern::Hidden)
    }

    fn covers(&self, command: &Command) -> bool {
        let is_alike = self.shell.as_deref() == shell(command)
            && self.cwd == command.cwd
            && is_within(&command.limits, &self.limits);
        is_alike && plain(command).is_ok_and(|words| self.command.begins(&words))
    }

    /// What it names is the program and, where there is one, the shell.
    fn bare(&self) -> Command {
        let words: Vec<String> = self.command.clone().into();
        let program = words.into_iter().next().unwrap_or_default();
        let argv = match &self.shell {
            Some(shell) => [shell.clone(), "-c".to_string(), program].into(),
            None => [program].into(),
        };
        Command {
            argv,
            cwd: self.cwd.clone(),
            env: BTreeMap::new(),
            stdin: None,
            network: false,
            background: false,
            limits: self.limits.clone(),
        }
    }

    fn words(&self) -> String {
        let Self { command, shell, cwd, .. } = self;
        let by = shell.as_ref().map_or_else(String::new, |shell| format!(" of `{shell} -c`"));
        format!(
            "every `{command} …`{by} in {cwd} without network, variables or standard input, within these limits, until this \
             session ends or the rules change"
        )
    }
}

/// The shell whose line a command is.
fn shell(command: &Command) -> Option<&str> {
    match command.argv.as_slice() {
        [shell, dash_c, _] if dash_c == "-c" && is_shell(shell) => Some(shell),
        _ => None,
    }
}

fn writes_at(words: &[String]) -> Option<usize> {
    Programs::KNOWN.writes_at(words, &Programs::KNOWN.takes(words))
}

fn is_within(given: &Limits, most: &Limits) -> bool {
    // Each by its name: a new limit has to be thought of here.
    let Limits { wall_ms, memory_bytes, disk_bytes, pids, output_bytes } = given;
    *wall_ms <= most.wall_ms
        && *memory_bytes <= most.memory_bytes
        && *disk_bytes <= most.disk_bytes
        && *pids <= most.pids
        && *output_bytes <= most.output_bytes
}

/// The words of a command that is one plain program and nothing else, maybe as a shell's line.
fn plain(command: &Command) -> Result<Vec<String>, NoPattern> {
    if !command.env.is_empty() || command.stdin.is_some() || command.network || command.background {
        return Err(NoPattern::Circumstances);
    }
    let found: Result<[Invocation; 1], _> = programs(command, Programs::KNOWN).try_into();
    let named = command.argv.first().cloned().unwrap_or_default();
    let (words, hidden) = match found {
        Ok([Invocation::Known { words, hidden, .. }]) => (words, hidden),
        Ok([Invocation::Hidden]) if Programs::KNOWN.nature(&named) == Some(Nature::Launcher) => {
            return Err(NoPattern::Runs(named));
        }
        Ok([Invocation::Hidden]) | Err(_) => return Err(NoPattern::Hidden),
    };
    let program = words.first().cloned().unwrap_or_default();
    let nature = Programs::KNOWN.nature(&program).filter(|_| !program.contains('/'));
    match nature {
        None => Err(NoPattern::Unknown(program)),
        Some(Nature::Builder | Nature::Interpreter | Nature::Launcher) => Err(NoPattern::Runs(program)),
        Some(_) if Programs::KNOWN.obeys(&program) || Programs::KNOWN.has_subcommands(&program) => {
            Err(NoPattern::Obeys(program))
        }
        Some(Nature::Plain | Nature::Sed) => match hidden.first().copied().or_else(|| writes_at(&words)) {
            None => Ok(words),
            Some(place) => {
                let word = words.get(place).map_or_else(|| "standard input".to_string(), Clone::clone);
                Err(NoPattern::Option(word))
            }
        },
    }
}
