//! Tasks that are done by the clock: what the owner wrote down with `bailey schedule`, and when it comes.

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

/// The most that a home may have, and the longest name.
const SCHEDULES_MAX: usize = 100;
const NAME_CHARS_MAX: usize = 40;
/// As many missed times are counted, and no more.
pub const MISSED_MAX: usize = 1000;
/// What names the time zone: the variable, and without it the machine's own file.
const ZONE: &str = "TZ";
const ZONE_FILE: &str = "/etc/localtime";
/// What to say of a machine that names no zone.
pub const UNSAID: &str =
    "this machine names no time zone (there is no TZ and no /etc/localtime), so schedules go by UTC";

/// One of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Schedule {
    /// Which one it is, at random: another one of the same name is not the same.
    #[serde(default)]
    pub id: String,
    /// When, in the local time of this machine.
    pub cron: Cron,
    /// What the agent is told.
    pub task: String,
    /// The project.
    pub directory: PathBuf,
    /// The model, where that is not the configured one.
    pub model: Option<String>,
    /// Which of the home's named agents does it.
    #[serde(default)]
    pub agent: Option<String>,
    /// How many tokens each time may use up, where the home's own limit is not lower.
    #[serde(default)]
    pub tokens: Option<u64>,
    /// What each time may do, as the owner wrote it; nothing said: what the rules allow.
    #[serde(default)]
    pub may: Vec<String>,
    /// The moment that was done last, or when it was written down: what was due after it and until now is
    /// done once.
    pub since: Timestamp,
    /// The session of the last time.
    pub session: Option<SessionId>,
    /// How many times were skipped since then, because that one still ran.
    #[serde(default)]
    pub skipped: usize,
    /// A time that is being begun: its session may have the task, or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<Begun>,
}

/// A time that is being begun.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Begun {
    /// Which one.
    pub moment: Timestamp,
    /// The session that was opened for it.
    pub session: SessionId,
}

/// All of a home, by name.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Schedules(pub BTreeMap<String, Schedule>);

impl Schedules {
    /// Those of a home.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn of(home: &Home) -> Result<Self> {
        read_json(&path(home))
    }

    /// Changes them, one process after the other.
    ///
    /// # Errors
    /// Those of `change`, after which nothing is changed; or the file cannot be written.
    pub fn change<T>(home: &Home, change: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        change_json(&home.root.join("schedules.lock"), &path(home), change)
    }

    /// What came before now is over for all of a home that was brought back: the home that it takes the place
    /// of did it. Where the file is damaged none of them is done, and the way back of all else does not wait
    /// for that.
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
                (schedule.since, schedule.begun) = (schedule.since.max(now), None);
            }
            Ok(())
        })
    }

    /// Writes a new one down.
    ///
    /// # Errors
    /// When there is one of this name, the name is none, or there are too many.
    pub fn add(&mut self, name: &str, schedule: Schedule) -> Result<()> {
        let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_fit) {
            bail!("`{name}` is no name of a schedule: {NAME_CHARS_MAX} of a-z, 0-9, `-` and `_` at most");
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

    /// This very one, as it is by now.
    ///
    /// # Errors
    /// When it was removed, whether or not another one took its name.
    pub fn still(&mut self, name: &str, id: &str) -> Result<&mut Schedule> {
        let same = self.0.get_mut(name).filter(|schedule| schedule.id == id);
        same.with_context(|| format!("the schedule `{name}` was removed meanwhile"))
    }

    /// The one of this name.
    ///
    /// # Errors
    /// When there is none.
    pub fn get(&mut self, name: &str) -> Result<&mut Schedule> {
        self.0
            .get_mut(name)
            .with_context(|| format!("there is no schedule `{name}`: `bailey schedule list` names all"))
    }
}

impl Schedule {
    /// What binds the sessions of one of this name; none where nothing was said.
    pub fn confined(&self, name: &str) -> Option<Confined> {
        let of_it = || Confined { holder: format!("the schedule `{name}`"), may: self.may.clone() };
        (!self.may.is_empty()).then(of_it)
    }

    /// The newest moment after `since` at which it was due in this zone, up to `now`; and how many there were
    /// before it. Where these are more than are counted, it is the minute of `now`: none before that is due
    /// any more.
    pub fn due(&self, now: Timestamp, zone: &TimeZone) -> Option<(Timestamp, usize)> {
        let (mut last, mut missed) = (self.cron.after(self.since, zone)?, 0);
        if last > now {
            return None;
        }
        while let Some(next) = self.cron.after(last, zone).filter(|next| *next <= now) {
            // A daemon that was away for a year has nothing to count.
            if missed == MISSED_MAX {
                let minute = Timestamp::from_second(now.as_second().div_euclid(60) * 60);
                return Some((minute.unwrap_or(now), missed));
            }
            (last, missed) = (next, missed + 1);
        }
        Some((last, missed))
    }
}

/// The time zone that schedules go by. Where this machine names none, it is one that is unknown and shows
/// UTC, as date(1) does.
///
/// # Errors
/// When it names one that cannot be found: by another one everything would be done at the wrong hour.
pub fn zone() -> Result<TimeZone> {
    let (named, file) = (env::var_os(ZONE), Path::new(ZONE_FILE));
    let is_unsaid = named.is_none() && file.symlink_metadata().is_err();
    let name = named.as_ref().map(PathBuf::from).or_else(|| file.read_link().ok());
    let is_utc = name.is_some_and(|name| name.ends_with("UTC"));
    match TimeZone::try_system() {
        // Where no zones are installed, not even this one is found by its name.
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
            // Two days of minutes are more than are counted.
            ("* * * * *", "2035-03-10T11:00:00Z", "2035-03-12T11:00:00Z", MISSED_MAX),
            ("*/7 * * * *", "2030-01-01T00:00:00Z", "2035-03-12T11:00:00Z", MISSED_MAX),
        ] {
            let mut schedule = schedule(cron, since);
            let due = schedule.due(now, &TimeZone::UTC);
            assert_eq!(due, Some((last.parse().unwrap(), missed)), "{cron} since {since}");
            // Once that is done, nothing is due.
            schedule.since = due.unwrap().0;
            assert_eq!(schedule.due(now, &TimeZone::UTC), None, "{cron} since {since}");
        }
    }
}
