//! Writes to standard output or standard error without being blocked by the reader: a reader that stopped
//! must not keep Ctrl-C from being heard.

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FileType, Mode, OFlags, fstat, open},
    io::Errno,
};
use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// Whether a signal came that the program has not heard yet.
static UNHEARD: AtomicBool = AtomicBool::new(false);
/// How long one wait for room takes at most.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// How many pauses pass before an unheard signal ends the waiting, because the signal may be an old one.
const PAUSES_MIN: u32 = 4;

/// Says whether a signal waits to be heard by code that may be writing.
pub fn unstick(unheard: bool) {
    UNHEARD.store(unheard, Relaxed);
}

/// One stream to a reader.
#[derive(Debug)]
pub(super) struct Out {
    file: OwnedFd,
    /// Whether the last write was given up.
    is_deaf: AtomicBool,
}

impl Out {
    pub(super) fn new(stream: &impl AsFd) -> Self {
        let file = unwaiting(stream).or_else(|_| stream.as_fd().try_clone_to_owned());
        // A stream that was closed before the program began has no reader.
        let null =
            || open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).map_err(io::Error::from);
        let file = file.or_else(|_| null());
        match file {
            Ok(file) => Self { file, is_deaf: AtomicBool::new(false) },
            Err(_) => crate::quit(bailey_protocol::exit::FAILED),
        }
    }

    /// Writes all bytes and waits for the reader. If the reader stopped and a signal says that the user wants
    /// to go on, the rest is dropped (the journal has it).
    ///
    /// # Errors
    /// When the bytes cannot be written.
    pub(super) fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        let mut pauses = 0;
        // A few bytes always fit somewhere; only the poll says whether there is room.
        if self.is_deaf.load(Relaxed) && !self.has_room(&Timespec { tv_sec: 0, tv_nsec: 0 }) {
            return Ok(());
        }
        self.is_deaf.store(false, Relaxed);
        while !bytes.is_empty() {
            match rustix::io::write(&self.file, bytes) {
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if UNHEARD.load(Relaxed) && pauses >= PAUSES_MIN {
                        self.is_deaf.store(true, Relaxed);
                        return Ok(());
                    }
                    self.has_room(&PAUSE);
                    pauses += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits at most `wait` for room, or until the reader is gone.
    fn has_room(&self, wait: &Timespec) -> bool {
        poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], Some(wait)).is_ok_and(|ready| ready > 0)
    }
}

/// The same pipe or terminal as an open file of its own that does not wait. Others may share the first open
/// file, and they expect it to wait. A regular file always has room.
fn unwaiting(stream: &impl AsFd) -> io::Result<OwnedFd> {
    let kind = FileType::from_raw_mode(fstat(stream)?.st_mode);
    if !matches!(kind, FileType::Fifo | FileType::CharacterDevice) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&stream.as_fd()));
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?)
}
