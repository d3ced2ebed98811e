//! OpenAI's Responses API (<https://platform.openai.com/docs/api-reference/responses>), without anything kept
//! on the server's side.

mod encode;
mod message;

pub(crate) use encode::body;
pub(crate) use message::PartialResponse;
