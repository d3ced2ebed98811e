//! One session, from its opening to its end.

use crate::{
    Changes,
    aside::{self, OwnCaller},
    pins::Pins,
};
use bailey_agent::{
    Brain, CallsLeft, Ceiling, Guides, Hands, ModelRole, Models, News, Own, Patience, PendingCalls, Retry,
    TurnEnd, Warned,
};
use bailey_kernel::{
    Acted, Answerer, Confined, Connection, Context, Holder, Instruction, Kernel, NewSession, OWNER, Person,
    Printed, Provider, Refused, Registrar, Restored, Scope, Segment, SessionInfo, SessionLock, Settlement,
    Standpoint, UserMessage,
};
use bailey_protocol::{
    Action, ApprovalId, Digest, Event, Happening, Inbound, Op, Seq, SessionId, SessionLine, Speaker,
    Timestamp, TurnId, WsPath,
};
use bailey_tools::Tools;
use std::{
    collections::{HashSet, VecDeque},
    future::pending,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    sync::{Notify, mpsc},
    time::sleep,
};

/// The most sessions in one list.
const SESSIONS_MAX: usize = 20;
/// How often a session looks whether a question was answered in another process.
const LOOK: Duration = Duration::from_secs(1);
/// How long a session can still be asked again for a question that ran out.
const ASKED_AGAIN: Duration = Duration::from_secs(24 * 60 * 60);

/// The questions that a session waits for.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    /// How many are open.
    pub open: usize,
    /// When the session is to be looked at again, at the latest.
    pub until: Timestamp,
}

/// The next step of a host.
#[expect(clippy::large_enum_variant, reason = "one at a time, for a moment")]
enum Next {
    Op(Op),
    /// A person has answered a question of a call that waits.
    Answered,
    /// There is no front end any more.
    Over,
}

/// Finds the models of a name, `PROVIDER/MODEL`; the error is for people.
pub type Choose = Box<dyn Fn(&str) -> Result<Models, String> + Send + Sync>;

/// The parts of a host.
pub struct Parts {
    /// The gate.
    pub kernel: Kernel,
    /// Makes the session's connection.
    pub registrar: Registrar,
    /// The tools.
    pub tools: Tools,
    /// The models; `None` when no turn will run.
    pub models: Option<Models>,
    /// Finds the models that a person turns to; `None` when the session stays with the models above.
    pub choose: Option<Choose>,
    /// Decides the next step.
    pub brain: Arc<dyn Brain>,
    /// How failed model calls are tried again.
    pub retry: Retry,
    /// The standing instruction.
    pub instruction: Instruction,
    /// The agent's own file; `None` when no turn will run.
    pub own: Option<Own>,
    /// Where events go.
    pub events: mpsc::Sender<Event>,
    /// The project, canonical.
    pub workspace: WsPath,
    /// Where the person stands in it.
    pub standpoint: Standpoint,
    /// The session's own folder in Bailey's home; it exists.
    pub folder: PathBuf,
    /// The name, for the session's outcomes, of its isolation from the host, when that is less than
    /// namespaces.
    pub backend: Option<String>,
    /// The home's named agent that works in the session; `None` for the home's own agent.
    pub agent: Option<String>,
    /// The rights of that agent in a new session, when it acts by a token; `None` when the rules decide.
    pub confined: Option<Confined>,
    /// The command line of this process, for another process that finds the session in use.
    pub command: String,
    /// Whether there is no human to answer a card. The front end then answers each card with no, and the
    /// journal says who answered.
    pub unattended: bool,
    /// The person at the front end, when there is one, for the journal.
    pub person: Option<Person>,
    /// How commits of the session differ from the person's own, shown before they are applied; `None` when
    /// they do not differ.
    pub commits_differ: Option<String>,
    /// How long a turn waits for a human.
    pub patience: Patience,
}

/// Which session to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// A new session.
    New(SessionId),
    /// A session from the journal, to go on with it.
    Resume(SessionId),
    /// A session from the journal, to look at its changes or to merge them. Its context is not read.
    Visit(SessionId),
}

/// Why a session could not be opened or a merge not made.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The kernel refused.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The journal cannot be read or written, or another process holds the session.
    #[error(transparent)]
    Journal(#[from] bailey_kernel::JournalError),
    /// The session was opened without a model.
    #[error("this session was opened without a model")]
    NoModel,
    /// The session cannot go on with that model.
    #[error("{0}")]
    Model(String),
    /// The session belongs to another project, and its layer lies over that project.
    #[error("this session works in `{0}`")]
    Elsewhere(String),
    /// The gate denied a merge, or the human did not approve it. Nothing was changed.
    #[error("{0}")]
    Denied(String),
    /// A comparison or merge did not come to an end.
    #[error("{0}")]
    Merge(String),
}

