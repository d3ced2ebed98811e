//! A Chat Completions reply, put together from its chunks.

use super::encode::{THOUGHTS, assistant_value, call_value};
use crate::{
    Wire,
    decode::not_json,
    failure::{Complaint, Fault},
    wire::{count, list, made_id, set, word},
};
use bailey_kernel::{Completion, Delta, StopReason};
use bailey_protocol::{CallId, ToolCall, Usage};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The most calls that one reply may have.
const CALLS_MAX: usize = 1024;

/// The most pieces of reasoning that one reply may have.
const REASONINGS_MAX: usize = 4096;

/// Words for the stop of a model that has said all: OpenAI's, and
/// those of servers that are compatible with it.
const ENDS: [&str; 12] = [
    "stop",
    "tool_calls",
    "function_call",
    "tool_use",
    "end_turn",
    "stop_sequence",
    "eos",
    "eos_token",
    "complete",
    "completed",
    "done",
    "finished",
];

/// Words for the end of a reply that is no answer.
pub(crate) const FAILED: [&str; 8] = [
    "error",
    "abort",
    "aborted",
    "cancelled",
    "canceled",
    "network_error",
    "upstream_error",
    "insufficient_system_resource",
];

/// The part of a reply that has come so far.
#[derive(Debug, Default)]
pub(crate) struct PartialCompletion {
    /// The words of this server for an end, besides the known ones.
    ends: BTreeSet<String>,
    id: String,
    /// All text so far, a refusal's too: exactly what was streamed.
    text: String,
    refused: bool,
    /// The model's thoughts, by the field in which they came. An empty field
    /// is kept too, for some servers want it back.
    thoughts: BTreeMap<&'static str, String>,
    /// The same in OpenRouter's pieces, which may be signed.
    reasoning_details: Vec<Value>,
    calls: Vec<Partial>,
    /// The call that each index means now.
    by_index: BTreeMap<u64, usize>,
    finish_reason: Option<String>,
    done: bool,
    usage: Usage,
}

/// A call as far as it is there.
#[derive(Debug, Default)]
struct Partial {
    id: String,
    name: String,
    arguments: String,
    /// What some providers sign and want to see again.
    extra_content: Option<Value>,
}

impl PartialCompletion {
    /// A reply of a server that has these words of its own for an end.
    pub(crate) fn of(ends: BTreeSet<String>) -> Self {
        Self { ends, ..Self::default() }
    }

