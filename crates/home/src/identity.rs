//! The papers of the home, which say who the agent and its person are. The owner writes `SOUL.md`, the
//! personality, and `USER.md`, the person. Bailey writes `IDENTITY.md`.
//!
//! No agent can write any of them, and no rule takes their text into account. `SOUL.md` speaks in every
//! session, so Bailey passes it on only in the version that the owner accepted, which it knows by its digest.
//! A change by anyone else stops sessions, but steers none of them.

mod soul;

pub use soul::{DEFAULT, SoulState, accept, read as read_soul, standing};

use crate::{
    agents,
    config::Config,
    home::{Home, write_made},
};
use anyhow::{Context as _, Result, anyhow, bail};
use bailey_journal::Bound;
use bailey_kernel::{Paper, tokens};
use bailey_llm::Cassette;
use bailey_protocol::{Timestamp, WsPath};
use bailey_sandbox::Shape;
use std::{fs, path::PathBuf};

/// The size that `USER.md` must stay below, in tokens as Bailey estimates them: the model reads it in every
/// turn of every session.
pub(crate) const USER_TOKENS_MAX: u64 = 500;
/// The largest size of `IDENTITY.md`, in bytes.
const IDENTITY_BYTES_MAX: usize = 2048;
/// The last line of `IDENTITY.md`. Recordings find the end of the text by it.
const END: &str = "-- end of IDENTITY.md --";
/// The beginning of the line in `IDENTITY.md` that says whether everything is stopped.
const STOPPED: &str = "- Stopped: ";

/// The facts that `IDENTITY.md` states.
pub struct State<'a> {
    /// The configuration that is in force.
    pub config: &'a Config,
    /// The named agent that works.
    pub agent: Option<&'a str>,
    /// The kind of walls on this machine.
    pub shape: Shape,
    /// The model that answers, `PROVIDER/NAME`.
    pub model: Option<&'a str>,
    /// The tools, by the names that the model knows.
    pub tools: Vec<String>,
    /// How many sessions the journal knows besides this one.
    pub sessions: u64,
    /// The moment since which everything is stopped, if it is.
    pub stopped: Option<Timestamp>,
    /// Who answers questions.
    pub answers: Answers,
    /// The day, with the time zone.
    pub today: String,
}

/// Who answers the questions of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// Each question is a no, because there is no person.
    Unattended,
    /// A person at a terminal.
    AtOnce,
    /// A person who may come later. A question waits for so many seconds.
    Later(u64),
}

/// The text of `IDENTITY.md`, which tells the agent about itself.
pub fn text(state: &State<'_>) -> String {
    let State { config, agent, shape, model, tools, sessions, stopped, answers, today } = state;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let walls = match shape {
        Shape::Walled => {
            "namespaces, Landlock, a list of system calls and limits around each command; your changes are a layer over the project"
        }
        Shape::Copied => {
            "Landlock and a list of system calls around each command; you work on a private copy of the project"
        }
        Shape::Direct => "none; commands and changes happen on the person's own machine",
    };
    let model = match model {
        Some(name) if Cassette::file(name).is_some() => "a recording",
        Some(name) => name,
        None => "none",
    };
    let asked = match answers {
        Answers::Unattended => "nobody is there to answer".to_owned(),
        Answers::AtOnce => "somebody is there to answer".to_owned(),
        Answers::Later(seconds) => format!(
            "nobody may be there now; a question waits for {}, and your turn may end before the answer comes",
            lasting(*seconds)
        ),
    };
    let budgets = &config.budgets;
    let stopped = stopped.as_ref().map_or_else(|| "no".into(), |since| format!("since {since}"));
    let name = agent.map(|name| format!("- Name: {name}, one of several agents of this home"));
    let lines = [
        "# What I am".into(),
        "Bailey writes this file; what is written into it by hand is lost.".into(),
        format!(
            "- Program: Bailey {}, on Linux {} ({})",
            env!("CARGO_PKG_VERSION"),
            kernel.trim(),
            std::env::consts::ARCH
        ),
        format!("- Walls: {walls}"),
        format!("- Model at the start: {model}"),
        format!("- Day at the start: {today}"),
        format!("- Tools: {}", tools.join(", ")),
        format!("- Limits: {} tool calls a turn; questions: {asked}", config.tool_calls),
        format!(
            "- Budgets: a turn {}; a session {}; a day {}",
            bound(&budgets.turn),
            bound(&budgets.session),
            bound(&budgets.day)
        ),
        format!("- Other sessions in the journal: {sessions}"),
        format!("{STOPPED}{stopped}"),
    ];
    // The configuration may contain a name of any length. The end line is always there.
    let mut text: String = lines.iter().chain(&name).flat_map(|line| [one_line(line), "\n".into()]).collect();
    let most = IDENTITY_BYTES_MAX - END.len() - 1;
    text.truncate(text.floor_char_boundary(most));
    if !text.ends_with('\n') {
        text.pop();
        text.push('\n');
    }
    text + END + "\n"
}

