//! `cargo xtask test`: what everybody runs before they say that it works.

use crate::{cargo, check, claims, fuzz, layers, prove, root, target_dir, tidy};
use anyhow::{Result, bail};
use std::{
    process::Command,
    time::{Duration, Instant},
};

/// Debian packages that the full run needs.
const PACKAGES: &[&str] = &[
    "bubblewrap",
    "strace",
    "rsync",
    "openssh-client",
    "tmux",
    "dropbear-bin",
    "nodejs",
    "npm",
    "build-essential",
    "git",
    "python3",
    "python3-venv",
    "python3-pytest",
    "iproute2",
    "e2fsprogs",
    "qemu-system-x86",
    "docker.io",
    "chromium",
    "fonts-dejavu-core",
];

/// The tests against programs of others.
const DOUBLES: &str = "(package(bailey-llm) & test(/foreign|aimock/)) | (package(bailey) & \
    test(/^(days::docker|machines|mcp|models|page|telemetry|boot|quickstart|webhook)::/))";

/// What a full run on a clean checkout leaves on the disk, in GiB.
const ROOM_GIB: u64 = 9;

/// Runs the checks; `--all` adds what needs more than this repository, `--install` installs it.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let mut all = false;
    let mut install = false;
    for option in options {
        match *option {
            "--all" => all = true,
            "--install" => install = true,
            other => bail!("`test` has no option `{other}`: there are --all and --install"),
        }
    }
    if all {
        room()?;
    }
    if install {
        install_packages()?;
    }
    let mut steps = Steps::default();
    look(&mut steps, all)?;
    steps.step("build", || {
        check(&mut cargo(&["build", "--workspace", "--all-targets", "--locked"]))?;
        // Else the first test with a control builds it, and the others wait.
        prove::build_controls()
    })?;
    if all {
        steps.step("prove", || prove::run(&["--few"]))?;
        steps.step("fuzz targets", fuzz::compile)?;
    }
    steps.step("tests", || tests(all))?;
    steps.step("demo", || {
        let mut demo = cargo(&["xtask", "demo", "--bailey"]);
        check(demo.arg(target_dir().join("debug/bailey")).stdin(std::process::Stdio::null()))
    })?;
    steps.tell();
    Ok(())
}

/// The tests that take minutes: the power taken from a machine, kills at random moments, a container engine,
/// weeks by the clock. Run it when you changed what they guard.
pub(crate) fn long() -> Result<()> {
    let mut command =
        cargo(&["nextest", "run", "--workspace", "--locked", "--no-fail-fast", "--profile", "long"]);
    check(command.env("BAILEY_TEST_ALL", "1").env("BAILEY_TEST_LONG", "1"))
}

/// The tests against programs of others: model servers, client libraries, browsers, collectors, container
/// engines.
pub(crate) fn doubles() -> Result<()> {
    let mut command = cargo(&["nextest", "run", "--workspace", "--locked", "--no-fail-fast"]);
    command.args(["--ignore-default-filter", "-E", DOUBLES]);
    check(command.env("BAILEY_TEST_ALL", "1"))
}

/// What is seen without running Bailey, in each of the repository's workspaces: for whoever is about to
/// commit.
pub(crate) fn check_all() -> Result<()> {
    let mut steps = Steps::default();
    look(&mut steps, false)?;
    steps.step("fuzz targets", fuzz::compile)?;
    steps.tell();
    Ok(())
}

