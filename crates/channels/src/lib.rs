//! Chat channels: the messages from people and to people on a chat platform, and the process that brings
//! them to sessions.
//!
//! A platform is a codec ([`Channel`]), as a model's provider is: it does no I/O and knows no session. For
//! each thing to say it makes a request ([`Call`]) and reads the answer ([`Reply`]). To hear, it makes a
//! [`Listener`]: a state machine that takes events (an answer, a message of a WebSocket, a server-sent event,
//! a delivery) and gives back news and commands. The network door does the commands, and puts the key in.
//! See [`Telegram`], which is asked for news, [`Webhook`], which brings them, and `examples/ntfy.rs`, which
//! keeps a stream open.
//!
//! To add a channel, write one file with a [`Kind`], and name it here (`mod`) and in one line of the table in
//! `kinds.rs`. The kind says to which servers requests go, with which methods, and where the key stands; the
//! rules judge each of these servers. A fuzz target for its events goes to `fuzz/src/channels.rs`.
//!
//! The caller is the process of `bridge.rs`. The daemon starts it, and it is bound. Its way to the platform
//! is one effect from opening to closing, so the journal has no entry for each poll and each edit; the
//! messages stand in the sessions where they are said. `listen.rs` does a listener's commands, `talk.rs`
//! holds one conversation (`talk/changes.rs` the changes of its session), `notes.rs` the state that must
//! survive a kill, and `command.rs` the command `bailey channels`.
//!
//! Data from the platform is foreign. A person is known by the id that the platform vouches for
//! ([`Sender::id`]), never by the name that they call themselves. A message with another person's words is
//! marked ([`Message::is_quoted`]). A deed that stops something is done at once, beside the conversation's
//! row, because an answer that is being shown may wait for the platform.

mod answer;
mod bridge;
pub mod command;
mod files;
mod guard;
pub mod inbox;
pub mod kinds;
mod listen;
mod markup;
pub mod need;
mod notes;
#[cfg(any(test, feature = "examples"))]
#[path = "../../../examples/ntfy.rs"]
mod ntfy;
mod people;
mod sessions;
mod talk;
mod telegram;
mod webhook;
mod words;

pub use bailey_egress::uplink::{KEY, Opening, StreamEnd, StreamKind, StreamMessage};
pub use bridge::run as bridge;
pub use kinds::Kind;
pub use notes::{begin_anew, drop_waiting, waiting};
#[cfg(any(test, feature = "examples"))]
pub use ntfy::Ntfy;
pub use people::{Greeting, People};
pub use sessions::Sessions;
pub use telegram::Telegram;
pub use webhook::Webhook;

use bailey_protocol::SessionId;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest answer of a platform, in bytes.
const ANSWER_BYTES_MAX: usize = 32 << 20;
/// The longest time to an answer, unless a call says otherwise.
const PATIENCE: Duration = Duration::from_secs(20);

/// A chat platform.
pub trait Channel: Send + Sync {
    /// Asks for our identity on the platform. This is the first call, and it finds a wrong key. `None` when
    /// the platform gives us no identity.
    fn hello(&self) -> Option<Call> {
        None
    }

    /// Our identity, from the answer.
    ///
    /// # Errors
    /// The fault of the answer.
    fn greeted(&self, _: &Reply) -> Result<Us, Failure> {
        Ok(Us::default())
    }

    /// Listens for the news after `cursor`; `None` is the beginning.
    fn listen(&self, us: &Us, cursor: Option<&str>) -> Box<dyn Listener>;

    /// How long a cursor is good on a platform where nothing happens; `None` when that does not matter.
    fn cursor_lasts(&self) -> Option<Duration> {
        None
    }

    /// A reply in the model's words, in the platform's markup, as pages that each fit into a message.
    fn pages(&self, markdown: &str) -> Vec<String>;

    /// Plain words in the platform's markup.
    fn plain(&self, text: &str) -> String;

    /// The same in letters of one width, with their lines and columns as they are, when the platform can.
    fn fixed(&self, text: &str) -> String {
        self.plain(text)
    }

    /// Gives the platform the commands for its menu; `None` when it has none.
    fn menu(&self, _: &[MenuEntry]) -> Option<Call> {
        None
    }

    /// The conversation with one person alone; `None` when the platform does not name it after the person.
    fn alone(&self, _person: &str) -> Option<Conversation> {
        None
    }

