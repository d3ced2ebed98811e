//! An apply or an undo of files and commits, killed at a call: each path is old or new and whole, the
//! repository is one that git finds nothing wrong with, and the same command again ends the work.

use super::calls::Call;
use super::check::nothing_left;
use super::stage::Stage;
use super::trace::{self, Role, Traced, When};
use anyhow::{Context as _, Result, ensure};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Apply,
    Undo,
}

impl Way {
    /// The subcommand of `sessions`.
    pub(super) fn name(self) -> &'static str {
        if self == Self::Apply { "apply" } else { "undo" }
    }

    /// What it says where there is nothing left to do.
    fn nothing(self) -> &'static str {
        if self == Self::Apply {
            "no changes that can be applied"
        } else {
            "applied nothing that could be undone"
        }
    }
}

/// What the session does: changes, deletes, makes, links, and commits half of it; of `sides` it changes the
/// last line, and the user the first.
const WORK: &str = "set -e; export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@example.invalid GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@example.invalid
    echo two >notes; rm gone; git add --all; git commit -qm first
    mkdir -p made/deep; echo new >made/deep/file; chmod 755 run; ln -s notes link; git add --all; git commit -qm second
    echo loose >loose; printf '1\\n2\\nthree\\n' >sides";

/// A project in git, with a session that did its work.
pub(super) struct Yard {
    stage: Stage,
    way: Way,
    session: String,
    /// The project before the command, and after it.
    from: State,
    to: State,
    /// How often the user changed `sides`.
    edits: u32,
}

/// The files of a project, and the commit of its branch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    files: BTreeMap<PathBuf, String>,
    main: String,
}

impl Yard {
    /// A new one, up to where the command is to run.
    pub(super) fn new(program: &Path, way: Way) -> Result<Self> {
        let stage = Stage::new(program)?;
        for (name, text) in [("gone", "gone\n"), ("run", "run\n"), ("sides", "1\n2\n3\n")] {
            fs::write(stage.project().join(name), text)?;
        }
        let project = stage.project();
        for line in ["init -q -b main", "add --all", "commit -qm start"] {
            git(&project, &line.split(' ').collect::<Vec<_>>())?;
        }
        let arguments = ["sandbox", "run", "--keep", "--", "sh", "-c", WORK];
        let output = stage.bailey(&arguments).current_dir(&project).output()?;
        ensure!(output.status.success(), "the session's work: {}", text(&output));
        let session = stage.session()?.context("there is no session")?;
        let start = State::of(&project)?;
        let mut yard = Self { stage, way, session, from: start.clone(), to: start, edits: 0 };
        yard.edit()?;
        // What it comes to is what a run comes to that nobody kills.
        yard.merge("apply")?;
        yard.to = State::of(&project)?;
        ensure!(yard.to.main != yard.from.main, "the commits did not arrive");
        match way {
            Way::Apply => {
                yard.merge("undo")?;
                yard.edit()?;
            }
            Way::Undo => std::mem::swap(&mut yard.from, &mut yard.to),
        }
        let now = State::of(&project)?;
        ensure!(now == yard.from, "before the command, the project holds {now:?} and not {:?}", yard.from);
        Ok(yard)
    }

    /// The user changes the first line of `sides`, so that the next apply has two sides to put together.
    fn edit(&mut self) -> Result<()> {
        self.edits += 1;
        let user = format!("user {}\n2\n", self.edits);
        let path = self.stage.project().join("sides");
        fs::write(&path, format!("{user}3\n"))?;
        for (state, last) in [(&mut self.from, "3"), (&mut self.to, "three")] {
            state.files.insert("sides".into(), format!("644 {user}{last}\n"));
        }
        Ok(())
    }

    /// Runs the command under the driver.
    pub(super) fn traced(
        &self,
        role: Role,
        when: When,
        aim: &mut dyn FnMut(usize, &Call) -> bool,
    ) -> Result<Traced> {
        let mut command = self.stage.bailey(&["sessions", self.way.name(), &self.session]);
        command.current_dir(self.stage.project());
        trace::run(&command, self.stage.folder(), role, when, aim)
    }

    /// What must hold when it was killed.
    pub(super) fn after_kill(&self, program: &Path) -> Result<()> {
        nothing_left(&self.stage, program)?;
        let project = self.stage.project();
        State::of(&project)?.is_between(&self.from, &self.to)?;
        git(&project, &["fsck", "--strict", "--no-dangling"]).map(drop)
    }

    /// The same command again, and what must hold then.
    pub(super) fn again(&self, program: &Path) -> Result<()> {
        self.merge(self.way.name())?;
        self.whole(program)
    }

