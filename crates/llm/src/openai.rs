//! OpenAI's Chat Completions API (<https://platform.openai.com/docs/api-reference/chat>), read with tolerance
//! for the servers that are only compatible with it.

mod encode;
mod message;

pub(crate) use encode::{THOUGHTS, body, fill, limit_name};
pub(crate) use message::{FAILED, PartialCompletion};
