//! A reply as far as it is there, on whichever wire it comes.

use crate::{Wire, anthropic, decode::not_json, failure::Fault, gemini, ollama, openai, responses};
use bailey_kernel::{Answer, Delta};
use std::collections::BTreeSet;

/// A reply as far as it is there.
#[derive(Debug)]
pub(crate) enum Message {
    Anthropic(anthropic::Message),
    Chat(openai::Message),
    Responses(responses::Message),
    Gemini(gemini::Message),
    Ollama(ollama::Message),
}

/// The same for the message of every wire.
macro_rules! each {
    ($message:expr, $of_wire:ident => $do:expr) => {
        match $message {
            Message::Anthropic($of_wire) => $do,
            Message::Chat($of_wire) => $do,
            Message::Responses($of_wire) => $do,
            Message::Gemini($of_wire) => $do,
            Message::Ollama($of_wire) => $do,
        }
    };
}

impl Message {
    /// An empty one. Servers of Chat Completions have words of their own for an end.
    pub(crate) fn new(wire: Wire, ends: BTreeSet<String>) -> Self {
        match wire {
            Wire::Anthropic => Self::Anthropic(anthropic::Message::default()),
            Wire::OpenAiChat => Self::Chat(openai::Message::of(ends)),
            Wire::OpenAiResponses => Self::Responses(responses::Message::default()),
            Wire::Gemini => Self::Gemini(gemini::Message::default()),
            Wire::Ollama => Self::Ollama(ollama::Message::default()),
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
    pub(crate) fn end(self) -> Result<Answer, Fault> {
        each!(self, message => message.end())
    }
}
