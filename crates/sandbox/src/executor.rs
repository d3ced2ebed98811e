//! The walls as an executor: what the kernel's permits come to.

mod copies;
mod lives;
mod merges;
mod scans;

use crate::{
    charter::in_project,
    config::{Guest, Shape},
    guest::{Streams, Visit},
    native::{Extras, Native, WorkError},
    running::{OutputStream, Piece},
    wire::{Named, Shown},
    worker::{Request, Response},
};
use bailey_kernel::{
    BoxFuture, Chunk, Door, Executor, Gateway, Io, Output, Pass, Permit, Redeemed, RequestSource,
    ResolveError, Route, Seal, Turned,
};
use bailey_protocol::{
    Action, Command, DiffReport, Digest, Enforced, FileChange, Isolation, Kind, MergeKind, Outcome, Report,
    SessionId, Status, Touched, WsPath,
};
pub(crate) use lives::Stay;
use lives::{Lives, Living};
use scans::ScanState;
use std::{
    collections::BTreeMap,
    io,
    net::TcpListener,
    os::fd::OwnedFd,
    sync::{Arc, Mutex},
    time::{Instant, SystemTime},
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Pieces of output that may wait for whoever reads them.
const PIECES_WAITING_MAX: usize = 32;

/// Performs everything that touches a workspace, behind the native walls.
#[derive(Debug)]
pub struct Walls {
    native: Arc<Native>,
    seal: Seal,
    user_home: String,
    path: String,
    /// What is known of each session's layer; nothing of one that this process did not look at, or lost sight
    /// of.
    known: Mutex<BTreeMap<SessionId, ScanState>>,
    /// Who serves the requests of commands; none where no command has a way to the network.
    gateway: Option<Arc<dyn Gateway>>,
    /// What is at work in each session.
    living: Mutex<Living>,
    /// Held while a layer is looked at: the first look must be over before anything is done there.
    looking: tokio::sync::Mutex<()>,
    /// Held while a copy is brought up to date, and from before a merge over one until it is so again.
    settling: tokio::sync::Mutex<()>,
    /// Held while commits are made ready and handed over, in a folder that each session has one of.
    carrying: tokio::sync::Mutex<()>,
    /// Held from a look at what files hold until they hold something else: two names, by way of links, may
    /// lead to one file.
    changing: tokio::sync::Mutex<()>,
}

/// What of a command's way to the network its sandbox gets, the serving of it, and what ends that.
type ServedWay = (Option<(Shown, oneshot::Sender<OwnedFd>)>, BoxFuture<'static, Turned>, CancellationToken);

impl Walls {
    /// The walls, for permits of the journal with this seal. `user_home` is what `~` stands for in paths,
    /// `path` where programs are looked for.
    #[must_use]
    pub fn new(native: Arc<Native>, seal: Seal, user_home: String, path: String) -> Self {
        Self {
            native,
            seal,
            user_home,
            path,
            known: Mutex::default(),
            gateway: None,
            living: Mutex::default(),
            looking: tokio::sync::Mutex::default(),
            settling: tokio::sync::Mutex::default(),
            carrying: tokio::sync::Mutex::default(),
            changing: tokio::sync::Mutex::default(),
        }
    }

    /// The same, whose commands have a way to the network where they are allowed one.
    #[must_use]
    pub fn with_gateway(self, gateway: Arc<dyn Gateway>) -> Self {
        Self { gateway: Some(gateway), ..self }
    }

    /// Starts a program that is written to and answers: one of a lease of its own, or, in the lease of a
    /// session, one that sees the session's workspace.
    ///
    /// # Errors
    /// When the warden was not told of the lease, or is gone. That the program was refused is heard later.
    pub async fn receive(
        self: &Arc<Self>,
        lease: SessionId,
        guest: Guest,
        door: Option<Door>,
    ) -> io::Result<(Visit, Streams)> {
        let network = match guest.command.network {
            true => {
                Some(self.gateway.clone().zip(door).ok_or_else(|| io::Error::other("it has no network"))?)
            }
            false => None,
        };
        if self.native.is_guests(lease) {
            return self.native.receive(lease, guest, network, None).await;
        }
        if self.native.shape(lease) != Shape::Walled {
            return Err(io::Error::other("a peer that sees the workspace takes the walls of namespaces"));
        }
        self.settle(lease).await.map_err(io::Error::other)?;
        self.look(lease, &guest.isolation).await;
        let stay = Stay::begin(self.clone(), lease, guest.isolation.clone());
        self.native.receive(lease, guest, network, Some(stay)).await
    }

    async fn run(&self, redeemed: Redeemed, io: Io) -> Outcome {
        let begin = Instant::now();
        let Redeemed { effect, isolation, named, .. } = redeemed;
        let session = effect.session;
        // Before the copy is brought up to date: what the host changes from now on may be missed.
        let lives = (!matches!(effect.action, Action::Merge(_) | Action::Diff { .. })).then(|| {
            let is_background = matches!(&effect.action, Action::Exec(command) if command.background);
            Lives::begin(self, session, is_background)
        });
        let since = lives.as_ref().map_or_else(SystemTime::now, |lives| lives.since);
        // What is thrown away needs no comparison, which may be what fails.
        let is_discard =
            matches!(&effect.action, Action::Merge(merge) if merge.direction == MergeKind::Discard);
        if !is_discard && let Err(error) = self.settle(session).await {
            return Outcome::failed(error.to_string());
        }
        let work = match effect.action {
            Action::Exec(command) => {
                let named = named.map(|digest| Named { digest, path: self.path.clone() });
                return self.exec(session, &command, since, &isolation, named, io).await;
            }
            Action::Merge(_) | Action::Diff { .. } if self.native.shape(session) == Shape::Direct => {
                return merges::without_layer(&effect.action);
            }
            Action::Merge(merge) => return self.merge(session, effect.id, merge, &isolation, &io).await,
            Action::Diff { .. } if self.is_empty(session) => {
                return Outcome {
                    status: Status::Done,
                    enforced: None,
                    duration_ms: 0,
                    report: Report::Diff(DiffReport::default()),
                };
            }
            Action::Diff { also, .. } => return self.diff(session, also, &isolation, &io).await,
            Action::Change { files } => return self.change(session, files, since, &isolation, io).await,
            action => Ok(Request::Perform { action }),
        };
        self.work(session, work, &isolation, &io, begin).await
    }

    async fn work(
        &self,
        session: SessionId,
        work: Result<Request, WorkError>,
        isolation: &Isolation,
        io: &Io,
        begin: Instant,
    ) -> Outcome {
        let done = match work {
            Ok(request) => self.native.work(session, request, isolation, &io.cancel).await,
            Err(error) => Err(error),
        };
        let duration_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        match done {
            Ok((reply, enforced)) => report(reply, enforced, duration_ms),
            Err(error) => {
                Outcome { status: status(error), enforced: None, duration_ms, report: Report::Nothing }
            }
        }
    }

    async fn change(
        &self,
        session: SessionId,
        files: Vec<FileChange>,
        since: SystemTime,
        isolation: &Isolation,
        io: Io,
    ) -> Outcome {
        self.look(session, isolation).await;
        let request = Request::Perform { action: Action::Change { files } };
        let alone = self.changing.lock().await;
        let mut outcome = self.work(session, Ok(request), isolation, &io, Instant::now()).await;
        drop(alone);
        let scanned = self.scan(session, isolation, since).await;
        if let (Report::Changed { files }, Ok(_)) = (&mut outcome.report, scanned) {
            for file in files {
                let own = |touched: &mut Touched| touched.path == file.path;
                file.touched = self.untold(session, |untold| untold.extract_if(.., own).next());
            }
        }
        outcome
    }

    async fn exec(
        &self,
        session: SessionId,
        command: &Command,
        since: SystemTime,
        isolation: &Isolation,
        named: Option<Named>,
        io: Io,
    ) -> Outcome {
        self.look(session, isolation).await;
        let (pieces, mut live) = mpsc::channel::<Piece>(PIECES_WAITING_MAX);
        let (begun, has_begun) = oneshot::channel();
        let tell = async {
            if let Ok(enforced) = has_begun.await {
                io.out.send(Chunk::Begun(enforced)).await.ok();
            }
        };
        let forward = async {
            while let Some((source, bytes)) = live.recv().await {
                let chunk = match source {
                    OutputStream::Stdout => Chunk::Stdout(bytes),
                    OutputStream::Stderr => Chunk::Stderr(bytes),
                };
                if io.out.send(chunk).await.is_err() {
                    // Nobody listens: the command must not wait for us.
                    live.close();
                    return;
                }
            }
        };
        if command.network && self.native.shape(session) == Shape::Copied {
            return Outcome::failed("there is no way to the network where there are no namespaces");
        }
        let (way, serving, ended) = match self.way(command, &io.door) {
            Ok(way) => way,
            Err(reason) => return Outcome::failed(reason),
        };
        let run = async {
            let extras = Extras { named, way, begun: Some(begun) };
            let outcome =
                self.native.exec_with(session, command, isolation, extras, pieces, &io.cancel).await;
            ended.cancel();
            outcome
        };
        let (mut outcome, (), turned, ()) = tokio::join!(run, forward, serving, tell);
        let scanned = self.scan(session, isolation, since).await;
        if let Report::Exec(report) = &mut outcome.report {
            (report.refused, report.refused_more) = (turned.refused.first, turned.refused.more);
            (report.not_passed, report.not_passed_more) = (turned.failed.first, turned.failed.more);
            match scanned {
                Ok(outside) => {
                    report.touched = self.untold(session, std::mem::take);
                    report.outside = outside;
                }
                // The merge then takes the base of what is new for unknown, and keeps what the project holds.
                Err(error) => outcome.enforced.iter_mut().for_each(|enforced| {
                    enforced.absent.push(format!("what this command changed could not be told: {error}"));
                }),
            }
        }
        outcome
    }

    /// A way to the network for a command that asks for one, and the serving of what comes along it until the
    /// command has ended.
    fn way(&self, command: &Command, door: &Door) -> Result<ServedWay, String> {
        let ended = CancellationToken::new();
        if !command.network {
            return Ok((None, Box::pin(std::future::ready(Turned::default())), ended));
        }
        let gateway = self.gateway.clone().ok_or("there is no network door here")?;
        let pass = Pass::random().map_err(|error| error.to_string())?;
        let (found, listener) = oneshot::channel();
        let (pass_shown, stand_ins) = (pass.expose().to_owned(), gateway.stand_ins());
        let shown = Shown { pass: pass_shown, stand_ins, own_hosts: gateway.own_hosts() };
        let (way, door, until) = ((shown, found), door.clone(), ended.clone());
        let serving = Box::pin(async move {
            // A sandbox that was refused opens none.
            let Ok(listener) = listener.await else { return Turned::default() };
            gateway.serve(RequestSource { listener: TcpListener::from(listener), pass, door }, until).await
        });
        Ok((Some(way), serving, ended))
    }

    /// An action, unless it is about the project itself where the session works on a copy.
    fn beside_project(&self, session: SessionId, action: Action) -> Result<Action, ResolveError> {
        let yard = self.native.yard(session).map_err(|error| ResolveError(error.to_string()))?;
        let is_own = |path: &&WsPath| std::path::Path::new(&path.0).starts_with(&yard.project);
        match action.paths().into_iter().find(is_own) {
            Some(path) if self.native.shape(session) == Shape::Copied => {
                Err(ResolveError(in_project(&path.0, yard)))
            }
            _ => Ok(action),
        }
    }

    /// Writes the user's home for a leading `~`, as a person or a model means it.
    fn at_home(&self, mut action: Action) -> Action {
        let expand = |path: &mut WsPath| match path.0.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                path.0 = format!("{}{rest}", self.user_home)
            }
            _ => {}
        };
        // The paths of a comparison and of a merge are of the owner's own commands, and stay as they are.
        if !matches!(action.kind(), Kind::Diff | Kind::Merge) {
            action.change_paths(expand);
        }
        action
    }
}

