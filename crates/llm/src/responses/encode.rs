//! Turns to the body of a Responses request.

use crate::{
    Endpoint,
    transcript::{ModelInput, PromptText, Turn},
    wire::{data_url, description, input_text, list, set, word},
};
use bailey_protocol::{Image, ToolSpec};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The body of a streamed request. Nothing is stored at the provider (`store`), so what a model thought comes
/// along encrypted and goes back as it came.
pub(crate) fn body(endpoint: &Endpoint, instruction: &str, turns: &[Turn<'_>], tools: &[ToolSpec]) -> Value {
    let mut items = Vec::new();
    let mut ids = BTreeSet::new();
    for turn in turns {
        match turn {
            Turn::Own(verbatim) => {
                let own = list(verbatim, "items").filter(|item| can_return(item)).cloned();
                items.extend(own.map(|item| one_of_its_name(item, &mut ids)));
            }
            Turn::Foreign { text, calls } => {
                if !text.trim().is_empty() {
                    items.push(json!({ "role": "assistant", "content": text }));
                }
                items.extend(calls.iter().map(|call| {
                    json!({
                        "type": "function_call",
                        "call_id": call.id,
                        "name": call.name,
                        "arguments": input_text(call.arguments),
                    })
                }));
            }
            Turn::Heard(heard) => items.extend(heard_items(heard)),
        }
    }
    let mut body = json!({
        "model": endpoint.model,
        "stream": true,
        "store": false,
        "max_output_tokens": endpoint.max_tokens,
        "input": items,
    });
    if !instruction.is_empty() {
        set(&mut body, "instructions", instruction);
    }
    if reasons(&endpoint.model) {
        set(&mut body, "include", json!(["reasoning.encrypted_content"]));
    }
    if !tools.is_empty() {
        set(&mut body, "tools", tools.iter().map(tool).collect::<Value>());
    }
    body
}

/// A reasoning item that is neither stored there nor encrypted here means nothing to the provider, which
/// refuses it.
fn can_return(item: &Value) -> bool {
    word(item, "type") != "reasoning" || !word(item, "encrypted_content").is_empty()
}

/// The item without its identifier where an earlier one has the same: some servers number the items of each
/// response anew, and refuse such a request. Nothing is stored there, so the identifier means nothing.
fn one_of_its_name(mut item: Value, ids: &mut BTreeSet<String>) -> Value {
    let is_new = item.get("id").and_then(Value::as_str).is_none_or(|id| ids.insert(id.into()));
    if let (false, Some(item)) = (is_new, item.as_object_mut()) {
        item.remove("id");
    }
    item
}

/// Whether the model is one that reasons; asked for encrypted reasoning, others refuse the whole request.
fn reasons(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let numbered =
        name.strip_prefix('o').and_then(|rest| rest.chars().next()).is_some_and(|c| c.is_ascii_digit());
    let five_or_later = name
        .strip_prefix("gpt-")
        .and_then(|rest| rest.split(['.', '-']).next()?.parse::<u32>().ok())
        .is_some_and(|generation| generation >= 5);
    (numbered || five_or_later || name.contains("codex")) && !name.contains("chat")
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "name": ToolSpec::wire_name(&tool.name),
        "description": description(tool),
        "parameters": tool.schema,
        "strict": false,
    })
}

/// Results first: they answer the calls right before.
fn heard_items(heard: &ModelInput<'_>) -> Vec<Value> {
    let results = heard
        .results
        .iter()
        .map(|result| json!({ "type": "function_call_output", "call_id": result.id, "output": result.text }));
    let texts = Some(&heard.texts).filter(|texts| !texts.is_empty());
    results.chain(texts.map(|texts| json!({ "role": "user", "content": content(texts) }))).collect()
}

fn content(texts: &[PromptText<'_>]) -> Value {
    if texts.iter().all(|said| said.images.is_empty()) {
        return PromptText::joined(texts).into();
    }
    let parts = |said: &PromptText<'_>| {
        let image =
            |image: &&Image| json!({ "type": "input_image", "detail": "auto", "image_url": data_url(image) });
        let text = Some(&said.text).filter(|text| !text.trim().is_empty());
        let text = text.map(|text| json!({ "type": "input_text", "text": text }));
        said.images.iter().map(image).chain(text).collect::<Vec<_>>()
    };
    texts.iter().flat_map(parts).collect()
}

#[cfg(test)]
mod tests {
    use super::reasons;

    #[test]
    fn models_that_reason() {
        for (model, expected) in [
            ("o3-mini", true),
            ("o4-mini-2025-04-16", true),
            ("gpt-5", true),
            ("gpt-5.1-codex", true),
            ("openai/gpt-5-nano", true),
            ("gpt-5-chat-latest", false),
            ("gpt-4o", false),
            ("gpt-4.1", false),
            ("omni", false),
            ("llama-3", false),
        ] {
            assert_eq!(reasons(model), expected, "{model}");
        }
    }
}
