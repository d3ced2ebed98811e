//! What the tree over the entries proves, for whoever has a root of it.

use crate::{
    Journal, JournalError, chain,
    merkle::{Consistency, Inclusion},
    tree,
};
use bailey_protocol::{Digest, number::Seq};

impl Journal {
    /// The root of the tree over the first `size` entries.
    ///
    /// # Errors
    /// When there are not as many, or the journal cannot be read.
    pub async fn root(&self, size: u64) -> Result<Digest, JournalError> {
        Ok(self.store().read(move |tx| tree::root(tx, size)).await?)
    }

    /// The hash that an entry has in the chain; zero where there is none.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn chained(&self, entry: Seq) -> Result<Digest, JournalError> {
        Ok(self.store().read(move |tx| chain::hash_of(tx, entry.0)).await?)
    }

    /// That an entry is among the first `size`; its place in the tree is one below its number.
    ///
    /// # Errors
    /// As [`Journal::root`].
    pub async fn inclusion(&self, entry: Seq, size: u64) -> Result<Inclusion, JournalError> {
        let place = entry.0.saturating_sub(1);
        Ok(self.store().read(move |tx| tree::inclusion(tx, place, size)).await?)
    }

    /// That the first `new` entries begin with the first `old`.
    ///
    /// # Errors
    /// As [`Journal::root`].
    pub async fn consistency(&self, old: u64, new: u64) -> Result<Consistency, JournalError> {
        Ok(self.store().read(move |tx| tree::consistency(tx, old, new)).await?)
    }
}
