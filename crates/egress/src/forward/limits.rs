//! How much may pass to and from one host, for all commands of this process together.

use bailey_policy::HostGlob;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);
/// Of so many hosts the use is kept; more than a process's commands speak with.
const HOSTS_MAX: usize = 10_000;

/// A limit of the owner's. Where several fit a host, the lowest of each counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostLimit {
    /// Each host that fits has a count of its own.
    pub host: HostGlob,
    /// Bytes of bodies that go there.
    pub sent: Option<u64>,
    /// Bytes of bodies that come from there.
    pub received: Option<u64>,
    /// Requests in any minute.
    pub per_minute: Option<u32>,
}

/// The limits, and what was used of them.
#[derive(Debug)]
pub(super) struct Limits {
    all: Vec<HostLimit>,
    used: Mutex<HashMap<String, Arc<Used>>>,
}

/// What was used of one host's limits.
#[derive(Debug)]
pub(super) struct Used {
    host: String,
    limit: HostLimit,
    sent: AtomicU64,
    received: AtomicU64,
    /// When the present minute began, and requests since.
    minute: Mutex<(Instant, u32)>,
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Out,
    Back,
}

/// Counts bytes as they pass, as long as they may.
#[derive(Debug, Clone)]
pub(super) struct Meter {
    count: Arc<AtomicU64>,
    direction: Direction,
    used: Option<Arc<Used>>,
}

impl Limits {
    pub(super) fn new(all: Vec<HostLimit>) -> Self {
        Self { all, used: Mutex::default() }
    }

    /// What limits a host, by its name and port.
    pub(super) fn of(&self, host: &str, url: &str) -> Option<Arc<Used>> {
        #[cfg(bailey_break)]
        if bailey_protocol::broken::broken("host_limits") {
            return None;
        }
        let mut fitting = self.all.iter().filter(|limit| limit.host.is_match(url));
        let first = fitting.next()?.clone();
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = used.get(host) {
            return Some(known.clone());
        }
        let limit = fitting.fold(first, HostLimit::and);
        let new = Arc::new(Used::new(host.to_owned(), limit));
        // Past so many hosts nobody's use is kept, and nothing passes of those that are new.
        if used.len() >= HOSTS_MAX {
            return Some(Arc::new(Used::new(host.to_owned(), HostLimit::nothing())));
        }
        used.insert(host.to_owned(), new.clone());
        Some(new)
    }
}

impl HostLimit {
    fn and(self, other: &Self) -> Self {
        fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            }
        }
        Self {
            host: self.host,
            sent: least(self.sent, other.sent),
            received: least(self.received, other.received),
            per_minute: least(self.per_minute, other.per_minute),
        }
    }

    fn nothing() -> Self {
        Self { host: HostGlob::everything(), sent: Some(0), received: Some(0), per_minute: Some(0) }
    }
}

impl Used {
    fn new(host: String, limit: HostLimit) -> Self {
        let minute = Mutex::new((Instant::now(), 0));
        Self { host, limit, sent: AtomicU64::new(0), received: AtomicU64::new(0), minute }
    }

    /// Counts a request that says how long its body is, where it may be made.
    pub(super) fn begin(&self, length: Option<u64>, now: Instant) -> Result<(), String> {
        if let (Some(most), Some(length)) = (self.limit.sent, length)
            && self.sent.load(Ordering::Relaxed).saturating_add(length) > most
        {
            return Err(self.full(Direction::Out, most));
        }
        let Some(most) = self.limit.per_minute else { return Ok(()) };
        let mut minute = self.minute.lock().unwrap_or_else(PoisonError::into_inner);
        if now.duration_since(minute.0) >= MINUTE {
            *minute = (now, 0);
        }
        if minute.1 >= most {
            let rest = MINUTE.saturating_sub(now.duration_since(minute.0)).as_secs() + 1;
            return Err(format!(
                "`{}` may be asked {most} times in a minute (`network.limit` in config.toml): again in {rest} s",
                self.host
            ));
        }
        minute.1 += 1;
        Ok(())
    }

    fn take(&self, direction: Direction, bytes: u64) -> Result<(), String> {
        let (count, most) = match direction {
            Direction::Out => (&self.sent, self.limit.sent),
            Direction::Back => (&self.received, self.limit.received),
        };
        let now = count.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        match most {
            Some(most) if now > most => Err(self.full(direction, most)),
            _ => Ok(()),
        }
    }

    fn full(&self, direction: Direction, most: u64) -> String {
        let what = if direction == Direction::Out { "sent to" } else { "received from" };
        format!("no more than {most} bytes are {what} `{}` (`network.limit` in config.toml)", self.host)
    }
}

impl Meter {
    pub(super) fn new(count: &Arc<AtomicU64>, direction: Direction, used: Option<&Arc<Used>>) -> Self {
        Self { count: count.clone(), direction, used: used.cloned() }
    }

    /// Counts bytes that are about to pass. An error says that they may not.
    pub(super) fn pass(&self, bytes: usize) -> Result<(), String> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.count.fetch_add(bytes, Ordering::Relaxed);
        self.used.as_ref().map_or(Ok(()), |used| used.take(self.direction, bytes))
    }
}

#[cfg(test)]
mod tests;
