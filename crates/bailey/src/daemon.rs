//! The daemon of a home: it keeps the processes of sessions, so that they live on when a terminal is closed.
//!
//! It is not bound, and so hears nobody but its owner: lines of JSON over a socket in the home, from peers whose user the
//! kernel names. It loads no key and parses nothing of the world. Each session has a process of its own, which is that of
//! `bailey chat` without a terminal (`commands/chat/desk.rs`): it binds itself, listens at a socket of its own name, and says
//! here how it is. Front ends talk to that process, never through this one.
//!
//! A session's process holds the other end of a pipe: that the daemon is gone it hears at once, and ends where it stands. What
//! it ran is begun again by the next daemon (`record.rs`), and the journal knows how far it came.

pub(crate) mod alone;
mod attached;
pub(crate) mod bridge;
mod channels;
pub(crate) mod client;
pub(crate) mod first;
mod health;
mod inbox;
pub(crate) mod link;
pub(crate) mod log;
mod memory;
mod metrics;
mod notify;
pub(crate) mod page;
mod record;
mod schedules;
pub(crate) mod telemetry;
pub(crate) mod wire;

use crate::{
    compose,
    config::Config,
    exit::{self, Failure},
    extensions::Extensions,
    home::{Home, make_private},
    program,
};
use anyhow::{Context as _, Result, bail};
use attached::Kept;
use bailey_journal::{Clock as _, Holder, SessionLock, SystemClock};
use bailey_protocol::{SessionId, Timestamp};
use health::Phase;
use log::Log;
use memory::Watch;
use notify::Manager;
use record::Record;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    fs,
    future::pending,
    io,
    io::Write as _,
    os::{fd::OwnedFd, unix::process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ExitStatus, Stdio},
    rc::Rc,
    time::{Duration, Instant},
};
use tokio::{
    io::BufReader,
    net::{UnixListener, UnixStream, unix::pipe},
    signal::unix::{SignalKind, signal},
    sync::{Notify, Semaphore, oneshot},
    task::{LocalSet, spawn_blocking, spawn_local},
    time::{interval, sleep, sleep_until, timeout},
};
use wire::{Ask, DRAIN, RULES, Report, Running, State, Status, Told, Wanted};

/// The daemon's socket, and its log, in the daemon's folder of a home.
pub(crate) const SOCKET: &str = "socket";
pub(crate) const LOG: &str = "log";

/// How long turns that run are waited for, where nobody says.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How long a session may take to open: it may have to begin a journal, or to wait for one.
const OPENING_MAX: Duration = Duration::from_secs(60);
/// How long one whose line is cut may take to end.
const ENDING_MAX: Duration = Duration::from_secs(10);
/// How long a session may take to tell that its turn is over.
const RESTING_MAX: Duration = Duration::from_secs(1);
/// How many connections are served at once.
const CONNECTIONS_MAX: usize = 64;
/// How many lines of what a session's process says on its way are told to whoever opens it, how many the log takes, and how much of
/// each, in bytes: all that is told at once is a line of an answer (`wire::LINE_BYTES_MAX`).
const REMARKS_MAX: usize = 32;
const SAID_MAX: usize = 1000;
const SAID_BYTES_MAX: usize = 4 << 10;
/// How long who connected may say nothing, and who opened a session not come to it.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How many sessions are begun again at once.
const AGAIN_MAX: usize = 4;
/// How often a session whose process was killed is begun again within a time: one that is its own end stays as it is.
const CRASHES_MAX: usize = 3;
const CRASHES_WITHIN: Duration = Duration::from_secs(300);
/// How often is noted that connections are refused.
const REFUSALS_EACH: Duration = Duration::from_secs(60);
/// How long nothing is accepted where there is no descriptor for it.
const PAUSE: Duration = Duration::from_millis(100);

