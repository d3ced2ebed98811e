//! Turns to the body of a Messages request.
//!
//! A request that offers tools is one of many that begin alike, so it says up to where the server may keep
//! what it read: the tools, the instruction, and the last two things that the model was told. The last is
//! where the next request goes on from; the one before is found also when a reply and its results came to
//! more blocks than the 20 that are looked back over. A request without tools is a single question, and what
//! it would write to a cache nobody would read.

use crate::{
    Endpoint,
    transcript::{ForeignCall, ModelInput, PromptText, Turn},
    wire::{description, input, set},
};
use bailey_protocol::{Image, ToolSpec};
use serde_json::{Value, json};

/// The body of a streamed request.
pub(crate) fn body(endpoint: &Endpoint, instruction: &str, turns: &[Turn<'_>], tools: &[ToolSpec]) -> Value {
    let mut body = json!({
        "model": endpoint.model,
        "max_tokens": endpoint.max_tokens,
        "stream": true,
        "messages": turns.iter().filter_map(message).collect::<Vec<_>>(),
    });
    // Both are refused when empty.
    if !instruction.is_empty() {
        set(&mut body, "system", instruction);
    }
    if !tools.is_empty() {
        set(&mut body, "tools", tools.iter().map(tool).collect::<Value>());
        keep(&mut body);
    }
    body
}

/// Marks up to where the server may keep the request: at most four places.
fn keep(body: &mut Value) {
    if let Some(system) = body.get_mut("system") {
        *system = json!([block_of(system.as_str().unwrap_or_default())]);
    }
    for part in ["tools", "system"] {
        mark(body.get_mut(part));
    }
    let messages = body.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten();
    let heard = messages.rev().filter(|message| message.get("role").is_some_and(|role| role == "user"));
    heard.take(2).for_each(|message| mark(message.get_mut("content")));
}

/// Marks the last of some tools or blocks that holds anything: marks on empty text are refused.
fn mark(list: Option<&mut Value>) {
    let list = list.and_then(Value::as_array_mut).into_iter().flatten();
    let is_empty = |block: &Value| ["text", "content"].iter().any(|name| block.get(name) == Some(&"".into()));
    if let Some(last) = list.rev().find(|block| !is_empty(block)) {
        set(last, "cache_control", json!({ "type": "ephemeral" }));
    }
}

fn tool(tool: &ToolSpec) -> Value {
    json!({ "name": ToolSpec::wire_name(&tool.name), "description": description(tool), "input_schema": tool.schema })
}

/// None for a turn without content, which is refused; the turns around it may then both be the user's, which
/// is not.
fn message(turn: &Turn<'_>) -> Option<Value> {
    let (role, content) = match turn {
        Turn::Own(verbatim) => ("assistant", verbatim.get("content")?.clone()),
        Turn::Foreign { text, calls } => ("assistant", assistant(text, calls)),
        Turn::Heard(heard) => ("user", user(heard)),
    };
    let empty = content.as_array().is_none_or(Vec::is_empty);
    (!empty).then(|| json!({ "role": role, "content": content }))
}

/// Results first: they must open the message that follows their calls.
fn user(heard: &ModelInput<'_>) -> Value {
    let results = heard.results.iter().map(|result| {
        let mut block = json!({ "type": "tool_result", "tool_use_id": result.id, "content": result.text });
        if !result.ok {
            set(&mut block, "is_error", true);
        }
        block
    });
    results.chain(heard.texts.iter().flat_map(said)).collect()
}

/// Pictures first, which is what the documentation advises.
fn said(said: &PromptText<'_>) -> Vec<Value> {
    let image = |image: &&Image| {
        let source =
            json!({ "type": "base64", "media_type": image.kind().media_type(), "data": image.base64() });
        json!({ "type": "image", "source": source })
    };
    let text = Some(said.text.as_str()).filter(|text| !text.trim().is_empty()).map(block_of);
    said.images.iter().map(image).chain(text).collect()
}

fn assistant(text: &str, calls: &[ForeignCall<'_>]) -> Value {
    let text = Some(text).filter(|text| !text.trim().is_empty()).map(block_of);
    let calls = calls.iter().map(|call| {
        json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input(call.arguments) })
    });
    text.into_iter().chain(calls).collect()
}

fn block_of(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

#[cfg(test)]
mod tests;
