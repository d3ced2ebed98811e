//! The processes of sessions: the daemon begins them, follows them to their ends, begins crashed ones again,
//! and ends those that hang.

use super::{
    Daemon, ENDING_MAX, ended, process, reader,
    record::{self, Record},
};
use anyhow::{Context as _, Result, bail};
use bailey_home::program;
use bailey_journal::{Clock as _, SystemClock};
use bailey_protocol::{SessionId, Timestamp};
use bailey_session::{
    compose::Named,
    exit::{self, Failure},
    wire::{self, DRAIN, DaemonAnswer, KEYS, LOOK, RULES, Report, Running, State, Wanted},
};
use bailey_terminal::short;
use jiff::SignedDuration;
use rustix::process::{Signal, kill_process_group};
use serde_json::json;
use std::{
    cell::RefCell,
    fs,
    future::pending,
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    process::{Child, ChildStdin, Stdio},
    rc::Rc,
    time::{Duration, Instant},
};
use tokio::{
    io::BufReader,
    net::unix::pipe,
    task::spawn_local,
    time::{sleep_until, timeout},
};

/// How long a session may take to open: it may have to begin a journal, or to wait for one.
const OPENING_MAX: Duration = Duration::from_secs(60);
/// How long a session may take to report that its turn is over.
const RESTING_MAX: Duration = Duration::from_secs(1);
/// Limits for the lines that a session's process says: how many the client that opens the session is told,
/// how many the log takes, and how many bytes of each line. All lines for the client are one line of an
/// answer (`wire::LINE_BYTES_MAX`).
const REMARKS_MAX: usize = 32;
const SAID_MAX: usize = 1000;
const SAID_BYTES_MAX: usize = 4 << 10;
/// How often a session whose process was killed is begun again within a time: a session that brings about its
/// own end stays as it is.
const CRASHES_MAX: usize = 3;
/// How long a session at rest is left alone after it could not be begun: at first, twice as long each time
/// after that, and at most.
const AGAIN_MIN: SignedDuration = SignedDuration::from_secs(5);
const AGAIN_MAX: SignedDuration = SignedDuration::from_hours(1);
/// The word of `bailey chat` for an unattended session.
const UNATTENDED: &str = "--unattended";
const CRASHES_WITHIN: Duration = Duration::from_secs(300);

/// How the daemon ends sessions that do not end by themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Ends those with a turn; they hear that the daemon is gone.
    Working,
    /// Ends all, in the same way.
    All,
    /// Kills all that do not hear it.
    Killed,
}

/// A session without a process, whose questions wait for answers.
pub(super) struct Resting {
    pub(super) record: Record,
    /// How many questions are open.
    pub(super) open: usize,
    /// When it is begun again at the latest.
    pub(super) until: Timestamp,
    /// How long it is left alone after it could not be begun.
    wait: SignedDuration,
}

impl Resting {
    /// Leaves the session alone for a while, for longer each time.
    fn put_off(&mut self) {
        self.until = SystemClock.now().checked_add(self.wait).unwrap_or(Timestamp::MAX);
        self.wait = (self.wait * 2).min(AGAIN_MAX);
    }
}

/// A session's process.
pub(super) struct SessionProcess {
    pub(super) shown: Running,
    /// The pipe that it hears; `None` once it has to end where it stands.
    pub(super) life: Option<ChildStdin>,
    /// Whether it was asked to end.
    pub(super) is_draining: bool,
    /// Whether its turn was cut off to make room, and goes on later.
    pub(super) is_shed: bool,
    /// Whether it began with another configuration than the one that was read since.
    pub(super) is_older: bool,
    pub(super) opened: Instant,
    /// When its turn began, if one runs.
    pub(super) began: Option<Instant>,
    /// Since when the process is about to end.
    pub(super) ending: Option<Instant>,
    /// Since when questions are open, if any are.
    pub(super) asks: Option<Instant>,
    pub(super) record: Record,
    /// Whether a question of its was answered elsewhere, which it may find out only when it is begun again.
    pub(super) is_woken: bool,
}

impl SessionProcess {
    /// Asks the session to come to rest, and then to end.
    pub(super) fn drain(&mut self) {
        self.is_draining = true;
        self.is(self.shown.state);
        self.say(DRAIN);
    }

