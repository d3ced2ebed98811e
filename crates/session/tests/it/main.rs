//! A session from its opening to its end, with a world in memory and a model server on a real socket.
#![expect(clippy::unwrap_used, reason = "helpers of tests: a panic is how a test fails")]

mod merges;
mod sessions;
mod support;
