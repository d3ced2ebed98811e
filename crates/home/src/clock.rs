//! A clock that cannot be right: entries would be dated by it, and certificates be refused.

use bailey_journal::{Clock as _, Journal, Query, SystemClock};
use bailey_protocol::Timestamp;

/// A clock that shows less than this is wrong: it was before this program. Seconds since 1970.
const NOW_MIN: i64 = 1_750_000_000;
/// How far a journal may be ahead, for it may have been written a moment ago on another machine. Seconds.
const AHEAD_MAX: i64 = 60;

/// How to mend it.
pub const FIX: &str = "set it: sudo timedatectl set-ntp true";

/// What this machine's clock shows, and why that is wrong where it is by itself.
pub fn look() -> (String, Option<&'static str>) {
    let now = SystemClock.now();
    (date(now), (now.as_second() < NOW_MIN).then_some("which is past"))
}

/// Why it is wrong where a journal knows of later.
pub fn behind(newest: Timestamp) -> Option<String> {
    let limit = SystemClock.now().as_second().saturating_add(AHEAD_MAX);
    (newest.as_second() > limit).then(|| format!("behind the journal's newest entry of {}", date(newest)))
}

/// What a person should know before a session, where the clock is wrong.
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
