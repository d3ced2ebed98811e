//! Files that name the running sessions: the next daemon begins the sessions of a killed daemon again. A
//! record goes when its session's process ends in order and waits for no answer.

use anyhow::Result;
use bailey_home::home::{Home, write_private};
use bailey_protocol::SessionId;
use bailey_session::wire::Wanted;
use serde::{Deserialize, Serialize};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The end of a record's name.
const ENDING: &str = "json";

/// How a session is begun again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) session: SessionId,
    pub(super) directory: PathBuf,
    /// The words after `bailey chat --resume SESSION`.
    pub(super) again: Vec<String>,
    /// Whether the owner is told of its questions at their chat channels.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) tells_owner: bool,
}

impl Record {
    /// The request to begin the session again.
    pub(super) fn wanted(&self) -> Wanted {
        let Self { session, directory, again, tells_owner } = self.clone();
        let words = ["--resume".into(), session.to_string()].into_iter().chain(again.clone()).collect();
        Wanted { directory, words, again, session: Some(session), comes_back: false, tells_owner }
    }

    /// Writes the record.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn keep(&self, home: &Home) -> Result<()> {
        write_private(&path(home, self.session), &serde_json::to_vec(self)?)
    }

    /// All records, the oldest session first. A file that is not a record is passed over.
    pub(super) fn all(home: &Home) -> Vec<Self> {
        let entries = fs::read_dir(home.daemon()).into_iter().flatten().flatten();
        let is_one = |path: &PathBuf| path.extension().is_some_and(|ending| ending == ENDING);
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_one).collect();
        paths.sort();
        paths.iter().filter_map(|path| read(path)).collect()
    }
}

/// Removes a session's record.
pub(super) fn forget(home: &Home, session: SessionId) {
    fs::remove_file(path(home, session)).ok();
}

fn read(path: &Path) -> Option<Record> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn path(home: &Home, session: SessionId) -> PathBuf {
    home.daemon().join(format!("{session}.{ENDING}"))
}
