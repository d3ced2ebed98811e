//! What the process of a channel must not forget: where the platform's news go on, which messages have no
//! whole answer yet, and in which messages of ours the answers stand.

use crate::{Attachment, Button, Conversation, Tap};
use anyhow::Result;
use bailey_home::home::Home;
use bailey_protocol::{Digest, SessionId};
use bailey_session::durable_state::DurableState;
use serde::{Deserialize, Deserializer, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    time::Duration,
};

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(super) struct Notes {
    /// Where the platform's news go on, in words of the channel's own. Notes of before have a number.
    #[serde(default, deserialize_with = "cursor", skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    /// Whose news these are, and when the last came, in seconds since 1970.
    #[serde(default)]
    cursor_of: String,
    #[serde(default)]
    cursor_at: u64,
    /// What no other notes are called. What is sent has its name by that and by what it is about, so that it
    /// has it after a kill, too.
    #[serde(default)]
    pub(super) name: String,
    /// Messages without a whole answer, in the order in which they came.
    pub(super) open: Vec<PendingMessage>,
    /// What was tapped and has not reached its session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) taps: Vec<Tap>,
    /// The messages of ours that an answer stands in, by conversation.
    pub(super) shown: BTreeMap<String, Vec<String>>,
    /// When the last of these was sent, in seconds since 1970.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) shown_at: BTreeMap<String, u64>,
    /// The name of the message that is begun for an answer, by conversation, until it is known what the
    /// platform calls it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) begun: BTreeMap<String, String>,
    /// The last change of each message that an answer stands in, by conversation and message.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    changes: BTreeMap<String, BTreeMap<String, MessageEdit>>,
    /// How many there were.
    #[serde(default)]
    changed: u64,
    /// What was delivered lately, with its time in seconds since 1970.
    #[serde(default)]
    pub(super) delivered: BTreeMap<String, u64>,
    /// The messages of ours with questions that are open, by question.
    pub(super) cards: BTreeMap<String, CardNote>,
    /// The message of ours with the buttons for the waiting changes, by conversation.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) offers: BTreeMap<String, Offer>,
    /// The last of the journal's entries that a conversation has shown, for events that are shown once.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) seen: BTreeMap<String, u64>,
    /// The people who spoke here as people who are let in.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) let_in: BTreeSet<String>,
    /// The content of the platform's menu, and its bot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) menu: Option<Digest>,
}

/// A message that is to be answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PendingMessage {
    pub(super) key: String,
    pub(super) at: String,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) text: String,
    pub(super) is_quoted: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<Attachment>,
    /// Whether it stands for a schedule's task, which was said by the clock: only its answer is wanted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_schedules: bool,
    /// Whether it stands for the open questions of the conversation's session, which are to be shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_question: bool,
    /// Whether the turn that runs or waits in the conversation's session is shown here again, because its
    /// person was let in again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_followed: bool,
    /// Whether it is a yes or a no alone, written while a question waited.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_answer: bool,
    /// What Bailey itself says to it, in the platform's markup, once that is known: it is on its way, or
    /// there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) told: Option<String>,
}

/// An edit of a message: the number of the edits before it, and the digest of the new text.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct MessageEdit {
    number: u64,
    says: Digest,
}

/// A question that stands in a message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CardNote {
    pub(super) at: String,
    pub(super) message: String,
    /// What it asks, in short and without markup.
    #[serde(default)]
    pub(super) title: String,
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

/// A message with buttons for the changes that wait.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Offer {
    /// Its name in the data of its buttons.
    pub(super) id: String,
    /// The session whose changes they are; older notes lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<SessionId>,
    /// The platform's name for the message; empty until it is known.
    pub(super) message: String,
    /// Its words, in the platform's markup.
    pub(super) text: String,
    /// The changes that were shown: no other are applied or thrown away by its buttons.
    pub(super) shown: Digest,
    /// Whether a person saw the lines themselves, so that no button shows them.
    pub(super) is_whole: bool,
}

