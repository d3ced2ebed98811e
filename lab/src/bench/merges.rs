//! What it costs to compare a session's changes with the project, to apply them and to take them back, beside
//! `cp -a` of the same files and git's comparison of them.

use super::{
    case::table,
    lab::{finished, mib, peak_below},
};
use anyhow::{Context as _, Result, ensure};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Changed files, and how often each number is measured.
const SIZES: [(usize, usize); 3] = [(10, 10), (1_000, 5), (100_000, 1)];
/// Files in a directory.
const PER_DIRECTORY: usize = 100;
/// What each file holds before a session adds a line to it.
const LINES: usize = 20;

pub(super) fn run(bailey: &Path) -> Result<()> {
    SIZES.iter().try_for_each(|(files, rounds)| measure(bailey, *files, *rounds))
}

/// A project, a home, and a session that changed every file.
struct Changed<'a> {
    bailey: &'a Path,
    root: PathBuf,
    session: String,
    _folder: TempDir,
}

impl<'a> Changed<'a> {
    fn new(bailey: &'a Path, files: usize) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let root = fs::canonicalize(folder.path())?;
        let project = root.join("project");
        fs::create_dir_all(root.join("user"))?;
        for n in 0..files {
            let directory = project.join(format!("d{}", n / PER_DIRECTORY));
            if n % PER_DIRECTORY == 0 {
                fs::create_dir_all(&directory)?;
            }
            fs::write(directory.join(format!("f{n}")), format!("line of {n}\n").repeat(LINES))?;
        }
        let mut changed = Self { bailey, root, session: String::new(), _folder: folder };
        let work = "for d in d*; do for f in $d/*; do echo more >> $f; done; done";
        finished(&mut changed.command(&["sandbox", "run", "--keep", "--", "sh", "-c", work]))?;
        let listed = changed.command(&["--json", "sessions", "list"]).stdout(Stdio::piped()).output()?;
        let listed: serde_json::Value = serde_json::from_slice(&listed.stdout)?;
        let id = listed.get("id").and_then(serde_json::Value::as_str);
        changed.session = id.context("no session was made")?.to_owned();
        Ok(changed)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.bailey);
        command
            .arg("--home")
            .arg(self.root.join("home"))
            .args(arguments)
            .current_dir(self.root.join("project"));
        command.env("HOME", self.root.join("user")).env_remove("BAILEY_HOME");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Runs `bailey sessions` with this; how long it took, and the largest of its processes in KiB.
    fn sessions(&self, command: &str) -> Result<(Duration, u64)> {
        let begin = Instant::now();
        let mut child = self.command(&["sessions", command, &self.session]).spawn()?;
        let peak = peak_below(&mut child)?;
        let status = child.wait()?;
        ensure!(status.success(), "`sessions {command}` ended with {status}");
        Ok((begin.elapsed(), peak))
    }

    /// Whether the line is there that the session added.
    fn is_applied(&self) -> Result<bool> {
        Ok(fs::read_to_string(self.root.join("project/d0/f0"))?.ends_with("more\n"))
    }
}

fn measure(bailey: &Path, files: usize, rounds: usize) -> Result<()> {
    let changed = Changed::new(bailey, files)?;
    let (project, copy) = (changed.root.join("project"), changed.root.join("copy"));
    let names = ["cp -a", "git diff --no-index", "sessions diff", "sessions apply", "sessions undo"];
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); names.len()];
    let mut peaks = [0; 3];
    for _ in 0..rounds {
        let mut took = Vec::new();
        let begin = Instant::now();
        finished(Command::new("cp").arg("-a").arg(&project).arg(&copy))?;
        took.push(begin.elapsed());
        let (diff, peak) = changed.sessions("diff")?;
        peaks[0] = peaks[0].max(peak);
        let (apply, peak) = changed.sessions("apply")?;
        peaks[1] = peaks[1].max(peak);
        ensure!(changed.is_applied()?, "the apply changed nothing");
        let begin = Instant::now();
        let mut git = Command::new("git");
        git.args(["diff", "--no-index"]).arg(&copy).arg(&project).stdout(Stdio::null());
        // It ends with 1 where there is a difference.
        ensure!(git.status()?.code() == Some(1), "git found no difference");
        took.push(begin.elapsed());
        let (undo, peak) = changed.sessions("undo")?;
        peaks[2] = peaks[2].max(peak);
        ensure!(!changed.is_applied()?, "the undo changed nothing");
        took.extend([diff, apply, undo]);
        times.iter_mut().zip(took).for_each(|(times, took)| times.push(took));
        fs::remove_dir_all(&copy)?;
    }
    table(
        &format!("{files} changed files of {LINES} lines"),
        names.iter().map(|name| (*name).to_owned()).zip(times).collect(),
    );
    let [diff, apply, undo] = peaks.map(mib);
    println!("  largest process: diff {diff:.1} MiB, apply {apply:.1} MiB, undo {undo:.1} MiB\n");
    Ok(())
}
