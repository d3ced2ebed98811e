//! The runtime's side: asks the warden for sandboxes, and reports what came of them.

use crate::{
    clerk::{Clerk, IdleClerks, Until},
    config::{Lease, Shape, Yard},
    running::{Awaited, OutputStream, Piece, Running, Story, attend, packets, pump},
    warden::{Order, Warden},
    wire::{self, Job, Layer, Named, Paper, Shown, Streams, Swap, Swapped, Task, Wish},
    worker::{Keep, Request, Response},
};
use bailey_protocol::{
    Blob, Command, Enforced, ExecReport, Isolation, Limits, Outcome, Outside, Profile, Report, SessionId,
    Status, Stream,
};
use rustix::{
    fs::{CWD, Mode, OFlags},
    pipe::PipeFlags,
};
use serde::de::DeserializeOwned;
use std::{
    collections::BTreeSet,
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use tokio::{
    net::unix::pipe::{Receiver, Sender},
    sync::{mpsc, oneshot},
};
use tokio_util::sync::CancellationToken;

/// The longest answer of the warden's, in bytes.
const ANSWER_BYTES_MAX: usize = 16 << 10;

/// The native sandbox: Linux namespaces, Landlock and seccomp, made by a [`Warden`].
#[derive(Debug)]
pub struct Native {
    warden: Warden,
    /// Sessions that had a command.
    begun: Mutex<BTreeSet<SessionId>>,
    waiting: IdleClerks,
    /// Those of the next sandbox, made while nobody waits for it.
    ends: Mutex<Option<Ends>>,
}

/// Both ends of what a sandbox is reached by. Each has its own, for what one makes of them is the next one's
/// as well.
#[derive(Debug)]
struct Ends {
    /// /dev/null, for one that is given nothing to read.
    nothing: OwnedFd,
    /// Ours first, here and below.
    stdout: (OwnedFd, OwnedFd),
    stderr: (OwnedFd, OwnedFd),
    control: (OwnedFd, OwnedFd),
}

impl Ends {
    fn new() -> io::Result<Self> {
        Ok(Self {
            nothing: rustix::fs::openat(CWD, "/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?,
            stdout: rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?,
            stderr: rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?,
            control: wire::pair()?,
        })
    }
}

/// What comes with a command besides.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    /// What the files that it names must be: those that a human saw.
    pub(crate) named: Option<Named>,
    /// For a way to the network: what its requests show at the door, and who waits for the listener that they
    /// come to.
    pub(crate) way: Option<(Shown, oneshot::Sender<OwnedFd>)>,
    /// Takes the walls that it starts behind.
    pub(crate) begun: Option<oneshot::Sender<Enforced>>,
}

/// Something that the worker was asked for and that was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// The warden was not told of the session when it started.
    #[error("session {0} has no workspace")]
    NoYard(SessionId),
    /// There was no sandbox, or the worker refused.
    #[error("{0}")]
    Refused(String),
    /// It was cancelled before it ended.
    #[error("cancelled")]
    Cancelled,
    /// The sandbox ended without an answer: whether it was done is not known.
    #[error("the worker ended without an answer")]
    NoAnswer,
}

impl Native {
    /// Sandboxes from this warden.
    #[must_use]
    pub fn new(warden: Warden) -> Self {
        Self { warden, begun: Mutex::default(), waiting: IdleClerks::default(), ends: Mutex::default() }
    }

    /// Has made ready what the session's next effects need, while the caller does other things, such as
    /// asking a model.
    ///
    /// # Errors
    /// When the warden was not told of the session, or is gone.
    pub fn prepare(&self, session: SessionId) -> io::Result<()> {
        self.yard(session).map_err(io::Error::other)?;
        self.warden.order(&Order::Prepare { session }, &[])?;
        let mut kept = self.ends();
        if kept.is_none() {
            *kept = Some(Ends::new()?);
        }
        Ok(())
    }

