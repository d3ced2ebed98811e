//! The release program, built so that it runs on older systems than the one that builds it, and so that the
//! same commit gives the same bytes wherever the checkout lies.

use anyhow::{Context as _, Result, bail, ensure};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};
use xtask::{cargo, check, root, target_dir};

/// The oldest C library that a release runs with: Debian 11's and Ubuntu 20.04's.
const GLIBC: &str = "2.31";
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The linker that knows the symbols of old C libraries, and what calls it for cargo; both from PyPI.
const LINKER: &[&str] = &["ziglang==0.17.1", "cargo-zigbuild==0.24.0"];

/// How the program is built here.
pub(super) struct Build {
    /// Where cargo-zigbuild and its linker are; none means the system's own linker and C library.
    tools: Option<PathBuf>,
}

impl Build {
    /// Finds the linker for old C libraries, or installs it into `target/dist-tools`.
    pub(super) fn prepare(install: bool) -> Result<Self> {
        let tools = target_dir().join("dist-tools");
        if !tools.join("bin/cargo-zigbuild").exists() && install {
            check(Command::new("python3").args(["-m", "venv"]).arg(&tools))?;
            check(Command::new(tools.join("bin/pip")).args(["install", "--quiet"]).args(LINKER))?;
        }
        let there = tools.join("bin/cargo-zigbuild").exists();
        Ok(Self { tools: there.then_some(tools) })
    }

    /// Which systems the program runs on.
    pub(super) fn runs_on(&self) -> String {
        match &self.tools {
            Some(_) => format!("Linux x86-64 with glibc {GLIBC} or newer"),
            None => {
                "this machine's C library or a newer one (`--install` brings a linker for older ones)".into()
            }
        }
    }

    /// Builds the program from this checkout.
    pub(super) fn program(&self) -> Result<PathBuf> {
        self.build(&root(), &target_dir().join("dist-build"))
    }

    /// Builds the program once more, from a clone of this commit that lies elsewhere.
    pub(super) fn again(&self, commit: &str) -> Result<PathBuf> {
        let place = target_dir().join("dist-again");
        let clone = place.join("some/other/place");
        if place.exists() {
            fs::remove_dir_all(&place)?;
        }
        check(Command::new("git").args(["clone", "--quiet"]).arg(root()).arg(&clone))?;
        check(Command::new("git").args(["checkout", "--quiet", "--detach", commit]).current_dir(&clone))?;
        self.build(&clone, &place.join("target"))
    }

    fn build(&self, source: &Path, target: &Path) -> Result<PathBuf> {
        let command = if self.tools.is_some() { "zigbuild" } else { "build" };
        let triple = if self.tools.is_some() { format!("{TARGET}.{GLIBC}") } else { TARGET.into() };
        let mut build = cargo(&[command, "--release", "--locked", "-p", "bailey", "--bin", "bailey"]);
        build.args(["--bin", "bailey-boot"]);
        build.arg("--target").arg(triple).arg("--target-dir").arg(target).current_dir(source);
        // No path of the machine that builds stands in the program.
        let home = env::var("CARGO_HOME").or_else(|_| env::var("HOME").map(|home| home + "/.cargo"))?;
        let flags =
            format!("--remap-path-prefix={home}=/cargo --remap-path-prefix={}=/bailey", source.display());
        build
            .env("RUSTFLAGS", flags)
            .env("SOURCE_DATE_EPOCH", super::epoch()?)
            .env_remove("CARGO_TARGET_DIR");
        if let Some(tools) = &self.tools {
            let path = env::var_os("PATH").unwrap_or_default();
            let path = [tools.join("bin")].into_iter().chain(env::split_paths(&path));
            build.env("PATH", env::join_paths(path)?);
        }
        check(&mut build)?;
        let program = target.join(TARGET).join("release/bailey");
        let known = xtask::prove::words_in(&program)?;
        ensure!(known.is_empty(), "the program can be broken: it knows {known:?}");
        fs::canonicalize(&program).with_context(|| format!("no program at {}", program.display()))
    }
}

/// The last commit, when it is all that the checkout holds: two builds are compared from a commit.
///
/// # Errors
/// When the checkout has changes.
pub(super) fn committed() -> Result<String> {
    let changed = super::output("git", &["status", "--porcelain"])?;
    if !changed.is_empty() {
        bail!("two builds are compared from a commit, and the checkout has changes:\n{changed}");
    }
    super::output("git", &["rev-parse", "HEAD"])
}
