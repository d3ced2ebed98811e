//! Commands: which programs a command names, and whether a prefix of arguments matches them.
//!
//! A name says little about what a program does: the walls hold a command, these rules only sort it. So a
//! shell line that is not perfectly plain is *not known*, which no allow matches and every deny does.

use crate::{
    fit::Fit,
    loops::unrolled,
    programs::{Nature, Programs, Takes, wraps},
    shell::{KEYWORDS, hides},
};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use bailey_protocol::Command;
use core::fmt;
use serde::{Deserialize, Serialize};

/// A program and, maybe, its first arguments: `git`, `cargo test`. Words are separated by spaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<String>", try_from = "Vec<String>")]
pub struct CommandPrefix(Vec<String>);

/// The first word of a loop.
const LOOP: &str = "for";

/// Why a command prefix cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a command needs at least the name of a program")]
pub struct CommandError;

/// One program with its arguments, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Invocation {
    Known {
        words: Vec<String>,
        /// What each word after the first takes.
        takes: Vec<Takes>,
        /// The places of the words that tell the program to run something else, in order.
        hidden: Vec<usize>,
    },
    /// What runs cannot be told from the arguments.
    Hidden,
}

impl Invocation {
    /// The loop of a line whose commands are known.
    fn loops() -> Self {
        Self::Known { words: [LOOP.to_string()].into(), takes: Vec::new(), hidden: Vec::new() }
    }

    /// A command that only may be the one of a rule, and why, for a person.
    pub(crate) fn doubt(&self) -> String {
        match self {
            Self::Hidden => "what it runs is not known for certain".into(),
            Self::Known { words, hidden, .. } => match hidden.first().and_then(|place| words.get(*place)) {
                Some(word) => {
                    format!(
                        "`{word}` makes `{}` run something else",
                        words.first().map_or("", String::as_str)
                    )
                }
                None => format!("it is `{}`", words.join(" ")),
            },
        }
    }
}

impl CommandPrefix {
    /// Reads a command prefix.
    ///
    /// # Errors
    /// When it has no word.
    pub fn new(text: &str) -> Result<Self, CommandError> {
        let words: Vec<_> = text.split_whitespace().map(ToString::to_string).collect();
        if words.is_empty() { Err(CommandError) } else { Ok(Self(words)) }
    }

    pub(crate) fn fit(&self, words: &Invocation) -> Fit {
        let Invocation::Known { words, takes, hidden } = words else { return Fit::Maybe };
        match (self.fit_words(words, takes, false), hidden.last()) {
            (fit, None) => fit,
            // A prefix that names each of these words knows what it speaks of.
            (Fit::Yes, Some(last)) if self.reaches(*last) => Fit::Yes,
            // A rule about another program hears nothing of it.
            (Fit::No, Some(_)) if wraps(words, hidden).is_some_and(|inner| inner != self.program()) => {
                Fit::No
            }
            (_, Some(_)) => Fit::Maybe,
        }
    }

    /// Whether it is long enough to name the word at this place.
    pub(crate) fn reaches(&self, place: usize) -> bool {
        self.0.len() > place
    }

    /// How it fits every command that begins as another prefix says.
    pub(crate) fn fit_all(&self, commands: &Self, known: Programs) -> Fit {
        if self == commands {
            return Fit::Yes;
        }
        let words = read_in_line(commands.0.clone(), known);
        match (self.fit(&words), &words) {
            // One of them may go on as this one does.
            (Fit::No, Invocation::Known { words, takes, .. }) => self.fit_words(words, takes, true),
            (fit, _) => fit,
        }
    }

    /// Whether a command begins with its very words.
    pub(crate) fn begins(&self, words: &[String]) -> bool {
        words.starts_with(&self.0)
    }

    /// Whether it names a program and none of its arguments.
    #[cfg(feature = "std")]
    pub(crate) fn is_bare(&self) -> bool {
        self.0.len() == 1
    }

