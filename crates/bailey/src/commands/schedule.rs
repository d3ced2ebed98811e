//! `bailey schedule`: tasks that are done by the clock, beneath the daemon.

use crate::{
    cli::Schedule as Asked,
    daemon::{
        client::Client,
        wire::{Ask, Told},
    },
    exit::Mistyped,
    front::short,
    home::Home,
    print::{Printer, Style},
    project,
    schedules::{Cron, Schedule, Schedules},
};
use anyhow::{Context as _, Result, bail};
use bailey_journal::{Clock as _, SystemClock};
use jiff::tz::TimeZone;
use serde_json::json;
use std::process::ExitCode;

pub(super) async fn run(home: &Home, asked: Asked, printer: &Printer) -> Result<ExitCode> {
    match asked {
        Asked::Add { name, cron, task, directory, model, tokens } => {
            let cron: Cron = cron.parse().map_err(Mistyped)?;
            let (directory, _) = project::find(directory.as_deref(), home)?;
            let since = SystemClock.now();
            let next = cron.after(since);
            let schedule = Schedule {
                cron,
                task,
                directory,
                model,
                tokens,
                agent: home.agent.clone(),
                since,
                session: None,
            };
            Schedules::change(home, |schedules| schedules.add(&name, schedule))?;
            printer.note(&format!("{name}: the next time is {}", next.map(local).unwrap_or_default()));
            if Client::connect(home)?.is_none() {
                printer.note("it is done while the daemon runs: bailey start");
            }
        }
        Asked::List => list(home, printer)?,
        Asked::Run { name } => {
            let mut daemon =
                Client::connect(home)?.context("the daemon does that, and none runs: bailey start")?;
            let Told::Opened { session, .. } = daemon.ask(Ask::Run { schedule: name.clone() }).await? else {
                bail!("the daemon answered something else than was asked");
            };
            if printer.is_json() {
                printer.json(&json!({ "schedule": name, "session": session }));
            } else {
                printer
                    .note(&format!("{name} has begun; to look on: bailey chat --resume {}", short(&session)));
            }
        }
        Asked::Rm { name } => {
            Schedules::change(home, |schedules| {
                schedules.get(&name)?;
                schedules.0.remove(&name);
                Ok(())
            })?;
            printer.note(&format!("{name} is done no more"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(home: &Home, printer: &Printer) -> Result<()> {
    let schedules = Schedules::of(home)?.0;
    if schedules.is_empty() && !printer.is_json() {
        printer.note("there are no schedules: bailey schedule add --help");
    }
    for (name, schedule) in schedules {
        let next = schedule.cron.after(SystemClock.now());
        let Schedule { cron, task, directory, model, tokens, agent, session, .. } = schedule;
        if printer.is_json() {
            printer.json(&json!({
                "name": name, "cron": cron, "task": task, "directory": directory, "model": model,
                "tokens": tokens, "agent": agent, "next": next.map(|next| next.to_string()), "session": session,
            }));
            continue;
        }
        let next = next.map(local).unwrap_or_default();
        printer.line(format!("{}  {cron}  next {next}", printer.paint(Style::Bold, &name)));
        let by = agent.map(|agent| format!("; by {agent}")).unwrap_or_default();
        let bound = tokens.map(|tokens| format!("; {tokens} tokens at most")).unwrap_or_default();
        let last = session.map(|session| format!("; last session {}", short(&session))).unwrap_or_default();
        printer.line(format!("  in {}{by}{bound}{last}", directory.display()));
        printer.line(printer.paint(Style::Dim, &format!("  {}", crate::front::one_line(&task))));
    }
    Ok(())
}

/// As the clock on the wall shows it.
fn local(moment: bailey_protocol::Timestamp) -> String {
    moment.to_zoned(TimeZone::system()).strftime("%a %F %H:%M").to_string()
}