/// What somebody is told whose message is in a copy that was brought back.
const BROUGHT_BACK: &str = "I was brought back to how I was before you had an answer to this, and do not know whether it was done: say it again if it is still to \
                            be done.";

/// Sees that nothing is done a second time in a home that was made of a copy.
///
/// # Errors
/// When the notes of a channel cannot be read or written.
pub fn begin_anew(home: &Home) -> Result<()> {
    folders(home).into_iter().try_for_each(|folder| DurableState::open(&folder)?.change(Notes::begin_anew))
}

/// The words for a person whose message was dropped with a stop.
const DROPPED: &str = "Everything was stopped before you had an answer to this, and your message was \
    dropped. Work on it may have begun and has ended: look first, before you say it again.";

/// How many messages wait in the channels of a home. Notes that cannot be read count as empty.
#[must_use]
pub fn waiting(home: &Home) -> usize {
    let notes = folders(home).into_iter().filter_map(|folder| DurableState::<Notes>::peek(&folder).ok());
    notes.map(|notes| notes.open.iter().filter(|open| open.is_a_persons()).count()).sum()
}

/// Drops the messages that wait in the channels of a home, whose processes have ended. Their people are told.
/// Returns how many.
///
/// # Errors
/// When the notes of a channel cannot be read or written.
pub fn drop_waiting(home: &Home) -> Result<usize> {
    let mut dropped = 0;
    for folder in folders(home) {
        DurableState::<Notes>::open(&folder)?.change(|notes| {
            for open in notes.open.iter_mut().filter(|open| open.is_a_persons()) {
                open.told = Some(DROPPED.into());
                dropped += 1;
            }
        })?;
    }
    Ok(dropped)
}

/// The folders with notes.
fn folders(home: &Home) -> Vec<PathBuf> {
    let channels = fs::read_dir(home.root.join("channels")).into_iter().flatten().flatten();
    channels.map(|channel| channel.path().join("bridge")).filter(|folder| folder.is_dir()).collect()
}

impl PendingMessage {
    /// Whether a person wrote it, and Bailey has not told them anything yet.
    fn is_a_persons(&self) -> bool {
        self.told.is_none() && !self.is_schedules && !self.is_question
    }
}

impl Notes {
    /// Where the news of a source go on, if it is known and lasts that long.
    pub(super) fn cursor_for(&self, source: &str, now: u64, lasts: Option<Duration>) -> Option<String> {
        let is_old = lasts.is_some_and(|lasts| now.abs_diff(self.cursor_at) >= lasts.as_secs());
        self.cursor.clone().filter(|_| self.cursor_of == source && !is_old)
    }

    /// Notes where they go on.
    pub(super) fn go_on(&mut self, source: &str, cursor: String, now: u64) {
        (self.cursor, self.cursor_at) = (Some(cursor), now);
        source.clone_into(&mut self.cursor_of);
    }

    /// The number of a change of a message, which says this then. What it says already it was made to say by
    /// somebody who may have been killed before they heard so: that is the same change. What it said before
    /// the last one is another.
    pub(super) fn change(&mut self, at: &str, message: &str, text: &str) -> u64 {
        let says = Digest::of(text.as_bytes());
        let here = self.changes.entry(at.to_owned()).or_default();
        if let Some(last) = here.get(message).filter(|last| last.says == says) {
            return last.number;
        }
        // Some servers call each answer's message the same.
        let number = self.changed;
        self.changed += 1;
        here.insert(message.to_owned(), MessageEdit { number, says });
        number
    }

    /// Lets go of what a copy of the home has as not answered: whether it was done since the copy was made
    /// nobody knows here.
    fn begin_anew(&mut self) {
        for open in self.open.iter_mut().filter(|open| open.told.is_none()) {
            open.told = Some(BROUGHT_BACK.into());
        }
        self.taps.clear();
    }

