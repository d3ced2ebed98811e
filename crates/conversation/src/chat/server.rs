//! A session's process beneath the daemon: `bailey chat` without a terminal. It serves the clients that
//! connect to the socket with the session's name, any number at once and one after the other. It works on
//! while no client is connected.

mod clients;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod kept;
mod rights;

use super::{Args, NextSession, place};
use crate::{
    HostError, Opening,
    compose::{self, Keys, Named, OpenSession, Session},
    config::Config,
    exit,
    home::Home,
    print::Printer,
    wire::{self, DRAIN, KEYS, LOOK, RULES, Report, State},
};
use anyhow::Result;
use bailey_kernel::{Kernel, Refused};
use bailey_protocol::{ApprovalId, CallId, Event, Happening, Inbound, Op, SessionId};
use clients::{ClientInput, Clients};
use std::{
    collections::BTreeSet,
    io::{self, Write as _},
    os::fd::AsFd as _,
    process::ExitCode,
    time::Duration,
};
use tokio::{
    io::BufReader,
    net::{UnixListener, unix::pipe},
    sync::{Notify, mpsc},
    time::{Instant, sleep_until},
};

/// Ops that may wait for the host.
const OPS_WAITING_MAX: usize = 64;
/// How long a session at rest stays open while no client is connected.
const IDLE: Duration = Duration::from_secs(60);

/// Serves a session until it rests and is not needed, or until the daemon ends it.
pub async fn run(home: &Home, chat: Args, printer: &Printer) -> Result<ExitCode> {
    let life = pipe::Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?;
    let NextSession { home, root, workspace, standpoint, opening, confined } =
        place(home, &chat, true, printer).await?;
    let home = &home;
    let (Opening::New(id) | Opening::Resume(id) | Opening::Visit(id)) = opening;
    let mut config = Config::load(home)?;
    printer.notes(config.narrow(home, &root)?);
    config.spend(chat.options.tokens);
    let keys = Keys::load(home, &config, printer)?;
    let revealed = match opening {
        Opening::New(_) => Vec::new(),
        Opening::Resume(_) | Opening::Visit(_) => compose::journal(home, &keys).await?.0.revealed(id).await?,
    };
    // Done before this process binds itself.
    let listener = wire::listen(&home.daemon(), &id.to_string())?;
    listener.set_nonblocking(true)?;
    let session = Session {
        options: Some(&chat.options),
        unattended: false,
        is_patient: chat.unattended || chat.schedule.is_some(),
        revealed,
        standpoint,
        any_model: true,
        confined,
        ..Session::new(home, &config, keys, workspace.clone(), opening)
    };
    let OpenSession { mut host, kernel, events, remarks, unenforced, witness, reveals, door, .. } =
        compose::open(session).await?;
    remarks.iter().for_each(|remark| printer.warn(remark));
    crate::run::tell_unenforced(printer, &unenforced);
    crate::run::reveal(&kernel, &host, reveals).await?;
    crate::run::pin(&mut host, &chat.options).await?;
    let is_cut_off = host.is_cut_off().await?;
    let working = State { working: is_cut_off, ..State::default() };
    report(&Report::Ready { session: id, workspace, state: working })?;

    let (ops, mut inbox) = mpsc::channel(OPS_WAITING_MAX);
    let mut desk = Desk::new(printer, UnixListener::from_std(listener)?, ops, is_cut_off);
    let look = host.look();
    let work = async {
        host.recall().await?;
        host.show_questions().await?;
        if is_cut_off {
            // The clients were told the error; the session goes on.
            if let Err(error @ HostError::Journal(_)) = host.go_on(&mut inbox).await {
                return Err(error);
            }
        }
        match host.serve(&mut inbox).await {
            Err(error @ (HostError::Journal(_) | HostError::Refused(Refused::Journal(_)))) => Err(error),
            // The clients were told why the last turn failed. That turn has ended, and must not begin again.
            Ok(_) | Err(_) => Ok(()),
        }
    };
    let keep_keys = |named: &Named| door.iter().for_each(|door| door.keep_keys(&named.salt, &named.names));
    let served = desk.serve(work, events, BufReader::new(life), (&kernel, id, &look), keep_keys).await;
    host.quiet().await;
    if let Some(waiting) = host.waits().await? {
        report(&Report::Waits { open: waiting.open, until: waiting.until })?;
    }
    compose::sign(kernel.journal(), witness.as_ref(), Some((&kernel, &host.owner())), printer).await;
    served?;
    Ok(ExitCode::from(exit::DONE))
}

/// Sends a report to the daemon.
fn report(report: &Report) -> Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    Ok(io::stdout().lock().write_all(&line).and_then(|()| io::stdout().flush())?)
}

/// The part between a session and its front ends.
struct Desk<'a> {
    printer: &'a Printer,
    listener: UnixListener,
    /// `None` once the session is to end.
    ops: Option<mpsc::Sender<Op>>,
    clients: Clients,
    is_working: bool,
    /// The owner's command that runs while no turn does.
    own: Option<CallId>,
    /// Whether a message came that is to begin a turn.
    is_asked: bool,
    is_draining: bool,
    questions: BTreeSet<ApprovalId>,
    /// The state that the daemon was told last.
    reported: State,
    /// Since when the session has done nothing and had no client, and how long that may last.
    idle: Instant,
    idle_max: Duration,
}

