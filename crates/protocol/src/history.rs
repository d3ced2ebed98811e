//! The commits that a session added to its project's git history, on their way to the project's own
//! repository.

use crate::MergeState;
use alloc::{string::String, vec::Vec};
use serde::{Deserialize, Serialize};

/// A git reference that moves with a merge. Commits are named by their whole object names, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tip {
    /// The reference's full name, such as `refs/heads/main`.
    pub name: String,
    /// The commit that it names before; `None` when there is no such reference.
    pub old: Option<String>,
    /// The commit that it names afterwards.
    pub new: String,
    /// The reference that gets the commits when `name` cannot move; `None` when there is no other way.
    pub aside: Option<String>,
}

/// The result of a merge for one reference.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TipResult {
    /// The reference's name in the merge.
    pub name: String,
    /// The reference that was moved; `None` when no reference was moved.
    pub at: Option<String>,
    /// Why it is another reference than the named one.
    pub why: Option<String>,
    /// The result.
    pub state: MergeState,
}

/// Commits of a session that the project's repository lacks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Branch {
    /// The session's reference, such as `refs/heads/main`; `HEAD` when the session is on no branch.
    pub name: String,
    /// The commit of the project's reference with this name.
    pub old: Option<String>,
    /// The commit of the session's reference.
    pub new: String,
    /// Why the project's reference cannot move there.
    pub aside: Option<String>,
    /// Why its commits cannot leave the session at all.
    pub refused: Option<String>,
    /// The commits, the newest first.
    pub commits: Vec<Commit>,
    /// The number of all commits, listed or not.
    pub count: u32,
}

/// One commit, as far as it is shown. Its words come from the maker of the commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Commit {
    /// The object's name.
    pub id: String,
    /// The author's name.
    pub author: String,
    /// The first line of the message.
    pub subject: String,
    /// The first of the paths that it changed, as git writes them.
    pub files: Vec<String>,
}
