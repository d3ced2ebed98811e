//! When a schedule is due: the five fields of crontab(5), in the local time of a zone.

use bailey_protocol::Timestamp;
use jiff::{ToSpan as _, civil::Weekday, tz::TimeZone};
use serde::{Deserialize, Serialize, de::Error as _};
use std::{fmt, str::FromStr};

/// How many days ahead the search goes: a leap day comes within eight years.
const AHEAD_DAYS: i64 = 8 * 366;

/// The longest text of a schedule, in bytes.
const TEXT_BYTES_MAX: usize = 500;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Minutes, hours, days of the month, months and days of the week, as sets of bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: String,
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// If days of the month and of the week are both restricted, a day that matches one of them is enough
    /// (crontab(5)).
    is_either_day: bool,
}

impl Cron {
    /// The first moment after this one at which the schedule is due in this zone. `None` if there is no such
    /// moment, for example on the 30th of February.
    pub fn after(&self, moment: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let next = moment.as_second().div_euclid(60) + 1;
        let mut at = Timestamp::from_second(next * 60).ok()?.to_zoned(zone.clone());
        let end = at.checked_add(AHEAD_DAYS.days()).ok()?;
        while at < end {
            if !self.is_day(&at) {
                at = at.checked_add(1.day()).and_then(|next| next.start_of_day()).ok()?;
            } else if !has(self.hours, at.hour()) {
                // Go to the next full hour on the local clock, where an hour may occur twice, or not at all.
                at = at.checked_add((60 - i64::from(at.minute())).minutes()).ok()?;
            } else if !has(self.minutes, at.minute()) {
                at = at.checked_add(1.minute()).ok()?;
            } else {
                return Some(at.timestamp());
            }
        }
        None
    }

    fn is_day(&self, at: &jiff::Zoned) -> bool {
        let day = has(self.days, at.day());
        let weekday = has(self.weekdays, at.weekday().since(Weekday::Sunday));
        let is_day = if self.is_either_day { day || weekday } else { day && weekday };
        has(self.months, at.month()) && is_day
    }
}

fn has(set: u64, number: i8) -> bool {
    u32::try_from(number).is_ok_and(|number| set & (1 << number) != 0)
}

impl FromStr for Cron {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(format!(
                "a schedule of {} bytes is too long: the limit is {TEXT_BYTES_MAX}",
                text.len()
            ));
        }
        let named = match text.trim() {
            "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            other => other,
        };
        let fields: Vec<&str> = named.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields[..] else {
            return Err(format!(
                "`{text}` is not a schedule; write minute, hour, day of the month, month and day of the \
                 week, such as `30 7 * * mon-fri`, or `@daily`"
            ));
        };
        let weekdays_set = field("day of the week", weekdays, 0, 7, &DAYS, 0)?;
        let cron = Self {
            text: text.trim().to_owned(),
            minutes: field("minute", minutes, 0, 59, &[], 0)?,
            hours: field("hour", hours, 0, 23, &[], 0)?,
            days: field("day of the month", days, 1, 31, &[], 0)?,
            months: field("month", months, 1, 12, &MONTHS, 1)?,
            // Sunday is 0 and 7.
            weekdays: weekdays_set | (weekdays_set >> 7 & 1),
            is_either_day: !days.starts_with('*') && !weekdays.starts_with('*'),
        };
        // Whether a schedule is ever due is the same in each zone.
        match cron.after(Timestamp::UNIX_EPOCH, &TimeZone::UTC) {
            Some(_) => Ok(cron),
            None => Err(format!("`{text}` is never due")),
        }
    }
}

