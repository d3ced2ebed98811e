//! Conversations: `bailey chat` and `bailey run`, and the processes beneath them.
//!
//! `run.rs` is one task in one process, `chat.rs` a conversation. Beneath the daemon the server of
//! `chat/server.rs` owns the session, and `chat/remote.rs` is its client. At the end of a task `pick.rs` and
//! `auto_apply.rs` move its changes to the project.
//!
//! Read `run.rs` first, then `chat.rs`.

mod auto_apply;
pub mod chat;
pub mod pick;
pub mod run;

// The rooms below, under the names by which modules here call them.
use bailey_home::{clock, config, home, identity, program, project, prompt, schedules};
#[cfg(feature = "controls")]
use bailey_session::controls;
use bailey_session::{
    Change, Changes, FileHunks, Host, HostError, Hunk, Merged, Opening, TurnOptions, client, compose,
    confinement, exit, fork, home_of, journal, place, prewarm, standing, wire,
};
use bailey_terminal::{self as front, print};
