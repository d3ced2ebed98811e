//! `cargo xtask mutants`: changes the code where a wrong sign would be a hole, and looks that a test notices
//! each change.
//!
//! Which places, and which exceptions with their reasons, is in `xtask/mutants.toml`.

use crate::root;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::{fmt::Write as _, process::Command};

/// Runs cargo-mutants over the listed files, or over what the options leave of them (`--file GLOB`, `--re
/// PATTERN`, `--shard K/N`), and writes what came of it. A survivor is an error.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let installed = Command::new("cargo").args(["mutants", "--version"]).output();
    if !installed.is_ok_and(|output| output.status.success()) {
        bail!("it needs cargo-mutants: cargo install --locked cargo-mutants");
    }
    let folder = root().join("target/mutants");
    std::fs::create_dir_all(&folder)?;
    let config = root().join("xtask/mutants.toml");
    // It exits with 2 where one survives: what it wrote says which.
    let ended = Command::new("cargo")
        .args(["mutants", "--no-times", "--colors", "never", "--config"])
        .arg(config)
        .arg("--output")
        .arg(&folder)
        .args(options)
        // Each change is compiled and linked for itself: without what only a debugger reads.
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .current_dir(root())
        .status()?;
    let path = folder.join("mutants.out/outcomes.json");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cargo-mutants ended with {ended} and left no {}", path.display()))?;
    let outcomes: Value = serde_json::from_str(&text)?;
    let report = report(&outcomes, options)?;
    print!("{report}");
    if options.is_empty() {
        crate::keep("mutants.txt", &report)?;
    }
    let left = |name: &str| outcomes.get(name).and_then(Value::as_u64).unwrap_or(u64::MAX);
    // A change that makes a test run for ever is noticed.
    match left("missed") {
        0 => Ok(()),
        some => bail!("{some} changes were not noticed by any test"),
    }
}

fn report(outcomes: &Value, options: &[&str]) -> Result<String> {
    let commit = Command::new("git").args(["rev-parse", "--short", "HEAD"]).current_dir(root()).output()?;
    let commit = String::from_utf8_lossy(&commit.stdout).into_owned();
    let mut report = format!("$ cargo xtask mutants {}\ncommit {}\n", options.join(" "), commit.trim());
    for name in ["total_mutants", "caught", "missed", "timeout", "unviable"] {
        writeln!(report, "{name:<14} {}", outcomes.get(name).unwrap_or(&Value::Null))?;
    }
    let each = outcomes.get("outcomes").and_then(Value::as_array).context("it names no outcomes")?;
    for outcome in each {
        let text = |place| outcome.pointer(place).and_then(Value::as_str);
        if let Some(summary @ ("MissedMutant" | "Timeout")) = text("/summary") {
            writeln!(report, "{summary}: {}", text("/scenario/Mutant/name").unwrap_or("without a name"))?;
        }
    }
    Ok(report)
}
