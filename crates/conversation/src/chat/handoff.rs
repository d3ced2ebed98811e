//! The state that one process of a conversation leaves to the next, in two files in memory. The parent hands
//! the files on unread.
//!
//! One file holds the model that the person turned to, and the person's wish to fork or export the session.
//! Both are checked here, because they may come from a process that was taken over. The other file holds the
//! session that the process served. The process wrote and sealed it before it received anything from outside,
//! so the next process comes back to that session, or forks it, and no other.

use crate::{exit, front::Leave};
use anyhow::{Context as _, Result, bail};
use bailey_llm::Cassette;
use bailey_protocol::SessionId;
use rustix::fs::{SealFlags, fcntl_add_seals, fcntl_get_seals};
use std::{
    fs::{self, File},
    io::{Read as _, Seek as _, Write as _},
    process::ExitCode,
};

/// The longest name of a model, in bytes.
const NAME_BYTES_MAX: u64 = 512;
/// After these seals no process can write to the file, also not one that has it open (memfd_create(2)).
const SEALED: SealFlags =
    SealFlags::SEAL.union(SealFlags::WRITE).union(SealFlags::GROW).union(SealFlags::SHRINK);

/// This process's place in a conversation.
#[derive(Debug)]
pub(crate) struct Handoff {
    note: File,
    place: File,
    /// The session from which the process before was cut off.
    pub(super) lost: Option<SessionId>,
    /// Whether no session came before.
    pub(super) is_first: bool,
    /// The model that the person turned to in a session before.
    pub(super) model: Option<String>,
    /// The person's wish for the session of the process before.
    pub(super) onward: Option<(Onward, SessionId)>,
}

/// A wish that needs a process that is not bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Onward {
    /// Go on in a copy of the session.
    Fork,
    /// Write the conversation to a file, and go on.
    Export,
}

impl Onward {
    const ALL: [Self; 2] = [Self::Fork, Self::Export];

    fn name(self) -> &'static str {
        match self {
            Self::Fork => "fork",
            Self::Export => "export",
        }
    }
}

impl Handoff {
    /// Reads the state that the process before left, from the two descriptors that this process was started
    /// with, `NOTE,PLACE`, and after a wish a third one, the place of the process before.
    ///
    /// # Errors
    /// When there are no descriptors, or they hold neither a model's name nor a session.
    pub(super) fn take(descriptors: &str) -> Result<Self> {
        let private = || "`--handoff` is private; to talk with the agent: bailey chat";
        let (note, rest) = descriptors.split_once(',').with_context(private)?;
        let (place, from) = rest.split_once(',').map_or((rest, None), |(place, from)| (place, Some(from)));
        let open = |descriptor: &str| {
            let descriptor: u32 = descriptor.parse()?;
            let path = format!("/proc/self/fd/{descriptor}");
            fs::OpenOptions::new()
                .read(true)
                .write(true)
                .open(&path)
                .with_context(|| format!("cannot open `{path}`"))
        };
        let (mut note, place) = (open(note).with_context(private)?, open(place).with_context(private)?);
        let text = read(&note)?;
        note.set_len(0)?;
        note.rewind()?;
        let lost = served(&place)?;
        let (model, wish) = text.trim_end_matches('\n').split_once('\n').unwrap_or((text.trim_end(), ""));
        let onward = match Onward::ALL.into_iter().find(|onward| onward.name() == wish) {
            None => None,
            Some(onward) => {
                let from = open(from.with_context(private)?).with_context(private)?;
                Some((onward, served(&from)?.context("the process before served no session")?))
            }
        };
        let model = Some(model.to_owned()).filter(|model| !model.is_empty());
        model.as_deref().map(checked).transpose()?;
        Ok(Self { note, place, lost, is_first: text.is_empty() && lost.is_none(), model, onward })
    }

    /// Records which session this process serves. The record cannot be changed later.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub(super) fn serves(&mut self, session: SessionId) -> Result<()> {
        if self.lost.is_none() {
            write!(self.place, "{session}")?;
            fcntl_add_seals(&self.place, SEALED)?;
        }
        Ok(())
    }

    /// Leaves the state that the next process needs after this end of a session, and returns the exit code
    /// that asks for the process. `None` when the conversation is over.
    ///
    /// # Errors
    /// As [`Handoff::leave`].
    pub(super) fn go_on(self, leave: &Leave, model: Option<&str>) -> Result<Option<ExitCode>> {
        let (onward, code) = match leave {
            Leave::Quit => return Ok(None),
            Leave::Clear => (None, exit::NEXT),
            Leave::Fork => (Some(Onward::Fork), exit::ONWARD),
            Leave::Export => (Some(Onward::Export), exit::ONWARD),
        };
        self.leave(model, onward)?;
        Ok(Some(ExitCode::from(code)))
    }

    /// Leaves the model to the next process, and a wish.
    ///
    /// # Errors
    /// When the name is not valid, or cannot be written.
    pub(super) fn leave(mut self, model: Option<&str>, onward: Option<Onward>) -> Result<()> {
        model.map(checked).transpose()?;
        let wish = onward.map(Onward::name).unwrap_or_default();
        Ok(writeln!(self.note, "{}\n{wish}", model.unwrap_or_default())?)
    }
}

/// The session that a process recorded as its own; `None` when there is no record.
fn served(place: &File) -> Result<Option<SessionId>> {
    let mut place = place;
    place.rewind()?;
    match read(place)? {
        id if id.is_empty() => Ok(None),
        _ if !fcntl_get_seals(place)?.contains(SEALED) => bail!("the session that was served is not sealed"),
        id => Ok(Some(SessionId::parse(&id).context("what was served is no session")?)),
    }
}

fn read(file: &File) -> Result<String> {
    let mut text = String::new();
    file.take(NAME_BYTES_MAX + 1).read_to_string(&mut text).context("what was left is no text")?;
    Ok(text)
}

/// Checks a model's name. A recording is a file of the host, so only the human names one, on the command
/// line.
fn checked(model: &str) -> Result<()> {
    let is_name = !model.contains(char::is_control) && Cassette::file(model).is_none();
    if !is_name || model.len() as u64 > NAME_BYTES_MAX {
        bail!("`{model}` is no model that a conversation can turn to");
    }
    Ok(())
}
