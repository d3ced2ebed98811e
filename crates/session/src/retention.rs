//! Retention of the journal: when a run is due, what it does, and what a person should know of the room that
//! is left.
//!
//! It works in a process of its own: the one of a session is about to bind itself, and nobody waits for
//! archives.

use crate::{
    config::{Config, Retention},
    home::Home,
    print::Printer,
    program,
};
use anyhow::{Context as _, Result, anyhow};
use bailey_journal::{Archive, Holder, Idle, Journal, Leaving, RetentionReason, Room, SessionLock, Shelf};
use bailey_protocol::{SessionId, Timestamp, WsPath};
use bailey_sandbox::{may_hold_changes, may_hold_commits};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    path::Path,
    process::Stdio,
    time::{Duration, SystemTime},
};

/// About how much one archive holds, in bytes: its transaction keeps other processes waiting.
const ARCHIVE_BYTES: u64 = 32 << 20;
/// From these hundredths of the room on a person is told.
const WARN_AT: [u64; 2] = [80, 95];
/// Why nothing leaves by itself yet where all that is here was last used before the limit.
const CLOCK: &str = "nothing was used for longer than `journal.keep_days`, or the clock is ahead: the first run of another day does it";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The result of a run.
#[derive(Debug, Default, Serialize)]
pub struct RetentionReport {
    /// The archives that were made.
    pub archived: Vec<Archive>,
    /// Archives that went because there was no room for them.
    pub removed: Vec<Archive>,
    /// How many sessions stay, by why.
    pub kept: BTreeMap<RetentionReason, u64>,
}

/// What leaves: the day before which a session was last used, and the same for one with changes of its own.
#[derive(Debug, Clone, Default)]
pub struct RetentionLimits {
    /// Entries before this moment were due.
    pub before: Option<String>,
    pub(crate) changes_before: Option<String>,
    pub(crate) max_bytes: Option<u64>,
}

impl RetentionLimits {
    /// What the configuration asks for now.
    pub fn of(retention: &Retention, now: Timestamp) -> Self {
        let ago = |days: Option<u32>| {
            let then = now.checked_sub(DAY.checked_mul(days?)?).ok()?;
            Some(then.to_string().chars().take(10).collect())
        };
        Self {
            before: ago(retention.keep_days),
            changes_before: ago(retention.keep_changes_days),
            max_bytes: retention.max_bytes(),
        }
    }
}

/// Starts a run in a process of its own, where one is due: once a day. Gives what a person should know.
pub(crate) fn begin(home: &Home, config: &Config) -> Vec<String> {
    let mut remarks = Vec::new();
    if !config.retention.is_any() {
        return remarks;
    }
    let last = Shelf::last(&home.journal());
    if let Some((_, hindered)) = &last
        && !hindered.is_empty()
    {
        remarks.push(format!(
            "old sessions could not be archived: {hindered}; bailey audit archive tries again"
        ));
    }
    remarks.extend(room(home, config));
    let day = |time: SystemTime| {
        time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() / DAY.as_secs()
    };
    if last.is_none_or(|(time, _)| day(time) != day(SystemTime::now())) {
        let mut run = program::again();
        run.arg("--home").arg(&home.root).args(["audit", "archive", "--due"]).current_dir("/");
        let run = run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // A group of its own, so that Ctrl-C on the terminal does not end it. One that is not started is due
        // again.
        std::os::unix::process::CommandExt::process_group(run, 0).spawn().ok();
    }
    remarks
}

/// What to say of the room that journal and archives take; none where there is enough.
pub fn room(home: &Home, config: &Config) -> Option<String> {
    told(Room::of(&home.journal()).ok()?, config.retention.max_bytes()?)
}

