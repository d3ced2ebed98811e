//! A session: one conversation of an agent in one project, from its beginning to the end of its changes.
//!
//! `host.rs` holds one session: its lock, its context, its layer. It runs turns, takes the Ops of front
//! ends, sends them Events, and moves the session's changes to the project and back, each as an effect
//! through the kernel. `compose.rs` puts the circle together: it chooses the concrete parts, reads the
//! settings of the home, confines the session and hands the parts to the host. It is here because
//! every command that begins a session uses it.
//!
//! A session's process binds itself (`confinement.rs`) before it hears anything from outside. So `compose.rs`
//! opens the journal's files, the session's lock and a file that is recorded to first, and starts the
//! warden, the notifier and the run of the retention first. A bound process serves one session.
//!
//! Read `compose.rs` first, then `host.rs`, then `changes.rs`.

pub mod agent_file;
mod aside;
mod changes;
pub mod client;
pub mod compose;
pub mod confinement;
#[cfg(feature = "controls")]
pub mod controls;
pub mod durable_state;
pub mod exit;
pub mod extensions;
pub mod fork;
mod history;
mod host;
mod hunks;
pub mod link;
pub mod mcp;
mod messenger;
pub mod notifier;
mod open;
mod options;
pub mod packet;
mod pins;
pub mod place;
pub mod policy_update;
pub mod prewarm;
mod recall;
pub mod retention;
pub mod reveal;
pub mod running;
mod threeway;
mod unified;
pub mod web;
pub mod wire;
pub mod witness;

pub use aside::COMMAND_RESULT;
pub use changes::{Change, Changes, HALF_APPLIED, Merged};
pub use host::{Choose, Host, HostError, Opening, Parts};
pub use hunks::{FileHunks, Hunk};
pub use open::{home_of, journal, sign_stop, standing};
pub use options::TurnOptions;

// The rooms below, under the names by which modules here call them.
use bailey_home::{clock, config, git, home, identity, person, program, project, prompt, stores};
use bailey_terminal::{self as front, print};