struct Daemon {
    home: Home,
    /// Held as long as this is the home's daemon.
    lock: SessionLock,
    since: Timestamp,
    log: Noted,
    manager: Manager,
    sessions: RefCell<BTreeMap<SessionId, Held>>,
    /// When processes of sessions ended that nobody told to.
    crashes: RefCell<BTreeMap<SessionId, Vec<Instant>>>,
    /// Those that are being opened again, and how many are being opened at all.
    opening: RefCell<BTreeSet<SessionId>>,
    beginning: Cell<usize>,
    connections: Cell<usize>,
    /// When somebody was refused and it was noted, and how many since then.
    refusals: Cell<(Option<Instant>, u64)>,
    channels: RefCell<Vec<Rc<Kept>>>,
    page: RefCell<Option<Rc<page::Page>>>,
    sending: RefCell<telemetry::Sending>,
    told: health::Told,
    turns: Cell<u64>,
    is_stopping: Cell<bool>,
    /// Until when turns that run are waited for then, and what wakes whoever waits when that comes nearer.
    waits_until: Cell<Option<Instant>>,
    hurried: Notify,
    /// Whether the home is copied each day, and whether it is being copied.
    is_daily: Cell<bool>,
    is_copying: Cell<bool>,
    memory: Watch,
    /// Wakes whoever waits for a session's state, or for one that is being opened.
    changed: Notify,
    ended: Notify,
}

/// The log, which is printed, too, as the configuration says.
struct Noted {
    folder: PathBuf,
    log: RefCell<Log>,
    is_printed: Cell<bool>,
}

impl Noted {
    fn open(folder: &Path, is_printed: bool) -> Result<Self> {
        let log = RefCell::new(Log::open(folder, is_printed)?);
        Ok(Self { folder: folder.to_path_buf(), log, is_printed: Cell::new(is_printed) })
    }

    fn note(&self, what: &str, about: Value) {
        self.log.borrow().note(what, about);
    }

    /// Begins to print what is noted, or ends that. What was to be printed before still is, and nobody waits for it.
    fn print(&self, is_printed: bool) {
        if self.is_printed.get() == is_printed {
            return;
        }
        match Log::open(&self.folder, is_printed) {
            Ok(log) => {
                self.log.replace(log);
                self.is_printed.set(is_printed);
            }
            Err(error) => self.note("not_printed", json!({ "why": format!("{error:#}") })),
        }
    }

    fn end(&self) {
        self.log.borrow().end();
    }
}

/// How sessions are ended that do not end by themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Those with a turn, which hear that there is no daemon any more.
    Working,
    /// All, in the same way.
    All,
    /// All that do not hear it.
    Killed,
}

/// A session's process.
struct Held {
    shown: Running,
    /// What it hears; none once it is to end where it stands.
    life: Option<ChildStdin>,
    /// Whether it was asked to end.
    is_draining: bool,
    /// Whether its turn was cut off to make room, and goes on later.
    is_shed: bool,
    opened: Instant,
    /// When its turn began, where one runs.
    began: Option<Instant>,
    /// Since when it is about to be gone.
    ending: Option<Instant>,
}

impl Held {
    /// Asks it to come to rest, and to end then.
    fn drain(&mut self) {
        self.is_draining = true;
        self.is(self.shown.state);
        self.say(DRAIN);
    }

    /// Notes what it does.
    fn is(&mut self, state: State) {
        self.began = state.working.then(|| self.began.unwrap_or_else(Instant::now));
        self.shown.state = state;
        self.ending = self.is_ending().then(|| self.ending.unwrap_or_else(Instant::now));
    }

    /// Whether it should have ended for so long, and has not: as one that hangs.
    fn is_overdue(&self, most: Duration) -> bool {
        self.is_ending() && self.ending.is_some_and(|since| since.elapsed() > most)
    }

    /// Cuts its line.
    fn cut(&mut self) {
        self.life = None;
        self.is(self.shown.state);
    }

    fn kill(&self) {
        process(self.shown.pid).map(|group| kill_process_group(group, Signal::KILL));
    }

    /// Says something to it. Who has ended already needs to hear nothing.
    fn say(&mut self, line: &[u8]) {
        self.life.iter_mut().for_each(|life| drop(life.write_all(line)));
    }
}

