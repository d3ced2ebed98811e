//! The errors of the configuration. Each names the mistake, the reason and the place.

use super::environment::VARIABLES;
use bailey_policy::file::Mistake;
use std::{io, path::PathBuf};

/// The reason why Bailey cannot use a configuration.
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
        /// The name as the file writes it.
        name: String,
        /// The directory of the owner's own profiles.
        folder: PathBuf,
    },
    /// The owner wrote a profile with the name of one of Bailey's own.
    #[error(
        "`{own}` is Bailey's own profile, and `{}` would not be used: give that file another name, such as `my-{own}.toml`",
        of_owner.display()
    )]
    NamedProfile {
        /// Bailey's own profile.
        own: String,
        /// The owner's file.
        of_owner: PathBuf,
    },
    /// A variable of the environment has a value that is not valid.
    #[error("the variable {name} is `{value}`: {why}; it is for: {}", purpose(name))]
    Variable {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
        /// The reason why the value is wrong.
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
