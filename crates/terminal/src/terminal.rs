//! The controlling terminal. It gives keys one by one, or whole lines. Every read can be given up, so that no
//! hidden read waits for the user.

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
    time::{Duration, Instant},
};
use tokio::io::unix::AsyncFd;

/// Asks the terminal to mark pasted text, so that line ends in it do not send a message.
const PASTE_ON: &[u8] = b"\x1b[?2004h";
const PASTE_OFF: &[u8] = b"\x1b[?2004l";
/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 1 << 20;
/// How much is read at a time, in bytes.
const READ_BYTES: usize = 4096;

/// How many reads are thrown away at most. A sender of more than that without a pause is not a person.
const DRAINED_READS_MAX: usize = 1024;

/// How long an Escape waits for the rest of a sequence, before it is a key of its own.
const ESCAPE: Duration = Duration::from_millis(60);

/// The terminal's settings before keys were read one by one. The code that ends the program restores them.
static BEFORE: Mutex<Option<Before>> = Mutex::new(None);

/// The bytes that were read of a key or a paste that has not ended. They belong to the terminal and not to
/// one reader: a paste that begins in a message may end in a card.
static KEYS: Mutex<Keys> = Mutex::new(Keys::new());

/// When the user last typed within a text that they have not sent.
static TYPED: Mutex<Option<Instant>> = Mutex::new(None);
/// A pause longer than this ends typing.
pub(super) const PAUSE: Duration = Duration::from_millis(700);

/// When the user last typed within a text that they have not sent; `None` when they type nothing.
pub(super) fn typed_at() -> Option<Instant> {
    *TYPED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that a key was an answer, and no part of a text.
pub(super) fn answered() {
    *TYPED.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

fn note_typing(keys: &[Key]) {
    if let Some(last) = keys.last() {
        let is_within = !matches!(last, Key::Enter);
        *TYPED.lock().unwrap_or_else(PoisonError::into_inner) = is_within.then(Instant::now);
    }
}

/// The terminal's earlier settings.
#[derive(Debug)]
struct Before {
    file: File,
    modes: Termios,
    /// Whether the terminal was told to mark pasted text.
    marks: bool,
}

/// The keys of one read.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) keys: Vec<Key>,
    /// The read ended in the middle of a key or a paste.
    pub(super) is_cut: bool,
    /// The read ended in the middle of a paste.
    pub(super) is_pasting: bool,
}

impl Read {
    /// Makes a read from these bytes; `keys` holds the unfinished bytes of earlier reads.
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
        // This is an open file of its own: reading without waiting here must not change the open files of
        // others.
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

    /// From now on every key comes as it is typed, and the terminal shows no key. Ctrl-C stays a signal. With
    /// `marks`, the terminal is asked to mark pasted text.
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

    /// Whether the terminal showed typed text before keys were read one by one. If it did not, something else
    /// shows the text.
    pub(super) fn was_echoing(&self) -> bool {
        let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        before.as_ref().is_none_or(|before| before.modes.local_modes.contains(LocalModes::ECHO))
    }

    /// Restores the terminal's settings, so that it gives whole lines again as before.
    pub(super) fn lines(&self) {
        restore();
    }

    /// The terminal's width in cells and its height in rows, or usual values when it does not say them.
    pub(super) fn size(&self) -> (usize, usize) {
        print::usual(print::size(self.file.get_ref()))
    }

    /// Throws away typed input that was not read.
    pub(super) fn flush(&self) -> io::Result<()> {
        Ok(tcflush(self.file.get_ref(), QueueSelector::IFlush)?)
    }

    /// Writes to the terminal and waits for room.
    ///
    /// # Errors
    /// When the terminal is gone.
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

    /// Waits for a line; `None` when the terminal is gone.
    ///
    /// # Errors
    /// When the terminal cannot be read.
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

    /// Waits for the next keys; `None` when the terminal is gone.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub(super) async fn read_keys(&self) -> io::Result<Option<Read>> {
        let keys = || KEYS.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = if keys().is_escape() { Some(ESCAPE) } else { None };
        let bytes = match waits {
            None => self.read().await?,
            Some(time) => match tokio::time::timeout(time, self.read()).await {
                Ok(bytes) => bytes?,
                Err(_) => {
                    let keys = keys().escape().into_iter().collect();
                    return Ok(Some(Read { keys, ..Read::default() }));
                }
            },
        };
        let read = (!bytes.is_empty()).then(|| Read::of(&mut keys(), &bytes));
        read.iter().for_each(|read| note_typing(&read.keys));
        Ok(read)
    }

    /// Throws away the keys that have arrived. Returns whether a paste has not ended yet; a flush by the
    /// kernel would lose this fact.
    pub(super) fn drain(&self) -> bool {
        let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = [0; READ_BYTES];
        for _ in 0..DRAINED_READS_MAX {
            match rustix::io::read(self.file.get_ref(), &mut bytes) {
                Ok(length @ 1..) => note_typing(&keys.push(bytes.get(..length).unwrap_or_default())),
                Err(rustix::io::Errno::INTR) => {}
                Ok(0) | Err(_) => break,
            }
        }
        // An Escape that was thrown away makes no sequence of the Enter behind it.
        keys.escape();
        keys.is_pasting()
    }

    /// Waits for the next bytes; gives no bytes when the terminal is gone.
    ///
    /// # Errors
    /// When the terminal cannot be read.
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

/// Notes the settings of the controlling terminal, if there is one, so that [`restore`] can put them back
/// after another process.
pub fn remember() {
    let file = OpenOptions::new().read(true).write(true).open("/dev/tty");
    let found = file.and_then(|file| Ok((tcgetattr(&file)?, file)));
    if let Ok((modes, file)) = found {
        let before = Before { file, modes, marks: true };
        BEFORE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(before);
    }
}

/// Restores the terminal's earlier settings. Every end of the program passes here.
pub fn restore() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(mut before) = before {
        before.put_back();
    }
}

/// Runs `meanwhile` with the terminal's earlier settings. Afterwards keys are read one by one again, if they
/// were before.
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

/// The same settings, but every key comes as it is typed and is not shown.
fn raw(modes: &Termios) -> Termios {
    let mut raw = modes.clone();
    raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN;
    raw.input_modes -= InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR | InputModes::ISTRIP;
    raw.special_codes[SpecialCodeIndex::VMIN] = 1;
    raw.special_codes[SpecialCodeIndex::VTIME] = 0;
    raw
}

/// The width of standard output in cells and its height in rows; 80 by 24 when it does not say them.
pub(super) fn size() -> (usize, usize) {
    print::size(&io::stdout()).filter(|(_, rows)| *rows > 0).unwrap_or((80, 24))
}