/// One open session.
pub struct Host {
    pub(crate) kernel: Kernel,
    pub(crate) registrar: Registrar,
    pub(crate) connection: Connection,
    pub(crate) session: SessionId,
    pub(crate) workspace: WsPath,
    waiting: PendingCalls,
    /// The questions of waiting calls that Bailey has settled.
    settled: HashSet<ApprovalId>,
    look: Arc<Notify>,
    patience: Patience,
    /// Whether a question was asked again when no turn ran.
    is_asked_again: bool,
    guides: Guides,
    ceiling: Ceiling,
    warned: Warned,
    pub(crate) tools: Tools,
    pub(crate) models: Option<Models>,
    choose: Option<Choose>,
    brain: Arc<dyn Brain>,
    retry: Retry,
    unattended: bool,
    person: Option<Person>,
    pub(crate) commits_differ: Option<String>,
    backend: Option<String>,
    pub(crate) context: Context,
    pins: Pins,
    /// The results of the owner's own commands, which the next message brings along.
    pub(crate) asides: Vec<String>,
    /// Ops that came while the owner's own command ran.
    pub(crate) kept: VecDeque<Op>,
    /// The changes as they were told last.
    pub(crate) changed: Option<Happening>,
    _lock: SessionLock,
}

impl Host {
    /// Opens a session: takes its lock, reads its context back when there is one, and settles work that was
    /// cut off.
    ///
    /// # Errors
    /// When another process holds the session, or the journal cannot be read or written.
    pub async fn open(parts: Parts, opening: Opening) -> Result<Self, HostError> {
        let Parts {
            kernel,
            registrar,
            tools,
            models,
            choose,
            brain,
            retry,
            instruction,
            own,
            events,
            workspace,
            standpoint,
            folder,
            backend,
            agent,
            confined,
            command,
            unattended,
            person,
            commits_differ,
            patience,
        } = parts;
        let (Opening::New(session) | Opening::Resume(session) | Opening::Visit(session)) = opening;
        let command = kernel.journal().redactor().redact(&command).text.into_owned();
        let holder = Holder { pid: std::process::id(), since: kernel.journal().clock().now(), command };
        let lock = SessionLock::take(session, &folder, &holder)?;
        if !matches!(opening, Opening::New(_)) {
            let known = kernel.journal().session(&session.to_string()).await?.workspace;
            // The journal holds the path with its secrets redacted.
            if known.0 != kernel.journal().redactor().redact(&workspace.0).text {
                return Err(HostError::Elsewhere(known.0));
            }
        }
        let mut connection = registrar.connect(session, workspace.clone(), events).at(standpoint);
        let asks = providers(models.as_ref());
        if let Some(confined) = &confined {
            // Checked before any part of the session exists: otherwise a session would begin that can do
            // nothing.
            kernel.can_confine(&connection, confined, &asks).await?;
        }
        let model = models.as_ref().map(main_name).unwrap_or_default();
        match opening {
            Opening::New(_) => {
                let new = NewSession {
                    agent,
                    confined,
                    workspace: workspace.clone(),
                    principal: OWNER.into(),
                    model: model.clone(),
                };
                kernel.journal().open_session(session, new).await?;
                connection = kernel.confine(&connection, &asks).await?;
            }
            Opening::Resume(_) => {
                kernel.journal().resume_session(session, model.clone()).await?;
                connection = kernel.confine(&connection, &asks).await?;
            }
            Opening::Visit(_) => {}
        }
        let scope = kernel.turn_of(&connection);
        let Restored { context, waiting, asked, asides } = match opening {
            Opening::New(_) | Opening::Visit(_) => Restored {
                context: Context::new(instruction),
                waiting: Vec::new(),
                asked: Vec::new(),
                asides: Vec::new(),
            },
            Opening::Resume(_) => {
                let find = |name: &str| tools.find(name);
                kernel.restore(&lock, &scope, instruction, &find).await?
            }
        };
        if !matches!(opening, Opening::Visit(_)) {
            if let Some(backend) = backend.clone() {
                kernel.journal().note_walls(session, backend).await?;
            }
            let resumed = matches!(opening, Opening::Resume(_));
            let workspace = workspace.0.clone();
            let happening =
                Happening::Session { session, workspace, model, resumed, backend: backend.clone() };
            kernel.tell(&scope, happening).await?;
        }
        aside::tell_waiting(&kernel, &scope, asides.len()).await?;
        let pins = Pins::of(&context);
        if !pins.is_empty() {
            pins.tell(&kernel, &scope).await?;
        }
        let host = Self {
            kernel,
            registrar,
            connection,
            session,
            workspace,
            waiting: PendingCalls::of(waiting, asked),
            settled: HashSet::new(),
            look: Arc::default(),
            patience,
            is_asked_again: false,
            guides: Guides::with(own),
            ceiling: Ceiling::default(),
            warned: Warned::default(),
            tools,
            models,
            choose,
            brain,
            retry,
            unattended,
            person,
            commits_differ,
            backend,
            context,
            pins,
            asides,
            kept: VecDeque::new(),
            changed: None,
            _lock: lock,
        };
        if matches!(opening, Opening::Resume(_))
            && !host.is_interrupted()
            && let turn @ Some(_) = host.open_turn().await?
        {
            // The turn's last reply is there, but its process was killed before it recorded the end. The
            // turn does not go on, so it ends here.
            host.kernel.end_turn(host.session, turn, TurnEnd::Answered.name()).await?;
        }
        Ok(host)
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The project, canonical.
    #[must_use]
    pub fn workspace(&self) -> &WsPath {
        &self.workspace
    }

    /// Goes on with another model.
    async fn turn_to(&mut self, name: &str) -> Result<(), HostError> {
        let Some(choose) = &self.choose else {
            return Err(HostError::Model("this session stays with the model that it was opened with".into()));
        };
        let models = choose(name).map_err(HostError::Model)?;
        let model = main_name(&models);
        self.kernel.journal().resume_session(self.session, model.clone()).await?;
        // The limits that were learnt so far are those of the other model's window.
        (self.models, self.ceiling) = (Some(models), Ceiling::default());
        let (session, workspace) = (self.session, self.workspace.0.clone());
        let scope = self.kernel.turn_of(&self.connection);
        let backend = self.backend.clone();
        if let Some(backend) = backend.clone() {
            self.kernel.journal().note_walls(session, backend).await?;
        }
        let happening = Happening::Session { session, workspace, model, resumed: true, backend };
        Ok(self.kernel.tell(&scope, happening).await?)
    }

    /// Performs one action of the owner's own, such as a command inside the walls.
    ///
    /// # Errors
    /// When the journal cannot be read or written.
    pub async fn act(&self, action: Action) -> Result<Acted, HostError> {
        Ok(self.kernel.act(&self.owner(), action, &[]).await?)
    }

    /// The same, but sends the output of a command to `out` while it runs; see [`Kernel::act_printing`].
    /// `by` is the owner at this session, and cancels the action.
    ///
    /// # Errors
    /// When the journal cannot be read or written.
    pub async fn act_printing(
        &self,
        by: &Scope,
        action: Action,
        out: mpsc::Sender<Printed>,
    ) -> Result<Acted, HostError> {
        Ok(self.kernel.act_printing(by, action, out).await?)
    }

    /// Ends the session's background processes, and waits until their ends are recorded. Call this before
    /// you let a session go: processes that still live are killed with this process, and their ends are not
    /// recorded.
    pub async fn quiet(&self) {
        self.kernel.end_processes(self.session).await;
    }

    /// The owner at this session, for actions that the owner performs by the kernel directly. It is
    /// cancelled separately from any turn.
    #[must_use]
    pub fn owner(&self) -> Scope {
        self.registrar.owner(&self.connection)
    }

    /// Whether the last turn was cut off before its answer, so that [`Host::go_on`] has something to do.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.unanswered().is_some() || !self.waiting.calls().is_empty()
    }