fn told(room: Room, most: u64) -> Option<String> {
    let percent = room.total().saturating_mul(100) / most.max(1);
    let [some, nearly_all] = WARN_AT;
    let how = match percent {
        _ if percent < some => return None,
        _ if percent < nearly_all => "journal and archives take",
        _ => "there is hardly any room left: journal and archives take",
    };
    let advice = match room.archives {
        _ if room.journal > most => {
            "the journal alone takes more, so no archive goes: set `journal.keep_days`, remove sessions (bailey sessions rm), or raise it"
        }
        0 => {
            "no archive is there that could go: set `journal.keep_days`, remove sessions (bailey sessions rm), or raise it"
        }
        _ => {
            "past 100 % the oldest archive goes: copy what you want to keep (bailey audit archive --list), or raise it"
        }
    };
    Some(format!(
        "{how} {percent} % of `journal.max_size_mib` ({} of {}); {advice}",
        mib(room.total()),
        mib(most)
    ))
}

/// An amount of bytes, for people.
pub fn mib(bytes: u64) -> String {
    format!("{}.{} MiB", bytes >> 20, ((bytes & 0xF_FFFF) * 10) >> 20)
}

/// Archives what may leave, removes the oldest archives where there is no room, and ends what a crash left
/// half done.
pub async fn run(
    home: &Home,
    journal: &Journal,
    shelf: &Shelf,
    limits: &RetentionLimits,
) -> Result<RetentionReport> {
    let mut done = RetentionReport::default();
    journal.sweep(shelf).await?;
    if let Some(before) = limits.before.clone() {
        let leaving = leaving(home, journal, before, limits).await?;
        done.kept = leaving.kept;
        for group in groups(leaving.idle) {
            done.archive(home, journal, shelf, group).await?;
        }
    }
    clear(home, journal).await?;
    if let Some(most) = limits.max_bytes {
        for archive in journal.archives().await?.into_iter().filter(|archive| archive.removed.is_none()) {
            let room = Room::of(&home.journal())?;
            // Where the journal alone is larger, no archive that goes would help.
            if room.total() <= most || room.journal > most {
                break;
            }
            journal.remove_archive(shelf, &archive).await?;
            done.removed.push(archive);
        }
    }
    // Whoever checks an archive, or its end, finds the entry signed.
    journal.checkpoint().await?;
    Ok(done)
}

/// What may leave, as the journal says it, without what has commits of its own, or changes that could not be
/// compared: those are in its layer, and in no entry.
pub async fn leaving(
    home: &Home,
    journal: &Journal,
    before: String,
    limits: &RetentionLimits,
) -> Result<Leaving> {
    let mut leaving = journal.leaving(before, limits.changes_before.clone()).await?;
    let projects = journal.sessions().await?.into_iter().map(|session| (session.id, session.workspace));
    let projects: BTreeMap<SessionId, WsPath> = projects.collect();
    for idle in std::mem::take(&mut leaving.idle) {
        let may_go = limits.changes_before.as_ref().is_some_and(|limit| idle.day < *limit);
        if !may_go && may_hold_work(home, &idle.sessions, &projects)? {
            *leaving.kept.entry(RetentionReason::Changes).or_default() += idle.sessions.len() as u64;
        } else {
            leaving.idle.push(idle);
        }
    }
    Ok(leaving)
}

fn may_hold_work(
    home: &Home,
    sessions: &[SessionId],
    projects: &BTreeMap<SessionId, WsPath>,
) -> Result<bool> {
    for id in sessions {
        let Some(folder) = home.existing(*id)? else { continue };
        // One that is a part of another works in that one's folder.
        let may_hold_changes =
            || projects.get(id).is_some_and(|project| may_hold_changes(&folder.path, Path::new(&project.0)));
        if may_hold_commits(&folder.path) || may_hold_changes() {
            return Ok(true);
        }
    }
    Ok(false)
}

