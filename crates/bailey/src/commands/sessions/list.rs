//! `bailey sessions list` and `search`: the sessions with their states, and the places where something was
//! said.

use crate::{
    clock,
    commands::budget,
    compose,
    front::{one_line, short},
    home::Home,
    place::origin,
    print::{Printer, Style},
    project,
};
use anyhow::{Context as _, Result};
use bailey_journal::{FileLocks, InUse, Journal, Progress, Said, SessionInfo, Standing, Voice};
use bailey_protocol::{Role, SessionId};
use bailey_sandbox::may_hold_changes;
use bailey_session::COMMAND_RESULT;
use serde::Serialize;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    path::{Path, PathBuf, absolute},
    process::ExitCode,
};

/// The longest title on a line, in characters.
const TITLE_CHARS_MAX: usize = 72;
/// How much of a text stands before the first word that was looked for, and how much in all, in characters.
const BEFORE_CHARS: usize = 40;
const SNIPPET_CHARS_MAX: usize = 160;

/// The channel of a schedule's messages.
const SCHEDULE: &str = "schedule";

/// A session in the list.
#[derive(Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    session: &'a SessionInfo,
    /// Whether there is a folder with its changes.
    kept: bool,
    state: State,
    #[serde(flatten)]
    changes: Standing,
    /// The state in words.
    says: String,
    /// Its use: each unit with its sum.
    spent: Vec<Value>,
}

/// The state of a session's turn, or the end of its last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Works,
    Waits,
    Interrupted,
    Failed,
    Paused,
    Cancelled,
    Done,
    /// No turn has begun.
    New,
}

impl State {
    fn of(progress: &Progress, is_in_use: bool) -> Self {
        match progress.ended.as_deref() {
            _ if progress.questions > 0 => Self::Waits,
            _ if progress.is_open && is_in_use => Self::Works,
            _ if progress.is_open => Self::Interrupted,
            None => Self::New,
            Some("failed" | "refused" | "unanswered") => Self::Failed,
            Some("limit" | "budget" | "stuck" | "waiting") => Self::Paused,
            Some("cancelled") => Self::Cancelled,
            Some(_) => Self::Done,
        }
    }

    /// The words for it, with those for the changes.
    fn words(self, changes: Standing) -> (Style, String) {
        let (style, ended) = match self {
            Self::Works => return (Style::Green, "works".into()),
            Self::Waits => return (Style::Yellow, "waits for you".into()),
            Self::Interrupted => (Style::Yellow, "interrupted"),
            Self::Failed => (Style::Red, "failed"),
            Self::Paused => (Style::Yellow, "paused"),
            Self::Cancelled => (Style::Dim, "cancelled"),
            Self::Done | Self::New => (Style::Dim, ""),
        };
        let (style, changes) = match changes {
            Standing::Waiting { files: 1 } => (Style::Yellow, "1 change not applied".to_owned()),
            Standing::Waiting { files } => (Style::Yellow, format!("{files} changes not applied")),
            Standing::Uncompared => (Style::Yellow, "may have changes".into()),
            Standing::Applied => (if ended.is_empty() { Style::Green } else { style }, "applied".into()),
            Standing::None if ended.is_empty() => (style, "no changes".into()),
            Standing::None => return (style, ended.into()),
        };
        (style, if ended.is_empty() { changes } else { format!("{ended}, {changes}") })
    }
}

/// Which sessions are listed.
pub(super) struct Wanted {
    pub(super) last: Option<usize>,
    pub(super) project: Option<PathBuf>,
    /// Also commands without an agent.
    pub(super) all: bool,
}

