//! Turns to the body of an `/api/chat` request.

use crate::{
    Endpoint,
    transcript::{CallResult, ForeignCall, PromptText, Turn},
    wire::{description, input, set},
};
use bailey_protocol::ToolSpec;
use serde_json::{Value, json};

/// The body of a streamed request.
///
/// Ollama makes a model's window when it loads it, a small one unless it is told, and drops the oldest
/// messages of what does not fit without a word: hence the window is named, and dropping is forbidden
/// (releases that do not know `truncate` pass it over).
pub(crate) fn body(endpoint: &Endpoint, instruction: &str, turns: &[Turn<'_>], tools: &[ToolSpec]) -> Value {
    let mut messages = Vec::new();
    if !instruction.is_empty() {
        messages.push(json!({ "role": "system", "content": instruction }));
    }
    for turn in turns {
        match turn {
            Turn::Own(verbatim) => messages.extend(verbatim.get("message").cloned()),
            Turn::Foreign { text, calls } => messages.push(foreign(text, calls)),
            Turn::Heard(heard) => {
                messages.extend(heard.results.iter().map(answered));
                messages.extend((!heard.texts.is_empty()).then(|| said(&heard.texts)));
            }
        }
    }
    let mut options = json!({ "num_predict": endpoint.max_tokens });
    if let Some(window) = endpoint.window_tokens {
        set(&mut options, "num_ctx", window);
    }
    let mut body = json!({
        "model": endpoint.model,
        "stream": true,
        "truncate": false,
        "messages": messages,
        "options": options,
    });
    if !tools.is_empty() {
        set(&mut body, "tools", tools.iter().map(tool).collect::<Value>());
    }
    body
}

fn tool(tool: &ToolSpec) -> Value {
    let function = json!({ "name": ToolSpec::wire_name(&tool.name), "description": description(tool), "parameters": tool.schema });
    json!({ "type": "function", "function": function })
}

fn answered(result: &CallResult<'_>) -> Value {
    json!({ "role": "tool", "tool_name": result.name, "tool_call_id": result.id, "content": result.text })
}

fn said(texts: &[PromptText<'_>]) -> Value {
    let mut message = json!({ "role": "user", "content": PromptText::joined(texts) });
    let images: Vec<_> = texts.iter().flat_map(|said| &said.images).map(|image| image.base64()).collect();
    if !images.is_empty() {
        set(&mut message, "images", images);
    }
    message
}

fn foreign(text: &str, calls: &[ForeignCall<'_>]) -> Value {
    let call = |call: &ForeignCall<'_>| {
        let function = json!({ "name": call.name, "arguments": input(call.arguments) });
        json!({ "id": call.id, "function": function })
    };
    let mut message = json!({ "role": "assistant", "content": text });
    if !calls.is_empty() {
        set(&mut message, "tool_calls", calls.iter().map(call).collect::<Value>());
    }
    message
}