    fn ends(&self) -> MutexGuard<'_, Option<Ends>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up what is kept ready for a session. What lives goes on.
    ///
    /// # Errors
    /// When the warden is gone.
    pub fn forget(&self, session: SessionId) -> io::Result<()> {
        self.warden.order(&Order::Forget { session }, &[])
    }

    /// Whether nothing of a session's commands lives any more and its layer holds nothing; false where that
    /// cannot be said.
    pub(crate) async fn is_bare(&self, session: SessionId) -> bool {
        self.ask(&Order::Look { session }, &[]).await.is_ok_and(|layer: Layer| layer == Layer::Bare)
    }

    /// Whether a session's layer holds nothing, and the project has nothing at a path below it; false where
    /// that cannot be said.
    pub(crate) async fn lacks(&self, session: SessionId, below: String) -> bool {
        self.ask(&Order::Lacks { session, below }, &[]).await.unwrap_or_default()
    }

    /// Has the agent's own file changed, where it holds `old`; where `old` and `new` are the same, it is only
    /// looked at.
    ///
    /// # Errors
    /// When the warden is gone: then nobody can say what was done.
    pub async fn swap(&self, old: Option<Blob>, new: Option<Blob>) -> io::Result<Swapped> {
        let swap = wire::sealed(&serde_json::to_vec(&Swap { old, new }).map_err(io::Error::other)?)?;
        self.ask(&Order::Swap, &[swap.as_fd()]).await
    }

    /// The warden's answer to an order.
    async fn ask<T: DeserializeOwned>(&self, order: &Order, fds: &[BorrowedFd<'_>]) -> io::Result<T> {
        let (control, theirs) = wire::pair()?;
        let control = packets(control)?;
        self.warden.order(order, &[fds, &[theirs.as_fd()]].concat())?;
        // Its own copy is all that is left of that end: it closes with the warden.
        drop(theirs);
        let mut bytes = vec![0; ANSWER_BYTES_MAX];
        let received = control.recv(&mut bytes).await?;
        let heard = bytes.get(..received).unwrap_or_default();
        serde_json::from_slice(heard).map_err(|_| io::Error::other("the maker of sandboxes has ended"))
    }

    /// Where a session works.
    ///
    /// # Errors
    /// [`WorkError::NoYard`] when the warden was not told of it.
    pub fn yard(&self, session: SessionId) -> Result<&Yard, WorkError> {
        let lease: Option<&Lease> = self.warden.sessions().get(&session);
        lease.map(|lease| &lease.yard).ok_or(WorkError::NoYard(session))
    }

    /// What stands between a session and the host.
    pub(crate) fn shape(&self, session: SessionId) -> Shape {
        self.warden.sessions().get(&session).map_or(Shape::Walled, |lease| lease.shape)
    }

    /// Where base texts of a session are kept; none for one over a private copy, whose layer is laid out anew
    /// around everything that is done, so that a merge of both sides in it would not stay.
    pub(crate) fn bases(&self, session: SessionId, yard: &Yard) -> Option<Keep> {
        let folder = yard.bases().display().to_string();
        (self.shape(session) != Shape::Copied).then(|| Keep { folder, masks: self.warden.masks().to_vec() })
    }

    /// Whether a worker of a session may wait for what is asked next, and keep what the session is shown from
    /// being renewed.
    pub(crate) fn has_waiting(&self, session: SessionId) -> bool {
        self.waiting.has(session)
    }

    /// The warden.
    #[must_use]
    pub fn warden(&self) -> &Warden {
        &self.warden
    }

    /// Runs a command in the session's workspace. Ends when nothing of it is left. Pieces of output go to
    /// `out`, which is waited for; a closed one is no error.
    pub async fn exec(
        &self,
        session: SessionId,
        command: &Command,
        isolation: &Isolation,
        out: mpsc::Sender<Piece>,
        cancel: &CancellationToken,
    ) -> Outcome {
        self.exec_with(session, command, isolation, Extras::default(), out, cancel).await
    }

    /// The same, with what a permit or the network door has to do with it.
    pub(crate) async fn exec_with(
        &self,
        session: SessionId,
        command: &Command,
        isolation: &Isolation,
        extras: Extras,
        out: mpsc::Sender<Piece>,
        cancel: &CancellationToken,
    ) -> Outcome {
        let Extras { named, way, begun } = extras;
        let (way, listener) = way.unzip();
        let mut command = command.clone();
        let stdin = command.stdin.take();
        let is_first = self.begins(session).await;
        let (isolation, limits) = (isolation.clone(), command.limits.clone());
        let job = Job { task: Task::Run(command, named), isolation, limits, is_first, way };
        self.watched(session, &job, stdin, Awaited { listener, begun }, out, cancel).await
    }

    /// Makes way for a program of a session. Whether it is the first one.
    pub(crate) async fn begins(&self, session: SessionId) -> bool {
        // While they live, it would share what they see of the project.
        self.waiting.clear(session).await;
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).insert(session)
    }

