//! An Ollama reply, put together from its lines.

use crate::{
    Wire,
    decode::not_json,
    failure::{Complaint, Fault},
    wire::{count, list, made_id, set, word},
};
use bailey_kernel::{Completion, Delta, StopReason};
use bailey_protocol::{CallId, ToolCall, Usage};
use serde_json::{Value, json};

/// The most calls that one reply may have.
const CALLS_MAX: usize = 1024;

/// The part of a reply that has come so far.
#[derive(Debug, Default)]
pub(crate) struct PartialChat {
    /// When its first line was made, which tells it from others.
    created: String,
    /// All text so far: exactly what was streamed.
    text: String,
    thinking: String,
    /// As they came.
    calls: Vec<Value>,
    done: bool,
    done_reason: String,
    usage: Usage,
}

impl PartialChat {
    /// Reads one line.
    pub(crate) fn event(&mut self, line: &str) -> Result<Vec<Delta>, Fault> {
        let value: Value = serde_json::from_str(line).map_err(|error| not_json(&error))?;
        self.line(&value)
    }

    /// Reads an answer that was not streamed: its only line.
    pub(crate) fn whole(&mut self, answer: &Value) -> Result<(), Fault> {
        self.line(answer).map(drop)
    }

    /// Whether the last event has come.
    pub(crate) fn is_whole(&self) -> bool {
        self.done
    }

    /// Whether the model has said that it stops.
    pub(crate) fn has_end(&self) -> bool {
        self.done
    }

    /// The reply.
    pub(crate) fn end(self) -> Result<Completion, Fault> {
        if !self.done {
            return Err(Fault::Cut("no line said `done`"));
        }
        let calls: Vec<ToolCall> =
            self.calls.iter().enumerate().map(|(place, value)| call(&self.created, place, value)).collect();
        let stop = match self.done_reason.as_str() {
            "length" => StopReason::Length,
            // Older releases give no reason.
            reason if !["", "stop"].contains(&reason) => return Err(Fault::Ended(reason.into())),
            _ if calls.is_empty() => StopReason::Answered,
            _ => StopReason::Calls,
        };
        let mut message = json!({ "role": "assistant", "content": self.text });
        if !self.thinking.is_empty() {
            set(&mut message, "thinking", self.thinking);
        }
        if !self.calls.is_empty() {
            set(&mut message, "tool_calls", self.calls);
        }
        let verbatim = json!({ "wire": Wire::Ollama.name(), "message": message });
        Ok(Completion { text: self.text, calls, stop, usage: self.usage, cost: None, verbatim })
    }

    fn line(&mut self, line: &Value) -> Result<Vec<Delta>, Fault> {
        if let Some(complaint) = line.get("error").and_then(|_| Complaint::of(line)) {
            return Err(Fault::Reported(complaint));
        }
        let Some(message) = line.get("message").filter(|message| message.is_object()) else {
            return Err(Fault::Malformed("a line has no `message`".into()));
        };
        if self.created.is_empty() {
            self.created = word(line, "created_at").into();
        }
        self.thinking.push_str(word(message, "thinking"));
        self.calls.extend(list(message, "tool_calls").filter(|call| call.is_object()).cloned());
        if self.calls.len() > CALLS_MAX {
            return Err(Fault::TooLarge("more than 1,024 calls"));
        }
        let text = word(message, "content");
        self.text.push_str(text);
        let mut deltas: Vec<Delta> =
            (!text.is_empty()).then(|| Delta::Text(text.into())).into_iter().collect();
        if line.get("done").and_then(Value::as_bool).unwrap_or_default() {
            self.done = true;
            self.done_reason = word(line, "done_reason").into();
            deltas.push(self.usage(line));
        }
        Ok(deltas)
    }

    fn usage(&mut self, line: &Value) -> Delta {
        self.usage.input_tokens = count(line, "prompt_eval_count").unwrap_or_default();
        self.usage.output_tokens = count(line, "eval_count").unwrap_or_default();
        Delta::Usage(self.usage)
    }
}

fn call(reply: &str, place: usize, value: &Value) -> ToolCall {
    let function = value.get("function").unwrap_or(&Value::Null);
    let (id, name) = (word(value, "id"), word(function, "name"));
    let arguments = match function.get("arguments") {
        Some(Value::String(text)) => text.clone(),
        Some(arguments) if !arguments.is_null() => arguments.to_string(),
        _ => "{}".into(),
    };
    let id = if id.is_empty() { made_id(reply, place, name, &arguments) } else { id.into() };
    ToolCall { id: CallId(id), name: name.into(), arguments }
}

#[cfg(test)]
mod tests;
