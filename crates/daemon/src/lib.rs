//! The daemon of a home: it keeps the processes of sessions, so that they live on when a terminal is closed.
//!
//! The daemon is not bound, so it hears only its owner: lines of JSON over a socket in the home, from peers
//! whose user the kernel names. It loads no key and parses no data from the outside; separate processes do
//! the work that needs either. Each session has a process of its own, which is the process of `bailey chat`
//! without a terminal (`chat/server.rs` in the crate `conversation`): it binds itself, listens at a socket of
//! its own name, and reports its state here. Front ends talk to that process, never through this one.
//!
//! One process for all sessions would open new sessions faster. But an attacker who takes over a session's
//! process, by the words of a model or of a server, reaches that session's project and no other. When memory
//! runs short, sessions at rest give up their processes (`memory.rs`).
//!
//! A session whose questions wait for answers may have no process: it rests. The daemon begins it again when
//! a question is answered, or when its time is over, and tells the owner of the questions at chat channels.
//!
//! A session's process holds the other end of a pipe: when the daemon is gone, the process notices at once
//! and ends where it stands. The next daemon begins such sessions again (`record.rs`), and the journal knows
//! how far they came.

pub mod alone;
mod attached;
mod channels;
pub mod command;
pub mod first;
mod health;
pub mod log;
mod memory;
mod metrics;
mod notify;
pub mod page;
mod record;
pub mod schedule;
mod schedules;
mod sessions;
pub mod telemetry;

use anyhow::{Context as _, Result};
use attached::AttachedProcess;
use bailey_channels::kinds;
use bailey_home::{
    config::Config,
    home::{Home, make_private},
    program,
};
use bailey_journal::{Clock as _, Holder, Journal, SessionLock, SystemClock};
use bailey_protocol::{SessionId, Timestamp};
use bailey_session::{
    compose::{self, Named},
    exit::{self, Failure},
    extensions::Extensions,
    wire::{self, Ask, DaemonAnswer, DaemonStatus},
};
use health::Phase;
use log::Noted;
use memory::Watch;
use notify::Manager;
use record::Record;
use rustix::process::Pid;
use serde_json::{Value, json};
use sessions::{Cut, Resting, SessionProcess};
use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::fd::OwnedFd,
    process::{Child, ExitStatus},
    rc::Rc,
    time::{Duration, Instant},
};
use tokio::{
    io::BufReader,
    net::{UnixListener, UnixStream, unix::pipe},
    signal::unix::{SignalKind, signal},
    sync::{Notify, Semaphore, oneshot},
    task::{LocalSet, spawn_blocking, spawn_local},
    time::{interval, sleep, timeout},
};

/// The daemon's log, in the daemon's folder of a home.
pub(crate) const LOG: &str = "log";

/// How long one whose line is cut may take to end.
const ENDING_MAX: Duration = Duration::from_secs(10);
/// How many connections are served at once.
const CONNECTIONS_MAX: usize = 64;
/// How long a connected client may say nothing, and how long a client that opened a session may take to come
/// to it.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How many sessions are begun again at once.
const AGAIN_MAX: usize = 4;
/// How often the log notes that connections are refused.
const REFUSALS_EACH: Duration = Duration::from_secs(60);
/// How long the daemon accepts no connection when there is no descriptor for one.
const PAUSE: Duration = Duration::from_millis(100);

