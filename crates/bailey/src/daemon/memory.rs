//! Memory: where it runs short nothing new begins, and what costs least to take up again makes room, before
//! the kernel ends something at random.
//!
//! It is looked at when somebody wants a session, and with the daemon's own beat where sessions run; more
//! often only while it is short. The kernel's notices of pressure (PSI) would spare the beat, but they tell
//! of time that was lost and not of room that is left, and are not to be had in many containers and control
//! groups of version 1.

use super::{Daemon, Held};
use crate::{config, wire::MemoryState};
use anyhow::{Result, bail};
use bailey_sandbox::{Gauge, Memory};
use serde_json::json;
use std::{cell::Cell, rc::Rc, sync::Arc, time::Duration};
use tokio::{sync::Semaphore, task::spawn_local, time::sleep};

/// How often is looked while memory is short.
const SHORT: Duration = Duration::from_secs(1);
/// How long whoever begins takes to hold what it needs: until then nobody can see how much room is left.
const FILLING: Duration = Duration::from_secs(if cfg!(feature = "controls") { 6 } else { 2 });
/// How much less than a limit must be taken until it counts as free again, in percent: else it would come and
/// go.
const BACK: u64 = 5;

/// How it is with memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Free,
    /// Nothing new begins.
    Held,
    /// And sessions make room.
    Shedding,
}

impl Level {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Held => "held",
            Self::Shedding => "shedding",
        }
    }

    fn next(self, percent: u64, limits: config::Memory) -> Self {
        let over = |limit: u64, level: Self| {
            let back = if self >= level { BACK } else { 0 };
            percent >= limit.saturating_sub(back)
        };
        if over(limits.shed_percent, Self::Shedding) {
            Self::Shedding
        } else if over(limits.hold_percent, Self::Held) {
            Self::Held
        } else {
            Self::Free
        }
    }
}

/// What the daemon knows of memory.
pub(super) struct Watch {
    gauge: Gauge,
    pub(super) limits: Cell<config::Memory>,
    level: Cell<Level>,
    /// Whether it is looked at more often than with the beat.
    is_watched: Cell<bool>,
    /// How often sessions at rest, and turns, made room.
    pub(super) rested: Cell<u64>,
    pub(super) cut: Cell<u64>,
    /// Who waits for room begins one after the other: all at once would fill it again.
    queue: Arc<Semaphore>,
}

impl Watch {
    pub(super) fn new(limits: config::Memory) -> Self {
        #[cfg(feature = "controls")]
        let gauge = crate::controls::meminfo().map_or_else(Gauge::find, Gauge::of_machine);
        #[cfg(not(feature = "controls"))]
        let gauge = Gauge::find();
        Self {
            gauge,
            limits: Cell::new(limits),
            level: Cell::new(Level::Free),
            is_watched: Cell::default(),
            rested: Cell::default(),
            cut: Cell::default(),
            queue: Arc::new(Semaphore::new(1)),
        }
    }
}

impl Daemon {
    /// Looks, and notes what changed.
    fn look(&self) -> (Level, Option<Memory>) {
        let memory = self.memory.gauge.look();
        let percent = memory.map_or(0, |memory| memory.percent());
        let before = self.memory.level.get();
        let level = before.next(percent, self.memory.limits.get());
        self.memory.level.set(level);
        if level != before {
            self.log.note("memory", json!({ "state": level.name(), "percent": percent }));
        }
        (level, memory)
    }

    /// Looks, and from then on often while memory is short.
    fn heed(self: &Rc<Self>) -> (Level, Option<Memory>) {
        let seen = self.look();
        if seen.0 != Level::Free && !self.memory.is_watched.replace(true) {
            spawn_local(self.clone().watch_closely());
        }
        seen
    }

    /// With the daemon's beat: where nothing runs, nothing can make room, and who wants to begin looks for
    /// itself.
    pub(super) fn watch(self: &Rc<Self>) {
        if !self.sessions.borrow().is_empty() {
            self.heed();
        }
    }

    /// Looks until memory is free again, and has sessions make room meanwhile.
    async fn watch_closely(self: Rc<Self>) {
        while !self.is_stopping.get() {
            match self.look().0 {
                Level::Free => break,
                Level::Held => {}
                Level::Shedding => self.shed(),
            }
            sleep(SHORT).await;
        }
        self.memory.is_watched.set(false);
    }

    /// That something new may begin.
    ///
    /// # Errors
    /// When memory is short: what of it, why that counts, and what can be done. Or the home is not where it
    /// was.
    pub(super) fn room(self: &Rc<Self>) -> Result<()> {
        self.stay()?;
        let (Level::Held | Level::Shedding, Some(memory)) = self.heed() else { return Ok(()) };
        let of = if memory.is_group { "the limit of its control group" } else { "all that this machine has" };
        bail!(
            "memory is short: {} % of the {:.1} GiB that the daemon may use is taken ({of}), and from {} % on nothing new begins; \
             what runs goes on. End what you do not need (`bailey status` shows sessions), give it more, or raise \
             `memory.hold_percent` in config.toml (`bailey reload`)",
            memory.percent(),
            memory.limit_bytes as f64 / (1 << 30) as f64,
            self.memory.limits.get().hold_percent,
        )
    }

