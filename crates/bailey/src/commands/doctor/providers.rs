//! The providers of models: whether those that are in use, or whose key is there, answer and take it.
//!
//! `bailey models` asks them, in a process of its own: who hears of the world is bound, and could try no
//! walls.

use super::Finding;
use crate::{home::Home, print::Printer, program};
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::process::{Command, Stdio};

const CHECK: &str = "provider";

/// Asks each for its list of models, all at once; `bailey models` waits a few seconds at most.
pub(super) async fn asked(home: &Home, printer: &Printer) -> Vec<Finding> {
    let models = command(home);
    let told = tokio::task::spawn_blocking(|| told(models));
    let told = printer.waiting(|| "asking the model providers".into(), told).await;
    match told.map_err(anyhow::Error::from).flatten() {
        Ok(told) => findings(&told),
        Err(error) => {
            let says = format!("no provider could be asked: {error:#}");
            vec![Finding::warn(CHECK, says, "what is said above; then: bailey models")]
        }
    }
}

fn command(home: &Home) -> Command {
    let mut models = program::again();
    models.arg("--home").arg(&home.root).args(["--json", "models"]);
    models
}

fn told(mut models: Command) -> Result<Value> {
    let output = models.stdin(Stdio::null()).output().context("`bailey models` cannot be started")?;
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).with_context(|| format!("`bailey models` says: {}", said.trim()))
}

fn findings(told: &Value) -> Vec<Finding> {
    let list = |name: &str| told.get(name).and_then(Value::as_array).into_iter().flatten();
    let is_used =
        |provider: &str| list("uses").any(|used| word(used, "model").split('/').next() == Some(provider));
    let has_key = |provider: &Value| {
        !word(provider, "key_env").is_empty() && provider.get("key_present") == Some(&true.into())
    };
    let mut findings: Vec<Finding> = list("providers")
        .filter(|provider| is_used(word(provider, "provider")) || has_key(provider))
        .map(|provider| {
            finding(
                word(provider, "provider"),
                word(provider, "problem"),
                is_used(word(provider, "provider")),
            )
        })
        .collect();
    // What is wrong with a provider is said of it; here, what is wrong with a model alone. A list may be a
    // part.
    let said: Vec<&str> = list("providers").map(|provider| word(provider, "problem")).collect();
    for used in list("uses").filter(|used| !said.contains(&word(used, "problem"))) {
        let (what, fix) = word(used, "problem").split_once("; ").unwrap_or((word(used, "problem"), ""));
        let of = format!("`{}`, for {}: {what}", word(used, "model"), word(used, "use"));
        findings.push(Finding::warn("model", of, fix));
    }
    findings
}

fn finding(provider: &str, problem: &str, is_used: bool) -> Finding {
    if problem.is_empty() {
        return Finding::ok(CHECK, format!("`{provider}` answers, and accepts its key if it needs one"));
    }
    let again = format!("bailey models {provider}");
    let (what, fix) = match problem.split_once("; ") {
        Some((what, fix)) => (what, format!("{fix}; then: {again}")),
        None => (problem, format!("look at that provider in config.toml, then: {again}")),
    };
    let says = format!("`{provider}`: {what}");
    if is_used { Finding::fail(CHECK, says, fix) } else { Finding::warn(CHECK, says, fix) }
}

fn word<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}
