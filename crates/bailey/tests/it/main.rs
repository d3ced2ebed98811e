//! Whole-product scenarios: the real binary, real SQLite, the real walls, a scripted model on a real socket.

#![expect(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

mod run;
mod stage;
mod tree;
mod workspace;
