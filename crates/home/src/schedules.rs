//! Tasks that run by the clock. The owner writes them down with `bailey schedule`.

mod cron;

pub use cron::Cron;

use crate::home::{Home, change_json, read_json};
use anyhow::{Context as _, Result, bail};
use bailey_journal::Confined;
use bailey_protocol::{SessionId, Timestamp};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

/// The most schedules that a home may have, and the longest name of one.
const SCHEDULES_MAX: usize = 100;
const NAME_CHARS_MAX: usize = 40;
/// The highest number of missed times that Bailey counts.
pub const MISSED_MAX: usize = 1000;
/// The sources of the time zone: the variable, and without it the machine's own file.
const ZONE: &str = "TZ";
const ZONE_FILE: &str = "/etc/localtime";
/// The remark for a machine that names no time zone.
pub const UNSAID: &str =
    "this machine names no time zone (there is no TZ and no /etc/localtime), so schedules go by UTC";

/// One schedule.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Schedule {
    /// A random identifier. Another schedule of the same name has a different one.
    #[serde(default)]
    pub id: String,
    /// The times of the task, in the local time of this machine.
    pub cron: Cron,
    /// The task for the agent.
    pub task: String,
    /// The project.
    pub directory: PathBuf,
    /// The model. `None`: the configured one.
    pub model: Option<String>,
    /// The named agent that does the task. `None`: the home's own agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// How many tokens each run may use up, unless the home's own limit is lower.
    #[serde(default)]
    pub tokens: Option<u64>,
    /// The permissions of each run, as the owner wrote them. Empty: a run may do everything that the rules
    /// allow.
    #[serde(default)]
    pub may: Vec<String>,
    /// The channel where the results go, to its owner. `None`: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The name of the message with the last run's task, while its result is not handed to that channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owed: Option<String>,
    /// The due moment that was done last, or the moment when the owner wrote the schedule down. All moments
    /// that were due after it until now are done as one run.
    pub since: Timestamp,
    /// The session of the last run.
    pub session: Option<SessionId>,
    /// How many runs were skipped since then, because the last one was still running.
    #[serde(default)]
    pub skipped: usize,
    /// A run that is starting. Its session may have the task already, or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<StartingRun>,
}

/// A run that is starting.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct StartingRun {
    /// The due moment of the run.
    pub moment: Timestamp,
    /// The session that was opened for it.
    pub session: SessionId,
}

/// All schedules of a home, by name.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Schedules(pub BTreeMap<String, Schedule>);

impl Schedules {
    /// Reads the schedules of a home.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn of(home: &Home) -> Result<Self> {
        read_json(&path(home))
    }

    /// Changes the schedules, one process after the other.
    ///
    /// # Errors
    /// The errors of `change`, after which nothing is changed. Also when the file cannot be read or written.
    pub fn change<T>(home: &Home, change: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        change_json(&home.root.join("schedules.lock"), &path(home), change)
    }

    /// Drops all times before now from the schedules of a restored home, because the home that it replaces
    /// did them. When the file is damaged, no schedule runs, and the restore of everything else does not wait
    /// for it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn begin_anew(home: &Home, now: Timestamp) -> Result<()> {
        let is_any = Self::of(home).is_ok_and(|schedules| !schedules.0.is_empty());
        if !is_any {
            return Ok(());
        }
        Self::change(home, |schedules| {
            for schedule in schedules.0.values_mut() {
                (schedule.since, schedule.begun, schedule.owed) = (schedule.since.max(now), None, None);
            }
            Ok(())
        })
    }

    /// Adds a schedule.
    ///
    /// # Errors
    /// When a schedule of this name exists, the name is not valid, or there are too many schedules.
    pub fn add(&mut self, name: &str, schedule: Schedule) -> Result<()> {
        let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_fit) {
            bail!(
                "`{name}` cannot name a schedule: a name has at most {NAME_CHARS_MAX} characters of a-z, \
                 0-9, `-` and `_`"
            );
        }
        if self.0.contains_key(name) {
            bail!("there is a schedule `{name}` already: remove it first (`bailey schedule rm {name}`)");
        }
        if self.0.len() >= SCHEDULES_MAX {
            bail!("there are {SCHEDULES_MAX} schedules, which is the most");
        }
        self.0.insert(name.to_owned(), schedule);
        Ok(())
    }

    /// The present state of the schedule with this name and this identifier.
    ///
    /// # Errors
    /// When the schedule was removed, whether or not another one took its name.
    pub fn still(&mut self, name: &str, id: &str) -> Result<&mut Schedule> {
        let same = self.0.get_mut(name).filter(|schedule| schedule.id == id);
        same.with_context(|| format!("the schedule `{name}` was removed meanwhile"))
    }

    /// The schedule of this name.
    ///
    /// # Errors
    /// When no schedule has this name.
    pub fn get(&mut self, name: &str) -> Result<&mut Schedule> {
        self.0
            .get_mut(name)
            .with_context(|| format!("there is no schedule `{name}`; `bailey schedule list` shows all"))
    }
}

