//! Google Gemini, version v1beta.

use super::{data, halves};
use crate::Message;
use serde_json::{Value, json};

/// The events of a reply. The identifiers of calls are sent, as newer models do.
pub(super) fn events(message: &Message) -> Vec<String> {
    let mut events = Vec::new();
    if !message.text.is_empty() {
        events.extend(halves(&message.text).map(|half| chunk(&json!([{ "text": half }]), None)));
    }
    for call in &message.calls {
        let function = json!({ "id": call.id, "name": call.name, "args": call.arguments });
        events.push(chunk(&json!([{ "functionCall": function, "thoughtSignature": "c2ln" }]), None));
    }
    let reason = match message.stop.as_deref() {
        Some("max_tokens") => "MAX_TOKENS",
        Some("refusal") => "SAFETY",
        _ => "STOP",
    };
    events.push(chunk(&json!([{ "text": "" }]), Some((reason, message.usage))));
    events
}

/// One chunk; the last one says why, and what was counted.
pub(super) fn chunk(parts: &Value, end: Option<(&str, (u64, u64))>) -> String {
    let content = json!({ "role": "model", "parts": parts });
    let chunk = match end {
        None => json!({ "responseId": "r1", "candidates": [{ "content": content }] }),
        Some((reason, (read, written))) => json!({
            "responseId": "r1",
            "candidates": [{ "content": content, "finishReason": reason }],
            "usageMetadata": { "promptTokenCount": read, "candidatesTokenCount": written },
        }),
    };
    data(&chunk)
}
