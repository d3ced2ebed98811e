//! The chat channels of a home, as the owner sees them: who may speak there, and which session each
//! conversation is.
//!
//! Each channel keeps its files in a folder of its own, `channels/NAME`. The process that talks with the
//! platform reaches one file of it, its own notes. The files handled here belong to the daemon and the owner,
//! so that an attacker who takes over that process lets no person in.

mod people;
mod sessions;

pub(crate) use people::People;
pub(crate) use sessions::Sessions;
