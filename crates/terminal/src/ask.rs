//! Cards. The user answers a card only on the controlling terminal, by typing after the card was shown.

use super::{
    card::{draw, draw_brief},
    prompt::{Pressed, Prompt, Typing},
    terminal::Terminal,
};
use crate::print::Printer;
use bailey_protocol::exit::Mistyped;
use bailey_protocol::{Answer, Card};
use clap::ValueEnum;

/// Who answers the questions of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Answering {
    /// Ask on the terminal; without one, answer with no
    Ask,
    /// Do not ask here: the model works on, and at the end of the turn its questions wait in `bailey
    /// approvals`
    Later,
    /// Answer every question with no
    Never,
}

/// Who answers cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// The user at the controlling terminal.
    Terminal,
    /// A user who answers from another terminal.
    Later,
    /// No one, because the user chose this: every answer is no.
    Never,
    /// No one, because there is no terminal.
    Nobody,
}

impl Asker {
    /// Like `new`, but with `compliance` a human is always asked: `never` is an error, and without a terminal
    /// the answer comes from another terminal.
    ///
    /// # Errors
    /// With `compliance`, when `answering` says never.
    pub fn compliant(answering: Answering, compliance: bool) -> anyhow::Result<Self> {
        let asker = Self::new(answering);
        match asker {
            Self::Never if compliance => Err(Mistyped(
                "`--approve never` answers in the place of a person, which compliance forbids; leave it \
                 out, or use `--approve later` to answer from another terminal"
                    .into(),
            )
            .into()),
            Self::Nobody if compliance => Ok(Self::Later),
            asker => Ok(asker),
        }
    }

    /// The terminal, when there is one and `answering` says neither never nor later.
    pub fn new(answering: Answering) -> Self {
        match std::fs::File::open("/dev/tty") {
            _ if answering == Answering::Never => Self::Never,
            _ if answering == Answering::Later => Self::Later,
            Ok(_) => Self::Terminal,
            Err(_) => Self::Nobody,
        }
    }

    /// Whether a user is at this terminal and can be asked.
    pub fn is_here(self) -> bool {
        self == Self::Terminal
    }

    /// Whether no user can answer.
    pub fn is_nobody(self) -> bool {
        matches!(self, Self::Never | Self::Nobody)
    }

    /// Shows a card and takes the answer.
    ///
    /// While the user has a message half written, a yes wants Enter behind it.
    pub(crate) async fn ask(self, printer: &Printer, card: &Card, is_writing: bool) -> (Answer, String) {
        match self {
            Self::Terminal => {}
            Self::Later => return std::future::pending().await,
            Self::Never => return (Answer::No, "`--approve never` asks nobody".into()),
            Self::Nobody => return (Answer::No, "there is no terminal to ask on".into()),
        }
        match ask_terminal(printer, card, is_writing).await {
            Ok(answer) => answer,
            Err(error) => (Answer::No, format!("the terminal could not be read: {error}")),
        }
    }
}

/// The answers that a card allows.
#[derive(Debug, Clone, Copy)]
struct Choice {
    once: bool,
    pattern: bool,
    reasoned: bool,
}

impl Choice {
    fn of(card: &Card) -> Self {
        Self { once: card.once, pattern: !card.once && card.pattern.is_some(), reasoned: card.reasoned }
    }

    /// The line that asks.
    fn words(self) -> String {
        let why = if self.reasoned { " and why" } else { "" };
        match (self.once, self.pattern) {
            (true, _) => format!("  [y]es{why}, [n]o or [d]etails: "),
            (_, true) => {
                format!("  [y]es once, for this [s]ession, for the [p]attern{why}, [n]o or [d]etails: ")
            }
            _ => format!("  [y]es once, yes for this [s]ession{why}, [n]o or [d]etails: "),
        }
    }

    /// The keys that answer, in words.
    fn keys(self) -> &'static str {
        match (self.once, self.pattern) {
            (true, _) => "y, n or d",
            (_, true) => "y, s, p, n or d",
            _ => "y, s, n or d",
        }
    }

    /// The meaning of a word or a key.
    fn meaning(self, word: &str) -> Option<Meaning> {
        Some(Meaning::Answer(match word {
            "y" | "yes" => Answer::Yes,
            "s" | "session" if !self.once => Answer::YesForSession,
            "p" | "pattern" if self.pattern => Answer::YesForPattern,
            "n" | "no" => Answer::No,
            "d" | "details" => return Some(Meaning::Details),
            _ => return None,
        }))
    }
}

/// The meaning of a key at a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Answer(Answer),
    Details,
}

