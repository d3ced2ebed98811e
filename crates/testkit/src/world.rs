//! A world in memory: an executor with a map of files and five commands.
//!
//! It is **not a sandbox**: it holds nothing back and enforces nothing, and says so (`enforced` is none). It is honest
//! in what a kernel can see: it redeems its permits, keeps to bases, notes what it touched, and ends when cancelled.

use bailey_kernel::{BoxFuture, Executor, Io, Output, Permit, ResolveError, Route, Seal};
use bailey_protocol::{
    Action, Blob, ChangedFile, Command, DiffReport, Digest, Effect, ExecReport, FileChange, FileDiff,
    FileKind, FileReport, FileState, ListReport, Listed, Merge, MergeKind, MergeResult, MergeState, Outcome,
    Report, SessionId, StatReport, Status, Stream, Touched, WsPath,
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
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
}

#[derive(Debug, Default)]
struct Files {
    project: BTreeMap<String, Vec<u8>>,
    /// None: deleted.
    layer: BTreeMap<String, Option<Vec<u8>>>,
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
                done(Report::Stat(StatReport { found: found.map(|_| FileKind::File), size }))
            }
            Action::List { path } => files.list(path),
            Action::Change { files: changes } => files.change(changes),
            Action::Exec(command) => files.exec(command, |name| self.canonical(&WsPath(name.into()))),
            Action::Diff { .. } => files.diff(),
            Action::Merge(merge) => files.merge(merge),
            other => Outcome::failed(format!("this small world performs no `{}`", other.kind().name())),
        }
    }
}

impl Executor for World {
    fn routes(&self) -> Vec<Route> {
        vec![Route::Walls]
    }

    fn resolve<'a>(
        &'a self,
        _: SessionId,
        mut action: Action,
    ) -> BoxFuture<'a, Result<Action, ResolveError>> {
        Box::pin(async move {
            match &mut action {
                Action::Read { path } | Action::Stat { path } | Action::List { path } => {
                    *path = self.canonical(path);
                }
                Action::Change { files } => {
                    files.iter_mut().for_each(|file| file.path = self.canonical(&file.path));
                }
                Action::Exec(command) => command.cwd = self.canonical(&command.cwd),
                _ => {}
            }
            Ok(action)
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
                    Outcome { status: Status::Cancelled, ..done(Report::Nothing) }
                }
                None => self.perform(&effect.action),
            };
            self.end(span);
            Output::new(outcome)
        })
    }
}

impl Files {
    fn get(&self, path: &str) -> Option<Vec<u8>> {
        match self.layer.get(path) {
            Some(content) => content.clone(),
            None => self.project.get(path).cloned(),
        }
    }

    /// Writes to the layer; answers what the project held when that is the first time.
    fn set(&mut self, path: &WsPath, content: Option<Vec<u8>>) -> Option<Touched> {
        let first = !self.layer.contains_key(&path.0);
        self.layer.insert(path.0.clone(), content);
        let base = self.project.get(&path.0).map(|content| Digest::of(content));
        first.then(|| Touched { path: path.clone(), base, unsure: false })
    }

    fn read(&self, path: &WsPath) -> Outcome {
        let Some(content) = self.get(&path.0) else { return Outcome::failed("no such file") };
        let (size, digest) = (content.len() as u64, Some(Digest::of(&content)));
        done(Report::File(FileReport { content: Blob(content), size, digest, mode: 0o644 }))
    }

    fn list(&self, path: &WsPath) -> Outcome {
        let names = self.project.keys().chain(self.layer.keys()).filter(|name| self.get(name).is_some());
        let mut entries: BTreeMap<String, Listed> = BTreeMap::new();
        for name in names {
            let Some(rest) = WsPath(name.clone()).relative_to(&path.0).map(str::to_owned) else { continue };
            let (name, kind) = match rest.split_once('/') {
                Some((folder, _)) => (folder.to_owned(), FileKind::Directory),
                None => (rest, FileKind::File),
            };
            entries.insert(name.clone(), Listed { name, kind, size: 0 });
        }
        done(Report::List(ListReport { entries: entries.into_values().collect(), more: 0 }))
    }

