//! `bailey policy`: the rules in force, and why they decide as they do.

pub(crate) mod decide;
mod explain;
mod extensions;
mod simulate;
mod test;
mod update;

use crate::{
    cli::Policy,
    compose,
    config::Config,
    extensions::Extensions,
    home::Home,
    print::{Printer, Style},
};
use anyhow::{Result, bail};
use bailey_policy::{Answer, Rule};
use serde_json::json;
use std::process::ExitCode;

pub(super) async fn run(home: &Home, command: Policy, printer: &Printer) -> Result<ExitCode> {
    match command {
        Policy::Check => check(home, printer).await,
        Policy::Test { files } => test::run(home, &files, printer),
        Policy::Show { rule } => show(home, rule.as_deref(), printer),
        Policy::Explain(asked) => explain::run(home, asked, printer).await,
        Policy::Decide { trust, .. } => decide::run(home, Some(trust.into()), printer).await,
        Policy::Simulate(asked) => simulate::run(home, asked, printer).await,
        Policy::Update(asked) => update::run(home, asked, printer).await,
        Policy::Extensions(command) => extensions::run(home, command, printer).await,
    }
}

/// The policy of a session that would begin now, and what is odd about its rules.
fn in_force(home: &Home) -> Result<(bailey_policy::Policy, Vec<String>)> {
    let config = Config::load(home)?;
    compose::policy(home, &Extensions::read(&config))
}

async fn check(home: &Home, printer: &Printer) -> Result<ExitCode> {
    compose::recover_law(home, printer).await?;
    let (policy, warnings) = in_force(home)?;
    if printer.is_json() {
        printer.json(&json!({ "ok": true, "digest": policy.digest(), "warnings": warnings }));
        return Ok(ExitCode::SUCCESS);
    }
    for warning in &warnings {
        printer.line(printer.paint(Style::Yellow, &format!("warning: {warning}")));
    }
    printer.line(format!("the rules are well formed (policy {})", policy.digest().short()));
    Ok(ExitCode::SUCCESS)
}

fn show(home: &Home, name: Option<&str>, printer: &Printer) -> Result<ExitCode> {
    let (policy, _) = in_force(home)?;
    let rules: Vec<&Rule> = policy.rules().filter(|rule| name.is_none_or(|name| rule.name == name)).collect();
    if let (Some(name), []) = (name, rules.as_slice()) {
        bail!("there is no rule `{name}`; `bailey policy show` lists them");
    }
    for rule in rules {
        if printer.is_json() {
            printer.json(rule);
            continue;
        }
        printer.line(line(printer, rule, ""));
        if name.is_some() {
            // As JSON, which TOML and YAML files spell alike.
            let shown = json!({ "match": rule.matches, "except": rule.except, "priority": rule.priority });
            let shown = serde_json::to_string_pretty(&without_nothing(shown))?;
            shown.lines().for_each(|line| printer.line(printer.paint(Style::Dim, line)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A rule on one line.
fn line(printer: &Printer, rule: &Rule, after: &str) -> String {
    let style = match rule.answer {
        Answer::Allow => Style::Green,
        Answer::Review => Style::Yellow,
        Answer::Deny => Style::Red,
        Answer::Pass => Style::Dim,
    };
    format!(
        "{}  {}  {}  {}{}",
        printer.paint(style, &format!("{:<6}", rule.answer.name())),
        printer.paint(Style::Dim, &format!("{:<8}", rule.tier.name())),
        printer.paint(Style::Bold, &format!("{:<18}", rule.name)),
        printer.paint(Style::Plain, &rule.text),
        printer.paint(Style::Dim, after),
    )
}

/// The same without fields that say nothing.
fn without_nothing(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Object(fields) => {
            let said = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(said.map(|(name, value)| (name, without_nothing(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nothing).collect()),
        other => other,
    }
}
