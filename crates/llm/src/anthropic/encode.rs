//! Turns to the body of a Messages request.

use crate::{
    Endpoint,
    transcript::{Call, Heard, Turn},
    wire::{description, input, set, wire_name},
};
use bailey_protocol::ToolSpec;
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
    }
    body
}

fn tool(tool: &ToolSpec) -> Value {
    json!({ "name": wire_name(&tool.name), "description": description(tool), "input_schema": tool.schema })
}

/// None for a turn without content, which is refused; the turns around it may then both be the user's, which is not.
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
fn user(heard: &Heard<'_>) -> Value {
    let results = heard.results.iter().map(|result| {
        let mut block = json!({ "type": "tool_result", "tool_use_id": result.id, "content": result.text });
        if !result.ok {
            set(&mut block, "is_error", true);
        }
        block
    });
    results.chain(heard.texts.iter().map(|text| block_of(text))).collect()
}

fn assistant(text: &str, calls: &[Call<'_>]) -> Value {
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
