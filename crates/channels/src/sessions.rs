//! Which session belongs to which conversation.

use crate::Conversation;
use anyhow::Result;
use bailey_home::home::{Home, write_private};
use bailey_protocol::SessionId;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// How many sessions are known of whose questions the owner was told.
const HANDED_MAX: usize = 200;

/// The sessions of one channel, by conversation.
#[derive(Debug, Default)]
pub struct Sessions(BTreeMap<String, StoredSession>);

/// The session of a conversation, as the file has it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum StoredSession {
    /// With the channel's project, as it was configured when the conversation began.
    In { session: SessionId, workspace: PathBuf },
    /// The older format, without a project.
    Anywhere(SessionId),
}

impl Sessions {
    /// The sessions of a channel. A file that cannot be parsed loses no session: the conversations begin
    /// anew.
    pub fn of(home: &Home, channel: &str) -> Self {
        let bytes = fs::read(path(home, channel)).unwrap_or_default();
        Self(serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// The session of a conversation, for any project.
    pub fn get(&self, conversation: &str) -> Option<SessionId> {
        let (StoredSession::In { session, .. } | StoredSession::Anywhere(session)) =
            self.0.get(conversation)?;
        Some(*session)
    }

    /// The session of a conversation, to go on about this project; `None` when it was about another project.
    pub fn about(&self, conversation: &str, project: &Path) -> Option<SessionId> {
        match self.0.get(conversation)? {
            StoredSession::In { workspace, .. } if workspace != project => None,
            StoredSession::In { session, .. } | StoredSession::Anywhere(session) => Some(*session),
        }
    }

    /// Notes that this conversation is that session, about that project, from now on.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(
        home: &Home,
        channel: &str,
        conversation: &str,
        (session, project): (SessionId, &Path),
    ) -> Result<()> {
        let kept = StoredSession::In { session, workspace: project.to_path_buf() };
        Self::change(home, channel, |sessions| drop(sessions.insert(conversation.to_owned(), kept)))
    }

    /// Notes that the owner is told of this session's questions in that conversation, which is the session's
    /// from then on: so its buttons go on after the session's end. Old ones are forgotten.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn hand(home: &Home, channel: &str, conversation: &str, session: SessionId) -> Result<()> {
        let kept = StoredSession::Anywhere(session);
        Self::change(home, channel, |sessions| {
            sessions.insert(conversation.to_owned(), kept);
            let mut handed: Vec<(SessionId, String)> = sessions.iter().filter_map(handed).collect();
            handed.retain(|(other, _)| *other != session);
            // A session's name begins with its time.
            handed.sort();
            let old = handed.len().saturating_sub(HANDED_MAX);
            handed.truncate(old);
            handed.iter().for_each(|(_, name)| drop(sessions.remove(name)));
        })
    }

    /// Forgets the conversation's session: when a person speaks there again, a new session begins.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end(home: &Home, channel: &str, conversation: &str) -> Result<()> {
        Self::change(home, channel, |sessions| drop(sessions.remove(conversation)))
    }

    fn change(
        home: &Home,
        channel: &str,
        change: impl FnOnce(&mut BTreeMap<String, StoredSession>),
    ) -> Result<()> {
        let mut sessions = Self::of(home, channel);
        change(&mut sessions.0);
        home.make_channel(channel)?;
        write_private(&path(home, channel), &serde_json::to_vec_pretty(&sessions.0)?)
    }
}

/// A conversation that is about the questions of a session.
fn handed((name, stored): (&String, &StoredSession)) -> Option<(SessionId, String)> {
    match stored {
        StoredSession::Anywhere(session) if Conversation::split(name).1.is_some() => {
            Some((*session, name.clone()))
        }
        _ => None,
    }
}

fn path(home: &Home, channel: &str) -> PathBuf {
    home.channel(channel).join("conversations.json")
}
