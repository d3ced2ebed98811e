//! Anthropic's Messages API (<https://docs.anthropic.com/en/api/messages>), version 2023-06-01.

mod encode;
mod message;

pub(crate) use encode::body;
pub(crate) use message::PartialMessage;
