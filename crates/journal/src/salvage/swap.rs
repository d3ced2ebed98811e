//! How a new journal takes the place of a torn one: several files, and at each moment the one journal or the
//! other.
//!
//! A log belongs to a database by its name alone, so a new database beside an old log would be taken apart by
//! it. The new files wait in a folder, whose name is the moment that counts: from then on whoever opens the
//! journal first ends the exchange, under a lock, and each step of it can be done again.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

const JOURNAL: &str = "journal.db";
const KEY: &str = "journal.key";
/// What the folder's name has behind that of the journal, and that of what is kept of a torn one.
const READY: &str = "salvaged";
const KEPT: &str = "torn-";

/// A file whose name is that of another and an ending.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Where a torn journal will be kept.
pub(super) fn name(journal: &Path, time: &str) -> PathBuf {
    let mut name = journal.with_extension(format!("{KEPT}{time}"));
    let mut more = 1;
    while name.symlink_metadata().is_ok() {
        more += 1;
        name = journal.with_extension(format!("{KEPT}{time}-{more}"));
    }
    name
}

/// Makes all ready in `folder` for the moment that counts, and waits until it is on disk.
pub(super) fn harden(folder: &Path, kept: &Path, keeps_key: bool) -> io::Result<()> {
    if !keeps_key {
        // A key that was never used: a new line of keys begins.
        drop(OpenOptions::new().write(true).create_new(true).mode(0o600).open(folder.join(KEY))?);
    }
    if fs::metadata(folder.join("journal.db-wal")).is_ok_and(|about| about.len() > 0) {
        return Err(io::Error::other("the new journal is not whole in its file: begin again"));
    }
    DirBuilder::new().mode(0o700).create(folder.join(kept.file_name().unwrap_or_default()))?;
    File::open(folder.join(JOURNAL))?.sync_all()?;
    File::open(folder)?.sync_all()
}

/// Has the files in `folder` wait to take the journal's place.
pub(super) fn begin(journal: &Path, folder: &Path) -> io::Result<()> {
    fs::rename(folder, journal.with_extension(READY))?;
    sync(journal)
}

/// Ends an exchange that was begun, if there is one.
pub(crate) fn finish(journal: &Path) -> io::Result<()> {
    let ready = journal.with_extension(READY);
    if ready.symlink_metadata().is_err() {
        return Ok(());
    }
    let held = match File::open(&ready) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        held => held?,
    };
    held.lock()?;
    // Whoever waited for the lock finds that it was done.
    if ready.symlink_metadata().is_err() {
        return Ok(());
    }
    let kept = kept_in(&ready, journal)?;
    let new = ready.join(JOURNAL);
    if let Some(kept) = &kept
        && new.symlink_metadata().is_ok()
    {
        put_away(&beside(journal, "-wal"), &kept.join("journal.db-wal"))?;
        put_away(&beside(journal, "-shm"), &kept.join("journal.db-shm"))?;
        let key = ready.join(KEY);
        if key.symlink_metadata().is_ok() {
            put_away(&journal.with_extension("key"), &kept.join(KEY))?;
            fs::rename(&key, journal.with_extension("key"))?;
        }
        put_away(journal, &kept.join(JOURNAL))?;
        sync(&kept.join(JOURNAL))?;
        fs::rename(&new, journal)?;
        sync(journal)?;
    }
    if let Some(kept) = kept {
        fs::rename(&kept, journal.with_file_name(kept.file_name().unwrap_or_default()))?;
    }
    fs::remove_dir_all(&ready)?;
    sync(journal)
}

/// The folder of what is kept.
fn kept_in(ready: &Path, journal: &Path) -> io::Result<Option<PathBuf>> {
    let begin = journal.with_extension(KEPT).file_name().map(OsString::from).unwrap_or_default();
    for entry in fs::read_dir(ready)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(begin.as_encoded_bytes()) {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

/// Moves a file unless it was moved before.
fn put_away(from: &Path, to: &Path) -> io::Result<()> {
    if to.symlink_metadata().is_ok() {
        return Ok(());
    }
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        moved => moved,
    }
}

/// Waits until the names beside a file are on disk.
fn sync(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests;