impl Schedule {
    /// The limits on the sessions of a schedule of this name. `None` if the owner gave no permissions.
    pub fn confined(&self, name: &str) -> Option<Confined> {
        let of_it = || Confined { holder: format!("the schedule `{name}`"), may: self.may.clone() };
        (!self.may.is_empty()).then(of_it)
    }

    /// The newest moment after `since` and up to `now` at which the schedule was due in this zone, and the
    /// number of due moments before it. If there are more than [`MISSED_MAX`] of these, the moment is the
    /// minute of `now`: no moment before that is due any more.
    pub fn due(&self, now: Timestamp, zone: &TimeZone) -> Option<(Timestamp, usize)> {
        let (mut last, mut missed) = (self.cron.after(self.since, zone)?, 0);
        if last > now {
            return None;
        }
        while let Some(next) = self.cron.after(last, zone).filter(|next| *next <= now) {
            // A daemon that was away for a year need not count them all.
            if missed == MISSED_MAX {
                let minute = Timestamp::from_second(now.as_second().div_euclid(60) * 60);
                return Some((minute.unwrap_or(now), missed));
            }
            (last, missed) = (next, missed + 1);
        }
        Some((last, missed))
    }
}

/// The time zone of the schedules. If this machine names no zone, the result is an unknown zone that shows
/// UTC, as date(1) does.
///
/// # Errors
/// When the machine names a zone that cannot be found: in another zone, everything would run at the wrong
/// hour.
pub fn zone() -> Result<TimeZone> {
    let (named, file) = (env::var_os(ZONE), Path::new(ZONE_FILE));
    let is_unsaid = named.is_none() && file.symlink_metadata().is_err();
    let name = named.as_ref().map(PathBuf::from).or_else(|| file.read_link().ok());
    let is_utc = name.is_some_and(|name| name.ends_with("UTC"));
    match TimeZone::try_system() {
        // On a machine without installed zones, not even UTC is found by its name.
        Err(_) if is_utc => Ok(TimeZone::UTC),
        Err(_) if is_unsaid => Ok(TimeZone::unknown()),
        zone => zone.with_context(|| match named {
            Some(name) => format!(
                "the time zone that {ZONE} names, `{}`, is not known here: correct it, or install the time zones (`tzdata`)",
                name.to_string_lossy()
            ),
            None => format!(
                "the time zone of `{ZONE_FILE}` cannot be read: install the time zones (`tzdata`), or name one with {ZONE}"
            ),
        }),
    }
}

fn path(home: &Home) -> PathBuf {
    home.root.join("schedules.json")
}

#[cfg(test)]
mod tests {
    use super::{MISSED_MAX, Schedule};
    use bailey_protocol::Timestamp;
    use jiff::tz::TimeZone;
    use std::path::PathBuf;

    fn schedule(cron: &str, since: &str) -> Schedule {
        Schedule {
            id: String::new(),
            cron: cron.parse().unwrap(),
            task: "look around".into(),
            directory: PathBuf::from("/"),
            model: None,
            agent: None,
            tokens: None,
            may: Vec::new(),
            to: None,
            owed: None,
            since: since.parse().unwrap(),
            session: None,
            skipped: 0,
            begun: None,
        }
    }

    #[test]
    fn what_was_due_however_often_is_due_once() {
        let now: Timestamp = "2035-03-12T11:00:05.5Z".parse().unwrap();
        for (cron, since, last, missed) in [
            ("0 12 * * *", "2035-03-09T13:00:00Z", "2035-03-11T12:00:00Z", 1),
            ("* * * * *", "2035-03-12T10:57:00Z", "2035-03-12T11:00:00Z", 2),
            // Two days have more minutes than Bailey counts.
            ("* * * * *", "2035-03-10T11:00:00Z", "2035-03-12T11:00:00Z", MISSED_MAX),
            ("*/7 * * * *", "2030-01-01T00:00:00Z", "2035-03-12T11:00:00Z", MISSED_MAX),
        ] {
            let mut schedule = schedule(cron, since);
            let due = schedule.due(now, &TimeZone::UTC);
            assert_eq!(due, Some((last.parse().unwrap(), missed)), "{cron} since {since}");
            // After that run, nothing is due.
            schedule.since = due.unwrap().0;
            assert_eq!(schedule.due(now, &TimeZone::UTC), None, "{cron} since {since}");
        }
    }
}
