//! `bailey policy simulate`: what a draft of the rules would have made of what the journal recorded. Nothing
//! is changed.

use crate::{
    cli::Simulate,
    exit::{self, Mistyped},
    home::Home,
    print::Printer,
};
use anyhow::Result;
use bailey_replay::{Draft, EffectRecord};
use std::process::ExitCode;

pub(super) async fn run(home: &Home, asked: Simulate, printer: &Printer) -> Result<ExitCode> {
    if asked.drafts.is_empty() && asked.without.is_empty() {
        let what = "name a draft, a file or a folder, or a rule file of the home to leave out: bailey policy simulate mine.toml";
        return Err(Mistyped(what.into()).into());
    }
    let mut draft = Draft::of(home)?;
    asked.without.iter().try_for_each(|name| draft.without(name))?;
    asked.drafts.iter().try_for_each(|path| draft.lay(path))?;
    let (in_force, _) = super::in_force(home)?;
    let (new, broken) = draft.tried(home, printer)?;
    let journal = crate::commands::journal(home, printer).await?;
    let session = match &asked.session {
        Some(name) => Some(journal.session(name).await?.id),
        None => None,
    };
    let last = if session.is_some() { u32::MAX } else { asked.last };
    let record = EffectRecord::read(&journal, session, last).await?;
    let comparison = record.compare(home, &in_force, &new)?;
    comparison.print(&record.lost, printer);
    let code = match (broken, comparison.changes.is_empty()) {
        (0, true) => exit::DONE,
        (0, false) => exit::FAILED,
        _ => exit::WRONG,
    };
    Ok(ExitCode::from(code))
}
