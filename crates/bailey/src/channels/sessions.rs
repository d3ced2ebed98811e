//! Which session a conversation is.

use crate::home::{Home, write_private};
use anyhow::Result;
use bailey_protocol::SessionId;
use std::{collections::BTreeMap, fs, path::PathBuf};

/// Those of one channel, by conversation.
#[derive(Debug, Default)]
pub(crate) struct Sessions(BTreeMap<String, SessionId>);

impl Sessions {
    /// Those of a channel. A file that is none is no session lost: the conversations begin anew.
    pub(crate) fn of(home: &Home, channel: &str) -> Self {
        let bytes = fs::read(path(home, channel)).unwrap_or_default();
        Self(serde_json::from_slice(&bytes).unwrap_or_default())
    }

    pub(crate) fn get(&self, conversation: &str) -> Option<SessionId> {
        self.0.get(conversation).copied()
    }

    /// This conversation is that session from now on; or a new one, when somebody speaks there again.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn set(
        home: &Home,
        channel: &str,
        conversation: &str,
        session: Option<SessionId>,
    ) -> Result<()> {
        let mut sessions = Self::of(home, channel);
        match session {
            Some(session) => drop(sessions.0.insert(conversation.to_owned(), session)),
            None => drop(sessions.0.remove(conversation)),
        }
        home.make_channel(channel)?;
        write_private(&path(home, channel), &serde_json::to_vec_pretty(&sessions.0)?)
    }
}

fn path(home: &Home, channel: &str) -> PathBuf {
    home.channel(channel).join("conversations.json")
}
