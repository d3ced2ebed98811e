//! `bailey policy extensions`: the programs of the owner's that judge besides the rules, and whether they may
//! be asked.

use crate::{
    cli::Extensions,
    compose::{self, Keys},
    config::{Config, Declared},
    home::Home,
    print::{Printer, Style},
};
use anyhow::{Result, bail};
use bailey_journal::{Journal, Mint};
use bailey_policy::Health;
use serde_json::json;
use std::process::ExitCode;

pub(super) async fn run(home: &Home, command: Extensions, printer: &Printer) -> Result<ExitCode> {
    let config = Config::load(home)?;
    let keys = Keys::load(home, &config, printer)?;
    let (journal, mint) = compose::journal(home, &keys).await?;
    match command {
        Extensions::List => list(&config, &journal, printer).await,
        Extensions::Enable { name } => enable(&config, &mint, &name, printer).await,
    }
}

async fn list(config: &Config, journal: &Journal, printer: &Printer) -> Result<ExitCode> {
    if config.extensions.is_empty() && !printer.is_json() {
        printer
            .note("there are no extensions; `bailey guide extensions` says how to write and configure one");
    }
    for one in &config.extensions {
        let health = journal.extension(&one.name).await?;
        let (style, word) = match health {
            Health::Well => (Style::Green, "asked".to_owned()),
            Health::Restarted(then) => (Style::Yellow, format!("asked; it crashed {then:.0}")),
            Health::Disabled => (Style::Red, "disabled: its kinds are denied".to_owned()),
        };
        let kinds: Vec<&str> = one.kinds.iter().map(|kind| kind.name()).collect();
        let Declared { name, command, late, within_ms, .. } = one;
        if printer.is_json() {
            printer.json(&json!({
                "name": name, "kinds": kinds, "command": command, "late": late, "within_ms": within_ms,
                "disabled": health.is_disabled(),
            }));
            continue;
        }
        printer.line(format!(
            "{}  {}  {}  {}",
            printer.paint(Style::Bold, &format!("{name:<16}")),
            printer.paint(Style::Plain, &format!("{:<24}", kinds.join(", "))),
            printer.paint(style, &word),
            printer.paint(Style::Dim, &command.join(" ")),
        ));
        if health.is_disabled() {
            printer.note(&format!("enable it again with `bailey policy extensions enable {name}`"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn enable(config: &Config, mint: &Mint, name: &str, printer: &Printer) -> Result<ExitCode> {
    if !config.extensions.iter().any(|one| one.name == name) {
        bail!("there is no extension `{name}`; `bailey policy extensions list` shows those of config.toml");
    }
    let was_disabled = mint.journal().extension(name).await?.is_disabled();
    let was_changed = mint.enable_extension(name).await?;
    if printer.is_json() {
        printer.json(&json!({ "name": name, "was_changed": was_changed }));
    } else if was_changed && !was_disabled {
        printer.note(&format!("`{name}` was not disabled; its crash is forgotten"));
    } else if was_changed {
        printer.line(format!("{} {name} is asked again", printer.paint(Style::Green, "enabled:")));
    } else {
        printer.note(&format!("`{name}` was not disabled"));
    }
    Ok(ExitCode::SUCCESS)
}
