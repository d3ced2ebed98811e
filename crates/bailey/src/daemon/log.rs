//! The daemon's log: a line of JSON for each thing that happened to it. What happened in sessions is in the journal.

use anyhow::{Context as _, Result};
use bailey_journal::{Clock as _, SystemClock};
use serde_json::{Map, Value, json};
use std::{
    cell::RefCell,
    fs::{self, File, OpenOptions},
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// Where the log is moved to when it is full, and how large it may become, in bytes.
const BEFORE: &str = "log.1";
const BYTES_MAX: u64 = 4 << 20;

/// The log of a daemon that runs.
#[derive(Debug)]
pub(super) struct Log {
    folder: PathBuf,
    file: RefCell<File>,
}

impl Log {
    /// Goes on with the one that is there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let file = file(folder)?;
        Ok(Self { folder: folder.to_path_buf(), file: RefCell::new(file) })
    }

    /// Notes what happened. That it cannot be, such as on a full disk, stops nothing.
    pub(super) fn note(&self, what: &str, about: Value) {
        let mut line = Map::new();
        line.insert("at".into(), json!(SystemClock.now().to_string()));
        line.insert("what".into(), json!(what));
        if let Value::Object(about) = about {
            line.extend(about);
        }
        let mut file = self.file.borrow_mut();
        if file.metadata().is_ok_and(|about| about.len() > BYTES_MAX) {
            fs::rename(self.folder.join(super::LOG), self.folder.join(BEFORE)).ok();
            if let Ok(new) = self::file(&self.folder) {
                *file = new;
            }
        }
        file.write_all(format!("{}\n", Value::Object(line)).as_bytes()).ok();
    }
}

fn file(folder: &Path) -> Result<File> {
    let path = folder.join(super::LOG);
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
    file.with_context(|| format!("cannot write `{}`", path.display()))
}
