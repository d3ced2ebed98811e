//! Google's Gemini API (<https://ai.google.dev/api/generate-content>), version v1beta:
//! `streamGenerateContent` as server-sent events.

mod encode;
mod message;

pub(crate) use encode::{body, model_path};
pub(crate) use message::PartialContent;
