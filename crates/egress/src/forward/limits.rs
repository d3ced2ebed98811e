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
/// So many counts of hosts are kept; more than a process's commands speak with.
const COUNTS_MAX: usize = 10_000;
/// What is in use of them is looked for so long after the last time that none was free: to look takes longer
/// than a small request.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A limit of the owner's. Where several fit a request, each of them holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostLimit {
    /// Each host that fits has a count of its own.
    pub host: HostGlob,
    /// Bytes that go there: of bodies, and of what stands before and behind them.
    pub sent: Option<u64>,
    /// Bytes that come from there, in the same way.
    pub received: Option<u64>,
    /// Requests in any minute.
    pub per_minute: Option<u32>,
}

/// The limits of hosts, and what was used of them: by limit, and by host in its one spelling.
#[derive(Debug)]
pub(super) struct HostLimits {
    all: Vec<HostLimit>,
    used: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    all: HashMap<(usize, String), Arc<HostUsage>>,
    /// When none of them could be given up.
    full: Option<Instant>,
}

/// What a request uses up.
#[derive(Debug)]
pub(super) struct Used(Vec<Arc<HostUsage>>);

/// What one host has used of one limit.
#[derive(Debug)]
struct HostUsage {
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

impl HostLimits {
    pub(super) fn new(all: Vec<HostLimit>) -> Self {
        Self { all, used: Mutex::default() }
    }

    /// What limits a request to this URL. An error says that no more hosts can be counted.
    pub(super) fn of(&self, url: &str, now: Instant) -> Result<Option<Arc<Used>>, String> {
        #[cfg(feature = "controls")]
        if bailey_protocol::broken::broken("host_limits") {
            return Ok(None);
        }
        let fitting = || self.all.iter().enumerate().filter(|(_, limit)| limit.host.is_match(url));
        if fitting().next().is_none() {
            return Ok(None);
        }
        let origin = url.parse().ok().as_ref().and_then(Origin::of);
        let host = origin.map_or_else(|| url.to_owned(), |origin| canonical(&origin.host));
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = fitting().map(|(number, limit)| used.count((number, host.clone()), limit, now));
        Ok(Some(Arc::new(Used(counts.collect::<Result<_, _>>()?))))
    }
}

impl Counts {
    fn count(
        &mut self,
        key: (usize, String),
        limit: &HostLimit,
        now: Instant,
    ) -> Result<Arc<HostUsage>, String> {
        if let Some(known) = self.all.get(&key) {
            return Ok(known.clone());
        }
        if self.all.len() >= COUNTS_MAX && !self.has_room(now) {
            return Err(format!(
                "{COUNTS_MAX} counts of hosts are in use (`network.limit` in config.toml), and no more are kept: `{}` can be asked \
                 when the last minute's requests are past, or after Bailey was started again",
                key.1
            ));
        }
        let new = Arc::new(HostUsage::new(key.1.clone(), limit.clone()));
        self.all.insert(key, new.clone());
        Ok(new)
    }

    /// Gives up what nothing was used of, such as counts of hosts that no rule let pass.
    fn has_room(&mut self, now: Instant) -> bool {
        if self.full.is_some_and(|full| now.saturating_duration_since(full) < LOOK_AGAIN) {
            return false;
        }
        self.all.retain(|_, count| Arc::strong_count(count) > 1 || count.is_used(now));
        self.full = (self.all.len() >= COUNTS_MAX).then_some(now);
        self.full.is_none()
    }
}

impl Used {
    /// Counts a request that says how long its body is, where it may be made.
    pub(super) fn begin(&self, length: Option<u64>, now: Instant) -> Result<(), String> {
        self.0.iter().try_for_each(|count| count.has_room(length, now))?;
        self.0.iter().for_each(|count| count.note(now));
        Ok(())
    }

    /// Takes back a request that began then, and that nobody was let make.
    pub(super) fn take_back(&self, began: Instant) {
        self.0.iter().for_each(|count| count.take_back(began));
    }

