//! One task with one command inside the walls, against a scripted model on loopback: from start to exit.

use super::{
    case::{Case, compare},
    lab::{Lab, finished, mib, peaks},
};
use anyhow::Result;
use bailey_testkit::{Reply, Request};
use serde_json::json;
use std::{
    path::Path,
    process::{Command, Stdio},
};

const ROUNDS: usize = 50;
const MEMORY_ROUNDS: usize = 10;

pub(super) fn run(bailey: &Path) -> Result<()> {
    let lab = Lab::new(bailey, reply)?;
    let used = lab.home(0)?;
    let mut fresh = 0;
    let cases = vec![
        Case::new("bailey run, one command, a home in use", || finished(&mut lab.run(&used))),
        Case::new("bailey run, one command, a new home", || {
            fresh += 1;
            finished(&mut lab.run(&lab.home(fresh)?))
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
    memory(|| lab.run(&used))
}

fn reply(request: &Request) -> Reply {
    if request.body.contains("tool_result") {
        return Reply::text("done");
    }
    Reply::calls([("c1", "command_run", json!({"command": "true"}))])
}

fn memory(command: impl Fn() -> Command) -> Result<()> {
    let mut all = Vec::new();
    for _ in 0..MEMORY_ROUNDS {
        let mut child = command().spawn()?;
        all.push(peaks(&mut child)?);
    }
    all.sort_unstable();
    let (main, warden) = all.get(all.len() / 2).copied().unwrap_or_default();
    println!("memory of one shot (median of {MEMORY_ROUNDS}, VmHWM)");
    println!(
        "  main {:.1} MiB, warden {:.1} MiB, together {:.1} MiB\n",
        mib(main),
        mib(warden),
        mib(main + warden)
    );
    Ok(())
}
