//! The context: what a model sees. Its segments have private constructors, one for each way in, so that bytes
//! from the world cannot get here but through the screen.

use crate::provider::Answer;
use bailey_protocol::{CallId, Integrity, Labels, Secrecy};

/// A standing instruction: Bailey's own words, with facts that the composition root knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    text: String,
}

impl Instruction {
    /// Bailey's own words.
    #[must_use]
    pub fn fixed(text: &'static str) -> Self {
        Self { text: text.trim().into() }
    }

    /// The same with one more line, `name: value`.
    #[must_use]
    pub fn with_fact(mut self, name: &'static str, value: &str) -> Self {
        let value: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.text.push_str(&format!("\n{name}: {value}"));
        self
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// What an authenticated person said. Made by `Kernel::accept` and `Kernel::restore` only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserMessage {
    pub(crate) text: String,
    pub(crate) labels: Labels,
}

impl UserMessage {
    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The screened result of one tool call. Made by the screen and by `Kernel::restore` only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    pub(crate) call: CallId,
    pub(crate) tool: String,
    pub(crate) ok: bool,
    pub(crate) text: String,
    pub(crate) labels: Labels,
}

impl Observation {
    /// The call that it answers.
    #[must_use]
    pub fn call(&self) -> &CallId {
        &self.call
    }

    /// The tool's name as the model wrote it.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Whether the tool did what it was asked.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.ok
    }

    /// The text that the model sees.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where it came from.
    #[must_use]
    pub fn labels(&self) -> &Labels {
        &self.labels
    }
}

/// What a model said; kept verbatim. Made by `Kernel::converse` and `Kernel::restore` only.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub(crate) provider: String,
    pub(crate) answer: Answer,
    pub(crate) labels: Labels,
}

impl Reply {
    /// The provider that made it: only its codec can read `answer().verbatim`.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// What was said.
    #[must_use]
    pub fn answer(&self) -> &Answer {
        &self.answer
    }
}

/// One part of a context.
#[derive(Debug, Clone, PartialEq)]
pub enum Segment {
    /// A person's words.
    User(UserMessage),
    /// A model's words and calls.
    Reply(Reply),
    /// The result of a call.
    Observation(Observation),
}

/// What a model sees: an instruction, then segments in order. Every call of a reply is followed by its
/// observation before the next reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    instruction: Instruction,
    segments: Vec<Segment>,
    labels: Labels,
}

impl Context {
    /// A context that holds only the instruction.
    #[must_use]
    pub fn new(instruction: Instruction) -> Self {
        Self { instruction, segments: Vec::new(), labels: Labels::new(Integrity::Owner, Secrecy::Public) }
    }

    /// The standing instruction.
    #[must_use]
    pub fn instruction(&self) -> &Instruction {
        &self.instruction
    }

    /// The segments in order.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The join of everything in it.
    #[must_use]
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Where it all came from: what an effect that follows from this context carries.
    #[must_use]
    pub fn provenance(&self) -> Provenance {
        Provenance { labels: self.labels.clone() }
    }

    /// Adds one segment.
    pub fn push(&mut self, segment: impl Into<Segment>) {
        let segment = segment.into();
        let labels = match &segment {
            Segment::User(message) => &message.labels,
            Segment::Reply(reply) => &reply.labels,
            Segment::Observation(observation) => &observation.labels,
        };
        self.labels = self.labels.clone().join(labels);
        self.segments.push(segment);
    }
}

/// The labels of a context, for effects that follow from it. Only a context makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    labels: Labels,
}

impl Provenance {
    pub(crate) fn labels(&self) -> &Labels {
        &self.labels
    }
}

impl From<UserMessage> for Segment {
    fn from(message: UserMessage) -> Self {
        Self::User(message)
    }
}

impl From<Reply> for Segment {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

impl From<Observation> for Segment {
    fn from(observation: Observation) -> Self {
        Self::Observation(observation)
    }
}
