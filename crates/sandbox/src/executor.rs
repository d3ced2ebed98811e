//! The walls as an executor: what the kernel's permits come to.

mod copies;
mod lives;
mod merges;

use crate::{
    config::{Shape, Yard},
    native::{Extras, Native, WorkError},
    running::{Piece, Source},
    wire::{Named, Shown},
    worker::{Reply, Request},
};
use bailey_kernel::{
    BoxFuture, Chunk, Door, Executor, Gateway, Io, Output, Pass, Permit, Redeemed, ResolveError, Route, Seal,
    Way,
};
use bailey_protocol::{
    Action, Command, DiffReport, Digest, Enforced, FileChange, Isolation, MergeKind, Outcome, Outside,
    Report, SessionId, Status, Touched, WsPath,
};
use lives::Lives;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::TcpListener,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, PoisonError},
    time::{Instant, SystemTime, UNIX_EPOCH},
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
    /// What is known of each session's layer; nothing of one that this process did not look at, or lost sight of.
    known: Mutex<BTreeMap<SessionId, Known>>,
    /// Who serves the requests of commands; none where no command has a way to the network.
    gateway: Option<Arc<dyn Gateway>>,
    /// Since when processes live in the background that may change a session's layer at any time.
    living: Mutex<BTreeMap<SessionId, Vec<SystemTime>>>,
    /// Held while a layer is looked at: the first look must be over before anything is done there.
    looking: tokio::sync::Mutex<()>,
    settling: tokio::sync::Mutex<()>,
    /// Held while commits are made ready and handed over, in a folder that each session has one of.
    carrying: tokio::sync::Mutex<()>,
}

/// What this process saw in a layer, so that a scan tells only what is new.
#[derive(Debug, Default)]
struct Known {
    paths: BTreeSet<WsPath>,
    /// Whether it holds something that can never leave it.
    is_holding: bool,
    /// What no outcome has told yet.
    untold: Vec<Touched>,
}

