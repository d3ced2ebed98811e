//! A Messages reply, put together from its events.

use crate::{
    Wire,
    decode::not_json,
    failure::{Complaint, Fault},
    wire::{count, input, set},
};
use bailey_kernel::{Completion, Delta, StopReason};
use bailey_protocol::{CallId, ToolCall, Usage};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The most content blocks that one reply may have.
const BLOCKS_MAX: usize = 4096;

/// Why a model stops that has said all.
const ENDS: [&str; 5] = ["end_turn", "tool_use", "stop_sequence", "pause_turn", "stop"];

/// The part of a message that has come so far.
#[derive(Debug, Default)]
pub(crate) struct PartialMessage {
    blocks: Vec<Block>,
    /// The block that each number means now: some gateways begin to count anew, or give every block the same.
    by_number: BTreeMap<u64, usize>,
    /// All text so far: exactly what was streamed.
    text: String,
    stop_reason: Option<String>,
    usage: Usage,
    whole: bool,
}

/// One content block: what its start said, and what its pieces added.
#[derive(Debug)]
struct Block {
    value: Value,
    /// Text or thinking, whichever it is made of.
    text: String,
    signature: String,
    input: String,
}

impl PartialMessage {
    /// Reads the data of one event.
    pub(crate) fn event(&mut self, data: &str) -> Result<Vec<Delta>, Fault> {
        let event: Value = serde_json::from_str(data).map_err(|error| not_json(&error))?;
        let part = |name: &str| event.get(name).unwrap_or(&Value::Null);
        match part("type").as_str().unwrap_or_default() {
            "message_start" => Ok(self.usage(part("message")).into_iter().collect()),
            "content_block_start" => {
                Ok(self.start(index(&event), part("content_block"))?.into_iter().collect())
            }
            "content_block_delta" => self.delta(index(&event), part("delta")),
            "message_delta" => {
                self.stopped(part("delta"));
                Ok(self.usage(&event).into_iter().collect())
            }
            "message_stop" => {
                self.whole = true;
                Ok(Vec::new())
            }
            "error" => Err(Fault::Reported(Complaint::of(&event).unwrap_or_default())),
            // Pings, ends of blocks, and what later versions add, which the documentation asks to pass over.
            _ => Ok(Vec::new()),
        }
    }

    /// Reads an answer that was not streamed.
    pub(crate) fn whole(&mut self, message: &Value) -> Result<(), Fault> {
        let Some(content) = message.get("content").and_then(Value::as_array) else {
            return Err(match Complaint::of(message) {
                Some(complaint) => Fault::Reported(complaint),
                None => Fault::Malformed("it has no `content`".into()),
            });
        };
        for (index, block) in (0..).zip(content) {
            self.start(index, block)?;
        }
        self.stopped(message);
        self.usage(message);
        self.whole = true;
        Ok(())
    }

    /// Whether the last event has come.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Whether the model has said that it stops.
    pub(crate) fn has_end(&self) -> bool {
        self.whole
    }

