//! What git would take for a repository: nothing of the kind leaves a session's layer (attack A53).
//!
//! A repository's configuration and hooks are code that the host runs. Anything named `.git` stays inside,
//! and so does a directory that git would accept as a bare repository.

/// Whether a relative path has a `.git` segment. Case is ignored, since some hosts' file systems do.
pub(super) fn in_git(at: &str) -> bool {
    at.split('/').any(is_git)
}

/// Whether a name is git's own.
pub(super) fn is_git(name: &str) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// The names whose presence together makes git see a repository (its `is_git_directory`).
pub(super) const MARKS: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// Whether a directory is shaped like a repository. Only names count: git accepts links and, through
/// `commondir`, objects that lie elsewhere.
pub(super) fn is_shaped(mut holds: impl FnMut(&str) -> bool) -> bool {
    holds("HEAD") && (holds("commondir") || (holds("objects") && holds("refs")))
}
