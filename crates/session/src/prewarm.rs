//! `bailey prewarm`: workspaces prepared ahead, with a project's dependencies loaded, so that a task
//! begins at once.
//!
//! A ready workspace is a session in which a command of yours ran, such as `npm ci`, and nothing else: its
//! private layer and home hold what that brought. A task takes one and goes on in it. Each is run by a
//! process of its own, which binds itself like any other that runs commands; this one only notes which of
//! them are ready.

use crate::{
    compose,
    front::short,
    home::{Home, make_private, write_private},
    print::{Printer, Style},
    program, project,
};
use anyhow::{Context as _, Result, bail};
use bailey_journal::{Fact, Query};
use bailey_protocol::{Kind, SessionId};
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io::Write as _,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The arguments of `bailey prewarm`.
#[derive(Debug, Subcommand)]
pub enum Args {
    /// Run a command in new sessions, and keep each for a task to begin in
    ///
    /// It runs inside the walls, like any command: what it writes stays in the session's private layer and
    /// home. A task takes one with `bailey run --warm`, and goes on there.
    Add(Ready),
    /// List what is ready, and what became stale because a manifest of the project changed
    List,
    /// Let no task take this one
    Remove {
        /// Its session
        session: String,
    },
}

/// The arguments of `bailey prewarm add`.
#[derive(Debug, clap::Args)]
pub struct Ready {
    /// Work in this directory's repository
    #[arg(long, short = 'C', value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Give the command a way to the network: the network door passes the requests that your rules allow
    /// (`bailey guide network`)
    #[arg(long)]
    pub(crate) network: bool,
    /// Make so many ready, one after the other
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=32))]
    pub(crate) count: u8,
    /// The command, such as `npm ci`
    #[arg(required = true, last = true)]
    pub(crate) command: Vec<String>,
}

/// Files that say what a project depends on: where one of them changed, what was loaded for it is of
/// yesterday.
const MANIFESTS: [&str; 23] = [
    "Cargo.lock",
    "Cargo.toml",
    "Gemfile.lock",
    "Pipfile.lock",
    "build.gradle",
    "bun.lock",
    "bun.lockb",
    "composer.lock",
    "deno.lock",
    "flake.lock",
    "go.mod",
    "go.sum",
    "mix.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "package.json",
    "pnpm-lock.yaml",
    "poetry.lock",
    "pom.xml",
    "pyproject.toml",
    "requirements.txt",
    "uv.lock",
    "yarn.lock",
];

/// How the note of a workspace is called that somebody has taken and not opened yet.
const TAKEN: &str = "taken";

/// One ready workspace, as its file in the home says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    session: SessionId,
    project: PathBuf,
    /// What ran in it.
    command: Vec<String>,
    /// Since when it is ready, in seconds since 1970.
    since: u64,
    /// The manifests that lay there before, each with its size and its time of change in nanoseconds.
    manifests: Vec<(String, u64, i128)>,
    /// What the session's lock said when it was taken: with any other text somebody has opened it since.
    #[serde(default)]
    held: String,
}

/// Adds, lists or removes ready workspaces.
pub async fn run(home: &Home, command: Args, printer: &Printer) -> Result<ExitCode> {
    match command {
        Args::Add(ready) => add(home, &ready, printer).await,
        Args::List => list(home, printer),
        Args::Remove { session } => remove(home, &session, printer),
    }
}

