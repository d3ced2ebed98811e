//! `cargo xtask fuzz`: hostile bytes for every parser of foreign bytes.
//!
//! The targets are in `fuzz/`, a workspace of its own. They are built with LLVM's coverage counters, which
//! the stable compiler can put in, and run by libFuzzer: what reaches new code is kept in `fuzz/corpus/NAME`
//! and grown from there, in the next run too. The first target is the control: a bug put there on purpose. If
//! it is not found, nothing else counts.

mod log;

use crate::{cargo, root, target_dir};
use anyhow::{Context as _, Result, bail, ensure};
use log::Log;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

/// How long each target runs unless `--seconds` says otherwise.
const SECONDS: u32 = 600;
/// How long the planted bug may take to be found.
const CONTROL_SECONDS: u32 = 600;
/// An input that takes longer is a failure, in seconds.
const INPUT_SECONDS: u32 = 10;
/// More memory is a failure, in MiB.
const MEMORY_MIB: u32 = 2048;

const TRIPLE: &str = "x86_64-unknown-linux-gnu";
/// Counters at every edge and every comparison. The last one keeps comparisons of short texts as calls, so
/// that the fuzzer sees what they were compared to.
const COVERAGE: &[&str] = &[
    "passes=sancov-module",
    "llvm-args=-sanitizer-coverage-level=4",
    "llvm-args=-sanitizer-coverage-inline-8bit-counters",
    "llvm-args=-sanitizer-coverage-pc-table",
    "llvm-args=-sanitizer-coverage-trace-compares",
    "llvm-args=-max-loads-per-memcmp=0",
];

/// The control's name in `fuzz/src/lib.rs`.
const PLANTED: &str = "planted";

/// Builds the targets and runs those that were named, or all.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let wanted = Wanted::of(options)?;
    let all = targets()?;
    if wanted.list {
        all.iter().for_each(|name| println!("{name}"));
        return Ok(());
    }
    if let Some(unknown) = wanted.targets.iter().find(|name| !all.contains(name)) {
        bail!("there is no target `{unknown}`: there are {}", all.join(", "));
    }
    let named = if wanted.targets.is_empty() { all } else { wanted.targets };
    println!("building the targets with coverage counters");
    let program = build()?;
    println!("commit {}, {} s for each of {} targets", commit()?, wanted.seconds, named.len());
    control(&program)?;
    println!(
        "{:<18} {:>12} {:>7} {:>8} {:>7} {:>7}  result",
        "target", "executions", "edges", "features", "corpus", "seconds"
    );
    let mut failed = Vec::new();
    for name in &named {
        let log = Fuzzing { program: &program, name, seconds: wanted.seconds }.run()?;
        println!("{log}");
        failed.extend(log.failure.is_some().then_some(name.as_str()));
    }
    ensure!(failed.is_empty(), "{} of {} targets failed: {}", failed.len(), named.len(), failed.join(", "));
    println!("no failure in {} targets", named.len());
    Ok(())
}

/// Compiles the targets without the engine, so that they do not fall behind the parsers.
pub(crate) fn compile() -> Result<()> {
    let place = workspace()?;
    let mut check = cargo(&["check", "--quiet", "--target-dir"]);
    check.arg(target_dir().join("fuzz-check")).current_dir(place);
    crate::check(check.env_remove("CARGO_TARGET_DIR"))
}

struct Wanted {
    seconds: u32,
    targets: Vec<String>,
    list: bool,
}

impl Wanted {
    fn of(options: &[&str]) -> Result<Self> {
        let mut wanted = Self { seconds: SECONDS, targets: Vec::new(), list: false };
        let mut rest = options;
        while let [option, after @ ..] = rest {
            rest = match (*option, after) {
                ("--seconds", [seconds, after @ ..]) => {
                    let number = seconds.parse().ok().filter(|seconds| *seconds > 0);
                    wanted.seconds =
                        number.with_context(|| format!("`{seconds}` is no number of seconds"))?;
                    after
                }
                ("--target", [name, after @ ..]) => {
                    wanted.targets.push((*name).to_owned());
                    after
                }
                ("--list", after) => {
                    wanted.list = true;
                    after
                }
                (other, _) => bail!("`fuzz` takes --seconds N, --target NAME and --list, not `{other}`"),
            };
        }
        Ok(wanted)
    }
}