struct Daemon {
    home: Home,
    /// Held as long as this is the home's daemon.
    lock: SessionLock,
    since: Timestamp,
    log: Noted,
    manager: Manager,
    sessions: RefCell<BTreeMap<SessionId, SessionProcess>>,
    /// The sessions whose processes ended while questions wait for answers.
    resting: RefCell<BTreeMap<SessionId, Resting>>,
    /// Of which sessions' questions the owner was told at a channel, and to which of the channel's processes,
    /// by the number of those before it.
    is_told_of: RefCell<BTreeMap<(String, SessionId), u64>>,
    /// When processes of sessions ended that were not told to end.
    crashes: RefCell<BTreeMap<SessionId, Vec<Instant>>>,
    /// Sessions that ended so often that they begin only when a client asks for them.
    given_up: RefCell<BTreeSet<SessionId>>,
    /// The sessions that are being opened again. `beginning` counts all sessions that are being opened.
    opening: RefCell<BTreeSet<SessionId>>,
    /// The sessions that were cut off and are begun again; a session may have to wait for that.
    returning: RefCell<BTreeSet<SessionId>>,
    beginning: Cell<usize>,
    connections: Cell<usize>,
    /// When a refusal was last noted, and how many connections were refused since then.
    refusals: Cell<(Option<Instant>, u64)>,
    channels: RefCell<Vec<Rc<AttachedProcess>>>,
    page: RefCell<Option<Rc<page::WebPage>>>,
    sending: RefCell<telemetry::Sending>,
    told: health::HealthFile,
    turns: Cell<u64>,
    is_stopping: Cell<bool>,
    /// Until when the stopping daemon waits for running turns. `hurried` wakes the waiting task when that
    /// time comes nearer.
    waits_until: Cell<Option<Instant>>,
    hurried: Notify,
    /// How often the daemon read its configuration again, the names of keys since then, and the semaphore
    /// that allows one reload at a time.
    reloads: Cell<u64>,
    named: RefCell<Named>,
    reloading: Semaphore,
    /// Whether the home is copied each day, and whether a copy is being made now.
    is_daily: Cell<bool>,
    is_copying: Cell<bool>,
    memory: Watch,
    /// Wakes the tasks that wait for a session's state, or for a session that is being opened.
    changed: Notify,
    ended: Notify,
    /// Told when a schedule's result, or a question, may be owed to a channel.
    owes: Notify,
}

/// Runs the daemon of a home until it is told to end. With `held`, it also ends when its standard input ends.
/// `say` tells the caller that the daemon waits, and that it listens.
///
/// # Errors
/// When another daemon runs, or when the configuration or the rules have mistakes: mistakes are reported
/// before anything begins.
pub(crate) async fn run(home: &Home, held: bool, say: impl Fn(&str)) -> Result<()> {
    // The program's file may lie elsewhere when sessions begin, so it is found now.
    program::files()?;
    let config = look(home)?;
    let folder = home.daemon();
    make_private(&folder)?;
    let since = SystemClock.now();
    let holder = Holder { pid: std::process::id(), since, command: "bailey start".into() };
    let lock = alone::alone(home, &holder, &say).await?;
    // This comes before any process is started, so that all of them are in the same group.
    bailey_sandbox::settle_group();
    let listener = wire::listen(&folder, wire::SOCKET)?;
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    let daemon = Rc::new(Daemon {
        home: home.clone(),
        lock,
        since,
        log: Noted::open(&folder, config.telemetry.logs.is_some())?,
        manager: Manager::find(),
        sessions: RefCell::default(),
        resting: RefCell::default(),
        is_told_of: RefCell::default(),
        crashes: RefCell::default(),
        given_up: RefCell::default(),
        opening: RefCell::default(),
        returning: RefCell::default(),
        beginning: Cell::new(0),
        connections: Cell::new(0),
        refusals: Cell::default(),
        channels: RefCell::default(),
        page: RefCell::default(),
        sending: RefCell::default(),
        told: health::HealthFile::of(home)?,
        turns: Cell::new(0),
        is_stopping: Cell::new(false),
        waits_until: Cell::default(),
        hurried: Notify::new(),
        reloads: Cell::default(),
        named: RefCell::default(),
        reloading: Semaphore::new(1),
        is_daily: Cell::new(config.daily_backup),
        is_copying: Cell::default(),
        memory: Watch::new(config.memory),
        changed: Notify::new(),
        ended: Notify::new(),
        owes: Notify::new(),
    });
    daemon.log.note("started", json!({ "pid": std::process::id(), "version": env!("CARGO_PKG_VERSION") }));
    daemon.tell_health(Phase::Starting);
    let let_go = let_go(held);
    let is_up = || say("the daemon is up");
    let served = LocalSet::new().run_until(daemon.serve(listener, &config, let_go, is_up)).await;
    if daemon.is_at_home() {
        fs::remove_file(folder.join(wire::SOCKET)).ok();
    }
    daemon.tell_health(Phase::Stopped);
    daemon.log.note("ended", json!({ "pid": std::process::id() }));
    daemon.log.end();
    served
}

/// With `held`, tells the receiver when standard input ends. Nothing else comes there.
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

/// Checks that a session can obey the configuration, the rules and the catalogue.
fn look(home: &Home) -> Result<Config> {
    let config = kinds::load(home)?;
    compose::policy(home, &Extensions::read(&config))?;
    compose::catalogue(home)?;
    Ok(config)
}

