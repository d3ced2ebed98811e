//! Replies as the two wires write them.

use super::{Message, Reply, http::Answer};
use serde_json::{Value, json};
use std::time::Duration;

#[derive(Clone, Copy)]
enum Wire {
    Anthropic,
    OpenAiChat,
}

/// The answer to a request for this path.
pub(super) fn answer(path: &str, reply: Reply) -> Answer {
    let wire = match path.split('?').next().unwrap_or_default() {
        "/v1/messages" => Wire::Anthropic,
        path if path.ends_with("/chat/completions") => Wire::OpenAiChat,
        _ => return whole(Reply::error(404, "not_found_error", "there is nothing at this path")),
    };
    let events = |message: &Message| match wire {
        Wire::Anthropic => anthropic(message),
        Wire::OpenAiChat => openai(message),
    };
    let no_pace = Duration::ZERO;
    match reply {
        Reply::Message(message) => {
            Answer::Events { events: events(&message), pace: no_pace, gate: None, cut: false }
        }
        Reply::Slow(message, pace) => {
            Answer::Events { events: events(&message), pace, gate: None, cut: false }
        }
        Reply::Held(gate, message) => {
            Answer::Events { events: events(&message), pace: no_pace, gate: Some(gate), cut: false }
        }
        Reply::Cut(message) => {
            let mut events = events(&message);
            events.truncate(events.len() / 2);
            Answer::Events { events, pace: no_pace, gate: None, cut: true }
        }
        Reply::Huge(bytes) => {
            let filler = match wire {
                Wire::Anthropic => text_delta(0, &"x".repeat(1000)),
                Wire::OpenAiChat => choice(&json!({ "content": "x".repeat(1000) }), None),
            };
            let mut first = events(&Message::text("it begins"));
            first.truncate(if matches!(wire, Wire::Anthropic) { 2 } else { 1 });
            Answer::Endless { first, filler, bytes }
        }
        Reply::Silent => Answer::Silent,
        error @ Reply::Error { .. } => whole(error),
    }
}

fn whole(reply: Reply) -> Answer {
    match reply {
        Reply::Error { status, headers, body } => Answer::Whole { status, headers, body },
        _ => Answer::Silent,
    }
}

/// The text in two pieces, so that readers must put pieces together.
fn halves(text: &str) -> [&str; 2] {
    let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
    [first, second]
}

/// Anthropic Messages, version 2023-06-01.
fn anthropic(message: &Message) -> Vec<String> {
    let (input, output) = message.usage;
    let usage = json!({ "input_tokens": input, "output_tokens": 0 });
    let start =
        json!({ "id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage });
    let mut events = vec![event("message_start", &json!({ "type": "message_start", "message": start }))];
    let mut index = 0;
    if !message.text.is_empty() {
        events.push(block_start(index, &json!({ "type": "text", "text": "" })));
        events.extend(halves(&message.text).map(|half| text_delta(index, half)));
        events.push(block_stop(index));
        index += 1;
    }
    for call in &message.calls {
        let block = json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} });
        events.push(block_start(index, &block));
        let arguments = call.arguments.to_string();
        events.extend(halves(&arguments).map(|half| {
            let delta = json!({ "type": "input_json_delta", "partial_json": half });
            block_delta(index, &delta)
        }));
        events.push(block_stop(index));
        index += 1;
    }
    let stop =
        message.stop.as_deref().unwrap_or(if message.calls.is_empty() { "end_turn" } else { "tool_use" });
    let delta = json!({ "type": "message_delta", "delta": { "stop_reason": stop }, "usage": { "output_tokens": output } });
    events.push(event("message_delta", &delta));
    events.push(event("message_stop", &json!({ "type": "message_stop" })));
    events
}

fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

fn block_start(index: usize, block: &Value) -> String {
    let data = json!({ "type": "content_block_start", "index": index, "content_block": block });
    event("content_block_start", &data)
}

fn block_delta(index: usize, delta: &Value) -> String {
    event("content_block_delta", &json!({ "type": "content_block_delta", "index": index, "delta": delta }))
}

fn text_delta(index: usize, text: &str) -> String {
    block_delta(index, &json!({ "type": "text_delta", "text": text }))
}

fn block_stop(index: usize) -> String {
    event("content_block_stop", &json!({ "type": "content_block_stop", "index": index }))
}

/// OpenAI Chat Completions.
fn openai(message: &Message) -> Vec<String> {
    let mut events = vec![choice(&json!({ "role": "assistant", "content": "" }), None)];
    if !message.text.is_empty() {
        events.extend(halves(&message.text).map(|half| choice(&json!({ "content": half }), None)));
    }
    for (index, call) in message.calls.iter().enumerate() {
        let arguments = call.arguments.to_string();
        let [first, second] = halves(&arguments);
        let function = json!({ "name": call.name, "arguments": first });
        let start = json!({ "index": index, "id": call.id, "type": "function", "function": function });
        events.push(choice(&json!({ "tool_calls": [start] }), None));
        let more = json!({ "index": index, "function": { "arguments": second } });
        events.push(choice(&json!({ "tool_calls": [more] }), None));
    }
    let stop = match message.stop.as_deref() {
        Some("max_tokens") => "length",
        Some("refusal") => "content_filter",
        Some("tool_use") => "tool_calls",
        None if !message.calls.is_empty() => "tool_calls",
        _ => "stop",
    };
    events.push(choice(&json!({}), Some(stop)));
    let (input, output) = message.usage;
    let usage =
        json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output });
    events.push(data(
        &json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage }),
    ));
    events.push("data: [DONE]\n\n".into());
    events
}

fn choice(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    data(&json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice] }))
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}
