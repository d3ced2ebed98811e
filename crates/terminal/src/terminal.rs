//! The controlling terminal: its keys one by one while a message is written, whole lines while a card is
//! answered. Every read can be given up, so that nothing waits for a person behind the scenes.

use super::keys::{Key, Keys};
use crate::print;
use anyhow::{Context as _, Result};
use rustix::{
    fs::OFlags,
    termios::{
        InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush,
        tcgetattr, tcsetattr,
    },
};
use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    sync::{Mutex, PoisonError},
};
use tokio::io::unix::AsyncFd;

/// Asks the terminal to mark what is pasted, so that its line ends send nothing off.
const PASTE_ON: &[u8] = b"\x1b[?2004h";
const PASTE_OFF: &[u8] = b"\x1b[?2004l";
/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Read at a time, in bytes.
const READ_BYTES: usize = 4096;

/// Reads of what is thrown away; whoever sends more than that without a pause is no person.
const DRAINED_READS_MAX: usize = 1024;

/// How the terminal was before keys were read one by one; whoever ends the program puts it back.
static BEFORE: Mutex<Option<Before>> = Mutex::new(None);

/// What was read of a key or a paste that has not ended. It belongs to the terminal and not to who reads: a
/// paste that begins in a message may end in a card.
static KEYS: Mutex<Keys> = Mutex::new(Keys::new());

/// How the terminal was.
#[derive(Debug)]
struct Before {
    file: File,
    modes: Termios,
    /// Whether it was told to mark what is pasted.
    marks: bool,
}

/// What one read brought.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) keys: Vec<Key>,
    /// It ended in the middle of a key or a paste.
    pub(super) is_cut: bool,
    /// It ended in the middle of a paste.
    pub(super) is_pasting: bool,
}

impl Read {
    /// Of these bytes, after what came before.
    pub(super) fn of(keys: &mut Keys, bytes: &[u8]) -> Self {
        Self { keys: keys.push(bytes), is_cut: keys.is_cut(), is_pasting: keys.is_pasting() }
    }
}

/// The controlling terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    file: AsyncFd<File>,
}

