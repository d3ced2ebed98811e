//! Which session a conversation is.

use crate::home::{Home, write_private};
use anyhow::Result;
use bailey_protocol::SessionId;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Those of one channel, by conversation.
#[derive(Debug, Default)]
pub(crate) struct Sessions(BTreeMap<String, Kept>);

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Kept {
    /// As the channel's project was configured when it began.
    In { session: SessionId, workspace: PathBuf },
    /// As it was noted before.
    Anywhere(SessionId),
}

impl Sessions {
    /// Those of a channel. A file that is none is no session lost: the conversations begin anew.
    pub(crate) fn of(home: &Home, channel: &str) -> Self {
        let bytes = fs::read(path(home, channel)).unwrap_or_default();
        Self(serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// The one of a conversation, whatever it is about.
    pub(crate) fn get(&self, conversation: &str) -> Option<SessionId> {
        let (Kept::In { session, .. } | Kept::Anywhere(session)) = self.0.get(conversation)?;
        Some(*session)
    }

    /// The one of a conversation that goes on about this project; none where it was about another one.
    pub(crate) fn about(&self, conversation: &str, project: &Path) -> Option<SessionId> {
        match self.0.get(conversation)? {
            Kept::In { workspace, .. } if workspace != project => None,
            Kept::In { session, .. } | Kept::Anywhere(session) => Some(*session),
        }
    }

    /// This conversation is that session about that project from now on.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn begin(
        home: &Home,
        channel: &str,
        conversation: &str,
        (session, project): (SessionId, &Path),
    ) -> Result<()> {
        let kept = Kept::In { session, workspace: project.to_path_buf() };
        Self::change(home, channel, |sessions| drop(sessions.insert(conversation.to_owned(), kept)))
    }

    /// It is a new one, when somebody speaks there again.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn end(home: &Home, channel: &str, conversation: &str) -> Result<()> {
        Self::change(home, channel, |sessions| drop(sessions.remove(conversation)))
    }

    fn change(home: &Home, channel: &str, change: impl FnOnce(&mut BTreeMap<String, Kept>)) -> Result<()> {
        let mut sessions = Self::of(home, channel);
        change(&mut sessions.0);
        home.make_channel(channel)?;
        write_private(&path(home, channel), &serde_json::to_vec_pretty(&sessions.0)?)
    }
}

fn path(home: &Home, channel: &str) -> PathBuf {
    home.channel(channel).join("conversations.json")
}