pub(super) async fn run(home: &Home, wanted: Wanted, printer: &Printer) -> Result<ExitCode> {
    let journal = super::super::journal(home, printer).await?;
    let mut sessions = known(home, &journal, wanted.project.as_deref()).await?;
    let archived = journal.archived_sessions().await?.len();
    let before = sessions.len();
    sessions.retain(|session| wanted.all || !session.is_of_commands);
    let of_commands = before - sessions.len();
    let older = sessions.len().saturating_sub(wanted.last.unwrap_or(usize::MAX));
    sessions.truncate(wanted.last.unwrap_or(usize::MAX));
    let progress = journal.progress(sessions.iter().map(|session| session.id).collect()).await?;
    let locks = FileLocks::now().unwrap_or_default();
    let mut listed: Vec<Listed<'_>> = sessions
        .iter()
        .zip(&progress)
        .map(|(session, progress)| listed(home, session, progress, &locks))
        .collect();
    if printer.is_json() {
        let spent = journal.spent(sessions.iter().map(|session| session.id).collect()).await?;
        for (listed, spent) in listed.iter_mut().zip(&spent) {
            listed.spent = budget::units(spent);
            printer.json(listed);
        }
        return Ok(ExitCode::SUCCESS);
    }
    if sessions.is_empty() && older == 0 {
        printer.note("there are no sessions yet; `bailey run \"…\"` in a repository begins one");
    }
    let width = listed.iter().map(|it| it.says.chars().count()).max().unwrap_or_default();
    for it in &listed {
        let (style, _) = it.state.words(it.changes);
        printer.line(format!(
            "{}  {}  {}  {}  {}",
            printer.paint(Style::Bold, &short(&it.session.id)),
            printer.paint(Style::Dim, &clock::local(it.session.updated)),
            printer.paint(if it.kept { style } else { Style::Dim }, &format!("{:<width$}", it.says)),
            printer.paint(Style::Plain, &titled(it.session)),
            printer.paint(Style::Dim, &it.session.workspace.0),
        ));
    }
    if older > 0 {
        printer.note(&format!("and {older} older sessions"));
    }
    if of_commands > 0 {
        let what = if of_commands == 1 { "1 session" } else { "sessions" };
        let many = if of_commands == 1 { String::new() } else { format!("{of_commands} ") };
        printer.note(&format!("{many}{what} of commands without an agent: add --all"));
    }
    if archived > 0 {
        printer.note(&format!(
            "{archived} older sessions are in archives; `bailey audit archive --list` shows them"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// The sessions of this home and project, the newest first, each with the project that it works for.
async fn known(home: &Home, journal: &Journal, of: Option<&Path>) -> Result<Vec<SessionInfo>> {
    let root = of.map(|directory| root_of(home, directory)).transpose()?;
    let mut sessions = journal.sessions().await?;
    sessions.retain(|session| !compose::is_of_bailey(session.id));
    for session in &mut sessions {
        if let Some(project) = origin(home, session.id) {
            session.workspace = project;
        }
    }
    sessions
        .retain(|session| root.as_ref().is_none_or(|root| Path::new(&session.workspace.0).starts_with(root)));
    Ok(sessions)
}

/// The project of a directory; the directory itself where it cannot be a project, such as one that is gone.
fn root_of(home: &Home, directory: &Path) -> Result<PathBuf> {
    match project::find(Some(directory), home) {
        Ok((root, _)) => Ok(root),
        Err(_) => {
            absolute(directory).with_context(|| format!("`{}` names no directory", directory.display()))
        }
    }
}

fn listed<'a>(home: &Home, session: &'a SessionInfo, progress: &Progress, locks: &FileLocks) -> Listed<'a> {
    let folder = home.of_session(session.id, "");
    let kept = folder.exists();
    // A folder that cannot be looked into counts as in use.
    let is_in_use = kept && InUse::of(&folder, locks).map_or(true, |found| found.is_some());
    let changes = match progress.changes {
        _ if !kept => Standing::None,
        Standing::Uncompared if !may_hold_changes(&folder, Path::new(&session.workspace.0)) => Standing::None,
        changes => changes,
    };
    let state = State::of(progress, is_in_use);
    let says = if kept { state.words(changes).1 } else { "nothing kept".into() };
    Listed { session, kept, state, changes, says, spent: Vec::new() }
}

fn titled(session: &SessionInfo) -> String {
    let title = one_line(&session.title);
    match session.is_of_commands {
        _ if title.is_empty() => "(nothing was said)".into(),
        true => format!("$ {}", cut(&title)),
        false => cut(&title),
    }
}

fn cut(title: &str) -> String {
    match title.char_indices().nth(TITLE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", title.get(..end).unwrap_or(title)),
        None => title.to_owned(),
    }
}

/// Shows where words were said.
pub(super) async fn search(
    home: &Home,
    words: &str,
    project: Option<PathBuf>,
    last: usize,
    printer: &Printer,
) -> Result<ExitCode> {
    let journal = super::super::journal(home, printer).await?;
    let sessions = known(home, &journal, project.as_deref()).await?;
    let of: HashMap<SessionId, &SessionInfo> = sessions.iter().map(|session| (session.id, session)).collect();
    let ids = project.map(|_| of.keys().copied().collect());
    let (said, is_all) = journal.said(words, ids, last).await?;
    for Said { session, entry, time, by, text } in &said {
        let Some(info) = of.get(session) else { continue };
        let (by, name) = speaker(by, text, info);
        let text = snippet(text, words);
        if printer.is_json() {
            printer.json(&json!({
                "session": session, "entry": entry, "time": time, "by": by, "name": name, "text": text,
                "title": info.title, "workspace": info.workspace,
            }));
            continue;
        }
        printer.line(format!(
            "{}  {}  {}  {}",
            printer.paint(Style::Bold, &short(session)),
            printer.paint(Style::Dim, &clock::local(*time)),
            printer.paint(Style::Plain, &titled(info)),
            printer.paint(Style::Dim, &info.workspace.0),
        ));
        printer.line(format!(
            "          {} {}",
            printer.paint(Style::Cyan, &format!("{}:", one_line(&name))),
            printer.paint(Style::Plain, &one_line(&text))
        ));
    }
    if said.is_empty() && !printer.is_json() {
        printer.note(&format!("nobody said `{words}` in a session of this home"));
    }
    if !is_all && !printer.is_json() {
        printer.note("there may be more: name more words, or more sessions with -n");
    }
    Ok(ExitCode::SUCCESS)
}

/// The kind of a speaker, and a name for people.
fn speaker(by: &Voice, text: &str, info: &SessionInfo) -> (&'static str, String) {
    match by {
        Voice::Model => ("agent", "agent".into()),
        Voice::Speaker(by) if by.channel == SCHEDULE => ("schedule", format!("schedule {}", by.name)),
        Voice::Speaker(by) if by.role == Role::Owner => ("person", format!("you ({})", by.channel)),
        // A person may call themselves `you`, so the role and the platform's number stand beside the name.
        Voice::Speaker(by) => ("person", by.line()),
        Voice::Owner { .. } if info.principal == bailey_kernel::CLIENT => ("program", "a program".into()),
        Voice::Owner { is_data: true } if text.starts_with(COMMAND_RESULT) => {
            ("command", "your command".into())
        }
        Voice::Owner { .. } => ("person", "you".into()),
    }
}

/// The piece of a text around the first of the words.
fn snippet(text: &str, words: &str) -> String {
    let first = words.split_whitespace().next().unwrap_or_default().to_lowercase();
    let line = text.lines().find(|line| line.to_lowercase().contains(&first)).unwrap_or(text).trim();
    // The lower case of a letter may have another length, so the place is counted in characters.
    let lower = line.to_lowercase();
    let at = lower.find(&first).map_or(0, |at| lower.get(..at).map_or(0, |before| before.chars().count()));
    let skip = at.saturating_sub(BEFORE_CHARS);
    let piece: String = line.chars().skip(skip).take(SNIPPET_CHARS_MAX).collect();
    let is_cut = line.chars().count() > skip + SNIPPET_CHARS_MAX;
    format!("{}{piece}{}", if skip > 0 { "…" } else { "" }, if is_cut { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::{COMMAND_RESULT, SNIPPET_CHARS_MAX, Standing, State, snippet, speaker};
    use bailey_journal::{Progress, SessionInfo, Voice};
    use bailey_protocol::{Role, SessionId, Speaker, Timestamp};

    #[test]
    fn a_state_says_what_a_person_has_to_do() {
        let progress = |is_open, ended: Option<&str>, questions| Progress {
            is_open,
            ended: ended.map(Into::into),
            questions,
            changes: Standing::None,
        };
        let words = |progress, is_in_use, changes| State::of(&progress, is_in_use).words(changes).1;
        assert_eq!(words(progress(true, None, 0), true, Standing::Uncompared), "works");
        assert_eq!(words(progress(true, None, 0), false, Standing::None), "interrupted");
        assert_eq!(words(progress(true, None, 1), true, Standing::None), "waits for you");
        let answered = || progress(false, Some("answered"), 0);
        assert_eq!(words(answered(), false, Standing::Waiting { files: 2 }), "2 changes not applied");
        assert_eq!(words(answered(), true, Standing::Applied), "applied");
        assert_eq!(words(answered(), true, Standing::None), "no changes");
        let failed = progress(false, Some("failed"), 0);
        assert_eq!(words(failed, false, Standing::Waiting { files: 1 }), "failed, 1 change not applied");
    }

    #[test]
    fn a_place_says_who_spoke() {
        let now = Timestamp::UNIX_EPOCH;
        let info = |principal: &str| SessionInfo {
            id: SessionId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap(),
            workspace: "/w".into(),
            principal: principal.into(),
            model: String::new(),
            opened: now,
            updated: now,
            title: String::new(),
            tokens_used: 0,
            is_of_commands: false,
        };
        let name = |by: &Voice, text: &str| speaker(by, text, &info("owner"));
        let at = |channel: &str, role| {
            let (channel, name) = (channel.to_owned(), "Ann".to_owned());
            Voice::Speaker(Speaker { channel, id: "7".into(), name, role })
        };
        let own = |is_data| Voice::Owner { is_data };
        assert_eq!(name(&own(false), "hi"), ("person", "you".into()));
        assert_eq!(name(&own(true), "review\n\nStandard input"), ("person", "you".into()));
        assert_eq!(name(&own(true), COMMAND_RESULT), ("command", "your command".into()));
        assert_eq!(name(&own(false), COMMAND_RESULT), ("person", "you".into()));
        assert_eq!(name(&at("telegram", Role::User), "hi"), ("person", "user Ann (telegram 7)".into()));
        assert_eq!(name(&at("telegram", Role::Owner), "hi"), ("person", "you (telegram)".into()));
        assert_eq!(name(&at("schedule", Role::User), "hi"), ("schedule", "schedule Ann".into()));
        assert_eq!(name(&Voice::Model, "hi").0, "agent");
        assert_eq!(speaker(&own(false), "hi", &info(bailey_kernel::CLIENT)).0, "program");
    }

    #[test]
    fn a_snippet_has_the_word_and_is_short() {
        let text = format!("first line\n{} the Needle {}", "x".repeat(300), "y".repeat(300));
        let found = snippet(&text, "needle and more");
        assert!(found.contains("the Needle") && found.starts_with('…') && found.ends_with('…'), "{found}");
        assert!(found.chars().count() <= SNIPPET_CHARS_MAX + 2);
        assert_eq!(snippet("İstanbul needle", "needle"), "İstanbul needle");
    }
}
