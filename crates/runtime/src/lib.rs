//! The session host: Ops in, Events out.
//!
//! It holds one session: its lock, its context, its layer. It runs turns, takes ops from front ends
//! meanwhile, and moves the session's changes to the project and back, each as an effect through the kernel.
//! It knows no terminal, no configuration file and no concrete model; the composition root gives it the
//! parts.
//!
//! Read `host.rs` first, then `changes.rs`.

mod changes;
mod history;
mod host;
mod hunks;
mod pins;
mod threeway;
mod unified;

pub use changes::{Change, Changes, HALF_APPLIED, Merged};
pub use host::{Choose, Host, HostError, Opening, Parts};
pub use hunks::{FileHunks, Hunk};