/// The set of a field's values: `*`, numbers, names, ranges and steps, with commas between.
fn field(what: &str, text: &str, least: u32, most: u32, names: &[&str], first: u32) -> Result<u64, String> {
    let wrong = |part: &str| {
        format!(
            "`{part}` is not a valid {what}; write {least} to {most}, a range `a-b`, or `*`, with `/step`"
        )
    };
    let number = |part: &str| {
        let named = names.iter().position(|name| name.eq_ignore_ascii_case(part));
        let named = named.and_then(|at| u32::try_from(at).ok()).map(|at| at + first);
        named
            .or_else(|| part.parse().ok())
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| wrong(part))
    };
    let mut set = 0;
    for part in text.split(',') {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        let step = step.map_or(Ok(1), |step| {
            step.parse::<usize>().ok().filter(|step| *step > 0).ok_or_else(|| wrong(part))
        })?;
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (least, most),
            Some((from, to)) => (number(from)?, number(to)?),
            None if part.contains('/') => (number(range)?, most),
            None => (number(range)?, number(range)?),
        };
        if from > to {
            return Err(wrong(part));
        }
        set = (from..=to).step_by(step).fold(set, |set, number| set | 1 << number);
    }
    Ok(set)
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Cron {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Cron {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::Cron;
    use jiff::{Timestamp, ToSpan as _, tz::TimeZone};

    /// Moments after this one, as the clock on this machine's wall shows them.
    fn next(cron: &str, after: &str, count: usize) -> Vec<String> {
        let cron: Cron = cron.parse().unwrap();
        let civil: jiff::civil::DateTime = after.parse().unwrap();
        let zone = TimeZone::system();
        let mut at = civil.to_zoned(zone.clone()).unwrap().timestamp();
        let mut found = Vec::new();
        for _ in 0..count {
            at = cron.after(at, &zone).unwrap();
            found.push(at.to_zoned(zone.clone()).strftime("%F %H:%M %a").to_string());
        }
        found
    }

    #[test]
    fn it_is_due_when_crontab_says() {
        assert_eq!(
            next("*/15 * * * *", "2026-11-21T10:05", 3),
            ["2026-11-21 10:15 Sat", "2026-11-21 10:30 Sat", "2026-11-21 10:45 Sat"]
        );
        assert_eq!(
            next("30 7 * * mon-fri", "2026-11-20T08:00", 2),
            ["2026-11-23 07:30 Mon", "2026-11-24 07:30 Tue"]
        );
        assert_eq!(next("0 0 29 2 *", "2026-01-01T00:00", 1), ["2028-02-29 00:00 Tue"]);
        assert_eq!(
            next("0 12 1,15 * 7", "2026-11-21T00:00", 3),
            ["2026-11-22 12:00 Sun", "2026-11-29 12:00 Sun", "2026-12-01 12:00 Tue"]
        );
        assert_eq!(
            next("5-10/5 3 * Dec *", "2026-11-21T00:00", 2),
            ["2026-12-01 03:05 Tue", "2026-12-01 03:10 Tue"]
        );
        assert_eq!(next("@daily", "2026-12-31T23:59", 1), ["2027-01-01 00:00 Fri"]);
        assert_eq!(next("59 23 31 12 *", "2026-12-31T23:59", 1), ["2027-12-31 23:59 Fri"]);
    }

    #[test]
    fn what_is_none_is_refused_with_its_place() {
        for (text, why) in [
            ("", "is not a schedule"),
            ("* * * *", "is not a schedule"),
            ("60 * * * *", "`60` is not a valid minute"),
            ("* 5-2 * * *", "`5-2` is not a valid hour"),
            ("* * 0 * *", "`0` is not a valid day of the month"),
            ("* * * foo *", "`foo` is not a valid month"),
            ("*/0 * * * *", "`*/0` is not a valid minute"),
            ("0 0 30 2 *", "is never due"),
        ] {
            let error = text.parse::<Cron>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn each_minute_of_a_year_is_due_once() {
        let cron: Cron = "* * * * *".parse().unwrap();
        let mut at: Timestamp = "2026-03-28T00:00:00Z".parse().unwrap();
        for _ in 0..3 * 24 * 60 {
            let next = cron.after(at, &TimeZone::system()).unwrap();
            assert_eq!(next, at.checked_add(1.minute()).unwrap());
            at = next;
        }
    }

    #[test]
    fn noon_is_when_its_zone_has_it() {
        let cron: Cron = "0 12 * * *".parse().unwrap();
        let midnight: Timestamp = "2026-11-21T00:00:00Z".parse().unwrap();
        for (zone, noon) in [
            ("JST-9", "2026-11-21T03:00:00Z"),
            ("<-05>5", "2026-11-21T17:00:00Z"),
            ("UTC0", "2026-11-21T12:00:00Z"),
        ] {
            let next = cron.after(midnight, &TimeZone::posix(zone).unwrap()).unwrap();
            assert_eq!(next.to_string(), noon, "{zone}");
        }
    }
}
