//! What the warden grants: the sessions it was told of before the runtime heard anything of the world, and
//! nothing beside.
//!
//! The runtime parses what the world sends, so what it asks for is looked at here as if it came from whoever
//! took the runtime over. It cannot name a project, a folder or a mount: it names a session and a view, and
//! the rest follows from what was said at the start. A command gets the view of a command, never the one that
//! a merge writes through; nothing that the owner hid is shown. A masked file is revealed only if the human
//! did that before, or sits there to be asked: then it may be any of the project.

use crate::{
    config::{Config, Guest, Lease, Shape, Yard},
    seccomp::Calls,
    wire::{Job, Task, View},
    worker::Request,
};
use bailey_kernel::StandIn;
use bailey_protocol::{Isolation, MergeKind, SessionId, WsPath};
use globset::{Glob, GlobBuilder, GlobMatcher};
use std::{
    io,
    path::{Component, Path, PathBuf},
    sync::OnceLock,
};

/// Every sandbox has its own of these; the host's would show its processes, devices and services.
const OF_THE_HOST: &[&str] = &["/dev", "/proc", "/run", "/sys", "/var/run"];

/// Places that nothing shows, with what they lie in.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    places: Vec<PathBuf>,
    patterns: Vec<PathPattern>,
}

/// A glob for paths that nothing shows.
#[derive(Debug)]
struct PathPattern {
    glob: Glob,
    /// Compiled for the first path that lies where the pattern may apply: all of them would be most of what a
    /// warden's start takes.
    compiled: OnceLock<GlobMatcher>,
    /// The deepest directory that the pattern names without a wildcard.
    within: PathBuf,
}

impl PathPattern {
    /// Whether it names this path, or one that it lies in.
    fn covers(&self, path: &Path) -> bool {
        path.starts_with(&self.within) && {
            let compiled = self.compiled.get_or_init(|| self.glob.compile_matcher());
            path.ancestors().any(|above| compiled.is_match(above))
        }
    }
}

impl Hidden {
    /// What the configuration hides.
    ///
    /// # Errors
    /// When a pattern is none.
    pub(crate) fn new(config: &Config) -> io::Result<Self> {
        let pattern = |text: &String| -> Result<PathPattern, globset::Error> {
            let literal = Path::new(text).components().take_while(|part| !is_wild(part));
            let mut within = config.user_home.join(literal.collect::<PathBuf>());
            if !text.contains(WILD) {
                within.pop();
            }
            let home = globset::escape(&config.user_home.to_string_lossy());
            let glob: Glob = GlobBuilder::new(&format!("{home}/{text}")).literal_separator(true).build()?;
            Ok(PathPattern { glob, compiled: OnceLock::new(), within })
        };
        let patterns = config.hidden_in_home.iter().map(pattern).collect::<Result<_, _>>();
        let own = OF_THE_HOST.iter().map(PathBuf::from);
        Ok(Self {
            places: own.chain(config.hidden.iter().cloned()).collect(),
            patterns: patterns.map_err(io::Error::other)?,
        })
    }

    /// Looks at a path that a sandbox is to see read-only.
    ///
    /// # Errors
    /// Says why it must not.
    pub(crate) fn check(&self, path: &str) -> Result<(), String> {
        let at = Path::new(path);
        let is_plain = at.is_absolute()
            && at.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        let is_place = |place: &PathBuf| at.starts_with(place) || place.starts_with(at);
        let is_pattern = |pattern: &PathPattern| pattern.within.starts_with(at) || pattern.covers(at);
        if is_plain && !self.places.iter().any(is_place) && !self.patterns.iter().any(is_pattern) {
            return Ok(());
        }
        Err(format!("`{path}` is, lies in, or holds what no sandbox may see"))
    }
}

const WILD: [char; 4] = ['*', '?', '[', '{'];

fn is_wild(part: &Component<'_>) -> bool {
    part.as_os_str().to_string_lossy().contains(WILD)
}

/// The lease of a session.
///
/// # Errors
/// When the warden was not told of it.
pub(crate) fn lease(config: &Config, session: SessionId) -> Result<&Lease, String> {
    config.sessions.get(&session).ok_or_else(|| format!("session {session} has no workspace"))
}

/// Looks at a job before its sandbox is finished: whether it fits the view that was made for it, and shows no
/// more than the human revealed.
///
/// # Errors
/// Says what is asked for beyond the lease.
pub(crate) fn check(calls: &Calls, lease: &Lease, view: View, job: &Job) -> Result<(), String> {
    let wanted = job.task.view();
    if wanted != view {
        return Err(format!("a {view:?} was made, and the job is one for a {wanted:?}"));
    }
    if let Some(guest) = &lease.guest {
        return is_guests(guest, job);
    }
    let is_revealed = |path: &WsPath| {
        lease.revealed.contains(path) || (lease.is_attended && is_beneath(&lease.yard.project, path))
    };
    if let Some(path) = job.isolation.revealed.iter().find(|path| !is_revealed(path)) {
        return Err(format!(
            "`{path}` was not revealed when this session was opened, and nobody is there to ask"
        ));
    }
    match &job.task {
        Task::Run(..) if !calls.profile().covers(job.isolation.profile) => {
            let (granted, asked) = (calls.profile().name(), job.isolation.profile.name());
            Err(format!(
                "a command has the system calls of `{granted}` here, and this one asks for `{asked}`"
            ))
        }
        Task::Run(..) => Ok(()),
        Task::Git(_) if job.isolation != Isolation::default() || job.way.is_some() => {
            Err("git looks at commits behind the walls of any command, and without a way to the network"
                .into())
        }
        Task::Git(_) => Ok(()),
        Task::Work(request) => places(&lease.yard, request),
    }
}