    /// Lets go of the messages that are open for a person who is let in no more: they wrote nothing that is
    /// to be answered, and an answer after this begins a message of its own.
    pub(super) fn forget(&mut self, id: &str) {
        let (theirs, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.open).into_iter().partition(|open| open.id == id);
        self.open = others;
        self.taps.retain(|tap| tap.from.id != id);
        for gone in theirs {
            if self.open.iter().all(|open| open.at != gone.at) {
                self.answered(&gone.at);
            }
        }
        self.let_in.remove(id);
    }

    /// An answer stands whole: nothing of it is sent again.
    pub(super) fn answered(&mut self, at: &str) {
        self.shown.remove(at);
        self.shown_at.remove(at);
        self.begun.remove(at);
        self.changes.remove(at);
    }

    /// The messages of a conversation that have no whole answer yet.
    pub(super) fn open_in(&self, at: &Conversation) -> Vec<PendingMessage> {
        self.open.iter().filter(|open| open.at == at.0).cloned().collect()
    }
}

/// A cursor, or the number that it was once; 0 was the beginning.
fn cursor<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum StoredCursor {
        Number(i64),
        Words(String),
    }
    Ok(match Option::<StoredCursor>::deserialize(from)? {
        None | Some(StoredCursor::Number(0)) => None,
        Some(StoredCursor::Number(number)) => Some(number.to_string()),
        Some(StoredCursor::Words(words)) => Some(words),
    })
}

#[cfg(test)]
mod tests {
    use super::Notes;
    use std::time::Duration;

    #[test]
    fn a_change_that_is_made_again_has_its_number_and_one_that_goes_back_another() {
        let mut notes = Notes::default();
        let numbers = ["a", "b", "a", "a"].map(|text| notes.change("here", "m1", text));
        assert_eq!(numbers, [0, 1, 2, 2]);
        // Other messages are changed by themselves.
        assert_eq!((notes.change("here", "m2", "a"), notes.change("there", "m1", "b")), (3, 4));
        let kept = serde_json::to_string(&notes).unwrap();
        let mut after: Notes = serde_json::from_str(&kept).unwrap();
        assert_eq!((after.change("here", "m1", "a"), after.change("here", "m1", "b")), (2, 5));
        after.answered("here");
        // The next answer may have a message of the same name.
        assert_eq!((after.change("here", "m1", "b"), after.change("there", "m1", "b")), (6, 4));
    }

    #[test]
    fn cursors_go_on_within_one_source_and_not_after_a_long_quiet() {
        const LASTS: Option<Duration> = Some(Duration::from_secs(500));
        let mut notes = Notes::default();
        assert_eq!(notes.cursor_for("bot 1", 1_000, LASTS), None);
        notes.go_on("bot 1", "760546624".into(), 1_000);
        let at = |notes: &Notes, source, now, lasts| notes.cursor_for(source, now, lasts).unwrap_or_default();
        assert_eq!(at(&notes, "bot 1", 1_499, LASTS), "760546624");
        // Telegram begins anew with any number; another bot, and another server, have numbers of their own.
        assert_eq!(at(&notes, "bot 1", 1_500, LASTS), "");
        assert_eq!(at(&notes, "bot 1", 900_000, None), "760546624", "one that lasts");
        assert_eq!(at(&notes, "bot 2", 1_001, LASTS), "");
        notes.go_on("bot 1", "s_12/x".into(), 900_000);
        let notes: Notes = serde_json::from_str(&serde_json::to_string(&notes).unwrap()).unwrap();
        assert_eq!(at(&notes, "bot 1", 900_001, LASTS), "s_12/x");
    }

    #[test]
    fn notes_whose_cursor_is_a_number_are_read() {
        let old = |cursor: &str| {
            let text = format!(
                r#"{{"cursor":{cursor},"cursor_of":"99 https://a","cursor_at":7,"open":[],"shown":{{}},"cards":{{}}}}"#
            );
            serde_json::from_str::<Notes>(&text).unwrap().cursor_for("99 https://a", 8, None)
        };
        assert_eq!(old("760546624").as_deref(), Some("760546624"));
        assert_eq!((old("0"), old("\"\""), old("null")), (None, Some(String::new()), None));
    }
}
