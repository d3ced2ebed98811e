//! Failures of model calls, told to people: what happened, why, and what to do about it.

use crate::{
    Endpoint, Wire,
    form::Form,
    wire::{list, word},
};
use bailey_kernel::{ModelError, ModelErrorKind, READS_NO_CALLS};
use bailey_protocol::Timestamp;
use serde_json::Value;
use std::time::Duration;

/// What went wrong while an answer was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fault {
    /// The provider reported an error inside its stream.
    Reported(Complaint),
    /// The answer ended before it was whole; the text says how that shows.
    Cut(&'static str),
    /// The answer ended for a reason that makes it no answer; the text is the server's word for that reason.
    Ended(String),
    /// The answer is one passage again and again.
    Repeats,
    /// The answer makes no sense; the text says where.
    Malformed(String),
    /// The answer is longer than Bailey takes; the text names the limit.
    TooLarge(&'static str),
}

/// What a provider says of an error.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Complaint {
    /// Its own words for the kind: `type`, `code` and `status`, with spaces between.
    pub(crate) kind: String,
    /// The HTTP status that it names itself, for errors inside a stream.
    pub(crate) status: Option<u16>,
    /// Its message.
    pub(crate) message: String,
    /// How long it asks to wait, where it says so in the body.
    pub(crate) wait: Option<Duration>,
}

/// The longest part of a provider's message that is quoted, in characters.
const QUOTE_CHARS_MAX: usize = 500;

/// The longest wait that a provider is believed.
const WAIT_MAX: Duration = Duration::from_secs(24 * 3600);

/// How providers say that a context is too long, in lower case.
const OVERFLOW: &[&str] = &[
    "prompt is too long",
    "prompt too long",
    "context limit",
    "context_length_exceeded",
    "maximum context length",
    "max context length",
    "exceed_context_size",
    "context size",
    "context window",
    "context_window",
    "context length",
    "model_max_prompt_tokens_exceeded",
    "model token limit",
    "max_model_len",
    "maximum model length",
    "input is too long",
    "input is longer than",
    "input token count",
    "input tokens exceed",
    "too many tokens in",
    "too many input tokens",
    "too large for model",
    "request_too_large",
    "input length exceeds",
    "input length should be",
    "prompt tokens exceed",
    "prompt token count",
    "greater than the context",
    "reduce the length of the messages",
    "tokens to keep from the initial prompt",
    "n_ctx",
    "max_num_tokens",
    "maximum prompt length",
    "maximum input length",
    "`inputs` tokens + `max_new_tokens` must be",
    "`inputs` must have less than",
];

/// Words of a refusal that may mean the same, in lower case: a server that took a shorter request is believed
/// so.
const LENGTH: &[&str] = &[
    "tokens",
    "token limit",
    "token count",
    "length",
    "context",
    "too long",
    "too large",
    "too many",
    "window",
    "exceed",
];

/// How providers say that a key is wrong where they call it a wrong request, in lower case.
const BAD_KEY: &[&str] = &["api key not valid", "api_key_invalid"];

/// How providers say that there is no money left, in lower case.
const UNPAID: &[&str] = &["insufficient_quota", "credit balance is too low", "insufficient credits"];

/// How they speak of money besides, in lower case: Gemini does so where there were too many requests in a
/// minute.
const BILLING: &[&str] = &["billing"];

/// How servers say that a model knows no tools, in lower case.
const NO_TOOLS: &[&str] = &[
    "does not support tools",
    "not support tool",
    "not support function",
    "tools are not supported",
    "tool use is not supported",
    "tool calling is not supported",
    "function calling is not",
    "support tool use",
];

/// How vLLM and llama.cpp say that they were started without the reading of calls, in lower case.
const TOOLS_OFF: &[&str] = &["enable-auto-tool-choice", "tool-call-parser", "--jinja"];

/// The HTTP status that a provider's kind of error stands for.
const STATUS_OF_KIND: &[(&str, u16)] = &[
    ("overloaded", 529),
    ("rate_limit", 429),
    ("RESOURCE_EXHAUSTED", 429),
    ("UNAVAILABLE", 503),
    ("authentication", 401),
    ("invalid_api_key", 401),
    ("permission", 403),
    ("not_found", 404),
    ("request_too_large", 413),
    ("invalid_request", 400),
    ("timeout", 504),
];

