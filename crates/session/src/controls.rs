//! Walls taken away and promises broken, for tests alone: an attack that the walls stop must succeed without
//! them, a crash must lose what the journal did not hold, or the test has shown nothing. Only the program
//! `bailey-controls` has this, and no release has that program.

use anyhow::{Context as _, Result, bail};
use bailey_journal::{Breach, CrashPoint, InUse, Mint, Shelf};
use bailey_policy::{Policy, Programs};
use bailey_protocol::Wall;
use bailey_sandbox::Config;
use std::{env, fs::File, path::PathBuf, time::Duration};

/// Walls to leave away, by their names in the journal, separated by commas.
const WITHOUT: &str = "BAILEY_CONTROL_WITHOUT";
/// Among them: directories of the host are bound, and not shown through overlays.
const OVERLAY: &str = "overlay";
/// `1`: a command runs without them. Else it is refused, as the walls left are below the minimum.
const ACCEPT: &str = "BAILEY_CONTROL_ACCEPT";
/// `1`: the warden grants whatever it is asked for.
const TRUSTING: &str = "BAILEY_CONTROL_TRUSTING";
/// `1`: the main process does not bind itself.
const UNBOUND: &str = "BAILEY_CONTROL_UNBOUND";
/// `1`: the emergency stop takes for the process that runs a session whoever the session's lock says it is.
const HEARSAY: &str = "BAILEY_CONTROL_HEARSAY";
/// Walls of the page that are left away, with commas between: `origins`, `bearer`, `limit`; of a webhook:
/// `signature`, `replay`; of a channel's files: `path`.
const PAGE_WITHOUT: &str = "BAILEY_CONTROL_PAGE_WITHOUT";
/// `1`: the daemon and the processes of its sessions answer every user of this machine.
const OPEN_TO_ALL: &str = "BAILEY_CONTROL_OPEN_TO_ALL";
/// A directory to take the organisation's rules from.
const ORGANISATION: &str = "BAILEY_CONTROL_ORGANISATION";
/// `none`: no program is known to run others, so that an allow for its name covers whatever it runs.
const PROGRAMS: &str = "BAILEY_CONTROL_PROGRAMS";
/// `late`: a command begins [`LATE`] before its intent is on disk. `careless`: no entry waits for the disk.
const JOURNAL: &str = "BAILEY_CONTROL_JOURNAL";
/// The step of an archive at which the process ends, as by kill -9.
const ARCHIVE: &str = "BAILEY_CONTROL_ARCHIVE";
const LATE: Duration = Duration::from_secs(3);

/// A file with the seconds that this program's clock is ahead by, now and whenever it says something else.
const CLOCK: &str = "BAILEY_CONTROL_CLOCK";

/// Moves the clock as the environment says.
pub fn move_clock() {
    if let Some(file) = env::var_os(CLOCK).and_then(|path| File::open(path).ok()) {
        bailey_journal::double::move_by(file);
    }
}

/// Breaks the promise that the environment names.
pub(crate) async fn breach(mut mint: Mint) -> Result<Mint> {
    match env::var(JOURNAL).unwrap_or_default().as_str() {
        "" => {}
        "late" => mint.breach(Breach::Late(LATE)).await?,
        "careless" => mint.breach(Breach::Careless).await?,
        other => bail!("{JOURNAL}: `{other}`"),
    }
    Ok(mint)
}

/// The step of a change of the agent's own file at which everything ends, as by kill -9.
const OWN: &str = "BAILEY_CONTROL_OWN";

/// Ends this process where the environment says, on the way of sessions into an archive.
pub fn crash(mut shelf: Shelf) -> Result<Shelf> {
    if let Ok(name) = env::var(ARCHIVE) {
        let step = CrashPoint::ALL.iter().find(|(known, _)| *known == name);
        shelf.crash_at = Some(step.with_context(|| format!("{ARCHIVE}: `{name}`"))?.1);
    }
    Ok(shelf)
}

/// Leaves away what the environment names.
pub(crate) fn take_away(mut config: Config) -> Result<Config> {
    let names = env::var(WITHOUT).unwrap_or_default();
    for name in names.split(',').filter(|name| !name.is_empty()) {
        if name == OVERLAY {
            config.binds = true;
            continue;
        }
        let wall: Wall =
            serde_json::from_value(name.into()).with_context(|| format!("{WITHOUT}: `{name}`"))?;
        config.without.insert(wall);
    }
    config.crash_at = env::var(OWN).ok();
    config.trusting = env::var(TRUSTING).is_ok_and(|trusting| trusting == "1");
    config.accept = env::var(ACCEPT).is_ok_and(|accept| accept == "1");
    Ok(config)
}

/// Forgets what the environment names.
pub(crate) fn forget(policy: Policy) -> Policy {
    match env::var(PROGRAMS).as_deref() {
        Ok("none") => policy.with_programs(Programs::NONE),
        _ => policy,
    }
}

/// Where the organisation's rules lie instead.
pub fn organisation() -> Option<PathBuf> {
    env::var_os(ORGANISATION).map(PathBuf::from)
}

/// Whether the main process stays unbound.
pub(crate) fn is_unbound() -> bool {
    env::var(UNBOUND).is_ok_and(|unbound| unbound == "1")
}

/// Whom a stop takes for the processes of a session.
pub fn hearsay(mut found: InUse) -> InUse {
    if env::var(HEARSAY).is_ok_and(|hearsay| hearsay == "1") {
        found.processes = found.says.iter().map(|says| says.pid).collect();
    }
    found
}

/// Whether this wall of the page is left away.
pub fn is_page_without(wall: &str) -> bool {
    env::var(PAGE_WITHOUT).is_ok_and(|walls| walls.split(',').any(|name| name == wall))
}

/// What stands for `/proc/meminfo`, with no control group beside it.
const MEMINFO: &str = "BAILEY_CONTROL_MEMINFO";

/// Where the daemon looks how much memory there is instead.
pub fn meminfo() -> Option<PathBuf> {
    env::var_os(MEMINFO).map(PathBuf::from)
}

/// How long, in milliseconds, a session at rest is kept open that nobody looks at, in place of a minute.
const IDLE: &str = "BAILEY_CONTROL_IDLE";

/// That time, where the environment names one.
pub fn idle() -> Option<Duration> {
    Some(Duration::from_millis(env::var(IDLE).ok()?.parse().ok()?))
}

/// Whether a peer's user is not asked for.
pub(crate) fn is_open_to_all() -> bool {
    env::var(OPEN_TO_ALL).is_ok_and(|value| value == "1")
}