    /// Sends a file; `None` when the platform takes no files. Doing it twice sends it twice.
    fn send_file(&self, _: &Conversation, _: &Upload) -> Option<Call> {
        None
    }

    /// The name under which the platform counts a conversation, maybe with others, when it asks for a pause.
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
    /// Why it was not sent or edited.
    fn sent(&self, reply: &Reply) -> Result<String, Failure>;

    /// Whether each call tells the platform a name, by which it knows a call that is made again.
    fn hears_names(&self) -> bool {
        false
    }

    /// Tells the person who tapped a button the outcome; `None` when the platform has no buttons.
    fn tapped(&self, _: &Tap, _words: &str) -> Option<Call> {
        None
    }

    /// Shows that work goes on, if the platform can.
    fn busy(&self, _: &Conversation) -> Option<Call> {
        None
    }

    /// Asks where a file is; `None` when the platform brings no files.
    fn locate(&self, _: &Attachment) -> Option<Call> {
        None
    }

    /// The call that fetches the file. The target in it is the platform's own word: the caller
    /// looks at it first.
    ///
    /// # Errors
    /// Why the file cannot be fetched.
    fn located(&self, _: &Reply, _bytes_max: usize) -> Result<Call, Failure> {
        Err(Failure::Refused("no files are fetched there".into()))
    }

    /// The bytes of the file.
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

/// Listens to a platform, without I/O. Its caller tells it events, beginning with [`Event::Begun`], and does
/// its commands once its news are noted. When anything fails, the caller makes a new one after a pause.
pub trait Listener: Send {
    /// Takes an event.
    ///
    /// # Errors
    /// Why listening begins anew. Single things that cannot be read are passed over.
    fn hear(&mut self, event: Event<'_>) -> Result<Reaction, Failure>;
}

/// An event, for a [`Listener`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// Listening begins.
    Begun,
    /// The answer to the last [`Command::Ask`].
    Answered(&'a Reply),
    /// The stream is open.
    Opened,
    /// The stream brought a message.
    Said(&'a StreamMessage),
    /// The stream has ended, or was not opened.
    Ended(&'a StreamEnd),
    /// The time of the last [`Command::Wake`] is over.
    Woken,
    /// A server delivered this body, and signed it.
    Delivered(&'a [u8]),
}

/// A [`Listener`]'s answer to an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reaction {
    /// The news in it.
    pub news: News,
    /// The commands that follow, in order.
    pub commands: Vec<Command>,
}

impl From<News> for Reaction {
    fn from(news: News) -> Self {
        Self { news, commands: Vec::new() }
    }
}

impl From<Command> for Reaction {
    fn from(command: Command) -> Self {
        Self { news: News::default(), commands: [command].into() }
    }
}

/// A command of a [`Listener`]'s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Sends a request, whose answer is the next [`Event::Answered`].
    Ask(Call),
    /// Opens a stream, in the place of the one before.
    Open(Opening),
    /// Sends a text over the WebSocket that is open.
    Say {
        /// The text.
        text: String,
        /// Whether the key is put in the place of [`KEY`]. No words of people stand in such a text.
        is_keyed: bool,
    },
    /// Asks for [`Event::Woken`] after this time, in the place of the time before.
    Wake(Duration),
}

/// A request to a server of the platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The method; the kind names it for the server.
    pub method: &'static str,
    /// The path beneath the server's URL, or a whole URL at one of the kind's servers; with [`KEY`] in the
    /// place of the key.
    pub target: String,
    /// Headers. The key's is not among them.
    pub headers: Vec<(String, String)>,
    /// The body: JSON, unless a header says otherwise.
    pub body: Vec<u8>,
    /// The longest time to the answer.
    pub patience: Duration,
    /// The most bytes of the answer.
    pub bytes_max: usize,
}

impl Call {
    /// A request with a body.
    #[must_use]
    pub fn new(method: &'static str, target: String, body: impl Into<Vec<u8>>) -> Self {
        let (headers, body) = (Vec::new(), body.into());
        Self { method, target, headers, body, patience: PATIENCE, bytes_max: ANSWER_BYTES_MAX }
    }
}

/// The server's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// Our identity on the platform.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Us {
    /// Our id there, which never changes.
    pub id: String,
    /// The name by which people call us there.
    pub name: String,
}

impl Us {
    /// Whether a text names us as people do: with an `@`, by itself or behind a command. A longer name is
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

/// The news of a platform.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct News {
    /// The cursor to go on with, in words of the channel's own; `None` where it stays.
    pub cursor: Option<String>,
    /// The arrivals, in the order in which they happened.
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

impl Conversation {
    /// The place of a schedule's results in a conversation: people see them there, and they are about the
    /// schedule's own session.
    #[must_use]
    pub fn of_schedule(&self, name: &str) -> Self {
        Self(format!("{}{SCHEDULE}{name}", self.0))
    }