/// What of a command's way to the network its sandbox gets, the serving of it, and what ends that.
type ServedWay =
    (Option<(Shown, oneshot::Sender<OwnedFd>)>, BoxFuture<'static, Vec<String>>, CancellationToken);

impl Walls {
    /// The walls, for permits of the journal with this seal. `user_home` is what `~` stands for in paths, `path` where programs
    /// are looked for.
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
        }
    }

    /// The same, whose commands have a way to the network where they are allowed one.
    #[must_use]
    pub fn with_gateway(self, gateway: Arc<dyn Gateway>) -> Self {
        Self { gateway: Some(gateway), ..self }
    }

    /// Says that a session begins, so that nobody has to look whether its layer holds something.
    pub fn begin(&self, session: SessionId) {
        self.known(|known| drop(known.insert(session, Known::default())));
    }

    async fn run(&self, redeemed: Redeemed, io: Io) -> Outcome {
        let begin = Instant::now();
        let Redeemed { effect, isolation, named, .. } = redeemed;
        let session = effect.session;
        // What is thrown away needs no comparison, which may be what fails.
        let is_discard =
            matches!(&effect.action, Action::Merge(merge) if merge.direction == MergeKind::Discard);
        if !is_discard && let Err(error) = self.settle(session, &[], false).await {
            return Outcome::failed(error.to_string());
        }
        let work = match effect.action {
            Action::Exec(command) => {
                let named = named.map(|digest| Named { digest, path: self.path.clone() });
                return self.exec(session, &command, &isolation, named, io).await;
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
            Action::Diff { .. } => return self.diff(session, &isolation, &io).await,
            Action::Change { files } => return self.change(session, files, &isolation, io).await,
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
        isolation: &Isolation,
        io: Io,
    ) -> Outcome {
        self.look(session, isolation).await;
        let since = SystemTime::now();
        let request = Request::Perform { action: Action::Change { files } };
        let mut outcome = self.work(session, Ok(request), isolation, &io, Instant::now()).await;
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
        isolation: &Isolation,
        named: Option<Named>,
        io: Io,
    ) -> Outcome {
        self.look(session, isolation).await;
        let since = SystemTime::now();
        let _lives = command.background.then(|| Lives::begin(self, session, since));
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
                    Source::Stdout => Chunk::Stdout(bytes),
                    Source::Stderr => Chunk::Stderr(bytes),
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
        let (mut outcome, (), refused, ()) = tokio::join!(run, forward, serving, tell);
        let scanned = self.scan(session, isolation, since).await;
        if let Report::Exec(report) = &mut outcome.report {
            report.refused = refused;
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

    /// A way to the network for a command that asks for one, and the serving of what comes along it until the command has ended.
    fn way(&self, command: &Command, door: &Door) -> Result<ServedWay, String> {
        let ended = CancellationToken::new();
        if !command.network {
            return Ok((None, Box::pin(std::future::ready(Vec::new())), ended));
        }
        let gateway = self.gateway.clone().ok_or("there is no network door here")?;
        let pass = Pass::random().map_err(|error| error.to_string())?;
        let (found, listener) = oneshot::channel();
        let shown = Shown { pass: pass.expose().to_owned(), stand_ins: gateway.stand_ins() };
        let (way, door, until) = ((shown, found), door.clone(), ended.clone());
        let serving = Box::pin(async move {
            // A sandbox that was refused opens none.
            let Ok(listener) = listener.await else { return Vec::new() };
            gateway.serve(Way { listener: TcpListener::from(listener), pass, door }, until).await
        });
        Ok((Some(way), serving, ended))
    }

    /// Sees what the layer holds before this process first does anything there: what a killed command left came there
    /// at an unknown time since the session began.
    async fn look(&self, session: SessionId, isolation: &Isolation) {
        let _alone = self.looking.lock().await;
        if self.native.shape(session) == Shape::Direct {
            return;
        }
        if !self.known(|known| known.contains_key(&session)) {
            // Failing, it leaves the layer unknown, and what the next scan finds is unsure as well.
            self.scan_alone(session, isolation, UNIX_EPOCH).await.ok();
        }
    }

    /// Adds what the session's layer came to hold since, with what the project holds there, to what is to be told. What the host
    /// changed is answered as long as a process lives in the background.
    async fn scan(
        &self,
        session: SessionId,
        isolation: &Isolation,
        since: SystemTime,
    ) -> Result<Outside, WorkError> {
        let _alone = self.looking.lock().await;
        if self.native.shape(session) == Shape::Direct {
            return Ok(Outside::default());
        }
        let scanned = self.scan_alone(session, isolation, since).await;
        scanned.inspect_err(|_| drop(self.known(|known| known.remove(&session))))
    }

    async fn scan_alone(
        &self,
        session: SessionId,
        isolation: &Isolation,
        since: SystemTime,
    ) -> Result<Outside, WorkError> {
        self.settle(session, &[], false).await?;
        let yard = self.native.yard(session)?;
        let of_copy = self.of_copy(session);
        let known = self.known(|known| known.get(&session).map(|it| it.paths.iter().cloned().collect()));
        // What a process in the background changed, it changed at any time since it began.
        let lives = self.living(|living| living.get(&session).into_iter().flatten().copied().min());
        let outside = lives.is_some() && known.is_some();
        let since = if known.is_some() { lives.unwrap_or(since).min(since) } else { begun(yard) };
        let since = since.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let request = Request::Scan {
            upper: yard.upper().display().to_string(),
            project: yard.project.display().to_string(),
            known: of_copy.inward(known.unwrap_or_default()),
            since: u64::try_from(since).unwrap_or(0),
            outside,
            bases: self.native.bases(session, yard),
        };
        // The command is over; its cancellation is not the scan's.
        match self.native.work(session, request, isolation, &CancellationToken::new()).await? {
            (Reply::Scanned { mut touched, is_holding, mut outside }, _) => {
                touched.iter_mut().for_each(|touched| of_copy.name_outward(&mut touched.path));
                outside.paths.iter_mut().for_each(|path| of_copy.name_outward(path));
                self.known(|known| {
                    let known = known.entry(session).or_default();
                    known.is_holding = is_holding;
                    known.paths.extend(touched.iter().map(|touched| touched.path.clone()));
                    known.untold.extend(touched);
                });
                Ok(outside)
            }
            (Reply::Refused { reason }, _) => Err(WorkError::Refused(reason)),
            _ => Err(WorkError::NoAnswer),
        }
    }

    /// What of the session's layer is still to be told.
    fn untold<T: Default>(&self, session: SessionId, with: impl FnOnce(&mut Vec<Touched>) -> T) -> T {
        self.known(|known| known.get_mut(&session).map(|known| with(&mut known.untold)).unwrap_or_default())
    }

    /// Whether the session's layer was looked at, after whatever ran there, and holds nothing.
    fn is_empty(&self, session: SessionId) -> bool {
        if self.living(|living| living.contains_key(&session)) {
            return false;
        }
        self.known(|known| {
            known.get(&session).is_some_and(|known| known.paths.is_empty() && !known.is_holding)
        })
    }

    fn known<T>(&self, with: impl FnOnce(&mut BTreeMap<SessionId, Known>) -> T) -> T {
        with(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn living<T>(&self, with: impl FnOnce(&mut BTreeMap<SessionId, Vec<SystemTime>>) -> T) -> T {
        with(&mut self.living.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes the user's home for a leading `~`, as a person or a model means it.
    fn at_home(&self, mut action: Action) -> Action {
        let expand = |path: &mut WsPath| match path.0.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                path.0 = format!("{}{rest}", self.user_home)
            }
            _ => {}
        };
        match &mut action {
            Action::Read { path } | Action::Stat { path } | Action::List { path } => expand(path),
            Action::Search { root, .. } => expand(root),
            Action::Change { files } => files.iter_mut().for_each(|file| expand(&mut file.path)),
            Action::Exec(command) => expand(&mut command.cwd),
            Action::Diff { .. }
            | Action::Merge(_)
            | Action::Model { .. }
            | Action::Http(_)
            | Action::Fetch(_)
            | Action::Relay(_)
            | Action::Amend(_)
            | Action::Adapt(_)
            | Action::Tool(_) => {}
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
            self.settle(session, &[], false).await.map_err(failed)?;
            let request = Request::Resolve { action, workspace };
            let never = CancellationToken::new();
            match self.native.work(session, request, &Isolation::default(), &never).await.map_err(failed)? {
                (Reply::Resolved(action), _) => Ok(action),
                (Reply::Refused { reason }, _) => Err(ResolveError(reason)),
                _ => Err(failed(WorkError::NoAnswer)),
            }
        })
    }

    fn named<'a>(
        &'a self,
        session: SessionId,
        action: &'a Action,
        isolation: &'a Isolation,
    ) -> BoxFuture<'a, Result<Option<Digest>, ResolveError>> {
        Box::pin(async move {
            let Action::Exec(command) = action else { return Ok(None) };
            let settled = self.settle(session, &[], false).await;
            settled.map_err(|error| ResolveError(error.to_string()))?;
            let request = Request::Named { command: command.clone(), path: self.path.clone() };
            let never = CancellationToken::new();
            match self.native.work(session, request, isolation, &never).await {
                Ok((Reply::Named(digest), _)) => Ok(Some(digest)),
                Ok((Reply::Refused { reason }, _)) => Err(ResolveError(reason)),
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

fn report(reply: Reply, enforced: Enforced, duration_ms: u64) -> Outcome {
    let (status, report) = match reply {
        Reply::Report(report) => (Status::Done, report),
        Reply::Diff(report) => (Status::Done, Report::Diff(report)),
        Reply::Refused { reason } => (Status::Failed { reason }, Report::Nothing),
        Reply::Resolved(_)
        | Reply::Named(_)
        | Reply::Scanned { .. }
        | Reply::References(_)
        | Reply::Settled
        | Reply::Page(_) => (status(WorkError::NoAnswer), Report::Nothing),
    };
    Outcome { status, enforced: Some(enforced), duration_ms, report }
}

/// When the session began. What nobody saw come into its layer may be as old as that: what the project changed since is
/// no base to rely on, what it did not change is.
fn begun(yard: &Yard) -> SystemTime {
    std::fs::metadata(&yard.folder).and_then(|folder| folder.created()).unwrap_or(UNIX_EPOCH)
}

fn status(error: WorkError) -> Status {
    match error {
        WorkError::Cancelled => Status::Cancelled,
        WorkError::NoAnswer => Status::Unknown,
        WorkError::NoYard(_) | WorkError::Refused(_) => Status::Failed { reason: error.to_string() },
    }
}
