//! Codecs and cassettes: against hostile bytes, against raw servers, and against real servers that others
//! wrote.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod aimock;
mod bench;
mod cassette;
mod chunks;
mod encode;
mod foreign;
mod hostile;
mod llama;
mod server;
mod toolchain;
mod wire;
