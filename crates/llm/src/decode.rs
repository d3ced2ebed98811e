//! Reading one response: errors apart from answers, events apart from plain JSON, everything within bounds.

use crate::{
    Endpoint, Wire,
    failure::{self, Fault},
    form::Form,
    lines::Lines,
    message::PartialReply,
    sse::{Events, TooLong},
    tail::Tail,
    wire::set,
};
use bailey_kernel::{Completion, Decoder, Delta, ModelError, ModelErrorKind};
use bailey_protocol::Usage;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

/// The most bytes that one answer may have on the wire. The network door hands on no more than this, either.
pub const ANSWER_BYTES_MAX: usize = 32 << 20;

/// The most bytes of an error's body that are read.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// Reads a whole response in one go: the pure entry for fuzzing and for recorded responses.
///
/// # Errors
/// When it was no whole reply.
pub fn decode_all(
    wire: Wire,
    status: u16,
    headers: &[(String, String)],
    body: &[u8],
) -> Result<Completion, ModelError> {
    let endpoint = Endpoint {
        provider: "provider".into(),
        wire,
        base_url: "http://127.0.0.1".into(),
        model: "model".into(),
        key: None,
        max_tokens: 1024,
        window_tokens: None,
        prices: Vec::new(),
        takes_images: false,
        parameters: BTreeMap::new(),
    };
    let mut reading = Box::new(Reading::new(Arc::new(endpoint), Arc::default()));
    reading.head(status, headers);
    reading.push(body);
    reading.end()
}

/// The reader of one response.
#[derive(Debug)]
pub(crate) struct Reading {
    endpoint: Arc<Endpoint>,
    /// The form that its server was seen to want: a refusal may add to it.
    form: Arc<Mutex<Form>>,
    status: Option<u16>,
    headers: Vec<(String, String)>,
    received: usize,
    body: Body,
    message: PartialReply,
    tail: Tail,
    /// The first event that is no JSON: where no answer comes, it says why.
    stray: Option<String>,
    /// The first fault; what comes after it is not read.
    fault: Option<Fault>,
}

/// What kind of body it is.
#[derive(Debug)]
enum Body {
    /// Nothing but white space so far.
    Unknown,
    Events(Events),
    Lines(Lines),
    Json(Vec<u8>),
    Error(Vec<u8>),
}

/// A body or event that ends in the middle of its JSON was cut; any other that is no JSON makes no sense.
pub(crate) fn not_json(error: &serde_json::Error) -> Fault {
    if error.is_eof() {
        return Fault::Cut("its JSON has no end");
    }
    Fault::Malformed(format!("it is no JSON: {error}"))
}

impl Reading {
    pub(crate) fn new(endpoint: Arc<Endpoint>, form: Arc<Mutex<Form>>) -> Self {
        let ends = form.lock().unwrap_or_else(PoisonError::into_inner).ends();
        let message = PartialReply::new(endpoint.wire, ends);
        Self {
            endpoint,
            form,
            status: None,
            headers: Vec::new(),
            received: 0,
            body: Body::Unknown,
            message,
            tail: Tail::default(),
            stray: None,
            fault: None,
        }
    }

    fn read(&mut self, mut bytes: &[u8]) -> Result<Vec<Delta>, Fault> {
        self.received = self.received.saturating_add(bytes.len());
        if self.received >= ANSWER_BYTES_MAX {
            return Err(Fault::TooLarge("32 MiB or more"));
        }
        if matches!(self.body, Body::Unknown) {
            // White space before a body is no part of it, whichever piece it comes in.
            bytes = bytes.trim_ascii_start();
            let Some(first) = bytes.first() else { return Ok(Vec::new()) };
            self.body = kind_of_body(self.endpoint.wire, *first)?;
        }
        match &mut self.body {
            Body::Unknown => Ok(Vec::new()),
            Body::Json(json) => {
                json.extend_from_slice(bytes);
                Ok(Vec::new())
            }
            Body::Error(error) => {
                let room = ERROR_BYTES_MAX.saturating_sub(error.len());
                error.extend(bytes.iter().take(room));
                Ok(Vec::new())
            }
            Body::Events(events) => {
                let events = events.push(bytes);
                self.events(events.map_err(|TooLong| Fault::TooLarge("one event of more than 8 MiB"))?)
            }
            Body::Lines(lines) => {
                let lines = lines.push(bytes);
                self.events(lines.map_err(|TooLong| Fault::TooLarge("one line of more than 8 MiB"))?)
            }
        }
    }