impl Executor for Walls {
    fn routes(&self) -> Vec<Route> {
        vec![Route::Walls]
    }

    fn expect(&self, session: SessionId) {
        // A warden that is gone says so to the next effect.
        self.native.prepare(session).ok();
    }

    fn resolve<'a>(
        &'a self,
        session: SessionId,
        action: Action,
    ) -> BoxFuture<'a, Result<Action, ResolveError>> {
        Box::pin(async move {
            let action = self.at_home(action);
            if matches!(action, Action::Merge(_) | Action::Diff { .. }) {
                return Ok(action);
            }
            let failed = |error: WorkError| ResolveError(error.to_string());
            let yard = self.native.yard(session).map_err(failed)?;
            let workspace = match self.native.shape(session) {
                Shape::Copied => yard.copy(),
                Shape::Walled | Shape::Direct => yard.project.clone(),
            };
            let workspace = workspace.display().to_string();
            // It is canonical already, and stands at that very place in every sandbox.
            if matches!(&action, Action::Exec(command) if command.cwd.0 == workspace) {
                return Ok(action);
            }
            let _lives = Lives::begin(self, session, false);
            self.settle(session).await.map_err(failed)?;
            let request = Request::Resolve { action, workspace };
            let never = CancellationToken::new();
            match self.native.work(session, request, &Isolation::default(), &never).await.map_err(failed)? {
                (Response::Resolved(action), _) => self.beside_project(session, action),
                (Response::Refused { reason }, _) => Err(ResolveError(reason)),
                _ => Err(failed(WorkError::NoAnswer)),
            }
        })
    }

    fn lacks<'a>(&'a self, session: SessionId, path: &'a WsPath) -> BoxFuture<'a, bool> {
        Box::pin(self.is_absent(session, path))
    }

    fn named<'a>(
        &'a self,
        session: SessionId,
        action: &'a Action,
        isolation: &'a Isolation,
    ) -> BoxFuture<'a, Result<Option<Digest>, ResolveError>> {
        Box::pin(async move {
            let Action::Exec(command) = action else { return Ok(None) };
            let _lives = Lives::begin(self, session, false);
            let settled = self.settle(session).await;
            settled.map_err(|error| ResolveError(error.to_string()))?;
            let request = Request::Named { command: command.clone(), path: self.path.clone() };
            let never = CancellationToken::new();
            match self.native.work(session, request, isolation, &never).await {
                Ok((Response::Named(digest), _)) => Ok(Some(digest)),
                Ok((Response::Refused { reason }, _)) => Err(ResolveError(reason)),
                Ok(_) => Err(ResolveError(WorkError::NoAnswer.to_string())),
                Err(error) => Err(ResolveError(error.to_string())),
            }
        })
    }

    fn perform<'a>(&'a self, permit: Permit, io: Io) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            match permit.redeem(&self.seal) {
                Ok(redeemed) => Output::new(self.run(redeemed, io).await),
                Err(error) => Output::failed(error.to_string()),
            }
        })
    }
}

fn report(reply: Response, enforced: Enforced, duration_ms: u64) -> Outcome {
    let (status, report) = match reply {
        Response::Report(report) => (Status::Done, report),
        Response::Diff(report) => (Status::Done, Report::Diff(report)),
        Response::Refused { reason } => (Status::Failed { reason }, Report::Nothing),
        Response::Resolved(_)
        | Response::Named(_)
        | Response::Scanned { .. }
        | Response::References(_)
        | Response::Settled
        | Response::Page { .. } => (status(WorkError::NoAnswer), Report::Nothing),
    };
    Outcome { status, enforced: Some(enforced), duration_ms, report }
}

fn status(error: WorkError) -> Status {
    match error {
        WorkError::Cancelled => Status::Cancelled,
        WorkError::NoAnswer => Status::Unknown,
        WorkError::NoYard(_) | WorkError::Refused(_) => Status::Failed { reason: error.to_string() },
    }
}
