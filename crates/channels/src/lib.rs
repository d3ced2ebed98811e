//! Chat channels: what people say there and what is said to them, as one platform's requests and answers.
//!
//! A channel is a codec, as a model's provider is: it does no I/O, keeps no state and knows no session.
//! Whoever runs it asks what to send ([`Call`]), sends that through the network door, which puts the key in,
//! and gives back what came ([`Reply`]). So the next platform is one file: see [`Telegram`], which is asked
//! for news, and [`Webhook`], which brings them.
//!
//! What comes from the platform is foreign. People are known by what the platform vouches for
//! ([`Sender::id`]), never by what they call themselves; words that are somebody else's
//! ([`Message::is_quoted`]) say so.

mod markup;
mod telegram;
mod webhook;

pub use telegram::Telegram;
pub use webhook::Webhook;

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Where the key stands in a [`Call`]'s path: the network door puts it there.
pub const KEY: &str = "{key}";

/// A chat platform.
pub trait Channel: Send + Sync {
    /// Asks who the platform takes us for: the first call, by which a wrong key is found; none where it takes
    /// us for nobody.
    fn hello(&self) -> Option<Call>;

    /// Who that is.
    ///
    /// # Errors
    /// What is wrong with the answer.
    fn greeted(&self, reply: &Reply) -> Result<Us, Failure>;

    /// Asks for what is new after `cursor`, and waits for it on the other side; none where the platform comes
    /// by itself.
    fn poll(&self, cursor: i64) -> Option<Call>;

    /// What is new after `cursor`; what a server brings again from before is not. Where the platform comes by
    /// itself, what it brought.
    ///
    /// # Errors
    /// What is wrong with the answer. Single things in it that cannot be read are passed over.
    fn news(&self, us: &Us, cursor: i64, reply: &Reply) -> Result<News, Failure>;

    /// A reply in the model's words, in the platform's markup, as pages that each fit into a message.
    fn pages(&self, markdown: &str) -> Vec<String>;

    /// Plain words in the platform's markup.
    fn plain(&self, text: &str) -> String;

    /// What the platform counts together with a conversation where it wants that to be left alone.
    fn counted<'a>(&self, at: &'a Conversation) -> &'a str {
        &at.0
    }

    /// Says something. Doing it twice says it twice.
    fn send(&self, to: &Conversation, post: &Post) -> Call;

    /// Makes a message say something else. Doing it twice does it once.
    fn edit(&self, to: &Conversation, message: &str, post: &Post) -> Call;

    /// The name of the message that was sent or edited.
    ///
    /// # Errors
    /// Why it was not.
    fn sent(&self, reply: &Reply) -> Result<String, Failure>;

    /// Whether the platform is told a name with each call, and knows by it one that is made again.
    fn hears_names(&self) -> bool {
        false
    }

    /// Tells whoever tapped a button what came of it.
    fn tapped(&self, tap: &Tap, words: &str) -> Call;

    /// Shows that somebody is at work, where the platform can.
    fn busy(&self, to: &Conversation) -> Option<Call>;

    /// Asks where a file is; none where the platform brings no files.
    fn locate(&self, _: &Attachment) -> Option<Call> {
        None
    }

    /// The call that fetches it. The path in it is the platform's own word: whoever makes the call looks at
    /// it first.
    ///
    /// # Errors
    /// Why it cannot be fetched.
    fn located(&self, _: &Reply, _bytes_max: usize) -> Result<Call, Failure> {
        Err(Failure::Refused("no files are fetched there".into()))
    }

    /// Its bytes.
    ///
    /// # Errors
    /// Why they did not come.
    fn fetched(&self, reply: Reply) -> Result<Vec<u8>, Failure> {
        match reply.status {
            200 => Ok(reply.body),
            status => Err(Failure::Refused(format!("the server answered {status}"))),
        }
    }
}

