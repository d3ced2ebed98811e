//! What one process of a conversation leaves to the next: the model that the person turned to. It goes through a file in memory that
//! the keeper hands on unread, and is looked at here like anything that may come from a process that was taken over.

use anyhow::{Context as _, Result, bail};
use std::{
    fs::{self, File},
    io::{Read as _, Seek as _, Write as _},
    os::fd::RawFd,
};

/// The longest name of a model, in bytes.
const NAME_BYTES_MAX: u64 = 512;

/// This process's place in a conversation.
#[derive(Debug)]
pub(super) struct Seat {
    note: File,
    /// Whether no session came before.
    pub(super) is_first: bool,
    /// The model that the person turned to in a session before.
    pub(super) model: Option<String>,
}

impl Seat {
    /// Reads what the process before left, over a descriptor that this one was started with.
    ///
    /// # Errors
    /// When there is none, or it is no name of a model.
    pub(super) fn take(descriptor: RawFd) -> Result<Self> {
        let path = format!("/proc/self/fd/{descriptor}");
        let note = fs::OpenOptions::new().read(true).write(true).open(&path);
        let mut note = note.with_context(|| {
            format!("cannot open `{path}`: `--seat` is private; to talk with the agent: bailey chat")
        })?;
        let mut text = String::new();
        (&note).take(NAME_BYTES_MAX + 1).read_to_string(&mut text).context("what was left is no text")?;
        note.set_len(0)?;
        note.rewind()?;
        let is_first = text.is_empty();
        let model = Some(text.trim_end_matches('\n').to_owned()).filter(|model| !model.is_empty());
        model.as_deref().map(checked).transpose()?;
        Ok(Self { note, is_first, model })
    }

    /// Leaves the model to the next process.
    ///
    /// # Errors
    /// When the name is none, or cannot be written.
    pub(super) fn leave(mut self, model: Option<&str>) -> Result<()> {
        model.map(checked).transpose()?;
        Ok(writeln!(self.note, "{}", model.unwrap_or_default())?)
    }
}

/// A recording is a file of the host's: only the human names one, on the command line.
fn checked(model: &str) -> Result<()> {
    let is_name = !model.contains(char::is_control) && !model.starts_with("replay:");
    if !is_name || model.len() as u64 > NAME_BYTES_MAX {
        bail!("`{model}` is no model that a conversation can turn to");
    }
    Ok(())
}
