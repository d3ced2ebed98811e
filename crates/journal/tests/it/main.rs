//! The journal as its users see it: what it accepts, what it refuses, and what it finds in a file that was
//! tampered with.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests: a panic is how a test fails"
)]

mod archive;
mod back;
mod begin;
mod budget;
mod chain;
mod export;
mod lock;
mod older;
mod projections;
mod proofs;
mod rebuild;
mod remove;
mod secrets;
mod sessions;
mod support;
mod tokens;
