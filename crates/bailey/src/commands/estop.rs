//! `bailey estop`: everything that agents of this home do ends at once, and nothing begins until a human releases it.
//!
//! The journal bars what has not begun, in the transaction in which it would. What has begun ends with the process that runs
//! its session: that one is asked to end, and killed when it does not, and takes everything inside the walls with it.

use crate::{
    cli::Answering,
    compose::{self, Keys},
    config::Config,
    exit,
    front::{Asker, confirm},
    home::Home,
    print::{Printer, Style},
};
use anyhow::{Context as _, Result, bail};
use bailey_journal::{Holder, Journal, Mint, SessionLock};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::json;
use std::{
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

/// How long a process may take to write how its effects ended, before it is killed.
const KILLED_AFTER: Duration = Duration::from_millis(500);
/// How long one may take to be gone after that.
const GONE_AFTER: Duration = Duration::from_millis(1500);
/// How often is looked.
const LOOK: Duration = Duration::from_millis(5);

/// A process that runs a session.
struct Running {
    folder: PathBuf,
    holder: Holder,
    process: OwnedFd,
}

pub(super) async fn run(home: &Home, why: &str, printer: &Printer) -> Result<ExitCode> {
    let begin = Instant::now();
    // Where the journal cannot be written, what runs is ended all the same.
    let barred = async { anyhow::Ok(mint(home, printer).await?.1.stop(why).await?) }.await;
    let running = running(home)?;
    let left = end(&running).await;
    let milliseconds = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    let ended = running.len() - left.len();
    if printer.is_json() {
        let left: Vec<&Holder> = left.iter().map(|running| &running.holder).collect();
        printer.json(&json!({
            "barred": barred.is_ok(), "ended": ended, "left": left, "milliseconds": milliseconds
        }));
    } else {
        printer.line(format!(
            "{}: {ended} running {} ended, after {milliseconds} ms",
            printer.paint(Style::Red, "stopped"),
            if ended == 1 { "session" } else { "sessions" },
        ));
        left.iter().for_each(|running| printer.warn(&format!("this one still lives: {}", running.holder)));
    }
    barred.context("what ran was ended, but the journal cannot say that nothing may begin")?;
    if !printer.is_json() {
        printer.note("nothing begins in this home until: bailey estop --release");
    }
    Ok(ExitCode::from(if left.is_empty() { exit::DONE } else { exit::FAILED }))
}

pub(super) async fn release(home: &Home, printer: &Printer) -> Result<ExitCode> {
    let (journal, mint) = mint(home, printer).await?;
    let Some(since) = journal.stopped().await? else {
        printer.note("nothing is stopped");
        return Ok(ExitCode::SUCCESS);
    };
    if !Asker::new(Answering::Ask).is_here() {
        bail!("only a human at a terminal can release what was stopped, and there is no terminal here");
    }
    if !confirm(&format!("Everything is stopped since {since}. Let agents of this home work again?")).await {
        printer.note("it stays stopped");
        return Ok(ExitCode::from(exit::DENIED));
    }
    mint.release().await?;
    printer.line("released; `bailey sessions resume` goes on with what was cut off");
    Ok(ExitCode::SUCCESS)
}

async fn mint(home: &Home, printer: &Printer) -> Result<(Journal, Mint)> {
    let config = Config::load(home)?;
    let keys = Keys::load(home, &config, printer)?;
    compose::journal(home, &keys).await
}

/// The processes that hold a session of this home, each by a handle that cannot come to mean another one.
fn running(home: &Home) -> Result<Vec<Running>> {
    let sessions = home.root.join("sessions");
    let folders = match fs::read_dir(&sessions) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        folders => folders.with_context(|| format!("cannot look into `{}`", sessions.display()))?,
    };
    let mut running = Vec::new();
    for folder in folders {
        running.extend(running_in(&folder?.path()));
    }
    Ok(running)
}

fn running_in(folder: &Path) -> Option<Running> {
    let holder = SessionLock::holder(folder).ok()??;
    let process = pidfd_open(Pid::from_raw(i32::try_from(holder.pid).ok()?)?, PidfdFlags::empty()).ok()?;
    // Only if it holds the lock still, this handle is that process's.
    let still = SessionLock::holder(folder).ok()??;
    (still == holder).then(|| Running { folder: folder.into(), holder, process })
}

/// Ends them; gives those that are still there.
async fn end(running: &[Running]) -> Vec<&Running> {
    let send = |left: &[&Running], signal| {
        left.iter().for_each(|running| {
            pidfd_send_signal(&running.process, signal).ok();
        });
    };
    let mut left: Vec<&Running> = running.iter().collect();
    send(&left, Signal::TERM);
    left = wait(left, KILLED_AFTER).await;
    send(&left, Signal::KILL);
    wait(left, GONE_AFTER).await
}

/// Waits until they have let go of their sessions.
async fn wait(mut left: Vec<&Running>, most: Duration) -> Vec<&Running> {
    let begin = Instant::now();
    loop {
        left.retain(|running| matches!(SessionLock::holder(&running.folder), Ok(Some(_)) | Err(_)));
        if left.is_empty() || begin.elapsed() >= most {
            return left;
        }
        tokio::time::sleep(LOOK).await;
    }
}