fn lasting(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} seconds"),
        120..7200 => format!("{} minutes", seconds / 60),
        _ => format!("{} hours", seconds / 3600),
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn bound(bound: &Bound) -> String {
    let tokens = bound.tokens.map(|tokens| format!("{tokens} tokens"));
    let money = bound.money.as_ref().map(ToString::to_string);
    let both: Vec<String> = tokens.into_iter().chain(money).collect();
    if both.is_empty() { "no limit".into() } else { both.join(" and ") }
}

/// Writes `IDENTITY.md` if its text changed. The new file is whole and replaces anything at that path; a link
/// there is not followed.
///
/// # Errors
/// When it cannot be written.
pub fn renew(home: &Home, text: &str) -> Result<()> {
    let path = home.paper(Paper::Identity);
    if matches!(bailey_sandbox::read_own(&path), Ok(Some(old)) if old == text.as_bytes()) {
        return Ok(());
    }
    write_made(&path, text.as_bytes())
}

/// Updates each `IDENTITY.md` of a home, its own and those of its named agents, to say whether everything is
/// stopped.
///
/// # Errors
/// When one of them cannot be written. The others are written all the same.
pub fn tell_stopped(home: &Home, since: Option<Timestamp>) -> Result<()> {
    let own = Home { agent: None, ..home.clone() };
    let named = agents::names(home);
    let names = named.as_deref().unwrap_or_default();
    let of_names = names.iter().map(|name| Home { agent: Some(name.clone()), ..home.clone() });
    let told: Vec<Result<()>> = [own].into_iter().chain(of_names).map(|of| tell(&of, since)).collect();
    told.into_iter().chain([named.map(drop)]).collect()
}

/// Updates the file of one agent. Does nothing if no session wrote that file yet.
fn tell(home: &Home, since: Option<Timestamp>) -> Result<()> {
    let path = home.paper(Paper::Identity);
    let Ok(Some(old)) = bailey_sandbox::read_own(&path) else { return Ok(()) };
    let old = String::from_utf8_lossy(&old);
    let says = since.map_or_else(|| "no".into(), |since| format!("since {since}"));
    let line = |line: &str| {
        if line.starts_with(STOPPED) { format!("{STOPPED}{says}\n") } else { format!("{line}\n") }
    };
    renew(home, &old.lines().map(line).collect::<String>())
}

struct PaperFile {
    paper: Paper,
    path: PathBuf,
    bytes: Result<Option<Vec<u8>>, String>,
}

/// The papers as they were before this process bound itself. They are not checked yet.
#[derive(Default)]
pub struct Papers {
    found: Vec<PaperFile>,
    accepted: Option<Result<Option<String>>>,
}

impl Papers {
    /// Reads the papers of a home. The caller gives the text of `IDENTITY.md`.
    pub fn of(home: &Home, identity: String) -> Self {
        let found = Paper::ALL.map(|paper| {
            let path = home.paper(paper);
            let bytes = match paper {
                Paper::Identity => Ok(Some(identity.clone().into_bytes())),
                Paper::Soul | Paper::User => bailey_sandbox::read_own(&path),
            };
            PaperFile { paper, path, bytes }
        });
        Self { found: found.into(), accepted: Some(soul::accepted(home)) }
    }

    /// Checks the papers, and returns them for the model.
    ///
    /// # Errors
    /// When a paper cannot be read or is too long, or `SOUL.md` is not the version that the owner accepted.
    /// No session begins then.
    pub fn told(self) -> Result<Vec<(Paper, WsPath, Option<String>)>> {
        let accepted = self.accepted.transpose()?.flatten();
        let mut told = Vec::new();
        for PaperFile { paper, path, bytes } in self.found {
            let name = path.display();
            let text = utf8(&path, bytes)?;
            match paper {
                Paper::Identity => {}
                Paper::Soul => soul::check(&name.to_string(), text.as_deref(), accepted.as_deref())?,
                Paper::User => check_user(&name.to_string(), text.as_deref().unwrap_or_default())?,
            }
            told.push((paper, WsPath(name.to_string()), text));
        }
        Ok(told)
    }
}

fn utf8(path: &std::path::Path, found: Result<Option<Vec<u8>>, String>) -> Result<Option<String>> {
    let name = path.display();
    let found = found.map_err(|reason| anyhow!("`{name}` {reason}"))?;
    found
        .map(String::from_utf8)
        .transpose()
        .with_context(|| format!("`{name}` is not UTF-8: save it as that, or take it away"))
}

/// Checks that a text is short enough for `USER.md`.
///
/// # Errors
/// When the text is too long.
pub fn check_user(name: &str, text: &str) -> Result<()> {
    let count = tokens(text);
    if count >= USER_TOKENS_MAX {
        bail!(
            "`{name}` has {count} tokens, and every turn of every session pays for them: shorten it to fewer than {USER_TOKENS_MAX}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