/// A request to the platform's server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The path beneath the server's URL, with [`KEY`] where the key stands.
    pub path: String,
    /// The body, JSON.
    pub body: String,
    /// The longest time to the answer.
    pub patience: Duration,
    /// The most bytes of the file that is asked for; none where the body is posted.
    pub fetches: Option<usize>,
}

/// What the server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// Who the platform takes us for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Us {
    /// What names us there and never changes.
    pub id: String,
    /// What people call us there.
    pub name: String,
}

impl Us {
    /// Whether a text names us as people do, with an `@` by itself or behind a command; a longer name is
    /// another's, and so is an address.
    #[must_use]
    pub fn is_named_in(&self, text: &str) -> bool {
        let (text, name) = (text.to_ascii_lowercase(), format!("@{}", self.name.to_ascii_lowercase()));
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let stands_alone = |before: &str| {
            let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
            let is_command = word.strip_prefix('/').is_some_and(|command| command.chars().all(is_of_name));
            is_command || !word.ends_with(is_of_name)
        };
        let mut named = text.match_indices(&*name);
        name.len() > 1
            && named.any(|(at, _)| {
                let (before, from) = text.split_at(at);
                stands_alone(before) && !from[name.len()..].starts_with(is_of_name)
            })
    }
}

/// What is new on a platform.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct News {
    /// Where to go on.
    pub cursor: i64,
    /// In the order in which it happened.
    pub arrivals: Vec<Arrival>,
}

/// Something that a person did there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    /// They said something.
    Message(Message),
    /// They tapped a button.
    Tap(Tap),
}

/// Where something is said: a chat, or a topic of one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Conversation(pub String);

/// Who says something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// What the platform vouches for and nobody can choose.
    pub id: String,
    /// What they call themselves: for people, and for nothing else.
    pub name: String,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its name, unique in its conversation: the same when the platform brings it again.
    pub key: String,
    /// Where.
    pub at: Conversation,
    /// Who.
    pub from: Sender,
    /// The words, with what they are about where they answer another message.
    pub text: String,
    /// Whether words in it are somebody else's: passed on, or of a message that it answers.
    pub is_quoted: bool,
    /// Whether it is to us: it is said to us alone, names us, or answers us.
    pub is_to_us: bool,
    /// Files that came with it.
    pub files: Vec<Attachment>,
    /// What came with it and is neither text nor a file that can be fetched, in words: `a place`.
    pub left_out: Vec<String>,
}

/// A file that came with a message. What it is, how large and what it is called are what the sender and the
/// platform say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The platform's name for it.
    pub id: String,
    /// What it is said to be.
    pub kind: AttachmentKind,
    /// The sender's name for it, without control characters; empty where it has none.
    pub name: String,
    /// How many bytes it has; none where nobody says so.
    pub bytes: Option<u64>,
}

/// What a file is said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentKind {
    /// A picture that models may be shown.
    Picture,
    /// What somebody said.
    Voice,
    /// Anything else.
    File,
}

impl AttachmentKind {
    /// What people call it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Picture => "a picture",
            Self::Voice => "a voice message",
            Self::File => "a file",
        }
    }
}

/// A tapped button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tap {
    /// The tap's own name, by which it is answered.
    pub id: String,
    /// Where.
    pub at: Conversation,
    /// Who.
    pub from: Sender,
    /// What the button was made with.
    pub data: String,
}

/// Something to say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Post {
    /// In the platform's markup, of a length that fits.
    pub text: String,
    /// Beneath it.
    pub buttons: Vec<Button>,
}

/// A button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Button {
    /// What stands on it.
    pub label: String,
    /// What a tap brings, at most 64 bytes.
    pub data: String,
}

/// Why a call brought nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The platform wants to be left alone for so long.
    #[error("the server asks to wait for {} s", .0.as_secs())]
    Wait(Duration),
    /// It may be tried again.
    #[error("{0}")]
    Again(String),
    /// The platform takes us for nobody: the key is wrong.
    #[error("{0}")]
    Key(String),
    /// It will never be taken.
    #[error("{0}")]
    Refused(String),
}
