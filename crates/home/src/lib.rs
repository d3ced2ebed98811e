//! Bailey's home: the directory that holds everything of one person's Bailey, and what its files say.
//!
//! [`Home`] finds it and keeps it private. [`config`] reads its settings and those of a trusted project,
//! [`stores`] its secrets, [`identity`] its papers, [`agents`] its named agents, [`schedules`] what is to be
//! done when. [`project`], [`git`], [`person`], [`program`] and [`clock`] read what lies around it: the
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
