//! The parent of a conversation: it starts a process for each session, one after the other, and waits for it.
//!
//! The process of a session binds itself before it receives anything from outside, and so cannot open
//! another session. The parent is not bound, and takes no input: it reads no file and no key, and learns
//! only how a session ended. The session's exit code [`exit::NEXT`] asks for a new session,
//! [`exit::AGAIN`] for a process that comes back to the same session, and [`exit::ONWARD`] for one that forks
//! or exports the session first.

use crate::{compose::HANDOFF, exit, front, program};
use anyhow::{Context as _, Result};
use rustix::{
    fd::{AsRawFd as _, OwnedFd},
    fs::MemfdFlags,
    process::{Pid, Signal as Number, WaitOptions, WaitStatus, getpid, kill_process, waitpid},
};
use std::{
    env,
    process::{Child, ExitCode},
};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Keeps a conversation to its end. Its exit code is that of the last session.
pub async fn keep() -> Result<ExitCode> {
    let mut ear = Ear::listen()?;
    let note = memory()?;
    let mut place = memory()?;
    let mut from: Option<OwnedFd> = None;
    front::remember();
    loop {
        let before = from.as_ref().map(|from| format!(",{}", from.as_raw_fd())).unwrap_or_default();
        let child = program::again()
            .arg(format!("{HANDOFF}{},{}{before}", note.as_raw_fd(), place.as_raw_fd()))
            .args(env::args_os().skip(1))
            .spawn()
            .context("cannot start the process of a session")?;
        match ear.wait(&child).await? {
            exit::NEXT => (place, from) = (memory()?, None),
            exit::ONWARD => from = Some(std::mem::replace(&mut place, memory()?)),
            exit::AGAIN => {}
            code => return Ok(ExitCode::from(code)),
        }
    }
}

/// Makes a file in memory. It stays open across an execution, and the kernel removes it with the last
/// process that has it.
fn memory() -> Result<OwnedFd> {
    rustix::fs::memfd_create("bailey-handoff", MemfdFlags::ALLOW_SEALING).context("no file in memory")
}

/// The signals that a parent receives.
pub(crate) struct Ear {
    child: Signal,
    terminate: Signal,
    /// `None` when the process was started with `nohup`.
    hang_up: Option<Signal>,
    /// The terminal sends these to the session as well, and the session answers them.
    _ignored: [Signal; 3],
}

impl Ear {
    pub(crate) fn listen() -> Result<Self> {
        let hear = |kind: SignalKind| signal(kind).context("signals cannot be heard");
        let hang_up = (!front::is_ignored(SignalKind::hangup())).then(|| hear(SignalKind::hangup()));
        Ok(Self {
            child: hear(SignalKind::child())?,
            terminate: hear(SignalKind::terminate())?,
            hang_up: hang_up.transpose()?,
            _ignored: [
                hear(SignalKind::interrupt())?,
                hear(SignalKind::quit())?,
                hear(SignalKind::from_raw(Number::TSTP.as_raw()))?,
            ],
        })
    }

    /// Waits for the end of a session and passes signals on to it. Returns its exit code.
    pub(crate) async fn wait(&mut self, child: &Child) -> Result<u8> {
        let session = Pid::from_child(child);
        loop {
            let passed = tokio::select! {
                _ = self.child.recv() => None,
                _ = self.terminate.recv() => Some(Number::TERM),
                _ = hung_up(&mut self.hang_up) => Some(Number::HUP),
            };
            if let Some(signal) = passed {
                // The session may have ended just now; the signal asks for that anyway.
                kill_process(session, signal).ok();
            }
            while let Some((_, status)) = waitpid(Some(session), WaitOptions::NOHANG | WaitOptions::UNTRACED)?
            {
                match code(status) {
                    Some(code) => return Ok(code),
                    // Ctrl-Z: the session has put the terminal in order, so the shell can have it now.
                    None => {
                        kill_process(getpid(), Number::STOP).ok();
                        kill_process(session, Number::CONT).ok();
                    }
                }
            }
        }
    }
}

/// The exit code of a session's process; `None` when the process was stopped.
fn code(status: WaitStatus) -> Option<u8> {
    if status.stopped() {
        return None;
    }
    if let Some(signal) = status.terminating_signal() {
        // The process had no time to restore the terminal itself.
        front::restore();
        if signal == Number::INT.as_raw() {
            // The shell gets a line of its own.
            front::end_line();
        }
        return Some(u8::try_from(128 + signal).unwrap_or(exit::FAILED));
    }
    Some(status.exit_status().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAILED))
}

async fn hung_up(hang_up: &mut Option<Signal>) {
    match hang_up {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}
