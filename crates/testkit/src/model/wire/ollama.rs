//! Ollama's own API.

use super::halves;
use crate::Message;
use serde_json::{Value, json};

/// The lines of a reply.
pub(super) fn lines(message: &Message) -> Vec<String> {
    let mut lines = Vec::new();
    if !message.text.is_empty() {
        lines
            .extend(halves(&message.text).map(|half| line(&json!({ "role": "assistant", "content": half }))));
    }
    for call in &message.calls {
        let function = json!({ "name": call.name, "arguments": call.arguments });
        let calls = json!([{ "id": call.id, "function": function }]);
        lines.push(line(&json!({ "role": "assistant", "content": "", "tool_calls": calls })));
    }
    let reason = if message.stop.as_deref() == Some("max_tokens") { "length" } else { "stop" };
    let (read, written) = message.usage;
    let last = json!({
        "model": "model", "created_at": "2026-01-01T00:00:01Z", "message": { "role": "assistant", "content": "" },
        "done": true, "done_reason": reason, "prompt_eval_count": read, "eval_count": written,
    });
    lines.push(format!("{last}\n"));
    lines
}

/// One line before the last.
pub(super) fn line(message: &Value) -> String {
    let created = "2026-01-01T00:00:00Z";
    let line = json!({ "model": "model", "created_at": created, "message": message, "done": false });
    format!("{line}\n")
}
