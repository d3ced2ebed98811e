//! What a human may grant beyond one exact command: a program, maybe with its subcommand, and any plain arguments.

use crate::{
    command::{CommandPrefix, Words, programs},
    fit::Fit,
    programs::{Nature, Programs},
};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use bailey_protocol::Command;
use core::fmt;

/// A pattern of commands. It covers no command that runs another program or code of its arguments, none with variables,
/// standard input or a way to the network, and none that cannot be read for certain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(CommandPrefix);

/// Why a command can be granted as it is only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPattern {
    /// It is not one plain program with a plain beginning.
    #[error("what it runs cannot be told from its words")]
    Hidden,
    /// It brings variables, standard input or a way to the network.
    #[error("it brings variables, standard input or a way to the network")]
    Circumstances,
    /// The program is not known, or not by its plain name.
    #[error("`{0}` is not known to run nothing else")]
    Unknown(String),
    /// The program is there to run others, or code.
    #[error("`{0}` is there to run other programs or code")]
    Runs(String),
    /// An argument makes the program run another one.
    #[error("its argument `{0}` makes it run something else")]
    Option(String),
}

impl Pattern {
    /// The pattern around a command: its program or, where the first operand says what that does, both.
    ///
    /// # Errors
    /// When only the command itself can be granted; the text says why.
    pub fn around(command: &Command) -> Result<Self, NoPattern> {
        let words = plain(command)?;
        let program = words.first().map_or("", String::as_str);
        let is_word = |word: &&String| {
            !word.starts_with('-') && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        };
        let prefix = match words.get(1).filter(is_word) {
            _ if !Programs::KNOWN.has_subcommands(program) => CommandPrefix::new(program),
            Some(subcommand) => CommandPrefix::new(&format!("{program} {subcommand}")),
            None => return Err(NoPattern::Hidden),
        };
        prefix.map(Self).map_err(|_| NoPattern::Hidden)
    }

    /// Whether it covers a command.
    #[must_use]
    pub fn covers(&self, command: &Command) -> bool {
        plain(command).is_ok_and(|words| self.0.fit(&Words::Known { words, hidden_at: None }) == Fit::Yes)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} …", self.0)
    }
}

/// The words of a command that is one plain program and nothing else, maybe as a shell's line.
fn plain(command: &Command) -> Result<Vec<String>, NoPattern> {
    if !command.env.is_empty() || command.stdin.is_some() || command.network {
        return Err(NoPattern::Circumstances);
    }
    let found: Result<[Words; 1], _> = programs(command, Programs::KNOWN).try_into();
    let named = command.argv.first().cloned().unwrap_or_default();
    let (words, hidden_at) = match found {
        Ok([Words::Known { words, hidden_at }]) => (words, hidden_at),
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
        Some(Nature::Plain | Nature::Sed) => match hidden_at {
            None => Ok(words),
            Some(place) => {
                let word = words.get(place).map_or_else(|| "standard input".to_string(), Clone::clone);
                Err(NoPattern::Option(word))
            }
        },
    }
}
