//! What Bailey does, as others read it: spans and figures by the conventions of OpenTelemetry for generative
//! AI, made from the journal, and figures of the daemon.
//!
//! Nothing is measured a second time. The journal has an entry for each thing that was done, with its time
//! and what it belongs to, so a trace is a way to read it: of the same entries come the same spans under the
//! same names, however often they are asked for.
//!
//! Of what was said or done nothing is told: no message, no argument, no output, no path, no host that a
//! command asked. A text in a span is a [`Word`], which this program or its owner chose.
//!
//! Read [`trace`] first (from entries to spans) and [`totals`] (from spans to histograms), then [`otlp`] (how
//! they are written) and [`answer`] (what a collector says to it).

mod answer;
mod figure;
mod folded;
mod otlp;
mod totals;
mod trace;

pub(crate) use answer::Said;
pub(crate) use figure::{Figure, Figures};
pub(crate) use folded::Folded;
pub(crate) use otlp::{Metrics, Request, Resource};
pub(crate) use totals::Totals;
pub(crate) use trace::Trace;

use bailey_protocol::{Digest, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What is told apart from what: each has a place of its own at a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Traces,
    Metrics,
}

impl Signal {
    /// Where it is posted, beneath the collector's URL.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Traces => "/v1/traces",
            Self::Metrics => "/v1/metrics",
        }
    }
}

/// One thing that was done, from its beginning to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) trace: TraceId,
    pub(crate) id: SpanId,
    pub(crate) parent: Option<SpanId>,
    /// The conversation that it is part of.
    pub(crate) session: SessionId,
    /// The operation.
    pub(crate) name: &'static str,
    /// What it is about.
    pub(crate) about: Option<Word>,
    /// Whether another server did it.
    pub(crate) is_client: bool,
    pub(crate) begun: Timestamp,
    pub(crate) ended: Timestamp,
    pub(crate) attributes: Attributes,
}

pub(crate) type Attributes = Vec<(&'static str, Value)>;

/// The attribute that says why something is no success.
const ERROR: &str = "error.type";

impl Span {
    /// Its name, as the conventions have it: the operation, and what that is about.
    fn title(&self) -> String {
        match &self.about {
            Some(about) => format!("{} {}", self.name, about.as_str()),
            None => self.name.to_owned(),
        }
    }

    fn is_error(&self) -> bool {
        self.attribute(ERROR).is_some()
    }

    fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    fn word(&self, name: &str) -> Option<&Word> {
        self.attribute(name).and_then(|value| if let Value::Word(word) = value { Some(word) } else { None })
    }

    fn count(&self, name: &str) -> Option<u64> {
        self.attribute(name).and_then(|value| if let Value::Count(it) = value { Some(*it) } else { None })
    }
}

/// What an attribute says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Word(Word),
    Words(Vec<Value>),
    Count(u64),
    Code(i32),
}

/// A word that is nobody's content: this program's own, or a name that its owner chose. What does not look
/// like a name is none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String")]
pub(crate) struct Word(String);

/// Said in the place of what is no word; the conventions' own.
const OTHER: &str = "_OTHER";
/// The longest word, in bytes.
const WORD_BYTES_MAX: usize = 96;

impl Word {
    pub(crate) fn of(text: &str) -> Self {
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/@+-".contains(&byte);
        let is_word = !text.is_empty() && text.len() <= WORD_BYTES_MAX && text.bytes().all(is_fit);
        Self(if is_word { text } else { OTHER }.to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Word {
    fn from(text: String) -> Self {
        Self::of(&text)
    }
}

impl From<&str> for Word {
    fn from(text: &str) -> Self {
        Self::of(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Word(Word::of(text))
    }
}

impl From<Word> for Value {
    fn from(word: Word) -> Self {
        Self::Word(word)
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

/// The name of a trace: of a turn, or of what was done outside any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TraceId([u8; 16]);

/// The name of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SpanId([u8; 8]);

impl TraceId {
    /// That of what began with this entry. A session's name is random, so that no other journal has the same.
    fn of(session: SessionId, seq: u64) -> Self {
        Self(first(&Digest::of(format!("trace {session} {seq}").as_bytes())))
    }
}

impl SpanId {
    /// That of what began with this entry; `part` says which of several.
    fn of(session: SessionId, seq: u64, part: usize) -> Self {
        Self(first(&Digest::of(format!("span {session} {seq} {part}").as_bytes())))
    }
}

/// The first bytes of a digest.
fn first<const N: usize>(digest: &Digest) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.iter_mut().zip(digest.0).for_each(|(to, from)| *to = from);
    bytes
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
