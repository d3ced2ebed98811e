//! MCP servers: programs of other parties that speak the Model Context Protocol
//! (<https://modelcontextprotocol.io/specification>) over their standard input and output.
//!
//! A server is a peer (`bailey_peers`): it runs in the walls, its tools are `SERVER.TOOL`, and a call is an
//! effect that rules decide. [`Client`] is the language that it speaks. The protocol's messages and life
//! cycle are those of `rmcp`, in its revisions 2026-07-28 and 2025-11-25; older servers are spoken to in
//! theirs.
//!
//! A server's words are foreign. Each message has a limit ([`MESSAGE_BYTES_MAX`]). Its tools are offered only
//! as the owner agreed to them ([`bailey_peers::Shelf`]), with an effect that [`proposed`] read from the
//! stricter of its hints and its words. It may ask for the roots of the workspace, and is told them where it
//! sees the workspace. It cannot ask the model or the person anything.

mod client;
mod content;
mod effect;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod lines;

pub use client::Client;
pub use effect::proposed;
pub use lines::MESSAGE_BYTES_MAX;