/// The names of the targets: each has a folder of seeds.
fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root().join("fuzz/seeds")).context("cannot read fuzz/seeds")? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.retain(|name| name != PLANTED);
    names.sort();
    Ok(names)
}

fn commit() -> Result<String> {
    let git = |arguments: &[&str]| Command::new("git").args(arguments).current_dir(root()).output();
    let head = git(&["rev-parse", "--short", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    let changed = if changed.stdout.is_empty() { "" } else { " with changes" };
    Ok(format!("{}{changed}", String::from_utf8_lossy(&head.stdout).trim()))
}

/// The workspace of the targets. Its lock file is the product's, with the fuzzing engine added by cargo: what
/// is fuzzed is what is released.
fn workspace() -> Result<PathBuf> {
    let place = root().join("fuzz");
    fs::copy(root().join("Cargo.lock"), place.join("Cargo.lock")).context("cannot copy the lock file")?;
    Ok(place)
}

/// Builds the one program that all targets are in.
fn build() -> Result<PathBuf> {
    let place = workspace()?;
    let flags: Vec<String> = COVERAGE.iter().map(|flag| format!("-C{flag}")).collect();
    let target = target_dir().join("fuzz");
    let mut build = cargo(&["build", "--quiet", "--release", "--features", "engine", "--target", TRIPLE]);
    build.arg("--target-dir").arg(&target).current_dir(&place);
    // What is encoded here is split at U+001F, and leaves build scripts alone.
    build.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}")).env_remove("CARGO_TARGET_DIR");
    crate::check(&mut build).context("the targets cannot be built; a C++ compiler is needed, too")?;
    Ok(target.join(TRIPLE).join("release/bailey-fuzz"))
}

/// Finds the planted bug from its seeds alone, or says that this run means nothing.
fn control(program: &Path) -> Result<()> {
    let corpus = corpus(PLANTED);
    if corpus.exists() {
        fs::remove_dir_all(&corpus)?;
    }
    let log = Fuzzing { program, name: PLANTED, seconds: CONTROL_SECONDS }.run()?;
    let found = log.failure.as_deref().is_some_and(|failure| failure.contains("the planted bug was found"));
    ensure!(found, "the bug planted in `{PLANTED}` was not found, so that other results mean nothing: {log}");
    println!("control: the planted bug was found after {} executions", log.executions);
    Ok(())
}

fn corpus(name: &str) -> PathBuf {
    root().join("fuzz/corpus").join(name)
}

/// One run of one target.
struct Fuzzing<'a> {
    program: &'a Path,
    name: &'a str,
    seconds: u32,
}

impl Fuzzing<'_> {
    fn run(&self) -> Result<Log> {
        let corpus = corpus(self.name);
        fs::create_dir_all(&corpus)?;
        let failures = root().join("fuzz/failures");
        fs::create_dir_all(&failures)?;
        let said = target_dir().join("fuzz").join(format!("{}.log", self.name));
        let mut run = Command::new(self.program);
        run.arg(&corpus).arg(root().join("fuzz/seeds").join(self.name));
        run.arg(format!("-max_total_time={}", self.seconds)).arg("-print_final_stats=1");
        run.arg(format!("-timeout={INPUT_SECONDS}")).arg(format!("-rss_limit_mb={MEMORY_MIB}"));
        run.arg(format!("-artifact_prefix={}/{}-", failures.display(), self.name));
        run.env("BAILEY_FUZZ_TARGET", self.name).env("RUST_BACKTRACE", "0");
        run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(&said)?);
        let begun = Instant::now();
        let status = run.status().with_context(|| format!("cannot run {}", self.program.display()))?;
        let text = String::from_utf8_lossy(&fs::read(&said)?).replace(&format!("{}/", root().display()), "");
        Ok(Log::read(self.name, &text, status.success(), begun.elapsed().as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use super::{PLANTED, targets};
    use crate::root;

    #[test]
    fn every_target_has_seeds_and_is_run() {
        let code = std::fs::read_to_string(root().join("fuzz/src/lib.rs")).unwrap();
        let named = code.split("target(\"").skip(1).filter_map(|rest| rest.split('"').next());
        let mut named: Vec<&str> = named.filter(|name| *name != PLANTED).collect();
        named.sort_unstable();
        assert!(named.len() > 20, "{named:?}");
        assert_eq!(targets().unwrap(), named);
    }
}
