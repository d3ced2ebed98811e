//! A context as wires want it: turns of the model and of everybody else, strictly alternating.
//!
//! All wires demand that the results of a reply's calls come right behind the reply. Words of a person that
//! came in between are therefore moved behind them, and what answers no open call is told as text.

use crate::{Endpoint, Wire, wire::wire_name};
use bailey_kernel::{Answer, Context, Segment};
use bailey_protocol::{CallId, Image, ImageKind};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The most pictures that one request shows, and the most bytes of them: of more the older ones are only named. Anthropic takes
/// larger ones up to so many.
const IMAGES_MAX: usize = 20;
const SHOWN_BYTES_MAX: usize = 12 << 20;

/// One turn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Turn<'a> {
    /// The model's message as this very model sent it on this wire: what it signed means nothing to another.
    Own(&'a Value),
    /// What another model said, as text and calls.
    Foreign {
        /// The text.
        text: &'a str,
        /// The calls.
        calls: Vec<Call<'a>>,
    },
    /// What the model is told.
    Heard(Heard<'a>),
}

/// A call of another model, with an identifier that any wire takes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call<'a> {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: &'a str,
}

/// What a model is told between two of its replies.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Heard<'a> {
    pub(crate) results: Vec<CallResult<'a>>,
    pub(crate) texts: Vec<Said<'a>>,
}

/// Words, and the pictures that came with them.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Said<'a> {
    pub(crate) text: String,
    pub(crate) images: Vec<&'a Image>,
}

impl From<&str> for Said<'_> {
    fn from(text: &str) -> Self {
        Self { text: text.into(), images: Vec::new() }
    }
}

/// The result of one call of the reply before.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallResult<'a> {
    pub(crate) id: String,
    /// The tool's name as the model wrote it.
    pub(crate) name: String,
    pub(crate) ok: bool,
    pub(crate) text: &'a str,
}

/// The turns of a context, for this endpoint.
pub(crate) fn turns<'a>(context: &'a Context, endpoint: &Endpoint) -> Vec<Turn<'a>> {
    let mut turns = Turns::default();
    let mut too_old = too_old(context);
    for segment in context.segments() {
        match segment {
            Segment::User(message) => {
                let mut text = message.text().to_owned();
                let mut shown = Vec::new();
                for image in message.images() {
                    let is_old = too_old > 0;
                    too_old = too_old.saturating_sub(1);
                    match hidden(endpoint, image, is_old) {
                        None => shown.push(image),
                        Some(why) => text.push_str(&format!(
                            "\n[A picture came with this, which you are not shown: {why}.]"
                        )),
                    }
                }
                turns.said(Said { text, images: shown });
            }
            Segment::Reply(reply) => {
                let same_model = reply.provider() == endpoint.provider
                    && reply.answer().verbatim.get("model").is_none_or(|model| *model == endpoint.model);
                turns.reply(reply.answer(), same_model, endpoint.wire);
            }
            Segment::Note(note) => turns.user(note.text()),
            Segment::Guide(guide) => turns.user(guide.text()),
            Segment::Late(late) => turns.user(late.text()),
            Segment::Observation(seen) => turns.result(seen.call(), seen.tool(), seen.is_ok(), seen.text()),
        }
    }
    turns.end()
}

/// How many pictures of a context, from the oldest on, are over what a request shows.
fn too_old(context: &Context) -> usize {
    let images: Vec<&Image> = context.segments().iter().flat_map(Segment::images).collect();
    let mut left = SHOWN_BYTES_MAX;
    let fits = images.iter().rev().take(IMAGES_MAX).take_while(|image| {
        let rest = left.checked_sub(image.bytes().len());
        left = rest.unwrap_or_default();
        rest.is_some()
    });
    images.len() - fits.count()
}

/// Why a model is not shown a picture.
fn hidden(endpoint: &Endpoint, image: &Image, is_old: bool) -> Option<&'static str> {
    let is_read = match endpoint.wire {
        Wire::Anthropic | Wire::OpenAiChat | Wire::OpenAiResponses => true,
        Wire::Gemini => image.kind() != ImageKind::Gif,
        Wire::Ollama => matches!(image.kind(), ImageKind::Png | ImageKind::Jpeg),
    };
    match (endpoint.takes_images, is_read, is_old) {
        (false, ..) => Some("you take no pictures"),
        (_, false, _) => Some("you take none that is written so"),
        (.., true) => Some("there were too many since"),
        _ => None,
    }
}

/// Collects turns. Its methods take plain values, so that tests need no kernel.
#[derive(Debug, Default)]
pub(crate) struct Turns<'a> {
    done: Vec<Turn<'a>>,
    heard: Heard<'a>,
    /// The calls of the last reply that have no result yet, with the identifiers that they were sent under.
    open: BTreeMap<CallId, String>,
    used: BTreeSet<String>,
}

impl<'a> Turns<'a> {
    pub(crate) fn user(&mut self, text: &str) {
        self.said(text.into());
    }

    pub(crate) fn said(&mut self, said: Said<'a>) {
        // Anthropic refuses blank text blocks.
        if !said.text.trim().is_empty() || !said.images.is_empty() {
            self.heard.texts.push(said);
        }
    }

    pub(crate) fn reply(&mut self, answer: &'a Answer, same_model: bool, wire: Wire) {
        self.flush();
        self.open.clear();
        // A provider's name may come to stand for another wire when the configuration changes.
        let own = same_model && answer.verbatim.get("wire").and_then(Value::as_str) == Some(wire.name());
        let ids: Vec<String> = answer
            .calls
            .iter()
            .map(|call| {
                let id = if own { call.id.0.clone() } else { self.fresh(&call.id) };
                // At once: two identifiers of one reply may be the same as another wire writes them.
                self.used.insert(id.clone());
                id
            })
            .collect();
        self.open.extend(answer.calls.iter().map(|call| call.id.clone()).zip(ids.iter().cloned()));
        if own {
            return self.done.push(Turn::Own(&answer.verbatim));
        }
        let call = |(call, id): (&'a bailey_protocol::ToolCall, String)| Call {
            id,
            name: wire_name(&call.name),
            arguments: &call.arguments,
        };
        let calls: Vec<_> = answer.calls.iter().zip(ids).map(call).collect();
        if !answer.text.trim().is_empty() || !calls.is_empty() {
            self.done.push(Turn::Foreign { text: &answer.text, calls });
        }
    }

    pub(crate) fn result(&mut self, call: &CallId, tool: &str, ok: bool, text: &'a str) {
        match self.open.remove(call) {
            Some(id) => {
                let name = wire_name(tool);
                self.heard.results.push(CallResult { id, name, ok, text });
            }
            None => self.user(&format!("[late result of `{tool}`, call {call}]\n{text}")),
        }
    }

    pub(crate) fn end(mut self) -> Vec<Turn<'a>> {
        self.flush();
        self.done
    }

    fn flush(&mut self) {
        let heard = std::mem::take(&mut self.heard);
        if heard != Heard::default() {
            self.done.push(Turn::Heard(heard));
        }
    }

    /// An identifier that Anthropic takes too: `[A-Za-z0-9_-]+`, unique in the whole conversation.
    fn fresh(&self, call: &CallId) -> String {
        let id = wire_name(&call.0);
        if !self.used.contains(&id) {
            return id;
        }
        let numbered = |n: usize| format!("{id}_{n}");
        (2..).map(numbered).find(|id| !self.used.contains(id)).unwrap_or(id.clone())
    }
}

#[cfg(test)]
mod tests;
