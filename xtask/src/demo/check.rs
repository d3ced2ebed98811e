//! Checks the demo against the journal and against the crate itself, never against the recording.

#![expect(clippy::indexing_slicing, reason = "an index into JSON that is not there is null")]

use super::{Project, command};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::{
    collections::HashMap,
    path::Path,
    process::{Command, Stdio},
};

pub(super) fn run(bailey: &Path, project: &Project) -> Result<()> {
    let trail = Trail::read(bailey, project)?;
    let credentials = trail.denied("read", "/.ssh/")?;
    say("refused", &format!("reading {} — {}", credentials.0, credentials.1));
    let network = trail.outcome_of("git ls-remote")?;
    let walls = network["enforced"]["walls"].as_array().context("the command's entry names no walls")?;
    if !walls.iter().any(|wall| wall == "net_namespace") {
        bail!("the network command ran without a network namespace of its own");
    }
    let lost: u64 = network["enforced"]["out_no_routes"].as_str().unwrap_or_default().parse().unwrap_or(0);
    if lost == 0 {
        bail!(
            "no packet of the network command was refused: its namespace counts none without a route (OutNoRoutes)"
        );
    }
    say(
        "refused",
        &format!("the network — no route out of the namespace of `git ls-remote`: {lost} refused"),
    );
    let tests = trail.exits("cargo test");
    if tests.first() != Some(&101) || tests.last() != Some(&0) {
        bail!(
            "inside the walls `cargo test` ended with {tests:?}, expected to fail first and to pass at last"
        );
    }
    say("allowed", &format!("`cargo test` inside the walls — exit codes {tests:?}"));
    if !trail.has_done("change") || !trail.has_done("merge") {
        bail!("the journal has no finished change, or no finished apply");
    }
    say("allowed", "the edit in the session's layer, and its apply to the project");
    own_tests(project)?;
    say("passed", "`cargo test` in the project itself, outside of the agent");
    Ok(())
}

fn say(what: &str, text: &str) {
    println!("  {what:>8}  {text}");
}

fn own_tests(project: &Project) -> Result<()> {
    let output = Command::new("cargo")
        .args(["test", "--quiet", "--offline"])
        .current_dir(project.crate_dir())
        .env_remove("CARGO_TARGET_DIR")
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    bail!("the crate's tests fail outside of the agent:\n{}", String::from_utf8_lossy(&output.stdout))
}

/// The journal's entries.
struct Trail {
    entries: Vec<Value>,
    outcomes: HashMap<String, Value>,
}

impl Trail {
    fn read(bailey: &Path, project: &Project) -> Result<Self> {
        let output = command(bailey, project).args(["--json", "audit", "log", "-n", "100000"]).output()?;
        if !output.status.success() {
            bail!("the journal cannot be read: {}", String::from_utf8_lossy(&output.stderr));
        }
        let text = String::from_utf8(output.stdout)?;
        let entries: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let outcome = |entry: &&Value| entry["type"] == "outcome";
        let outcomes = entries.iter().filter(outcome);
        let outcomes = outcomes.map(|entry| (entry["effect"].to_string(), entry.clone())).collect();
        Ok(Self { entries, outcomes })
    }

    /// The target and the first reason of a refusal.
    fn denied(&self, kind: &str, part: &str) -> Result<(String, String)> {
        let found = self.entries.iter().find(|entry| {
            entry["type"] == "denied" && entry["kind"] == kind && text(&entry["target"]).contains(part)
        });
        let found = found.with_context(|| format!("the journal holds no refusal of {kind} {part}"))?;
        Ok((text(&found["target"]).to_owned(), text(&found["reasons"][0]).to_owned()))
    }

    fn commands<'a>(&'a self, start: &'a str) -> impl Iterator<Item = &'a Value> {
        let intents = self.entries.iter().filter(move |entry| {
            entry["type"] == "intent" && entry["kind"] == "exec" && text(&entry["target"]).starts_with(start)
        });
        intents.filter_map(|entry| self.outcomes.get(&entry["effect"].to_string()))
    }

    fn outcome_of<'a>(&'a self, start: &'a str) -> Result<&'a Value> {
        self.commands(start).next().with_context(|| format!("the journal holds no finished `{start}`"))
    }

    fn exits(&self, start: &str) -> Vec<i64> {
        self.commands(start).filter_map(|outcome| outcome["exit"].as_i64()).collect()
    }

    fn has_done(&self, kind: &str) -> bool {
        self.entries.iter().any(|entry| {
            entry["type"] == "intent"
                && entry["kind"] == kind
                && self
                    .outcomes
                    .get(&entry["effect"].to_string())
                    .is_some_and(|outcome| outcome["status"] == "done")
        })
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
