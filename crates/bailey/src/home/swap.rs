//! How a copy takes a home's place: in one step of the file system, and whoever opens the home next ends what follows it.
//!
//! What is no part of any copy (what sessions changed, and other copies) goes over to the new home after that step. Until it has, a file
//! there names the old one.

use super::write_private;
use anyhow::{Context as _, Result};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    path::Path,
};

/// That file.
const MARK: &str = "restoring.json";
/// What goes on in the new home, where the copy has none of it.
const GOES_ON: [&str; 2] = ["sessions", "backups"];

/// The old home, by names beside the new one.
#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    /// What it is called by that step.
    old: String,
    /// What it is to be called.
    before: String,
}

/// Has `new` take the place of the home at `root`, which is to be called `before`: whoever looks sees the one home or the other.
///
/// # Errors
/// When it cannot, such as where the home is a mount point; nothing was changed then.
pub(crate) fn exchange(root: &Path, new: &Path, before: &Path) -> Result<()> {
    let name = |path: &Path| path.file_name().and_then(OsStr::to_str).unwrap_or_default().to_owned();
    let mark = Mark { old: name(new), before: name(before) };
    write_private(&new.join(MARK), &serde_json::to_vec(&mark)?)?;
    renameat_with(CWD, new, CWD, root, RenameFlags::EXCHANGE)
        .with_context(|| format!("`{}` cannot take the home's place", new.display()))
}

/// Ends an exchange that was begun, if there is one.
///
/// # Errors
/// When what is no part of a copy cannot be moved: the home is not whole then.
pub(crate) fn finish(root: &Path) -> Result<()> {
    let mark = root.join(MARK);
    let cannot = || format!("a restore of `{}` was cut off, and cannot be ended", root.display());
    let held = match File::open(&mark) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        held => held.with_context(cannot)?,
    };
    held.lock().with_context(cannot)?;
    // Whoever waited for the lock finds that it was done.
    if mark.symlink_metadata().is_err() {
        return Ok(());
    }
    go_over(root, &mark).with_context(cannot)
}

/// Each step can be done again.
fn go_over(root: &Path, mark: &Path) -> Result<()> {
    let is_damaged = || format!("`{}` is damaged", mark.display());
    let Mark { old, before } = serde_json::from_slice(&fs::read(mark)?).with_context(is_damaged)?;
    let beside = |name: &str| Some(root.with_file_name(Path::new(name).file_name()?));
    let old = beside(&old).with_context(is_damaged)?;
    let before = beside(&before).with_context(is_damaged)?;
    if old == root {
        // It never took a home's place.
        return Ok(fs::remove_file(mark)?);
    }
    if old.symlink_metadata().is_ok() {
        fs::rename(&old, &before).with_context(|| format!("what was there is in `{}`", old.display()))?;
    }
    for part in GOES_ON {
        go_on(&before.join(part), &root.join(part))?;
    }
    for folder in [root, before.as_path(), root.parent().unwrap_or(Path::new("/"))] {
        // The old home may have been removed.
        File::open(folder).map_or(Ok(()), |folder| folder.sync_all())?;
    }
    Ok(fs::remove_file(mark)?)
}

/// Moves what is no part of a copy to where it goes on, unless there is something.
fn go_on(before: &Path, now: &Path) -> Result<()> {
    if !before.is_dir() {
        return Ok(());
    }
    if fs::read_dir(now).is_ok_and(|mut entries| entries.next().is_none()) {
        fs::remove_dir(now)?;
    }
    if now.symlink_metadata().is_err() {
        let cannot = || format!("`{}` cannot be moved to `{}`", before.display(), now.display());
        fs::rename(before, now).with_context(cannot)?;
    }
    Ok(())
}
