//! Memory: when it runs short, nothing new begins, and the sessions that cost least to take up again make
//! room, before the kernel ends something at random.
//!
//! The daemon looks at memory when a client wants a session, and with its own beat while sessions run. It
//! looks more often only while memory is short. The kernel's notices of pressure (PSI) would spare the beat,
//! but they tell of lost time and not of the room that is left, and they are missing in many containers and
//! in control groups of version 1.

use super::{Daemon, SessionProcess};
use anyhow::{Result, bail};
use bailey_home::config;
use bailey_sandbox::{Gauge, Memory};
use bailey_session::wire::MemoryState;
use serde_json::json;
use std::{cell::Cell, rc::Rc, sync::Arc, time::Duration};
use tokio::{sync::Semaphore, task::spawn_local, time::sleep};

/// How often the daemon looks while memory is short.
const SHORT: Duration = Duration::from_secs(1);
/// How long a new process takes to hold the memory that it needs: until then the room that is left is
/// unknown.
const FILLING: Duration = Duration::from_secs(if cfg!(feature = "controls") { 6 } else { 2 });
/// How far below a limit memory must fall until it counts as free again, in percent: else the state would
/// come and go.
const BACK: u64 = 5;

/// The state of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Free,
    /// Nothing new begins.
    Held,
    /// Nothing new begins, and sessions make room.
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

/// The daemon's knowledge of memory.
pub(super) struct Watch {
    gauge: Gauge,
    pub(super) limits: Cell<config::Memory>,
    level: Cell<Level>,
    /// Whether the daemon looks more often than with the beat.
    is_watched: Cell<bool>,
    /// How often sessions at rest, and turns, made room.
    pub(super) rested: Cell<u64>,
    pub(super) cut: Cell<u64>,
    /// Starts that wait for room come one after the other: all at once would fill it again.
    queue: Arc<Semaphore>,
}

impl Watch {
    pub(super) fn new(limits: config::Memory) -> Self {
        #[cfg(feature = "controls")]
        let gauge = bailey_session::controls::meminfo().map_or_else(Gauge::find, Gauge::of_machine);
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
    /// Looks at memory, and notes a change.
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

    /// Looks at memory. While it is short, the daemon then looks often.
    fn heed(self: &Rc<Self>) -> (Level, Option<Memory>) {
        let seen = self.look();
        if seen.0 != Level::Free && !self.memory.is_watched.replace(true) {
            spawn_local(self.clone().watch_closely());
        }
        seen
    }

    /// Looks with the daemon's beat. While no session runs, nothing can make room, and each start looks for
    /// itself.
    pub(super) fn watch(self: &Rc<Self>) {
        if !self.sessions.borrow().is_empty() {
            self.heed();
        }
    }

    /// Looks until memory is free again, and meanwhile has sessions make room.
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

    /// Checks that something new may begin.
    ///
    /// # Errors
    /// When memory is short: the error says how much is taken, why that counts, and how to get room. Also
    /// when the home is not where it was.
    pub(super) fn room(self: &Rc<Self>) -> Result<()> {
        self.stay()?;
        let (Level::Held | Level::Shedding, Some(memory)) = self.heed() else { return Ok(()) };
        let of = if memory.is_group { "the limit of its control group" } else { "all that this machine has" };
        bail!(
            "memory is short: {} % of the {:.1} GiB that the daemon may use is taken ({of}), and from {} % \
             on nothing new begins; running sessions go on. End sessions that you do not need (`bailey \
             status` lists them), give the daemon more memory, or raise `memory.hold_percent` in \
             config.toml and run `bailey reload`",
            memory.percent(),
            memory.limit_bytes as f64 / (1 << 30) as f64,
            self.memory.limits.get().hold_percent,
        )
    }

    /// Waits for room, for work that was accepted before.
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

    /// Has sessions make room. All that are at rest and that no client looks at end at once; then, at each
    /// look, the one that costs least to take up again ends.
    fn shed(self: &Rc<Self>) {
        let mut sessions = self.sessions.borrow_mut();
        let mut idle = 0;
        for held in sessions.values_mut().filter(|held| !held.is_ending() && held.cost() == Cost::Idle) {
            held.drain();
            idle += 1;
        }
        self.memory.rested.set(self.memory.rested.get() + idle);
        // A session that is about to end makes room in a moment. If it does not end, such as one that hangs,
        // it is killed.
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
        // Of turns, the one that began last ends: it loses least, and the earlier ones were there when there
        // was room. The only turn goes on: it is in no other's way, and begun again it would only come as far
        // once more.
        let may_go = sessions.values_mut().filter(|held| held.cost() != Cost::Turn || working > 1);
        let Some(held) = may_go.min_by_key(|held| (held.cost(), std::cmp::Reverse(held.began))) else {
            return;
        };
        let (session, cost) = (held.shown.session, held.cost());
        self.log.note("made_room", json!({ "session": session, "was_working": cost == Cost::Turn }));
        if cost == Cost::Turn {
            // This is like kill -9: the journal knows how far the turn came, and it goes on from there when
            // there is room.
            held.is_shed = true;
            held.cut();
            self.memory.cut.set(self.memory.cut.get() + 1);
        } else {
            held.drain();
            self.memory.rested.set(self.memory.rested.get() + 1);
        }
    }

    /// The state for clients that ask how the daemon is, also before it serves and afterwards.
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

/// The cost of taking a session up again, the least first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cost {
    /// A blink, and no person sees it.
    Idle,
    /// The session waits for an answer, which is in the journal.
    Question,
    /// Its processes in the background end.
    Process,
    /// A client looks at it.
    Client,
    /// A turn is cut off.
    Turn,
}

impl SessionProcess {
    fn cost(&self) -> Cost {
        let state = self.shown.state;
        match (state.working, state.clients, state.processes, state.questions) {
            (true, ..) => Cost::Turn,
            (_, 1.., ..) => Cost::Client,
            (_, _, 1.., _) => Cost::Process,
            (_, _, _, 1..) => Cost::Question,
            // The client that opened it a moment ago is on its way.
            _ if self.opened.elapsed() < super::SILENCE_MAX => Cost::Client,
            _ => Cost::Idle,
        }
    }

    /// Whether the session is about to be gone. A session with a turn is not: it may take long to come to
    /// rest.
    pub(super) fn is_ending(&self) -> bool {
        self.life.is_none() || self.is_draining && !self.shown.state.working
    }
}

#[cfg(test)]
mod tests {
    use super::Level::{self, Free, Held, Shedding};
    use bailey_home::config::Memory;

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