    /// How much of so many bytes may be sent; an error where nothing may. What is not sent of it is given
    /// back.
    fn reserve(&self, bytes: u64) -> Result<u64, String> {
        let mut room = bytes;
        for (number, count) in self.0.iter().enumerate() {
            let reserved = count.reserve(room);
            let now = *reserved.as_ref().unwrap_or(&0);
            self.0.iter().take(number).for_each(|count| count.give_back(room - now));
            room = reserved?;
        }
        Ok(room)
    }

    fn take(&self, direction: Direction, bytes: u64) -> Result<(), String> {
        // All of them count it, also where one is full.
        let taken: Vec<Result<(), String>> =
            self.0.iter().map(|count| count.take(direction, bytes)).collect();
        taken.into_iter().collect()
    }
}

impl HostUsage {
    fn new(host: String, limit: HostLimit) -> Self {
        let (sent, received) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { host, limit, sent, received, made: Mutex::default() }
    }

    /// Whether it would make a difference to count anew.
    fn is_used(&self, now: Instant) -> bool {
        let HostLimit { sent, received, .. } = self.limit;
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = made.back().is_some_and(|last| now.saturating_duration_since(*last) < MINUTE);
        is_recent
            || (sent.is_some() && self.sent.load(Ordering::Relaxed) > 0)
            || (received.is_some() && self.received.load(Ordering::Relaxed) > 0)
    }

    fn has_room(&self, length: Option<u64>, now: Instant) -> Result<(), String> {
        // Who does not say how much comes has at least something to send.
        if let Some(most) = self.limit.sent
            && self.sent.load(Ordering::Relaxed).saturating_add(length.unwrap_or(1)) > most
        {
            return Err(self.full(Direction::Out, most));
        }
        // What would be answered to nobody is not asked: its server would do it all the same.
        if let Some(most) = self.limit.received
            && self.received.load(Ordering::Relaxed) >= most
        {
            return Err(self.full(Direction::Back, most));
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

    fn take_back(&self, began: Instant) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = made.iter().position(|made| *made == began) {
            made.remove(at);
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

    /// Takes as much of so many bytes as may still be sent: what nobody else can take meanwhile.
    fn reserve(&self, bytes: u64) -> Result<u64, String> {
        let most = self.limit.sent.unwrap_or(u64::MAX);
        let with = |sent: u64| {
            let room = bytes.min(most.saturating_sub(sent));
            (room > 0).then(|| sent.saturating_add(room))
        };
        let before = self.sent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with);
        let before = before.map_err(|_| self.full(Direction::Out, most))?;
        Ok(bytes.min(most.saturating_sub(before)))
    }

    fn give_back(&self, bytes: u64) {
        self.sent.fetch_sub(bytes, Ordering::Relaxed);
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

    /// Whether it counts what goes to a server.
    pub(super) fn is_out(&self) -> bool {
        self.direction == Direction::Out
    }

    /// How much of so many bytes may be sent, of which [`Self::sent`] is told how much was. An error says
    /// that nothing may.
    pub(super) fn reserve(&self, bytes: usize) -> Result<usize, String> {
        let Some(used) = self.used.as_ref().filter(|_| bytes > 0) else { return Ok(bytes) };
        let room = used.reserve(u64::try_from(bytes).unwrap_or(u64::MAX))?;
        Ok(usize::try_from(room).unwrap_or(bytes))
    }

    /// Counts what was sent of what was reserved for it.
    pub(super) fn sent(&self, reserved: usize, sent: usize) {
        let number = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
        self.count.fetch_add(number(sent), Ordering::Relaxed);
        if let Some(used) = &self.used {
            used.0.iter().for_each(|count| count.give_back(number(reserved.saturating_sub(sent))));
        }
    }

    /// Counts bytes of a body that are about to pass. An error says that they may not.
    pub(super) fn pass(&self, bytes: usize) -> Result<(), String> {
        self.count.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.pass_head(bytes)
    }

    /// Counts what stands before a body, or behind it: it is limited like one, and no part of how long one
    /// was.
    pub(super) fn pass_head(&self, bytes: usize) -> Result<(), String> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.used.as_ref().map_or(Ok(()), |used| used.take(self.direction, bytes))
    }
}

#[cfg(test)]
mod tests;
