//! A project, a home and a scripted model on loopback, for whole runs of the program.

use anyhow::{Context as _, Result, ensure};
use bailey_testkit::{ModelServer, Reply, Request};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};
use tempfile::TempDir;

/// Where runs take place.
pub(super) struct Lab<'a> {
    bailey: &'a Path,
    root: PathBuf,
    server: ModelServer,
    _folder: TempDir,
}

impl<'a> Lab<'a> {
    pub(super) fn new(
        bailey: &'a Path,
        author: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let root = fs::canonicalize(folder.path())?;
        for name in ["project", "user"] {
            fs::create_dir_all(root.join(name))?;
        }
        fs::write(root.join("project/notes"), "one\n")?;
        Ok(Self { bailey, root, server: ModelServer::by(author), _folder: folder })
    }

    pub(super) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// A home of its own, that knows the model; the same for the same number.
    pub(super) fn home(&self, number: usize) -> Result<PathBuf> {
        let home = self.root.join(format!("home-{number}"));
        fs::create_dir_all(&home)?;
        let base_url = self.server.base_url();
        let config = format!("[providers.test]\nwire = \"anthropic\"\nbase_url = \"{base_url}\"\n");
        fs::write(home.join("config.toml"), config)?;
        Ok(home)
    }

    /// One task, from start to exit.
    pub(super) fn run(&self, home: &Path) -> Command {
        let mut command = Command::new(self.bailey);
        command.arg("--home").arg(home).args(["run", "--approve", "never", "--model", "test/model", "-C"]);
        command.arg(self.project()).arg("do it");
        command.env("HOME", self.root.join("user")).env_remove("BAILEY_HOME");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

pub(super) fn finished(command: &mut Command) -> Result<()> {
    let status = command.status().context("cannot run it")?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// The peaks of the main process and of its warden in KiB, looked at until they end.
pub(super) fn peaks(child: &mut Child) -> Result<(u64, u64)> {
    let main = child.id();
    let (mut of_main, mut of_warden) = (0, 0);
    while child.try_wait()?.is_none() {
        of_main = of_main.max(peak(main));
        let children = fs::read_to_string(format!("/proc/{main}/task/{main}/children")).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        of_warden = children.map(peak).fold(of_warden, u64::max);
        thread::sleep(Duration::from_millis(1));
    }
    Ok((of_main, of_warden))
}

/// The largest peak of a process and of all below it in KiB, looked at until it ends.
pub(super) fn peak_below(child: &mut Child) -> Result<u64> {
    let mut largest = 0;
    while child.try_wait()?.is_none() {
        let mut waiting = vec![child.id()];
        while let Some(pid) = waiting.pop() {
            largest = largest.max(peak(pid));
            let below = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
            waiting.extend(below.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(largest)
}

/// A process' largest resident set so far, in KiB.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// KiB as MiB.
pub(super) fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
