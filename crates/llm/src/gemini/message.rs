//! A Gemini reply, put together from its chunks.

use crate::{
    Wire,
    decode::not_json,
    failure::{Complaint, Fault},
    wire::{count, list, made_id, word},
};
use bailey_kernel::{Completion, Delta, StopReason};
use bailey_protocol::{CallId, ToolCall, Usage};
use serde_json::{Value, json};

/// The most parts that one reply may have.
const PARTS_MAX: usize = 4096;

/// Reasons to stop that are the provider's judgement of what was said.
const REFUSALS: &[&str] =
    &["SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"];

/// Reasons to stop that mean a call which the model wrote wrongly; another attempt may do better.
const BAD_CALLS: &[&str] = &["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"];

/// The reasons of a whole reply. Gemini says `STOP`; servers that speak its wire say one of the others for
/// calls.
const ENDS: &[&str] = &["STOP", "FUNCTION_CALL", "TOOL_CALL", "TOOL_CALLS"];

/// The part of a reply that has come so far.
#[derive(Debug, Default)]
pub(crate) struct PartialContent {
    id: String,
    /// As they came, but for pieces of one plain text, which are joined: signed parts must come back as they
    /// were.
    parts: Vec<Value>,
    /// All text so far, without thoughts: exactly what was streamed.
    text: String,
    finish_reason: Option<String>,
    blocked: bool,
    usage: Usage,
}

impl PartialContent {
    /// Reads the data of one event.
    pub(crate) fn event(&mut self, data: &str) -> Result<Vec<Delta>, Fault> {
        let chunk: Value = serde_json::from_str(data).map_err(|error| not_json(&error))?;
        self.chunk(&chunk)
    }

    /// Reads an answer that was not streamed, or chunks in a list.
    pub(crate) fn whole(&mut self, answer: &Value) -> Result<(), Fault> {
        let chunks = match answer {
            Value::Array(chunks) => chunks.as_slice(),
            chunk => std::slice::from_ref(chunk),
        };
        for chunk in chunks {
            let known = ["candidates", "promptFeedback", "usageMetadata", "error"];
            if !known.iter().any(|name| chunk.get(name).is_some()) {
                return Err(Fault::Malformed("it has no `candidates`".into()));
            }
            self.chunk(chunk)?;
        }
        Ok(())
    }

    /// Its end is that of the body.
    #[expect(clippy::unused_self, reason = "the other wires have an end of their own")]
    pub(crate) fn is_whole(&self) -> bool {
        false
    }

    /// Whether the model has said that it stops.
    pub(crate) fn has_end(&self) -> bool {
        self.finish_reason.is_some()
    }

    /// The reply.
    pub(crate) fn end(self) -> Result<Completion, Fault> {
        let reason = self.finish_reason.as_deref();
        if reason.is_none() && !self.blocked {
            return Err(Fault::Cut("no `finishReason` came"));
        }
        if reason.is_some_and(|reason| BAD_CALLS.contains(&reason)) {
            return Err(Fault::Cut("the model wrote a call that cannot be read"));
        }
        let functions = self.parts.iter().filter_map(|part| part.get("functionCall"));
        let calls: Vec<ToolCall> =
            functions.enumerate().map(|(place, function)| call(&self.id, place, function)).collect();
        let stop = match reason {
            Some("MAX_TOKENS") => StopReason::Length,
            Some(reason) if REFUSALS.contains(&reason) => StopReason::Refused,
            _ if self.blocked => StopReason::Refused,
            Some(reason) if !ENDS.contains(&reason) => return Err(Fault::Ended(reason.into())),
            Some(reason) if reason != "STOP" && calls.is_empty() => StopReason::NoCalls,
            _ if calls.is_empty() => StopReason::Answered,
            _ => StopReason::Calls,
        };
        let content = json!({ "role": "model", "parts": self.parts });
        let verbatim = json!({ "wire": Wire::Gemini.name(), "content": content });
        Ok(Completion { text: self.text, calls, stop, usage: self.usage, cost: None, verbatim })
    }

