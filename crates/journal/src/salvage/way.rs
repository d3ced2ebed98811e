//! The longest row of entries from genesis on in which each fits the one before, whichever source has it.

use super::source::{EntryRow, Source};
use crate::{
    chain::{self, Broken, ChainWalk, Link},
    checkpoint::PublicKey,
    fact::{Fact, Stored},
    tree,
};
use bailey_protocol::{Digest, SessionId};
use bailey_store::{RowAddress, StoreError, Tx, params};
use std::collections::BTreeSet;

/// The longest chain of entries: for each entry, its row and its source.
pub(super) struct LongestChain {
    picked: Vec<Pick>,
    walk: ChainWalk,
    /// The hash of genesis.
    pub(super) journal: Digest,
    /// Keys that entries name as the first of a line.
    pub(super) begun: Vec<PublicKey>,
}

struct Pick {
    source: usize,
    entry: RowAddress,
    payload: Option<(usize, RowAddress)>,
    session: Option<SessionId>,
}

/// A row of the new journal.
pub(super) struct JournalRow {
    link: Link,
    archive: Option<u64>,
}

impl LongestChain {
    /// Goes as far as entries fit, and no further than `limit`. An entry that left for an archive counts as
    /// long as the entry that names the archive is on the way, too.
    pub(super) fn along(sources: &[Source], limit: u64) -> Self {
        let mut archives_max = u64::MAX;
        loop {
            let (way, named) = Self::with_archives(sources, limit, archives_max);
            if named.is_none_or(|named| named <= way.entries()) {
                return way;
            }
            archives_max = way.entries();
        }
    }

    /// The way, and the newest archive that an entry on it is said to be in.
    fn with_archives(sources: &[Source], limit: u64, archives_max: u64) -> (Self, Option<u64>) {
        let walk = ChainWalk::after(0, Digest([0; 32]));
        let mut way = Self { picked: Vec::new(), walk, journal: Digest([0; 32]), begun: Vec::new() };
        let mut named = None;
        while way.entries() < limit {
            let Some(archive) = way.step(sources, archives_max) else { break };
            named = named.max(archive);
        }
        (way, named)
    }

    /// Takes the next entry; the archive that it is in, where it is in one.
    fn step(&mut self, sources: &[Source], archives_max: u64) -> Option<Option<u64>> {
        let number = self.entries() + 1;
        let found = |(place, source): (usize, &Source)| {
            let rows = source.entries(number).map(|row| (row, source.entry(number, row)));
            rows.filter_map(|(row, found)| Some((place, row, found?))).collect::<Vec<_>>()
        };
        let all: Vec<(usize, RowAddress, EntryRow)> = sources.iter().enumerate().flat_map(found).collect();
        let previous = self.walk.previous;
        let fits = |found: &EntryRow| {
            found.archive.is_none() && chain::link(&previous, &found.link.body).0 == *found.link.hash
        };
        let hash = all.iter().find(|(_, _, found)| fits(found)).map(|(_, _, found)| found.link.hash.clone());
        for (source, entry, found) in &all {
            let Some(archive) = found.archive.filter(|archive| *archive <= archives_max) else { continue };
            // Where another source still has the entry itself, that says which hash is right.
            if hash.as_ref().is_none_or(|hash| *hash == found.link.hash)
                && self.walk.pass(&found.link, archive).is_ok()
            {
                self.take(Pick { source: *source, entry: *entry, payload: None, session: None });
                return Some(Some(archive));
            }
        }
        for (source, entry, mut found) in all.into_iter().filter(|(_, _, found)| fits(found)) {
            let Ok(stored) = serde_json::from_slice::<Stored>(&found.link.body) else { continue };
            let payload = payload_of(sources, &stored);
            let at = payload.as_ref().map(|(source, place, ..)| (*source, *place));
            if let Some((_, _, salt, bytes)) = payload {
                (found.link.salt, found.link.payload) = (Some(salt), Some(bytes));
            }
            let Ok(fact) = self.walk.step(&found.link) else { continue };
            if let Fact::SigningBegun { key } = fact {
                self.begun.push(key);
            }
            self.take(Pick { source, entry, payload: at, session: stored.session });
            return Some(None);
        }
        None
    }

