//! What a model server shall say, as data.

use super::Request;
use serde_json::Value;
use std::{
    fmt,
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

/// The answer to one request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// A whole reply, streamed.
    Message(Message),
    /// A reply whose connection is closed before the end.
    Cut(Message),
    /// A reply with a pause before each of its events.
    Slow(Message, Duration),
    /// A reply that begins when the gate is opened.
    Held(Gate, Message),
    /// An endless reply of at least so many bytes of text.
    Huge(usize),
    /// No answer at all: the connection stays open until the other side closes it.
    Silent,
    /// No answer at all: the connection is closed as soon as the request is there.
    Gone,
    /// An error.
    Error {
        /// The status code.
        status: u16,
        /// Headers, such as `retry-after`.
        headers: Vec<(String, String)>,
        /// The body.
        body: String,
    },
}

/// One reply of a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Message {
    /// The text, streamed in two pieces.
    pub text: String,
    /// The tool calls.
    pub calls: Vec<Call>,
    /// Tokens read and written, as the provider counts.
    pub usage: (u64, u64),
    /// Why it stopped, in Anthropic's words (`end_turn`, `tool_use`, `max_tokens`, `refusal`); none: as its
    /// calls say.
    pub stop: Option<String>,
}

/// One tool call of a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Its identifier.
    pub id: String,
    /// The tool's name as the model writes it.
    pub name: String,
    /// Its arguments.
    pub arguments: Value,
}

impl Reply {
    /// A reply of text alone that costs 10 tokens in and 5 out.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Message(Message::text(text))
    }

    /// A reply of tool calls, each an identifier, a name and arguments.
    #[must_use]
    pub fn calls<const N: usize>(calls: [(&str, &str, Value); N]) -> Self {
        Self::Message(Message::calls(calls))
    }

    /// An error in the shape that both wires know.
    #[must_use]
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        let error = serde_json::json!({ "type": kind, "message": message });
        let body = serde_json::json!({ "type": "error", "error": error }).to_string();
        Self::Error { status, headers: Vec::new(), body }
    }

    /// An error that asks to wait so many seconds.
    #[must_use]
    pub fn retry_after(status: u16, seconds: &str) -> Self {
        let headers = vec![("retry-after".into(), seconds.into())];
        let body = serde_json::json!({ "error": { "message": "later" } }).to_string();
        Self::Error { status, headers, body }
    }
}

impl Message {
    /// Text alone.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self { text: text.into(), usage: (10, 5), ..Self::default() }
    }

    /// Tool calls.
    #[must_use]
    pub fn calls<const N: usize>(calls: [(&str, &str, Value); N]) -> Self {
        let call =
            |(id, name, arguments): (&str, &str, Value)| Call { id: id.into(), name: name.into(), arguments };
        Self { calls: calls.into_iter().map(call).collect(), usage: (10, 5), ..Self::default() }
    }

    /// The same with other counts.
    #[must_use]
    pub fn costs(self, input: u64, output: u64) -> Self {
        Self { usage: (input, output), ..self }
    }
}

/// Makes replies of requests.
pub(super) struct Author {
    write: Box<dyn Fn(&Request) -> Reply + Send + Sync>,
}

impl Author {
    pub(super) fn new(write: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self { write: Box::new(write) }
    }

    pub(super) fn reply(&self, request: &Request) -> Reply {
        (self.write)(request)
    }
}

impl fmt::Debug for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Author").finish_non_exhaustive()
    }
}

/// Holds something back until a test opens it. Clones are one gate.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    open: Arc<(Mutex<bool>, Condvar)>,
}

impl Gate {
    /// Lets through whatever waits, now and later.
    pub fn open(&self) {
        *self.open.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.open.1.notify_all();
    }

    pub(super) fn wait(&self) {
        let mut open = self.open.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !*open {
            open = self.open.1.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
