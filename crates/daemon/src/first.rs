//! The first process of a container, or of any PID namespace: a process there whose parent has ended becomes
//! its child, and no other process reaps it (pid_namespaces(7)).

use super::process;
use anyhow::{Context as _, Result};
use bailey_home::program;
use bailey_session::exit;
use rustix::process::{Signal, WaitOptions, WaitStatus, kill_process, wait};
use std::{
    env,
    process::{ExitCode, id},
};
use tokio::signal::unix::{SignalKind, signal};

/// Added to a signal's number, this is the exit code for a process that the signal ended.
const BY_SIGNAL: i32 = 128;

/// Whether this process is the first.
pub(crate) fn is_first() -> bool {
    id() == 1
}

/// Runs the daemon as a child of this process, passes signals on to it, and reaps every other child that
/// ends. Returns how the daemon ended.
///
/// # Errors
/// When the daemon cannot be started.
pub(crate) async fn keep() -> Result<ExitCode> {
    let hear = |kind: SignalKind| signal(kind).context("signals cannot be heard");
    let mut hang_up = hear(SignalKind::hangup())?;
    let mut terminate = hear(SignalKind::terminate())?;
    let mut interrupt = hear(SignalKind::interrupt())?;
    let mut ended = hear(SignalKind::child())?;
    let child = program::again().args(env::args_os().skip(1)).spawn();
    let daemon =
        process(child.context("the daemon cannot be started")?.id()).context("a process has no number")?;
    loop {
        while let Ok(Some((pid, how))) = wait(WaitOptions::NOHANG) {
            if pid == daemon {
                return Ok(code(how));
            }
        }
        let signal = tokio::select! {
            _ = ended.recv() => continue,
            _ = hang_up.recv() => Signal::HUP,
            _ = terminate.recv() => Signal::TERM,
            _ = interrupt.recv() => Signal::INT,
        };
        // If the daemon has just ended, the loop sees that next.
        kill_process(daemon, signal).ok();
    }
}

fn code(how: WaitStatus) -> ExitCode {
    let by_signal = || how.terminating_signal().map(|signal| BY_SIGNAL + signal);
    let code = how.exit_status().or_else(by_signal).and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(exit::FAILED))
}
