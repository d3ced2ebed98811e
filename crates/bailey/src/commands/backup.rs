//! `bailey backup` and `bailey restore`: a copy of a home that everybody can check, and the way back.
//!
//! A copy is a directory: the files of the home as they are, the journal as one moment had it, and a list of digests that sha256sum(1)
//! reads. So there is no format of our own to be parsed, and who has only a copy and no Bailey can look at all of it.

mod restore;
mod sums;

pub(super) use restore::{run as restore, unused};

use crate::{
    compose::{self, Keys},
    config::Config,
    home::{COPY_NAME, Home, make_private},
    print::Printer,
};
use anyhow::{Context as _, Result, bail};
use bailey_journal::{Clock as _, SystemClock};
use serde_json::json;
use std::{
    ffi::OsStr,
    fs::{self, File},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};
use sums::Sums;

/// How many copies a home keeps of itself.
const KEPT: usize = 5;
/// What lies in a home and is no part of a copy: what runs, what is made anew, what is another copy, and the journal itself, which is copied
/// in its own way. Its key signs one line of checkpoints, and two journals with it could sign two.
const LEFT_OUT: [&str; 10] = [
    "journal.db",
    "journal.db-wal",
    "journal.db-shm",
    "journal.db-turn",
    "journal.key",
    "guests",
    "daemon",
    "health.json",
    "sessions",
    "backups",
];
const JOURNAL: &str = "journal.db";
const ENV: &str = ".env";
/// What is told of work that takes longer than this.
const SILENCE: Duration = Duration::from_secs(1);

pub(super) async fn run(
    home: &Home,
    to: Option<PathBuf>,
    with_keys: bool,
    printer: &Printer,
) -> Result<ExitCode> {
    let begin = Instant::now();
    let is_own = to.is_none();
    let to = match to {
        Some(to) => std::path::absolute(&to)?,
        None => {
            make_private(&home.backups())?;
            let name = SystemClock.now().strftime(COPY_NAME).to_string();
            home.backups().join(name)
        }
    };
    if to.symlink_metadata().is_ok() {
        bail!("`{}` is there already: a copy replaces nothing, name another place", to.display());
    }
    if !is_own && to.starts_with(&home.root) {
        bail!("`{}` lies in the home that is to be copied: name a place outside, or none", to.display());
    }
    let name = to.file_name().and_then(OsStr::to_str).context("name a directory for the copy")?;
    let new = to.with_file_name(format!(".{name}.new-{}", std::process::id()));
    make_private(&new)?;
    let copied = copy(home, &new, with_keys, printer).await;
    let copied = copied.and_then(|copied| {
        fs::rename(&new, &to)?;
        File::open(to.parent().unwrap_or(Path::new("/")))?.sync_all()?;
        Ok(copied)
    });
    let (files, bytes, entries) = match copied {
        Ok(copied) => copied,
        Err(error) => {
            fs::remove_dir_all(&new).ok();
            return Err(error.context("there is no copy; the home is as it was"));
        }
    };
    let removed = if is_own { remove_old(home)? } else { 0 };
    let milliseconds = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    if printer.is_json() {
        printer.json(&json!({
            "copy": to, "files": files, "bytes": bytes.to_string(), "entries": entries, "keys": with_keys,
            "removed": removed, "milliseconds": milliseconds,
        }));
    } else {
        printer.line(format!(
            "{}: {files} files, {:.1} MiB, the journal up to entry {entries}",
            to.display(),
            bytes as f64 / (1 << 20) as f64
        ));
        if !with_keys && home.env_file().exists() {
            printer.note("the keys of .env are not in it (--with-keys)");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Copies all of a home: files, bytes, and the newest entry of the journal.
async fn copy(home: &Home, to: &Path, with_keys: bool, printer: &Printer) -> Result<(usize, u64, u64)> {
    let config = Config::load(home)?;
    let keys = Keys::load(home, &config, printer)?;
    let (journal, _) = compose::journal(home, &keys).await?;
    let mut sums = Sums::default();
    let begin = Instant::now();
    let of_journal = to.join(JOURNAL);
    let copied = journal.copy_to(&of_journal);
    tokio::pin!(copied);
    tokio::select! {
        copied = &mut copied => copied,
        () = tokio::time::sleep(SILENCE) => {
            printer.note("the journal is copied …");
            copied.await
        }
    }?;
    if begin.elapsed() > SILENCE {
        printer.note("and the other files …");
    }
    sums.add(to, Path::new(JOURNAL))?;
    let mut waiting = vec![PathBuf::new()];
    while let Some(folder) = waiting.pop() {
        let mut entries = fs::read_dir(home.root.join(&folder))?.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = folder.join(entry.file_name());
            if is_left_out(&path, with_keys) {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                make_private(&to.join(&path))?;
                waiting.push(path);
            } else if kind.is_file() {
                sums::copy(&entry.path(), &to.join(&path))?;
                sums.add(to, &path)?;
            }
        }
    }
    let entries = journal.newest();
    sums.write(to)?;
    Ok((sums.files(), sums.bytes(), entries))
}

fn is_left_out(path: &Path, with_keys: bool) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let is_top = path.parent() == Some(Path::new(""));
    let is_key = is_top && name == ENV && !with_keys;
    // What a salvage kept, or left half done.
    let is_torn = is_top && name.starts_with("journal.");
    is_key || is_torn || is_top && LEFT_OUT.contains(&name) || name == "lock" || name.contains(".new-")
}

/// Removes all copies of the home's own but the newest; how many.
fn remove_old(home: &Home) -> Result<usize> {
    // One that another process is just making is none yet.
    let is_whole =
        |path: &PathBuf| path.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."));
    let is_copy = |path: &PathBuf| is_whole(path) && path.join(sums::NAME).is_file();
    let mut copies: Vec<PathBuf> =
        fs::read_dir(home.backups())?.flatten().map(|entry| entry.path()).filter(is_copy).collect();
    copies.sort();
    let old = copies.len().saturating_sub(KEPT);
    copies.iter().take(old).try_for_each(fs::remove_dir_all)?;
    Ok(old)
}
