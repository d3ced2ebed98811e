//! A reply as far as it is there, on whichever wire it comes.

use crate::{Wire, anthropic, decode::not_json, failure::Fault, gemini, ollama, openai, responses};
use bailey_kernel::{Completion, Delta};
use std::collections::BTreeSet;

/// The part of a reply that has come so far, in the form of its API.
#[derive(Debug)]
pub(crate) enum PartialReply {
    Anthropic(anthropic::PartialMessage),
    Chat(openai::PartialCompletion),
    Responses(responses::PartialResponse),
    Gemini(gemini::PartialContent),
    Ollama(ollama::PartialChat),
}

/// The same for the message of every wire.
macro_rules! each {
    ($message:expr, $of_wire:ident => $do:expr) => {
        match $message {
            PartialReply::Anthropic($of_wire) => $do,
            PartialReply::Chat($of_wire) => $do,
            PartialReply::Responses($of_wire) => $do,
            PartialReply::Gemini($of_wire) => $do,
            PartialReply::Ollama($of_wire) => $do,
        }
    };
}

impl PartialReply {
    /// An empty one. Servers of Chat Completions have words of their own for an end.
    pub(crate) fn new(wire: Wire, ends: BTreeSet<String>) -> Self {
        match wire {
            Wire::Anthropic => Self::Anthropic(anthropic::PartialMessage::default()),
            Wire::OpenAiChat => Self::Chat(openai::PartialCompletion::of(ends)),
            Wire::OpenAiResponses => Self::Responses(responses::PartialResponse::default()),
            Wire::Gemini => Self::Gemini(gemini::PartialContent::default()),
            Wire::Ollama => Self::Ollama(ollama::PartialChat::default()),
        }
    }

    /// Reads the data of one event, or one line.
    pub(crate) fn event(&mut self, data: &str) -> Result<Vec<Delta>, Fault> {
        each!(self, message => message.event(data))
    }

    /// Reads an answer that was not streamed.
    pub(crate) fn whole(&mut self, json: &[u8]) -> Result<(), Fault> {
        let value = serde_json::from_slice(json).map_err(|error| not_json(&error))?;
        each!(self, message => message.whole(&value))
    }

    /// Whether its wire has said that nothing of it is to follow.
    pub(crate) fn is_whole(&self) -> bool {
        each!(self, message => message.is_whole())
    }

    /// Whether the model has said that it stops: at most counts follow.
    pub(crate) fn has_end(&self) -> bool {
        each!(self, message => message.has_end())
    }

    /// The reply.
    pub(crate) fn end(self) -> Result<Completion, Fault> {
        each!(self, message => message.end())
    }
}
