//! The projects whose own settings Bailey uses. The owner trusts the exact content of these settings, by
//! digest. Each project has one small file in `trust/` of the home, where no agent can write.

use crate::home::{Home, make_private, write_private};
use anyhow::{Context as _, Result};
use bailey_protocol::{Digest, Timestamp};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The largest size of one record, in bytes.
const RECORD_BYTES_MAX: u64 = 64 << 10;

/// The trust in a project's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustState {
    /// The owner trusts this exact content.
    Trusted,
    /// The owner trusted other content of this project.
    Changed,
    /// The owner has trusted no content of this project.
    Unknown,
}

/// One project whose settings are trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trusted {
    /// The project, canonical.
    pub project: PathBuf,
    /// The digest of its settings.
    pub(crate) settings: String,
    /// The moment since which they are trusted.
    pub since: Timestamp,
}

impl TrustState {
    /// Finds the trust in these settings of this project.
    ///
    /// # Errors
    /// When the record cannot be read: a failed check must not count as a yes.
    pub fn of(home: &Home, root: &Path, settings: &str) -> Result<Self> {
        let digest = Digest::of(settings.as_bytes()).to_string();
        Ok(match read(&record(home, root))? {
            Some(trusted) if trusted.project == root && trusted.settings == digest => Self::Trusted,
            Some(_) => Self::Changed,
            None => Self::Unknown,
        })
    }
}

/// Trusts these settings of this project, and no other settings of it.
///
/// # Errors
/// When the record cannot be written.
pub fn add(home: &Home, root: &Path, settings: &str, now: Timestamp) -> Result<Trusted> {
    let trusted =
        Trusted { project: root.into(), settings: Digest::of(settings.as_bytes()).to_string(), since: now };
    make_private(&home.trust())?;
    write_private(&record(home, root), toml::to_string(&trusted)?.as_bytes())?;
    Ok(trusted)
}

/// Ends the trust in this project's settings. Returns whether they were trusted.
///
/// # Errors
/// When the record cannot be removed.
pub fn remove(home: &Home, root: &Path) -> Result<bool> {
    let record = record(home, root);
    match fs::remove_file(&record) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("cannot remove `{}`", record.display())),
    }
}

/// Every project whose settings are trusted, by path.
///
/// # Errors
/// When a record cannot be read.
pub fn all(home: &Home) -> Result<Vec<Trusted>> {
    let dir = home.trust();
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read `{}`", dir.display())),
    };
    let mut all = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            all.extend(read(&path)?);
        }
    }
    all.sort_by(|a, b| a.project.cmp(&b.project));
    Ok(all)
}

fn record(home: &Home, root: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    home.trust().join(format!("{}.toml", Digest::of(root.as_os_str().as_bytes())))
}

fn read(path: &Path) -> Result<Option<Trusted>> {
    use io::Read as _;
    let what = || format!("`{}` is no record of trust: remove it", path.display());
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read `{}`", path.display())),
    };
    let mut text = String::new();
    file.take(RECORD_BYTES_MAX).read_to_string(&mut text).with_context(what)?;
    toml::from_str(&text).map(Some).with_context(what)
}
