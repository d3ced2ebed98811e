//! Bailey's home: the directory that holds everything of one person's Bailey, and the meaning of its files.
//!
//! [`Home`] finds it and keeps it private. [`config`] reads its settings and those of a trusted project,
//! [`stores`] its secrets, [`identity`] its papers, [`agents`] its named agents, [`schedules`] its
//! timed tasks. [`project`], [`git`], [`person`], [`program`] and [`clock`] read its surroundings: the
//! project's directory, who sits here, this program's own files, the time.
//!
//! Everything here is read before a process binds itself, or written by the owner's own commands. No agent
//! writes any of it.

pub mod agents;
pub mod clock;
pub mod config;
pub mod git;
pub mod home;
pub mod identity;
pub mod person;
pub mod program;
pub mod project;
pub mod prompt;
pub mod schedules;
pub mod stores;
pub mod trust;

pub use home::Home;
