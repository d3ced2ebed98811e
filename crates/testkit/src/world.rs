//! A world in memory: an executor with a map of files and five commands.
//!
//! It is **not a sandbox**: it holds nothing back and enforces nothing, and says so (`enforced` is none). It
//! is honest in what a kernel can see: it redeems its permits, keeps to bases, notes what it touched, and
//! ends when cancelled.

mod files;

use bailey_kernel::{BoxFuture, Executor, Io, Output, Permit, ResolveError, Route, Seal};
use bailey_protocol::{
    Action, CallReport, Digest, Effect, FileKind, Isolation, Outcome, Report, SessionId, StatReport, Status,
    WsPath,
};
use files::Files;
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Runs before an effect, and may answer in its place: where tests wait, look, panic or hang.
pub type Hook = Arc<dyn Fn(Effect, &Io) -> BoxFuture<'static, Option<Outcome>> + Send + Sync>;

/// One performed effect, on a clock that only counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// What was performed.
    pub effect: Effect,
    /// When it began.
    pub began: u64,
    /// When it ended; none when it never did.
    pub ended: Option<u64>,
}

impl Span {
    /// Whether both ran at the same time.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let before = |one: &Self, two: &Self| one.ended.is_some_and(|ended| ended < two.began);
        !before(self, other) && !before(other, self)
    }
}

/// The world: a project, and a layer over it that commands and changes write to.
pub struct World {
    seal: Seal,
    workspace: String,
    files: Mutex<Files>,
    hook: Mutex<Option<Hook>>,
    spans: Mutex<Vec<Span>>,
    ticks: AtomicU64,
    /// Whether it does not look what commands name.
    blind: AtomicBool,
}

impl World {
    /// An empty world that takes the permits of the journal with this seal.
    #[must_use]
    pub fn new(seal: Seal, workspace: &str) -> Self {
        Self {
            seal,
            workspace: workspace.into(),
            files: Mutex::default(),
            hook: Mutex::default(),
            spans: Mutex::default(),
            ticks: AtomicU64::default(),
            blind: AtomicBool::default(),
        }
    }

    /// Puts a file into the project, named relative to the workspace.
    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        lock(&self.files).project.insert(self.absolute(name), content.as_ref().to_vec());
    }

    /// What the project holds.
    #[must_use]
    pub fn project(&self, name: &str) -> Option<String> {
        let content = lock(&self.files).project.get(&self.absolute(name)).cloned();
        content.map(|content| String::from_utf8_lossy(&content).into_owned())
    }

    /// What the session sees: its layer over the project.
    #[must_use]
    pub fn seen(&self, name: &str) -> Option<String> {
        let content = lock(&self.files).get(&self.absolute(name));
        content.map(|content| String::from_utf8_lossy(&content).into_owned())
    }

    /// Runs this before every effect from now on.
    pub fn hook(
        &self,
        hook: impl Fn(Effect, &Io) -> BoxFuture<'static, Option<Outcome>> + Send + Sync + 'static,
    ) {
        *lock(&self.hook) = Some(Arc::new(hook));
    }

    /// From now on it does not look at the files that commands name: a control.
    pub fn blind(&self) {
        self.blind.store(true, Ordering::SeqCst);
    }

    /// What was performed so far, in the order of beginnings.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        lock(&self.spans).clone()
    }

    /// The targets of what was performed so far.
    #[must_use]
    pub fn targets(&self) -> Vec<String> {
        self.spans().iter().map(|span| span.effect.action.target()).collect()
    }

    fn absolute(&self, name: &str) -> String {
        if name.starts_with('/') { name.into() } else { format!("{}/{name}", self.workspace) }
    }

    fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::SeqCst)
    }

    fn begin(&self, effect: &Effect) -> usize {
        let mut spans = lock(&self.spans);
        spans.push(Span { effect: effect.clone(), began: self.tick(), ended: None });
        spans.len() - 1
    }

    fn end(&self, index: usize) {
        if let Some(span) = lock(&self.spans).get_mut(index) {
            span.ended = Some(self.tick());
        }
    }

    /// A name as a canonical path: there are no links here.
    fn canonical(&self, path: &WsPath) -> WsPath {
        let joined = self.absolute(&path.0);
        let mut parts: Vec<&str> = Vec::new();
        for part in joined.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop();
                }
                part => parts.push(part),
            }
        }
        WsPath(format!("/{}", parts.join("/")))
    }

    fn perform(&self, action: &Action) -> Outcome {
        let mut files = lock(&self.files);
        match action {
            Action::Read { path } => files.read(path),
            Action::Stat { path } => {
                let found = files.get(&path.0);
                let size = found.as_ref().map_or(0, |content| content.len() as u64);
                output(Report::Stat(StatReport { found: found.map(|_| FileKind::File), size }))
            }
            Action::List { path } => files.list(path),
            Action::Change { files: changes } => files.change(changes),
            Action::Exec(command) => files.exec(command, |name| self.canonical(&WsPath(name.into()))),
            Action::Diff { .. } => files.diff(),
            Action::Merge(merge) => files.merge(merge),
            // A peer that answers with its arguments.
            Action::Tool(tool) => {
                output(Report::Called(CallReport { ok: true, text: tool.args.clone(), touched: Vec::new() }))
            }
            other => Outcome::failed(format!("this small world performs no `{}`", other.kind().name())),
        }
    }
}

impl Executor for World {
    fn routes(&self) -> Vec<Route> {
        vec![Route::Walls, Route::Peer]
    }

    fn resolve<'a>(
        &'a self,
        _: SessionId,
        mut action: Action,
    ) -> BoxFuture<'a, Result<Action, ResolveError>> {
        Box::pin(async move {
            action.change_paths(|path| *path = self.canonical(path));
            Ok(action)
        })
    }

    fn named<'a>(
        &'a self,
        _: SessionId,
        action: &'a Action,
        _: &'a Isolation,
    ) -> BoxFuture<'a, Result<Option<Digest>, ResolveError>> {
        Box::pin(async move {
            let Action::Exec(command) = action else { return Ok(None) };
            if self.blind.load(Ordering::SeqCst) {
                return Ok(None);
            }
            let files = lock(&self.files);
            let named = |word: &String| files.get(&self.canonical(&WsPath(word.clone())).0);
            let contents: Vec<Vec<u8>> = command.argv.iter().filter_map(named).collect();
            let parts: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
            Ok(Some(Digest::of_parts(&parts)))
        })
    }

    fn perform<'a>(&'a self, permit: Permit, io: Io) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let effect = match permit.redeem(&self.seal) {
                Ok(redeemed) => redeemed.effect,
                Err(error) => return Output::failed(error.to_string()),
            };
            let span = self.begin(&effect);
            let hook = lock(&self.hook).clone();
            let answer = match hook {
                Some(hook) => hook(effect.clone(), &io).await,
                None => None,
            };
            let outcome = match answer {
                Some(outcome) => outcome,
                None if io.cancel.is_cancelled() => {
                    Outcome { status: Status::Cancelled, ..output(Report::Nothing) }
                }
                None => self.perform(&effect.action),
            };
            self.end(span);
            Output::new(outcome)
        })
    }
}

/// What was done and brought this.
#[must_use]
pub fn output(report: Report) -> Outcome {
    Outcome { status: Status::Done, enforced: None, duration_ms: 1, report }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
