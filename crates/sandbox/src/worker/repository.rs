//! What git and its kind would take for a repository: nothing of it leaves a session's layer (attack A53).
//!
//! A repository's configuration and hooks are code that the host runs. Anything named `.git` (or as other
//! version control names its own) stays inside, and so does what git would obey in a directory that it
//! accepts as a bare repository, whoever made it one.

/// Whether a relative path has a segment that is version control's own.
pub(crate) fn in_vcs(at: &str) -> bool {
    at.split('/').any(is_vcs)
}

/// Whether a name is version control's own. Case is ignored, since some hosts' file systems do.
pub(crate) fn is_vcs(name: &str) -> bool {
    [".git", ".hg", ".svn", ".jj"].iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// The names whose presence together makes git see a repository (its `is_git_directory`).
pub(crate) const MARKS: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// Names in a bare repository that make git run programs.
const OBEYED: [&str; 4] = ["config", "config.worktree", "hooks", "info"];

/// Whether a directory is shaped like a repository. Only names count: git accepts links and, through
/// `commondir`, objects that lie elsewhere.
pub(crate) fn is_shaped(mut holds: impl FnMut(&str) -> bool) -> bool {
    holds("HEAD") && (holds("commondir") || (holds("objects") && holds("refs")))
}

/// Whether a name is one of those that make a directory a repository, or that git obeys in one.
pub(crate) fn is_of_repository(name: &str) -> bool {
    MARKS.iter().chain(&OBEYED).any(|own| name.eq_ignore_ascii_case(own))
}