impl RetentionReport {
    /// One archive: those of the group that no process has.
    async fn archive(
        &mut self,
        home: &Home,
        journal: &Journal,
        shelf: &Shelf,
        group: Vec<Idle>,
    ) -> Result<()> {
        let (mut sessions, mut locks, mut day) = (Vec::new(), Vec::new(), String::new());
        for idle in group {
            let held = lock(home, journal, &idle.sessions);
            let Ok(held) = held else {
                *self.kept.entry(RetentionReason::InUse).or_default() += idle.sessions.len() as u64;
                continue;
            };
            locks.extend(held);
            sessions.extend(idle.sessions);
            day = idle.day;
        }
        if !sessions.is_empty() {
            self.archived.extend(journal.archive(shelf, &day, &sessions, &locks).await?);
        }
        Ok(())
    }
}

/// What goes into one archive each: of one day, and not too much.
fn groups(idle: Vec<Idle>) -> Vec<Vec<Idle>> {
    let mut groups: Vec<Vec<Idle>> = Vec::new();
    for idle in idle {
        let fits = |group: &&mut Vec<Idle>| {
            let bytes: u64 = group.iter().map(|one| one.bytes).sum();
            group.iter().all(|one| one.day == idle.day) && bytes.saturating_add(idle.bytes) <= ARCHIVE_BYTES
        };
        match groups.last_mut().filter(fits) {
            Some(group) => group.push(idle),
            None => groups.push(vec![idle]),
        }
    }
    groups
}

/// The locks of those sessions that have a folder; without one no process has it.
fn lock(home: &Home, journal: &Journal, sessions: &[SessionId]) -> Result<Vec<SessionLock>> {
    let since = journal.clock().now();
    let holder = Holder { pid: std::process::id(), since, command: "bailey audit archive".into() };
    let mut locks = Vec::new();
    for id in sessions {
        if let Some(folder) = home.existing(*id)? {
            locks.push(SessionLock::take(*id, &folder.path, &holder)?);
        }
    }
    Ok(locks)
}

/// Removes the folders of sessions that are in archives: their layers, backups and temporary files. One that
/// cannot go now is tried again with the next run.
async fn clear(home: &Home, journal: &Journal) -> Result<()> {
    for id in journal.archived_sessions().await? {
        let Ok(_locks) = lock(home, journal, &[id]) else { continue };
        if let Some(folder) = home.existing(id)? {
            home.remove_session(id, &folder).ok();
        }
    }
    Ok(())
}

/// A run that nobody watches: what hinders it is said at the next start.
pub async fn due(home: &Home, journal: &Journal, config: &Config, printer: &Printer) -> Result<()> {
    let Some(shelf) = Shelf::take(&home.journal())? else { return Ok(()) };
    let now = journal.clock().now();
    let limits = RetentionLimits::of(&config.retention, now);
    // A clock that is wrong for one start would have everything leave, and layers are lost with it.
    let used = journal.last_day_before(now).await?;
    let is_ahead =
        limits.before.as_ref().is_some_and(|before| used.as_ref().is_some_and(|used| used < before));
    let done = if is_ahead { Err(anyhow!(CLOCK)) } else { run(home, journal, &shelf, &limits).await };
    let hindered = match done {
        Ok(_) => String::new(),
        Err(error) => printer.redact(&format!("{error:#}")).into_owned(),
    };
    shelf.done(SystemTime::now(), &hindered).context("the run cannot be noted")
}

#[cfg(test)]
mod tests {
    use super::{Room, told};

    #[test]
    fn a_person_is_told_at_80_hundredths_and_otherwise_at_95() {
        let of = |journal, archives| told(Room { journal, archives }, 1000);
        assert_eq!((of(700, 99), of(0, 0)), (None, None));
        for (journal, archives, begins) in [
            (700, 100, "journal and archives take 80 %"),
            (0, 949, "journal and archives take 94 %"),
            (0, 950, "there is hardly any room left: journal and archives take 95 %"),
            (900, 100, "there is hardly any room left: journal and archives take 100 %"),
        ] {
            let says = of(journal, archives).unwrap();
            assert!(
                says.starts_with(begins) && says.contains("past 100 % the oldest archive goes"),
                "{says}"
            );
        }
        assert!(of(950, 0).unwrap().contains("no archive is there that could go"));
        assert!(of(1001, 5).unwrap().contains("the journal alone takes more"));
    }
}