    /// The place of the questions of an unattended session, in the same way.
    #[must_use]
    pub fn of_session(&self, session: SessionId) -> Self {
        self.of_schedule(&session.to_string())
    }

    /// The conversation that people see, and the schedule, or session, that this one is about, if any.
    #[must_use]
    pub fn parts(&self) -> (&str, Option<&str>) {
        Self::split(&self.0)
    }

    /// The same of a conversation's name.
    #[must_use]
    pub fn split(name: &str) -> (&str, Option<&str>) {
        name.split_once(SCHEDULE).map_or((name, None), |(seen, schedule)| (seen, Some(schedule)))
    }
}

/// What parts a conversation from the name of a schedule. A platform that has conversations with one person
/// ([`Channel::alone`]) has it in no name of its own.
const SCHEDULE: char = '#';

/// The person who says something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// The id that the platform vouches for and that no person can choose.
    pub id: String,
    /// The name that they call themselves: for people, and for nothing else.
    pub name: String,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its name, unique in its conversation: the same when the platform brings it again.
    pub key: String,
    /// The conversation.
    pub at: Conversation,
    /// The sender.
    pub from: Sender,
    /// The words; when they answer another message, with that message's words.
    pub text: String,
    /// Whether words in it are another person's: passed on, or of a message that it answers.
    pub is_quoted: bool,
    /// Whether it is to us: it is said to us alone, names us, or answers us.
    pub is_to_us: bool,
    /// Files that came with it.
    pub files: Vec<Attachment>,
    /// The parts that are neither text nor a file that can be fetched, in words: `a place`.
    pub left_out: Vec<String>,
}

impl Message {
    /// The sender's own words, said to us, and nothing else.
    #[must_use]
    pub fn to_us(key: String, at: Conversation, from: Sender, text: String) -> Self {
        let (is_quoted, is_to_us, files, left_out) = (false, true, Vec::new(), Vec::new());
        Self { key, at, from, text, is_quoted, is_to_us, files, left_out }
    }
}

/// A file that came with a message. Its kind, its size and its name are claims of the sender and the
/// platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The platform's name for it.
    pub id: String,
    /// The kind that it is said to be.
    pub kind: AttachmentKind,
    /// The sender's name for it, without control characters; empty when it has no name.
    pub name: String,
    /// How many bytes it has; `None` when this is not said.
    pub bytes: Option<u64>,
}

/// The kind that a file is said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentKind {
    /// A picture that models may be shown.
    Picture,
    /// A voice message.
    Voice,
    /// Anything else.
    File,
}

impl AttachmentKind {
    /// The words that people use for it.
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
    /// The conversation.
    pub at: Conversation,
    /// The person who tapped.
    pub from: Sender,
    /// The data that the button was made with.
    pub data: String,
}

/// Something to say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Post {
    /// The text, in the platform's markup, of a length that fits.
    pub text: String,
    /// The buttons beneath it.
    pub buttons: Vec<Button>,
}

/// A file for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// Its name, without a folder.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
    /// Whether it is shown as a picture.
    pub is_picture: bool,
}

/// A command in the platform's menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MenuEntry {
    /// Its name, without the stroke.
    pub name: &'static str,
    /// What it does.
    pub what: String,
}

/// A button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Button {
    /// The text on it.
    pub label: String,
    /// The data that a tap brings, at most 64 bytes.
    pub data: String,
}

/// Why a call brought nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The platform wants no calls for this long.
    #[error("the server asks to wait for {} s", .0.as_secs())]
    Wait(Duration),
    /// The call may be tried again.
    #[error("{0}")]
    Again(String),
    /// The platform gives us no identity: the key is wrong.
    #[error("{0}")]
    Key(String),
    /// The platform will never take the call.
    #[error("{0}")]
    Refused(String),
}

impl From<&StreamEnd> for Failure {
    /// A stream that has ended is opened again, unless the key was refused.
    fn from(end: &StreamEnd) -> Self {
        match end.status {
            Some(401 | 403) => Self::Key(end.to_string()),
            _ => Self::Again(end.to_string()),
        }
    }
}