fn look(steps: &mut Steps, all: bool) -> Result<()> {
    steps.step("format", || check(&mut cargo(&["fmt", "--all", "--check"])))?;
    steps.step("layers", layers::run)?;
    steps.step("claims", || claims::run(&[]))?;
    steps.step("tidy", tidy::run)?;
    steps.step("lints", || {
        check(&mut cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]))
    })?;
    steps.step("no_std core", || {
        // A program without the standard library links the core, and decides with it.
        let target = target_dir().join("no_std").display().to_string();
        let manifest = "tests/no_std/Cargo.toml";
        check(&mut cargo(&[
            "run",
            "--quiet",
            "--locked",
            "--manifest-path",
            manifest,
            "--target-dir",
            &target,
        ]))
    })?;
    steps.step("documentation", || {
        let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--locked", "--quiet"]);
        check(doc.env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    steps.step("dependencies", || deny(all))
}

/// A run that ends for want of room tells nothing about what it tests, and tells it late.
fn room() -> Result<()> {
    let df = Command::new("df").args(["-Pk"]).arg(root()).output()?;
    let said = String::from_utf8_lossy(&df.stdout).into_owned();
    let free =
        said.lines().last().and_then(|line| line.split_whitespace().nth(3)).and_then(|it| it.parse().ok());
    let Some(free): Option<u64> = free else { bail!("`df` does not say how much room there is: {said}") };
    let free = free >> 20;
    println!("{free} GiB of the disk are free; a full run takes {ROOM_GIB}");
    if free < ROOM_GIB {
        bail!("make room beside {}, or take the quick run: `cargo xtask test`", root().display());
    }
    Ok(())
}

fn tests(all: bool) -> Result<()> {
    let nextest = cargo(&["nextest", "--version"]).output().is_ok_and(|output| output.status.success());
    let mut command = if nextest {
        cargo(&["nextest", "run", "--workspace", "--locked", "--no-fail-fast"])
    } else {
        println!("SKIPPED nextest (not installed): using `cargo test`, which is slower");
        cargo(&["test", "--workspace", "--locked", "--no-fail-fast"])
    };
    println!("SKIPPED tests that take minutes: run `cargo xtask long`");
    if all {
        command.env("BAILEY_TEST_ALL", "1");
    } else {
        println!("SKIPPED tests against foreign servers: run `cargo xtask test --all --install`");
    }
    check(&mut command)
}

fn deny(all: bool) -> Result<()> {
    let installed = cargo(&["deny", "--version"]).output().is_ok_and(|output| output.status.success());
    if !installed && !all {
        println!("SKIPPED cargo deny (not installed): run `cargo install --locked cargo-deny`");
        return Ok(());
    }
    if !installed {
        bail!("cargo-deny is not installed: run `cargo xtask test --all --install`");
    }
    // It looks at the crates of every platform, of which a build here brings its own.
    check(&mut cargo(&["fetch", "--locked", "--quiet"]))?;
    check(&mut cargo(&["deny", "--offline", "check", "bans", "licenses", "sources"]))?;
    if !all {
        println!("SKIPPED known vulnerabilities: `cargo xtask test --all` asks the advisory database");
        return Ok(());
    }
    advisories()
}

/// Known vulnerabilities of dependencies, where RustSec's database can be reached.
fn advisories() -> Result<()> {
    let fetched = cargo(&["deny", "--color", "never", "fetch", "db"]).output()?;
    if !fetched.status.success() {
        let said = String::from_utf8_lossy(&fetched.stderr).into_owned();
        let why: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        println!("SKIPPED known vulnerabilities: the advisory database cannot be fetched: {}", why.join(" "));
        return Ok(());
    }
    check(&mut cargo(&["deny", "--offline", "check", "advisories"]))
}

fn install_packages() -> Result<()> {
    let missing: Vec<&str> = PACKAGES.iter().copied().filter(|package| !is_installed(package)).collect();
    if !missing.is_empty() {
        let apt = |arguments: &[&str]| {
            check(
                Command::new("apt-get")
                    .args(arguments)
                    .env("DEBIAN_FRONTEND", "noninteractive")
                    .current_dir(root()),
            )
        };
        apt(&["update", "-qq"])?;
        apt(&[&["install", "-y", "-qq", "--no-install-recommends"], missing.as_slice()].concat())?;
    }
    // What needs it is skipped without it, and says so.
    let npm = target_dir().join("npm");
    let modules = ["deno@2", "playwright-core@1.65.1", "axe-core@4"];
    let name = |module: &str| module.split('@').next().unwrap_or_default().to_owned();
    // All at once, for npm takes away what it was not asked for.
    if !modules.iter().all(|module| npm.join("node_modules").join(name(module)).exists()) {
        std::fs::create_dir_all(&npm)?;
        let install = ["install", "--silent", "--no-save", "--prefix"];
        if !Command::new("npm")
            .args(install)
            .arg(&npm)
            .args(modules)
            .status()
            .is_ok_and(|status| status.success())
        {
            println!("npm brought not all of {modules:?}");
        }
    }
    pip("pip", "openai", "openai==3.54.0");
    pip("doubles", "mockpost", "mockpost==0.3.0");
    // The official messages of OpenTelemetry, which decode what a collector is sent; and a collector.
    pip("otlp", "opentelemetry", "opentelemetry-proto==1.45.2");
    pip("rotel", "rotel", "rotel==0.0.1a15");
    if !cargo(&["deny", "--version"]).output().is_ok_and(|output| output.status.success()) {
        check(&mut cargo(&["install", "--locked", "--quiet", "cargo-deny", "--version", "0.20.2"]))?;
    }
    Ok(())
}

/// Brings a package of Python's into a folder of `target`, where its module is not there yet.
fn pip(folder: &str, module: &str, package: &str) {
    let folder = target_dir().join(folder);
    if folder.join(module).exists() {
        return;
    }
    let mut install = Command::new("python3");
    install.args(["-m", "pip", "install", "--quiet", "--target"]).arg(&folder).arg(package);
    if !install.status().is_ok_and(|status| status.success()) {
        println!("pip brought no {package}");
    }
}

fn is_installed(package: &str) -> bool {
    // Node comes from elsewhere on some machines; what counts is that it is there.
    let program = match package {
        "bubblewrap" => "bwrap",
        "nodejs" => "node",
        "build-essential" => "cc",
        "iproute2" => "ip",
        "python3-pytest" => "pytest-3",
        "e2fsprogs" => "mke2fs",
        "qemu-system-x86" => "qemu-system-x86_64",
        "docker.io" => "dockerd",
        "dropbear-bin" => "dropbear",
        // No program, but a browser without any font ends.
        "fonts-dejavu-core" => return std::path::Path::new("/usr/share/fonts/truetype/dejavu").exists(),
        other => other,
    };
    Command::new("sh")
        .args(["-c", "command -v \"$0\" >/dev/null", program])
        .status()
        .is_ok_and(|status| status.success())
}

/// What ran, and how long it took.
#[derive(Default)]
struct Steps {
    done: Vec<(&'static str, Duration)>,
}

impl Steps {
    fn step(&mut self, name: &'static str, step: impl FnOnce() -> Result<()>) -> Result<()> {
        println!("\n== {name}");
        let begin = Instant::now();
        step().map_err(|error| error.context(format!("`{name}` failed")))?;
        self.done.push((name, begin.elapsed()));
        Ok(())
    }

    fn tell(&self) {
        println!();
        for (name, time) in &self.done {
            println!("{:>7.1} s  {name}", time.as_secs_f64());
        }
        println!("everything holds");
    }
}
