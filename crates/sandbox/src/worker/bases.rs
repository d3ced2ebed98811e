//! What the project held of a text when the session first changed it: the base of a three-way merge.
//!
//! A folder of the session's own that no command sees, with one file a text: its permission bits in octal, a
//! line feed, its bytes. Nothing here is proof. Whoever uses a text compares its state with the one that the
//! journal recorded; a torn, stale or missing one means that there is no base, and a change of both sides
//! stays a conflict.

use super::beneath::{Root, look, names};
use super::error::{Error, errno};
use super::read::size;
use super::state::{MODE_BITS, Unreadable, open_file};
use crate::mask;
use bailey_protocol::Digest;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};

/// Texts of one session, the bytes of each, and of all together.
const TEXTS_MAX: usize = 1_000;
const BYTES_MAX: u64 = 1 << 20;
const ALL_BYTES_MAX: u64 = 64 << 20;
/// The longest first line of a kept text.
const MODE_BYTES_MAX: u64 = 8;

/// Where base texts are kept, and of what none are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    /// The folder.
    pub folder: String,
    /// Names of files that may hold secrets, as in a `.gitignore`.
    pub masks: Vec<String>,
}

/// The texts that a session's folder holds.
pub(super) struct Bases {
    dir: OwnedFd,
    masks: mask::Masks,
    /// How many more texts and bytes fit; counted when the first comes.
    room: Option<(usize, u64)>,
}

/// A text with its permission bits.
pub(super) struct Text {
    pub(super) mode: u32,
    pub(super) bytes: Vec<u8>,
}

impl Bases {
    /// Opens the folder.
    ///
    /// # Errors
    /// When it is not there, or one of the masks is no glob.
    pub(super) fn open(keep: &Keep) -> Result<Self, Error> {
        let dir = Root::open(&keep.folder)?.dir("").map_err(Error::system("open", &keep.folder))?;
        let masks = mask::compile(&keep.masks).map_err(|error| Error::Request(error.to_string()))?;
        Ok(Self { dir, masks, room: None })
    }

    /// Keeps what `root` holds at `at`, where nothing is kept of that yet. What is no text, too much or
    /// masked is not kept.
    pub(super) fn keep(&mut self, root: &Root, at: &str) {
        // The first is the base; a process that begins again looks at everything again.
        if let Ok(None) = look(&self.dir, name(at).as_ref()) {
            self.store(root, at).ok();
        }
    }

    /// Keeps what `root` holds at `at` instead of what was kept of it.
    pub(super) fn renew(&mut self, root: &Root, at: &str) {
        if self.forget(at).is_ok() {
            self.store(root, at).ok();
        }
    }

    /// The text that is kept of `at`; none where there is none, or none that is whole.
    pub(super) fn text(&self, at: &str) -> Option<Text> {
        let (fd, stat) = open_file(&self.dir, name(at).as_ref()).ok()?;
        if size(&stat) > BYTES_MAX + MODE_BYTES_MAX {
            return None;
        }
        let mut bytes = Vec::new();
        File::from(fd).take(BYTES_MAX + MODE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let mode = u32::from_str_radix(std::str::from_utf8(bytes.get(..end)?).ok()?, 8).ok()?;
        bytes.drain(..=end);
        Some(Text { mode, bytes })
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) -> Result<(), Errno> {
        self.room = None;
        let (names, _) = names(&self.dir, TEXTS_MAX)?;
        names.iter().try_for_each(|name| unlinkat(&self.dir, name, AtFlags::empty()))
    }

    fn forget(&mut self, at: &str) -> Result<(), Errno> {
        let name = name(at);
        let Some(stat) = look(&self.dir, name.as_ref())? else { return Ok(()) };
        unlinkat(&self.dir, name.as_str(), AtFlags::empty())?;
        if let Some((texts, bytes)) = &mut self.room {
            (*texts, *bytes) = (*texts + 1, *bytes + size(&stat));
        }
        Ok(())
    }

    fn store(&mut self, root: &Root, at: &str) -> Result<(), Unreadable> {
        let (texts, left) = self.room()?;
        if texts == 0 || self.masks.names(at) {
            return Ok(());
        }
        let (dir, file) = root.parent(at)?;
        let (fd, stat) = open_file(dir, file.as_ref())?;
        let most = BYTES_MAX.min(left.saturating_sub(MODE_BYTES_MAX));
        if size(&stat) > most {
            return Ok(());
        }
        let mut bytes = Vec::new();
        File::from(fd).take(most).read_to_end(&mut bytes).map_err(|error| errno(&error))?;
        if bytes.contains(&0) || std::str::from_utf8(&bytes).is_err() {
            return Ok(());
        }
        let mode = format!("{:o}\n", stat.st_mode & MODE_BITS);
        let name = name(at);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut kept = File::from(openat(&self.dir, name.as_str(), flags, Mode::RUSR | Mode::WUSR)?);
        let written = kept.write_all(mode.as_bytes()).and_then(|()| kept.write_all(&bytes));
        if let Err(error) = written {
            unlinkat(&self.dir, name.as_str(), AtFlags::empty()).ok();
            return Err(errno(&error).into());
        }
        self.room = Some((texts - 1, left.saturating_sub((mode.len() + bytes.len()) as u64)));
        Ok(())
    }

    /// How much more fits.
    fn room(&mut self) -> Result<(usize, u64), Errno> {
        if let Some(room) = self.room {
            return Ok(room);
        }
        let (names, _) = names(&self.dir, TEXTS_MAX)?;
        let sizes = names.iter().filter_map(|name| look(&self.dir, name).ok().flatten());
        let bytes: u64 = sizes.map(|stat| size(&stat)).sum();
        Ok(*self.room.insert((TEXTS_MAX - names.len(), ALL_BYTES_MAX.saturating_sub(bytes))))
    }
}

/// The name under which the text of a path is kept.
fn name(at: &str) -> String {
    Digest::of(at.as_bytes()).to_string()
}
