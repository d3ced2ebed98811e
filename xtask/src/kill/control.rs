//! The control: what the disk would hold if the intent were written after the effect.
//!
//! The program cannot be built that way: a permit comes out of the transaction that writes the intent, and without one
//! there is nothing to perform. So the run is killed when a command's line is in the layer and its outcome is not
//! written yet, and the newest commit, which is the intent, is cut off the write-ahead log. The same kill without the
//! cut must pass. This proves that the check sees an effect whose intent was not on disk in time.

use super::{
    check,
    stage::Stage,
    trace::{Role, When},
};
use anyhow::{Context as _, Result, bail, ensure};
use std::{fs, path::Path};

/// Runs the control; the error that the check gave.
pub(super) fn run(program: &Path) -> Result<String> {
    let uncut = Stage::new(program)?;
    killed_after_effect(&uncut, program)?;
    uncut.resume()?;
    check::after_resume(&uncut, program, &uncut.printed()).context("without the cut, the check must pass")?;
    let cut = Stage::new(program)?;
    killed_after_effect(&cut, program)?;
    cut_newest_commit(&cut.folder().join("home/journal.db-wal"))?;
    let trail = cut.trail()?;
    ensure!(!trail.iter().any(is_intent), "the newest commit was not the intent, so this shows nothing");
    let checked = cut.resume().and_then(|_| check::after_resume(&cut, program, &cut.printed()));
    match checked {
        Ok(()) => bail!("the intent was cut off the journal, and the check did not see it"),
        Err(error) => Ok(format!("{error:#}")),
    }
}

fn killed_after_effect(stage: &Stage, program: &Path) -> Result<()> {
    let traced = stage.traced(Role::Main, When::Before, &mut |_, call| {
        call.is_database_write() && call.file.ends_with("-wal") && stage.layer_marks().contains("first-1")
    })?;
    ensure!(traced.killed.is_some(), "the run ended before its command's line was in the layer");
    check::after_kill(stage, program)
}

fn is_intent(entry: &serde_json::Value) -> bool {
    entry["type"] == "intent" && entry["call"] == "first-1" && entry["purpose"] == "act"
}

/// Cuts the last transaction off a write-ahead log (<https://www.sqlite.org/fileformat2.html#walformat>): a header of 32
/// bytes, then frames of a header of 24 and a page. A frame that ends a transaction tells the database's size in pages.
fn cut_newest_commit(wal: &Path) -> Result<()> {
    const HEADER: usize = 32;
    const FRAME: usize = 24;
    let bytes = fs::read(wal)?;
    let number = |at: usize| {
        let bytes = bytes.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    let page = usize::try_from(number(8).context("the log has no header")?)?;
    let salts = (number(16), number(20));
    let frames = (HEADER..bytes.len()).step_by(FRAME + page);
    let current = frames.take_while(|at| (number(at + 8), number(at + 12)) == salts);
    let ends = current.filter(|at| number(at + 4).is_some_and(|pages| pages > 0)).map(|at| at + FRAME + page);
    let ends: Vec<usize> = ends.collect();
    let [.., end, _] = ends.as_slice() else { bail!("the log holds {} transactions", ends.len()) };
    fs::OpenOptions::new().write(true).open(wal)?.set_len(u64::try_from(*end)?)?;
    // Made anew from the log by whoever opens the database next.
    fs::remove_file(wal.with_file_name("journal.db-shm"))?;
    Ok(())
}
