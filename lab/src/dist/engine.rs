//! The image in a container engine: a dockerd of its own, with its own folders and socket and without a
//! network, stopped by its process id.

use super::version;
use anyhow::{Context as _, Result, bail, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    fs::{self, File},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use xtask::check;

/// How long the engine may take to answer, and to end.
const PATIENCE: Duration = Duration::from_secs(120);

/// Loads the image and runs the program from it.
pub(super) fn run(image: &Path) -> Result<()> {
    println!("\n== the image in a container engine");
    if Command::new("dockerd").arg("--version").output().is_err() {
        println!("SKIPPED: dockerd is not installed: apt-get install docker.io");
        return Ok(());
    }
    // A second daemon without a bridge removes the bridge of the first.
    if Path::new("/var/run/docker.pid").exists() {
        println!("SKIPPED: an engine runs here already, and a second one would take its network away");
        return Ok(());
    }
    let engine = Engine::start()?;
    check(engine.docker(&["load", "--quiet", "--input"]).arg(image))?;
    let name = format!("bailey:{}", version());
    let said = engine.said(&["run", "--rm", "--network", "none", &name, "version"])?;
    print!("{said}");
    ensure!(said.contains(version()), "the image holds another version");
    // It was the image's own file system, not this machine's.
    let place = engine.said(&[
        "run",
        "--rm",
        "--network",
        "none",
        "--entrypoint",
        "cat",
        &name,
        "/etc/debian_version",
    ])?;
    ensure!(place.starts_with("11."), "the image is no Debian 11, but {place}");
    Ok(())
}

/// A running engine; it ends with this value.
struct Engine {
    place: TempDir,
    daemon: Child,
}

impl Engine {
    fn start() -> Result<Self> {
        // Sockets have short names, so not below `target/`.
        let place = TempDir::with_prefix("bailey-engine-")?;
        let at = |name: &str| place.path().join(name);
        let log = File::create(at("log"))?;
        let mut daemon = Command::new("dockerd");
        daemon
            .arg("--data-root")
            .arg(at("data"))
            .arg("--exec-root")
            .arg(at("exec"))
            .arg("--pidfile")
            .arg(at("pid"));
        daemon.arg("--host").arg(socket(place.path()));
        daemon.args(["--bridge=none", "--iptables=false", "--ip6tables=false"]);
        daemon.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let mut engine = Self { daemon: daemon.spawn().context("cannot start dockerd")?, place };
        engine.wait_until_it_answers()?;
        Ok(engine)
    }

    fn wait_until_it_answers(&mut self) -> Result<()> {
        let begun = Instant::now();
        while !self.docker(&["version"]).output()?.status.success() {
            if begun.elapsed() > PATIENCE || self.daemon.try_wait()?.is_some() {
                let log = fs::read_to_string(self.place.path().join("log")).unwrap_or_default();
                let last: Vec<&str> = log.lines().rev().take(5).collect();
                bail!("dockerd does not answer; it said last:\n{}", last.join("\n"));
            }
            thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    fn docker(&self, arguments: &[&str]) -> Command {
        let mut docker = Command::new("docker");
        docker.arg("--host").arg(socket(self.place.path())).args(arguments).env_remove("DOCKER_CONTEXT");
        docker
    }

    fn said(&self, arguments: &[&str]) -> Result<String> {
        let output = self.docker(arguments).output().context("cannot run docker")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let wrong = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "`docker {}`: {}\n{said}{wrong}",
            arguments.join(" "),
            output.status
        );
        Ok(said)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let id = Pid::from_raw(self.daemon.id().cast_signed());
        let _ = kill(id, Signal::SIGTERM);
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && matches!(self.daemon.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(100));
        }
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

fn socket(place: &Path) -> String {
    format!("unix://{}", place.join("socket").display())
}
