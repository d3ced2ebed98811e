//! How a copy takes a home's place: in one step of the file system, and whoever opens the home next ends what
//! follows it.
//!
//! What is no part of any copy (what sessions changed, and other copies) goes over to the new home after that
//! step, and so does a stop that the old one was given up to then. Until both have, a file there names the
//! old one.

use super::{SCRATCH, write_private};
use anyhow::{Context as _, Result};
use bailey_journal::{JournalFile, SystemClock};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    path::Path,
};

/// That file.
pub const MARK: &str = "restoring.json";
/// The journal of each.
const JOURNAL: &str = "journal.db";
/// What goes on in the new home, where the copy has none of it.
const GOES_ON: [&str; 3] = [SCRATCH, "sessions", "backups"];

/// The old home, by names beside the new one.
#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    /// What it is called by that step.
    old: String,
    /// What it is to be called.
    before: String,
}

/// Has `new` take the place of the home at `root`, which is to be called `before`: whoever looks sees the one
/// home or the other.
///
/// # Errors
/// When it cannot, such as where the home is a mount point; nothing was changed then.
pub fn exchange(root: &Path, new: &Path, before: &Path) -> Result<()> {
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
pub fn finish(root: &Path) -> Result<()> {
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

/// Whether `folder`, beside the home at `root`, is a new home that nobody makes any more: what has been a
/// home, or is one that is still to get its name, is none. Nobody else may hold it.
///
/// # Errors
/// When it cannot be told.
pub fn is_cut_off(root: &Path, folder: &Path) -> Result<bool> {
    let mark = root.join(MARK);
    let is_named = match mark.try_exists()? {
        true => read(&mark)?.names(folder),
        false => false,
    };
    // A copy has none of that, and each home has.
    let is_home = GOES_ON.iter().any(|part| folder.join(part).symlink_metadata().is_ok());
    Ok(!is_named && !is_home)
}

impl Mark {
    fn names(&self, folder: &Path) -> bool {
        let name = folder.file_name().and_then(OsStr::to_str);
        [&self.old, &self.before].into_iter().any(|named| Some(named.as_str()) == name)
    }
}

fn read(mark: &Path) -> Result<Mark> {
    serde_json::from_slice(&fs::read(mark)?).with_context(|| format!("`{}` is damaged", mark.display()))
}

/// Each step can be done again.
fn go_over(root: &Path, mark: &Path) -> Result<()> {
    let is_damaged = || format!("`{}` is damaged", mark.display());
    let Mark { old, before } = read(mark)?;
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
    // As late as can be: whoever was at the old home may have stopped it since somebody looked, also after
    // the exchange.
    JournalFile::stop_as(&root.join(JOURNAL), &before.join(JOURNAL), &SystemClock)?;
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

#[cfg(test)]
mod tests {
    use super::{MARK, is_cut_off};
    use serde_json::json;
    use std::fs;

    #[test]
    fn a_home_that_is_still_to_get_its_name_is_not_cut_off() {
        let place = tempfile::tempdir().unwrap();
        let [root, old, new] =
            ["home", "home.restoring-1", "home.restoring-2"].map(|name| place.path().join(name));
        for folder in [&root, &old, &new] {
            fs::create_dir(folder).unwrap();
        }
        assert!(is_cut_off(&root, &old).unwrap(), "the control: there is no mark");
        fs::write(
            root.join(MARK),
            json!({ "old": "home.restoring-1", "before": "home.before-1" }).to_string(),
        )
        .unwrap();
        assert!(!is_cut_off(&root, &old).unwrap());
        assert!(is_cut_off(&root, &new).unwrap());
        fs::create_dir(new.join("sessions")).unwrap();
        assert!(!is_cut_off(&root, &new).unwrap(), "it was a home");
        fs::write(root.join(MARK), "{").unwrap();
        assert!(is_cut_off(&root, &old).is_err(), "nobody can tell");
    }
}