    /// The reply.
    pub(crate) fn end(self) -> Result<Completion, Fault> {
        if !self.whole {
            return Err(Fault::Cut("no `message_stop` came"));
        }
        let content: Vec<Value> = self.blocks.into_iter().filter_map(Block::end).collect();
        let calls: Vec<ToolCall> = content.iter().filter_map(call).collect();
        let stop = match self.stop_reason.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => StopReason::Length,
            Some("refusal") => StopReason::Refused,
            Some("tool_use") if calls.is_empty() => StopReason::NoCalls,
            Some(reason) if !ENDS.contains(&reason) => return Err(Fault::Ended(reason.into())),
            _ if calls.is_empty() => StopReason::Answered,
            _ => StopReason::Calls,
        };
        let verbatim = json!({ "wire": Wire::Anthropic.name(), "content": content });
        Ok(Completion { text: self.text, calls, stop, usage: self.usage, cost: None, verbatim })
    }

    fn start(&mut self, index: u64, value: &Value) -> Result<Option<Delta>, Fault> {
        if self.blocks.len() >= BLOCKS_MAX {
            return Err(Fault::TooLarge("more than 4,096 blocks"));
        }
        let before = self.by_number.get(&index).and_then(|place| self.blocks.get(*place));
        let is_same = |block: &Block| block.kind() == "tool_use" && block.value.get("id") == value.get("id");
        if block_kind(value) == "tool_use" && before.is_some_and(is_same) {
            // Told twice.
            return Ok(None);
        }
        let after_other = self.blocks.last().is_some_and(|last| last.kind() != "text");
        let word = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let block = Block {
            text: if block_kind(value) == "thinking" { word("thinking") } else { word("text") },
            signature: word("signature"),
            input: String::new(),
            value: value.clone(),
        };
        let is_text = block.kind() == "text";
        let text = block.text.clone();
        self.by_number.insert(index, self.blocks.len());
        self.blocks.push(block);
        if !is_text {
            return Ok(None);
        }
        // Text on both sides of a call or a thought is two paragraphs.
        let gap = if after_other && !self.text.is_empty() { "\n\n" } else { "" };
        Ok(self.say(format!("{gap}{text}")))
    }

    fn delta(&mut self, index: u64, delta: &Value) -> Result<Vec<Delta>, Fault> {
        let piece = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
        // A piece of text or of a thought that belongs to no block of its kind begins one.
        let begins = match piece("type") {
            "text_delta" => Some("text"),
            "thinking_delta" => Some("thinking"),
            _ => None,
        };
        let place = self.by_number.get(&index).copied();
        let kind = place.and_then(|place| self.blocks.get(place)).map(Block::kind);
        let mut said = Vec::new();
        if let Some(begins) = begins.filter(|begins| kind != Some(begins)) {
            said.extend(self.start(index, &json!({ "type": begins }))?);
        }
        let place = self.by_number.get(&index).copied().unwrap_or(self.blocks.len().saturating_sub(1));
        let Some(block) = self.blocks.get_mut(place) else {
            return Err(Fault::Malformed(format!("a piece of content block {index}, which never started")));
        };
        match piece("type") {
            "text_delta" => {
                block.text.push_str(piece("text"));
                said.extend(self.say(piece("text").into()));
            }
            "thinking_delta" => block.text.push_str(piece("thinking")),
            "signature_delta" => block.signature.push_str(piece("signature")),
            "input_json_delta" => block.input.push_str(piece("partial_json")),
            "citations_delta" => block.cite(delta.get("citation")),
            _ => {}
        }
        Ok(said)
    }

    fn say(&mut self, text: String) -> Option<Delta> {
        self.text.push_str(&text);
        (!text.is_empty()).then_some(Delta::Text(text))
    }

    fn stopped(&mut self, value: &Value) {
        if let Some(reason) = value.get("stop_reason").and_then(Value::as_str) {
            self.stop_reason = Some(reason.into());
        }
    }

    /// Takes up what was counted. Later counts are sums, so they replace earlier ones; what was read from or
    /// written to the cache was read, too.
    fn usage(&mut self, value: &Value) -> Option<Delta> {
        let usage = value.get("usage")?;
        let inputs = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
        let [plain, written, read] = inputs.map(|name| count(usage, name).unwrap_or_default());
        let input = plain.saturating_add(written).saturating_add(read);
        // Some servers repeat the input as 0 in later events.
        self.usage.input_tokens = self.usage.input_tokens.max(input);
        self.usage.cache_write_tokens = self.usage.cache_write_tokens.max(written);
        self.usage.cache_read_tokens = self.usage.cache_read_tokens.max(read);
        self.usage.output_tokens = count(usage, "output_tokens").unwrap_or(self.usage.output_tokens);
        Some(Delta::Usage(self.usage))
    }
}

impl Block {
    fn kind(&self) -> &str {
        block_kind(&self.value)
    }

    fn cite(&mut self, citation: Option<&Value>) {
        let Some(citation) = citation else { return };
        match self.value.get_mut("citations").and_then(Value::as_array_mut) {
            Some(citations) => citations.push(citation.clone()),
            None => set(&mut self.value, "citations", json!([citation])),
        }
    }

    /// The block as the provider wants to see it again; none for an empty text, which it refuses.
    fn end(mut self) -> Option<Value> {
        match block_kind(&self.value) {
            "text" if self.text.trim().is_empty() => return None,
            "text" => set(&mut self.value, "text", self.text),
            "thinking" => {
                set(&mut self.value, "thinking", self.text);
                set(&mut self.value, "signature", self.signature);
            }
            _ if !self.input.is_empty() => set(&mut self.value, "input", input(&self.input)),
            "tool_use" if !self.value.get("input").is_some_and(Value::is_object) => {
                set(&mut self.value, "input", json!({}))
            }
            _ => {}
        }
        self.value.is_object().then_some(self.value)
    }
}

fn block_kind(value: &Value) -> &str {
    value.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn index(event: &Value) -> u64 {
    event.get("index").and_then(Value::as_u64).unwrap_or(0)
}

fn call(block: &Value) -> Option<ToolCall> {
    let word = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
    (word("type") == "tool_use").then(|| ToolCall {
        id: CallId(word("id").into()),
        name: word("name").into(),
        arguments: block.get("input").map_or_else(|| "{}".into(), Value::to_string),
    })
}

#[cfg(test)]
mod tests;
