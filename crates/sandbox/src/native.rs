//! The runtime's side: asks the warden for sandboxes, and reports what came of them.

use crate::{
    config::Yard,
    running::{Piece, Running, Source, Story, drain, listen, packets, pump, slurp},
    warden::{Order, Warden},
    wire::{self, Header, Job, Streams, Task, View},
    worker::{Reply, Request},
};
use bailey_protocol::{
    Command, Enforced, ExecReport, Isolation, Limits, MergeKind, Outcome, Profile, Report, SessionId, Status,
    Stream,
};
use rustix::{
    fs::{CWD, Mode, OFlags},
    pipe::PipeFlags,
};
use std::{
    collections::BTreeMap,
    io,
    os::fd::OwnedFd,
    sync::{Mutex, PoisonError},
    time::Instant,
};
use tokio::{net::unix::pipe::Receiver, sync::mpsc};
use tokio_util::sync::CancellationToken;

/// The native sandbox: Linux namespaces, Landlock and seccomp, made by a [`Warden`].
#[derive(Debug)]
pub struct Native {
    warden: Warden,
    yards: Mutex<BTreeMap<SessionId, Yard>>,
}

/// Something that the worker was asked for and that was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// The session was never registered.
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
        Self { warden, yards: Mutex::default() }
    }

    /// Says where a session works. Both paths must be absolute and canonical, and the folder must exist.
    pub fn register(&self, session: SessionId, yard: Yard) {
        self.yards.lock().unwrap_or_else(PoisonError::into_inner).insert(session, yard);
    }

    /// Has made ready what the session's first effects need, while the caller does other things.
    ///
    /// # Errors
    /// When the session was never registered, or the warden is gone.
    pub fn prepare(&self, session: SessionId) -> io::Result<()> {
        let yard = self.yard(session).map_err(io::Error::other)?;
        let limits = Limits::default();
        let (session, view) = (session.to_string(), View::Workspace);
        self.warden
            .order(&Order::Prepare(Header { session, yard, view, extra_reads: Vec::new(), limits }), &[])
    }

    /// Forgets a session and gives up what was kept ready for it. What lives goes on.
    ///
    /// # Errors
    /// When the warden is gone.
    pub fn forget(&self, session: SessionId) -> io::Result<()> {
        self.yards.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
        self.warden.order(&Order::Forget { session: session.to_string() }, &[])
    }

    /// Where a session works.
    ///
    /// # Errors
    /// [`WorkError::NoYard`] when it was never registered.
    pub fn yard(&self, session: SessionId) -> Result<Yard, WorkError> {
        let yards = self.yards.lock().unwrap_or_else(PoisonError::into_inner);
        yards.get(&session).cloned().ok_or(WorkError::NoYard(session))
    }

    /// The warden.
    #[must_use]
    pub fn warden(&self) -> &Warden {
        &self.warden
    }

    /// Runs a command in the session's workspace. Ends when nothing of it is left. Pieces of output go to `out`,
    /// which is waited for; a closed one is no error.
    pub async fn exec(
        &self,
        session: SessionId,
        command: &Command,
        isolation: &Isolation,
        out: mpsc::Sender<Piece>,
        cancel: &CancellationToken,
    ) -> Outcome {
        let begin = Instant::now();
        let mut command = command.clone();
        let stdin = command.stdin.take();
        let limits = command.limits.clone();
        let run = async {
            let stdin = stdin.map(|blob| wire::sealed(&blob.0)).transpose()?;
            let job = Job { task: Task::Run(command), isolation: isolation.clone(), limits: limits.clone() };
            self.launch(session, View::Workspace, &job, stdin)
        };
        let mut running = match run.await {
            Ok(running) => running,
            Err(error) => return Outcome::failed(format!("the sandbox did not start: {error}")),
        };
        let (stdout, stderr, story) = tokio::join!(
            pump(&mut running.stdout, Source::Stdout, limits.output_bytes, out.clone(), cancel),
            pump(&mut running.stderr, Source::Stderr, limits.output_bytes, out, cancel),
            listen(&running.control, cancel),
        );
        outcome(story, stdout, stderr, cancel.is_cancelled(), begin)
    }

    /// Runs the worker for a session.
    ///
    /// # Errors
    /// See [`WorkError`].
    pub async fn work(
        &self,
        session: SessionId,
        request: Request,
        isolation: &Isolation,
        cancel: &CancellationToken,
    ) -> Result<(Reply, Enforced), WorkError> {
        let view = view(&request);
        let isolation = Isolation { profile: Profile::Strict, ..isolation.clone() };
        let job = Job { task: Task::Work(request), isolation, limits: Limits::default() };
        let mut running =
            self.launch(session, view, &job, None).map_err(|error| WorkError::Refused(error.to_string()))?;
        let (reply, (), story) = tokio::join!(
            slurp(&mut running.stdout),
            drain(&mut running.stderr),
            listen(&running.control, cancel),
        );
        match (story.refusal(), story.enforced) {
            (Some(reason), _) => Err(WorkError::Refused(reason)),
            (None, Some(enforced)) => match serde_json::from_slice(&reply) {
                Ok(reply) => Ok((reply, enforced)),
                Err(_) if cancel.is_cancelled() => Err(WorkError::Cancelled),
                Err(_) => Err(WorkError::NoAnswer),
            },
            (None, None) => Err(WorkError::NoAnswer),
        }
    }

    fn launch(
        &self,
        session: SessionId,
        view: View,
        job: &Job,
        stdin: Option<OwnedFd>,
    ) -> io::Result<Running> {
        let yard = self.yard(session).map_err(io::Error::other)?;
        let header = Header {
            session: session.to_string(),
            yard,
            view,
            extra_reads: job.isolation.extra_reads.iter().map(|path| path.0.clone()).collect(),
            limits: job.limits.clone(),
        };
        let stdin = match stdin {
            Some(stdin) => stdin,
            None => rustix::fs::openat(CWD, "/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?,
        };
        let job = wire::sealed(&serde_json::to_vec(job).map_err(io::Error::other)?)?;
        let (stdout, stdout_end) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, stderr_end) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let (control, control_end) = wire::pair()?;
        let running = Running {
            stdout: Receiver::from_owned_fd(stdout)?,
            stderr: Receiver::from_owned_fd(stderr)?,
            control: packets(control)?,
        };
        let streams = Streams { job, stdin, stdout: stdout_end, stderr: stderr_end, control: control_end };
        self.warden.order(&Order::Start(header), &streams.borrow())?;
        Ok(running)
    }
}

fn view(request: &Request) -> View {
    match request {
        Request::Resolve { .. } | Request::Perform { .. } => View::Workspace,
        Request::Scan { .. } | Request::Diff { .. } => View::Layers,
        Request::Merge { merge, .. } if merge.direction == MergeKind::Discard => View::Discard,
        Request::Merge { .. } => View::Merge,
    }
}

fn outcome(story: Story, stdout: Stream, stderr: Stream, was_cancelled: bool, begin: Instant) -> Outcome {
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
    };
    Outcome { status, enforced, duration_ms, report: Report::Exec(report) }
}