/// How many sessions of a home were cut off, and go on with its next daemon.
#[must_use]
pub fn cut_off(home: &Home) -> usize {
    Record::all(home).len()
}

/// Ends the work of these sessions, so that each waits for a person's next message. Returns how many there
/// are.
///
/// # Errors
/// When the journal cannot be read or written.
pub async fn cancel_cut_off(home: &Home, journal: &Journal) -> Result<usize> {
    let records = Record::all(home);
    for record in &records {
        journal.cancel_turn(record.session).await?;
    }
    Ok(records.len())
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
            // Before the schedules look at the clock: they must not take this session for one that is over.
            self.returning.borrow_mut().insert(record.session);
            spawn_local(async move {
                let _turn = turns.acquire().await;
                // A session that does not begin any more is left to the next daemon.
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
                _ = hang_up.recv() => {
                    let daemon = self.clone();
                    // `reload` has logged the error.
                    spawn_local(async move { daemon.reload().await });
                }
                _ = terminate.recv() => self.stop(wire::PATIENCE),
                _ = interrupt.recv() => self.stop(wire::PATIENCE),
                Ok(()) = &mut let_go, if !let_go.is_terminated() => self.stop(wire::PATIENCE),
                _ = beat.tick() => {
                    self.manager.tell("WATCHDOG=1");
                    // The processes of sessions end with this process, where they stand.
                    self.stay().inspect_err(|error| self.log.note("home_gone", json!({ "why": error.to_string() })))?;
                    self.end_overdue();
                    self.watch();
                }
                () = self.ended.notified() => return Ok(()),
            }
        }
    }

    /// Whether the home still lies where it lay: the home at its path now may be another one, with a daemon
    /// of its own.
    fn is_at_home(&self) -> bool {
        self.lock.is_in(&self.home.daemon())
    }

    /// Fails when the home at this path is another one, so that nothing is done in it.
    fn stay(&self) -> Result<()> {
        if self.is_at_home() {
            return Ok(());
        }
        let home = self.home.root.display();
        let error = format!(
            "the home was moved or removed while its daemon ran: `{home}` is not what it was; start it again where it is now"
        );
        // With this code, a service manager begins no daemon in the home that lies there now.
        Err(Failure { error, code: exit::WRONG }.into())
    }

    /// When the home at this path is another one, allows only two requests: how this daemon is, and that it
    /// ends.
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
                "the daemon has {CONNECTIONS_MAX} connections already; try again when some have closed"
            );
            self.refused(json!({ "why": why }));
            spawn_local(async move {
                wire::say(&mut { stream }, &DaemonAnswer::Refused { why, code: None }).await
            });
            return;
        }
        self.connections.set(self.connections.get() + 1);
        let daemon = self.clone();
        spawn_local(async move {
            // A client that went away has no use for an answer.
            daemon.answer(stream).await.ok();
            daemon.connections.set(daemon.connections.get() - 1);
        });
    }

    /// Notes a refused connection: the first one, and once a minute how many others there were, so that
    /// refusals cannot fill the log.
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
                Ok(Ask::Status) => Ok(DaemonAnswer::Status(self.status().into())),
                Ok(Ask::Reload) => self.reload().await,
                Ok(Ask::Open(wanted)) => self.open(wanted).await,
                Ok(Ask::Close { session }) => self.close(session).await,
                Ok(Ask::Wake { session }) => Ok(self.wake(session)),
                Ok(Ask::Anew) => Ok(self.begin_channels_anew()),
                Ok(Ask::LetIn) => {
                    self.owes.notify_waiters();
                    Ok(DaemonAnswer::Anew)
                }
                Ok(Ask::Run { schedule }) => self.run_schedule(&schedule).await,
                Ok(Ask::Link) => self.link(),
                Ok(Ask::Revoke { login }) => self.revoke(login),
                Ok(Ask::Stop { patience_seconds }) => {
                    self.stop(Duration::from_secs(patience_seconds));
                    // To the end of this process, which ends the connection.
                    loop {
                        wire::say(&mut stream, &DaemonAnswer::Stopping { working: self.working() }).await?;
                        self.changed.notified().await;
                    }
                }
                Err(error) => Err(error),
            };
            let is_refused = told.is_err();
            let told = told.unwrap_or_else(|error| {
                let code = Some(exit::of(&error)).filter(|code| *code != exit::FAILED);
                DaemonAnswer::Refused { why: format!("{error:#}"), code }
            });
            wire::say(&mut stream, &told).await?;
            if is_refused {
                return Ok(());
            }
        }
    }

    fn status(self: &Rc<Self>) -> DaemonStatus {
        DaemonStatus {
            pid: std::process::id(),
            since: self.since.to_string(),
            version: env!("CARGO_PKG_VERSION").into(),
            stopping: self.is_stopping.get(),
            sessions: self.sessions.borrow().values().map(|held| held.shown.clone()).collect(),
            resting: self.resting_states(),
            channels: self.channels.borrow().iter().map(|kept| kept.state()).collect(),
            page: self.page.borrow().as_ref().map(|page| page.state()),
            memory: self.memory_state(),
            telemetry: self.sending.borrow().state(),
        }
    }

    fn resting_states(&self) -> Vec<wire::RestingState> {
        let resting = self.resting.borrow();
        let state = |(session, it): (&SessionId, &Resting)| wire::RestingState {
            session: *session,
            questions: it.open,
        };
        resting.iter().map(state).filter(|it| it.questions > 0).collect()
    }

    fn working(&self) -> usize {
        self.sessions.borrow().values().filter(|held| held.shown.state.working).count()
    }

    /// Reads the configuration and the rules: with a mistake in them nothing changes. Sessions at rest that
    /// no client looks at end, and begin with the new configuration when they are wanted again.
    async fn reload(self: &Rc<Self>) -> Result<DaemonAnswer> {
        let _one = self.reloading.acquire().await;
        self.stay()?;
        let looked = self.look_again().await;
        let (config, named) = looked.map_err(|error| {
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
        self.reloads.set(self.reloads.get() + 1);
        let mut older = 0;
        for held in self.sessions.borrow_mut().values_mut() {
            // The client that opened it a moment ago is on its way.
            if held.shown.state.is_at_rest() && held.opened.elapsed() > SILENCE_MAX {
                held.drain();
            } else {
                held.outlives_a_reload(&named);
                older += 1;
            }
        }
        self.named.replace(named);
        Ok(DaemonAnswer::Reloaded { older })
    }

    /// The configuration and the names of keys that are to hold from now on, if all of it can be obeyed.
    async fn look_again(self: &Rc<Self>) -> Result<(Config, Named)> {
        let config = look(&self.home)?;
        // Only a reload checks this: at the start, one bad agent must not keep the daemon from all other
        // work.
        config.check_agents(&self.home)?;
        let named = self.named_keys().await?;
        // The page comes last, because the steps before only read.
        if !self.is_stopping.get() {
            self.keep_page(&config.page)?;
        }
        Ok((config, named))
    }

    /// The names of the keys that commands may use, from a process that reads the keys.
    async fn named_keys(&self) -> Result<Named> {
        let mut command = self.command();
        command.args(["secrets", "names"]);
        let ran = timeout(ENDING_MAX, spawn_blocking(move || command.output()));
        let ran = ran.await.context("the keys take too long to read")???;
        let said = String::from_utf8_lossy(&ran.stderr);
        if !ran.status.success() {
            let why = said.split_once("error: ").map_or("the keys cannot be read", |(_, why)| why.trim());
            let code = ran.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAILED);
            return Err(Failure { error: why.into(), code }.into());
        }
        serde_json::from_slice(&ran.stdout).context("the keys cannot be read")
    }

    /// Ends the daemon: no session begins, the daemon waits for running turns, and the sessions that are left
    /// then end where they stand. A second call can make the end come sooner, and never later.
    fn stop(self: &Rc<Self>, patience: Duration) {
        // A time that the clock cannot reach counts as no limit.
        let until = Instant::now().checked_add(patience);
        let sooner = [self.waits_until.get(), until].into_iter().flatten().min();
        self.waits_until.set(sooner);
        if self.is_stopping.replace(true) {
            self.hurried.notify_one();
            return;
        }
        self.manager.tell("STOPPING=1");
        self.log.note("stopping", json!({ "working": self.working() }));
        self.sessions.borrow_mut().values_mut().for_each(SessionProcess::drain);
        self.changed.notify_waiters();
        let daemon = self.clone();
        spawn_local(async move {
            // Working sessions are cut first; sessions that are about to end have some more time.
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
}

/// The process with this number, which is also the number of its group.
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