impl<'a> Desk<'a> {
    fn new(printer: &'a Printer, listener: UnixListener, ops: mpsc::Sender<Op>, is_working: bool) -> Self {
        Self {
            printer,
            listener,
            ops: Some(ops),
            clients: Clients::new(),
            is_working,
            own: None,
            is_asked: false,
            is_draining: false,
            questions: BTreeSet::new(),
            reported: State { working: is_working, ..State::default() },
            idle: Instant::now(),
            #[cfg(not(feature = "controls"))]
            idle_max: IDLE,
            #[cfg(feature = "controls")]
            idle_max: crate::controls::idle().unwrap_or(IDLE),
        }
    }

    /// Drives `work` to its end, and serves all clients meanwhile.
    async fn serve(
        &mut self,
        work: impl Future<Output = Result<(), HostError>>,
        mut events: mpsc::Receiver<Event>,
        mut life: BufReader<pipe::Receiver>,
        (kernel, session, look): (&Kernel, SessionId, &Notify),
        keep_keys: impl Fn(&Named),
    ) -> Result<()> {
        tokio::pin!(work);
        let (tell, mut told) = mpsc::channel(1);
        tokio::spawn(async move {
            while let Ok(Some(line)) = wire::line(&mut life, wire::LINE_BYTES_MAX).await {
                tell.send(line).await.ok();
            }
            // The daemon has ended. The warden ends everything inside the walls, and the journal records how
            // far the session came.
            crate::front::quit(exit::FAILED);
        });
        loop {
            self.report(kernel.process_count(session))?;
            if self.is_draining && !self.is_working {
                self.ops = None;
            }
            tokio::select! {
                Some(event) = events.recv() => self.take(&event),
                Some(line) = told.recv() => {
                    if line == DRAIN.trim_ascii_end() {
                        self.is_draining = true;
                    } else if line == LOOK.trim_ascii_end() {
                        look.notify_one();
                    } else if line == RULES.trim_ascii_end() {
                        if let Err(error) = kernel.reread_rules().await {
                            self.printer.warn(&format!("the rules stay as they were: {error}"));
                        }
                    } else if let Some(named) = line.strip_prefix(KEYS) {
                        // A message that cannot be read counts as one that names no keys.
                        keep_keys(&serde_json::from_slice(named).unwrap_or_default());
                    }
                }
                came = self.clients.next() => self.came(came),
                accepted = self.listener.accept() => {
                    // A client that is not accepted connects again.
                    if let Ok((stream, _)) = accepted && wire::is_owner(&stream) {
                        self.idle = Instant::now();
                        self.clients.add(stream);
                    }
                }
                ended = &mut work => {
                    while let Ok(event) = events.try_recv() {
                        self.take(&event);
                    }
                    self.clients.finish().await;
                    return Ok(ended?);
                }
                () = sleep_until(self.idle + self.idle_max) => {
                    self.idle = Instant::now();
                    // Draining cannot be taken back: a client that connects while a turn runs must find a
                    // session that goes on.
                    let is_unneeded = !self.is_working && !self.is_asked && kernel.process_count(session) == 0;
                    self.is_draining |= is_unneeded && self.clients.is_empty();
                }
            }
        }
    }

    /// Sends an event to all clients.
    fn take(&mut self, event: &Event) {
        match &event.happening {
            Happening::Accepted { .. } => (self.is_working, self.is_asked) = (true, false),
            Happening::GoingOn => self.is_working = true,
            // A command of the owner's is work, too.
            Happening::Call { call, own: true, .. } if !self.is_working => {
                (self.is_working, self.own) = (true, Some(call.clone()));
            }
            Happening::Result { call, .. } if self.own.as_ref() == Some(call) => {
                (self.is_working, self.own, self.idle) = (false, None, Instant::now());
            }
            Happening::Repeated { .. } => self.is_asked = false,
            Happening::Failed { op, .. } if op == "say" => self.is_asked = false,
            Happening::End { error, .. } => {
                (self.is_working, self.idle) = (false, Instant::now());
                // The message that waits may be the one that failed; then it begins no turn any more.
                self.is_asked &= error.is_none();
            }
            Happening::Ask { id, .. } => drop(self.questions.insert(*id)),
            Happening::Answered { id, .. } => drop(self.questions.remove(id)),
            _ => {}
        }
        self.clients.tell(self.printer, event);
    }

    fn came(&mut self, (client, came): (u64, ClientInput)) {
        self.idle = Instant::now();
        let op = match came {
            ClientInput::Op(op) => op,
            ClientInput::Refused(op, why) => return self.clients.fail(self.printer, client, op, why),
            ClientInput::Gone => return self.clients.remove(client),
        };
        let name = op.name();
        let said = match &op {
            Op::Say(inbound) => Some(inbound.clone()),
            _ => None,
        };
        if self.is_draining
            && matches!(
                op,
                Op::Say(_) | Op::Apply { .. } | Op::Undo | Op::Discard { .. } | Op::Run { .. } | Op::Compact
            )
        {
            let error = "the daemon is ending: say it again when it is back".to_owned();
            return self.clients.fail(self.printer, client, name, error);
        }
        // This never waits, because the session may be waiting for this loop.
        if self.ops.as_ref().is_none_or(|ops| ops.try_send(op).is_err()) {
            let error = "the session is too busy; try again".to_owned();
            return self.clients.fail(self.printer, client, name, error);
        }
        if let Some(Inbound { text, by, .. }) = said {
            if !self.is_working && !self.is_asked {
                self.clients.begin_turn();
            }
            self.is_asked = true;
            self.clients.said(self.printer, client, text, by.as_ref());
        }
    }

    fn report(&mut self, processes: usize) -> Result<()> {
        let (working, questions) = (self.is_working, self.questions.len());
        let state = State { working, questions, clients: self.clients.len(), processes };
        if state != self.reported {
            self.reported = state;
            report(&Report::State(state))?;
        }
        Ok(())
    }
}