    /// The program that it names.
    pub(crate) fn program(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// `goes_on`: whether more words may follow those that are given.
    fn fit_words(&self, words: &[String], takes: &[Takes], goes_on: bool) -> Fit {
        let (Some((program, arguments)), Some((named, given))) = (self.0.split_first(), words.split_first())
        else {
            return Fit::No;
        };
        let by_name = match named.strip_suffix(program.as_str()) {
            Some("") => Fit::Yes,
            // Some file of that name, maybe the program, maybe not.
            Some(directory) if directory.ends_with('/') && !program.contains('/') => Fit::Maybe,
            _ => return Fit::No,
        };
        match given.starts_with(arguments) {
            true => by_name,
            false => Fit::from(may_begin(arguments, given, takes, goes_on)).min(Fit::Maybe),
        }
    }
}

/// Most words among which options are passed over. Beyond, anything may come.
const FAR: usize = 256;

/// Whether a command says some words once options and their values between them are passed over. Only what
/// binds in doubt hears of it: `git -C sub push` is a push, but not the one that an allow for `git push`
/// means.
fn may_begin(wanted: &[String], given: &[String], takes: &[Takes], goes_on: bool) -> bool {
    let wanted = wanted.get(..63).unwrap_or(wanted);
    // Bit n: the first n of the wanted words were found before this word, and before the next one.
    let (mut here, mut next) = (1_u64, 0_u64);
    for (word, takes) in given.iter().zip(takes).take(FAR) {
        let found = wanted.iter().enumerate().filter(|(place, own)| here & (1 << place) != 0 && *own == word);
        next |= found.fold(0, |bits, (place, _)| bits | (2 << place));
        let mut after = 0;
        if matches!(takes, Takes::Nothing | Takes::Maybe) {
            next |= here;
        }
        if matches!(takes, Takes::Next | Takes::Maybe) {
            after = here;
        }
        if next & (1 << wanted.len()) != 0 {
            return true;
        }
        if next | after == 0 {
            return false;
        }
        (here, next) = (next, after);
    }
    (goes_on || given.len() > FAR) && here | next != 0
}

impl TryFrom<Vec<String>> for CommandPrefix {
    type Error = CommandError;

    fn try_from(words: Vec<String>) -> Result<Self, CommandError> {
        if words.is_empty() { Err(CommandError) } else { Ok(Self(words)) }
    }
}

impl From<CommandPrefix> for Vec<String> {
    fn from(prefix: CommandPrefix) -> Self {
        prefix.0
    }
}

impl fmt::Display for CommandPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

/// The programs that a command names, at least one.
pub(crate) fn programs(command: &Command, known: Programs) -> Vec<Invocation> {
    if command.argv.is_empty() || steering(command, known).is_some() {
        return [Invocation::Hidden].into();
    }
    match line(command) {
        Some(line) => {
            let loops = unrolled(line);
            // An allow for a command does not cover a loop that repeats it.
            let mut all: Vec<Invocation> = loops.iter().map(|_| Invocation::loops()).collect();
            match loops.or_else(|| plain_commands(line)) {
                Some(commands) => all.extend(commands.into_iter().map(|words| read_in_line(words, known))),
                None => all.push(Invocation::Hidden),
            }
            all
        }
        None => [read(command.argv.clone(), known)].into(),
    }
}

/// A variable of the command's own that may make it run something else.
pub(crate) fn steering(command: &Command, known: Programs) -> Option<&str> {
    command.env.iter().find(|(name, value)| known.is_steering(name, value)).map(|(name, _)| name.as_str())
}

/// The line of a shell that was given one line and nothing else.
pub(crate) fn line(command: &Command) -> Option<&str> {
    match command.argv.as_slice() {
        [program, dash_c, line] if dash_c == "-c" && is_shell(program) => Some(line),
        _ => None,
    }
}

/// Whether it is a shell that the system has, and that reads nothing of the home before a line: `./sh` is
/// some file of that name, and zsh reads `~/.zshenv`.
pub(crate) fn is_shell(program: &str) -> bool {
    let own = program.strip_prefix("/usr/bin/").or_else(|| program.strip_prefix("/bin/"));
    matches!(own.unwrap_or(program), "sh" | "bash" | "dash")
}

fn read_in_line(words: Vec<String>, known: Programs) -> Invocation {
    if hides(&words) { Invocation::Hidden } else { read(words, known) }
}

fn read(words: Vec<String>, known: Programs) -> Invocation {
    let program = words.first().map_or("", String::as_str);
    if KEYWORDS.contains(&program) || known.nature(program) == Some(Nature::Launcher) {
        return Invocation::Hidden;
    }
    let takes = known.takes(&words);
    Invocation::Known { hidden: known.hidden(&words, &takes), takes, words }
}

/// The commands of a shell line that holds nothing but plain words, whole quotes and `; & | && ||`.
pub(crate) fn plain_commands(line: &str) -> Option<Vec<Vec<String>>> {
    let mut commands = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            ';' | '&' | '|' | '\n' => {
                words.extend(word.take());
                commands.push(core::mem::take(&mut words));
            }
            '\'' | '"' => {
                let (quoted, rest) = chars.as_str().split_once(c)?;
                if c == '"' && quoted.contains(['$', '`', '\\', '!']) {
                    return None;
                }
                word.get_or_insert_default().push_str(quoted);
                chars = rest.chars();
            }
            c if c.is_ascii_alphanumeric() || "-_./:,+@%=".contains(c) => {
                word.get_or_insert_default().push(c)
            }
            _ => return None,
        }
    }
    words.extend(word);
    commands.push(words);
    commands.retain(|words| !words.is_empty());
    let assigns = |words: &Vec<String>| words.first().is_some_and(|program| program.contains('='));
    (!commands.is_empty() && !commands.iter().any(assigns)).then_some(commands)
}
