//! Anthropic Messages, version 2023-06-01.

use super::{event, halves};
use crate::Message;
use serde_json::{Value, json};

/// The events of a reply.
pub(super) fn events(message: &Message) -> Vec<String> {
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

fn block_start(index: usize, block: &Value) -> String {
    let data = json!({ "type": "content_block_start", "index": index, "content_block": block });
    event("content_block_start", &data)
}

fn block_delta(index: usize, delta: &Value) -> String {
    event("content_block_delta", &json!({ "type": "content_block_delta", "index": index, "delta": delta }))
}

/// A piece of text.
pub(super) fn text_delta(index: usize, text: &str) -> String {
    block_delta(index, &json!({ "type": "text_delta", "text": text }))
}

fn block_stop(index: usize) -> String {
    event("content_block_stop", &json!({ "type": "content_block_stop", "index": index }))
}
