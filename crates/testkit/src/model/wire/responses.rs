//! OpenAI Responses.

use super::{event, halves};
use crate::Message;
use serde_json::{Value, json};

/// The events of a reply.
pub(super) fn events(message: &Message) -> Vec<String> {
    let created =
        json!({ "type": "response.created", "response": { "id": "resp_1", "status": "in_progress" } });
    let mut events = vec![event("response.created", &created)];
    let mut output = Vec::new();
    if !message.text.is_empty() {
        let content = json!([{ "type": "output_text", "text": message.text, "annotations": [] }]);
        let of = |content: Value| json!({ "type": "message", "id": "msg_1", "role": "assistant", "content": content });
        events.push(item("added", output.len(), &of(json!([]))));
        events.extend(halves(&message.text).map(|half| text_delta(output.len(), half)));
        events.push(item("done", output.len(), &of(content.clone())));
        output.push(of(content));
    }
    for call in &message.calls {
        let arguments = call.arguments.to_string();
        let of = |arguments: &str| {
            json!({
                "type": "function_call", "id": format!("fc_{}", call.id), "call_id": call.id, "name": call.name,
                "arguments": arguments,
            })
        };
        events.push(item("added", output.len(), &of("")));
        events.extend(halves(&arguments).map(|half| delta("function_call_arguments", output.len(), half)));
        events.push(item("done", output.len(), &of(&arguments)));
        output.push(of(&arguments));
    }
    let why = match message.stop.as_deref() {
        Some("max_tokens") => Some("max_output_tokens"),
        Some("refusal") => Some("content_filter"),
        _ => None,
    };
    let status = if why.is_some() { "incomplete" } else { "completed" };
    let (read, written) = message.usage;
    let kind = format!("response.{status}");
    let response = json!({
        "id": "resp_1", "status": status, "output": output,
        "incomplete_details": why.map(|why| json!({ "reason": why })),
        "usage": { "input_tokens": read, "output_tokens": written, "total_tokens": read + written },
    });
    events.push(event(&kind, &json!({ "type": kind, "response": response })));
    events
}

/// A piece of text.
pub(super) fn text_delta(index: usize, text: &str) -> String {
    delta("output_text", index, text)
}

fn delta(kind: &str, index: usize, delta: &str) -> String {
    let kind = format!("response.{kind}.delta");
    event(&kind, &json!({ "type": kind, "output_index": index, "delta": delta }))
}

fn item(kind: &str, index: usize, item: &Value) -> String {
    let kind = format!("response.output_item.{kind}");
    event(&kind, &json!({ "type": kind, "output_index": index, "item": item }))
}
