//! Codecs and cassettes: against hostile bytes, against raw servers, and against a real server of both wires.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod aimock;
mod bench;
mod cassette;
mod chunks;
mod encode;
mod hostile;
mod server;
mod toolchain;
mod wire;
