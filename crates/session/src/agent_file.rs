//! The agent's own file of the home, `agent.toml`: how it is to be towards its person. The person may write
//! it like any other file; the agent asks to, by an effect of its own that is shown as a difference and
//! compared again when it is done.
//!
//! What stands in it is data: it has four keys, none of them a setting, and no rule hears it. A file that
//! cannot be read is named, left out, and never written over.

use crate::{
    config::{ConfigError, Document},
    home::Home,
};
use anyhow::{Context as _, Result, anyhow};
use bailey_agent::Own;
use bailey_journal::{Permit, Seal};
use bailey_kernel::{BoxFuture, Executor, Io, Output, ResolveError, Route};
use bailey_protocol::{Action, Adaptation, Blob, Outcome, Report, SessionId, Status, WsPath};
use bailey_sandbox::{Native, Swapped};
use serde::Deserialize;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

/// The most characters of a name and of a language.
const NAME_CHARS_MAX: usize = 80;
/// The most characters of a style and of one note, as the tool writes them: a card shows a line of that
/// length whole.
const TEXT_CHARS_MAX: usize = 400;
/// The most notes.
const NOTES_MAX: usize = 100;

const OTHER: &str = "`agent.toml` is not what this session knows of it: your person or another session changed it. Nothing was \
                     written; a session that begins later is told what it says now";

/// What the file can say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Persona {
    /// What the person calls the agent.
    name: Option<String>,
    /// The language to answer in.
    language: Option<String>,
    /// How to answer.
    style: Option<String>,
    /// Short facts about the person and how they work.
    #[serde(default)]
    notes: Vec<String>,
}

/// What the home's file holds; none where there is none.
///
/// # Errors
/// When something else stands in its place, or it says what it cannot say. The error names the place.
pub fn read(home: &Home) -> Result<Option<String>> {
    Unread::of(home).read()
}

/// The file's bytes, at which nobody looked yet: whoever writes the file is no friend of who parses it.
pub(crate) struct Unread {
    path: PathBuf,
    found: Result<Option<Vec<u8>>, String>,
}

impl Unread {
    /// Those of a home, as they are now.
    pub(crate) fn of(home: &Home) -> Self {
        let path = home.agent_file();
        Self { found: bailey_sandbox::read_own(&path), path }
    }

    fn read(self) -> Result<Option<String>> {
        let Self { path, found } = self;
        let found = found.map_err(|reason| anyhow!("`{}` {reason}", path.display()))?;
        let Some(bytes) = found else { return Ok(None) };
        let text = String::from_utf8(bytes).with_context(|| format!("`{}` is not UTF-8", path.display()))?;
        check(&path, text.clone())?;
        Ok(Some(text))
    }

    /// The file as a session knows it at its start, and why it is left out.
    pub(crate) fn own(self) -> (Own, Option<String>) {
        let path = WsPath(self.path.display().to_string());
        match self.read() {
            Ok(text) => (Own::new(path, text), None),
            Err(error) => (Own::new(path, None), Some(format!("{error:#}"))),
        }
    }
}

/// Looks at a text that is to be the file's.
fn check(path: &Path, text: String) -> Result<(), ConfigError> {
    let document = Document::parse(path, text)?;
    let Persona { name, language, style, notes } = document.read()?;
    for (key, value, most) in [
        ("name", &name, NAME_CHARS_MAX),
        ("language", &language, NAME_CHARS_MAX),
        ("style", &style, TEXT_CHARS_MAX),
    ] {
        if let Some(why) = value.as_deref().and_then(|value| unfit(value, most)) {
            return Err(document.mistake(key, format!("`{key}` {why}")));
        }
    }
    if notes.len() > NOTES_MAX {
        return Err(document.mistake("notes", format!("{} notes: at most {NOTES_MAX}", notes.len())));
    }
    let wrong = notes.iter().enumerate().find_map(|(at, note)| Some((at, unfit(note, TEXT_CHARS_MAX)?)));
    match wrong {
        Some((at, why)) => Err(document.mistake("notes", format!("note {} {why}", at + 1))),
        None => Ok(()),
    }
}

