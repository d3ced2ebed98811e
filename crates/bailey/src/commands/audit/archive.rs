//! `bailey audit archive`: sessions that nobody needs in the journal any more, to files beside it.

use crate::{
    cli::Archive as Asked,
    config::Config,
    exit::Mistyped,
    home::Home,
    print::{Printer, Style},
    retention::{self, RetentionLimits, RetentionReport, mib},
};
use anyhow::{Result, bail};
use bailey_journal::{Archive, Journal, Leaving, RetentionReason, Room, Shelf};
use bailey_protocol::Timestamp;
use serde_json::json;
use std::{collections::BTreeMap, process::ExitCode};

pub(super) async fn run(
    home: &Home,
    config: &Config,
    journal: &Journal,
    asked: Asked,
    printer: &Printer,
) -> Result<ExitCode> {
    if asked.due {
        retention::due(home, journal, config, printer).await?;
        return Ok(ExitCode::SUCCESS);
    }
    if asked.list {
        return list(journal, printer).await;
    }
    let mut limits = RetentionLimits::of(&config.retention, journal.clock().now());
    if let Some(day) = asked.before {
        limits.before = Some(day_of(&day)?);
    }
    let Some(before) = limits.before.clone() else {
        let says = "say with --before (such as --before 2026-01-31) which sessions are old, or set \
            `journal.keep_days` in config.toml";
        return Err(Mistyped(says.into()).into());
    };
    if asked.dry_run {
        let leaving = retention::leaving(home, journal, before, &limits).await?;
        would(&leaving, printer);
        return Ok(ExitCode::SUCCESS);
    }
    let Some(shelf) = Shelf::take(&home.journal())? else {
        bail!("another process is archiving just now: try again when it has ended");
    };
    #[cfg(feature = "controls")]
    let shelf = crate::controls::crash(shelf)?;
    let run = retention::run(home, journal, &shelf, &limits);
    let done = printer.waiting(|| "moving old sessions into archives".into(), run).await?;
    shelf.done(std::time::SystemTime::now(), "")?;
    tell(&done, home, config, printer)
}

/// A day as `2026-01-31`.
fn day_of(text: &str) -> Result<String> {
    let is_day = text.len() == 10 && format!("{text}T00:00:00Z").parse::<Timestamp>().is_ok();
    match is_day {
        true => Ok(text.to_owned()),
        false => Err(Mistyped(format!("`{text}` is no day: write it as 2026-01-31 (UTC)")).into()),
    }
}

async fn list(journal: &Journal, printer: &Printer) -> Result<ExitCode> {
    let archives = journal.archives().await?;
    if archives.is_empty() && !printer.is_json() {
        printer.note("no archives yet; `journal.keep_days` in config.toml, or bailey audit archive --before DAY, makes them");
    }
    for archive in &archives {
        match printer.is_json() {
            true => printer.json(archive),
            false => line(archive, printer),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn line(archive: &Archive, printer: &Printer) {
    let file = &archive.file;
    let end = match archive.removed {
        None => String::new(),
        Some(entry) => printer.paint(Style::Yellow, &format!("  removed for room (entry {entry})")),
    };
    printer.line(format!(
        "{}  {}{end}",
        printer.paint(Style::Bold, &file.name),
        printer.paint(
            Style::Plain,
            &format!(
                "{}, {}, {}",
                many(archive.sessions as u64, "session"),
                many(file.entries, "entry"),
                mib(file.bytes)
            )
        ),
    ));
}

fn would(leaving: &Leaving, printer: &Printer) {
    let mut days: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    for idle in &leaving.idle {
        let (sessions, entries, bytes) = days.entry(&idle.day).or_default();
        (*sessions, *entries) = (*sessions + idle.sessions.len() as u64, *entries + idle.entries);
        *bytes += idle.bytes;
    }
    if printer.is_json() {
        let day = |(day, (sessions, entries, bytes)): (&&str, &(u64, u64, u64))| json!({ "day": day, "sessions": sessions, "entries": entries, "bytes": bytes });
        let days: Vec<_> = days.iter().map(day).collect();
        printer.json(&json!({ "dry_run": true, "days": days, "kept": leaving.kept }));
        return;
    }
    for (day, (sessions, entries, bytes)) in &days {
        printer.line(format!(
            "{day}  {}, {}, {} would leave",
            many(*sessions, "session"),
            many(*entries, "entry"),
            mib(*bytes)
        ));
    }
    if days.is_empty() {
        printer.line("nothing would leave");
    }
    stay(&leaving.kept, printer);
}

fn tell(done: &RetentionReport, home: &Home, config: &Config, printer: &Printer) -> Result<ExitCode> {
    let room = Room::of(&home.journal())?;
    if printer.is_json() {
        let room = json!({ "journal": room.journal, "archives": room.archives, "most": config.retention.max_bytes() });
        printer.json(
            &json!({ "archived": done.archived, "removed": done.removed, "kept": done.kept, "room": room }),
        );
        return Ok(ExitCode::SUCCESS);
    }
    for archive in &done.archived {
        line(archive, printer);
    }
    if done.archived.is_empty() {
        printer.line("nothing had to leave");
    }
    for archive in &done.removed {
        let gone = format!("removed, because there was no room for it: {}", archive.file.name);
        printer.line(printer.paint(Style::Yellow, &gone));
    }
    stay(&done.kept, printer);
    printer.note(&format!("the journal takes {}, its archives {}", mib(room.journal), mib(room.archives)));
    retention::room(home, config).iter().for_each(|remark| printer.warn(remark));
    Ok(ExitCode::SUCCESS)
}

/// What stays, and why.
fn stay(kept: &BTreeMap<RetentionReason, u64>, printer: &Printer) {
    for (why, count) in kept {
        let why = match why {
            RetentionReason::Recent => "used since, or with one that was",
            RetentionReason::Changes => {
                "with changes to apply or to take back (sessions discard, sessions rm, or `journal.keep_changes_days`)"
            }
            RetentionReason::Question => "with a question that is open, or a yes that nothing has used",
            RetentionReason::Token => "with a capability token that still holds",
            RetentionReason::Unfinished => {
                "with an effect that may have happened (sessions resume, or sessions rm)"
            }
            RetentionReason::InUse => "in use by a process",
        };
        let line = format!("{} stay: {why}", many(*count, "session"));
        printer.line(printer.paint(Style::Dim, &line));
    }
}

fn many(count: u64, what: &str) -> String {
    match (count, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {what}s"),
    }
}