async fn add(home: &Home, ready: &Ready, printer: &Printer) -> Result<ExitCode> {
    let (root, _) = project::find(ready.directory.as_deref(), home)?;
    for _ in 0..ready.count {
        let (session, manifests) = (compose::new_session()?, manifests(&root));
        let mut sandbox = program::again();
        sandbox.arg("--home").arg(&home.root).args(printer.is_json().then_some("--json"));
        sandbox.args(["sandbox", "run", "--keep", "--as", &session.to_string(), "-C"]).arg(&root);
        sandbox.args(ready.network.then_some("--network")).arg("--").args(&ready.command);
        let status = sandbox.status().context("cannot start the process of a session")?;
        if !status.success() {
            let name = short(&session);
            printer.warn(&match ran(home, session, printer).await? {
                true => {
                    format!("not ready: the command failed; `bailey sessions diff {name}` shows what it left")
                }
                false => "not ready: the command was not run".into(),
            });
            return Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)));
        }
        let since = now();
        let (project, command, held) = (root.clone(), ready.command.clone(), String::new());
        let mark = Mark { session, project, command, since, manifests, held };
        make_private(&folder(home))?;
        write_private(&home.ready(session), &serde_json::to_vec(&mark)?)?;
        if !printer.is_json() {
            printer.note(&format!("ready: `bailey run --warm \"…\"` begins in {}", short(&session)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a command began in a session.
async fn ran(home: &Home, session: SessionId, printer: &Printer) -> Result<bool> {
    let journal = super::journal(home, printer).await?;
    let entries = journal.entries(Query { session: Some(session), ..Query::default() }).await?;
    Ok(entries.iter().any(|it| matches!(it.entry.fact, Fact::Intent { kind: Kind::Exec, .. })))
}

fn list(home: &Home, printer: &Printer) -> Result<ExitCode> {
    let marks = marks(home)?;
    for mark in &marks {
        let stale = stale(home, mark);
        if printer.is_json() {
            printer.json(&serde_json::json!({
                "session": mark.session, "project": mark.project, "command": mark.command, "since": mark.since,
                "stale": stale,
            }));
            continue;
        }
        let state = match &stale {
            None => printer.paint(Style::Green, "ready"),
            Some(_) => printer.paint(Style::Yellow, "stale"),
        };
        printer.line(format!(
            "{} {state} {} {}{}",
            printer.paint(Style::Bold, &short(&mark.session)),
            printer.paint(Style::Dim, &ago(mark.since)),
            printer.paint(Style::Plain, &format!("{} in {}", mark.command.join(" "), mark.project.display())),
            stale.map(|why| printer.paint(Style::Plain, &format!(": {why}"))).unwrap_or_default(),
        ));
    }
    if marks.is_empty() && !printer.is_json() {
        printer.note(
            "no workspace is ready; prepare one with `bailey prewarm add -- COMMAND`, such as \
             `bailey prewarm add -- npm ci`",
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn remove(home: &Home, name: &str, printer: &Printer) -> Result<ExitCode> {
    let of_name = |mark: &Mark| mark.session.to_string() == name || short(&mark.session) == name;
    let Some(mark) = marks(home)?.into_iter().find(of_name) else {
        bail!("there is no ready workspace `{name}`; `bailey prewarm list` shows all");
    };
    fs::remove_file(home.ready(mark.session))?;
    let name = short(&mark.session);
    printer.note(&format!(
        "no task takes this workspace any more; `bailey sessions discard {name}` discards its changes"
    ));
    Ok(ExitCode::SUCCESS)
}

/// Takes a ready workspace of a project, the newest first, which then is nobody else's as long as this
/// process lives. Where that ends before it has opened the session, it is ready again.
///
/// # Errors
/// When there is none, with what is wrong with those that there are.
pub fn take(home: &Home, root: &Path, printer: &Printer) -> Result<SessionId> {
    if let Some(agent) = &home.agent {
        bail!("prepared workspaces belong to the home's own agent; leave `--warm` or `--agent {agent}` out");
    }
    let mut whys = Vec::new();
    for mark in marks(home)?.into_iter().rev().filter(|mark| mark.project == root) {
        if let Some(why) = stale(home, &mark) {
            whys.push(format!("{} is stale: {why}", short(&mark.session)));
            continue;
        }
        if claim(home, &mark) {
            printer.note(&format!("begins where `{}` ran, {} ago", mark.command.join(" "), ago(mark.since)));
            return Ok(mark.session);
        }
    }
    let whys = if whys.is_empty() { String::new() } else { format!(" ({})", whys.join("; ")) };
    bail!(
        "no workspace of this project is ready{whys}; prepare one with `bailey prewarm add -- COMMAND`, such \
         as `bailey prewarm add -- npm ci`"
    )
}

/// Takes a note away from all others, of whom one succeeds: it bears another name, and is locked until this
/// process ends, however that comes. Once bound, it could not write it back itself.
fn claim(home: &Home, mark: &Mark) -> bool {
    let (note, now) = (home.ready(mark.session), Mark { held: held(home, mark.session), ..mark.clone() });
    let Ok(mut file) = File::options().write(true).open(&note) else { return false };
    let is_ours = file.try_lock().is_ok() && fs::rename(&note, note.with_extension(TAKEN)).is_ok();
    if is_ours {
        // Where it cannot be written it does not count again, which is safe.
        serde_json::to_vec(&now).map(|text| file.set_len(0).and_then(|()| file.write_all(&text))).ok();
        // Its lock is what says that this process lives.
        std::mem::forget(file);
    }
    is_ours
}

/// Has the notes of processes that have ended count again, where none of them opened the session.
fn give_back(home: &Home) -> Result<()> {
    for entry in fs::read_dir(folder(home))?.flatten() {
        let path = entry.path();
        let is_taken = path.extension().is_some_and(|extension| extension == TAKEN);
        let Ok(file) = File::open(&path) else { continue };
        if !is_taken || file.try_lock().is_err() {
            continue;
        }
        match read(&path).filter(|mark| !mark.held.is_empty() && mark.held == held(home, mark.session)) {
            Some(mark) => fs::rename(&path, home.ready(mark.session)),
            None => fs::remove_file(&path),
        }
        // Somebody else was faster, or comes by later.
        .ok();
    }
    Ok(())
}

/// What a session's lock says of who held it last.
fn held(home: &Home, session: SessionId) -> String {
    fs::read_to_string(home.of_session(session, "lock")).unwrap_or_default()
}

/// Why a ready workspace is none any more.
fn stale(home: &Home, mark: &Mark) -> Option<String> {
    if !home.root.join("sessions").join(mark.session.to_string()).is_dir() {
        return Some("its session is gone".into());
    }
    let now = manifests(&mark.project);
    let differs = |name: &&str| {
        let of = |all: &[(String, u64, i128)]| all.iter().find(|(known, ..)| known == *name).cloned();
        of(&now) != of(&mark.manifests)
    };
    let changed: Vec<&str> = MANIFESTS.into_iter().filter(differs).collect();
    (!changed.is_empty()).then(|| format!("{} changed since", changed.join(", ")))
}

/// What is there of [`MANIFESTS`], also where a link leads to it. They are looked at and never opened: a
/// workspace's files are read inside the walls.
fn manifests(root: &Path) -> Vec<(String, u64, i128)> {
    let of = |name: &str| {
        let path = root.join(name);
        let found = path.metadata().or_else(|_| path.symlink_metadata()).ok()?;
        let nanoseconds = i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
        Some((name.to_owned(), found.size(), nanoseconds))
    };
    MANIFESTS.into_iter().filter_map(of).collect()
}

/// All marks that can be read, the oldest first.
fn marks(home: &Home) -> Result<Vec<Mark>> {
    let folder = folder(home);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let cannot = || format!("cannot read `{}`", folder.display());
    give_back(home).with_context(cannot)?;
    let files = fs::read_dir(&folder).with_context(cannot)?.flatten().map(|entry| entry.path());
    let is_ready = |file: &PathBuf| file.extension().is_none_or(|extension| extension != TAKEN);
    let mut marks: Vec<Mark> = files.filter(is_ready).filter_map(|file| read(&file)).collect();
    marks.sort_by_key(|mark| mark.session);
    Ok(marks)
}

fn read(note: &Path) -> Option<Mark> {
    serde_json::from_slice(&fs::read(note).ok()?).ok()
}

fn folder(home: &Home) -> PathBuf {
    home.root.join("pool")
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

/// How long ago, in the largest unit that fits.
fn ago(since: u64) -> String {
    let seconds = now().saturating_sub(since);
    let units = [(86_400, "d"), (3_600, "h"), (60, "min")];
    let unit = units.into_iter().find(|(length, _)| seconds >= *length);
    unit.map_or_else(|| format!("{seconds} s"), |(length, name)| format!("{} {name}", seconds / length))
}
