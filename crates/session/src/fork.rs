//! A session that begins as another one stood.

use crate::{
    compose,
    home::Home,
    place::{keep_standpoint, origin, standpoint},
};
use anyhow::{Result, bail};
use bailey_journal::{Journal, SessionInfo};
use bailey_kernel::Standpoint;
use bailey_protocol::{Seq, SessionId};

/// A fork.
#[derive(Debug)]
pub struct Forked {
    /// The new session.
    pub id: SessionId,
    /// The session that it begins as.
    pub from: SessionId,
    /// The last entry of that session that it has, too.
    pub at: Seq,
    /// How many paths that session changed. Its changes stay with it.
    pub left: usize,
}

/// Forks a session, at an entry or as it stands.
///
/// # Errors
/// When the session works on a copy, or the journal cannot be written.
pub async fn fork(home: &Home, journal: &Journal, from: &SessionInfo, at: Option<u64>) -> Result<Forked> {
    if origin(home, from.id).is_some() {
        bail!(
            "a session that works on a copy cannot be forked: what was said in it names files of that copy"
        );
    }
    let id = compose::new_session()?;
    let at = journal.fork_session(id, from, at).await?;
    let standpoint = standpoint(home, from.id)?;
    if standpoint != Standpoint::default() {
        keep_standpoint(&home.session(id, false)?.path, &standpoint)?;
    }
    let left = journal.touched(from.id).await?.len();
    Ok(Forked { id, from: from.id, at, left })
}
