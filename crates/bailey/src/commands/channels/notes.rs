//! What the process of a channel must not forget: where the platform's news go on, which messages have no whole answer yet, and in which
//! messages of ours the answers stand.

use bailey_channels::{Attachment, Button, Conversation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(super) struct Notes {
    /// Where the platform's news go on.
    pub(super) cursor: i64,
    /// Messages without a whole answer, in the order in which they came.
    pub(super) open: Vec<Open>,
    /// The messages of ours that an answer stands in, by conversation.
    pub(super) shown: BTreeMap<String, Vec<String>>,
    /// What was delivered lately, with its time in seconds since 1970.
    #[serde(default)]
    pub(super) delivered: BTreeMap<String, u64>,
    /// The messages of ours with questions that are open, by question.
    pub(super) cards: BTreeMap<String, CardNote>,
}

/// A message that is to be answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Open {
    pub(super) key: String,
    pub(super) at: String,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) text: String,
    pub(super) is_quoted: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<Attachment>,
}

/// A question that stands in a message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CardNote {
    pub(super) at: String,
    pub(super) message: String,
    /// Its words, in the platform's markup.
    pub(super) text: String,
    /// Whether all of it was shown: to what nobody has seen there is no yes.
    #[serde(default)]
    pub(super) is_whole: bool,
    /// What can be tapped beneath it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) buttons: Vec<Button>,
    /// Whether it was on its way to the platform: it stands there, or not.
    #[serde(default)]
    pub(super) is_on_its_way: bool,
}

impl Notes {
    /// The messages of a conversation that have no whole answer yet.
    pub(super) fn open_in(&self, at: &Conversation) -> Vec<Open> {
        self.open.iter().filter(|open| open.at == at.0).cloned().collect()
    }
}