    /// Waits for room, for what was accepted before.
    pub(super) async fn until_room(self: &Rc<Self>) {
        if self.room().is_ok() {
            return;
        }
        let turn = self.memory.queue.clone().acquire_owned().await;
        while !self.is_stopping.get() && self.room().is_err() {
            sleep(SHORT).await;
        }
        spawn_local(async move {
            sleep(FILLING).await;
            drop(turn);
        });
    }

    /// Has somebody make room: all at once who rests and whom nobody looks at; then, one at each look, who
    /// costs least to take up again.
    fn shed(self: &Rc<Self>) {
        let mut sessions = self.sessions.borrow_mut();
        let mut idle = 0;
        for held in sessions.values_mut().filter(|held| !held.is_ending() && held.cost() == Cost::Idle) {
            held.drain();
            idle += 1;
        }
        self.memory.rested.set(self.memory.rested.get() + idle);
        // Who is about to end makes room in a moment; who does not, such as one that hangs, is ended.
        let mut is_awaited = idle > 0;
        for held in sessions.values_mut().filter(|held| held.is_ending()) {
            match held.is_overdue(super::ENDING_MAX) {
                true => held.kill(),
                false => is_awaited = true,
            }
        }
        if is_awaited {
            return;
        }
        let working = sessions.values().filter(|held| held.cost() == Cost::Turn).count();
        // Of turns the one that began last: least is lost of it, and those before were there when there was
        // room. The last turn goes on: it is in nobody's way, and begun again it would only come as far once
        // more.
        let may_go = sessions.values_mut().filter(|held| held.cost() != Cost::Turn || working > 1);
        let Some(held) = may_go.min_by_key(|held| (held.cost(), std::cmp::Reverse(held.began))) else {
            return;
        };
        let (session, cost) = (held.shown.session, held.cost());
        self.log.note("made_room", json!({ "session": session, "was_working": cost == Cost::Turn }));
        if cost == Cost::Turn {
            // As by kill -9: the journal knows how far it came, and it goes on from there when there is room.
            held.is_shed = true;
            held.cut();
            self.memory.cut.set(self.memory.cut.get() + 1);
        } else {
            held.drain();
            self.memory.rested.set(self.memory.rested.get() + 1);
        }
    }

    /// For whoever asks how the daemon is, also before it serves and afterwards.
    pub(super) fn memory_state(&self) -> Option<MemoryState> {
        let (level, memory) = self.look();
        memory.map(|memory| MemoryState {
            state: level.name().into(),
            percent: memory.percent(),
            used_bytes: memory.used_bytes,
            limit_bytes: memory.limit_bytes,
            group: memory.is_group,
        })
    }
}

/// What it costs to take a session up again, the least first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cost {
    /// A blink, and nobody sees it.
    Idle,
    /// It waits for an answer, which is in the journal.
    Question,
    /// What it runs in the background ends.
    Process,
    /// Somebody looks at it.
    Client,
    /// A turn is cut off.
    Turn,
}

impl Held {
    fn cost(&self) -> Cost {
        let state = self.shown.state;
        match (state.working, state.clients, state.processes, state.questions) {
            (true, ..) => Cost::Turn,
            (_, 1.., ..) => Cost::Client,
            (_, _, 1.., _) => Cost::Process,
            (_, _, _, 1..) => Cost::Question,
            // Who opened it a moment ago is on the way.
            _ if self.opened.elapsed() < super::SILENCE_MAX => Cost::Client,
            _ => Cost::Idle,
        }
    }

    /// Whether it is about to be gone: one with a turn may take long to come to rest.
    pub(super) fn is_ending(&self) -> bool {
        self.life.is_none() || self.is_draining && !self.shown.state.working
    }
}

#[cfg(test)]
mod tests {
    use super::Level::{self, Free, Held, Shedding};
    use crate::config::Memory;

    #[test]
    fn it_does_not_come_and_go_at_a_limit() {
        let limits = Memory { hold_percent: 80, shed_percent: 90 };
        let mut level = Free;
        let seen: Vec<Level> = [79, 80, 76, 75, 74, 79, 90, 86, 84, 76, 74, 95, 10]
            .into_iter()
            .map(|percent| {
                level = level.next(percent, limits);
                level
            })
            .collect();
        let expected =
            [Free, Held, Held, Held, Free, Free, Shedding, Shedding, Held, Held, Free, Shedding, Free];
        assert_eq!(seen, expected);
    }
}
