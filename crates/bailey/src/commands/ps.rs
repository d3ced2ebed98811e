//! `bailey ps`: what runs in the background in this home's sessions, and its end.

use crate::{
    clock, exit,
    front::short,
    home::Home,
    person::person,
    print::{Printer, Style},
};
use anyhow::{Context as _, Result, bail};
use bailey_journal::{Background, FileLocks, InUse, Journal};
use serde_json::json;
use std::{process::ExitCode, time::Duration};

/// How long is waited for the end of a process, and how often is looked.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);

pub(super) async fn run(home: &Home, stop: Option<&str>, printer: &Printer) -> Result<ExitCode> {
    let journal = super::journal(home, printer).await?;
    let living = living(home, &journal).await?;
    if let Some(name) = stop {
        return end(&journal, &find(&living, name)?, printer).await;
    }
    if printer.is_json() {
        living.iter().for_each(|process| printer.json(&shown(process)));
        return Ok(ExitCode::SUCCESS);
    }
    if living.is_empty() {
        printer.note("nothing runs in the background");
        return Ok(ExitCode::SUCCESS);
    }
    for process in &living {
        let state = if process.ending { (Style::Yellow, "ending ") } else { (Style::Green, "running") };
        printer.line(format!(
            "{} {} {} {}",
            printer.paint(Style::Bold, &format!("{:<12}", name(process))),
            printer.paint(state.0, state.1),
            printer.paint(Style::Dim, &clock::local_second(process.since)),
            printer.paint(Style::Plain, &process.command),
        ));
    }
    printer.note("end a process with `bailey ps --stop SESSION/NUMBER`, by its name in the first column");
    Ok(ExitCode::SUCCESS)
}

/// Those whose session a process of Bailey's holds. The others ended with theirs, and nobody has written it
/// yet.
async fn living(home: &Home, journal: &Journal) -> Result<Vec<Background>> {
    let mut processes = journal.in_background().await?;
    // Where the kernel tells nothing, each lock is still tried.
    let locks = FileLocks::now().unwrap_or_default();
    processes.retain(|process| {
        let folder = home.root.join("sessions").join(process.session.to_string());
        // One that cannot be looked at may be in use.
        InUse::of(&folder, &locks).map_or(true, |found| found.is_some())
    });
    Ok(processes)
}

fn name(process: &Background) -> String {
    format!("{}/{}", short(&process.session), process.number)
}

fn shown(process: &Background) -> serde_json::Value {
    let state = if process.ending { "ending" } else { "running" };
    json!({
        "name": name(process), "session": process.session, "process": process.number, "effect": process.effect,
        "command": process.command, "since": process.since, "state": state,
    })
}

/// The process of this name: the end of its session's name, and its number.
fn find(living: &[Background], name: &str) -> Result<Background> {
    let (session, number) = name
        .split_once('/')
        .and_then(|(session, number)| Some((session, number.parse::<u32>().ok()?)))
        .with_context(|| {
            format!("`{name}` is not the name of a process; `bailey ps` shows the names, as SESSION/NUMBER")
        })?;
    let fits = |process: &&Background| {
        process.number == number && !session.is_empty() && process.session.to_string().ends_with(session)
    };
    let mut found = living.iter().filter(fits);
    match (found.next(), found.next()) {
        (Some(process), None) => Ok(process.clone()),
        (Some(_), Some(_)) => bail!("several processes are called `{name}`: give more of the session's name"),
        (None, _) => bail!("no process `{name}` runs in the background; `bailey ps` names those that do"),
    }
}

/// Asks whoever runs it to end it, and waits for that.
async fn end(journal: &Journal, process: &Background, printer: &Printer) -> Result<ExitCode> {
    journal.ask_end(process, Some(person())).await?;
    let waited = tokio::time::timeout(PATIENCE, async {
        while !journal.has_ended(process.effect).await? {
            tokio::time::sleep(LOOK).await;
        }
        Ok::<(), bailey_journal::JournalError>(())
    });
    let Ok(ended) = waited.await else {
        printer.warn(
            "the process was asked to end and has not ended; its session may hang, and `bailey estop` stops \
             everything",
        );
        return Ok(ExitCode::from(exit::FAILED));
    };
    ended?;
    if printer.is_json() {
        printer.json(&json!({ "name": name(process), "state": "ended" }));
    } else {
        printer.line(format!(
            "{} {} {}",
            printer.paint(Style::Red, "ended:"),
            printer.paint(Style::Bold, &name(process)),
            printer.paint(Style::Plain, &process.command)
        ));
    }
    Ok(ExitCode::SUCCESS)
}