/// A lease that is one program's serves nothing else, and with nothing more in sight.
fn is_guests(guest: &Guest, job: &Job) -> Result<(), String> {
    let is_command = matches!(&job.task, Task::Run(command, _) if *command == guest.command);
    let is_as_granted = job.isolation == guest.isolation && job.limits == guest.command.limits;
    // Its requests pass as effects of their own; of the stand-ins of keys it has those that were granted.
    let is_granted = |own: &StandIn| guest.variables.contains(&own.variable);
    let is_way =
        job.way.as_ref().is_none_or(|way| guest.command.network && way.stand_ins.iter().all(is_granted));
    if is_command && is_as_granted && is_way {
        return Ok(());
    }
    Err("this place is one program's, and the job is another".into())
}

/// What a sandbox of a lease may see outside its project.
///
/// # Errors
/// Says what is asked for beyond it.
pub(crate) fn reads(hidden: &Hidden, lease: &Lease, wanted: &[String]) -> Result<(), String> {
    let is_of = |guest: &Guest, path: &String| guest.isolation.extra_reads.iter().any(|own| own.0 == *path);
    if let Some(guest) = &lease.guest
        && let Some(path) = wanted.iter().find(|path| !is_of(guest, path))
    {
        return Err(format!("`{path}` is no file of the one program that this place is for"));
    }
    // What is masked is masked in the copy alone.
    let project = &lease.yard.project;
    let is_own = |path: &&String| Path::new(path).starts_with(project) || project.starts_with(path);
    if lease.shape == Shape::Copied
        && let Some(path) = wanted.iter().find(is_own)
    {
        return Err(in_project(path, &lease.yard));
    }
    let is_program = |path: &&String| lease.programs.contains(Path::new(path));
    wanted.iter().filter(|path| !is_program(path)).try_for_each(|path| hidden.check(path))
}

/// Why a session with a copy sees nothing of the project itself.
pub(crate) fn in_project(path: &str, yard: &Yard) -> String {
    let (project, copy) = (yard.project.display(), yard.copy());
    format!(
        "`{path}` shows the project itself (`{project}`), of which this session has a copy without what looks like a secret: look there (`{}`)",
        copy.display()
    )
}

/// Whether a path, as it is written, leads to something in the project.
fn is_beneath(project: &Path, path: &WsPath) -> bool {
    let path = Path::new(&path.0);
    path.starts_with(project) && path.components().all(|part| !matches!(part, Component::ParentDir))
}

/// A merge writes: where to is not the runtime's to say.
fn places(yard: &Yard, request: &Request) -> Result<(), String> {
    let bases = match request {
        Request::Scan { bases, .. } | Request::Diff { bases, .. } | Request::Merge { bases, .. } => bases,
        _ => &None,
    };
    if bases.as_ref().is_some_and(|bases| Path::new(&bases.folder) != yard.bases()) {
        return Err("base texts lie in the session's own folder for them".into());
    }
    if let Request::Settle { project, copy, upper, record, .. } = request {
        let told = [project, copy, upper, record].map(Path::new);
        return match told == [&*yard.project, &*yard.copy(), &*yard.upper(), &*yard.copied()] {
            true => Ok(()),
            false => Err("a copy is brought up to date in its session's own folder".into()),
        };
    }
    let Request::Merge { upper, project, backup, carried, .. } = request else { return Ok(()) };
    if carried.as_ref().is_some_and(|carried| Path::new(&carried.folder) != yard.handover()) {
        return Err("a merge takes commits from its session's own folder for them".into());
    }
    let backup = Path::new(backup);
    let is_one = backup.parent() == Some(&yard.backups())
        && matches!(backup.components().next_back(), Some(Component::Normal(_)));
    if is_one && Path::new(upper) == yard.upper() && Path::new(project) == yard.project {
        return Ok(());
    }
    Err("a merge reads its session's layer, and writes its session's project and backups".into())
}

impl Task {
    /// What its sandbox must see.
    pub(crate) fn view(&self) -> View {
        let request = match self {
            Self::Run(..) => return View::Workspace,
            Self::Git(_) => return View::Commits,
            Self::Work(request) => request,
        };
        match request {
            Request::Resolve { .. }
            | Request::Named { .. }
            | Request::Perform { .. }
            | Request::Page { .. }
            | Request::References { upper: None, .. } => View::Workspace,
            Request::Settle { .. } => View::Copy,
            Request::Scan { .. } | Request::Diff { .. } | Request::References { .. } => View::Layers,
            Request::Merge { merge, .. } if merge.direction == MergeKind::Discard => View::Discard,
            Request::Merge { .. } => View::Merge,
        }
    }
}

#[cfg(test)]
mod tests;
