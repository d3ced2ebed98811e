//! Bailey's home: the directory that holds all data of one person's Bailey, and the meaning of its files.
//!
//! [`Home`] finds the home and keeps it private. [`config`] reads its settings and those of a trusted
//! project. [`stores`] reads its secrets, [`identity`] its papers, [`agents`] its named agents, and
//! [`schedules`] its scheduled tasks. [`project`], [`git`], [`person`], [`program`] and [`clock`] read the
//! surroundings: the project's directory, the user's git settings, the user, this program's own files, and
//! the time.
//!
//! A process reads all of this before it binds itself, or the owner's own commands write it. No agent writes
//! any of it.

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
