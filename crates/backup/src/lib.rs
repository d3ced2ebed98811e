//! `bailey backup` and `bailey restore`: make a copy of a home that anybody can check, and bring it back.
//!
//! A copy is a directory. It holds the files of the home as they are, the journal as it was at one moment,
//! and a list of digests that sha256sum(1) reads. So there is no format of our own to parse, and a user who
//! has only the copy and no Bailey can look at all of it.

mod beneath;
mod files;
mod restore;
mod sums;

pub use restore::{run as restore, unused};

use anyhow::{Context as _, Result, bail};
use bailey_home::{
    config::Config,
    home::{COPY_NAME, Home, OLD_STAYS, make_private},
};
use bailey_journal::{Clock as _, Room, SystemClock};
use bailey_session::compose::{self, Keys};
use bailey_terminal::print::Printer;
use files::TakenKeys;
use jiff::civil::DateTime;
use rustix::fs::{FlockOperation, flock, statvfs};
use serde_json::json;
use std::{
    ffi::OsStr,
    fs::{self, File},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};
use sums::Sums;

/// How many of its own copies a home keeps.
const KEPT: usize = 5;
const JOURNAL: &str = "journal.db";
const ENV: &str = ".env";
/// The folder that lists the workspaces that were made ready ahead. Tasks take them in the meantime, and
/// their content lives on in `sessions`. A copy that lists such a workspace later would give a used workspace
/// to another task.
const POOL: &str = "pool";
/// A file takes a multiple of this many bytes on a disk.
const BLOCK: u64 = 4096;
/// Work that takes longer than this prints a note.
const SILENCE: Duration = Duration::from_secs(1);

const BACKUP_HELP: &str = "\
A backup is complete or is not made at all. `sha256sum -c SHA256SUMS` inside it checks it without Bailey.
It does not have the key that signs the journal. It has the sealed keys, and those of .env only with
--with-keys. It does not have the changes that sessions have not applied yet.";

const RESTORE_HELP: &str = "\
The backup is checked first: each file, and its journal from the first entry to the last. Then it replaces
the home at once, or nothing changes. The old home is moved beside the new one, and the command prints where.
Keys, unapplied changes of sessions and the other backups stay in the new home. Nobody may use the home
meanwhile.

Exit codes: 0 done, 1 not done, 5 the journal of the backup does not verify.";

/// The arguments of `bailey backup`.
#[derive(Debug, clap::Args)]
#[command(after_help = BACKUP_HELP)]
pub struct Args {
    /// Where to write the backup [default: `backups` of the home, where the last five are kept]
    #[arg(value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Include the keys of `.env`
    #[arg(long)]
    pub with_keys: bool,
}

/// The arguments of `bailey restore`.
#[derive(Debug, clap::Args)]
#[command(after_help = RESTORE_HELP)]
pub struct RestoreArgs {
    /// A backup that `bailey backup` made
    #[arg(value_name = "DIR")]
    pub(crate) from: PathBuf,
    /// Replace a home that is not empty, without a question
    #[arg(long)]
    pub(crate) yes: bool,
}

