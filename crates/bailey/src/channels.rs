//! The chat channels of a home, as the owner sees them: who may speak there, and which session each
//! conversation is.
//!
//! What belongs to a channel lies in a folder of its own, `channels/NAME`. The process that talks with the
//! platform reaches one file of it, its own notes; these here are the daemon's and the owner's, so that
//! nobody who takes that process over lets anybody in.

mod people;
mod sessions;

pub(crate) use people::People;
pub(crate) use sessions::Sessions;
