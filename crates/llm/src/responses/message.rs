//! A response, put together from its events.

use crate::{
    Wire,
    decode::not_json,
    failure::{Complaint, Fault},
    wire::{count, list, made_id, set, word},
};
use bailey_kernel::{Completion, Delta, StopReason};
use bailey_protocol::{CallId, ToolCall, Usage};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The most output items that one response may have.
const ITEMS_MAX: usize = 4096;

/// The part of a response that has come so far.
#[derive(Debug, Default)]
pub(crate) struct PartialResponse {
    id: String,
    items: BTreeMap<u64, Item>,
    /// All text so far, a refusal's too: exactly what was streamed.
    text: String,
    /// The item that spoke last.
    speaker: Option<u64>,
    refused: bool,
    ended: bool,
    incomplete: Option<String>,
    usage: Usage,
}

/// One output item: what the provider says it is, and what its pieces added.
#[derive(Debug, Default)]
struct Item {
    value: Value,
    text: String,
    arguments: String,
    done: bool,
}

impl PartialResponse {
    /// Reads the data of one event.
    pub(crate) fn event(&mut self, data: &str) -> Result<Vec<Delta>, Fault> {
        if data.trim() == "[DONE]" {
            return Ok(Vec::new());
        }
        let event: Value = serde_json::from_str(data).map_err(|error| not_json(&error))?;
        let part = |name: &str| event.get(name).unwrap_or(&Value::Null);
        let index = count(&event, "output_index").unwrap_or_default();
        match word(&event, "type") {
            "response.output_item.added" => self.item(index)?.value = part("item").clone(),
            "response.output_item.done" => return Ok(self.done(index, part("item"))?.into_iter().collect()),
            "response.output_text.delta" => {
                return Ok(self.say(index, word(&event, "delta"))?.into_iter().collect());
            }
            "response.refusal.delta" => {
                self.refused = true;
                return Ok(self.say(index, word(&event, "delta"))?.into_iter().collect());
            }
            "response.function_call_arguments.delta" => {
                self.item(index)?.arguments.push_str(word(&event, "delta"));
            }
            "response.function_call_arguments.done" => {
                self.item(index)?.arguments = word(&event, "arguments").into();
            }
            "response.completed" | "response.incomplete" => return self.finish(part("response")),
            "response.failed" => {
                return Err(Fault::Reported(Complaint::of(part("response")).unwrap_or_default()));
            }
            "error" => return Err(Fault::Reported(Complaint::of(&event).unwrap_or_default())),
            // What repeats the pieces, tells of thoughts, or comes in later versions.
            _ => {}
        }
        Ok(Vec::new())
    }

    /// Reads an answer that was not streamed.
    pub(crate) fn whole(&mut self, response: &Value) -> Result<(), Fault> {
        let complaint =
            response.get("error").filter(|error| !error.is_null()).and_then(|_| Complaint::of(response));
        match (complaint, response.get("output")) {
            (Some(complaint), _) => Err(Fault::Reported(complaint)),
            (None, Some(Value::Array(_))) => self.finish(response).map(drop),
            (None, _) => Err(Fault::Malformed("it has no `output`".into())),
        }
    }

    /// Whether the last event has come.
    pub(crate) fn is_whole(&self) -> bool {
        self.ended
    }

    /// Whether the model has said that it stops.
    pub(crate) fn has_end(&self) -> bool {
        self.ended
    }

    /// The reply.
    pub(crate) fn end(self) -> Result<Completion, Fault> {
        if !self.ended {
            return Err(Fault::Cut("no `response.completed` came"));
        }
        let items: Vec<Value> = self.items.into_values().filter_map(Item::end).collect();
        let functions = items.iter().filter(|item| word(item, "type") == "function_call");
        let calls: Vec<ToolCall> =
            functions.enumerate().map(|(place, item)| call(&self.id, place, item)).collect();
        let stop = match self.incomplete.as_deref() {
            Some("content_filter") => StopReason::Refused,
            Some("max_output_tokens" | "max_tokens" | "") => StopReason::Length,
            Some(reason) => return Err(Fault::Ended(reason.into())),
            None if self.refused => StopReason::Refused,
            None if calls.is_empty() => StopReason::Answered,
            None => StopReason::Calls,
        };
        let verbatim = json!({ "wire": Wire::OpenAiResponses.name(), "items": items });
        Ok(Completion { text: self.text, calls, stop, usage: self.usage, cost: None, verbatim })
    }

