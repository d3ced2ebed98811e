//! Replies as the wires write them.

mod anthropic;
mod chat;
mod gemini;
mod ollama;
mod responses;

use super::{Message, Reply, http::Response};
use serde_json::{Value, json};
use std::time::Duration;

/// What is spoken, as the path that is asked says.
#[derive(Clone, Copy)]
pub(super) enum Wire {
    Anthropic,
    Chat,
    Responses,
    Gemini,
    Ollama,
}

impl Wire {
    pub(super) fn of(path: &str) -> Option<Self> {
        match path.split('?').next().unwrap_or_default() {
            "/v1/messages" => Some(Self::Anthropic),
            "/api/chat" => Some(Self::Ollama),
            path if path.ends_with("/chat/completions") => Some(Self::Chat),
            path if path.ends_with("/responses") => Some(Self::Responses),
            path if path.ends_with(":streamGenerateContent") => Some(Self::Gemini),
            _ => None,
        }
    }

    fn events(self, message: &Message) -> Vec<String> {
        match self {
            Self::Anthropic => anthropic::events(message),
            Self::Chat => chat::events(message),
            Self::Responses => responses::events(message),
            Self::Gemini => gemini::events(message),
            Self::Ollama => ollama::lines(message),
        }
    }

    /// The beginning of an endless reply, and what comes again and again.
    fn endless(self) -> (Vec<String>, String) {
        let mut first = self.events(&Message::text("it begins"));
        // No short passage of it repeats: that would be an answer without end of another kind.
        let long: String = (0..250).map(|n| format!("{n:04}")).collect();
        let (kept, filler) = match self {
            Self::Anthropic => (2, anthropic::text_delta(0, &long)),
            Self::Chat => (1, chat::choice(&json!({ "content": long }), None)),
            Self::Responses => (2, responses::text_delta(0, &long)),
            Self::Gemini => (1, gemini::chunk(&json!([{ "text": long }]), None)),
            Self::Ollama => (1, ollama::line(&json!({ "role": "assistant", "content": long }))),
        };
        first.truncate(kept);
        (first, filler)
    }
}

/// The answer to a request for this path.
pub(super) fn answer(path: &str, reply: Reply) -> Response {
    let Some(wire) = Wire::of(path) else {
        return match (reply, models(path)) {
            (error @ Reply::Error { .. }, _) => whole(error),
            (_, Some(list)) => list,
            (_, None) => whole(Reply::error(404, "not_found_error", "there is nothing at this path")),
        };
    };
    let streamed = |message: &Message, pace, gate| {
        let events = wire.events(message);
        Response::Events { events, pace, gate, cut: false }
    };
    match reply {
        Reply::Message(message) => streamed(&message, Duration::ZERO, None),
        Reply::Slow(message, pace) => streamed(&message, pace, None),
        Reply::Held(gate, message) => streamed(&message, Duration::ZERO, Some(gate)),
        Reply::Cut(message) => {
            let mut events = wire.events(&message);
            events.truncate(events.len() / 2);
            Response::Events { events, pace: Duration::ZERO, gate: None, cut: true }
        }
        Reply::Huge(bytes) => {
            let (first, filler) = wire.endless();
            Response::Endless { first, filler, bytes }
        }
        Reply::Silent => Response::Silent,
        Reply::Gone => Response::Gone,
        error @ Reply::Error { .. } => whole(error),
    }
}

/// The list of models, as each wire's servers give it: one model, `m`.
fn models(path: &str) -> Option<Response> {
    let body = match path {
        "/v1/models" | "/models" => json!({ "data": [{ "id": "m" }] }),
        "/v1beta/models" => json!({ "models": [{ "name": "models/m" }] }),
        "/api/tags" => json!({ "models": [{ "name": "m" }] }),
        _ => return None,
    };
    Some(Response::Whole { status: 200, headers: Vec::new(), body: body.to_string() })
}

fn whole(reply: Reply) -> Response {
    match reply {
        Reply::Error { status, headers, body } => Response::Whole { status, headers, body },
        _ => Response::Silent,
    }
}

/// The text in two pieces, so that readers must put pieces together.
fn halves(text: &str) -> [&str; 2] {
    let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
    [first, second]
}

/// An event that holds only data.
fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

/// An event with a name.
fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}