    /// Notes the session's state.
    pub(super) fn is(&mut self, state: State) {
        self.began = state.working.then(|| self.began.unwrap_or_else(Instant::now));
        self.asks = (state.questions > 0).then(|| self.asks.unwrap_or_else(Instant::now));
        self.shown.state = state;
        self.ending = self.is_ending().then(|| self.ending.unwrap_or_else(Instant::now));
    }

    /// Whether it should have ended that long ago and has not, such as one that hangs.
    pub(super) fn is_overdue(&self, most: Duration) -> bool {
        self.is_ending() && self.ending.is_some_and(|since| since.elapsed() > most)
    }

    /// Lets the session go on with the configuration that it began with, by the present rules, and with those
    /// of its keys that are still the owner's.
    pub(super) fn outlives_a_reload(&mut self, named: &Named) {
        self.say(RULES);
        self.say(&[KEYS, json!(named).to_string().as_bytes(), b"\n"].concat());
        self.is_older = true;
    }

    /// Cuts its line.
    pub(super) fn cut(&mut self) {
        self.life = None;
        self.is(self.shown.state);
    }

    pub(super) fn kill(&self) {
        process(self.shown.pid).map(|group| kill_process_group(group, Signal::KILL));
    }

    /// Says something to the process. A process that has ended already needs to hear nothing.
    pub(super) fn say(&mut self, line: &[u8]) {
        self.life.iter_mut().for_each(|life| drop(life.write_all(line)));
    }
}

impl Daemon {
    /// Ends sessions where they stand.
    pub(super) fn cut(&self, cut: Cut) {
        let mut sessions = self.sessions.borrow_mut();
        for held in sessions.values_mut().filter(|held| cut != Cut::Working || held.shown.state.working) {
            self.log.note("cut_off", json!({ "session": held.shown.session }));
            held.cut();
            if cut == Cut::Killed {
                held.kill();
            }
        }
    }

    /// Ends the sessions that were to end and do not.
    pub(super) fn end_overdue(&self) {
        for held in self.sessions.borrow().values() {
            let State { clients, processes, .. } = held.shown.state;
            // An act that a client asked for, such as an apply, may take its time, and so may the ends of
            // processes.
            let most = if clients + processes == 0 { ENDING_MAX } else { OPENING_MAX };
            if held.is_overdue(most) {
                self.log.note("hung", json!({ "session": held.shown.session }));
                held.kill();
            }
        }
    }

    pub(super) async fn emptied(&self) {
        loop {
            let changed = self.changed.notified();
            if self.sessions.borrow().is_empty() && self.beginning.get() == 0 {
                return;
            }
            changed.await;
        }
    }

