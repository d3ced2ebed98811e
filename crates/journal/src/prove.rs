//! Making proofs: what the tree over the entries shows, under a checkpoint that covers all of them.

use crate::{
    CheckpointLine, Journal, JournalError, chain,
    checkpoint::{Checkpoint, PublicKey},
    merkle::{Consistency, Inclusion},
    proof::{Proof, ProvenEntry, ProvenPayload},
    tree,
};
use bailey_protocol::{Digest, number::Seq};
use bailey_store::{OptionalExtension as _, StoreError, Tx, params};

impl Journal {
    /// Signs what is not signed yet, and proves that an entry is in what was signed; with its payload where
    /// that is wanted and still there. Whoever checks it needs a key of the line: its first, or where the
    /// proof shall be shorter, `from`.
    ///
    /// # Errors
    /// [`JournalError::Absent`] when there is no such entry, [`JournalError::OtherLine`] for a foreign key;
    /// others when it cannot be signed or read.
    pub async fn prove(
        &self,
        entry: Seq,
        payload: bool,
        from: Option<PublicKey>,
    ) -> Result<Proof, JournalError> {
        let (line, entries) = self.signed_line(from).await?;
        let archive = self.store().read(move |tx| archive_of(tx, entry.0)).await?;
        let proven = match archive {
            None => self.store().read(move |tx| proven(tx, entry.0, payload)).await?,
            Some(archive) => Some(self.out_of_archive(entry.0, archive).await?.with_payload(payload)),
        };
        let proven = proven.filter(|_| entry.0 <= entries).ok_or(JournalError::Absent(entry.0))?;
        Ok(Proof::of_entry(proven, self.inclusion(entry, entries).await?, line.checkpoints))
    }

    /// Signs what is not signed yet, and proves that the journal goes on from its checkpoint of this epoch.
    ///
    /// # Errors
    /// [`JournalError::NoCheckpoint`] when there is none, or the newest is the one; others as
    /// [`Journal::prove`].
    pub async fn prove_growth(&self, since: u64, from: Option<PublicKey>) -> Result<Proof, JournalError> {
        let (line, entries) = self.signed_line(from).await?;
        let mut stated = line.checkpoints.iter().filter_map(|checkpoint| checkpoint.statement().ok());
        let older = stated.clone().find(|says| says.epoch == since);
        let older = older.ok_or(JournalError::NoCheckpoint(since))?;
        if stated.next_back().is_some_and(|newest| newest.epoch == since) {
            return Err(JournalError::NoCheckpoint(since));
        }
        let path = self.consistency(older.entries, entries).await?;
        Ok(Proof::of_growth(since, path, line.checkpoints))
    }

    /// The line up to a checkpoint over all entries, from a key of it on; and how many entries that is over.
    async fn signed_line(&self, from: Option<PublicKey>) -> Result<(CheckpointLine, u64), JournalError> {
        let newest = self.checkpoint().await?;
        let mut line = self.line().await?.ok_or(JournalError::NoCheckpoint(0))?;
        if let Some(key) = from.filter(|key| *key != line.first) {
            let names = |says: &Checkpoint| says.statement().is_ok_and(|says| says.next == key);
            let at = line.checkpoints.iter().position(names).ok_or(JournalError::OtherLine(key))?;
            line.checkpoints.drain(..=at);
        }
        // Another process may have gone on meanwhile.
        if let Some(at) = line.checkpoints.iter().position(|checkpoint| *checkpoint == newest) {
            line.checkpoints.truncate(at + 1);
        }
        let entries = newest.statement().map(|says| says.entries).unwrap_or_default();
        Ok((line, entries))
    }

    /// The root of the tree over the first `size` entries.
    ///
    /// # Errors
    /// When there are not as many, or the journal cannot be read.
    pub async fn root(&self, size: u64) -> Result<Digest, JournalError> {
        Ok(self.store().read(move |tx| tree::root(tx, size)).await?)
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

    /// The hash that an entry has in the chain; zero where there is none.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn chained(&self, entry: Seq) -> Result<Digest, JournalError> {
        Ok(self.store().read(move |tx| chain::hash_of(tx, entry.0)).await?)
    }
}

/// The entry that names the archive that an entry is in; none where it is here.
fn archive_of(tx: &Tx<'_>, number: u64) -> Result<Option<u64>, StoreError> {
    let read = tx.query_row("SELECT archive FROM entry WHERE seq = ?1", params![number], |row| row.get(0));
    Ok(read.optional()?.flatten())
}

/// An entry that is here, as its chain has it.
pub(crate) fn proven(tx: &Tx<'_>, number: u64, payload: bool) -> Result<Option<ProvenEntry>, StoreError> {
    let sql = "SELECT body, salt, bytes FROM entry LEFT JOIN payload USING (seq) WHERE seq = ?1";
    let row = tx
        .query_row(sql, params![number], |row| {
            let beside = (row.get::<_, Option<Vec<u8>>>(1)?, row.get::<_, Option<Vec<u8>>>(2)?);
            Ok((row.get::<_, Vec<u8>>(0)?, beside))
        })
        .optional()?;
    let Some((body, beside)) = row else { return Ok(None) };
    let body = String::from_utf8(body).map_err(|_| StoreError::custom("an entry is no text"))?;
    let previous = chain::hash_of(tx, number.saturating_sub(1))?;
    let payload = match beside {
        (Some(salt), Some(bytes)) if payload => Some(ProvenPayload::new(&salt, bytes)),
        _ => None,
    };
    Ok(Some(ProvenEntry { number, previous, body, payload }))
}
