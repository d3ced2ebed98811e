//! What can be wrong with the configuration: each says what, why and where.

use super::environment::VARIABLES;
use bailey_policy::file::Mistake;
use std::{io, path::PathBuf};

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A mistake at one place of a file.
    #[error(transparent)]
    Mistake(Box<Mistake>),
    /// A file is too long to be a configuration.
    #[error("`{}` is {bytes} bytes long: a configuration has at most 1 MiB", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// A file cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// No profile of system calls has this name.
    #[error(
        "there is no profile `{name}`: strict (basic), standard (advanced) and standard-net are there, and your own as `{}`",
        folder.join("NAME.toml").display()
    )]
    NoProfile {
        /// As it was written.
        name: String,
        /// Where the owner's own ones lie.
        folder: PathBuf,
    },
    /// The owner wrote a profile of a named one's name.
    #[error(
        "`{own}` is Bailey's own profile, and `{}` would not be used: give that file another name, such as `my-{own}.toml`",
        of_owner.display()
    )]
    NamedProfile {
        /// Bailey's own.
        own: String,
        /// The owner's.
        of_owner: PathBuf,
    },
    /// A variable of the environment cannot be what it says.
    #[error("the variable {name} is `{value}`: {why}; it is for: {}", purpose(name))]
    Variable {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        why: String,
    },
}

impl From<Mistake> for ConfigError {
    fn from(mistake: Mistake) -> Self {
        Self::Mistake(Box::new(mistake))
    }
}

fn purpose(name: &str) -> &'static str {
    VARIABLES.iter().find(|(known, _)| *known == name).map(|(_, what)| *what).unwrap_or_default()
}