async fn ask_terminal(printer: &Printer, card: &Card, is_writing: bool) -> std::io::Result<(Answer, String)> {
    let (prompt, choice) = (Prompt::open(printer)?, Choice::of(card));
    let terminal = prompt.terminal();
    terminal.write(&draw_brief(printer, card, terminal.size().0)).await?;
    let mut question = choice.words();
    let closed = || Ok((Answer::No, "the terminal was closed".to_owned()));
    // A yes for longer than once is never one letter of a word that begins like it.
    let pressed = |key: char| match choice.meaning(&key.to_lowercase().to_string()) {
        Some(Meaning::Answer(Answer::No) | Meaning::Details) => Pressed::Answers,
        Some(Meaning::Answer(Answer::Yes)) if !is_writing => Pressed::Answers,
        Some(Meaning::Answer(_)) => Pressed::Begins,
        // It may belong to the message.
        None if is_writing => Pressed::Begins,
        None => Pressed::Nothing,
    };
    loop {
        let Some(typing) = prompt.key_or_line(&question, Some(&pressed)).await? else {
            return closed();
        };
        let (line, is_key) = match typing {
            Typing::Key(key) => (key.to_string(), true),
            Typing::Line(line) => (line, false),
        };
        let (word, why) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        let answer = match choice.meaning(&word.to_lowercase()) {
            Some(Meaning::Answer(answer)) => answer,
            Some(Meaning::Details) => {
                terminal.write(&draw(printer, card, Some(terminal.size()))).await?;
                question = choice.words();
                continue;
            }
            None => {
                question = format!("  Please type {}.\n{}", choice.keys(), choice.words());
                continue;
            }
        };
        let why = why.trim().to_owned();
        if choice.reasoned && why.is_empty() {
            let Some(why) = reason(&prompt).await? else { return closed() };
            return Ok((answer, why));
        }
        if is_key && answer == Answer::No {
            let Some(why) = prompt.line(NO_WHY).await? else { return closed() };
            return Ok((answer, why.trim().to_owned()));
        }
        return Ok((answer, why));
    }
}

/// The question after the key for no.
const NO_WHY: &str = "  Why? The agent is told; Enter for no reason: ";

/// The question for a reason.
const WHY: &str = "  Why? The journal keeps it: ";

/// Asks why until the user types a reason. `None` when the terminal is closed.
async fn reason(prompt: &Prompt) -> std::io::Result<Option<String>> {
    loop {
        let Some(line) = prompt.line(WHY).await? else { return Ok(None) };
        let why = line.trim();
        if !why.is_empty() {
            return Ok(Some(why.to_owned()));
        }
    }
}

/// Asks whether a question whose time ran out should be asked once more.
pub(crate) async fn again(printer: &Printer) -> bool {
    let question = "  Nobody answered in time, which counts as a no. [a]sk again, or Enter to leave it: ";
    let line = line(printer, question).await.unwrap_or_default();
    matches!(line.trim().to_lowercase().as_str(), "a" | "again")
}

/// The line that the user types to a question while a front end has the terminal. `None` when the terminal
/// cannot be read or is closed.
pub(super) async fn line(printer: &Printer, question: &str) -> Option<String> {
    Prompt::open(printer).ok()?.line(question).await.ok()?
}

/// Asks a plain yes-or-no question for a command that the user gave. Without a terminal the answer is no.
/// Ctrl-C ends the command.
pub async fn confirm(question: &str) -> bool {
    matches!(choice(question, "[y/N]").await.as_str(), "y" | "yes")
}

/// Asks a plain question with a few answers, which `hint` names. Returns what was typed, in small letters;
/// without a terminal that is nothing.
pub async fn choice(question: &str, hint: &str) -> String {
    let asked = async {
        let terminal = Terminal::open()?;
        terminal.flush()?;
        terminal.write(&format!("{question} {hint} ")).await?;
        terminal.read_line().await
    };
    let line: std::io::Result<Option<String>> = asked.await;
    line.ok().flatten().unwrap_or_default().trim().to_lowercase()
}

/// Asks the user to type a phrase on the controlling terminal. Returns whether the user typed it.
pub async fn type_phrase(phrase: &str) -> bool {
    let asked = async {
        let terminal = Terminal::open()?;
        terminal.flush()?;
        terminal.write(&format!("To do this, type: {phrase}\n> ")).await?;
        terminal.read_line().await
    };
    let line: std::io::Result<Option<String>> = asked.await;
    line.ok().flatten().is_some_and(|line| line.trim() == phrase)
}

/// Asks the user for a reason on the controlling terminal. `None` when the terminal is closed.
pub async fn type_reason() -> Option<String> {
    let terminal = Terminal::open().ok()?;
    loop {
        terminal.write(WHY).await.ok()?;
        let line = terminal.read_line().await.ok()??;
        if !line.trim().is_empty() {
            return Some(line.trim().to_owned());
        }
    }
}
