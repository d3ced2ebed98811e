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
    for (what, text) in judge(&Trail::read(bailey, project)?)? {
        say(what, &text);
    }
    replayed(bailey, project)?;
    say("the same", "the session run again from its journal, without the recorded model and without effects");
    own_tests(&project.crate_dir())?;
    say("passed", "`cargo test` in the project itself, outside of the agent");
    Ok(())
}

/// The session once more, from the journal alone.
fn replayed(bailey: &Path, project: &Project) -> Result<()> {
    let listed = command(bailey, project).args(["--json", "sessions", "list"]).output()?;
    let line = listed.stdout.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let session: Value = serde_json::from_slice(line).context("`sessions list` names no session")?;
    let session = session["id"].as_str().context("the session has no name")?;
    let replay = command(bailey, project).args(["replay", session]).output()?;
    if !replay.status.success() {
        bail!("the replay of the session parts from it: {}", String::from_utf8_lossy(&replay.stdout));
    }
    Ok(())
}

/// What a trail shows, each a word and a sentence; an error where it does not show what the demo is about.
fn judge(trail: &Trail) -> Result<Vec<(&'static str, String)>> {
    let credentials = trail.denied("read", "/.ssh/")?;
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
    let tests = trail.exits("cargo test");
    if tests.first() != Some(&101) || tests.last() != Some(&0) {
        bail!(
            "inside the walls `cargo test` ended with {tests:?}, expected to fail first and to pass at last"
        );
    }
    if !trail.has_done("change") || !trail.has_done("merge") {
        bail!("the journal has no finished change, or no finished apply");
    }
    Ok(vec![
        ("refused", format!("reading {} — {}", credentials.0, credentials.1)),
        (
            "refused",
            format!("the network — no route out of the namespace of `git ls-remote`: {lost} refused"),
        ),
        ("allowed", format!("`cargo test` inside the walls — exit codes {tests:?}")),
        ("allowed", "the edit in the session's layer, and its apply to the project".into()),
    ])
}

fn say(what: &str, text: &str) {
    println!("  {what:>8}  {text}");
}

fn own_tests(folder: &Path) -> Result<()> {
    let output = Command::new("cargo")
        .args(["test", "--quiet", "--offline"])
        .current_dir(folder)
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
        Ok(Self::of(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?))
    }

    fn of(entries: Vec<Value>) -> Self {
        let outcome = |entry: &&Value| entry["type"] == "outcome";
        let outcomes = entries.iter().filter(outcome);
        let outcomes = outcomes.map(|entry| (entry["effect"].to_string(), entry.clone())).collect();
        Self { entries, outcomes }
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

#[cfg(test)]
mod tests {
    use super::{Trail, judge};
    use serde_json::{Value, json};

    /// The journal of a demo that did what it says.
    fn good() -> Vec<Value> {
        let exec = |effect: &str, target: &str, exit: i64| {
            let enforced = json!({ "walls": ["user_namespace", "net_namespace"], "out_no_routes": "2" });
            [
                json!({ "type": "intent", "effect": effect, "kind": "exec", "target": target }),
                json!({ "type": "outcome", "effect": effect, "status": "done", "exit": exit, "enforced": enforced }),
            ]
        };
        let work = |effect: &str, kind: &str| {
            [
                json!({ "type": "intent", "effect": effect, "kind": kind, "target": "src/lib.rs" }),
                json!({ "type": "outcome", "effect": effect, "status": "done" }),
            ]
        };
        let key =
            json!({ "type": "denied", "kind": "read", "target": "/home/u/.ssh/id", "reasons": ["a rule"] });
        let network = exec("b", "git ls-remote http://203.0.113.7/x", 128);
        let tests = [exec("a", "cargo test", 101), exec("c", "cargo test", 0)];
        let rest = [work("d", "change"), work("e", "merge")].concat();
        [vec![key], tests.concat(), network.into(), rest].concat()
    }

    fn judged(entries: Vec<Value>) -> String {
        judge(&Trail::of(entries)).map_or_else(|error| format!("{error:#}"), |said| said.len().to_string())
    }

    #[test]
    fn a_trail_that_does_not_show_it_fails() {
        assert_eq!(judged(good()), "4");
        let without = |part: &str, value: &str| {
            let is_it = |entry: &Value| entry.pointer(part).is_some_and(|it| it == value);
            judged(good().into_iter().filter(|entry| !is_it(entry)).collect())
        };
        assert!(without("/type", "denied").contains("no refusal of read"));
        assert!(without("/effect", "b").contains("no finished `git ls-remote`"));
        assert!(without("/effect", "a").contains("ended with [0]"));
        assert!(without("/effect", "c").contains("ended with [101]"));
        assert!(without("/effect", "d").contains("no finished change"));
        assert!(without("/effect", "e").contains("no finished apply"));
        assert!(judged(Vec::new()).contains("no refusal"));
        let with = |effect: &str, part: &str, value: Value| {
            let mut entries = good();
            let outcome = |entry: &&mut Value| entry["type"] == "outcome" && entry["effect"] == effect;
            *entries.iter_mut().find(outcome).unwrap().pointer_mut(part).unwrap() = value;
            judged(entries)
        };
        assert!(
            with("b", "/enforced/walls", json!(["user_namespace"])).contains("without a network namespace")
        );
        assert!(with("b", "/enforced/out_no_routes", json!("0")).contains("no packet"));
        assert!(with("e", "/status", json!("failed")).contains("no finished apply"));
        // The exit code of the network command says nothing about the network.
        assert_eq!(with("b", "/exit", json!(0)), "4");
    }
}
