//! Turns to the body of a `streamGenerateContent` request.

use crate::{
    Endpoint,
    transcript::{CallResult, ForeignCall, PromptText, Turn},
    wire::{description, input, list, set},
};
use bailey_protocol::{Image, ToolSpec};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Stands for the signature of a call that another model made: Google's documentation of thought signatures
/// asks for these words where a history comes from elsewhere.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// The model's place in a URL: `models/gemini-2.5-pro`, with what a path cannot hold percent-encoded (RFC
/// 3986, 2.1).
pub(crate) fn model_path(model: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte);
    let mut path = String::new();
    for byte in model.bytes() {
        if plain(byte) {
            path.push(byte.into());
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
    }
    if path.contains('/') { path } else { format!("models/{path}") }
}

/// The body of a request.
pub(crate) fn body(endpoint: &Endpoint, instruction: &str, turns: &[Turn<'_>], tools: &[ToolSpec]) -> Value {
    let signs = !["gemini-1", "gemini-2", "gemma"].iter().any(|old| endpoint.model.contains(old));
    // Only an identifier that the model itself gave may come back to it.
    let mut given: BTreeSet<&str> = BTreeSet::new();
    let mut contents: Vec<Value> = Vec::new();
    for turn in turns {
        match turn {
            Turn::Own(verbatim) => {
                let content = verbatim.get("content").unwrap_or(&Value::Null);
                given.extend(
                    list(content, "parts").filter_map(|part| part.get("functionCall")?.get("id")?.as_str()),
                );
                contents.extend(list(content, "parts").next().is_some().then(|| content.clone()));
            }
            Turn::Foreign { text, calls } => {
                contents.push(json!({ "role": "model", "parts": foreign(text, calls, signs) }));
            }
            Turn::Heard(heard) => {
                let results: Vec<Value> = heard
                    .results
                    .iter()
                    .map(|result| answered(result, given.contains(result.id.as_str())))
                    .collect();
                let texts: Vec<Value> = heard.texts.iter().flat_map(said).collect();
                // Apart, because the answers must be as many as the calls before them.
                for parts in [results, texts].into_iter().filter(|parts| !parts.is_empty()) {
                    contents.push(json!({ "role": "user", "parts": parts }));
                }
            }
        }
    }
    let mut body = json!({
        "contents": contents,
        "generationConfig": { "maxOutputTokens": endpoint.max_tokens },
    });
    if !instruction.is_empty() {
        set(&mut body, "systemInstruction", json!({ "parts": [{ "text": instruction }] }));
    }
    if !tools.is_empty() {
        let tools: Vec<Value> = tools.iter().map(tool).collect();
        set(&mut body, "tools", json!([{ "functionDeclarations": tools }]));
    }
    body
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "name": ToolSpec::wire_name(&tool.name),
        "description": description(tool),
        "parametersJsonSchema": tool.schema,
    })
}

fn answered(result: &CallResult<'_>, with_id: bool) -> Value {
    let outcome = if result.ok { "output" } else { "error" };
    let mut response = json!({ "name": result.name, "response": { outcome: result.text } });
    if with_id {
        set(&mut response, "id", result.id.clone());
    }
    json!({ "functionResponse": response })
}

fn said(said: &PromptText<'_>) -> Vec<Value> {
    let image = |image: &&Image| json!({ "inlineData": { "mimeType": image.kind().media_type(), "data": image.base64() } });
    let text = Some(&said.text).filter(|text| !text.trim().is_empty()).map(|text| json!({ "text": text }));
    said.images.iter().map(image).chain(text).collect()
}

fn foreign(text: &str, calls: &[ForeignCall<'_>], signs: bool) -> Vec<Value> {
    let text = Some(text).filter(|text| !text.trim().is_empty()).map(|text| json!({ "text": text }));
    let calls = calls.iter().enumerate().map(|(place, call)| {
        let mut part = json!({ "functionCall": { "name": call.name, "args": input(call.arguments) } });
        if signs && place == 0 {
            set(&mut part, "thoughtSignature", FOREIGN_SIGNATURE);
        }
        part
    });
    text.into_iter().chain(calls).collect()
}
