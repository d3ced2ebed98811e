//! How a copy takes the place of a home: in one step of the file system. The next process that opens the home
//! completes the remaining work.
//!
//! No copy contains the changes of sessions, or other copies. After that step, these move to the new home. If
//! the old home received a stop up to then, the new home gets it, too. Until both are done, a mark file in
//! the new home names the old one.

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

/// The mark file.
pub const MARK: &str = "restoring.json";
/// The journal of the old and the new home.
const JOURNAL: &str = "journal.db";
/// The folders that move to the new home, where the copy has no content for them.
const GOES_ON: [&str; 3] = [SCRATCH, "sessions", "backups"];

/// The names of the old home. It lies beside the new one.
#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    /// The name that the step gives it.
    old: String,
    /// The name that it gets afterwards.
    before: String,
}

/// Puts `new` in the place of the home at `root`. The old home is to get the name `before`. At every moment,
/// a reader sees one home or the other.
///
/// # Errors
/// When the exchange fails, for example because the home is a mount point. Nothing has changed then.
pub fn exchange(root: &Path, new: &Path, before: &Path) -> Result<()> {
    let name = |path: &Path| path.file_name().and_then(OsStr::to_str).unwrap_or_default().to_owned();
    let mark = Mark { old: name(new), before: name(before) };
    write_private(&new.join(MARK), &serde_json::to_vec(&mark)?)?;
    renameat_with(CWD, new, CWD, root, RenameFlags::EXCHANGE)
        .with_context(|| format!("`{}` cannot take the home's place", new.display()))
}

/// Completes an exchange, if an earlier process began one.
///
/// # Errors
/// When a folder that is not part of a copy cannot be moved. The home is not complete then.
pub fn finish(root: &Path) -> Result<()> {
    let mark = root.join(MARK);
    let cannot = || format!("a restore of `{}` was cut off, and cannot be ended", root.display());
    let held = match File::open(&mark) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        held => held.with_context(cannot)?,
    };
    held.lock().with_context(cannot)?;
    // Another process completed the exchange while this one waited for the lock.
    if mark.symlink_metadata().is_err() {
        return Ok(());
    }
    go_over(root, &mark).with_context(cannot)
}

/// Whether `folder`, beside the home at `root`, is an unfinished new home that no process works on any more.
/// A folder that was a home does not count, nor does an old home that is still to get its name. No other
/// process may hold the folder during this call.
///
/// # Errors
/// When the answer cannot be found.
pub fn is_cut_off(root: &Path, folder: &Path) -> Result<bool> {
    let mark = root.join(MARK);
    let is_named = match mark.try_exists()? {
        true => read(&mark)?.names(folder),
        false => false,
    };
    // A copy has no such folder, and each home has one.
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

/// Moves the rest to the new home. Each step can be repeated.
fn go_over(root: &Path, mark: &Path) -> Result<()> {
    let is_damaged = || format!("`{}` is damaged", mark.display());
    let Mark { old, before } = read(mark)?;
    let beside = |name: &str| Some(root.with_file_name(Path::new(name).file_name()?));
    let old = beside(&old).with_context(is_damaged)?;
    let before = beside(&before).with_context(is_damaged)?;
    if old == root {
        // This folder never took a home's place.
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
    // This comes as late as possible: a process at the old home may have stopped it since the last look, even
    // after the exchange.
    JournalFile::stop_as(&root.join(JOURNAL), &before.join(JOURNAL), &SystemClock)?;
    Ok(fs::remove_file(mark)?)
}

/// Moves a folder that is not part of a copy to the new home, unless the new home has content there.
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
