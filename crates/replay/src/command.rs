//! `bailey replay`: runs a session again from its journal, and shows where it parts from the recording.

use crate::{Draft, EffectRecord};
use anyhow::Result;
use bailey_home::{config::Config, home::Home};
use bailey_session::{
    compose::{self, Keys},
    exit,
};
use bailey_terminal::{
    EndSignals, diff_lines,
    print::{Printer, Style},
};
use serde_json::json;
use std::{path::PathBuf, process::ExitCode};

/// The arguments of `bailey replay`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session, or its last digits
    pub(crate) session: String,
    /// Only show the decisions that would be others with this rule file, or folder of them, laid over
    /// those of the home
    #[arg(long, value_name = "PATH")]
    pub(crate) policy: Vec<PathBuf>,
}

/// The number of lines of a difference that are shown.
const LINES_MAX: usize = 60;

/// Runs a session again, or decides its effects again under other rules.
pub async fn run(home: &Home, asked: Args, printer: &Printer) -> Result<ExitCode> {
    let config = Config::load(home)?;
    let keys = Keys::load(home, &config, printer)?;
    // Listen before the folder is made: a signal that ends this program must first remove the copy of the
    // journal.
    let mut ended = EndSignals::listen()?;
    let folder = crate::PrivateFolder::make()?;
    tokio::select! {
        biased;
        code = ended.heard() => Ok(ExitCode::from(code)),
        done = again(home, &keys, &folder, &asked, printer) => done,
    }
}

async fn again(
    home: &Home,
    keys: &Keys,
    folder: &crate::PrivateFolder,
    asked: &Args,
    printer: &Printer,
) -> Result<ExitCode> {
    let journal = folder.recorded(home, keys).await?;
    if !asked.policy.is_empty() {
        return otherwise(home, asked, &journal, printer).await;
    }
    let session = journal.session(&asked.session).await?.id;
    let home = &bailey_session::home_of(home, &journal, session).await?;
    let config = &Config::load(home)?;
    let rules = || {
        let rules = config.approvals.join(compose::rules(home)?.0);
        Ok(rules.with_profile(config.calls.profile()))
    };
    let replay = crate::replay(home, config, keys, &journal, folder, rules, &asked.session).await?;
    let (entries, effects) = (replay.entries, replay.effects);
    if let Some((seq, why)) = replay.end {
        printer.note(&format!("run again up to the turn before entry {seq}: {why}"));
    }
    let Some(divergence) = replay.divergence else {
        match printer.is_json() {
            true => printer.json(&json!({ "entries": entries, "effects": effects, "same": true })),
            false => printer.line(
                printer.paint(Style::Green, &format!("{entries} entries, {effects} effects, same decisions")),
            ),
        }
        return Ok(ExitCode::SUCCESS);
    };
    let crate::Divergence { seq, recorded, now } = divergence;
    if printer.is_json() {
        printer.json(&json!({ "entries": entries, "effects": effects, "same": false, "entry": seq,
                              "recorded": recorded, "now": now }));
    } else {
        printer.line(
            printer.paint(Style::Red, &format!("the replay differs from the recording at entry {seq}")),
        );
        let name = format!("entry {seq}");
        let diff =
            bailey_tools::difference(&name, Some(&recorded), Some(&now), LINES_MAX, &printer.redactor());
        diff_lines(printer, &diff, printer.cells()).iter().for_each(|line| printer.line(line));
        if recorded.contains("sha256:") {
            printer.note(
                "what was sent to the model is another text: where all before is the same, the standing instruction, a tool's \
                 description or the codec is",
            );
        }
    }
    Ok(ExitCode::from(exit::FAILED))
}

/// Shows what other rules would have decided, while the session goes on with the recorded decisions.
async fn otherwise(
    home: &Home,
    asked: &Args,
    journal: &bailey_journal::Journal,
    printer: &Printer,
) -> Result<ExitCode> {
    let mut draft = Draft::of(home)?;
    asked.policy.iter().try_for_each(|path| draft.lay(path))?;
    let (rules, broken) = draft.tried(home, printer)?;
    let session = journal.session(&asked.session).await?.id;
    let record = EffectRecord::read(journal, Some(session), u32::MAX).await?;
    let comparison = record.compare_with_then(home, &rules)?;
    comparison.print(&record.lost, printer);
    Ok(ExitCode::from(if broken == 0 { exit::DONE } else { exit::WRONG }))
}
