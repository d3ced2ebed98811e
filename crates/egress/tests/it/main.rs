//! The network door against real sockets on loopback, reached through a real kernel and journal.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod bench;
mod fetch;
mod limits;
mod refusals;
mod secrets;
mod server;
mod tls;
mod uplink;
