//! The guest's first process: this program again, as `/init` of an initial file system.

#![expect(clippy::indexing_slicing, reason = "an index into JSON that is not there is null")]

use anyhow::{Context as _, Result, bail, ensure};
use bailey_testkit::{ModelServer, Reply, Request};
use nix::{
    kmod::{ModuleInitFlags, finit_module},
    mount::{MsFlags, mount},
};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::Write as _,
    os::unix::fs::chroot,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

/// What the console tells besides the program's own lines.
pub(super) const BEGIN: &str = "== begin";
pub(super) const MARKS: &str = "== marks";
pub(super) const VERIFY: &str = "== verify";
pub(super) const LOG: &str = "== log";
pub(super) const END: &str = "== end";

const PATIENCE: Duration = Duration::from_secs(30);

/// What the first process does: `run` works until it is killed, `careless` does so with a program that never
/// waits for the disk, `look` tells what the disk holds.
pub(crate) fn run(mode: &str) -> Result<()> {
    let worked = set_up().and_then(|()| match mode {
        "run" => work(&[]),
        "careless" => work(&[("BAILEY_CONTROL_JOURNAL", "careless")]),
        "look" => look(),
        other => bail!("there is no mode `{other}`"),
    });
    if let Err(error) = worked {
        println!("== error {error:#}");
    }
    // The first process must not end, or the kernel does.
    loop {
        println!("{END}");
        thread::sleep(PATIENCE);
    }
}

fn set_up() -> Result<()> {
    let none = None::<&str>;
    fs::create_dir_all("/root-of-all")?;
    mount(Some("/"), "/root-of-all", none, MsFlags::MS_BIND, none).context("bind /")?;
    for (kind, place) in [("proc", "proc"), ("sysfs", "sys"), ("devtmpfs", "dev"), ("tmpfs", "tmp")] {
        let place = Path::new("/root-of-all").join(place);
        fs::create_dir_all(&place)?;
        mount(Some(kind), &place, Some(kind), MsFlags::empty(), none).context(kind)?;
    }
    // Sandboxes pivot, and that cannot be done from the initial file system itself.
    std::env::set_current_dir("/root-of-all")?;
    mount(Some("."), "/", none, MsFlags::MS_MOVE, none).context("move /")?;
    chroot(".")?;
    std::env::set_current_dir("/")?;
    let mut modules: Vec<_> = fs::read_dir("/modules")?.flatten().map(|entry| entry.path()).collect();
    modules.sort();
    for module in modules {
        finit_module(File::open(&module)?, c"", ModuleInitFlags::empty())
            .with_context(|| module.display().to_string())?;
    }
    let deadline = Instant::now() + PATIENCE;
    while !Path::new("/dev/vda").exists() {
        ensure!(Instant::now() < deadline, "there is no disk");
        thread::sleep(Duration::from_millis(10));
    }
    fs::create_dir_all("/disk")?;
    mount(Some("/dev/vda"), "/disk", Some("ext4"), MsFlags::empty(), none).context("the disk")?;
    let up = Command::new("/usr/sbin/ip").args(["link", "set", "lo", "up"]).status().context("ip")?;
    ensure!(up.success(), "the loopback device: {up}");
    Ok(())
}

fn bailey(arguments: &[&str]) -> Command {
    // A terminal of its own to ask on: the serial line, where the host answers.
    let mut command = Command::new("/usr/bin/setsid");
    command.args(["--ctty", "--wait", "/bailey", "--home", "/disk/home", "--json"]).args(arguments);
    command.env_clear().env("HOME", "/root").env("PATH", "/usr/bin:/usr/sbin").env("TERM", "dumb");
    command
}

fn work(environment: &[(&str, &str)]) -> Result<()> {
    let server = ModelServer::by(reply);
    let config = format!(
        "[providers.test]\nwire = \"anthropic\"\nbase_url = \"{}\"\n\n[limits]\ntool_calls = 1000\n",
        server.base_url()
    );
    let mut file = File::create("/disk/home/config.toml")?;
    file.write_all(config.as_bytes())?;
    file.sync_all()?;
    println!("{BEGIN}");
    let console = File::options().read(true).write(true).open("/dev/ttyS0")?;
    let status = bailey(&["run", "-C", "/disk/project", "--model", "test/model", "count"])
        .envs(environment.iter().copied())
        .stdin(console)
        .status()?;
    bail!("the program ended with {status} before it was killed");
}

/// One command after the other, without end; a command's line is its call's name.
fn reply(request: &Request) -> Reply {
    let results = request.json()["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|message| message["content"].as_array())
        .flatten()
        .filter(|block: &&Value| block["type"] == "tool_result")
        .count();
    let call = format!("count-{}", results + 1);
    Reply::calls([(&call, "command_run", json!({"command": format!("echo {call} >> marks")}))])
}

fn look() -> Result<()> {
    for session in fs::read_dir("/disk/home/sessions").into_iter().flatten().flatten() {
        let marks = fs::read_to_string(session.path().join("upper/marks")).unwrap_or_default();
        marks.lines().for_each(|line| println!("{MARKS} {line}"));
    }
    println!("{BEGIN}");
    let verified = bailey(&["audit", "verify"]).status()?;
    println!("{VERIFY} {}", verified.success());
    println!("{LOG}");
    bailey(&["audit", "log", "-n", "100000"]).status()?;
    Ok(())
}
