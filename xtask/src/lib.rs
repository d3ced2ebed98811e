//! The project's own tasks: `cargo xtask TASK`.
//!
//! Tasks that run Bailey itself for long (`kill`, `soak`, `bench`, `dist`) are in `lab`, which links Bailey's
//! crates. This package links none of them, so that it is built in seconds.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a developer's tool talks to its developer")]

mod cedar;
mod claims;
pub mod demo;
mod fuzz;
mod layers;
pub mod metadata;
mod mutants;
mod new_kind;
pub mod prove;
mod test;
mod tidy;

use anyhow::{Result, bail};
use std::{path::PathBuf, process::ExitCode};

const HELP: &str = "\
cargo xtask TASK

  demo            show Bailey repairing a small crate, with a recorded model: no key, no network
  demo --keep     leave the demo's files, as on a terminal
  demo --svg      draw the run anew as docs/demo.svg, the picture of the README
  demo --record   make the recording anew from the model's words in demo/words.json
  check           format, lints, layers, documentation and dependencies, and that each workspace compiles: before a commit
  test            format, lints, layers, documentation and the tests, which change nothing on the host
  test --all      engines, browsers and foreign servers too; --install installs what they need
  long            the tests that take minutes: loss of power, kills at random, a container engine, weeks by the clock
  doubles         the tests against programs of others: model servers, browsers, collectors, engines
  kill            kill Bailey at every write, sync, rename, clone and exec of a turn, and go on
                  (--every N, --from N, --to N, --role main|warden|walls, --when before|after, --release)
  kill --merge apply|undo
                  the same of an apply, or an undo, of files and commits
  kill --random N kill it N times at random moments while several sessions run, apply and undo
  kill --power N  take the power N times from a guest in QEMU that runs it (both: --seed N)
  soak            a daemon with 50 sessions for half an hour, while processes are killed, the model is down and the disk
                  is full (--minutes N, --sessions N, --program FILE; as root with a disk of its own)
  bench [PART]    how long things take, side by side with bubblewrap, posix_spawn, raw SQLite and other proxies
  dist            a tarball, a Debian package, a bill of materials and their digests, in target/dist
                  (--install a linker for older systems, --image an OCI image, --twice build again and compare,
                  --try install, upgrade and remove in fresh systems, --service run the daemon as a service in a
                  guest with systemd, --walk do there what docs/daemon.md and docs/channels.md say, which writes
                  target/evidence/server.txt and telegram.txt, all as root; --program=FILE packs that and builds nothing)
  fuzz            hostile bytes for every parser, guided by coverage, 10 minutes for each of --list
                  (--seconds N, --target NAME, more than once if need be)
  mutants         change the gate's code one place at a time, and look that a test notices each
                  (--file GLOB, --re PATTERN, --shard K/N; places and exceptions: xtask/mutants.toml)
  new-kind        add a kind of action to a copy, by a patch of four files, and run a scenario there
  layers          check which crate depends on which, and how much each brings in
  cedar           decisions beside those of the cedar-policy crate: agreement on random rules, and times
  prove           take each wall and check away in turn, in a build for tests, and look which lines of
                  `bailey prove` turn; writes target/evidence/prove.txt (--few: some of them, as `test --all` does)
  tidy            check that no key or database is tracked, that lines fit a screen, and that words are plain
  claims          check that each test that docs/security/claims.toml names is there
";

/// The whole program.
#[must_use]
pub fn main() -> ExitCode {
    tell(run)
}

/// Runs a task with the program's arguments, and prints its error.
#[must_use]
pub fn tell(run: impl FnOnce(&[&str]) -> Result<()>) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Result<()> {
    match arguments {
        ["demo", options @ ..] => demo::run(options),
        ["check"] => test::check_all(),
        ["test", options @ ..] => test::run(options),
        ["long"] => test::long(),
        ["doubles"] => test::doubles(),
        ["kill" | "bench" | "dist" | "soak", ..] => lab(arguments),
        ["fuzz", options @ ..] => fuzz::run(options),
        ["mutants", options @ ..] => mutants::run(options),
        ["new-kind"] => new_kind::run(),
        ["layers"] => layers::run(),
        ["claims", options @ ..] => claims::run(options),
        ["tidy"] => tidy::run(),
        ["prove", options @ ..] => prove::run(options),
        ["cedar"] => cedar::run(),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        [other, ..] => bail!("there is no task `{other}`\n\n{HELP}"),
    }
}

/// The repository's root.
#[must_use]
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).ancestors().nth(1).map(Into::into).unwrap_or_default()
}

/// Runs a task of `lab`.
///
/// # Errors
/// When it fails, or cannot be built.
pub(crate) fn lab(arguments: &[&str]) -> Result<()> {
    check(cargo(&["run", "--quiet", "--locked", "--package", "lab", "--"]).args(arguments))
}

/// Keeps the output of a long run as a file in `target/evidence`.
///
/// # Errors
/// When the file cannot be written.
pub fn keep(name: &str, text: &str) -> Result<()> {
    let folder = target_dir().join("evidence");
    std::fs::create_dir_all(&folder)?;
    Ok(std::fs::write(folder.join(name), text)?)
}

/// Where cargo builds to.
#[must_use]
pub fn target_dir() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from))
}

/// A cargo command at the root, with the toolchain that built this program.
#[must_use]
pub fn cargo(arguments: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    // Cargo says to what it runs which package that is of; crates that look at it would be compiled anew for
    // each.
    for (name, _) in std::env::vars_os() {
        if ["CARGO_MANIFEST_", "CARGO_PKG_"]
            .iter()
            .any(|of| name.as_encoded_bytes().starts_with(of.as_bytes()))
        {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command.
///
/// # Errors
/// When it cannot be run, or fails.
pub fn check(command: &mut std::process::Command) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command.status().map_err(|error| anyhow::anyhow!("cannot run {shown}: {error}"))?;
    if status.success() { Ok(()) } else { bail!("{shown} ended with {status}") }
}