    /// The position of the last entry that the model has not seen yet.
    fn unanswered(&self) -> Option<Seq> {
        let asks_nothing = |segment: &&Segment| match segment {
            Segment::User(message) => message.is_pinned(),
            Segment::Note(_) | Segment::Guide(_) => true,
            Segment::Late(late) => late.is_end(),
            Segment::Reply(_) | Segment::Observation(_) => false,
        };
        let last = self.context.segments().iter().rev().find(|segment| !asks_nothing(segment))?;
        (!matches!(last, Segment::Reply(_))).then(|| last.entry())
    }

    /// Whether the session has to go on without a request.
    ///
    /// A turn that failed, or that a human stopped, has ended until the human says more. A turn that a
    /// killed process left has not ended, and neither has work that a yes began after a turn's end. A call
    /// that a human has answered meanwhile is still to be done, or the model is to be told why not. A turn
    /// that was open when a copy of the home was made went on in the home that was copied, so it does not
    /// count.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn is_cut_off(&mut self) -> Result<bool, HostError> {
        if self.is_interrupted()
            && let Some((at, open)) = self.kernel.journal().last_turn(self.session).await?
            && (open.is_some() || self.unanswered().is_some_and(|last| last > at))
            && !self.kernel.journal().is_restored_since(at).await?
        {
            return Ok(true);
        }
        self.is_answered().await
    }

    /// Whether a human has answered a question of a call that still waits, and the session has not been
    /// stopped since. Settles the questions whose time is over.
    async fn is_answered(&mut self) -> Result<bool, HostError> {
        let scope = self.kernel.turn_of(&self.connection);
        let since = self.stopped_at().await?;
        for waits in self.waiting.calls() {
            if self.settled.contains(&waits.question) {
                continue;
            }
            match self.kernel.settlement(&scope, waits.question).await? {
                Some(Settlement { answered: Some(at), .. }) if at > since => return Ok(true),
                // Nothing follows from that before the next turn.
                Some(_) => drop(self.settled.insert(waits.question)),
                None => {}
            }
        }
        Ok(false)
    }

    /// Where the last turn ended, if a person stopped it, or it failed: an answer before that begins nothing.
    async fn stopped_at(&self) -> Result<Seq, HostError> {
        let is_stop = |reason: &str| reason != TurnEnd::Waiting.name() && reason != TurnEnd::Answered.name();
        let last = self.kernel.journal().last_end(self.session).await?;
        Ok(last.filter(|(_, reason)| is_stop(reason)).map_or(Seq(0), |(at, _)| at))
    }

    /// Wakes the session: a question was answered, or asked again, in another process.
    pub fn look(&self) -> Arc<Notify> {
        self.look.clone()
    }

    /// Shows the open questions of calls that wait.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn show_questions(&self) -> Result<(), HostError> {
        let scope = self.kernel.turn_of(&self.connection);
        for waits in self.waiting.calls() {
            self.kernel.show_question(&scope, waits.question).await?;
        }
        Ok(())
    }

    /// The questions of calls that wait, for a process that ends while they do.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn waits(&self) -> Result<Option<Waiting>, HostError> {
        let calls = self.waiting.calls();
        if calls.is_empty() {
            return Ok(None);
        }
        let (journal, now) = (self.kernel.journal(), self.kernel.journal().clock().now());
        let since = self.stopped_at().await?;
        let (mut open, mut look) = (0, None::<Timestamp>);
        for question in journal.questions(Some(self.session)).await? {
            if calls.iter().all(|waits| waits.question != question.id) {
                continue;
            }
            let at = match journal.settlement(question.id).await? {
                None => {
                    open += 1;
                    question.until
                }
                // It was answered a moment ago, and nothing has followed yet.
                Some(settlement) if settlement.answered.is_some_and(|at| at > since) => Some(now),
                // It can be asked again for a while.
                Some(settlement) if settlement.ran_out() => {
                    let until = question.until.and_then(|until| until.checked_add(ASKED_AGAIN).ok());
                    until.filter(|until| *until > now)
                }
                Some(_) => None,
            };
            look = look.into_iter().chain(at).min();
        }
        Ok(look.map(|until| Waiting { open, until }))
    }

    /// Runs the turn of one message. Meanwhile it takes ops over `ops`: answers, a cancellation, and further
    /// messages, which the model sees between its steps.
    ///
    /// # Errors
    /// When the turn failed; the session can go on.
    pub async fn say(
        &mut self,
        inbound: Inbound,
        ops: &mut mpsc::Receiver<Op>,
    ) -> Result<TurnEnd, HostError> {
        let (scope, turn) = self.accept(inbound).await?;
        self.turn(scope, Some(turn), ops).await
    }

    /// Takes a message in. On an error, no turn begins.
    async fn accept(&mut self, inbound: Inbound) -> Result<(Scope, TurnId), HostError> {
        self.confine().await?;
        // Read first, so that the project's text stands before the person's message.
        self.read_guides().await?;
        let inbound = self.with_pictures(inbound).await?;
        let accepted = self.kernel.accept(&self.connection, inbound).await;
        let (scope, message, turn) = accepted.map_err(|error| match error {
            // Nothing began, and there may be room again later.
            Refused::Journal(error) if error.is_full() => Refused::Begin(error.into()),
            error => error,
        })?;
        tell_unseen(&self.kernel, &scope, self.models.as_ref(), &message).await?;
        self.bring_asides().await?;
        self.context.push(message);
        Ok((scope, turn))
    }

    /// Goes on with a turn that another process did not finish.
    ///
    /// # Errors
    /// When the turn failed; the session can go on.
    pub async fn go_on(&mut self, ops: &mut mpsc::Receiver<Op>) -> Result<TurnEnd, HostError> {
        self.confine().await?;
        let scope = self.kernel.turn_of(&self.connection);
        self.kernel.tell(&scope, Happening::GoingOn).await?;
        let turn = self.open_turn().await?;
        self.read_guides().await?;
        self.turn(scope, turn, ops).await
    }

    /// When the agent acts by a token, makes sure that the token holds for the turn that begins.
    async fn confine(&mut self) -> Result<(), HostError> {
        self.connection = self.kernel.confine(&self.connection, &providers(self.models.as_ref())).await?;
        Ok(())
    }

    /// The turn that was cut off; `None` when it failed or was cancelled, because that ended it.
    async fn open_turn(&self) -> Result<Option<TurnId>, HostError> {
        Ok(self.kernel.journal().open_turn(self.session).await?)
    }

    /// Keeps these words in the context, whatever is summarised. They start no turn.
    ///
    /// # Errors
    /// When they cannot be written.
    pub async fn pin(&mut self, text: &str) -> Result<(), HostError> {
        let scope = self.kernel.turn_of(&self.connection);
        let message = self.pins.add(&self.kernel, &self.connection, &scope, text).await?;
        self.context.push(message);
        Ok(())
    }

    /// Lets a pinned message be summarised like any other. A message that is not pinned stays as it is.
    ///
    /// # Errors
    /// When the change cannot be written.
    pub async fn unpin(&mut self, entry: Seq) -> Result<(), HostError> {
        let scope = self.kernel.turn_of(&self.connection);
        self.pins.remove(&self.kernel, &self.connection, &scope, entry).await?;
        self.context.unpin(entry);
        Ok(())
    }

    async fn read_guides(&mut self) -> Result<(), HostError> {
        let scope = self.kernel.turn_of(&self.connection);
        Ok(self.guides.refresh(&self.kernel, &scope, &mut self.context).await?)
    }

    /// Serves one front end until it disconnects: performs its ops one after the other. An op that fails is
    /// told as an event, and the session goes on. Returns the end of the last turn; `None` when there was no
    /// turn.
    ///
    /// # Errors
    /// The error of the last turn, when that turn failed. When the journal cannot be read or written any
    /// more, this returns the error at once.
    pub async fn serve(&mut self, ops: &mut mpsc::Receiver<Op>) -> Result<Option<TurnEnd>, HostError> {
        let mut last = Ok(None);
        loop {
            let op = match self.next(ops).await? {
                Next::Op(op) => op,
                Next::Answered => {
                    let newest = self.newest_result();
                    last = self.go_on(ops).await.map(Some);
                    if last.is_err() && self.is_answered().await? {
                        // The turn could not even begin. It is not tried again for the same answer.
                        self.kernel.end_turn(self.session, None, "failed").await?;
                    }
                    if self.is_told_of(&last, newest).await { continue } else { return last }
                }
                Next::Over => break,
            };
            let name = op.name();
            let done = match op {
                Op::Say(inbound) if self.kernel.is_repeated(&self.connection, &inbound).await? => continue,
                Op::Say(inbound) => {
                    let newest = self.newest_result();
                    last = match self.accept(inbound).await {
                        Ok((scope, turn)) => self.turn(scope, Some(turn), ops).await.map(Some),
                        // The message does not count as said, and its sender is told. A turn that ends tells
                        // its own end.
                        Err(error) => {
                            self.tell_failed(name, &error).await?;
                            Err(error)
                        }
                    };
                    match self.is_told_of(&last, newest).await {
                        true => continue,
                        false => return last,
                    }
                }
                Op::Pin { text } => self.pin(&text).await,
                Op::Unpin { entry } => self.unpin(entry).await,
                Op::Changes => self.changes().await.map(drop),
                Op::Apply { shown } => {
                    let applied = self.apply_now(shown, ops).await;
                    self.tell_changed().await?;
                    applied
                }
                Op::Model { name } => self.turn_to(&name).await,
                Op::Undo => {
                    let undone = self.undo(ops).await.map(drop);
                    self.tell_changed().await?;
                    undone
                }
                Op::Discard { shown } => {
                    let discarded = self.discard_now(shown, ops).await;
                    self.tell_changed().await?;
                    discarded
                }
                Op::Run { command } => self.run_command(command, ops).await,
                Op::Files { like } => self.find_files(like).await,
                Op::Compact => self.compact(ops).await,
                Op::Show { view } => self.show(view).await,
                Op::Sessions => {
                    let scope = self.kernel.turn_of(&self.connection);
                    tell_sessions(&self.kernel, &scope).await.map_err(Into::into)
                }
                Op::Answer { id, answer, why, by } => {
                    let who = who(by.as_ref(), || self.who());
                    let taken = self.kernel.take_answer(&self.connection, id, answer, who, &why).await;
                    taken.map_err(Into::into)
                }
                Op::AskAgain { id } => {
                    // No turn waits for this answer.
                    self.is_asked_again = true;
                    let scope = self.kernel.turn_of(&self.connection);
                    self.kernel.ask_again(&scope, id).await.map_err(Into::into)
                }
                Op::Follow { key } => {
                    let scope = self.kernel.turn_of(&self.connection);
                    follow(&self.kernel, &self.connection, &scope, key).await.map_err(Into::into)
                }
                // No turn runs.
                Op::Cancel | Op::TakeBack => continue,
            };
            if let Err(error) = done {
                self.tell_failed(name, &error).await?;
            }
        }
        last
    }

    /// The next thing to do: an op, or a turn that goes on because a person has answered.
    async fn next(&mut self, ops: &mut mpsc::Receiver<Op>) -> Result<Next, HostError> {
        loop {
            if let Some(op) = self.kept.pop_front() {
                return Ok(Next::Op(op));
            }
            // In other sessions a turn waits for the answers itself.
            let waits_itself = self.patience.at_end && !self.is_asked_again;
            if self.unattended || waits_itself || self.models.is_none() {
                return Ok(ops.recv().await.map_or(Next::Over, Next::Op));
            }
            let scope = self.kernel.turn_of(&self.connection);
            for question in self.waiting.take_up(&self.kernel, &scope).await? {
                self.kernel.show_question(&scope, question).await?;
            }
            if self.is_answered().await? {
                return Ok(Next::Answered);
            }
            let waiting = self.waiting.calls();
            let look = async {
                match waiting.iter().all(|waits| self.settled.contains(&waits.question)) {
                    true => pending().await,
                    false => sleep(LOOK).await,
                }
            };
            tokio::select! {
                op = ops.recv() => return Ok(op.map_or(Next::Over, Next::Op)),
                () = self.look.notified() => {}
                () = look => {}
            }
        }
    }

    /// Tells the changes after a turn; `newest` is the last result before it. Returns false when nothing can
    /// be told any more.
    async fn is_told_of(&mut self, last: &Result<Option<TurnEnd>, HostError>, newest: Option<Seq>) -> bool {
        let told = match last {
            // Without a journal, nothing goes on.
            Err(HostError::Journal(_) | HostError::Refused(Refused::Journal(_))) => return false,
            // Only calls change something.
            _ if newest == self.newest_result() => self.tell_changed_again().await,
            _ => self.tell_changed().await,
        };
        told.is_ok()
    }

    async fn tell_failed(&self, op: &str, error: &HostError) -> Result<(), Refused> {
        let scope = self.kernel.turn_of(&self.connection);
        self.kernel.tell(&scope, Happening::Failed { op: op.into(), error: error.to_string() }).await
    }

    async fn apply_now(&self, shown: Option<Digest>, ops: &mut mpsc::Receiver<Op>) -> Result<(), HostError> {
        let changes = self.changes_as_shown(shown, "nothing was applied").await?;
        if changes.is_empty() && !self.is_half_applied().await? {
            return Err(HostError::Merge("this session has no changes that can be applied".into()));
        }
        self.apply(&changes, ops).await.map(drop)
    }

    async fn discard_now(
        &self,
        shown: Option<Digest>,
        ops: &mut mpsc::Receiver<Op>,
    ) -> Result<(), HostError> {
        if shown.is_some() {
            self.changes_as_shown(shown, "nothing was thrown away").await?;
        }
        self.discard(ops).await.map(drop)
    }

    /// The changes, when they are still those that a person was shown.
    async fn changes_as_shown(&self, shown: Option<Digest>, undone: &str) -> Result<Changes, HostError> {
        let changes = self.changes().await?;
        match shown {
            Some(shown) if shown != changes.shown() => Err(HostError::Merge(format!(
                "the changes are no longer those that were shown, so {undone}: look at them again first"
            ))),
            _ => Ok(changes),
        }
    }

    /// The answerer of cards here, for the journal.
    pub(crate) fn who(&self) -> Answerer {
        if self.unattended { Answerer::bailey() } else { Answerer::owner(self.person.clone()) }
    }

    async fn turn(
        &mut self,
        scope: Scope,
        turn: Option<TurnId>,
        ops: &mut mpsc::Receiver<Op>,
    ) -> Result<TurnEnd, HostError> {
        let begun = Instant::now();
        let hands = self.hands(scope.clone())?;
        if !self.unattended && self.patience.at_end {
            for waits in self.waiting.calls() {
                self.kernel.show_question(&scope, waits.question).await?;
            }
        }
        let who = self.who();
        let mut front = Front {
            pins: &mut self.pins,
            kernel: &self.kernel,
            connection: &self.connection,
            scope: &scope,
            owner: self.registrar.owner(&self.connection),
            own: Vec::new(),
            news: &hands.news,
            tools: &self.tools,
            models: self.models.as_ref(),
            who,
        };
        let brain = self.brain.clone();
        let mut late = None;
        let ended = {
            let running = brain.turn(&hands, &mut self.context);
            tokio::pin!(running);
            let mut listening = true;
            loop {
                let op = tokio::select! {
                    ended = &mut running => break ended,
                    op = ops.recv(), if listening => op,
                };
                let taken = match op {
                    None => {
                        listening = false;
                        continue;
                    }
                    Some(Op::Say(inbound)) if !inbound.pictures.is_empty() => {
                        // The turn goes on meanwhile, because it may hold a lock that the read waits for.
                        let mut ended = None;
                        let attached = {
                            let attaching = front.attach(inbound);
                            tokio::pin!(attaching);
                            loop {
                                tokio::select! {
                                    attached = &mut attaching => break attached,
                                    end = &mut running, if ended.is_none() => ended = Some(end),
                                }
                            }
                        };
                        match (attached, ended) {
                            (Ok(inbound), Some(ended)) => {
                                late = Some(Op::Say(inbound));
                                break ended;
                            }
                            (Ok(inbound), None) => front.take(Op::Say(inbound)).await,
                            (Err(error), _) => Err(error),
                        }
                    }
                    Some(op) => front.take(op).await,
                };
                if let Err(error) = taken {
                    break Err(error);
                }
            }
        };
        // It begins a turn of its own.
        self.kept.extend(late);
        // A message that came too late for this turn waits for the next one.
        hands.hear(&mut self.context).await?;
        let reason = ended.as_ref().map_or("failed", |end| end.name()).to_owned();
        let failure = ended.as_ref().err();
        let (error, fault) = (failure.map(ToString::to_string), failure.map(Refused::fault));
        self.kernel.end_turn(self.session, turn, &reason).await?;
        self.kernel.rest_programs().await;
        let took_ms = u64::try_from(begun.elapsed().as_millis()).ok();
        self.kernel.tell(&scope, Happening::End { reason, error, fault, took_ms }).await?;
        Ok(ended?)
    }

    /// The means of a turn, or of other work with the model.
    pub(crate) fn hands(&self, scope: Scope) -> Result<Hands, HostError> {
        Ok(Hands {
            kernel: self.kernel.clone(),
            scope,
            tools: self.tools.clone(),
            models: self.models.as_ref().ok_or(HostError::NoModel)?.afresh(),
            retry: self.retry.clone(),
            patience: self.patience,
            waiting: self.waiting.clone(),
            news: News::default(),
            guides: self.guides.clone(),
            ceiling: self.ceiling.clone(),
            warned: self.warned.clone(),
            calls_left: CallsLeft::default(),
        })
    }
}

