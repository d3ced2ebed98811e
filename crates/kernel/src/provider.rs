//! The seam to models: a provider is a codec, from a context to a request and from response bytes to a reply.

use crate::{Context, Price, tokens::request_tokens};
use bailey_protocol::{HttpRequest, Money, ToolCall, ToolSpec, Usage};
use std::time::Duration;

/// A model call, ready for the network door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// What is sent. Keys are named in it, never held.
    pub request: HttpRequest,
    /// The most tokens that may come back.
    pub writes: u64,
}

impl Encoded {
    /// About how many tokens are sent: the kernel's own count, for a budget is not a codec's to keep.
    #[must_use]
    pub fn reads(&self, context: &Context) -> u64 {
        request_tokens(context, &String::from_utf8_lossy(&self.request.body.0))
    }
}

/// A piece of a reply while it comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// Text for the user.
    Text(String),
    /// What the provider says it has counted so far.
    Usage(Usage),
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It said what it had to say.
    Answered,
    /// It waits for the results of its tool calls.
    Calls,
    /// Its reply reached the limit of tokens.
    Length,
    /// It refused.
    Refused,
    /// The server says that there are calls, and gives no call.
    NoCalls,
}

/// A server that hands on a model's calls as text, or not at all, lacks a flag or a template. This says how
/// it gets that.
pub const READS_NO_CALLS: &str = "the server does not read the model's calls: start llama.cpp with `--jinja`, vLLM with \
     `--enable-auto-tool-choice --tool-call-parser PARSER`, and others with the template of their model";

/// A model's whole reply, as a codec read it.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Completion {
    /// The text, all parts joined.
    pub text: String,
    /// The tool calls, in order.
    pub calls: Vec<ToolCall>,
    /// Why it stopped.
    pub stop: StopReason,
    /// What the provider counted.
    pub usage: Usage,
    /// What that costs at the prices that were known when it came; none where they were not. The kernel puts
    /// it in.
    #[serde(default)]
    pub cost: Option<Money>,
    /// The assistant's message as the provider wants to see it again (some parts are signed): only the codec
    /// that made it reads it.
    pub verbatim: serde_json::Value,
}

/// Why a model call brought no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What kind of failure.
    pub kind: ModelErrorKind,
    /// What, why, and how to fix it, for people.
    pub message: String,
}

impl ModelError {
    /// A failure of this kind.
    #[must_use]
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// What kind of failure a model call ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelErrorKind {
    /// The key is missing or wrong (401, 403).
    Auth,
    /// No such model or endpoint (404).
    NotFound,
    /// The request itself is wrong (400, 422).
    Invalid,
    /// The server refused a parameter, and the codec writes the next request in another form.
    OtherForm,
    /// The context is longer than the model takes.
    Overflow,
    /// The request is refused in words of tokens or lengths: the context may be longer than the model takes.
    LikelyOverflow,
    /// Too many requests (429): wait this long, when the provider says so.
    RateLimited(Option<Duration>),
    /// The provider has too much to do or fails (500, 502, 503, 504, 529), and may say how long to wait.
    Overloaded(Option<Duration>),
    /// Nobody was reached, or nobody answered in time.
    Unreachable,
    /// The stream ended before the reply did.
    Cut,
    /// The answer is longer than Bailey takes.
    TooLarge,
    /// The answer makes no sense.
    Malformed,
}

impl ModelErrorKind {
    /// Whether another attempt may succeed.
    #[must_use]
    pub fn is_passing(self) -> bool {
        matches!(self, Self::RateLimited(_) | Self::Overloaded(_) | Self::Unreachable | Self::Cut)
    }
}

/// A model's codec: synchronous and pure.
pub trait Provider: Send + Sync + 'static {
    /// Its name in the configuration, such as `anthropic`.
    fn name(&self) -> &str;
    /// The model's name as the provider knows it.
    fn model(&self) -> &str;
    /// The most tokens that a request and its reply may have together; none where nobody knows.
    fn window_tokens(&self) -> Option<u64> {
        None
    }
    /// What its tokens cost; nothing where nobody knows.
    fn prices(&self) -> &[Price] {
        &[]
    }
    /// Whether it is shown the pictures of a context. To others the request says that there was one.
    fn takes_images(&self) -> bool {
        false
    }
    /// The request for this context.
    fn encode(&self, context: &Context, tools: &[ToolSpec]) -> Encoded;
    /// A reader for one response.
    fn decoder(&self) -> Box<dyn Decoder>;
}

/// Reads one response.
pub trait Decoder: Send {
    /// The response's head; called at most once and first.
    fn head(&mut self, status: u16, headers: &[(String, String)]);
    /// More of its body.
    fn push(&mut self, bytes: &[u8]) -> Vec<Delta>;
    /// Whether nothing that may follow matters: the wire has said that the reply ends here, or what came is
    /// none. Where its only end is that of the body, never.
    fn is_over(&self) -> bool;
    /// The body is over.
    ///
    /// # Errors
    /// When it was no whole reply.
    fn end(self: Box<Self>) -> Result<Completion, ModelError>;
}