    /// Goes back to where the command is to run, for another kill.
    pub(super) fn back(&mut self) -> Result<()> {
        let mut now = State::of(&self.stage.project())?;
        // Where git was what was killed, the files came with one apply and the commits with the next.
        for _ in 0..2 {
            if now != self.from {
                self.merge(if self.way == Way::Apply { "undo" } else { "apply" })?;
                now = State::of(&self.stage.project())?;
            }
        }
        ensure!(now == self.from, "once more, the project holds {now:?} and not {:?}", self.from);
        if self.way == Way::Apply { self.edit() } else { Ok(()) }
    }

    /// What must hold at the end.
    pub(super) fn whole(&self, program: &Path) -> Result<()> {
        nothing_left(&self.stage, program)?;
        let project = self.stage.project();
        let now = State::of(&project)?;
        ensure!(now == self.to, "the project holds {now:?} and not {:?}", self.to);
        let status = git(&project, &["status", "--porcelain"])?;
        let expected = if self.way == Way::Apply { " M sides\n?? loose\n" } else { " M sides\n" };
        ensure!(status == expected, "git sees other changes than were left uncommitted: {status}");
        let left: Vec<PathBuf> = paths(&project)?.into_iter().filter(|path| is_passing(path)).collect();
        ensure!(left.is_empty(), "something is left on its way: {left:?}");
        self.stage.verify()
    }

    fn merge(&self, what: &str) -> Result<()> {
        let output = self.stage.bailey(&["sessions", what, &self.session]).output()?;
        let is_over = output.status.success() || text(&output).contains(self.way.nothing());
        ensure!(is_over, "sessions {what}: {}", text(&output));
        Ok(())
    }
}

impl State {
    fn of(project: &Path) -> Result<Self> {
        let all = paths(project)?;
        let own = all.into_iter().filter(|path| !path.starts_with(".git") && !is_passing(path));
        let files = own.map(|path| Ok((path.clone(), shape(&project.join(path))?))).collect::<Result<_>>()?;
        Ok(Self { files, main: git(project, &["rev-parse", "main"])?.trim().to_owned() })
    }

    /// Whether each path is as in one or the other of two states, and so is the branch.
    fn is_between(&self, one: &Self, other: &Self) -> Result<()> {
        let known = self.files.keys().chain(one.files.keys()).chain(other.files.keys());
        for path in known {
            let now = self.files.get(path);
            ensure!(
                now == one.files.get(path) || now == other.files.get(path),
                "`{}` is neither old nor new: {now:?}",
                path.display()
            );
        }
        ensure!(self.main == one.main || self.main == other.main, "the branch is at {}", self.main);
        Ok(())
    }
}

/// The control: a torn file, a foreign file and a branch of another commit are each noticed.
pub(super) fn control() -> Result<()> {
    let state = |files: &[(&str, &str)], main: &str| State {
        files: files.iter().map(|(path, shape)| (PathBuf::from(path), (*shape).to_owned())).collect(),
        main: main.to_owned(),
    };
    let (old, new) = (state(&[("a", "old")], "1"), state(&[("a", "new"), ("b", "new")], "2"));
    let good = [state(&[("a", "old"), ("b", "new")], "1"), old.clone(), new.clone()];
    for state in &good {
        state.is_between(&old, &new)?;
    }
    let torn = [
        state(&[("a", "ne")], "1"),
        state(&[("a", "old"), ("c", "x")], "1"),
        state(&[], "1"),
        state(&[("a", "new")], "3"),
    ];
    for state in &torn {
        ensure!(state.is_between(&old, &new).is_err(), "the check does not see that {state:?} is torn");
    }
    Ok(())
}

fn shape(path: &Path) -> Result<String> {
    let found = fs::symlink_metadata(path)?;
    if found.is_symlink() {
        return Ok(format!("link {}", fs::read_link(path)?.display()));
    }
    let mode = found.permissions().mode() & 0o777;
    if found.is_dir() {
        Ok(format!("{mode:o}"))
    } else {
        Ok(format!("{mode:o} {}", fs::read_to_string(path)?))
    }
}

/// All paths below a folder, relative to it.
fn paths(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut waiting) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(next)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                waiting.push(entry.path());
            }
            found.push(entry.path().strip_prefix(folder)?.to_path_buf());
        }
    }
    Ok(found)
}

/// A name that a merge uses on the way.
fn is_passing(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(".bailey-merge-") || name.ends_with(".lock")
}

fn git(project: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    command
        .current_dir(project)
        .args(["-c", "user.name=x", "-c", "user.email=x@example.invalid"])
        .args(arguments);
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_OPTIONAL_LOCKS", "0");
    let output = command.stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "git {arguments:?}: {}", text(&output));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}
