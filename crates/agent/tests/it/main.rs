//! Turns against a real kernel, the built-in tools, a world in memory and a model server on a real socket.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests: a panic is how a test fails"
)]

mod background;
mod context;
mod delegates;
mod fallback;
mod guides;
mod parallel;
mod pictures;
mod questions;
mod restore;
mod retry;
mod spending;
mod strict;
mod support;
mod turns;
