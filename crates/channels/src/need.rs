//! What a channel's process asks the daemon for.
//!
//! That process can open no Unix socket. So it reaches only the sessions whose
//! connections the daemon gives it, and speaks there as the person whom the daemon introduced: it can neither
//! come to another session nor call itself the owner.

use bailey_protocol::{SessionId, Speaker};
pub use bailey_session::packet::{Asking, Refusable};
use bailey_web::Delivery;
use serde::{Deserialize, Serialize};

/// A request in the name of a person.
#[derive(Debug, Serialize, Deserialize)]
pub struct PersonRequest {
    /// The person's id, as the platform vouches, and the name that they call themselves.
    pub id: String,
    /// See `id`.
    pub name: String,
    /// The conversation.
    pub at: String,
    /// The kind of request.
    pub what: RequestKind,
}

/// The requests of a channel's process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// A request for a person.
    Person(PersonRequest),
    /// Waits for a server's next delivery, for as long as it takes, and reports the outcome of the one
    /// before.
    Delivery(Option<Taken>),
    /// Waits for the next task of a schedule whose result is for this channel, or for the next session that
    /// asks its owner something, for as long as it takes, and says which one is noted, by its key.
    Due(Option<String>),
    /// The platform has answered: the channel is up.
    Up,
}

/// A schedule's task, whose result is for a person at the channel, or a session that asks that person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Due {
    /// The name of the message with which the task was said; a name for the session's questions.
    pub key: String,
    /// The conversation for its result ([`Conversation::of_schedule`](crate::Conversation::of_schedule),
    /// [`Conversation::of_session`](crate::Conversation::of_session)).
    pub at: String,
    /// The person: the channel's owner.
    pub id: String,
    /// See `id`.
    pub name: String,
    /// Whether it is about the questions of the conversation's session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_question: bool,
    /// What the person is told, when it is that they are let in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
    /// Whether the conversation's session works or waits, so that its turn is shown to the person again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_followed: bool,
}

/// The outcome of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Taken {
    /// The delivery is noted, and will not be lost.
    Noted,
    /// No holder of the key signed it, or the signature is not recent.
    Unsigned,
    /// Its content is not understood.
    Wrong(String),
}

/// The kinds of requests for a person in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// A connection to the conversation's session, as that person.
    Connection,
    /// The same for a person who tapped a button: by that, an unknown person has not asked to be let in.
    Tap,
    /// The same if the conversation has a session; this begins no session.
    Known,
    /// The same if a process of the session runs; this begins no process.
    Running,
    /// Whether the person is let in, so that a message may be sent to them.
    Address,
    /// The same for a person who wrote: by that, an unknown person asks to be let in.
    LetIn,
    /// The conversation goes on as a new session.
    Clear,
    /// The output of a command of this program.
    Told(Page),
    /// Everything stops.
    Estop,
}

/// A page that a person may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Page {
    /// `bailey status`.
    Status,
    /// `bailey budget`.
    Budget,
    /// `bailey tools list`.
    Tools,
    /// `bailey sandbox doctor`.
    Sandbox,
    /// A copy of the home, made in it.
    Backup,
}

impl Page {
    /// The command that prints it.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            Self::Status => &["status"],
            Self::Budget => &["budget"],
            Self::Tools => &["tools", "list"],
            Self::Sandbox => &["sandbox", "doctor"],
            Self::Backup => &["backup"],
        }
    }
}

/// The daemon's answer to a [`PersonRequest`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PersonAnswer {
    /// The connection comes with this answer, and speaks as that person to this session.
    Connected(Speaker, SessionId),
    /// The request was done; or its output.
    Done(String),
    /// The person is not known. Holds the command with which the owner lets them in; `None` when they are
    /// told nothing.
    Stranger(Option<String>),
    /// The person may not do this.
    Denied(String),
    /// It cannot be done now.
    Refused(String),
}

impl Asking for Need {}

/// The answer to a [`Need`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Given {
    /// To a request for a person.
    Person(PersonAnswer),
    /// The next delivery.
    Delivery(Delivery),
    /// The next task of a schedule.
    Due(Due),
    /// It is noted.
    Noted,
}

impl Refusable for Given {
    fn refused(why: String) -> Option<Self> {
        Some(Self::Person(PersonAnswer::Refused(why)))
    }
}
