//! What a human may grant beyond one exact command: a program, maybe with its subcommand, and any plain arguments.

use crate::{
    command::{CommandPrefix, Words, is_shell, programs},
    programs::{Nature, Programs},
};
use alloc::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};
use bailey_protocol::{Command, Limits, WsPath};
use core::fmt;
use serde::{Deserialize, Serialize};

/// A pattern of commands: those that begin like one of them, written as that one was (alone, or as the line of the same
/// shell), in its directory, within its limits. It covers no command that runs another program or code of its arguments,
/// none with variables, standard input or a way to the network, none in the background, and none that cannot be read for certain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    command: CommandPrefix,
    /// The shell whose line it is.
    shell: Option<String>,
    cwd: WsPath,
    limits: Limits,
}

/// Why a command can be granted as it is only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPattern {
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
    /// The pattern around a command: its program.
    ///
    /// # Errors
    /// When only the command itself can be granted; the text says why.
    pub fn around(command: &Command) -> Result<Self, NoPattern> {
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

    /// Whether it covers a command.
    #[must_use]
    pub fn covers(&self, command: &Command) -> bool {
        let is_alike = self.shell.as_deref() == shell(command)
            && self.cwd == command.cwd
            && is_within(&command.limits, &self.limits);
        is_alike && plain(command).is_ok_and(|words| self.command.begins(&words))
    }

    /// The command that a covered one begins with, alone: what it names is the program and, where there is one, the shell.
    #[must_use]
    pub fn bare(&self) -> Command {
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

    /// All that a yes to it covers, in words.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { command, shell, cwd, .. } = self;
        let by = shell.as_ref().map_or_else(String::new, |shell| format!(" of `{shell} -c`"));
        format!(
            "every `{command} …`{by} in {cwd} without network, variables or standard input, within these limits, until this \
             session ends or the rules change"
        )
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} …", self.command)
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
    let found: Result<[Words; 1], _> = programs(command, Programs::KNOWN).try_into();
    let named = command.argv.first().cloned().unwrap_or_default();
    let (words, hidden_at) = match found {
        Ok([Words::Known { words, hidden_at, .. }]) => (words, hidden_at),
        Ok([Words::Hidden]) if Programs::KNOWN.nature(&named) == Some(Nature::Launcher) => {
            return Err(NoPattern::Runs(named));
        }
        Ok([Words::Hidden]) | Err(_) => return Err(NoPattern::Hidden),
    };
    let program = words.first().cloned().unwrap_or_default();
    let nature = Programs::KNOWN.nature(&program).filter(|_| !program.contains('/'));
    match nature {
        None => Err(NoPattern::Unknown(program)),
        Some(Nature::Builder | Nature::Interpreter | Nature::Launcher) => Err(NoPattern::Runs(program)),
        Some(_) if Programs::KNOWN.obeys(&program) || Programs::KNOWN.has_subcommands(&program) => {
            Err(NoPattern::Obeys(program))
        }
        Some(Nature::Plain | Nature::Sed) => match hidden_at.or_else(|| writes_at(&words)) {
            None => Ok(words),
            Some(place) => {
                let word = words.get(place).map_or_else(|| "standard input".to_string(), Clone::clone);
                Err(NoPattern::Option(word))
            }
        },
    }
}