    fn change(&mut self, changes: &[FileChange]) -> Outcome {
        let digest = |content: Option<Vec<u8>>| content.map(|content| Digest::of(&content));
        for change in changes {
            if digest(self.get(&change.path.0)) != change.base {
                return Outcome::failed(format!("`{}` is not what it was when it was read", change.path));
            }
        }
        let mut files = Vec::new();
        for FileChange { path, base, new } in changes {
            let new = new.as_ref().map(|blob| blob.0.clone());
            let now = digest(new.clone());
            let touched = self.set(path, new);
            files.push(ChangedFile { path: path.clone(), old: *base, new: now, touched });
        }
        done(Report::Changed { files })
    }

    /// `echo WORDS`, `cat FILE`, `write FILE WORDS`, `true` and `false`; `sh -c LINE` is cut at white space.
    fn exec(&mut self, command: &Command, canonical: impl Fn(&str) -> WsPath) -> Outcome {
        let mut words: Vec<String> = command.argv.clone();
        if let [_, dash_c, line] = words.as_slice()
            && dash_c == "-c"
        {
            words = line.split_whitespace().map(str::to_owned).collect();
        }
        let mut report = ExecReport { exit: Some(0), ..ExecReport::default() };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["true", ..] => {}
            ["false", ..] => report.exit = Some(1),
            ["echo", rest @ ..] => report.stdout = stream(format!("{}\n", rest.join(" ")).as_bytes()),
            ["cat", name] => match self.get(&canonical(name).0) {
                Some(content) => report.stdout = stream(&content),
                None => {
                    report.exit = Some(1);
                    report.stderr = stream(b"cat: no such file\n");
                }
            },
            ["write", name, rest @ ..] => {
                report.touched.extend(self.set(&canonical(name), Some(rest.join(" ").into_bytes())));
            }
            _ => {
                report.exit = Some(127);
                report.stderr = stream(b"sh: not found\n");
            }
        }
        done(Report::Exec(report))
    }

    fn diff(&self) -> Outcome {
        let state = |content: &Vec<u8>| FileState {
            state: Digest::of(content),
            kind: FileKind::File,
            mode: 0o644,
            size: content.len() as u64,
            content: Some(Blob(content.clone())),
        };
        let mut files = Vec::new();
        for (path, new) in &self.layer {
            let old = self.project.get(path);
            if old != new.as_ref() {
                let (old, new) = (old.map(state), new.as_ref().map(state));
                files.push(FileDiff {
                    path: WsPath(path.clone()),
                    old,
                    new,
                    refused: None,
                    remarks: Vec::new(),
                });
            }
        }
        done(Report::Diff(DiffReport { files }))
    }

    fn merge(&mut self, merge: &Merge) -> Outcome {
        if merge.direction == MergeKind::Discard {
            self.layer.clear();
            return done(Report::Merged { files: Vec::new() });
        }
        let mut results = Vec::new();
        for file in &merge.files {
            let (from, to) = match merge.direction {
                MergeKind::Apply => (file.base, file.new),
                _ => (file.new, file.base),
            };
            let state = self.move_one(&file.path.0, from, to);
            results.push(MergeResult { path: file.path.clone(), state });
        }
        done(Report::Merged { files: results })
    }

    /// An apply takes its content from the layer; an undo from what was kept beside it.
    fn move_one(&mut self, path: &str, from: Option<Digest>, to: Option<Digest>) -> MergeState {
        let now = self.project.get(path).map(|content| Digest::of(content));
        if now == to {
            return MergeState::Already;
        }
        if now != from {
            return MergeState::Conflict { reason: "somebody changed it meanwhile".into() };
        }
        let kept = format!("kept:{path}");
        let layer = self.layer.get(path).cloned().flatten();
        let sources = [layer, self.project.get(&kept).cloned()];
        let content = sources.into_iter().flatten().find(|content| Some(Digest::of(content)) == to);
        match (to, content) {
            (Some(_), None) => return MergeState::Failed { reason: "nobody has that content".into() },
            (_, content) => {
                if let Some(old) = self.project.remove(path) {
                    self.project.insert(kept, old);
                }
                if let Some(content) = content {
                    self.project.insert(path.into(), content);
                }
            }
        }
        MergeState::Done
    }
}

/// An output that was done and brought this.
#[must_use]
pub fn output(report: Report) -> Outcome {
    done(report)
}

fn done(report: Report) -> Outcome {
    Outcome { status: Status::Done, enforced: None, duration_ms: 1, report }
}

fn stream(bytes: &[u8]) -> Stream {
    Stream { head: Blob(bytes.to_vec()), tail: Blob::default(), total: bytes.len() as u64 }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
