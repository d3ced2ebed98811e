//! What the process of a channel must not forget: where the platform's news go on, which messages have no whole answer yet, and in which
//! messages of ours the answers stand.

use bailey_channels::{Attachment, Button, Conversation, Tap};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(super) struct Notes {
    /// Where the platform's news go on.
    cursor: i64,
    /// Whose news these are, and when the last came, in seconds since 1970.
    #[serde(default)]
    cursor_of: String,
    #[serde(default)]
    cursor_at: u64,
    /// Messages without a whole answer, in the order in which they came.
    pub(super) open: Vec<Open>,
    /// What was tapped and has not reached its session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) taps: Vec<Tap>,
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

/// How long nothing came until it is asked for news without a number: Telegram begins anew, anywhere, after a week without any, and
/// keeps none for longer than a day.
const QUIET_SECONDS: u64 = 5 * 24 * 3600;

impl Notes {
    /// Where the news of a source go on; 0 is its beginning.
    pub(super) fn cursor_for(&self, source: &str, now: u64) -> i64 {
        let is_ours = self.cursor_of == source && now.abs_diff(self.cursor_at) < QUIET_SECONDS;
        if is_ours { self.cursor } else { 0 }
    }

    /// Notes where they go on.
    pub(super) fn go_on(&mut self, source: &str, cursor: i64, now: u64) {
        (self.cursor, self.cursor_at) = (cursor, now);
        source.clone_into(&mut self.cursor_of);
    }

    /// The messages of a conversation that have no whole answer yet.
    pub(super) fn open_in(&self, at: &Conversation) -> Vec<Open> {
        self.open.iter().filter(|open| open.at == at.0).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Notes, QUIET_SECONDS};

    #[test]
    fn numbers_go_on_within_one_source_and_not_after_a_long_quiet() {
        let mut notes = Notes::default();
        notes.go_on("bot 1", 760_546_624, 1_000);
        assert_eq!(notes.cursor_for("bot 1", 1_000 + QUIET_SECONDS - 1), 760_546_624);
        // Telegram begins anew with any number; another bot, and another server, have numbers of their own.
        assert_eq!(notes.cursor_for("bot 1", 1_000 + QUIET_SECONDS), 0);
        assert_eq!(notes.cursor_for("bot 2", 1_001), 0);
        notes.go_on("bot 1", 592_426_181, 900_000);
        assert_eq!(notes.cursor_for("bot 1", 900_001), 592_426_181);
    }
}