    fn events(&mut self, events: Vec<String>) -> Result<Vec<Delta>, Fault> {
        let mut deltas = Vec::new();
        for data in events {
            if self.message.is_whole() {
                break;
            }
            let is_mark = self.endpoint.wire == Wire::OpenAiChat && data.trim() == "[DONE]";
            if !is_mark && !data.trim_start().starts_with('{') {
                // A ping or an end mark of another wire's: gateways write both where they do not belong.
                self.stray.get_or_insert(data);
                continue;
            }
            match self.message.event(&data) {
                Ok(read) => {
                    let mut texts = read.iter().filter_map(|delta| match delta {
                        Delta::Text(text) => Some(text),
                        Delta::Usage(_) => None,
                    });
                    if texts.any(|text| self.tail.repeats(text)) {
                        return Err(Fault::Repeats);
                    }
                    deltas.extend(read);
                }
                // Nothing behind the end can undo an answer that is whole.
                Err(_) if self.message.has_end() => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(deltas)
    }

    fn answer(mut self) -> Result<Completion, Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let rest = match std::mem::replace(&mut self.body, Body::Unknown) {
            Body::Unknown | Body::Error(_) => return Err(Fault::Cut("it is empty")),
            Body::Json(json) => {
                self.message.whole(&json)?;
                None
            }
            Body::Events(events) => events.end(),
            Body::Lines(lines) => lines.end(),
        };
        if let Some(data) = rest.filter(|_| self.fault.is_none()) {
            // The end of the body cut it off: it counts only when it can be read, or reports an error.
            match self.events(vec![data]) {
                Err(fault @ Fault::Reported(_)) => return Err(fault),
                Err(fault) => self.fault = Some(fault),
                Ok(_) => {}
            }
        }
        let mut answer = match (self.message.end(), self.fault, self.stray) {
            (Ok(answer), ..) => answer,
            (Err(_), Some(fault), _) => return Err(fault),
            (Err(Fault::Cut(_)), None, Some(stray)) => {
                let stray: String = stray.chars().take(80).collect();
                return Err(Fault::Malformed(format!("`{stray}` is no JSON")));
            }
            (Err(fault), None, _) => return Err(fault),
        };
        set(&mut answer.verbatim, "model", self.endpoint.model.clone());
        Ok(answer)
    }
}

/// No line of an event stream starts with a brace, and whatever a server calls its answer, JSON does.
fn kind_of_body(wire: Wire, first: u8) -> Result<Body, Fault> {
    match first {
        b'{' if wire == Wire::Ollama => Ok(Body::Lines(Lines::default())),
        b'{' | b'[' => Ok(Body::Json(Vec::new())),
        b'<' => Err(Fault::Malformed("it is a web page".into())),
        0x1f => Err(Fault::Malformed("it is compressed, though nobody asked for that".into())),
        _ => Ok(Body::Events(Events::default())),
    }
}

impl Decoder for Reading {
    fn head(&mut self, status: u16, headers: &[(String, String)]) {
        self.status = Some(status);
        self.headers = headers.to_vec();
        if !(200..300).contains(&status) {
            self.body = Body::Error(Vec::new());
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Vec<Delta> {
        if self.fault.is_some() {
            return Vec::new();
        }
        self.read(bytes).unwrap_or_else(|fault| {
            self.fault = Some(fault);
            Vec::new()
        })
    }

    fn is_over(&self) -> bool {
        self.fault.is_some() || self.message.is_whole()
    }

    fn end(self: Box<Self>) -> Result<Completion, ModelError> {
        let (endpoint, form) = (self.endpoint.clone(), self.form.clone());
        let mut form = form.lock().unwrap_or_else(PoisonError::into_inner);
        match (self.status, &self.body) {
            (None, _) => Err(ModelError {
                kind: ModelErrorKind::Unreachable,
                message: format!("`{}` did not answer at `{}`", endpoint.provider, endpoint.url()),
            }),
            (Some(status), Body::Error(body)) => {
                Err(failure::of_status(&endpoint, status, &self.headers, body, &mut form))
            }
            (Some(_), _) => match self.answer() {
                Ok(answer) => {
                    let answer = plausible(one_id_each(answer));
                    form.took(answer.usage.input_tokens);
                    Ok(answer)
                }
                Err(fault) => Err(failure::of_fault(&endpoint, fault, &mut form)),
            },
        }
    }
}

/// Tokens of a cache are some of those that were read: what a server says beyond that would make what was
/// read cost less.
fn plausible(mut answer: Completion) -> Completion {
    let Usage { input_tokens, cache_read_tokens, cache_write_tokens, .. } = &mut answer.usage;
    *cache_read_tokens = (*cache_read_tokens).min(*input_tokens);
    *cache_write_tokens = (*cache_write_tokens).min(*input_tokens - *cache_read_tokens);
    answer
}

/// Gives calls of one reply that share an identifier one each: results find their calls by it. The message is
/// sent back with them (`Wire::with_calls`).
fn one_id_each(mut answer: Completion) -> Completion {
    let mut used: BTreeSet<String> = BTreeSet::new();
    for call in &mut answer.calls {
        if used.contains(&call.id.0) {
            let free = (2..).map(|n: usize| format!("{}_{n}", call.id)).find(|id| !used.contains(id));
            call.id.0 = free.unwrap_or_default();
        }
        used.insert(call.id.0.clone());
    }
    answer
}
