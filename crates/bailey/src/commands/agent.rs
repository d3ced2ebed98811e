//! `bailey agent`: the home's named agents.

use crate::{
    agents::{self, Limits, Settings},
    cli::Agent,
    config::Config,
    home::Home,
    identity,
    print::{Printer, Style},
};
use anyhow::Result;
use bailey_kernel::Paper;
use serde_json::json;
use std::process::ExitCode;

pub(super) fn run(home: &Home, asked: Agent, printer: &Printer) -> Result<ExitCode> {
    match asked {
        Agent::New { name, model, tools, tokens } => {
            let limits = Limits { session_tokens: tokens, ..Limits::default() };
            let settings = Settings { model, tools: Some(tools).filter(|tools| !tools.is_empty()), limits };
            let made = agents::make(home, &name, &settings)?;
            // What it cannot be is found before it is anything.
            if let Err(mistake) = Config::load(&made) {
                agents::remove(home, &name, &[])?;
                return Err(mistake);
            }
            if printer.is_json() {
                printer.json(&json!({ "agent": name, "settings": made.agent_settings() }));
                return Ok(ExitCode::SUCCESS);
            }
            printer.note(&format!(
                "the agent `{name}` was made; use it with `bailey run --agent {name} \"…\"`. Its settings \
                 are in `{}`; for a personality of its own, write `{}` and run \
                 `bailey soul accept --agent {name}`",
                made.agent_settings().display(),
                made.paper(Paper::Soul).display()
            ));
        }
        Agent::List => list(home, printer)?,
        Agent::Remove { name } => {
            let config = Config::load(home)?;
            let of_agent = config.channels.iter().filter(|(_, it)| it.agent.as_deref() == Some(&name));
            agents::remove(home, &name, &of_agent.map(|(channel, _)| channel.as_str()).collect::<Vec<_>>())?;
            printer.note(&format!(
                "the agent `{name}` was removed; you can still look at its sessions, and continue them only \
                 with a new agent of the same name"
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(home: &Home, printer: &Printer) -> Result<()> {
    let names = agents::names(home)?;
    if names.is_empty() && !printer.is_json() {
        printer.note("this home has only its own agent; `bailey agent new --help` says how to add one");
    }
    for name in names {
        let of_agent = home.of_agent(Some(&name))?;
        let config = Config::load(&of_agent);
        let soul =
            identity::read_soul(&of_agent).and_then(|text| identity::standing(&of_agent, text.as_deref()));
        if printer.is_json() {
            let (config, problem) = (config.as_ref().ok(), config.as_ref().err().map(ToString::to_string));
            printer.json(&json!({
                "agent": name,
                "settings": of_agent.agent_settings(),
                "model": config.and_then(|config| config.model.clone()),
                "tools": config.and_then(|config| config.tools.clone()),
                "session_tokens": config.and_then(|config| config.budgets.session.tokens),
                "soul": soul.ok(),
                "problem": problem,
            }));
            continue;
        }
        let told = match config {
            Err(mistake) => printer.paint(Style::Red, &mistake.to_string()),
            Ok(config) => {
                let tools = config.tools.map_or("all tools".into(), |tools| tools.join(", "));
                let tokens = config.budgets.session.tokens.map(|most| format!("; {most} tokens a session"));
                let model = config.model.unwrap_or_else(|| "no model".into());
                printer.paint(Style::Plain, &format!("{model}; {tools}{}", tokens.unwrap_or_default()))
            }
        };
        printer.line(format!("{}  {told}", printer.paint(Style::Bold, &name)));
    }
    Ok(())
}
