//! The state that one process of a conversation leaves to the next, in two files in memory. The parent hands
//! the files on unread.
//!
//! One file holds the model that the person turned to. It is checked here, because it may come from a
//! process that was taken over. The other file holds the session that the process served. The process wrote
//! and sealed it before it received anything from outside, so the next process comes back to that session
//! and no other.

use anyhow::{Context as _, Result, bail};
use bailey_llm::Cassette;
use bailey_protocol::SessionId;
use rustix::fs::{SealFlags, fcntl_add_seals, fcntl_get_seals};
use std::{
    fs::{self, File},
    io::{Read as _, Seek as _, Write as _},
};

/// The longest name of a model, in bytes.
const NAME_BYTES_MAX: u64 = 512;
/// After these seals no process can write to the file, whoever has it open (memfd_create(2)).
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
}

impl Handoff {
    /// Reads the state that the process before left, from the two descriptors that this process was started
    /// with, `NOTE,PLACE`.
    ///
    /// # Errors
    /// When there are no descriptors, or they hold neither a model's name nor a session.
    pub(super) fn take(descriptors: &str) -> Result<Self> {
        let private = || "`--handoff` is private; to talk with the agent: bailey chat";
        let (note, place) = descriptors.split_once(',').with_context(private)?;
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
        let lost = match read(&place)? {
            id if id.is_empty() => None,
            _ if !fcntl_get_seals(&place)?.contains(SEALED) => {
                bail!("the session that was served is not sealed")
            }
            id => Some(SessionId::parse(&id).context("what was served is no session")?),
        };
        let model = Some(text.trim_end_matches('\n').to_owned()).filter(|model| !model.is_empty());
        model.as_deref().map(checked).transpose()?;
        Ok(Self { note, place, lost, is_first: text.is_empty() && lost.is_none(), model })
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

    /// Leaves the model to the next process.
    ///
    /// # Errors
    /// When the name is not valid, or cannot be written.
    pub(super) fn leave(mut self, model: Option<&str>) -> Result<()> {
        model.map(checked).transpose()?;
        Ok(writeln!(self.note, "{}", model.unwrap_or_default())?)
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