fn unfit(value: &str, most: usize) -> Option<String> {
    // A character may be written as six.
    let written = serde_json::Value::from(value).to_string();
    let count = written.chars().count().saturating_sub(2);
    if count > most {
        return Some(format!("has {count} characters as it is written: at most {most}"));
    }
    value.chars().any(|c| c.is_control() && c != '\n').then(|| "holds a control character".into())
}

/// The very change that a plan comes to: where the file is, and what this session knows that it holds.
///
/// # Errors
/// When the text is none that the file can hold, or it says that already.
pub fn planned(own: &Own, Adaptation { new, .. }: Adaptation) -> Result<Adaptation, String> {
    let path = own.path().clone();
    if let Some(new) = &new {
        let text = String::from_utf8(new.0.clone()).map_err(|error| error.to_string())?;
        check(Path::new(&path.0), text).map_err(|error| error.to_string())?;
    }
    let old = own.text().map(|text| Blob(text.into_bytes()));
    if old == new {
        return Err("`agent.toml` says that already".into());
    }
    Ok(Adaptation { path, old, new })
}

/// Changes the file, as was permitted.
pub(crate) struct AgentFile {
    seal: Seal,
    native: Arc<Native>,
    own: Own,
    /// Whether what stands there could not be read.
    is_broken: bool,
}

impl AgentFile {
    pub(crate) fn new(seal: Seal, native: Arc<Native>, own: Own, is_broken: bool) -> Self {
        Self { seal, native, own, is_broken }
    }

    /// The very change, where the file holds what this session knows of it.
    async fn resolved(&self, adaptation: Adaptation) -> Result<Adaptation, String> {
        // What it says was left out, and is told to nobody here.
        if self.is_broken {
            return Err(
                "`agent.toml` cannot be read, and is never written over: your person has to mend it first"
                    .into(),
            );
        }
        let adaptation = planned(&self.own, adaptation)?;
        let old = &adaptation.old;
        match self.native.swap(old.clone(), old.clone()).await {
            Ok(Swapped::Done) => Ok(adaptation),
            Ok(Swapped::Differs) => Err(OTHER.into()),
            Ok(Swapped::Refused(reason)) => Err(reason),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn adapt(&self, permit: Permit) -> Status {
        let failed = |reason: String| Status::Failed { reason };
        let Adaptation { path, old, new } = match permit.redeem(&self.seal).map(|it| it.effect.action) {
            Ok(Action::Adapt(adaptation)) => adaptation,
            Ok(other) => return failed(format!("`{}` is no change of agent.toml", other.kind().name())),
            Err(error) => return failed(error.to_string()),
        };
        if path != *self.own.path() {
            return failed(format!("`{path}` is not the agent's own file"));
        }
        match self.native.swap(old, new.clone()).await {
            Ok(Swapped::Done) => {
                self.own.set(new.map(|new| new.lossy().into_owned()));
                Status::Done
            }
            Ok(Swapped::Differs) => failed(OTHER.into()),
            Ok(Swapped::Refused(reason)) => failed(reason),
            // Whoever was to do it is gone, and did not say how far it came.
            Err(_) => Status::Unknown,
        }
    }
}

impl Executor for AgentFile {
    fn routes(&self) -> Vec<Route> {
        vec![Route::Agent]
    }

    fn resolve<'a>(&'a self, _: SessionId, action: Action) -> BoxFuture<'a, Result<Action, ResolveError>> {
        Box::pin(async move {
            match action {
                Action::Adapt(adaptation) => {
                    self.resolved(adaptation).await.map(Action::Adapt).map_err(ResolveError)
                }
                other => Ok(other),
            }
        })
    }

    fn aftermath<'a>(&'a self, _: SessionId, action: &'a Action) -> BoxFuture<'a, Option<Status>> {
        Box::pin(async move {
            let Action::Adapt(Adaptation { path, new, .. }) = action else { return None };
            if path != self.own.path() {
                return None;
            }
            // Where it holds the old text, somebody may have put that back.
            let holds = self.native.swap(new.clone(), new.clone()).await;
            matches!(holds, Ok(Swapped::Done)).then_some(Status::Done)
        })
    }

    fn perform<'a>(&'a self, permit: Permit, _: Io) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let begin = Instant::now();
            let status = self.adapt(permit).await;
            let duration_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
            Output::new(Outcome { status, enforced: None, duration_ms, report: Report::Nothing })
        })
    }
}

#[cfg(test)]
mod tests;