    /// Whether all sessions have ended before the daemon stops waiting for turns.
    pub(super) async fn emptied_in_time(&self) -> bool {
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

    pub(super) async fn begin_again(self: &Rc<Self>, record: Record) {
        let session = record.session;
        self.returning.borrow_mut().insert(session);
        // The session was accepted before: it waits, and is not refused.
        self.until_room().await;
        match self.open(record.wanted()).await {
            Ok(_) => self.log.note("begun_again", json!({ "session": session })),
            Err(error) => {
                // A session that is there may be opened another time, by its owner or by the next daemon.
                if !self.home.of_session(session, "").exists() {
                    record::forget(&self.home, session);
                    self.resting.borrow_mut().remove(&session);
                } else if let Some(resting) = self.resting.borrow_mut().get_mut(&session) {
                    resting.put_off();
                }
                let why = format!("{error:#}");
                self.log.note("not_begun_again", json!({ "session": session, "why": why }));
            }
        }
        self.returning.borrow_mut().remove(&session);
    }

    /// Has a session go on whose question was answered, or asked again. A process that runs looks itself.
    pub(super) fn wake(self: &Rc<Self>, session: SessionId) -> DaemonAnswer {
        let resting = self.resting.borrow().get(&session).map(|resting| resting.record.clone());
        let goes_on = resting.is_some() || self.is_coming(session);
        if let Some(record) = resting.filter(|_| !self.is_coming(session)) {
            spawn_local(self.clone().begin_again_of(record));
        }
        let runs = self.sessions.borrow_mut().get_mut(&session).map(|held| {
            held.is_woken = true;
            held.say(LOOK);
        });
        DaemonAnswer::Woken { goes_on: goes_on || runs.is_some() }
    }

    /// Begins the sessions again whose questions have run out.
    pub(super) fn wake_late(self: &Rc<Self>) {
        let now = SystemClock.now();
        let resting = self.resting.borrow();
        let late = resting.values().filter(|it| it.until <= now && !self.is_coming(it.record.session));
        for record in late.map(|it| it.record.clone()) {
            spawn_local(self.clone().begin_again_of(record));
        }
    }

    async fn begin_again_of(self: Rc<Self>, record: Record) {
        self.begin_again(record).await;
    }

    /// Begins a session's process, or finds it.
    pub(super) async fn open(self: &Rc<Self>, wanted: Wanted) -> Result<DaemonAnswer> {
        if self.is_stopping.get() {
            bail!("the daemon is ending; wait for its end, then run `bailey start`");
        }
        let Some(session) = wanted.session else { return self.begin(wanted).await };
        let since = Instant::now();
        loop {
            let changed = self.changed.notified();
            // A session that is about to end is waited for.
            let is_draining = self.sessions.borrow().get(&session).map(|held| held.is_draining);
            match is_draining {
                Some(false) => return Ok(DaemonAnswer::Opened { session, remarks: Vec::new() }),
                None if wanted.comes_back && self.given_up.borrow().contains(&session) => bail!(
                    "the process of session {0} was killed several times, so the daemon does not start it \
                     again; its work is kept, and `bailey chat --resume {0}` continues it",
                    short(&session)
                ),
                None if self.opening.borrow_mut().insert(session) => break,
                Some(true) | None if since.elapsed() > OPENING_MAX => bail!(
                    "session {session} is ending or being opened, which takes longer than {} s; try again",
                    OPENING_MAX.as_secs()
                ),
                Some(true) | None => self.end_overdue(),
            }
            timeout(RESTING_MAX, changed).await.ok();
        }
        if !wanted.comes_back {
            self.given_up.borrow_mut().remove(&session);
        }
        let begun = self.begin(wanted).await;
        self.opening.borrow_mut().remove(&session);
        self.changed.notify_waiters();
        begun
    }

    /// Whether a session is about to run.
    pub(super) fn is_coming(&self, session: SessionId) -> bool {
        self.opening.borrow().contains(&session) || self.returning.borrow().contains(&session)
    }

    /// Ends the process of a session that is at rest, and waits for its end.
    pub(super) async fn close(&self, session: SessionId) -> Result<DaemonAnswer> {
        let since = Instant::now();
        loop {
            let changed = self.changed.notified();
            match self.sessions.borrow_mut().get_mut(&session) {
                None => return Ok(DaemonAnswer::Closed),
                // The people at a session hear before the daemon does that a turn is over.
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

    pub(super) async fn begin(self: &Rc<Self>, wanted: Wanted) -> Result<DaemonAnswer> {
        self.room()?;
        self.beginning.set(self.beginning.get() + 1);
        let begun = self.start(wanted).await;
        self.beginning.set(self.beginning.get() - 1);
        self.changed.notify_waiters();
        begun
    }

    pub(super) async fn start(self: &Rc<Self>, wanted: Wanted) -> Result<DaemonAnswer> {
        let Wanted { directory, words, mut again, session: wanted, mut tells_owner, .. } = wanted;
        // A person who comes to an unattended session may leave it again.
        if let Some(before) = wanted.and_then(|it| self.resting.borrow().get(&it).map(|it| it.record.clone()))
        {
            tells_owner |= before.tells_owner;
            let new = before.again.into_iter().filter(|word| word == UNATTENDED && !again.contains(word));
            again.extend(new.collect::<Vec<_>>());
        }
        let reloads = self.reloads.get();
        let mut child = program::again()
            .arg("--home")
            .arg(&self.home.root)
            .args(["--desk", "chat"])
            .args(words)
            .current_dir(&directory)
            // The daemon passes on the keys that are typed to end it, so this process has a group of its own.
            // The service manager is the daemon's alone.
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
            // The process handles data from outside, and is not believed when it calls itself another
            // session.
            Ok(Ok(Some(Report::Ready { session, workspace, state }))) if self.may_be(session, wanted) => {
                Some((session, workspace, state))
            }
            _ => None,
        };
        let Some((session, workspace, state)) = opened else {
            drop(life);
            if let Some(group) = process(child.id()) {
                kill_process_group(group, Signal::KILL).ok();
            }
            let code =
                ended(child).await.and_then(|status| status.code()).and_then(|code| u8::try_from(code).ok());
            timeout(ENDING_MAX, said).await.ok();
            // The process may have listened already, at a name that it did not tell. It is bound, so that it
            // cannot remove the socket.
            if self.beginning.get() == 1 {
                self.sweep();
            }
            let mut remarks = remarks.take();
            // The error is said last and told first, because there may be more lines than are told.
            let wrong = remarks.iter().position(|remark| remark.starts_with("error: "));
            remarks.rotate_left(wrong.unwrap_or(0));
            let why = remarks.join("\n");
            let why = why.strip_prefix("error: ").unwrap_or(&why).to_owned();
            let error = if why.is_empty() {
                "the session's process ended before the session was open".to_owned()
            } else {
                why
            };
            return Err(Failure { error, code: code.unwrap_or(exit::FAILED) }.into());
        };
        let since = SystemClock.now().to_string();
        let pid = child.id();
        let shown = Running { session, pid, workspace, since, state: State::default() };
        let record = Record { session, directory, again, tells_owner };
        if let Err(error) = record.keep(&self.home) {
            // Without a record the session works, and is not begun again by itself.
            self.log.note("not_kept", json!({ "session": session, "why": format!("{error:#}") }));
        }
        self.log.note("opened", json!({ "session": session, "pid": pid, "workspace": shown.workspace }));
        let (opened, began) = (Instant::now(), None);
        let mut held = SessionProcess {
            shown,
            life: Some(life),
            is_draining: false,
            is_shed: false,
            is_older: false,
            opened,
            began,
            ending: None,
            asks: None,
            record: record.clone(),
            is_woken: false,
        };
        held.is(state);
        // The session may have read the configuration before it was read again.
        if reloads != self.reloads.get() {
            held.outlives_a_reload(&self.named.borrow());
        }
        if self.is_stopping.get() {
            held.drain();
        }
        self.sessions.borrow_mut().insert(session, held);
        self.resting.borrow_mut().remove(&session);
        spawn_local(self.clone().follow(record, out, child));
        Ok(DaemonAnswer::Opened { session, remarks: remarks.take() })
    }

    /// Removes the sockets of sessions that do not run any more, while no session is on its way.
    pub(super) fn sweep(&self) {
        let sessions = self.sessions.borrow();
        for entry in fs::read_dir(self.home.daemon()).into_iter().flatten().flatten() {
            let session = entry.file_name().to_str().and_then(SessionId::parse);
            if session.is_some_and(|session| !sessions.contains_key(&session)) {
                fs::remove_file(entry.path()).ok();
            }
        }
    }

    pub(super) fn may_be(&self, session: SessionId, wanted: Option<SessionId>) -> bool {
        wanted.map_or_else(|| !self.sessions.borrow().contains_key(&session), |wanted| wanted == session)
    }

    /// Listens to the text that a session's process says to people. The client that opens the session is told
    /// the lines that come before the session is open; the log takes the lines, too.
    pub(super) async fn listen(
        self: Rc<Self>,
        mut err: BufReader<pipe::Receiver>,
        remarks: Rc<RefCell<Vec<String>>>,
    ) {
        let mut said = 0;
        loop {
            let line = match wire::line(&mut err, wire::LINE_BYTES_MAX).await {
                Ok(Some(line)) => line,
                // The rest of a line that is too long is read as the next line.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => continue,
                Ok(None) | Err(_) => return,
            };
            said += 1;
            let text = wire::cut(&String::from_utf8_lossy(&line), SAID_BYTES_MAX);
            // The process handles data from outside, and the log is the daemon's.
            if said <= SAID_MAX {
                self.log.note("said", json!({ "text": text }));
            }
            if said <= REMARKS_MAX {
                remarks.borrow_mut().push(text);
            }
        }
    }

    /// Follows a session's process to its end.
    pub(super) async fn follow(
        self: Rc<Self>,
        record: Record,
        mut out: BufReader<pipe::Receiver>,
        child: Child,
    ) {
        let session = record.session;
        let mut waits = None;
        while let Ok(Some(report)) = wire::hear::<Report>(&mut out).await {
            match (report, self.sessions.borrow_mut().get_mut(&session)) {
                (Report::State(state), Some(held)) => {
                    // A turn has ended.
                    self.turns.set(self.turns.get() + u64::from(held.shown.state.working && !state.working));
                    held.is(state);
                    // It has seen the answers.
                    held.is_woken &= !state.working;
                    if state.questions == 0 {
                        self.is_told_of.borrow_mut().retain(|(_, of), _| *of != session);
                    }
                    // The next client is to meet the owner's present settings.
                    if held.is_older && state.is_at_rest() && !held.is_draining {
                        held.drain();
                    }
                }
                (Report::Waits { open, until }, _) => waits = Some((open, until)),
                _ => {}
            }
            self.changed.notify_waiters();
            self.owes.notify_waiters();
        }
        let status = ended(child).await;
        let held = self.sessions.borrow_mut().remove(&session);
        fs::remove_file(self.home.daemon().join(session.to_string())).ok();
        let how = status.map_or_else(|| "unknown".to_owned(), |status| status.to_string());
        self.log.note("closed", json!({ "session": session, "how": how }));
        self.changed.notify_waiters();
        if status.is_some_and(|status| status.success()) {
            self.crashes.borrow_mut().remove(&session);
            return match waits {
                // The next daemon begins it again.
                Some(_) if self.is_stopping.get() => {}
                _ if !self.is_stopping.get() && held.is_some_and(|held| held.is_woken) => {
                    // It stays known, in case it cannot be begun now.
                    let (open, until) = waits.unwrap_or((0, SystemClock.now()));
                    self.rest(record.clone(), open, until);
                    self.begin_again(record).await;
                }
                None => record::forget(&self.home, session),
                Some((open, until)) => self.rest(record, open, until),
            };
        }
        // A session that the daemon ended did not crash. A session that was to end, and had nothing to do,
        // has ended, if late.
        let is_shed = held.as_ref().is_some_and(|held| held.is_shed);
        let is_wanted = is_shed || held.as_ref().is_none_or(|held| !held.is_ending());
        match !self.is_stopping.get() && is_wanted {
            true if is_shed || self.may_begin_again(session) => self.begin_again(record).await,
            true => drop(self.given_up.borrow_mut().insert(session)),
            // It hung while it was about to rest.
            false if !self.is_stopping.get() => {
                let open = held.map_or(0, |held| held.shown.state.questions);
                if open > 0 {
                    self.rest(record, open, SystemClock.now());
                }
            }
            false => {}
        }
    }

    /// Notes that a session has no process while its questions wait for answers.
    fn rest(&self, record: Record, open: usize, until: Timestamp) {
        let session = record.session;
        self.log.note("rests", json!({ "session": session, "questions": open }));
        self.resting.borrow_mut().insert(session, Resting { record, open, until, wait: AGAIN_MIN });
        self.owes.notify_waiters();
    }

    /// Notes the unwanted end of a session's process. Returns whether the process may begin again.
    pub(super) fn may_begin_again(&self, session: SessionId) -> bool {
        self.crashes.borrow_mut().entry(session).or_default().push(Instant::now());
        !self.crashes_often(session)
    }

    /// Whether a session's process has ended so often that a client has to ask for it once more.
    pub(super) fn crashes_often(&self, session: SessionId) -> bool {
        self.crashes_lately();
        self.crashes.borrow().get(&session).is_some_and(|of_it| of_it.len() > CRASHES_MAX)
    }

    /// How many crashes there were within the time that counts; older ones are forgotten.
    pub(super) fn crashes_lately(&self) -> usize {
        let mut crashes = self.crashes.borrow_mut();
        crashes.values_mut().for_each(|of_it| of_it.retain(|at| at.elapsed() < CRASHES_WITHIN));
        crashes.retain(|_, of_it| !of_it.is_empty());
        crashes.values().map(Vec::len).sum()
    }
}
