//! One task with one command inside the walls, against a scripted model on loopback: from start to exit.

use super::case::{Case, compare};
use anyhow::{Context as _, Result, ensure};
use bailey_testkit::{ModelServer, Reply, Request};
use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

const ROUNDS: usize = 50;
const MEMORY_ROUNDS: usize = 10;

pub(super) fn run(bailey: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let root = fs::canonicalize(folder.path())?;
    let server = ModelServer::by(reply);
    let home = |number: usize| -> Result<PathBuf> {
        let home = root.join(format!("home-{number}"));
        fs::create_dir_all(&home)?;
        let config =
            format!("[providers.test]\nwire = \"anthropic\"\nbase_url = \"{}\"\n", server.base_url());
        fs::write(home.join("config.toml"), config)?;
        Ok(home)
    };
    for name in ["project", "user"] {
        fs::create_dir_all(root.join(name))?;
    }
    fs::write(root.join("project/notes"), "one\n")?;
    let used = home(0)?;
    let mut fresh = 0;
    let cases = vec![
        Case::new("bailey run, one command, a home in use", || finished(&mut one_shot(bailey, &root, &used))),
        Case::new("bailey run, one command, a new home", || {
            fresh += 1;
            finished(&mut one_shot(bailey, &root, &home(fresh)?))
        }),
        Case::new("bailey version", || finished(Command::new(bailey).arg("version").stdout(Stdio::null()))),
        Case::new("bailey sessions list", || {
            finished(
                Command::new(bailey)
                    .arg("--home")
                    .arg(&used)
                    .args(["sessions", "list"])
                    .stdout(Stdio::null()),
            )
        }),
        Case::new("/bin/true", || finished(&mut Command::new("/bin/true"))),
    ];
    compare("one shot", ROUNDS, 1, cases)?;
    memory(|| one_shot(bailey, &root, &used))
}

fn reply(request: &Request) -> Reply {
    if request.body.contains("tool_result") {
        return Reply::text("done");
    }
    Reply::calls([("c1", "command_run", json!({"command": "true"}))])
}

fn one_shot(bailey: &Path, root: &Path, home: &Path) -> Command {
    let mut command = Command::new(bailey);
    command.arg("--home").arg(home).args(["run", "--approve", "never", "--model", "test/model", "-C"]);
    command.arg(root.join("project")).arg("do it");
    command.env("HOME", root.join("user")).env_remove("BAILEY_HOME");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn finished(command: &mut Command) -> Result<()> {
    let status = command.status().context("cannot run it")?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// The peaks of the main process and of its warden, looked at until they end.
fn memory(command: impl Fn() -> Command) -> Result<()> {
    let mut peaks = Vec::new();
    for _ in 0..MEMORY_ROUNDS {
        let mut child = command().spawn()?;
        peaks.push(watch(&mut child)?);
    }
    peaks.sort_unstable();
    let (main, warden) = peaks.get(peaks.len() / 2).copied().unwrap_or_default();
    println!("memory of one shot (median of {MEMORY_ROUNDS}, VmHWM)");
    let mb = |kib: u64| kib as f64 / 1024.0;
    println!(
        "  main {:.1} MiB, warden {:.1} MiB, together {:.1} MiB\n",
        mb(main),
        mb(warden),
        mb(main + warden)
    );
    Ok(())
}

fn watch(child: &mut Child) -> Result<(u64, u64)> {
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

/// A process' largest resident set so far, in KiB.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