    fn item(&mut self, index: u64) -> Result<&mut Item, Fault> {
        if self.items.len() >= ITEMS_MAX && !self.items.contains_key(&index) {
            return Err(Fault::TooLarge("more than 4,096 items"));
        }
        Ok(self.items.entry(index).or_default())
    }

    /// An item is there as a whole; text that did not come in pieces is said now.
    fn done(&mut self, index: u64, value: &Value) -> Result<Option<Delta>, Fault> {
        let item = self.item(index)?;
        let silent = item.text.is_empty();
        item.value = value.clone();
        item.done = true;
        if word(value, "type") != "message" || !silent {
            return Ok(None);
        }
        let part =
            |name: &'static str| list(value, "content").map(move |part| word(part, name)).collect::<String>();
        let refusal = part("refusal");
        self.refused |= !refusal.is_empty();
        self.say(index, &(part("text") + &refusal))
    }

    fn say(&mut self, index: u64, piece: &str) -> Result<Option<Delta>, Fault> {
        if piece.is_empty() {
            return Ok(None);
        }
        self.item(index)?.text.push_str(piece);
        // Two messages are two paragraphs.
        let other = self.speaker.replace(index).is_some_and(|speaker| speaker != index);
        let said = format!("{}{piece}", if other { "\n\n" } else { "" });
        self.text.push_str(&said);
        Ok(Some(Delta::Text(said)))
    }

    /// The response is over, and as the provider keeps it.
    fn finish(&mut self, response: &Value) -> Result<Vec<Delta>, Fault> {
        self.ended = true;
        self.id = word(response, "id").into();
        let why = response
            .get("incomplete_details")
            .filter(|why| why.is_object())
            .map(|why| word(why, "reason").to_owned());
        self.incomplete = why.or_else(|| (word(response, "status") == "incomplete").then(String::new));
        let mut deltas = Vec::new();
        if self.items.is_empty() {
            for (index, item) in (0..).zip(list(response, "output")) {
                deltas.extend(self.done(index, item)?);
            }
        }
        deltas.extend(self.usage(response));
        Ok(deltas)
    }

    fn usage(&mut self, response: &Value) -> Option<Delta> {
        let counted = response.get("usage").filter(|counted| counted.is_object())?;
        let detail = |name| counted.get("input_tokens_details").and_then(|details| count(details, name));
        self.usage.input_tokens = count(counted, "input_tokens").unwrap_or_default();
        self.usage.output_tokens = count(counted, "output_tokens").unwrap_or_default();
        self.usage.cache_read_tokens = detail("cached_tokens").unwrap_or_default();
        self.usage.cache_write_tokens = detail("cache_write_tokens").unwrap_or_default();
        Some(Delta::Usage(self.usage))
    }
}

impl Item {
    /// The item as the provider wants to see it again. One that never ended is made of its pieces.
    fn end(mut self) -> Option<Value> {
        match word(&self.value, "type") {
            _ if self.done => {}
            "message" => {
                let content = json!([{ "type": "output_text", "text": self.text, "annotations": [] }]);
                set(&mut self.value, "content", content);
            }
            "function_call" if !self.arguments.is_empty() => {
                set(&mut self.value, "arguments", self.arguments)
            }
            _ => {}
        }
        self.value.is_object().then_some(self.value)
    }
}

fn call(reply: &str, place: usize, item: &Value) -> ToolCall {
    let (id, name) = (word(item, "call_id"), word(item, "name"));
    let arguments = match word(item, "arguments") {
        "" => "{}",
        arguments => arguments,
    };
    let id = if id.is_empty() { made_id(reply, place, name, arguments) } else { id.into() };
    ToolCall { id: CallId(id), name: name.into(), arguments: arguments.into() }
}

#[cfg(test)]
mod tests;