/// Runs the daemon of a home until it is told to end, or, where it is held, until its standard input ends; `say` tells whoever
/// started it that it waits, and that it listens.
///
/// # Errors
/// When another one runs, or the configuration or the rules have mistakes: what is wrong is said before anything begins.
pub(crate) async fn run(home: &Home, held: bool, say: impl Fn(&str)) -> Result<()> {
    // Where this program lies it may not lie any more when sessions begin.
    program::files()?;
    let config = look(home)?;
    let folder = home.daemon();
    make_private(&folder)?;
    let since = SystemClock.now();
    let holder = Holder { pid: std::process::id(), since, command: "bailey start".into() };
    let lock = alone::alone(home, &holder, &say).await?;
    // Before anything is started, so that all of it is in the same group.
    bailey_sandbox::settle_group();
    let listener = wire::listen(&folder, SOCKET)?;
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    let daemon = Rc::new(Daemon {
        home: home.clone(),
        lock,
        since,
        log: Noted::open(&folder, config.telemetry.logs.is_some())?,
        manager: Manager::find(),
        sessions: RefCell::default(),
        crashes: RefCell::default(),
        opening: RefCell::default(),
        beginning: Cell::new(0),
        connections: Cell::new(0),
        refusals: Cell::default(),
        channels: RefCell::default(),
        page: RefCell::default(),
        sending: RefCell::default(),
        told: health::Told::default(),
        turns: Cell::new(0),
        is_stopping: Cell::new(false),
        waits_until: Cell::default(),
        hurried: Notify::new(),
        is_daily: Cell::new(config.daily_backup),
        is_copying: Cell::default(),
        memory: Watch::new(config.memory),
        changed: Notify::new(),
        ended: Notify::new(),
    });
    daemon.log.note("started", json!({ "pid": std::process::id(), "version": env!("CARGO_PKG_VERSION") }));
    daemon.tell_health(Phase::Starting);
    let let_go = let_go(held);
    let is_up = || say("the daemon is up");
    let served = LocalSet::new().run_until(daemon.serve(listener, &config, let_go, is_up)).await;
    if daemon.is_at_home() {
        fs::remove_file(folder.join(SOCKET)).ok();
    }
    daemon.tell_health(Phase::Stopped);
    daemon.log.note("ended", json!({ "pid": std::process::id() }));
    daemon.log.end();
    served
}

/// Hears of the end of standard input, where that is to be heard. Nothing else comes there.
fn let_go(held: bool) -> oneshot::Receiver<()> {
    let (say, hear) = oneshot::channel();
    if held {
        std::thread::spawn(move || {
            io::copy(&mut io::stdin().lock(), &mut io::sink()).ok();
            say.send(()).ok();
        });
    }
    hear
}

/// That what a session would obey can be obeyed.
fn look(home: &Home) -> Result<Config> {
    let config = Config::load(home)?;
    compose::policy(home, &Extensions::read(&config))?;
    compose::catalogue(home)?;
    Ok(config)
}