/// The model of a turn's own steps, as `PROVIDER/MODEL`; empty when there is no model.
fn main_name(models: &Models) -> String {
    let main = models.route(ModelRole::Main).current();
    main.map(|model| format!("{}/{}", model.name(), model.model())).unwrap_or_default()
}

/// All providers that any role may ask.
fn providers(models: Option<&Models>) -> Vec<Arc<dyn Provider>> {
    let of = |models: &Models| -> Vec<Arc<dyn Provider>> {
        ModelRole::ALL.iter().flat_map(|role| models.route(*role).providers()).cloned().collect()
    };
    models.map(of).unwrap_or_default()
}

/// Tells the sender of a picture that the model takes no pictures.
async fn tell_unseen(
    kernel: &Kernel,
    scope: &Scope,
    models: Option<&Models>,
    message: &UserMessage,
) -> Result<(), Refused> {
    let main = models.and_then(|models| models.route(ModelRole::Main).current());
    match main.filter(|_| !message.images().is_empty()).and_then(|model| blind(&**model)) {
        Some(text) => kernel.tell(scope, Happening::Unseen { text }).await,
        None => Ok(()),
    }
}

/// What the sender of a picture is told, where the model takes no pictures.
pub(crate) fn blind(model: &dyn Provider) -> Option<String> {
    (!model.takes_images()).then(|| {
        format!(
            "`{}/{}` takes no pictures, so it is not shown yours: say it in words. Where it does take them, \
             `images = true` in models.toml says so.",
            model.name(),
            model.model()
        )
    })
}

