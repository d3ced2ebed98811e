//! Requests that real servers refuse, by wire. For each of these reasons one real
//! server refuses, in its own words or nearly so.

use super::{http::Request, wire::Wire};
use serde_json::Value;
use std::collections::BTreeSet;

/// Why a strict server refuses a request; `None` where it takes it.
pub(super) fn refusal(request: &Request) -> Option<String> {
    let wire = Wire::of(&request.path)?;
    let body = request.json();
    let found = match wire {
        Wire::Anthropic => anthropic(&body),
        Wire::Chat => chat(&body),
        Wire::Responses => responses(&body),
        Wire::Gemini => gemini(&body),
        Wire::Ollama => ollama(&body),
    };
    found.err()
}

type Checked = Result<(), String>;

/// `[A-Za-z0-9_-]{1,64}`.
fn name(name: &Value) -> Checked {
    let name = name.as_str().unwrap_or_default();
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if plain && (1..=64).contains(&name.len()) {
        Ok(())
    } else {
        Err(format!("string does not match pattern: `{name}`"))
    }
}

fn only(object: &Value, place: &str, known: &[&str]) -> Checked {
    let unknown = object.as_object().into_iter().flatten().find(|(name, _)| !known.contains(&name.as_str()));
    unknown.map_or(Ok(()), |(name, _)| {
        Err(format!("{place}: unknown parameter `{name}`: extra inputs are not permitted"))
    })
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

/// Calls that wait for their results.
#[derive(Default)]
struct Calls {
    used: BTreeSet<String>,
    open: Vec<String>,
}

impl Calls {
    fn call(&mut self, id: &str) -> Checked {
        if id.is_empty() || !self.used.insert(id.to_owned()) {
            return Err(format!("duplicate or empty tool call id `{id}`"));
        }
        self.open.push(id.to_owned());
        Ok(())
    }

    fn result(&mut self, id: &str) -> Checked {
        let Some(place) = self.open.iter().position(|open| open == id) else {
            return Err(format!("tool result `{id}` without its call"));
        };
        self.open.remove(place);
        Ok(())
    }

    fn all_answered(&self) -> Checked {
        if self.open.is_empty() {
            Ok(())
        } else {
            Err(format!("tool calls without results: {:?}", self.open))
        }
    }
}

fn object_text(arguments: &Value) -> Checked {
    let read = serde_json::from_str::<Value>(arguments.as_str().unwrap_or_default());
    if read.is_ok_and(|read| read.is_object()) {
        Ok(())
    } else {
        Err(format!("arguments are no object: {arguments}"))
    }
}

/// Mistral's templates and API, `DeepSeek` in thinking mode, and `OpenAI`.
fn chat(body: &Value) -> Checked {
    let known =
        ["model", "stream", "stream_options", "messages", "max_tokens", "max_completion_tokens", "tools"];
    only(body, "body", &known)?;
    for tool in list(body, "tools") {
        name(at(tool, "/function/name"))?;
    }
    let messages = list(body, "messages");
    let mut calls = Calls::default();
    let mut before = "system";
    let thinks = messages.iter().any(|message| message.get("reasoning_content").is_some());
    for (place, message) in messages.iter().enumerate() {
        let role = text(message, "role");
        match (before, role) {
            ("system", "system") if place == 0 => {}
            ("system" | "assistant", "user")
            | ("user" | "tool", "assistant")
            | ("assistant" | "tool", "tool") => {}
            _ => {
                return Err(format!(
                    "unexpected role '{role}' after role '{before}': conversation roles must alternate"
                ));
            }
        }
        if role != "tool" {
            calls.all_answered()?;
        }
        let is_blank = text(message, "content").trim().is_empty() && list(message, "content").is_empty();
        match role {
            "assistant" => {
                let fields =
                    ["role", "content", "tool_calls", "reasoning_content", "reasoning", "reasoning_details"];
                only(message, "message", &fields)?;
                if is_blank && list(message, "tool_calls").is_empty() {
                    return Err("assistant message must have either content or tool_calls".into());
                }
                if thinks && message.get("reasoning_content").is_none() {
                    return Err(
                        "the `reasoning_content` in the thinking mode must be passed back to the API".into(),
                    );
                }
                for call in list(message, "tool_calls") {
                    only(call, "tool call", &["id", "type", "function", "extra_content"])?;
                    name(at(call, "/function/name"))?;
                    object_text(at(call, "/function/arguments"))?;
                    calls.call(text(call, "id"))?;
                }
            }
            "tool" => {
                only(message, "message", &["role", "content", "tool_call_id"])?;
                calls.result(text(message, "tool_call_id"))?;
            }
            _ => {
                only(message, "message", &["role", "content"])?;
                if is_blank {
                    return Err("message must have content".into());
                }
            }
        }
        before = role;
    }
    calls.all_answered()?;
    if matches!(before, "user" | "tool") {
        Ok(())
    } else {
        Err(format!("expected last role user or tool, got {before}"))
    }
}

fn anthropic(body: &Value) -> Checked {
    only(body, "body", &["model", "max_tokens", "stream", "messages", "system", "tools"])?;
    for tool in list(body, "tools") {
        name(&tool["name"])?;
    }
    let mut calls = Calls::default();
    let mut before = "assistant";
    for message in list(body, "messages") {
        only(message, "message", &["role", "content"])?;
        let role = text(message, "role");
        if role == before || !["user", "assistant"].contains(&role) {
            return Err(format!(
                "messages: roles must alternate between \"user\" and \"assistant\", but found `{role}` after `{before}`"
            ));
        }
        let blocks = list(message, "content");
        if blocks.is_empty() {
            return Err("messages: content must not be empty".into());
        }
        let mut is_behind = false;
        for block in blocks {
            match text(block, "type") {
                "text" if text(block, "text").trim().is_empty() => {
                    return Err("messages: text content blocks must contain non-whitespace text".into());
                }
                "tool_use" => {
                    name(&block["name"])?;
                    if !block["input"].is_object() {
                        return Err("tool_use.input: input should be a valid dictionary".into());
                    }
                    calls.call(text(block, "id"))?;
                }
                "tool_result" if is_behind => return Err("tool_result blocks must come first".into()),
                "tool_result" => calls.result(text(block, "tool_use_id"))?,
                _ => is_behind = true,
            }
        }
        if role == "user" {
            calls.all_answered()?;
        }
        before = role;
    }
    calls.all_answered()?;
    if before == "user" { Ok(()) } else { Err("the conversation must end with a user message".into()) }
}

fn responses(body: &Value) -> Checked {
    let known =
        ["model", "stream", "store", "max_output_tokens", "input", "instructions", "include", "tools"];
    only(body, "body", &known)?;
    for tool in list(body, "tools") {
        name(&tool["name"])?;
    }
    let (mut calls, mut ids) = (Calls::default(), BTreeSet::new());
    let mut last = "";
    for item in list(body, "input") {
        let id = text(item, "id");
        if !id.is_empty() && !ids.insert(id) {
            return Err(format!("duplicate item found with id {id}"));
        }
        match text(item, "type") {
            "function_call" => {
                name(&item["name"])?;
                object_text(&item["arguments"])?;
                calls.call(text(item, "call_id"))?;
                last = "call";
            }
            "function_call_output" => {
                calls.result(text(item, "call_id"))?;
                last = "output";
            }
            "reasoning" => {}
            _ => {
                calls.all_answered()?;
                if text(item, "role") == "user" && last == "user" {
                    return Err("conversation roles must alternate".into());
                }
                last = text(item, "role");
            }
        }
    }
    calls.all_answered()
}

fn gemini(body: &Value) -> Checked {
    only(body, "body", &["contents", "generationConfig", "systemInstruction", "tools"])?;
    for tool in list(body, "tools").iter().flat_map(|tool| list(tool, "functionDeclarations")) {
        name(&tool["name"])?;
    }
    let mut open = 0;
    let (mut before, mut ids) = (("model", 0), BTreeSet::new());
    for content in list(body, "contents") {
        let (role, parts) = (text(content, "role"), list(content, "parts"));
        let calls: Vec<&Value> = parts.iter().filter_map(|part| part.get("functionCall")).collect();
        let results: Vec<&Value> = parts.iter().filter_map(|part| part.get("functionResponse")).collect();
        if parts.is_empty() {
            return Err("contents.parts must not be empty".into());
        }
        // A person's words may stand behind results, in a turn of its own.
        if role == before.0 && !(role == "user" && before.1 > 0 && results.is_empty()) {
            return Err(format!("please ensure that roles alternate: `{role}` twice"));
        }
        if results.len() != open {
            return Err(
                "the number of function response parts must be equal to the number of function call parts"
                    .into(),
            );
        }
        for call in calls.iter().chain(&results) {
            name(&call["name"])?;
        }
        for id in calls.iter().map(|call| text(call, "id")).filter(|id| !id.is_empty()) {
            if !ids.insert(id.to_owned()) {
                return Err(format!("duplicate id `{id}`"));
            }
        }
        if results.iter().map(|result| text(result, "id")).any(|id| !id.is_empty() && !ids.contains(id)) {
            return Err("a function response has an id that no call has".into());
        }
        if calls.iter().any(|call| !call["args"].is_object()) {
            return Err("args must be an object".into());
        }
        (open, before) = (calls.len(), (role, results.len()));
    }
    if open == 0 && before.0 == "user" { Ok(()) } else { Err("the last turn must be the user's".into()) }
}

fn ollama(body: &Value) -> Checked {
    only(body, "body", &["model", "stream", "truncate", "messages", "options", "tools"])?;
    for tool in list(body, "tools") {
        name(at(tool, "/function/name"))?;
    }
    let mut open = 0_usize;
    let mut before = "";
    for message in list(body, "messages") {
        only(
            message,
            "message",
            &["role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"],
        )?;
        let role = text(message, "role");
        match (role, open) {
            ("tool", 0) => return Err("a tool's result without its call".into()),
            ("tool", _) => open -= 1,
            (_, 0) if role == before => return Err(format!("`{role}` twice")),
            (_, 0) => {}
            _ => return Err("tool calls without results".into()),
        }
        for call in list(message, "tool_calls") {
            name(at(call, "/function/name"))?;
            if !at(call, "/function/arguments").is_object() {
                return Err("arguments must be an object".into());
            }
            open += 1;
        }
        before = role;
    }
    if open == 0 { Ok(()) } else { Err("tool calls without results".into()) }
}

#[cfg(test)]
mod tests;
