//! The walls: where commands run, and where files of a workspace are read and written.
//!
//! A [`Warden`] is this program executed again, before anything else, to make sandboxes for the runtime and
//! to do nothing else. [`Native`] asks it for them: a command ([`Native::exec`]) or the [`worker`]
//! ([`Native::work`]), each in user, mount, pid, net, ipc, uts and cgroup namespaces, on a root of its own,
//! bound by Landlock and seccomp, without a capability. [`Walls`] is the same as an executor of the kernel's
//! permits.
//!
//! The project lies at its own absolute path, under the session's layer: changes of a command stay in the
//! layer. The home and the temporary files are the session's own. The rest of the view is a list: programs,
//! chosen files of /etc, parts of toolchains (`plan.rs`, `toolchain.rs`). Secret-looking files are masked
//! (`mask.rs`); their content in git's history can still be read. Commands of a session that live at once
//! share its network, which is a loopback and nothing else.
//!
//! [`Shape`] says which isolation a session has. `Walled` has every wall. `Copied` is for hosts without
//! namespaces whose owner accepts Landlock and seccomp alone: the session works on a private copy of the
//! project, which the worker brings up to date around each effect (`worker/copy.rs`). `Direct` has no walls
//! and no layer, and only a command line can ask for it.
//!
//! This crate runs nothing unsandboxed unless the owner chose `Direct`, and it accepts no less than a
//! decision demands. The payload's own process asks the kernel about the walls around it, just before it
//! becomes the payload, and the report ([`bailey_protocol::Enforced`]) comes with every result.
//!
//! Read `warden/mod.rs` first (who makes whom), then `stage.rs` (the root), `warden/init.rs` and
//! `warden/payload.rs` (the order of the lockdown), `seccomp/table.rs` (the system calls of a program).
//! `unsafe` lives in `sys` and nowhere else.

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
mod facts;
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
pub use guest::{Parting, Streams, Visit};
pub use native::{Native, WorkError};
pub use running::{OutputStream, Piece};
pub use seccomp::{CallError, Calls};
pub use sys::Forbidden;
pub use warden::{Coming, StartError, Warden, can_make_namespaces, read_own, remove, warden_main};
pub use wire::Swapped;
pub use worker::{may_hold_changes, may_hold_commits};
