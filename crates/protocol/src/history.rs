//! What a session added to its project's git history, on its way to the project's own repository.

use crate::MergeState;
use alloc::{string::String, vec::Vec};
use serde::{Deserialize, Serialize};

/// A git reference that moves with a merge. Commits are named by their whole object names, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tip {
    /// The reference's full name, such as `refs/heads/main`.
    pub name: String,
    /// The commit that it names before; none: there is no such reference.
    pub old: Option<String>,
    /// The commit that it names afterwards.
    pub new: String,
    /// The reference that gets the commits where `name` cannot move; none: there is no other way.
    pub aside: Option<String>,
}

/// What a merge did with one reference.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TipResult {
    /// As the merge named it.
    pub name: String,
    /// The reference that was moved; none: none was.
    pub at: Option<String>,
    /// Why it is another one than was named.
    pub why: Option<String>,
    /// What happened.
    pub state: MergeState,
}

/// Commits of a session that the project's repository lacks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Branch {
    /// The session's reference, such as `refs/heads/main`; `HEAD` where it is on no branch.
    pub name: String,
    /// The commit that the project's reference of this name names.
    pub old: Option<String>,
    /// The commit that the session's names.
    pub new: String,
    /// Why the project's reference cannot move there.
    pub aside: Option<String>,
    /// Why its commits cannot leave the session at all.
    pub refused: Option<String>,
    /// The newest first.
    pub commits: Vec<Commit>,
    /// How many there are, listed or not.
    pub count: u32,
}

/// One commit, as far as it is shown. Its words are whoever's who made it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Commit {
    /// The object's name.
    pub id: String,
    /// The author's name.
    pub author: String,
    /// The first line of the message.
    pub subject: String,
    /// Paths that it changed, as git writes them, the first of them.
    pub files: Vec<String>,
}