    fn chunk(&mut self, chunk: &Value) -> Result<Vec<Delta>, Fault> {
        if let Some(complaint) = chunk.get("error").and_then(|_| Complaint::of(chunk)) {
            return Err(Fault::Reported(complaint));
        }
        if self.id.is_empty() {
            self.id = word(chunk, "responseId").into();
        }
        self.blocked |=
            chunk.get("promptFeedback").is_some_and(|feedback| !word(feedback, "blockReason").is_empty());
        let mut deltas = Vec::new();
        if let Some(candidate) = list(chunk, "candidates").next() {
            for part in list(candidate.get("content").unwrap_or(&Value::Null), "parts") {
                deltas.extend(self.part(part)?);
            }
            if let Some(reason) = candidate.get("finishReason").and_then(Value::as_str) {
                self.finish_reason = Some(reason.into());
            }
        }
        deltas.extend(self.usage(chunk));
        Ok(deltas)
    }

    fn part(&mut self, part: &Value) -> Result<Option<Delta>, Fault> {
        let Some(text) = part.get("text").and_then(Value::as_str) else {
            return self.push(part.clone()).map(|()| None);
        };
        if text.is_empty() && !is_signed(part) {
            return Ok(None);
        }
        // Text on both sides of a call or a thought is two paragraphs.
        let after_other =
            self.parts.last().is_some_and(|last| last.get("text").is_none() || is_thought(last));
        let gap = if after_other && !self.text.is_empty() && !text.is_empty() { "\n\n" } else { "" };
        match self.parts.last_mut() {
            Some(last) if continues(last, part) => {
                // In place: a copy for each piece would cost the square of an answer without end.
                if let Some(Value::String(whole)) = last.get_mut("text") {
                    whole.push_str(text);
                }
            }
            _ => self.push(part.clone())?,
        }
        if is_thought(part) {
            return Ok(None);
        }
        let said = format!("{gap}{text}");
        self.text.push_str(&said);
        Ok((!said.is_empty()).then_some(Delta::Text(said)))
    }

    fn push(&mut self, part: Value) -> Result<(), Fault> {
        if self.parts.len() >= PARTS_MAX {
            return Err(Fault::TooLarge("more than 4,096 parts"));
        }
        if part.is_object() {
            self.parts.push(part);
        }
        Ok(())
    }

    /// Takes up what was counted; each count is the sum so far, and what a cache held is part of the
    /// prompt's.
    fn usage(&mut self, chunk: &Value) -> Option<Delta> {
        let counted = chunk.get("usageMetadata").filter(|counted| counted.is_object())?;
        let sum = |names: [&str; 2]| {
            let counts = names.iter().filter_map(|name| count(counted, name));
            counts.reduce(u64::saturating_add)
        };
        let Usage { input_tokens, output_tokens, cache_read_tokens, .. } = &mut self.usage;
        *input_tokens = sum(["promptTokenCount", "toolUsePromptTokenCount"]).unwrap_or(*input_tokens);
        *output_tokens = sum(["candidatesTokenCount", "thoughtsTokenCount"]).unwrap_or(*output_tokens);
        *cache_read_tokens = count(counted, "cachedContentTokenCount").unwrap_or(*cache_read_tokens);
        Some(Delta::Usage(self.usage))
    }
}

fn is_thought(part: &Value) -> bool {
    part.get("thought").and_then(Value::as_bool).unwrap_or_default()
}

fn is_signed(part: &Value) -> bool {
    part.get("thoughtSignature").is_some()
}

/// Whether `next` goes on with the plain text of `last`.
fn continues(last: &Value, next: &Value) -> bool {
    last.get("text").is_some() && !is_signed(last) && !is_signed(next) && is_thought(last) == is_thought(next)
}

fn call(reply: &str, place: usize, function: &Value) -> ToolCall {
    let (id, name) = (word(function, "id"), word(function, "name"));
    let arguments = match function.get("args") {
        Some(arguments) if !arguments.is_null() => arguments.to_string(),
        _ => "{}".into(),
    };
    let id = if id.is_empty() { made_id(reply, place, name, &arguments) } else { id.into() };
    ToolCall { id: CallId(id), name: name.into(), arguments }
}

#[cfg(test)]
mod tests;