    /// Reads the data of one event.
    pub(crate) fn event(&mut self, data: &str) -> Result<Vec<Delta>, Fault> {
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(Vec::new());
        }
        let chunk: Value = serde_json::from_str(data).map_err(|error| not_json(&error))?;
        self.chunk(&chunk, "delta")
    }

    /// Reads an answer that was not streamed.
    pub(crate) fn whole(&mut self, completion: &Value) -> Result<(), Fault> {
        if completion.get("choices").is_none() && Complaint::of(completion).is_none() {
            return Err(Fault::Malformed("it has no `choices`".into()));
        }
        self.chunk(completion, "message")?;
        self.done = true;
        Ok(())
    }

    /// Whether the last event has come.
    pub(crate) fn is_whole(&self) -> bool {
        self.done
    }

    /// Whether the model has said that it stops.
    pub(crate) fn has_end(&self) -> bool {
        self.finish_reason.is_some()
    }

    /// The reply.
    pub(crate) fn end(mut self) -> Result<Completion, Fault> {
        let empty = self.text.is_empty() && self.calls.is_empty();
        // Compatible servers leave out the one or the other.
        if self.finish_reason.is_none() && (!self.done || empty) {
            return Err(Fault::Cut("no `finish_reason` came"));
        }
        let reason = self.finish_reason.as_ref().map(|reason| reason.to_ascii_lowercase().replace('-', "_"));
        let stop = match reason.as_deref() {
            Some(
                "length"
                | "max_tokens"
                | "max_output_tokens"
                | "model_length"
                | "model_context_window_exceeded",
            ) => StopReason::Length,
            Some("content_filter" | "refusal" | "safety" | "sensitive") => StopReason::Refused,
            Some(reason) if !ENDS.contains(&reason) && !self.ends.contains(reason) => {
                return Err(Fault::Ended(reason.into()));
            }
            _ if self.refused => StopReason::Refused,
            Some("tool_calls" | "tool_use" | "function_call") if self.calls.is_empty() => StopReason::NoCalls,
            _ if self.calls.is_empty() => StopReason::Answered,
            _ => StopReason::Calls,
        };
        let (mut calls, mut wired) = (Vec::new(), Vec::new());
        for (place, partial) in self.calls.into_iter().enumerate() {
            let (call, value) = partial.end(&self.id, place);
            calls.push(call);
            wired.push(value);
        }
        let mut message = assistant_value(&self.text, wired);
        if !self.reasoning_details.is_empty() {
            // The same once more.
            self.thoughts.remove("reasoning");
            set(&mut message, "reasoning_details", self.reasoning_details);
        }
        self.thoughts.into_iter().for_each(|(field, text)| set(&mut message, field, text));
        let verbatim = json!({ "wire": Wire::OpenAiChat.name(), "message": message });
        Ok(Completion { text: self.text, calls, stop, usage: self.usage, cost: None, verbatim })
    }

    fn chunk(&mut self, chunk: &Value, part: &str) -> Result<Vec<Delta>, Fault> {
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Fault::Reported(Complaint::of(chunk).unwrap_or_default()));
        }
        // vLLM says what is wrong without the word `error`.
        if let (None, Some(complaint)) = (chunk.get("choices"), Complaint::of(chunk)) {
            return Err(Fault::Reported(complaint));
        }
        if let (true, Some(id)) = (self.id.is_empty(), chunk.get("id").and_then(Value::as_str)) {
            self.id = id.into();
        }
        let mut deltas = Vec::new();
        if let Some(choice) = chunk.get("choices").and_then(|choices| choices.get(0)) {
            if choice.get("error").is_some_and(|error| !error.is_null()) {
                return Err(Fault::Reported(Complaint::of(choice).unwrap_or_default()));
            }
            if let Some(part) = choice.get(part) {
                deltas.extend(self.part(part)?);
            }
            // Some servers write an empty one into every chunk.
            let reason = choice.get("finish_reason").and_then(Value::as_str);
            if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
                self.finish_reason = Some(reason.into());
            }
            // OpenRouter's own word may be `stop` where the provider behind it failed.
            let native = word(choice, "native_finish_reason");
            if FAILED.contains(&native) {
                self.finish_reason = Some(native.into());
            }
        }
        deltas.extend(self.usage(chunk));
        Ok(deltas)
    }

    fn part(&mut self, part: &Value) -> Result<Option<Delta>, Fault> {
        for call in part.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.call(call)?;
        }
        for field in THOUGHTS.into_iter().filter(|field| part.get(field).is_some()) {
            self.thoughts.entry(field).or_default().push_str(word(part, field));
        }
        for piece in list(part, "reasoning_details") {
            self.reasoning(piece)?;
        }
        let refusal = part.get("refusal").and_then(Value::as_str).unwrap_or_default();
        self.refused |= !refusal.is_empty();
        let said = part.get("content").map(text_of).unwrap_or_default() + refusal;
        self.text.push_str(&said);
        Ok((!said.is_empty()).then_some(Delta::Text(said)))
    }

    /// Takes up a piece of reasoning. What goes on with the last one is joined to it: a server sends text
    /// word by word.
    fn reasoning(&mut self, piece: &Value) -> Result<(), Fault> {
        let Some(fields) = piece.as_object() else { return Ok(()) };
        let goes_on = |last: &&mut Value| {
            let same = |name: &str| last.get(name) == piece.get(name);
            let same_or_new = |name: &str| piece.get(name).is_none_or(Value::is_null) || same(name);
            matches!(word(piece, "type"), "reasoning.text" | "reasoning.summary")
                && same("type")
                && same("index")
                && same_or_new("id")
        };
        let Some(last) = self.reasoning_details.last_mut().filter(goes_on) else {
            if self.reasoning_details.len() >= REASONINGS_MAX {
                return Err(Fault::TooLarge("more than 4,096 pieces of reasoning"));
            }
            self.reasoning_details.push(piece.clone());
            return Ok(());
        };
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            match (last.get_mut(name), value) {
                // In place: a copy for each piece would cost the square of an answer without end.
                (Some(Value::String(whole)), Value::String(more)) if name == "text" || name == "summary" => {
                    whole.push_str(more);
                }
                _ => set(last, name, value.clone()),
            }
        }
        Ok(())
    }

    /// Takes up a piece of a call. Pieces belong together by index; a new identifier at a known index is a
    /// new call all the same (some servers number every call 0), and without index a new identifier or name
    /// is.
    fn call(&mut self, piece: &Value) -> Result<(), Fault> {
        let function = piece.get("function").unwrap_or(&Value::Null);
        let (id, name) = (word(piece, "id").to_owned(), word(function, "name").to_owned());
        let index = piece.get("index").and_then(Value::as_u64);
        let known = match index {
            Some(index) => self.by_index.get(&index).copied(),
            None if id.is_empty() && name.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().position(|call| !id.is_empty() && call.id == id),
        };
        let continues = |call: &Partial| id.is_empty() || call.id.is_empty() || call.id == id;
        let place = match known {
            Some(place) if self.calls.get(place).is_some_and(continues) => place,
            _ => self.calls.len(),
        };
        if place >= CALLS_MAX {
            return Err(Fault::TooLarge("more than 1,024 calls"));
        }
        if place == self.calls.len() {
            self.calls.push(Partial::default());
        }
        self.by_index.extend(index.map(|index| (index, place)));
        let Some(call) = self.calls.get_mut(place) else { return Ok(()) };
        // Some servers repeat both in every piece.
        call.id = if call.id.is_empty() { id } else { std::mem::take(&mut call.id) };
        call.name = if call.name.is_empty() { name } else { std::mem::take(&mut call.name) };
        match function.get("arguments") {
            Some(Value::String(text)) => call.arguments.push_str(text),
            Some(whole @ Value::Object(_)) => call.arguments = whole.to_string(),
            _ => {}
        }
        if let Some(extra) = piece.get("extra_content") {
            call.extra_content = Some(extra.clone());
        }
        Ok(())
    }

    fn usage(&mut self, chunk: &Value) -> Option<Delta> {
        let usage = chunk.get("usage").filter(|usage| usage.is_object())?;
        let detail = |name| usage.get("prompt_tokens_details").and_then(|details| count(details, name));
        // DeepSeek's name for it.
        let cached = detail("cached_tokens").or_else(|| count(usage, "prompt_cache_hit_tokens"));
        self.usage.input_tokens = count(usage, "prompt_tokens").unwrap_or(self.usage.input_tokens);
        self.usage.output_tokens = count(usage, "completion_tokens").unwrap_or(self.usage.output_tokens);
        self.usage.cache_read_tokens = cached.unwrap_or(self.usage.cache_read_tokens);
        self.usage.cache_write_tokens = detail("cache_write_tokens").unwrap_or(self.usage.cache_write_tokens);
        Some(Delta::Usage(self.usage))
    }
}

impl Partial {
    /// The call, and how the wire wants to see it again.
    fn end(self, reply: &str, place: usize) -> (ToolCall, Value) {
        let made = || made_id(reply, place, &self.name, &self.arguments);
        let id = if self.id.is_empty() { made() } else { self.id };
        let arguments = if self.arguments.trim().is_empty() { "{}".into() } else { self.arguments };
        let mut value = call_value(&id, &self.name, &arguments);
        if let Some(extra) = self.extra_content {
            set(&mut value, "extra_content", extra);
        }
        (ToolCall { id: CallId(id), name: self.name, arguments }, value)
    }
}

/// Content is a text, or a list of parts of which the text ones count.
fn text_of(content: &Value) -> String {
    let text = |part: &Value| part.get("text").and_then(Value::as_str).map(str::to_owned);
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(text).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
