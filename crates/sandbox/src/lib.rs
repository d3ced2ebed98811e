//! The walls: where commands run, and where files of a workspace are read and written.
//!
//! A [`Warden`] is this program executed again, before anything else, to make sandboxes for the runtime and
//! to do nothing else. [`Native`] asks it for them: a command ([`Native::exec`]) or the [`worker`]
//! ([`Native::work`]), each in user, mount, pid, net, ipc, uts and cgroup namespaces, on a root of its own,
//! bound by Landlock and seccomp, without a capability. [`Walls`] is the same as an executor of the kernel's
//! permits.
//!
//! The project lies at its own absolute path, under the session's layer: what a command writes stays in the
//! layer. The home and the temporary files are the session's own. What else is seen is a list: programs,
//! chosen files of /etc, parts of toolchains (`plan.rs`, `toolchain.rs`).
//!
//! What this crate refuses to be: a place where something runs unsandboxed, or where less than a decision
//! demands is passed over. The payload's own process reads from the kernel what stands around it, just before
//! it becomes the payload, and the report of that ([`bailey_protocol::Enforced`]) comes with every result.
//!
//! Read `warden/mod.rs` first (who makes whom), then `stage.rs` (the root), `warden/init.rs` and
//! `warden/payload.rs` (the order of the lockdown), `seccomp/table.rs` (what a program may ask of the
//! kernel). `unsafe` lives in `sys` and nowhere else.

#[expect(unsafe_code, reason = "the one module of system calls; see its first lines")]
mod sys;

mod apart;
mod capture;
mod cgroup;
mod charter;
mod clerk;
mod commits;
mod config;
mod confine;
mod executor;
mod extension;
mod facts;
mod frame;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod guest;
mod ids;
mod mask;
mod native;
mod plan;
mod ruleset;
mod running;
mod seccomp;
mod stage;
mod toolchain;
mod tree;
mod warden;
mod wire;
pub mod worker;

pub use cgroup::{Gauge, Memory, settle_group};
pub use config::{Config, Guest, Lease, NOT_FOR_ROOT, Shape, Yard};
pub use confine::{ConfineError, Confined, Confinement};
pub use executor::Walls;
pub use extension::{Employed, Look, Runner};
pub use frame::FRAME_BYTES_MAX;
pub use native::{Native, WorkError};
pub use running::{Piece, Source};
pub use seccomp::{CallError, Calls};
pub use sys::Forbidden;
pub use warden::{Coming, StartError, Warden, can_make_namespaces, read_own, remove, warden_main};
pub use wire::Swapped;
pub use worker::{may_hold_changes, may_hold_commits};