/// The answerer: a person at a channel, or the one here.
pub(crate) fn who(by: Option<&Speaker>, here: impl FnOnce() -> Answerer) -> Answerer {
    by.map_or_else(here, Answerer::speaker)
}

/// Sends the newest sessions of this home as an event.
async fn tell_sessions(kernel: &Kernel, scope: &Scope) -> Result<(), Refused> {
    let sessions = kernel.journal().sessions().await?;
    let line = |info: SessionInfo| SessionLine {
        session: info.id,
        workspace: info.workspace.0,
        title: info.title,
        updated: info.updated.to_string(),
    };
    let sessions = sessions.into_iter().take(SESSIONS_MAX).map(line).collect();
    kernel.tell(scope, Happening::Sessions { sessions }).await
}

/// Tells of a message that was said before.
async fn follow(kernel: &Kernel, connection: &Connection, scope: &Scope, key: String) -> Result<(), Refused> {
    let inbound = Inbound { key: Some(key), ..Inbound::default() };
    if kernel.is_repeated(connection, &inbound).await? {
        return Ok(());
    }
    let error = "the session knows no such message".to_owned();
    kernel.tell(scope, Happening::Failed { op: "follow".into(), error }).await
}

/// Takes ops from the front end during a turn.
struct Front<'a> {
    pins: &'a mut Pins,
    kernel: &'a Kernel,
    connection: &'a Connection,
    scope: &'a Scope,
    owner: Scope,
    /// The messages of the owner at a terminal.
    own: Vec<Seq>,
    news: &'a News,
    tools: &'a Tools,
    models: Option<&'a Models>,
    who: Answerer,
}