impl Complaint {
    /// Reads an error body of either wire, or of a server that only says something alike. `None` when the
    /// value holds no error.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        // Gemini puts an error into a list where a stream was asked for.
        let value = value.get(0).unwrap_or(value);
        let error = value.get("error").filter(|error| !error.is_null());
        let detail = error.or_else(|| value.get("detail")).or_else(|| value.get("message").map(|_| value))?;
        let word = |name: &str| match detail.get(name) {
            Some(Value::String(word)) => word.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        let status = [detail.get("code"), detail.get("status"), value.get("code")]
            .into_iter()
            .flatten()
            .filter_map(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()))
            .find(|code| (400..600).contains(code));
        let message = match detail {
            Value::String(text) => text.clone(),
            _ => detail.get("message").and_then(Value::as_str).map_or_else(|| detail.to_string(), Into::into),
        };
        Some(Self {
            kind: [word("type"), word("code"), word("status")].join(" ").trim().into(),
            status: status.and_then(|code| u16::try_from(code).ok()),
            message,
            wait: retry_delay(detail),
        })
    }

    /// Reads an error body: JSON of some kind, or whatever text it is.
    fn of_body(body: &[u8]) -> Self {
        let parsed = serde_json::from_slice(body).ok().as_ref().and_then(Self::of);
        parsed.unwrap_or_else(|| Self {
            message: String::from_utf8_lossy(body).into_owned(),
            ..Self::default()
        })
    }

    /// All of its words.
    pub(crate) fn text(&self) -> String {
        format!("{} {}", self.kind, self.message)
    }

    fn says(&self, needles: &[&str]) -> bool {
        let text = self.text().to_lowercase();
        needles.iter().any(|needle| text.contains(needle))
    }

    fn is_unpaid(&self) -> bool {
        self.says(UNPAID) || self.says(BILLING)
    }

    /// The status of an error that came without one.
    pub(crate) fn status(&self) -> u16 {
        let by_kind =
            || STATUS_OF_KIND.iter().find(|(kind, _)| self.kind.contains(kind)).map(|(_, status)| *status);
        self.status.or_else(by_kind).unwrap_or(500)
    }

    /// The message, fit to be quoted in one line.
    fn quote(&self) -> String {
        let words: Vec<&str> = self.message.split(|c: char| c.is_whitespace() || c.is_control()).collect();
        let line = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(QUOTE_CHARS_MAX) {
            Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
            None if line.is_empty() => self.kind.clone(),
            None => line,
        }
    }
}

/// The failure that a response with this status and body is. A refusal may add to the form that the server
/// wants.
pub(crate) fn of_status(
    endpoint: &Endpoint,
    status: u16,
    headers: &[(String, String)],
    body: &[u8],
    form: &mut Form,
) -> ModelError {
    if (300..400).contains(&status) {
        let to = header(headers, "location").unwrap_or("another place");
        let provider = &endpoint.provider;
        let message = format!(
            "`{provider}` answers from another place ({status} to `{to}`), and redirects are never followed; set its \
             `base_url` to where it really is"
        );
        return ModelError { kind: ModelErrorKind::NotFound, message };
    }
    let complaint = Complaint::of_body(body);
    learned(endpoint, status, wait(headers).or(complaint.wait), &complaint, form)
}

/// The failure that a complaint is. A refusal teaches the form that the server wants.
fn learned(
    endpoint: &Endpoint,
    status: u16,
    wait: Option<Duration>,
    complaint: &Complaint,
    form: &mut Form,
) -> ModelError {
    let error = told(endpoint, status, wait, complaint);
    match error.kind {
        ModelErrorKind::Overflow => form.learn_window(complaint),
        ModelErrorKind::Invalid | ModelErrorKind::LikelyOverflow => {
            if let Some(other) = form.learn(endpoint, complaint) {
                let (provider, why) = (&endpoint.provider, complaint.quote());
                let message =
                    format!("`{provider}` refused the form of the request ({status}: {why}); asking {other}");
                return ModelError { kind: ModelErrorKind::OtherForm, message };
            }
        }
        _ => {}
    }
    error
}

/// The failure that this fault is. A refusal inside a stream teaches as one with a status does.
pub(crate) fn of_fault(endpoint: &Endpoint, fault: Fault, form: &mut Form) -> ModelError {
    let provider = &endpoint.provider;
    let (kind, message) = match fault {
        Fault::Reported(complaint) => {
            return learned(endpoint, complaint.status(), complaint.wait, &complaint, form);
        }
        Fault::Cut(how) => (
            ModelErrorKind::Cut,
            format!(
                "the answer of `{provider}` broke off in the middle ({how}); the call can be tried again"
            ),
        ),
        Fault::Ended(reason) => (
            {
                form.learn_end(&reason);
                ModelErrorKind::Cut
            },
            format!(
                "the answer of `{provider}` is not whole: the server ended it with `{}`; the call can be tried again",
                reason.chars().take(40).collect::<String>()
            ),
        ),
        Fault::Repeats => (
            ModelErrorKind::Malformed,
            format!(
                "`{}` repeats one passage without end, and was stopped; ask again in other words, or look at the server's \
                 settings for the model (template, quantisation, repeat penalty)",
                endpoint.model
            ),
        ),
        Fault::Malformed(place) => (
            ModelErrorKind::Malformed,
            format!(
                "the answer of `{provider}` cannot be read ({place}); check that `{}` is the right URL and speaks \
                 the wire `{}`",
                endpoint.url(),
                endpoint.wire.setting()
            ),
        ),
        Fault::TooLarge(limit) => (
            ModelErrorKind::TooLarge,
            format!(
                "the answer of `{provider}` is too large ({limit}); ask for less, or check what `{}` is",
                endpoint.url()
            ),
        ),
    };
    ModelError { kind, message }
}

