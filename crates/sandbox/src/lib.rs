//! The walls.

#[expect(unsafe_code, reason = "the one module of system calls; see its first lines")]
mod sys;

mod capture;
mod cgroup;
mod config;
mod executor;
mod facts;
mod ids;
mod mask;
mod native;
mod plan;
mod ruleset;
mod seccomp;
mod stage;
mod toolchain;
mod tree;
mod warden;
mod wire;
pub mod worker;

pub use config::{Config, Yard};
pub use executor::Walls;
pub use native::{Native, Piece, Source, WorkError};
pub use warden::{StartError, Warden, warden_main};