impl Terminal {
    /// # Errors
    /// When this process has no terminal.
    pub(super) fn open() -> io::Result<Self> {
        // An open file of its own: what reads without waiting here must not change what others see of theirs.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(i32::try_from(flags.bits()).unwrap_or_default())
            .open("/dev/tty")?;
        #[expect(
            deprecated,
            reason = "the file is a `File` and stays in here, so that its descriptor stays the same"
        )]
        let file = AsyncFd::new(file)?;
        Ok(Self { file })
    }

    /// From now on every key comes as it is typed, and none is shown by the terminal. Ctrl-C stays a signal.
    /// What is pasted is marked, where the terminal knows `marks`.
    pub(super) fn keys(&self, marks: bool) -> Result<()> {
        let file = self.file.get_ref();
        let modes = tcgetattr(file).context("the terminal cannot be asked for its settings")?;
        let kept = file.try_clone()?;
        let raw = raw(&modes);
        BEFORE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(Before {
            file: kept,
            modes,
            marks,
        });
        tcsetattr(file, OptionalActions::Drain, &raw).context("the terminal cannot be set up")?;
        if marks {
            (&*file).write_all(PASTE_ON).ok();
        }
        Ok(())
    }

    /// Whether it showed what is typed, before keys were read one by one. Where it did not, somebody else
    /// shows it.
    pub(super) fn was_echoing(&self) -> bool {
        let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        before.as_ref().is_none_or(|before| before.modes.local_modes.contains(LocalModes::ECHO))
    }

    /// Whole lines again, as the terminal gave them before.
    pub(super) fn lines(&self) {
        restore();
    }

    /// How many cells wide and rows high it is, or is taken to be where it does not say.
    pub(super) fn size(&self) -> (usize, usize) {
        print::usual(print::size(self.file.get_ref()))
    }

    /// Throws away what was typed and not read.
    pub(super) fn flush(&self) -> io::Result<()> {
        Ok(tcflush(self.file.get_ref(), QueueSelector::IFlush)?)
    }

    /// Writes to it, waiting for room.
    ///
    /// # Errors
    /// When it is gone.
    pub(super) async fn write(&self, text: &str) -> io::Result<()> {
        let mut bytes = text.as_bytes();
        while !bytes.is_empty() {
            let mut ready = self.file.writable().await?;
            let written = ready.try_io(|file| Ok(rustix::io::write(file.get_ref(), bytes)?));
            if let Ok(written) = written {
                bytes = bytes.get(written?..).unwrap_or_default();
            }
        }
        Ok(())
    }

    /// Waits for a line; none when the terminal is gone.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) async fn read_line(&self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        while !line.ends_with(b"\n") {
            let piece = self.read().await?;
            if piece.is_empty() && line.is_empty() {
                return Ok(None);
            }
            if piece.is_empty() || line.len() > LINE_BYTES_MAX {
                break;
            }
            line.extend(piece);
        }
        Ok(Some(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()))
    }

    /// Waits for the next keys; none when the terminal is gone.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) async fn read_keys(&self) -> io::Result<Option<Read>> {
        let bytes = self.read().await?;
        let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
        Ok((!bytes.is_empty()).then(|| Read::of(&mut keys, &bytes)))
    }

    /// Throws away the keys that are there; whether a paste is then not at its end, which a flush by the
    /// kernel would forget.
    pub(super) fn drain(&self) -> bool {
        let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = [0; READ_BYTES];
        for _ in 0..DRAINED_READS_MAX {
            match rustix::io::read(self.file.get_ref(), &mut bytes) {
                Ok(length @ 1..) => drop(keys.push(bytes.get(..length).unwrap_or_default())),
                Err(rustix::io::Errno::INTR) => {}
                Ok(0) | Err(_) => break,
            }
        }
        keys.is_pasting()
    }

    /// Waits for the next bytes; none when the terminal is gone.
    ///
    /// # Errors
    /// When it cannot be read.
    async fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; READ_BYTES];
        loop {
            let mut ready = self.file.readable().await?;
            let read = ready.try_io(|file| Ok(rustix::io::read(file.get_ref(), &mut bytes)?));
            if let Ok(read) = read {
                bytes.truncate(read?);
                return Ok(bytes);
            }
        }
    }
}

/// Notes how the controlling terminal is, where there is one, for whoever has it put back after another
/// process.
pub fn remember() {
    let file = OpenOptions::new().read(true).write(true).open("/dev/tty");
    let found = file.and_then(|file| Ok((tcgetattr(&file)?, file)));
    if let Ok((modes, file)) = found {
        let before = Before { file, modes, marks: true };
        BEFORE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(before);
    }
}

/// Puts the terminal back as it was found. The program's every end passes here.
pub fn restore() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(mut before) = before {
        before.put_back();
    }
}

/// Does something while the terminal is as it was found; afterwards keys are read one by one where they were
/// before.
pub(super) fn lend(meanwhile: impl FnOnce()) {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut before) = before else { return meanwhile() };
    before.put_back();
    meanwhile();
    if let Ok(modes) = tcgetattr(&before.file) {
        before.modes = modes;
    }
    tcsetattr(&before.file, OptionalActions::Drain, &raw(&before.modes)).ok();
    if before.marks {
        before.file.write_all(PASTE_ON).ok();
    }
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(before);
}

impl Before {
    fn put_back(&mut self) {
        if self.marks {
            self.file.write_all(PASTE_OFF).ok();
        }
        tcsetattr(&self.file, OptionalActions::Drain, &self.modes).ok();
    }
}

/// The same settings, with every key as it is typed and none of them shown.
fn raw(modes: &Termios) -> Termios {
    let mut raw = modes.clone();
    raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN;
    raw.input_modes -= InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR | InputModes::ISTRIP;
    raw.special_codes[SpecialCodeIndex::VMIN] = 1;
    raw.special_codes[SpecialCodeIndex::VTIME] = 0;
    raw
}

/// How many cells wide and high standard output is; 80 by 24 where it does not say.
pub(super) fn size() -> (usize, usize) {
    print::size(&io::stdout()).filter(|(_, rows)| *rows > 0).unwrap_or((80, 24))
}
