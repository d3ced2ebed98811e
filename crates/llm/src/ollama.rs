//! Ollama's own API (<https://github.com/ollama/ollama/blob/main/docs/api.md>): `/api/chat`, a JSON object a
//! line.

mod encode;
mod message;

pub(crate) use encode::body;
pub(crate) use message::PartialChat;
