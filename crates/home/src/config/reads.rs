//! Further directories of the owner's that every command may read: `[sandbox] read`.

use super::{Config, ConfigError, Document};
use crate::home::Home;
use std::{
    fs,
    path::{Component, Path, PathBuf},
};

/// System directories, refused with everything in them.
const SYSTEM: &[&str] = &["/boot", "/dev", "/etc", "/proc", "/run", "/sys", "/var/run"];
/// Directories that hold the files of all users, refused themselves.
const PLACES: &[&str] =
    &["/", "/home", "/mnt", "/media", "/root", "/srv", "/tmp", "/var", "/var/lib", "/var/tmp"];

impl Config {
    /// Checks the directories that the owner wants commands to read.
    ///
    /// # Errors
    /// At the first directory that commands must not read.
    pub(super) fn check_reads(&self, home: &Home, document: &Document) -> Result<(), ConfigError> {
        let mut reads = self.reads.iter().enumerate();
        reads.try_for_each(|(place, written)| {
            let refused = |why| document.mistake_in("sandbox.read", place, format!("`{written}` {why}"));
            directory(home, written).map(drop).map_err(refused)
        })
    }

    /// The canonical paths of the directories, and the missing directories as the file writes them.
    pub fn shown(&self, home: &Home) -> (Vec<PathBuf>, Vec<String>) {
        let (mut shown, mut missing) = (Vec::new(), Vec::new());
        for written in &self.reads {
            match directory(home, written) {
                Ok(path) if path.is_dir() => shown.push(path),
                _ => missing.push(written.clone()),
            }
        }
        (shown, missing)
    }
}

/// The path of a directory, if commands may read it.
fn directory(home: &Home, written: &str) -> Result<PathBuf, String> {
    let named = match written.strip_prefix('~') {
        Some(below) if below.is_empty() || below.starts_with('/') => {
            home.user.join(below.trim_start_matches('/'))
        }
        _ => PathBuf::from(written),
    };
    let is_plain = !named.components().any(|part| part == Component::ParentDir);
    if !named.is_absolute() || !is_plain {
        return Err("must be a directory's whole path, from `/` or from `~/` on and without `..`".into());
    }
    // A link in the path leads to the directory that commands see.
    let path = fs::canonicalize(&named).unwrap_or(named);
    if path.exists() && !path.is_dir() {
        return Err("is no directory".into());
    }
    let is_near = |other: &Path| path.starts_with(other) || other.starts_with(&path);
    if home.user.starts_with(&path) {
        return Err("is, or holds, your home directory, where keys lie: name directories in it".into());
    }
    if is_near(&home.root) {
        return Err("is, lies in, or holds Bailey's own home".into());
    }
    if SYSTEM.iter().any(|system| path.starts_with(system))
        || PLACES.iter().any(|place| path == Path::new(place))
    {
        return Err(
            "belongs to the system, or holds what is everybody's: name a directory in it that is yours"
                .into(),
        );
    }
    if path.parent() == Some(Path::new("/home")) {
        return Err("is a home directory, where keys lie: name directories in it".into());
    }
    let user = home.user.display().to_string();
    let mut protected = bailey_policy::protected_places(&user);
    // The protected names of this home are protected in another home, too.
    let is_alike = |name: &str| path.components().any(|part| part.as_os_str() == name);
    if protected.any(|place| is_near(Path::new(&place))) || bailey_policy::protected_in_home().any(is_alike) {
        return Err("is, lies in, or holds what no agent may see, such as keys and passwords".into());
    }
    Ok(path)
}
