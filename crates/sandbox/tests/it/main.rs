//! Behaviour of the sandbox.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test's helpers fail as its body does"
)]

mod approved;
mod carried;
mod copied;
mod direct;
mod extensions;
mod house;
mod inside;
mod life;
mod limits;
mod masks;
mod sockets;
mod tools;
mod walls;
mod warm;
mod worker;
mod workspace;