    /// Runs git on a session's commits.
    pub(crate) async fn git(
        &self,
        session: SessionId,
        mut command: Command,
        cancel: &CancellationToken,
    ) -> Outcome {
        let stdin = command.stdin.take();
        let limits = command.limits.clone();
        let job = Job {
            task: Task::Git(command),
            isolation: Isolation::default(),
            limits,
            is_first: false,
            way: None,
        };
        let (out, _) = mpsc::channel(1);
        self.watched(session, &job, stdin, Awaited::default(), out, cancel).await
    }

    /// Starts a program and waits for its end.
    async fn watched(
        &self,
        session: SessionId,
        job: &Job,
        stdin: Option<Blob>,
        awaited: Awaited,
        out: mpsc::Sender<Piece>,
        cancel: &CancellationToken,
    ) -> Outcome {
        let begin = Instant::now();
        let limits = &job.limits;
        let stdin = stdin.map(|blob| wire::sealed(&blob.0)).transpose();
        let running = match stdin.and_then(|stdin| self.launch(session, job, stdin)) {
            Ok(running) => running,
            Err(error) => return Outcome::failed(format!("the sandbox did not start: {error}")),
        };
        let Running { stdout, stderr, control } = running;
        let streams = async {
            tokio::join!(
                pump(stdout, OutputStream::Stdout, limits.output_bytes, out.clone(), cancel),
                pump(stderr, OutputStream::Stderr, limits.output_bytes, out, cancel),
            )
        };
        match attend(control, streams, awaited, cancel).await {
            Ok(((stdout, stderr), story)) => outcome(story, stdout, stderr, cancel.is_cancelled(), begin),
            Err(error) => Outcome::failed(format!("the sandbox cannot be heard: {error}")),
        }
    }

    /// Has a worker of the session do something. A read whose end nobody saw is asked for once more; what
    /// changes something never is.
    ///
    /// # Errors
    /// See [`WorkError`].
    pub async fn work(
        &self,
        session: SessionId,
        request: Request,
        isolation: &Isolation,
        cancel: &CancellationToken,
    ) -> Result<(Response, Enforced), WorkError> {
        let again = request.is_read().then(|| request.clone());
        match (self.work_once(session, request, isolation, cancel).await, again) {
            (Err(WorkError::NoAnswer), Some(again)) => {
                self.work_once(session, again, isolation, cancel).await
            }
            (done, _) => done,
        }
    }

    async fn work_once(
        &self,
        session: SessionId,
        request: Request,
        isolation: &Isolation,
        cancel: &CancellationToken,
    ) -> Result<(Response, Enforced), WorkError> {
        let isolation = Isolation { profile: Profile::Strict, ..isolation.clone() };
        if matches!(request, Request::Merge { .. }) {
            // It writes beneath what they see.
            self.waiting.clear(session).await;
        }
        let until = if request.is_about_names() { Until::Reply } else { Until::End };
        let mut clerk = self.clerk(session, request, isolation).await?;
        let reply = clerk.hear(until, cancel).await;
        let enforced = clerk.enforced().cloned();
        match (clerk.story.refusal(), enforced, reply) {
            (Some(reason), ..) => Err(WorkError::Refused(reason)),
            (None, Some(enforced), Some(reply)) => {
                if until == Until::Reply && !cancel.is_cancelled() {
                    self.waiting.keep(clerk).await;
                }
                Ok((reply, enforced))
            }
            (None, Some(_), None) if cancel.is_cancelled() => Err(WorkError::Cancelled),
            (None, ..) => Err(WorkError::NoAnswer),
        }
    }

