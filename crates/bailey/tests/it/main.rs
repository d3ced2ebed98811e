//! Whole-product scenarios: the real binary, real SQLite, the real walls, a scripted model on a real socket.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails, and an index into JSON that is not there is null"
)]

mod attacks;
mod house;
mod review;
mod run;
mod stage;
mod tree;
mod workspace;
mod cards;
mod terminal;
mod models;
mod secrets;
