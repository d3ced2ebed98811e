//! `bailey audit`: the trail.

mod archive;
mod proof;
mod recover;
mod spans;
mod verify;

pub(super) use proof::check;

use crate::{
    cli::Audit,
    clock,
    compose::{self, Keys},
    config::Config,
    front::packets,
    home::Home,
    print::{Printer, Style},
    witness::Post,
};
use anyhow::Result;
use bailey_journal::{Confined, ExtensionFailure, Fact, Journal, Query, Recorded, Under, fact::Admitted};
use bailey_protocol::{Answer, Status, Verdict};
use bailey_sandbox::Shape;
use std::process::ExitCode;

/// What is shown of why an extension failed.
const TOLD_CHARS_MAX: usize = 400;
/// Entries read at a time by `export`.
const PAGE: u32 = 500;

pub(super) async fn run(home: &Home, command: Audit, printer: &Printer) -> Result<ExitCode> {
    let config = Config::load(home)?;
    let keys = Keys::load(home, &config, printer)?;
    if let Audit::Verify { key } = command {
        return verify::run(home, &config, keys, key.as_deref(), printer).await;
    }
    if let Audit::Recover { copies } = command {
        return recover::run(home, &keys, &copies, printer).await;
    }
    let (journal, _) = compose::journal(home, &keys).await?;
    journal.sound().await?;
    match command {
        Audit::Log { last, session } => log(&journal, last, session, printer).await,
        Audit::Prove(prove) => proof::prove(&journal, prove, printer).await,
        Audit::Key => {
            let witness = config.witness.as_ref().map(Post::to);
            compose::sign(&journal, witness.as_ref(), None, printer).await;
            proof::keys(&journal, printer).await
        }
        // They have gone their own way.
        Audit::Verify { .. } | Audit::Check { .. } | Audit::Recover { .. } | Audit::Send => {
            Ok(ExitCode::SUCCESS)
        }
        Audit::Export(asked) if asked.otlp || asked.folded => {
            spans::run(&config, &journal, &asked, printer).await
        }
        Audit::Export(_) => export(&journal, printer).await,
        Audit::Archive(asked) => archive::run(home, &config, &journal, asked, printer).await,
        Audit::Rebuild => rebuild(&journal, printer).await,
    }
}

