//! Where the time comes from: an argument, so that tests can say what time it is.

use bailey_protocol::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    /// The time in UTC, to the nanosecond.
    fn now(&self) -> Timestamp;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i128::try_from(since.as_nanos())
            .ok()
            .and_then(|ns| Timestamp::from_nanosecond(ns).ok())
            .unwrap_or_default();
        #[cfg(feature = "controls")]
        let now = double::moved(now);
        now
    }
}

/// A clock that tests move while a program runs. Only the program `bailey-controls` has this, and no release
/// has that program.
#[cfg(feature = "controls")]
pub mod double {
    use bailey_protocol::Timestamp;
    use std::{fs::File, os::unix::fs::FileExt as _, sync::OnceLock, time::Duration};

    /// The longest number that is read.
    const DIGITS_MAX: usize = 20;

    static MOVED_BY: OnceLock<File> = OnceLock::new();

    /// From now on this process's clock is ahead by as many seconds as stand in a file: open, because a
    /// process that binds itself opens none. It is read each time.
    pub fn move_by(seconds: File) {
        MOVED_BY.set(seconds).ok();
    }

    pub(super) fn moved(now: Timestamp) -> Timestamp {
        let Some(file) = MOVED_BY.get() else { return now };
        let mut bytes = [0; DIGITS_MAX];
        let read = file.read_at(&mut bytes, 0).unwrap_or(0);
        let text = bytes.get(..read).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
        let seconds: u64 = text.trim().parse().unwrap_or(0);
        now.checked_add(Duration::from_secs(seconds)).unwrap_or(now)
    }
}
