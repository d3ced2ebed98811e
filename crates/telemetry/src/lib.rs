//! Shows Bailey's work to other programs: spans and figures by the conventions of OpenTelemetry for
//! generative AI, made from the journal, and figures of the daemon.
//!
//! Nothing is measured a second time. The journal has an entry for each action, with its time and with the
//! turn or call that it belongs to, so a trace is a way to read the journal. The same entries always give the
//! same spans with the same ids.
//!
//! Spans tell nothing of the content: no message, no argument, no output, no path, no host that a command
//! asked. A text in a span is a `Word`, which this program or its owner chose.
//!
//! Read `trace` first (from entries to spans) and `totals` (from spans to histograms), then `otlp` (the
//! encoding) and `answer` (a collector's answer).

mod answer;
mod figure;
mod folded;
mod otlp;
mod send;
mod totals;
mod trace;
mod want;

pub use answer::ExportResult;
pub use figure::{Figure, Figures};
pub use folded::Folded;
pub use otlp::{Metrics, Request, Resource};
pub use send::send;
pub use totals::Totals;
pub use trace::Trace;
pub use want::{Had, Want};

use bailey_protocol::{Digest, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The kinds of telemetry. Each has its own path at a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Spans.
    Traces,
    /// Figures.
    Metrics,
}

impl Signal {
    /// The path, beneath the collector's URL.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Traces => "/v1/traces",
            Self::Metrics => "/v1/metrics",
        }
    }
}

/// One operation, from its beginning to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub(crate) trace: TraceId,
    pub(crate) id: SpanId,
    pub(crate) parent: Option<SpanId>,
    /// The conversation that it is part of.
    pub session: SessionId,
    /// The operation.
    pub(crate) name: &'static str,
    /// The subject of the operation.
    pub(crate) about: Option<Word>,
    /// Whether another server did it.
    pub(crate) is_client: bool,
    pub(crate) begun: Timestamp,
    pub(crate) ended: Timestamp,
    pub(crate) attributes: Attributes,
}

pub(crate) type Attributes = Vec<(&'static str, Value)>;

/// The attribute that says why an operation failed.
const ERROR: &str = "error.type";

impl Span {
    /// The span's name in the conventions: the operation and its subject.
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

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Word(Word),
    Words(Vec<Value>),
    Count(u64),
    Code(i32),
}

/// A word that is no user content: this program's own word, or a name that its owner chose. A text that does
/// not look like a name becomes `OTHER`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String")]
pub(crate) struct Word(String);

/// The conventions' own word for a text that is not a `Word`.
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

/// The id of a trace: of a turn, or of work outside any turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TraceId([u8; 16]);

/// The id of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SpanId([u8; 8]);

impl TraceId {
    /// The id of a trace that began with this entry. A session's id is random, so no other journal has the
    /// same one.
    fn of(session: SessionId, seq: u64) -> Self {
        Self(first(&Digest::of(format!("trace {session} {seq}").as_bytes())))
    }
}

impl SpanId {
    /// The id of a span that began with this entry; `part` tells several of them apart.
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