fn told(endpoint: &Endpoint, status: u16, wait: Option<Duration>, complaint: &Complaint) -> ModelError {
    let kind = kind(status, wait, complaint);
    let (provider, model) = (&endpoint.provider, &endpoint.model);
    let why = match complaint.quote() {
        quote if quote.is_empty() => status.to_string(),
        quote => format!("{status}: {quote}"),
    };
    let soon = wait.map_or("a moment".into(), |wait| format!("{} s", wait.as_secs_f64().ceil()));
    let message = match kind {
        ModelErrorKind::Auth => format!("`{provider}` refused the key ({why}); {}", key_hint(endpoint)),
        ModelErrorKind::NotFound if endpoint.wire == Wire::Ollama => {
            format!("Ollama has no model `{model}` ({why}); fetch it with `ollama pull {model}`")
        }
        ModelErrorKind::NotFound => format!(
            "`{provider}` knows no model `{model}` at `{}` ({why}); check the model's name (`{}` lists them) and \
             `base_url`",
            endpoint.url(),
            endpoint.models_url()
        ),
        ModelErrorKind::Overflow => format!(
            "the conversation is longer than `{model}` takes ({why}); set `window_tokens` under `[providers.{provider}]` \
             to the window that the server gives the model, start a new session, or choose a model with a longer window"
        ),
        ModelErrorKind::RateLimited(_) => {
            format!("`{provider}` takes no more requests for now ({why}); try again in {soon}")
        }
        ModelErrorKind::Overloaded(_) => {
            format!("`{provider}` is overloaded or fails ({why}); try again in {soon}")
        }
        ModelErrorKind::LikelyOverflow => format!(
            "`{provider}` did not accept the request for `{model}` ({why}); if the conversation is too long for it, set \
             `window_tokens` under `[providers.{provider}]` to the window that the server gives the model"
        ),
        _ if complaint.says(TOOLS_OFF) => {
            format!("`{provider}` takes no tools for `{model}` ({why}): {READS_NO_CALLS}")
        }
        _ if complaint.says(NO_TOOLS) => {
            format!("`{model}` cannot call tools ({why}); choose a model that can")
        }
        _ if complaint.is_unpaid() => {
            format!(
                "the account at `{provider}` has no credit left ({why}); add credit there or choose another provider"
            )
        }
        _ => format!(
            "`{provider}` did not accept the request for `{model}` ({why}); check the provider's settings"
        ),
    };
    ModelError { kind, message }
}

fn kind(status: u16, wait: Option<Duration>, complaint: &Complaint) -> ModelErrorKind {
    let client_error = (400..500).contains(&status);
    match status {
        // What passes with time wants no money.
        429 if wait.is_some() || !complaint.says(UNPAID) => ModelErrorKind::RateLimited(wait),
        _ if complaint.is_unpaid() && client_error && status != 401 => ModelErrorKind::Invalid,
        401 | 403 => ModelErrorKind::Auth,
        _ if client_error && complaint.says(BAD_KEY) => ModelErrorKind::Auth,
        413 => ModelErrorKind::Overflow,
        // llama.cpp of some releases answers 500 to a context that is too long.
        _ if complaint.says(OVERFLOW) => ModelErrorKind::Overflow,
        404 => ModelErrorKind::NotFound,
        _ if client_error && complaint.says(&["model_not_found"]) => ModelErrorKind::NotFound,
        408 | 425 => ModelErrorKind::Overloaded(wait),
        _ if client_error && complaint.says(LENGTH) => ModelErrorKind::LikelyOverflow,
        _ if client_error => ModelErrorKind::Invalid,
        500.. => ModelErrorKind::Overloaded(wait),
        _ => ModelErrorKind::Malformed,
    }
}

fn key_hint(endpoint: &Endpoint) -> String {
    match &endpoint.key {
        Some(name) => format!("set the secret `{name}` to a key that is valid there"),
        None => "name the secret that holds its key in the provider's settings (`key`)".into(),
    }
}

/// How long to wait: `retry-after` (RFC 9110, 10.2.3) in seconds or as a date, or `retry-after-ms`. A date is
/// measured against the response's own `date`, so that no clock is needed.
pub(crate) fn wait(headers: &[(String, String)]) -> Option<Duration> {
    let seconds = |text: &str| text.parse::<f64>().ok();
    let millis = header(headers, "retry-after-ms").and_then(seconds).map(|ms| ms / 1000.0);
    let wait = millis.or_else(|| {
        let after = header(headers, "retry-after")?;
        seconds(after).or_else(|| {
            let from = http_date(header(headers, "date")?)?;
            let wait = http_date(after)?.duration_since(from);
            Some(wait.as_secs_f64().max(0.0))
        })
    })?;
    bounded(wait)
}

/// Google's `RetryInfo` in the details of an error: `"retryDelay": "17s"`.
fn retry_delay(detail: &Value) -> Option<Duration> {
    let delay =
        list(detail, "details").map(|detail| word(detail, "retryDelay")).find(|delay| !delay.is_empty())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    bounded(seconds)
}

fn bounded(seconds: f64) -> Option<Duration> {
    (seconds.is_finite() && seconds >= 0.0)
        .then(|| Duration::from_secs_f64(seconds.min(WAIT_MAX.as_secs_f64())))
}

fn http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests;