    /// The error of the next entry, where it fits and is of a newer program: to go on without it would cut
    /// off what is whole.
    pub(super) fn newer(&self, sources: &[Source]) -> Option<Broken> {
        let number = self.entries() + 1;
        let rows = sources.iter().flat_map(|source| source.entries(number).map(move |row| (source, row)));
        let bodies = rows.filter_map(|(source, row)| Some(source.entry(number, row)?.link));
        let fits = |link: &Link| chain::link(&self.walk.previous, &link.body).0 == *link.hash;
        bodies.filter(fits).find_map(|link| {
            let why = serde_json::from_slice::<Stored>(&link.body).err()?;
            Some(chain::unreadable(number, &link.body, &why)).filter(Broken::is_newer)
        })
    }

    fn take(&mut self, pick: Pick) {
        if self.picked.is_empty() {
            self.journal = self.walk.previous;
        }
        self.picked.push(pick);
    }

    /// How many entries there are on it.
    pub(super) fn entries(&self) -> u64 {
        self.picked.len() as u64
    }

    /// The entries whose payloads no source has, though nobody removed them, in order.
    pub(super) fn lost(&self) -> impl Iterator<Item = u64> {
        let all: BTreeSet<u64> = self.walk.missing.values().flatten().copied().collect();
        all.into_iter()
    }

    /// Whether anything is taken from this source.
    pub(super) fn uses(&self, source: usize) -> bool {
        let of =
            |pick: &Pick| pick.source == source || pick.payload.is_some_and(|(other, _)| other == source);
        self.picked.iter().any(of)
    }

    /// The rows of the new journal, in order; none in the place of one that cannot be read any more.
    pub(super) fn rows<'a>(&'a self, sources: &'a [Source]) -> impl Iterator<Item = Option<JournalRow>> {
        (1..).zip(&self.picked).map(|(number, pick)| self.row(sources, number, pick))
    }

    fn row(&self, sources: &[Source], number: u64, pick: &Pick) -> Option<JournalRow> {
        let EntryRow { mut link, archive } = sources.get(pick.source)?.entry(number, pick.entry)?;
        // A copy may still have what was removed since.
        let removed = pick.session.and_then(|session| self.walk.removed.get(&session));
        if let Some((source, place)) =
            pick.payload.filter(|_| removed.is_none_or(|removed| *removed < number))
        {
            let (salt, bytes) = sources.get(source)?.payload(place)?;
            (link.salt, link.payload) = (Some(salt), Some(bytes));
        }
        Some(JournalRow { link, archive })
    }
}

/// The payload that an entry names by its digest: where it is, its salt and its bytes.
fn payload_of(sources: &[Source], stored: &Stored) -> Option<(usize, RowAddress, Vec<u8>, Vec<u8>)> {
    let commitment = stored.payload.as_ref()?;
    sources.iter().enumerate().find_map(|(number, source)| {
        source.payloads(stored.seq.0).find_map(|place| {
            let (salt, bytes) = source.payload(place)?;
            let is_it = chain::commit_to(&salt, &bytes) == commitment.digest;
            is_it.then_some((number, place, salt, bytes))
        })
    })
}

impl JournalRow {
    pub(super) fn write(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let Link { seq, body, hash, salt, payload, columns } = &self.link;
        tx.execute(
            "INSERT INTO entry (seq, type, session, effect, body, hash, archive) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![seq, columns.name, columns.session, columns.effect, body, hash, self.archive],
        )?;
        if let (Some(salt), Some(bytes)) = (salt, payload) {
            let sql = "INSERT INTO payload (seq, salt, bytes) VALUES (?1, ?2, ?3)";
            tx.execute(sql, params![seq, salt, bytes])?;
        }
        tree::grow(tx, *seq)
    }
}