    /// A worker that was asked: one that waits, where the request may go to it, or a new one.
    async fn clerk(
        &self,
        session: SessionId,
        request: Request,
        isolation: Isolation,
    ) -> Result<Clerk, WorkError> {
        if request.is_for_waiting()
            && let Some(mut clerk) = self.waiting.take(session, &isolation)
            && clerk.ask(&request).await.is_ok()
        {
            return Ok(clerk);
        }
        let job = Job {
            task: Task::Work(request),
            isolation: isolation.clone(),
            limits: Limits::default(),
            is_first: false,
            way: None,
        };
        let start = || -> io::Result<Clerk> {
            let (stdin, requests) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
            let Running { stdout, stderr, control } = self.launch(session, &job, Some(stdin))?;
            let (requests, control) = (Sender::from_owned_fd(requests)?, packets(control)?);
            Ok(Clerk {
                session,
                isolation,
                stdout,
                _stderr: stderr,
                control,
                requests,
                story: Story::default(),
            })
        };
        start().map_err(|error| WorkError::Refused(error.to_string()))
    }

    pub(crate) fn launch(
        &self,
        session: SessionId,
        job: &Job,
        stdin: Option<OwnedFd>,
    ) -> io::Result<Running> {
        self.yard(session).map_err(io::Error::other)?;
        let wish = Wish {
            session,
            view: job.task.view(),
            extra_reads: job.isolation.extra_reads.iter().map(|path| path.0.clone()).collect(),
            limits: job.limits.clone(),
        };
        let paper = Paper::write(job)?;
        let kept = self.ends().take();
        let Ends { nothing, stdout, stderr, control } = kept.map_or_else(Ends::new, Ok)?;
        let running = Running {
            stdout: Receiver::from_owned_fd(stdout.0)?,
            stderr: Receiver::from_owned_fd(stderr.0)?,
            control: control.0,
        };
        let stdin = stdin.unwrap_or(nothing);
        let streams = Streams { paper, stdin, stdout: stdout.1, stderr: stderr.1, control: control.1 };
        self.warden.make(wish, &streams)?;
        Ok(running)
    }
}

pub(crate) fn outcome(
    story: Story,
    stdout: Stream,
    stderr: Stream,
    was_cancelled: bool,
    begin: Instant,
) -> Outcome {
    let duration_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    if let Some(reason) = story.refusal() {
        let was_in_time = was_cancelled && story.refused.is_none();
        let status = if was_in_time { Status::Cancelled } else { Status::Failed { reason } };
        return Outcome { status, enforced: story.enforced, duration_ms, report: Report::Nothing };
    }
    let mut enforced = story.enforced;
    let status = match (&story.ended, was_cancelled) {
        (Some(_), false) => Status::Done,
        (_, true) => Status::Cancelled,
        (None, false) => Status::Unknown,
    };
    let ended = story.ended.unwrap_or_default();
    if let Some(enforced) = &mut enforced {
        enforced.out_no_routes = ended.out_no_routes;
    }
    let report = ExecReport {
        exit: ended.exit,
        signal: ended.signal,
        limit: ended.limit,
        stdout,
        stderr,
        touched: Vec::new(),
        refused: Vec::new(),
        refused_more: 0,
        not_passed: Vec::new(),
        not_passed_more: 0,
        outside: Outside::default(),
    };
    Outcome { status, enforced, duration_ms, report: Report::Exec(report) }
}
