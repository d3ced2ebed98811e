//! How much may pass to and from one host, for all commands of this process together.

use crate::config::{Origin, canonical};
use bailey_policy::HostGlob;
use std::{
    collections::{HashMap, VecDeque},
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

/// A limit of the owner's. Where several fit a request, each of them holds.
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

/// The limits, and what was used of them: by limit, and by host in its one spelling.
#[derive(Debug)]
pub(super) struct Limits {
    all: Vec<HostLimit>,
    used: Mutex<HashMap<(usize, String), Arc<Count>>>,
}

/// What a request uses up.
#[derive(Debug)]
pub(super) struct Used(Vec<Arc<Count>>);

/// What was used of one limit for one host.
#[derive(Debug)]
struct Count {
    host: String,
    limit: HostLimit,
    sent: AtomicU64,
    received: AtomicU64,
    /// When the requests of the last minute were made, as many as count.
    made: Mutex<VecDeque<Instant>>,
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

    /// What limits a request to this URL.
    pub(super) fn of(&self, url: &str) -> Option<Arc<Used>> {
        #[cfg(bailey_break)]
        if bailey_protocol::broken::broken("host_limits") {
            return None;
        }
        let fitting = || self.all.iter().enumerate().filter(|(_, limit)| limit.host.is_match(url));
        fitting().next()?;
        let origin = url.parse().ok().as_ref().and_then(Origin::of);
        let host = origin.map_or_else(|| url.to_owned(), |origin| canonical(&origin.host));
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let count = |(number, limit): (usize, &HostLimit)| {
            let key = (number, host.clone());
            if let Some(known) = used.get(&key) {
                return known.clone();
            }
            // Past so many hosts nobody's use is kept, and nothing passes of those that are new.
            if used.len() >= HOSTS_MAX {
                return Arc::new(Count::new(host.clone(), HostLimit::nothing()));
            }
            let new = Arc::new(Count::new(host.clone(), limit.clone()));
            used.insert(key, new.clone());
            new
        };
        Some(Arc::new(Used(fitting().map(count).collect())))
    }
}

impl HostLimit {
    fn nothing() -> Self {
        Self { host: HostGlob::everything(), sent: Some(0), received: Some(0), per_minute: Some(0) }
    }
}

impl Used {
    /// Counts a request that says how long its body is, where it may be made.
    pub(super) fn begin(&self, length: Option<u64>, now: Instant) -> Result<(), String> {
        self.0.iter().try_for_each(|count| count.has_room(length, now))?;
        self.0.iter().for_each(|count| count.note(now));
        Ok(())
    }

    fn take(&self, direction: Direction, bytes: u64) -> Result<(), String> {
        // All of them count it, also where one is full.
        let taken: Vec<Result<(), String>> =
            self.0.iter().map(|count| count.take(direction, bytes)).collect();
        taken.into_iter().collect()
    }
}

impl Count {
    fn new(host: String, limit: HostLimit) -> Self {
        let (sent, received) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { host, limit, sent, received, made: Mutex::default() }
    }

    fn has_room(&self, length: Option<u64>, now: Instant) -> Result<(), String> {
        if let (Some(most), Some(length)) = (self.limit.sent, length)
            && self.sent.load(Ordering::Relaxed).saturating_add(length) > most
        {
            return Err(self.full(Direction::Out, most));
        }
        let Some(most) = self.limit.per_minute else { return Ok(()) };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        while made.front().is_some_and(|first| now.duration_since(*first) >= MINUTE) {
            made.pop_front();
        }
        if made.len() < usize::try_from(most).unwrap_or(usize::MAX) {
            return Ok(());
        }
        let rest = made.front().map_or(MINUTE, |first| MINUTE.saturating_sub(now.duration_since(*first)));
        Err(format!(
            "`{}` may be asked {most} times in a minute (`network.limit` in config.toml): again in {} s",
            self.host,
            rest.as_secs() + 1
        ))
    }

    fn note(&self, now: Instant) {
        if self.limit.per_minute.is_some() {
            self.made.lock().unwrap_or_else(PoisonError::into_inner).push_back(now);
        }
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
