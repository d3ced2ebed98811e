//! `bailey audit recover`: what can still be read of a damaged journal, in a new one that takes its place.

use crate::{
    compose::{self, Keys},
    home::Home,
    identity,
    print::{Printer, Style},
};
use anyhow::{Context as _, Result, bail};
use bailey_backup::unused;
use bailey_journal::{JournalError, Loss, Salvage, SystemClock};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// How many rows of numbers are shown.
const ROWS_SHOWN: usize = 8;

pub(super) async fn run(home: &Home, keys: &Keys, copies: &[PathBuf], printer: &Printer) -> Result<ExitCode> {
    unused(home)?;
    let mut all = copies.iter().map(|copy| of_copy(copy)).collect::<Result<Vec<_>>>()?;
    all.extend(own_copies(home));
    let (path, redactor) = (home.journal(), keys.redactor.clone());
    let prepare = move || Salvage::prepare(&path, &all, &redactor, &SystemClock);
    let prepared = printer
        .waiting(|| "reading what there is of the journal".into(), tokio::task::spawn_blocking(prepare));
    let salvage = match prepared.await? {
        Err(error @ JournalError::Whole(_)) => bail!("{error}"),
        prepared => prepared.context("nothing was changed")?,
    };
    // Whoever came meanwhile would write into what is put away.
    unused(home).context("nothing was changed")?;
    let (loss, copies, keeps_key) = (salvage.loss().clone(), salvage.copies().to_vec(), salvage.keeps_key());
    let is_stopped = salvage.is_stopped();
    let kept = salvage.finish()?;
    let (journal, _) = compose::journal(home, keys).await?;
    if is_stopped {
        identity::tell_stopped(home, journal.stopped().await?)?;
    }
    compose::sign(&journal, None, None, printer).await;
    if printer.is_json() {
        let mut told = json(loss.kept.0 + 1, &loss);
        if let Value::Object(told) = &mut told {
            let torn = json!({ "kept": kept, "digest": loss.torn, "log": loss.log });
            told.extend([
                ("torn".into(), torn),
                ("copies".into(), json!(copies)),
                ("new_keys".into(), json!(!keeps_key)),
                ("stopped".into(), json!(is_stopped)),
            ]);
        }
        printer.json(&told);
        return Ok(ExitCode::SUCCESS);
    }
    printer.line(format!("{} {}", printer.paint(Style::Green, "recovered:"), told(&loss)));
    copies
        .iter()
        .for_each(|copy| printer.note(&format!("what was missing is partly from `{}`", copy.display())));
    if !keeps_key {
        printer
            .note("signed entries are missing, or what signed them: from here on a new line of keys signs");
    }
    if is_stopped {
        printer.note(
            "nothing begins in this home, because the damaged journal may have been stopped; release the \
             stop with `bailey estop --release`",
        );
    }
    printer.note(&format!(
        "the damaged journal is kept in `{}`; remove it when you miss nothing",
        kept.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// The journal of a copy that was named.
fn of_copy(copy: &Path) -> Result<PathBuf> {
    let journal = copy.join("journal.db");
    if !journal.is_file() {
        bail!(
            "`{}` has no journal: name the directory of a copy (`bailey backup DIR` makes one)",
            copy.display()
        );
    }
    Ok(journal)
}

/// The journals of the copies that the home keeps of itself, the newest first.
fn own_copies(home: &Home) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.backups()).into_iter().flatten().flatten();
    let mut copies: Vec<PathBuf> =
        entries.map(|entry| entry.path().join("journal.db")).filter(|journal| journal.is_file()).collect();
    copies.sort_by(|one, other| other.cmp(one));
    copies
}

/// What was kept and what was lost, for people.
pub(super) fn told(loss: &Loss) -> String {
    let Loss { kept, known, checkpoints, lines, .. } = loss;
    let mut text = match known.0.saturating_sub(kept.0) {
        0 => format!("all {kept} entries that anything still names were kept"),
        1 => format!("entries up to {kept} were kept; entry {known} is lost"),
        _ => {
            format!("entries up to {kept} were kept; those from {} to {known} at least are lost", kept.0 + 1)
        }
    };
    if !loss.payloads.is_empty() {
        let rows = loss.payloads.iter().take(ROWS_SHOWN).map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first} to {last}"),
        });
        let rows: Vec<String> = rows.collect();
        let more = if loss.payloads.len() > ROWS_SHOWN { ", …" } else { "" };
        text.push_str(&format!(
            "; of {} kept entries the words are lost ({}{more})",
            loss.payloads(),
            rows.join(", ")
        ));
    }
    if let Some(says) = loss.signed.as_ref().and_then(|signed| signed.statement().ok()) {
        text.push_str(&format!(
            "; {} entries were there when checkpoint {} was signed, at {}",
            says.entries, says.epoch, says.time
        ));
    }
    if *checkpoints > 0 {
        text.push_str(&format!("; {checkpoints} checkpoints are about what is not here"));
    }
    if !lines.is_empty() {
        text.push_str(&format!("; all that {} keys signed is lost", lines.len()));
    }
    text
}

/// The same for programs. `seq` is the entry that says so.
pub(super) fn json(seq: u64, loss: &Loss) -> Value {
    let payloads: Vec<(u64, u64)> = loss.payloads.iter().map(|(first, last)| (first.0, last.0)).collect();
    json!({
        "entry": seq, "kept": loss.kept.0, "known": loss.known.0, "payloads": payloads,
        "signed": loss.signed.as_ref().and_then(|signed| signed.statement().ok()),
        "checkpoints": loss.checkpoints, "lines": loss.lines,
    })
}
