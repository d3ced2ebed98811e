//! Why the worker refuses: each message is shown to people and to the model.

use rustix::io::Errno;

/// A refusal.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The kernel refused a system call.
    #[error("cannot {doing} `{path}`: {}", plain(*source))]
    System { doing: &'static str, path: String, source: Errno },
    /// What stands there is not what the action needs.
    #[error("`{path}` {what}")]
    Path { path: String, what: String },
    /// A pattern or a glob that does not parse or is too large.
    #[error("the {what} is not usable: {why}")]
    Pattern { what: &'static str, why: String },
    /// A kind of action that is not for files.
    #[error("`{kind}` is not an action on files")]
    Unfit { kind: &'static str },
    /// A request that contradicts itself or the backup folder.
    #[error("{0}")]
    Request(String),
}

impl Error {
    /// A refusal of `path` because of `what`, which continues the sentence.
    pub(super) fn path(path: &str, what: impl Into<String>) -> Self {
        Self::Path { path: path.into(), what: what.into() }
    }

    /// For `map_err`: the system's answer to `doing` something with `path`.
    pub(super) fn system(doing: &'static str, path: &str) -> impl FnOnce(Errno) -> Self {
        move |source| Self::System { doing, path: path.into(), source }
    }
}

/// The errors that people meet, in words that say what to do; the rest as the system puts it.
pub(super) fn plain(errno: Errno) -> String {
    match errno {
        Errno::NOENT => "nothing is there".into(),
        Errno::LOOP => "a symbolic link stands in its way".into(),
        Errno::NOTDIR => "a part of its path is not a directory".into(),
        Errno::ACCESS => "permission denied".into(),
        Errno::XDEV => "something is mounted there, or the file system does not move it".into(),
        Errno::NAMETOOLONG => "its path is too long".into(),
        Errno::OVERFLOW => {
            "it, or its directory, belongs to a group that nobody inside the walls is in".into()
        }
        other => other.to_string(),
    }
}

/// An error of `std::io` as an error number; reads and writes on descriptors have no other kind.
pub(super) fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
