//! The way back: a copy takes a home's place, wholly or not at all.

use super::{ENV, JOURNAL, sums::Sums};
use crate::{
    commands::estop::running::in_use,
    daemon::client::Client,
    home::{Home, make_private},
    print::Printer,
};
use anyhow::{Context as _, Result, bail};
use bailey_journal::{Clock as _, Journal, SystemClock};
use bailey_secrets::{Redactor, Vault};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;
use std::{
    ffi::OsStr,
    fs::{self, File},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

/// What goes on in the new home, where the copy has none of it: it is no part of any copy.
const GOES_ON: [&str; 2] = ["sessions", "backups"];

pub(in crate::commands) async fn run(home: &Home, from: &Path, printer: &Printer) -> Result<ExitCode> {
    let from = fs::canonicalize(from).with_context(|| format!("cannot find `{}`", from.display()))?;
    unused(home)?;
    let name = home.root.file_name().and_then(OsStr::to_str).context("the home has no name")?;
    let beside = |what: &str| home.root.with_file_name(format!("{name}.{what}"));
    let new = beside(&format!("restoring-{}", std::process::id()));
    make_private(&new)?;
    let entries = match prepare(home, &from, &new).await {
        Ok(entries) => entries,
        Err(error) => {
            fs::remove_dir_all(&new).ok();
            return Err(error.context("nothing was changed"));
        }
    };
    unused(home).inspect_err(|_| drop(fs::remove_dir_all(&new)))?;
    let before = beside(&format!("before-{}", SystemClock.now().strftime("%Y%m%dT%H%M%SZ")));
    // At once: whoever looks sees the one home or the other.
    renameat_with(CWD, &new, CWD, &home.root, RenameFlags::EXCHANGE)
        .with_context(|| format!("`{}` cannot take the home's place; nothing was changed", new.display()))?;
    fs::rename(&new, &before).with_context(|| format!("what was there is in `{}`", new.display()))?;
    for part in GOES_ON {
        go_on(&before.join(part), &home.root.join(part))?;
    }
    File::open(home.root.parent().unwrap_or(Path::new("/")))?.sync_all()?;
    if printer.is_json() {
        printer.json(&json!({ "home": home.root, "from": from, "entries": entries, "before": before }));
    } else {
        printer.line(format!("{} is what it was at entry {entries} of its journal", home.root.display()));
        printer.note(&format!(
            "what was there until now is in `{}`; remove it when nothing is missed",
            before.display()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// That nobody uses the home.
pub(in crate::commands) fn unused(home: &Home) -> Result<()> {
    if Client::connect(home)?.is_some() {
        bail!("the daemon of this home runs: end it first (`bailey stop`)");
    }
    let uses = in_use(&home.root);
    if !uses.is_empty() {
        bail!("this home is in use: {}", uses.join("; "));
    }
    Ok(())
}

/// Makes the home that will be, and looks that it holds: the newest entry that it brings back.
async fn prepare(home: &Home, from: &Path, new: &Path) -> Result<u64> {
    let sums = Sums::read(from)?;
    if !sums.paths().any(|path| path == Path::new(JOURNAL)) {
        bail!("`{}` has no journal: it is no copy of a home", from.display());
    }
    sums.copy_to(from, new)?;
    // The keys of this machine go on, where the copy has none.
    if !new.join(ENV).exists() && home.env_file().exists() {
        super::sums::copy(&home.env_file(), &new.join(ENV))?;
    }
    let redactor = Redactor::new(&Vault::default());
    let (journal, _) = Journal::open(&new.join(JOURNAL), redactor, Arc::new(SystemClock)).await?;
    journal.verify_chain().await?;
    let entries = journal.newest();
    // Who looks later sees that something is missing, and since when.
    journal.note_restored(format!("from {}", from.display())).await?;
    Ok(entries)
}

/// Moves what is no part of a copy to where it goes on, unless there is something.
fn go_on(before: &Path, now: &Path) -> Result<()> {
    let is_empty = |path: &PathBuf| fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    let now = now.to_path_buf();
    if is_empty(&now) {
        fs::remove_dir(&now)?;
    }
    if before.is_dir() && now.symlink_metadata().is_err() {
        fs::rename(before, &now)?;
    }
    Ok(())
}
