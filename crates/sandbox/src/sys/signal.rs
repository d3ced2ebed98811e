//! Signals as data: blocked, and read from a descriptor.

use super::check;
use rustix::process::Signal;
use std::{
    io,
    mem::{MaybeUninit, size_of},
    os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
};

/// A signal that was read from a [`SignalFd`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caught {
    /// Its number.
    pub(crate) signal: i32,
    /// Who sent it, in the reader's pid namespace; 0 when the sender lives outside of it.
    pub(crate) sender: u32,
}

/// Signals that were blocked, to be read one by one.
#[derive(Debug)]
pub(crate) struct SignalFd(OwnedFd);

impl SignalFd {
    /// Blocks these signals for this thread and gives a descriptor to read them from.
    ///
    /// # Errors
    /// `EMFILE`.
    pub(crate) fn block(signals: &[Signal]) -> io::Result<Self> {
        let set = set_of(signals);
        // SAFETY: a valid signal set; the old one is not asked for.
        check(i64::from(unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()) }))?;
        // SAFETY: a valid signal set; -1 asks for a new descriptor.
        let fd = check(i64::from(unsafe {
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        }))?;
        // SAFETY: the call has just made it, for us alone.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd as i32) }))
    }

    /// The next signal; none when none waits.
    pub(crate) fn next(&self) -> Option<Caught> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        // SAFETY: the buffer is as long as its type, and stays borrowed for the call only.
        let buffer = unsafe {
            std::slice::from_raw_parts_mut(
                info.as_mut_ptr().cast::<u8>(),
                size_of::<libc::signalfd_siginfo>(),
            )
        };
        let read = rustix::io::read(&self.0, buffer).ok()?;
        (read == size_of::<libc::signalfd_siginfo>()).then(|| {
            // SAFETY: plain integers, zeroed before and filled in full by the kernel.
            let info = unsafe { info.assume_init() };
            Caught { signal: info.ssi_signo as i32, sender: info.ssi_pid }
        })
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Undoes what Rust's start-up and [`SignalFd::block`] did: nothing is blocked and SIGPIPE ends a process
/// again. The last thing before `execve`, which would hand both on.
pub(crate) fn default_signals() -> io::Result<()> {
    let none = set_of(&[]);
    // SAFETY: the default action needs no handler function; an empty set unblocks everything.
    unsafe {
        if libc::signal(libc::SIGPIPE, libc::SIG_DFL) == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
        check(i64::from(libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut()))).map(drop)
    }
}

/// Sends a signal to every process that this one may signal, but not to itself: kill(2) with -1. To be called
/// by the first process of a pid namespace only, where that is everything inside.
pub(crate) fn process_signals(signal: Signal) -> io::Result<()> {
    if rustix::process::getpid().as_raw_pid() != 1 {
        return Err(io::Error::other("only the first process of a pid namespace may signal all"));
    }
    // SAFETY: kill has no memory preconditions.
    check(i64::from(unsafe { libc::kill(-1, signal.as_raw()) })).map(drop)
}

fn set_of(signals: &[Signal]) -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set, sigaddset adds valid numbers to it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal.as_raw());
        }
        set.assume_init()
    }
}
