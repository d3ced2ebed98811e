//! Honest small parts for tests: a clock that stands still, a scripted model *server* on a real socket, and
//! an executor whose world is a map in memory.
//!
//! What is here is never part of the product. It refuses to be a box of mocks: the [`ModelServer`] speaks the
//! real wires over real HTTP/1.1, so that codecs and the network door are tested with it and the real binary
//! can be pointed at it; the [`World`] takes permits like any executor, and is no sandbox. [`Bench`] puts a
//! real journal, policy and kernel around them.
//!
//! Read `bench.rs` first.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "parts of tests: a panic is how a test fails")]

mod bench;
mod clock;
mod compile;
mod model;
mod permits;
pub mod telegram;
mod world;

pub use bench::{Bench, Setup, tool_call};
pub use clock::FakeClock;
pub use compile::compiled;
pub use model::{Call, Gate, Message, ModelServer, Reply, Request};
pub use permits::Permits;
pub use world::{Hook, Span, World, output};
