//! Turns to the body of a Chat Completions request.

use crate::{
    Endpoint,
    transcript::{Call, CallResult, Heard, Said, Turn},
    wire::{data_url, description, set, wire_name},
};
use bailey_protocol::ToolSpec;
use serde_json::{Value, json};

/// The body of a streamed request.
pub(crate) fn body(endpoint: &Endpoint, instruction: &str, turns: &[Turn<'_>], tools: &[ToolSpec]) -> Value {
    let mut messages = Vec::new();
    if !instruction.is_empty() {
        messages.push(json!({ "role": "system", "content": instruction }));
    }
    for turn in turns {
        match turn {
            Turn::Own(verbatim) => messages.extend(verbatim.get("message").cloned()),
            Turn::Foreign { text, calls } => messages.push(assistant(text, calls)),
            Turn::Heard(heard) => messages.extend(heard_messages(heard)),
        }
    }
    let mut body = json!({
        "model": endpoint.model,
        "stream": true,
        "stream_options": { "include_usage": true },
        "messages": messages,
    });
    set(&mut body, limit_name(&endpoint.base_url), endpoint.max_tokens);
    if !tools.is_empty() {
        set(&mut body, "tools", tools.iter().map(tool).collect::<Value>());
    }
    body
}

/// OpenAI's own newer models refuse `max_tokens`; many compatible servers know nothing else.
fn limit_name(base_url: &str) -> &'static str {
    let of_openai = ["//api.openai.com", ".openai.azure.com"].iter().any(|host| base_url.contains(host));
    if of_openai { "max_completion_tokens" } else { "max_tokens" }
}

fn tool(tool: &ToolSpec) -> Value {
    let function =
        json!({ "name": wire_name(&tool.name), "description": description(tool), "parameters": tool.schema });
    json!({ "type": "function", "function": function })
}

/// Results first: they must stand right behind their calls.
fn heard_messages(heard: &Heard<'_>) -> Vec<Value> {
    let result = |result: &CallResult<'_>| json!({ "role": "tool", "tool_call_id": result.id, "content": result.text });
    let results = heard.results.iter().map(result);
    results
        .chain(heard.texts.iter().map(|said| json!({ "role": "user", "content": content(said) })))
        .collect()
}

/// A list only where there is more than text: many compatible servers take nothing else.
fn content(said: &Said<'_>) -> Value {
    if said.images.is_empty() {
        return said.text.as_str().into();
    }
    let images = said
        .images
        .iter()
        .map(|image| json!({ "type": "image_url", "image_url": { "url": data_url(image) } }));
    let text = Some(&said.text).filter(|text| !text.trim().is_empty());
    images.chain(text.map(|text| json!({ "type": "text", "text": text }))).collect()
}

fn assistant(text: &str, calls: &[Call<'_>]) -> Value {
    let calls = calls.iter().map(|call| call_value(&call.id, &call.name, call.arguments)).collect();
    assistant_value(text, calls)
}

/// An assistant's message.
pub(super) fn assistant_value(text: &str, calls: Vec<Value>) -> Value {
    let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { text.into() };
    let mut message = json!({ "role": "assistant", "content": content });
    if !calls.is_empty() {
        set(&mut message, "tool_calls", calls);
    }
    message
}

/// A call inside an assistant's message. Arguments that are no JSON are kept as a JSON string, because some
/// servers read them before a model does.
pub(super) fn call_value(id: &str, name: &str, arguments: &str) -> Value {
    let readable = serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok();
    let arguments =
        if readable { arguments.into() } else { json!({ "unreadable_arguments": arguments }).to_string() };
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
}

#[cfg(test)]
mod tests;