impl Front<'_> {
    /// Adds the pictures that a message names.
    async fn attach(&self, inbound: Inbound) -> Result<Inbound, Refused> {
        let caller = OwnCaller { kernel: self.kernel, tools: self.tools, owner: &self.owner };
        caller.with_pictures(self.models, inbound).await
    }

    async fn take(&mut self, op: Op) -> Result<(), Refused> {
        match op {
            Op::Cancel => self.scope.cancel().cancel(),
            Op::TakeBack => {
                let mut texts = Vec::new();
                for message in self.news.take_back(&self.own) {
                    self.kernel.unsay(self.connection, message.entry()).await?;
                    texts.push(message.text().to_owned());
                }
                if !texts.is_empty() {
                    self.kernel.tell(self.scope, Happening::Unsaid { texts }).await?;
                }
            }
            Op::Say(inbound) if self.kernel.is_repeated(self.connection, &inbound).await? => {}
            Op::Say(inbound) => {
                // A person at a channel was told that the message is accepted.
                let is_own = inbound.by.is_none() && inbound.key.is_none();
                let (scope, message, _) = self.kernel.accept(self.connection, inbound).await?;
                self.own.extend(is_own.then(|| message.entry()));
                tell_unseen(self.kernel, &scope, self.models, &message).await?;
                self.news.push(message);
            }
            Op::Sessions => tell_sessions(self.kernel, self.scope).await?,
            Op::Files { like } => {
                aside::tell_found(self.kernel, &self.owner, self.scope.workspace(), like).await?;
            }
            Op::Follow { key } => follow(self.kernel, self.connection, self.scope, key).await?,
            Op::Pin { text } => {
                self.news.push(self.pins.add(self.kernel, self.connection, self.scope, &text).await?);
            }
            Op::Unpin { entry } => {
                self.pins.remove(self.kernel, self.connection, self.scope, entry).await?;
                self.news.unpin(entry);
            }
            // The work is not at rest: a comparison now would show a half-done state.
            Op::Changes
            | Op::Apply { .. }
            | Op::Undo
            | Op::Discard { .. }
            | Op::Model { .. }
            | Op::Run { .. }
            | Op::Compact
            | Op::Show { .. } => {
                let error = "a turn is running; wait for its end, or cancel it".to_owned();
                self.kernel.tell(self.scope, Happening::Failed { op: op.name().into(), error }).await?;
            }
            Op::AskAgain { id } => {
                if let Err(error) = self.kernel.ask_again(self.scope, id).await {
                    let (op, error) = ("ask_again".into(), error.to_string());
                    self.kernel.tell(self.scope, Happening::Failed { op, error }).await?;
                }
            }
            Op::Answer { id, answer, why, by } => {
                let who = who(by.as_ref(), || self.who.clone());
                self.kernel.take_answer(self.connection, id, answer, who, &why).await?;
            }
        }
        Ok(())
    }
}