/// `bailey backup`.
///
/// # Errors
/// When there is no room, a file cannot be read or written, or the place is taken.
pub async fn run(home: &Home, Args { to, with_keys }: Args, printer: &Printer) -> Result<ExitCode> {
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
        bail!("`{}` exists already, and a backup replaces nothing; name another place", to.display());
    }
    if !is_own && to.starts_with(&home.root) {
        bail!("`{}` lies inside the home that is backed up; name a place outside, or no place", to.display());
    }
    let name = to.file_name().and_then(OsStr::to_str).context("name a directory for the backup")?;
    let mut stay = if is_own { remove_cut_off(home) } else { Vec::new() };
    let new = to.with_file_name(format!(".{name}.new-{}", std::process::id()));
    make_private(&new)?;
    let _held = hold(&new);
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
            return Err(error.context("no backup was made; the home is unchanged, and older backups stay"));
        }
    };
    let removed = if is_own { remove_old(home, &to, &mut stay) } else { 0 };
    stay.iter().for_each(|why| printer.warn(&format!("{OLD_STAYS}: {why}")));
    let milliseconds = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    if printer.is_json() {
        printer.json(&json!({
            "copy": to, "files": files, "bytes": bytes.to_string(), "entries": entries, "keys": with_keys,
            "removed": removed, "stay": stay, "milliseconds": milliseconds,
        }));
    } else {
        printer.line(format!(
            "{}: {files} files, {:.1} MiB, the journal up to entry {entries}",
            to.display(),
            bytes as f64 / (1 << 20) as f64
        ));
        if !with_keys && home.env_file().exists() {
            printer.note("the keys of .env are not in the backup (--with-keys includes them)");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Copies all of a home. Returns the number of files, their bytes, and the newest entry of the copied
/// journal.
async fn copy(home: &Home, to: &Path, with_keys: bool, printer: &Printer) -> Result<(usize, u64, u64)> {
    let config = Config::load(home)?;
    let keys = Keys::load(home, &config, printer)?;
    let (journal, _) = compose::journal(home, &keys).await?;
    let taken = TakenKeys { all: with_keys, file: config.secrets.key_file.as_deref() };
    look_for_room(home, to, &taken)?;
    let mut sums = Sums::default();
    let begin = Instant::now();
    let of_journal = to.join(JOURNAL);
    let copied = journal.copy_to(&of_journal);
    tokio::pin!(copied);
    let verified = tokio::select! {
        copied = &mut copied => copied,
        () = tokio::time::sleep(SILENCE) => {
            printer.note("the journal is copied and verified …");
            copied.await
        }
    };
    let entries = verified?.entries;
    if begin.elapsed() > SILENCE {
        printer.note("and the other files …");
    }
    sums.add(to, Path::new(JOURNAL))?;
    for file in files::all(home, &taken)? {
        let place = to.join(&file.path);
        place.parent().map_or(Ok(()), make_private)?;
        sums::copy(&file.from, &place)?;
        sums.add(to, &file.path)?;
    }
    sums.write(to)?;
    Ok((sums.files(), sums.bytes(), entries))
}

/// Checks that the destination has room for the copy. Without this check, a copy could fill the disk before
/// it fails.
fn look_for_room(home: &Home, to: &Path, keys: &TakenKeys<'_>) -> Result<()> {
    let files = files::all(home, keys)?;
    let of_files: u64 = files.iter().map(|file| file.bytes.next_multiple_of(BLOCK)).sum();
    let needed = of_files + Room::of(&home.journal())?.journal;
    if let Some(short) = short_of(to, needed)? {
        bail!("a backup {short} there; make room, or name a place on another disk (`bailey backup DIR`)");
    }
    Ok(())
}

/// The message when fewer bytes are free than are needed.
fn short_of(at: &Path, needed: u64) -> Result<Option<String>> {
    let stat = statvfs(at)?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let mib = |bytes: u64| bytes as f64 / (1 << 20) as f64;
    // A file system in memory without a limit reports no blocks.
    let is_short = stat.f_blocks > 0 && free < needed;
    Ok(is_short.then(|| format!("needs {:.1} MiB, and {:.1} MiB are free", mib(needed), mib(free))))
}

/// Locks the folder that is being made, so that no other process takes it for a folder that was cut off.
/// Returns `None` when another process holds it.
fn hold(new: &Path) -> Option<File> {
    let folder = File::open(new).ok()?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(folder)
}

/// Removes the home's own copies that a kill left unfinished, and those that could not be removed before:
/// they will never be finished, and they take room. Returns the reason for each one that stays.
fn remove_cut_off(home: &Home) -> Vec<String> {
    let entries = fs::read_dir(home.backups()).into_iter().flatten().flatten();
    let is_new = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str);
        name.is_some_and(|name| name.starts_with('.') && files::is_new(name)) && hold(path).is_some()
    };
    entries.map(|entry| entry.path()).filter(is_new).filter_map(|path| remove(&path).err()).collect()
}

fn remove(copy: &Path) -> Result<(), String> {
    fs::remove_dir_all(copy).map_err(|error| format!("`{}` cannot be removed: {error}", copy.display()))
}

/// Removes the home's own old copies. It keeps the newest ones, and the copy that was just made is one of
/// them. Copies with a later name than that one were made by a wrong clock, and go first. Returns how many
/// were removed. A copy that cannot be removed adds its reason to `stay`: it does not make the others stay,
/// and it does not make the new copy a failure.
fn remove_old(home: &Home, made: &Path, stay: &mut Vec<String>) -> usize {
    // A copy that another process is making does not count yet. A copy that the owner named is the owner's to
    // remove.
    let is_named = |path: &Path| {
        let name = path.file_name().and_then(OsStr::to_str);
        name.is_some_and(|name| DateTime::strptime(COPY_NAME, name).is_ok())
    };
    let is_copy = |path: &PathBuf| path != made && is_named(path) && path.join(sums::NAME).is_file();
    let entries = fs::read_dir(home.backups());
    let mut others: Vec<PathBuf> =
        entries.into_iter().flatten().flatten().map(|entry| entry.path()).filter(is_copy).collect();
    others.sort();
    let (before, ahead): (Vec<PathBuf>, Vec<PathBuf>) =
        others.into_iter().partition(|path| path.as_path() < made);
    let old = (before.len() + ahead.len() + 1).saturating_sub(KEPT);
    let mut removed = 0;
    for copy in ahead.iter().chain(&before).take(old) {
        // A partly removed copy must not look like a copy, so it is renamed first. The next run tries again
        // to remove it.
        let name = copy.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let going = copy.with_file_name(format!(".{name}.new-{}", std::process::id()));
        let going = if fs::rename(copy, &going).is_ok() { &going } else { copy };
        match remove(going) {
            Ok(()) => removed += 1,
            Err(why) => stay.push(why),
        }
    }
    removed
}
