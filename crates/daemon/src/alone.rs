//! A home has one daemon: a process that wants to be the daemon takes its lock.

use super::SILENCE_MAX;
use anyhow::{Result, bail};
use bailey_home::home::Home;
use bailey_journal::{FileLocks, Holder, InUse, JournalError, SessionLock};
use bailey_protocol::SessionId;
use bailey_session::{
    client::Client,
    wire::{Ask, DaemonAnswer},
};
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// How long a daemon that cannot be asked any more may take to be gone.
const LAST_BREATH: Duration = Duration::from_secs(1);
/// The longest wait for a daemon that hears no client any more.
const GONE_MAX: Duration = Duration::from_secs(5);
/// The pauses between two looks at the lock.
const PAUSE: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_millis(10);

/// The session whose lock the daemon of a home holds.
fn session() -> SessionId {
    SessionId::new(0, [2; 10])
}

/// Takes the daemon's lock. If a daemon is ending, waits for its end and tells the user so with `say`.
///
/// # Errors
/// When another daemon runs and is not about to end.
pub(super) async fn alone(home: &Home, holder: &Holder, say: impl Fn(&str)) -> Result<SessionLock> {
    let (mut since, mut is_told) = (Instant::now(), false);
    loop {
        match SessionLock::take(session(), &home.daemon(), holder) {
            Err(JournalError::Held { .. }) if since.elapsed() < LAST_BREATH => sleep(PAUSE).await,
            Err(JournalError::Held { holder, .. }) => {
                let Some(pid) = ending(home).await else {
                    let by = holder.map_or_else(|| "another process".to_owned(), |holder| holder.to_string());
                    bail!(
                        "the daemon of this home runs already: {by}; `bailey status` shows it, `bailey stop` ends it"
                    )
                };
                if !std::mem::replace(&mut is_told, true) {
                    say(&format!("the daemon (process {pid}) is ending; waiting for its end"));
                }
                since = Instant::now();
            }
            lock => return Ok(lock?),
        }
    }
}

/// Waits until a daemon that hears no client any more has let go of its home: until then it writes there.
/// Returns whether it has let go.
///
/// # Errors
/// When the daemon's lock cannot be read.
pub(crate) async fn gone(home: &Home) -> Result<bool> {
    let since = Instant::now();
    // The holder's number does not matter here.
    while InUse::of(&home.daemon(), &FileLocks::default())?.is_some() {
        // The next daemon may be there already.
        if Client::is_there(home) {
            return Ok(true);
        }
        if since.elapsed() > GONE_MAX {
            return Ok(false);
        }
        sleep(LOOK).await;
    }
    Ok(true)
}

/// The process that is the home's daemon but cannot be asked, if there is one: its number, if the kernel or
/// the daemon's own note gives it. Waits for a daemon that is beginning or ending.
///
/// # Errors
/// When the daemon's lock cannot be read.
pub(crate) async fn deaf(home: &Home) -> Result<Option<Option<u32>>> {
    if gone(home).await? { Ok(None) } else { holder(home) }
}

/// The process that is the home's daemon, if there is one: its number, if the kernel or the daemon's own note
/// gives it.
///
/// # Errors
/// When the daemon's lock cannot be read.
pub fn holder(home: &Home) -> Result<Option<Option<u32>>> {
    let in_use = InUse::of(&home.daemon(), &FileLocks::now().unwrap_or_default())?;
    Ok(in_use.map(|it| it.processes.first().copied().or(it.says.map(|says| says.pid))))
}

/// The number of the running daemon's process, if that daemon is about to end.
async fn ending(home: &Home) -> Option<u32> {
    let mut client = Client::connect(home).ok()??;
    match timeout(SILENCE_MAX, client.ask(Ask::Status)).await {
        Ok(Ok(DaemonAnswer::Status(status))) if status.stopping => Some(status.pid),
        _ => None,
    }
}
