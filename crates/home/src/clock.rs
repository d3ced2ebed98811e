//! Detects a clock that cannot be right. Such a clock gives entries wrong dates, and makes certificates be
//! refused.

use bailey_journal::{Clock as _, Journal, Query, SystemClock};
use bailey_protocol::Timestamp;
use jiff::tz::TimeZone;

/// A clock that shows less than this is wrong, because the time is before this program existed. Seconds since
/// 1970.
const NOW_MIN: i64 = 1_750_000_000;
/// How far a journal may be ahead: another machine may have written it a moment ago. Seconds.
const AHEAD_MAX: i64 = 60;

/// A moment for people, to the minute: in the time zone of this machine, which is named.
pub fn local(moment: Timestamp) -> String {
    moment.to_zoned(TimeZone::system()).strftime("%F %H:%M %Z").to_string()
}

/// The day for people and models, with the name of this machine's time zone.
pub fn today() -> String {
    let zone = TimeZone::system();
    let name = zone.iana_name().map_or_else(String::new, |name| format!(" ({name})"));
    format!("{}{name}", SystemClock.now().to_zoned(zone).strftime("%A %F, %Z"))
}

/// The same to the second.
pub fn local_second(moment: Timestamp) -> String {
    moment.to_zoned(TimeZone::system()).strftime("%F %T %Z").to_string()
}

/// How to correct the clock.
pub const FIX: &str = "set it: sudo timedatectl set-ntp true";

/// The time that this machine's clock shows, and the reason when that time alone is wrong.
pub fn look() -> (String, Option<&'static str>) {
    let now = SystemClock.now();
    (date(now), (now.as_second() < NOW_MIN).then_some("which is past"))
}

/// The reason why the clock is wrong, when a journal has a later entry.
pub fn behind(newest: Timestamp) -> Option<String> {
    let limit = SystemClock.now().as_second().saturating_add(AHEAD_MAX);
    (newest.as_second() > limit).then(|| format!("behind the journal's newest entry of {}", date(newest)))
}

/// A remark for the user before a session, when the clock is wrong.
pub async fn remark(journal: &Journal) -> Option<String> {
    let (now, past) = look();
    let behind = newest(journal).await.ok().flatten().and_then(behind);
    let wrong = behind.or_else(|| past.map(str::to_owned))?;
    Some(format!(
        "this machine's clock shows {now}, {wrong}: entries are dated by it, and certificates may be refused; {FIX}"
    ))
}

/// When the journal's newest entry was written.
///
/// # Errors
/// When the journal cannot be read.
pub async fn newest(journal: &Journal) -> anyhow::Result<Option<Timestamp>> {
    let newest = journal.entries(Query { last: Some(1), ..Query::default() }).await?;
    Ok(newest.last().map(|recorded| recorded.entry.time))
}

fn date(time: Timestamp) -> String {
    time.strftime("%F %H:%M:%S UTC").to_string()
}
