//! Peers: parties that have tools of their own, and the owner's programs that answer.
//!
//! A *peer* has a name and tools `PEER.TOOL`. It may come and go while a session lives. A call of its tool is
//! an effect ([`bailey_protocol::Action::Tool`]): decided by rules, written down, screened. [`Peers`] is the
//! one executor of these effects, and the source of the tools for each step of a turn. A peer in this process
//! implements [`Peer`]; a *process peer* is a program in the walls, which [`Runner`] runs.
//!
//! The runner runs extensions of the policy, too: programs that judge effects. Both kinds speak over their
//! standard input and output in frames (`frame.rs`) and differ in their words (`speech.rs`). A program that
//! others wrote may have a [`Language`] of its own, which a crate above this one speaks. A program is started
//! by a permit that the kernel gives (`bailey_kernel::program`), is asked one question at a time, and is
//! ended when it breaks the protocol (`desk.rs`).
//!
//! A peer's description of its tools is foreign. Its word on a tool's effect counts only where it is stricter
//! than the owner's, and Bailey asks about a tool of which the owner said nothing. The digest of the
//! description that the model was told is part of the call, and a tool that has changed since is not called
//! (`shelf.rs`).

mod desk;
mod frame;
mod framed;
#[cfg(feature = "fuzz")]
pub mod fuzz;

mod language;
mod peers;
mod runner;
mod shelf;
mod speech;

pub use bailey_sandbox::Streams;
pub use frame::FRAME_BYTES_MAX;
pub use language::{Conversation, Language};
pub use peers::{Peer, Peers};
pub use runner::{Effects, Employed, Look, Runner, ToolsOf, Work};
pub use shelf::{Approved, Described, NAME_BYTES_MAX, Shelf, TOOLS_MAX};
