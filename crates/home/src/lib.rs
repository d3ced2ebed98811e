//! Bailey's home: the directory that holds all data of one person's Bailey, and the meaning of its files.
//!
//! [`Home`] finds the home and keeps it private. [`config`] reads its settings and those of a trusted
//! project. [`stores`] reads its secrets, [`identity`] its papers, [`agents`] its named agents, and
//! [`schedules`] its scheduled tasks. [`project`], [`git`], [`person`], [`program`] and [`clock`] read the
//! surroundings: the project's directory, the user's git settings, the user, this program's own files, and
//! the time.
//!
//! The files, by the one who writes them (`home.rs` has their paths):
//!
//! - The owner: `config.toml`, `policy/` (rules), `models.toml` (windows and prices), `profiles/` (lists of
//!   system calls), `SOUL.md`, `USER.md`, `.env` or `secrets.sealed` (keys), `boot.conf`, and
//!   `agents/NAME/settings.toml`. Rules of an organisation lie in `/etc/bailey/policy/` and belong to root.
//! - The agent: `agent.toml`, through an effect of its own. It holds no settings.
//! - Bailey: `IDENTITY.md`, `journal.db` with its key, log and lock files, `archive/`, `backups/`, `trust/`,
//!   `daemon/`, `health.json`, `page/`, `channels/NAME/`, `telemetry/`, `pool/`, and `sessions/ID/` (the
//!   lock, the layer, the session's home and temporary files, or a link to them).
//!
//! A session's process reads settings and keys before it binds itself. Of the owner's files it can then read
//! the rules and the model catalogue only. No agent writes a file of the home by itself.

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
