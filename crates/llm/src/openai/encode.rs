//! Turns to the body of a Chat Completions request.

use crate::{
    Endpoint,
    transcript::{CallResult, ForeignCall, ModelInput, PromptText, Turn},
    wire::{data_url, description, input_text, set},
};
use bailey_protocol::ToolSpec;
use serde_json::{Value, json};

/// The fields in which servers send a model's thoughts. Some servers refuse a message of the model without
/// the field that they use, also an older message, one of another model or one without thoughts. So each
/// message gets a field that one of them has.
pub(crate) const THOUGHTS: [&str; 2] = ["reasoning_content", "reasoning"];

/// Stands between results and words of a person: servers of Mistral's refuse `user` right behind `tool`.
const BETWEEN: &str = "I have the results.";

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
    for field in THOUGHTS {
        if messages.iter().any(|message| message.get(field).is_some()) {
            fill(&mut messages, field);
        }
    }
    let mut body = json!({
        "model": endpoint.model,
        "stream": true,
        "stream_options": { "include_usage": true },
        "messages": messages,
    });
    set(&mut body, limit_name(endpoint).unwrap_or("max_tokens"), endpoint.max_tokens);
    if !tools.is_empty() {
        set(&mut body, "tools", tools.iter().map(tool).collect::<Value>());
    }
    body
}

/// OpenAI's own newer models refuse `max_tokens`, the only name that many compatible servers know.
pub(crate) fn limit_name(endpoint: &Endpoint) -> Option<&'static str> {
    let of_openai = ["//api.openai.com", ".openai.azure.com"];
    of_openai.iter().any(|host| endpoint.base_url.contains(host)).then_some("max_completion_tokens")
}

fn tool(tool: &ToolSpec) -> Value {
    let function = json!({ "name": ToolSpec::wire_name(&tool.name), "description": description(tool), "parameters": tool.schema });
    json!({ "type": "function", "function": function })
}

/// Puts an empty text where a message of the model's has no such field.
pub(crate) fn fill(messages: &mut [Value], field: &str) {
    let lacking = |message: &&mut Value| {
        message.get("role").is_some_and(|role| role == "assistant") && message.get(field).is_none()
    };
    messages.iter_mut().filter(lacking).for_each(|message| set(message, field, ""));
}

/// Results first: they must stand right behind their calls.
fn heard_messages(heard: &ModelInput<'_>) -> Vec<Value> {
    let result = |result: &CallResult<'_>| json!({ "role": "tool", "tool_call_id": result.id, "content": result.text });
    let mut messages: Vec<Value> = heard.results.iter().map(result).collect();
    if !heard.texts.is_empty() {
        if !messages.is_empty() {
            messages.push(assistant_value(BETWEEN, Vec::new()));
        }
        messages.push(json!({ "role": "user", "content": content(&heard.texts) }));
    }
    messages
}

/// A list only where there is more than text: many compatible servers take nothing else.
fn content(texts: &[PromptText<'_>]) -> Value {
    if texts.iter().all(|said| said.images.is_empty()) {
        return PromptText::joined(texts).into();
    }
    let parts = |said: &PromptText<'_>| {
        let images = said
            .images
            .iter()
            .map(|image| json!({ "type": "image_url", "image_url": { "url": data_url(image) } }));
        let text = Some(&said.text).filter(|text| !text.trim().is_empty());
        images.chain(text.map(|text| json!({ "type": "text", "text": text }))).collect::<Vec<_>>()
    };
    texts.iter().flat_map(parts).collect()
}

fn assistant(text: &str, calls: &[ForeignCall<'_>]) -> Value {
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

/// A call inside an assistant's message. Some servers read the arguments
/// before a model does, and take objects only.
pub(super) fn call_value(id: &str, name: &str, arguments: &str) -> Value {
    let arguments = input_text(arguments);
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
}

#[cfg(test)]
mod tests;