async fn log(journal: &Journal, last: u32, session: Option<String>, printer: &Printer) -> Result<ExitCode> {
    let session = match session {
        Some(name) => Some(journal.conversation(&name).await?.id),
        None => None,
    };
    for recorded in journal.entries(Query { session, last: Some(last), ..Query::default() }).await? {
        if printer.is_json() {
            printer.json(&recorded.entry);
        } else {
            line(printer, &recorded);
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn export(journal: &Journal, printer: &Printer) -> Result<ExitCode> {
    let mut after = 0;
    loop {
        let lines = journal.export(after, PAGE).await?;
        let Some((last, _)) = lines.last() else { break };
        after = *last;
        // The entry in each line is hashed as it stands.
        lines.iter().for_each(|(_, line)| printer.verbatim(line));
    }
    let entries: u64 = journal.archives().await?.iter().map(|archive| archive.file.entries).sum();
    if entries > 0 {
        printer.note(&format!(
            "{entries} entries are in archives, and not in this: bailey audit archive --list"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

async fn rebuild(journal: &Journal, printer: &Printer) -> Result<ExitCode> {
    let rebuilding = journal.rebuild();
    let rebuilt = printer
        .waiting(|| "verifying the chain, and making anew what follows from it".into(), rebuilding)
        .await?;
    if printer.is_json() {
        printer.json(&rebuilt);
        return Ok(ExitCode::SUCCESS);
    }
    for (name, rows) in &rebuilt.rows {
        let (style, word) = match rebuilt.repaired.get(name) {
            None => (Style::Dim, "as the chain says".to_owned()),
            Some(differ) => (Style::Yellow, format!("{differ} were not as the chain says, and are now")),
        };
        printer.line(format!("{name:<10} {rows:>8} rows, {}", printer.paint(style, &word)));
    }
    let entries = rebuilt.entries;
    printer.line(format!("{} from {entries} entries", printer.paint(Style::Green, "rebuilt:")));
    Ok(ExitCode::SUCCESS)
}

fn line(printer: &Printer, recorded: &Recorded) {
    let entry = &recorded.entry;
    let (style, text) = describe(recorded);
    printer.line(format!(
        "{} {} {} {}",
        printer.paint(Style::Dim, &format!("{:>5}", entry.seq.0)),
        printer.paint(Style::Dim, &clock::local_second(entry.time)),
        printer.paint(style, &format!("{:<14}", entry.fact.name())),
        printer.paint(Style::Plain, &text.replace('\n', "\\n")),
    ));
}

fn describe(recorded: &Recorded) -> (Style, String) {
    let first = || recorded.text().lines().next().unwrap_or_default().chars().take(120).collect::<String>();
    match &recorded.entry.fact {
        Fact::Genesis { program, .. } => (Style::Dim, program.clone()),
        Fact::SessionOpened { workspace, model, .. } if model.is_empty() => (Style::Dim, workspace.0.clone()),
        Fact::SessionOpened { workspace, model, .. } => (Style::Dim, format!("{workspace} with {model}")),
        Fact::SessionForked { from, at, .. } => (Style::Dim, format!("as {from} was at entry {at}")),
        Fact::Delegated { parent, .. } => (Style::Plain, format!("by {}: {}", parent.session, first())),
        Fact::SessionRemoved { payloads } => (Style::Yellow, format!("{payloads} payloads were erased")),
        Fact::SessionResumed { model } => (Style::Dim, format!("with {model}")),
        Fact::Agent { agent } => (Style::Plain, agent.clone()),
        Fact::Confined(Confined { holder, may }) => (Style::Plain, format!("{holder}: {}", may.join("; "))),
        Fact::Walls { backend } if backend == Shape::Direct.backend() => {
            (Style::Red, "there are none".into())
        }
        Fact::Walls { backend } => (Style::Yellow, format!("{backend} alone")),
        Fact::Offered { digest } => (Style::Plain, format!("tools of peers {}", digest.short())),
        Fact::PolicyAdopted { policy } => (Style::Dim, policy.short()),
        Fact::Accepted { .. } | Fact::Observation { .. } => (Style::Plain, first()),
        Fact::Image { kind, .. } => (Style::Plain, kind.name().into()),
        Fact::TokenMinted { token, operations, expires, holder, .. } => {
            (Style::Yellow, format!("{token} for {holder}: {operations} operations until {expires}"))
        }
        Fact::TokenNarrowed { token, holder, .. } => (Style::Yellow, format!("{token} for {holder}")),
        Fact::TokenEnded { token } => (Style::Dim, token.to_string()),
        Fact::Intent { kind, target, admitted, under, .. } => {
            let how = if *admitted == Admitted::Allowed { "allowed" } else { "approved" };
            (Style::Green, format!("{how} {}: {target}{}", kind.name(), by(under.as_ref())))
        }
        Fact::Denied { kind, target, reasons, under, .. } => {
            let by = by(under.as_ref());
            (Style::Red, format!("{}: {target}{by} — {}", kind.name(), reasons.join("; ")))
        }
        Fact::Judged { tool, verdict, reasons, under, .. } => {
            let (style, said) = match verdict {
                Verdict::Allowed | Verdict::Approved => (Style::Green, "allowed"),
                Verdict::Asked => (Style::Yellow, "to be asked there"),
                Verdict::Denied => (Style::Red, "denied"),
            };
            (style, format!("{said}: {tool}{} — {}", by(under.as_ref()), reasons.join("; ")))
        }
        Fact::Reported { tool, after, bytes, .. } => {
            let (style, how) = match after {
                Some(Verdict::Allowed) => (Style::Dim, "as it was allowed"),
                Some(Verdict::Asked | Verdict::Approved) => (Style::Yellow, "approved there"),
                Some(Verdict::Denied) => (Style::Red, "used although it was denied"),
                None => (Style::Red, "used, and nobody had asked"),
            };
            (style, format!("{tool}: {how}, {bytes} bytes came of it"))
        }
        Fact::Outcome { status, exit, enforced, duration_ms, .. } => {
            let mut text = match status {
                Status::Done => "done".to_owned(),
                Status::Failed { reason } => format!("failed: {reason}"),
                Status::Cancelled => "cancelled".into(),
                Status::Unknown => "unknown: it may have happened".into(),
            };
            if let Some(exit) = exit {
                text.push_str(&format!(", exit code {exit}"));
            }
            text.push_str(&format!(", {duration_ms} ms"));
            if let Some(enforced) = enforced {
                if enforced.backend == Shape::Direct.backend() {
                    text.push_str(", no walls");
                } else {
                    text.push_str(&format!(", {} walls", enforced.walls.len()));
                }
                if enforced.out_no_routes > 0 {
                    text.push_str(&format!(", {} found no route out", packets(enforced.out_no_routes)));
                }
            }
            (Style::Dim, text)
        }
        Fact::EndAsked { person } => {
            let by = person.as_ref().map_or_else(String::new, |person| format!("by {}", person.name));
            (Style::Yellow, by)
        }
        Fact::Asked { target, .. } => (Style::Yellow, target.clone()),
        Fact::Answered { answer, by, .. } => {
            let answer = match answer {
                Answer::Yes => "yes",
                Answer::YesForSession => "yes for this session",
                Answer::YesForPattern => "yes for the pattern",
                Answer::No => "no",
            };
            (Style::Yellow, format!("{answer} by {by} {}", first()).trim_end().to_owned())
        }
        Fact::Reply { provider, model, .. } => (Style::Dim, format!("{provider}/{model}")),
        Fact::Stopped => (Style::Red, first()),
        Fact::Salvaged(loss) => (Style::Red, recover::told(loss)),
        Fact::ExtensionFailed { extension, failure } => {
            let how = match failure {
                ExtensionFailure::Late => "did not answer in time",
                ExtensionFailure::Crashed => "crashed",
                ExtensionFailure::Garbled => "wrote what is no answer",
            };
            let told = recorded.text().lines().collect::<Vec<_>>().join(" · ");
            let told: String = told.chars().take(TOLD_CHARS_MAX).collect();
            (Style::Yellow, format!("{extension} {how}: {told}").trim_end_matches([':', ' ']).to_owned())
        }
        Fact::ExtensionDisabled { extension } => (Style::Red, format!("{extension} is not asked any more")),
        Fact::ExtensionEnabled { extension } => (Style::Yellow, format!("{extension} is asked again")),
        Fact::Archived { file, .. } => (
            Style::Yellow,
            format!("{} entries ({} to {}) into {}", file.entries, file.first, file.last, file.name),
        ),
        Fact::ArchiveRemoved { file, .. } => (
            Style::Yellow,
            format!("{} with entries {} to {} is gone, for room", file.name, file.first, file.last),
        ),
        Fact::Warned { .. } => (Style::Yellow, first()),
        Fact::Escalated { step, told, .. } => {
            (Style::Yellow, format!("step {step}{}", if *told { ": your program tells of it" } else { "" }))
        }
        Fact::Revealed { path } => (Style::Yellow, path.0.clone()),
        Fact::SigningBegun { key } => (Style::Yellow, format!("with the key {key}")),
        Fact::TurnEnded { reason, .. } => (Style::Dim, reason.clone()),
        _ => (Style::Plain, String::new()),
    }
}

/// The capability token that something was asked under.
fn by(under: Option<&Under>) -> String {
    under.map(|under| format!(" (by the token {})", under.token)).unwrap_or_default()
}
