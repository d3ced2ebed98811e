//! An answer while it is written: messages of ours that are edited until they say all of it.

use crate::{
    Conversation, Post,
    bridge::{Bridge, seconds},
    notes::Notes,
};
use std::time::Duration;

/// What stands in a message before its words do.
const BEGUN: &str = "…";

/// The answer of a turn while it is written.
#[derive(Debug, Default)]
pub(super) struct LiveAnswer {
    text: String,
    /// What the agent does just now.
    doing: Option<String>,
    /// Whether what came last was no text, so that more text begins a paragraph.
    is_apart: bool,
    is_dirty: bool,
    pages: Vec<AnswerMessage>,
}

/// One message of the answer, and what it says.
#[derive(Debug)]
struct AnswerMessage {
    message: String,
    says: String,
    /// When it was sent, in seconds since 1970.
    sent: u64,
}

impl LiveAnswer {
    /// One that stands in a conversation's messages already, as far as it does.
    pub(super) fn in_messages(notes: &Notes, at: &Conversation) -> Self {
        let messages = notes.shown.get(&at.0).into_iter().flatten();
        let sent = notes.shown_at.get(&at.0).copied().unwrap_or_default();
        let page = |message: &String| AnswerMessage { message: message.clone(), says: String::new(), sent };
        let pages = messages.map(page).collect();
        Self { pages, ..Self::default() }
    }

    /// The same messages, before anything is known to stand in them.
    pub(super) fn afresh(&mut self) {
        let mut pages = std::mem::take(&mut self.pages);
        pages.iter_mut().for_each(|page| page.says.clear());
        *self = Self { pages, ..Self::default() };
    }

    pub(super) fn write(&mut self, text: &str) {
        if std::mem::take(&mut self.is_apart) && !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(text);
        self.doing = None;
        self.is_dirty = true;
    }

    /// Nothing more comes.
    pub(super) fn end(&mut self) {
        (self.doing, self.is_dirty) = (None, true);
    }

    /// All that it says is this.
    pub(super) fn replace(&mut self, text: String) {
        (self.text, self.doing, self.is_dirty) = (text, None, true);
    }

    /// Puts a line before it.
    pub(super) fn head(&mut self, line: &str) {
        self.text.insert_str(0, &format!("{line}\n\n"));
        self.is_dirty = true;
    }

    /// Whether people may not notice its end, because its last message is older than this: platforms notify
    /// of new messages, and of no change of one.
    pub(super) fn is_older_than(&self, age: Duration) -> bool {
        self.pages.last().is_some_and(|page| seconds().saturating_sub(page.sent) > age.as_secs())
    }

    pub(super) fn doing(&mut self, what: String) {
        (self.doing, self.is_apart, self.is_dirty) = (Some(what), true, true);
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.is_dirty
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Its messages.
    pub(super) fn messages(&self) -> Vec<String> {
        self.pages.iter().map(|page| page.message.clone()).collect()
    }

    /// Makes the messages say what it says now. `note` is called when there is a new message.
    pub(super) async fn show(
        &mut self,
        bridge: &Bridge,
        at: &Conversation,
        note: impl Fn(Vec<String>),
    ) -> Result<(), String> {
        self.is_dirty = false;
        let mut markdown = self.text.clone();
        if let Some(doing) = &self.doing {
            markdown = format!("{markdown}\n\n⚙ `{}`", doing.replace('`', "'"));
        }
        let wanted = bridge.pages(markdown).await;
        for (number, text) in wanted.into_iter().enumerate() {
            if self.pages.get(number).is_none() {
                // A message is begun before its words are known: to begin one twice is a speck, to say a
                // thing twice is not.
                let begun = Post { text: bridge.channel.plain(BEGUN), buttons: Vec::new() };
                let name = bridge.beginning(at);
                let message = bridge.deliver(at, name, || bridge.channel.send(at, &begun)).await?;
                self.pages.push(AnswerMessage { message, says: String::new(), sent: seconds() });
                note(self.messages());
            }
            let Some(page) = self.pages.get_mut(number) else { continue };
            if page.says == text {
                continue;
            }
            let post = Post { text: text.clone(), buttons: Vec::new() };
            let name = bridge.change(at, &page.message, &text);
            let edit = || bridge.channel.edit(at, &page.message, &post);
            let edited = bridge.deliver(at, name.clone(), edit).await;
            if edited.is_err() {
                // It was deleted, or can be edited no more.
                let instead = format!("{name} instead");
                page.message = bridge.deliver(at, instead, || bridge.channel.send(at, &post)).await?;
                page.sent = seconds();
                page.says = text;
                note(self.messages());
            } else {
                page.says = text;
            }
        }
        Ok(())
    }
}
