//! OpenAI Chat Completions.

use super::{data, halves};
use crate::Message;
use serde_json::{Value, json};

/// The events of a reply.
pub(super) fn events(message: &Message) -> Vec<String> {
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

/// One chunk.
pub(super) fn choice(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    data(&json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice] }))
}