impl Daemon {
    async fn serve(
        self: &Rc<Self>,
        listener: UnixListener,
        config: &Config,
        mut let_go: oneshot::Receiver<()>,
        is_up: impl FnOnce(),
    ) -> Result<()> {
        let hear = |kind: SignalKind| signal(kind).context("signals cannot be heard");
        let mut hang_up = hear(SignalKind::hangup())?;
        let mut terminate = hear(SignalKind::terminate())?;
        let mut interrupt = hear(SignalKind::interrupt())?;
        self.sweep();
        let turns = Rc::new(Semaphore::new(AGAIN_MAX));
        for record in Record::all(&self.home) {
            let (daemon, turns) = (self.clone(), turns.clone());
            spawn_local(async move {
                let _turn = turns.acquire().await;
                // What does not begin any more is the next daemon's.
                if !daemon.is_stopping.get() {
                    daemon.begin_again(record).await;
                }
            });
        }
        self.keep_channels(config);
        if let Err(error) = self.keep_page(&config.page) {
            self.log.note("no_page", json!({ "why": format!("{error:#}") }));
        }
        self.keep_telemetry(&config.telemetry);
        spawn_local(self.clone().keep_time());
        spawn_local(self.clone().keep_health());
        self.manager.tell("READY=1");
        is_up();
        let mut beat = interval(self.manager.beat.unwrap_or(ENDING_MAX));
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => self.accept(stream),
                    Err(error) => {
                        self.log.note("not_accepted", json!({ "why": error.to_string() }));
                        sleep(PAUSE).await;
                    }
                },
                _ = hang_up.recv() => drop(self.reload()),
                _ = terminate.recv() => self.stop(PATIENCE),
                _ = interrupt.recv() => self.stop(PATIENCE),
                Ok(()) = &mut let_go, if !let_go.is_terminated() => self.stop(PATIENCE),
                _ = beat.tick() => {
                    self.manager.tell("WATCHDOG=1");
                    // What runs ends with this process, where it stands.
                    self.stay().inspect_err(|error| self.log.note("home_gone", json!({ "why": error.to_string() })))?;
                    self.end_overdue();
                    self.watch();
                }
                () = self.ended.notified() => return Ok(()),
            }
        }
    }

    /// Whether the home still lies where it lay: what is at its path now may be another one, with a daemon of its own.
    fn is_at_home(&self) -> bool {
        self.lock.is_in(&self.home.daemon())
    }

    /// That nothing is done in a home that is another one.
    fn stay(&self) -> Result<()> {
        if self.is_at_home() {
            return Ok(());
        }
        let home = self.home.root.display();
        let error = format!(
            "the home was moved or removed while its daemon ran: `{home}` is not what it was; start it again where it is now"
        );
        // Whoever keeps daemons up is to begin none in what lies there now.
        Err(Failure { error, code: exit::WRONG }.into())
    }

    /// Lets nothing be asked of another home but how this daemon is, and that it ends.
    fn here(&self, ask: Ask) -> Result<Ask> {
        match ask {
            Ask::Status | Ask::Stop { .. } => Ok(ask),
            _ => self.stay().map(|()| ask),
        }
    }

    fn accept(self: &Rc<Self>, stream: UnixStream) {
        if !wire::is_owner(&stream) {
            let peer = stream.peer_cred().ok();
            self.refused(json!({ "uid": peer.map(|peer| peer.uid()) }));
            return;
        }
        if self.connections.get() >= CONNECTIONS_MAX {
            let why = format!(
                "{CONNECTIONS_MAX} others are connected to the daemon: try again when some have gone"
            );
            self.refused(json!({ "why": why }));
            spawn_local(async move { wire::say(&mut { stream }, &Told::Refused { why, code: None }).await });
            return;
        }
        self.connections.set(self.connections.get() + 1);
        let daemon = self.clone();
        spawn_local(async move {
            // Whoever went away has no use for an answer.
            daemon.answer(stream).await.ok();
            daemon.connections.set(daemon.connections.get() - 1);
        });
    }

    /// Notes who was refused: the first, and once a minute how many others there were, so that nobody fills the log.
    fn refused(&self, mut about: Value) {
        let (since, others) = self.refusals.get();
        if since.is_some_and(|since| since.elapsed() < REFUSALS_EACH) {
            self.refusals.set((since, others + 1));
            return;
        }
        self.refusals.set((Some(Instant::now()), 0));
        about.as_object_mut().map(|about| about.insert("others".into(), others.into()));
        self.log.note("refused", about);
    }

    /// Serves one connection to its end.
    async fn answer(self: &Rc<Self>, stream: UnixStream) -> Result<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let heard = timeout(SILENCE_MAX, wire::line(&mut stream, wire::LINE_BYTES_MAX)).await;
            let asked = match heard.unwrap_or(Ok(None)) {
                Ok(None) => return Ok(()),
                Ok(Some(line)) => wire::asked(&line).and_then(|ask| self.here(ask)),
                Err(error) => Err(error.into()),
            };
            let told = match asked {
                Ok(Ask::Status) => Ok(Told::Status(self.status().into())),
                Ok(Ask::Reload) => self.reload(),
                Ok(Ask::Open(wanted)) => self.open(wanted).await,
                Ok(Ask::Close { session }) => self.close(session).await,
                Ok(Ask::Anew) => Ok(self.begin_channels_anew()),
                Ok(Ask::Run { schedule }) => self.run_schedule(&schedule).await,
                Ok(Ask::Link) => self.link(),
                Ok(Ask::Revoke { login }) => self.revoke(login),
                Ok(Ask::Stop { patience_seconds }) => {
                    self.stop(Duration::from_secs(patience_seconds));
                    // To the end of this process, which ends the connection.
                    loop {
                        wire::say(&mut stream, &Told::Stopping { working: self.working() }).await?;
                        self.changed.notified().await;
                    }
                }
                Err(error) => Err(error),
            };
            let is_refused = told.is_err();
            let told = told.unwrap_or_else(|error| {
                let code = error.downcast_ref::<Failure>().map(|failure| failure.code);
                Told::Refused { why: format!("{error:#}"), code }
            });
            wire::say(&mut stream, &told).await?;
            if is_refused {
                return Ok(());
            }
        }
    }

    fn status(self: &Rc<Self>) -> Status {
        Status {
            pid: std::process::id(),
            since: self.since.to_string(),
            version: env!("CARGO_PKG_VERSION").into(),
            stopping: self.is_stopping.get(),
            sessions: self.sessions.borrow().values().map(|held| held.shown.clone()).collect(),
            channels: self.channels.borrow().iter().map(|kept| kept.state()).collect(),
            page: self.page.borrow().as_ref().map(|page| page.state()),
            memory: self.memory_state(),
            telemetry: self.sending.borrow().state(),
        }
    }

    fn working(&self) -> usize {
        self.sessions.borrow().values().filter(|held| held.shown.state.working).count()
    }

    /// Reads the configuration and the rules: with a mistake in them nothing changes. Sessions at rest that nobody looks at end,
    /// and begin with what was read when they are wanted again.
    fn reload(self: &Rc<Self>) -> Result<Told> {
        self.stay()?;
        let looked = look(&self.home).and_then(|config| {
            // Who starts is not kept from all else by one of them.
            config.check_agents(&self.home)?;
            // First, for it alone may fail.
            let is_ending = self.is_stopping.get();
            if is_ending { Ok(()) } else { self.keep_page(&config.page) }.map(|()| config)
        });
        let config = looked.map_err(|error| {
            self.log.note("not_reloaded", json!({ "why": format!("{error:#}") }));
            error.context("nothing was changed")
        })?;
        self.log.print(config.telemetry.logs.is_some());
        self.is_daily.set(config.daily_backup);
        self.memory.limits.set(config.memory);
        if !self.is_stopping.get() {
            self.keep_channels(&config);
            self.keep_telemetry(&config.telemetry);
        }
        self.log.note("reloaded", json!({}));
        let mut older = 0;
        for held in self.sessions.borrow_mut().values_mut() {
            // Who opened it a moment ago is on the way.
            if held.shown.state.is_at_rest() && held.opened.elapsed() > SILENCE_MAX {
                held.drain();
            } else {
                held.say(RULES);
                older += 1;
            }
        }
        Ok(Told::Reloaded { older })
    }

    /// Ends: no session begins, turns that run are waited for, and what is left then ends where it stands. Whoever says it once more makes
    /// it come sooner, and never later.
    fn stop(self: &Rc<Self>, patience: Duration) {
        // One that no clock reaches is as good as none.
        let until = Instant::now().checked_add(patience);
        let sooner = [self.waits_until.get(), until].into_iter().flatten().min();
        self.waits_until.set(sooner);
        if self.is_stopping.replace(true) {
            self.hurried.notify_one();
            return;
        }
        self.manager.tell("STOPPING=1");
        self.log.note("stopping", json!({ "working": self.working() }));
        self.sessions.borrow_mut().values_mut().for_each(Held::drain);
        self.changed.notify_waiters();
        let daemon = self.clone();
        spawn_local(async move {
            // Who works is cut first, and who is about to end has some time more.
            let mut is_empty = daemon.emptied_in_time().await;
            for cut in [Cut::Working, Cut::All, Cut::Killed] {
                if is_empty {
                    break;
                }
                daemon.cut(cut);
                is_empty = cut == Cut::Killed || timeout(ENDING_MAX, daemon.emptied()).await.is_ok();
            }
            daemon.channels.borrow().iter().for_each(|kept| kept.end());
            daemon.page.borrow().iter().for_each(|page| page.end());
            daemon.sending.borrow().end();
            daemon.ended.notify_one();
        });
    }

    /// Ends sessions where they stand.
    fn cut(&self, cut: Cut) {
        let mut sessions = self.sessions.borrow_mut();
        for held in sessions.values_mut().filter(|held| cut != Cut::Working || held.shown.state.working) {
            self.log.note("cut_off", json!({ "session": held.shown.session }));
            held.cut();
            if cut == Cut::Killed {
                held.kill();
            }
        }
    }

    /// Ends those that were to end and do not.
    fn end_overdue(&self) {
        for held in self.sessions.borrow().values() {
            let State { clients, processes, .. } = held.shown.state;
            // What somebody asked for who looks on, such as an apply, may take its time, and so may the ends of processes.
            let most = if clients + processes == 0 { ENDING_MAX } else { OPENING_MAX };
            if held.is_overdue(most) {
                self.log.note("hung", json!({ "session": held.shown.session }));
                held.kill();
            }
        }
    }

    async fn emptied(&self) {
        loop {
            let changed = self.changed.notified();
            if self.sessions.borrow().is_empty() && self.beginning.get() == 0 {
                return;
            }
            changed.await;
        }
    }

    /// Whether all have ended before turns are not waited for any more.
    async fn emptied_in_time(&self) -> bool {
        let emptied = self.emptied();
        tokio::pin!(emptied);
        loop {
            let until = self.waits_until.get().map(tokio::time::Instant::from_std);
            let is_late = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = &mut emptied => return true,
                () = self.hurried.notified() => {}
                () = is_late => return false,
            }
        }
    }

    async fn begin_again(self: &Rc<Self>, record: Record) {
        let Record { session, directory, again } = record;
        let words = ["--resume".into(), session.to_string()].into_iter().chain(again.clone()).collect();
        // It was accepted before: it waits, and is not refused.
        self.until_room().await;
        let wanted = Wanted { directory, words, again, session: Some(session) };
        match self.open(wanted).await {
            Ok(_) => self.log.note("begun_again", json!({ "session": session })),
            Err(error) => {
                // What is there may be opened another time, by its owner or the next daemon.
                if !self.home.of_session(session, "").exists() {
                    record::forget(&self.home, session);
                }
                let why = format!("{error:#}");
                self.log.note("not_begun_again", json!({ "session": session, "why": why }));
            }
        }
    }

    /// Begins a session's process, or finds it.
    async fn open(self: &Rc<Self>, wanted: Wanted) -> Result<Told> {
        if self.is_stopping.get() {
            bail!("the daemon is ending; wait for that, then: bailey start");
        }
        let Some(session) = wanted.session else { return self.begin(wanted).await };
        let since = Instant::now();
        loop {
            let changed = self.changed.notified();
            // One that is about to end is waited for.
            let is_draining = self.sessions.borrow().get(&session).map(|held| held.is_draining);
            match is_draining {
                Some(false) => return Ok(Told::Opened { session, remarks: Vec::new() }),
                None if self.opening.borrow_mut().insert(session) => break,
                Some(true) | None if since.elapsed() > OPENING_MAX => bail!(
                    "session {session} is about to end, or is being opened, and that takes longer than {} s: try again",
                    OPENING_MAX.as_secs()
                ),
                Some(true) | None => self.end_overdue(),
            }
            timeout(RESTING_MAX, changed).await.ok();
        }
        let begun = self.begin(wanted).await;
        self.opening.borrow_mut().remove(&session);
        self.changed.notify_waiters();
        begun
    }

    /// Ends the process of a session that is at rest, and waits for its end.
    async fn close(&self, session: SessionId) -> Result<Told> {
        let since = Instant::now();
        loop {
            let changed = self.changed.notified();
            match self.sessions.borrow_mut().get_mut(&session) {
                None => return Ok(Told::Closed),
                // That a turn is over its people hear before this does.
                Some(held) if held.shown.state.working && since.elapsed() > RESTING_MAX => {
                    bail!("something else was said to the session, and it works on that")
                }
                Some(held) if held.shown.state.working || held.is_draining => {}
                Some(held) => held.drain(),
            }
            self.end_overdue();
            timeout(RESTING_MAX, changed).await.ok();
        }
    }

    async fn begin(self: &Rc<Self>, wanted: Wanted) -> Result<Told> {
        self.room()?;
        self.beginning.set(self.beginning.get() + 1);
        let begun = self.start(wanted).await;
        self.beginning.set(self.beginning.get() - 1);
        self.changed.notify_waiters();
        begun
    }

    async fn start(self: &Rc<Self>, wanted: Wanted) -> Result<Told> {
        let Wanted { directory, words, again, session: wanted } = wanted;
        let mut child = program::again()
            .arg("--home")
            .arg(&self.home.root)
            .args(["--desk", "chat"])
            .args(words)
            .current_dir(&directory)
            // What is typed to end the daemon is the daemon's to pass on, and the service manager is nobody else's.
            .process_group(0)
            .env_remove("NOTIFY_SOCKET")
            .env_remove("WATCHDOG_USEC")
            .env_remove("WATCHDOG_PID")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("no process can be started in `{}`", directory.display()))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(life), Some(out), Some(err)) = pipes else { bail!("a process has no pipes") };
        let (mut out, err) = (reader(out.into())?, reader(err.into())?);
        let remarks = Rc::new(RefCell::new(Vec::new()));
        let said = spawn_local(self.clone().listen(err, remarks.clone()));
        let opened = timeout(OPENING_MAX, wire::hear::<Report>(&mut out)).await;
        let opened = match opened {
            // It hears of the world, and is not believed where it calls itself another session.
            Ok(Ok(Some(Report::Ready { session, workspace }))) if self.may_be(session, wanted) => {
                Some((session, workspace))
            }
            _ => None,
        };
        let Some((session, workspace)) = opened else {
            drop(life);
            if let Some(group) = process(child.id()) {
                kill_process_group(group, Signal::KILL).ok();
            }
            let code =
                ended(child).await.and_then(|status| status.code()).and_then(|code| u8::try_from(code).ok());
            timeout(ENDING_MAX, said).await.ok();
            // It may have listened already, at a name that nobody told; and is bound, so that it takes nothing away.
            if self.beginning.get() == 1 {
                self.sweep();
            }
            let mut remarks = remarks.take();
            // What went wrong is said last, and told first: what else there was may be more than is told.
            let wrong = remarks.iter().position(|remark| remark.starts_with("error: "));
            remarks.rotate_left(wrong.unwrap_or(0));
            let why = remarks.join("\n");
            let why = why.strip_prefix("error: ").unwrap_or(&why).to_owned();
            let error = if why.is_empty() {
                "the session's process ended before it was open".to_owned()
            } else {
                why
            };
            return Err(Failure { error, code: code.unwrap_or(exit::FAILED) }.into());
        };
        let since = SystemClock.now().to_string();
        let pid = child.id();
        let shown = Running { session, pid, workspace, since, state: State::default() };
        let record = Record { session, directory, again };
        if let Err(error) = record.keep(&self.home) {
            // Without it the session works, and is not begun again by itself.
            self.log.note("not_kept", json!({ "session": session, "why": format!("{error:#}") }));
        }
        self.log.note("opened", json!({ "session": session, "pid": pid, "workspace": shown.workspace }));
        let (opened, began) = (Instant::now(), None);
        let mut held =
            Held { shown, life: Some(life), is_draining: false, is_shed: false, opened, began, ending: None };
        if self.is_stopping.get() {
            held.drain();
        }
        self.sessions.borrow_mut().insert(session, held);
        spawn_local(self.clone().follow(record, out, child));
        Ok(Told::Opened { session, remarks: remarks.take() })
    }

    /// Removes the sockets of sessions that do not run any more, while none is on its way.
    fn sweep(&self) {
        let sessions = self.sessions.borrow();
        for entry in fs::read_dir(self.home.daemon()).into_iter().flatten().flatten() {
            let session = entry.file_name().to_str().and_then(SessionId::parse);
            if session.is_some_and(|session| !sessions.contains_key(&session)) {
                fs::remove_file(entry.path()).ok();
            }
        }
    }

    fn may_be(&self, session: SessionId, wanted: Option<SessionId>) -> bool {
        wanted.map_or_else(|| !self.sessions.borrow().contains_key(&session), |wanted| wanted == session)
    }

    /// Listens to what a session's process says to people: until it is open that is told to whoever opens it, then to the log.
    async fn listen(self: Rc<Self>, mut err: BufReader<pipe::Receiver>, remarks: Rc<RefCell<Vec<String>>>) {
        let mut said = 0;
        loop {
            let line = match wire::line(&mut err, wire::LINE_BYTES_MAX).await {
                Ok(Some(line)) => line,
                // The rest of one that is too long is the next one.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => continue,
                Ok(None) | Err(_) => return,
            };
            said += 1;
            let text = wire::cut(&String::from_utf8_lossy(&line), SAID_BYTES_MAX);
            // It hears of the world, and the log is the daemon's.
            if said <= SAID_MAX {
                self.log.note("said", json!({ "text": text }));
            }
            if said <= REMARKS_MAX {
                remarks.borrow_mut().push(text);
            }
        }
    }

    /// Follows a session's process to its end.
    async fn follow(self: Rc<Self>, record: Record, mut out: BufReader<pipe::Receiver>, child: Child) {
        let session = record.session;
        while let Ok(Some(report)) = wire::hear::<Report>(&mut out).await {
            if let (Report::State(state), Some(held)) = (report, self.sessions.borrow_mut().get_mut(&session))
            {
                // A turn has ended.
                self.turns.set(self.turns.get() + u64::from(held.shown.state.working && !state.working));
                held.is(state);
            }
            self.changed.notify_waiters();
        }
        let status = ended(child).await;
        let held = self.sessions.borrow_mut().remove(&session);
        fs::remove_file(self.home.daemon().join(session.to_string())).ok();
        let how = status.map_or_else(|| "unknown".to_owned(), |status| status.to_string());
        self.log.note("closed", json!({ "session": session, "how": how }));
        self.changed.notify_waiters();
        if status.is_some_and(|status| status.success()) {
            return record::forget(&self.home, session);
        }
        // Whom the daemon ended itself did not crash; and who was to end, and had nothing to do, has ended, if late.
        let is_shed = held.as_ref().is_some_and(|held| held.is_shed);
        let is_wanted = is_shed || held.is_none_or(|held| !held.is_ending());
        if !self.is_stopping.get() && is_wanted && (is_shed || self.may_begin_again(session)) {
            self.begin_again(record).await;
        }
    }

    /// Notes the end of a session's process that nobody wanted.
    fn may_begin_again(&self, session: SessionId) -> bool {
        self.crashes_lately();
        let mut crashes = self.crashes.borrow_mut();
        let of_it = crashes.entry(session).or_default();
        of_it.push(Instant::now());
        of_it.len() <= CRASHES_MAX
    }

    /// How many there were within the time that counts; the others are forgotten.
    fn crashes_lately(&self) -> usize {
        let mut crashes = self.crashes.borrow_mut();
        crashes.values_mut().for_each(|of_it| of_it.retain(|at| at.elapsed() < CRASHES_WITHIN));
        crashes.retain(|_, of_it| !of_it.is_empty());
        crashes.values().map(Vec::len).sum()
    }
}

/// The process of this number, which is also its group's.
fn process(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

/// Waits for the end of a process that has closed its pipes.
async fn ended(mut child: Child) -> Option<ExitStatus> {
    spawn_blocking(move || child.wait()).await.ok()?.ok()
}

fn reader(pipe: OwnedFd) -> io::Result<BufReader<pipe::Receiver>> {
    Ok(BufReader::new(pipe::Receiver::from_owned_fd(pipe)?))
}
