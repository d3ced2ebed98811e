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

use crate::home::{Home, make_private};
use anyhow::Result;
use std::path::PathBuf;

impl Home {
    /// What belongs to a channel.
    pub(crate) fn channel(&self, name: &str) -> PathBuf {
        self.root.join("channels").join(name)
    }

    /// The same; it is there and private.
    pub(crate) fn make_channel(&self, name: &str) -> Result<PathBuf> {
        make_private(&self.root.join("channels"))?;
        let folder = self.channel(name);
        make_private(&folder)?;
        Ok(folder)
    }

    /// What the process that talks with the platform notes for itself, and nobody else reads.
    pub(crate) fn bridge(&self, name: &str) -> PathBuf {
        self.channel(name).join("bridge")
    }
}
