//! Labels: where information came from and who may see it. They are data in the journal, never prose in a
//! prompt. A join takes the worse of each two values.

use crate::Seq;
use alloc::collections::BTreeSet;
use serde::{Deserialize, Serialize};

/// How far a source is trusted to steer the agent. Ordered from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Integrity {
    /// The owner's own configuration and instructions.
    Owner,
    /// A message of an authenticated person.
    User,
    /// The content of a workspace that the owner opened: data, never instruction.
    Workspace,
    /// Fetched or unknown.
    #[default]
    External,
}

/// Who may see information. Ordered from the least to the most confidential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Secrecy {
    /// Anybody.
    #[default]
    Public,
    /// Everybody who may see the workspace.
    Workspace,
    /// The user alone.
    Private,
    /// Only the door that needs it.
    Secret,
}

/// The labels of one value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Labels {
    /// The worst integrity among its sources.
    pub integrity: Integrity,
    /// The highest secrecy among its sources.
    pub secrecy: Secrecy,
    /// The entries that brought it in. An entry also stands for all entries that its own labels name, so
    /// those are not repeated: a reply stands for all that its model saw.
    pub sources: BTreeSet<Seq>,
}

impl Labels {
    /// Labels without a source yet.
    #[must_use]
    pub fn new(integrity: Integrity, secrecy: Secrecy) -> Self {
        Self { integrity, secrecy, sources: BTreeSet::new() }
    }

    /// The least upper bound: the worse integrity, the higher secrecy, all sources.
    #[must_use]
    pub fn join(mut self, other: &Self) -> Self {
        self.integrity = self.integrity.max(other.integrity);
        self.secrecy = self.secrecy.max(other.secrecy);
        self.sources.extend(&other.sources);
        self
    }

    /// The join with an entry that was made from all these sources and has these `labels`. The join leaves
    /// out the sources that the entry itself names. Otherwise each entry of a long session would name all
    /// entries before it.
    #[must_use]
    pub fn into_entry(mut self, entry: Seq, labels: &Self) -> Self {
        self.integrity = self.integrity.max(labels.integrity);
        self.secrecy = self.secrecy.max(labels.secrecy);
        self.sources.retain(|source| !labels.sources.contains(source));
        self.sources.insert(entry);
        self
    }

    /// The same labels with one more source.
    #[must_use]
    pub fn from_entry(mut self, seq: Seq) -> Self {
        self.sources.insert(seq);
        self
    }
}
