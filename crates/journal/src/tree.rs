//! Where the tree over the entries lies: a *tile* for each whole 256 hashes of the level below, the lowest
//! level being the entries' own. What is between two tiles is hashed when it is asked for, from at most 255
//! hashes a level, so that an entry costs the tree one row in 256 and a proof some hundred hashes.
//!
//! Tiles follow from the entries: one that is missing is computed, and a verification of the whole chain
//! compares each.

use crate::{
    chain::Broken,
    merkle::{self, Consistency, Inclusion, Several, leaf, node, split},
};
use bailey_protocol::Digest;
use bailey_store::{StoreError, Tx, params};

/// Hashes that a tile is over, as a power of two.
const TILE_BITS: u32 = 8;
/// How many that is.
const TILE: u64 = 1 << TILE_BITS;
/// Of 2^64 entries.
const LEVELS_MAX: u32 = 64 / TILE_BITS;

/// After the entry `size` was written: makes the tiles that it completed, and those that an older program
/// left out.
pub(crate) fn grow(tx: &mut Tx<'_>, size: u64) -> Result<(), StoreError> {
    if !size.is_multiple_of(TILE) {
        return Ok(());
    }
    for level in 1..LEVELS_MAX {
        let whole = size >> (TILE_BITS * level);
        let known = "SELECT coalesce(max(place) + 1, 0) FROM tile WHERE level = ?1";
        let known: u64 = tx.query_row(known, params![level], |row| row.get(0))?;
        for place in known..whole {
            let hash = merkle::root(&row(tx, level - 1, place * TILE, TILE)?);
            let sql = "INSERT INTO tile (level, place, hash) VALUES (?1, ?2, ?3)";
            tx.execute(sql, params![level, place, hash.0])?;
        }
        if whole < TILE {
            break;
        }
    }
    Ok(())
}

/// The root over the first `size` entries.
pub(crate) fn root(tx: &Tx<'_>, size: u64) -> Result<Digest, StoreError> {
    range(tx, 0, size)
}

/// That the entry at `place` (from 0) is among the first `size`.
pub(crate) fn inclusion(tx: &Tx<'_>, place: u64, size: u64) -> Result<Inclusion, StoreError> {
    let (mut path, mut from, mut size) = (Vec::new(), 0, size);
    while size > 1 {
        let middle = split(size);
        if place - from < middle {
            path.push(range(tx, from + middle, size - middle)?);
            size = middle;
        } else {
            path.push(range(tx, from, middle)?);
            (from, size) = (from + middle, size - middle);
        }
    }
    path.reverse();
    Ok(Inclusion(path))
}

/// That the entries at these places (from 0, ascending) are among the first `size`.
pub(crate) fn several(tx: &Tx<'_>, places: &[u64], size: u64) -> Result<Several, StoreError> {
    let mut path = Vec::new();
    gather(tx, places, (0, size), &mut path)?;
    Ok(Several(path))
}

fn gather(
    tx: &Tx<'_>,
    places: &[u64],
    (from, size): (u64, u64),
    path: &mut Vec<Digest>,
) -> Result<(), StoreError> {
    if places.is_empty() {
        path.push(range(tx, from, size)?);
    } else if size > 1 {
        let middle = split(size);
        let (left, right) = places.split_at(places.partition_point(|place| *place < from + middle));
        gather(tx, left, (from, middle), path)?;
        gather(tx, right, (from + middle, size - middle), path)?;
    }
    Ok(())
}

/// That the first `new` entries begin with the first `old`.
pub(crate) fn consistency(tx: &Tx<'_>, old: u64, new: u64) -> Result<Consistency, StoreError> {
    let (mut path, mut from, mut old, mut size, mut is_whole) = (Vec::new(), 0, old, new, true);
    while old < size {
        let middle = split(size);
        if old <= middle {
            path.push(range(tx, from + middle, size - middle)?);
            size = middle;
        } else {
            path.push(range(tx, from, middle)?);
            (from, old, size, is_whole) = (from + middle, old - middle, size - middle, false);
        }
    }
    if !is_whole {
        path.push(range(tx, from, size)?);
    }
    path.reverse();
    Ok(Consistency(path))
}

/// The hash over `size` entries from `from` on, where a tree is split there.
fn range(tx: &Tx<'_>, from: u64, size: u64) -> Result<Digest, StoreError> {
    if size <= TILE {
        return Ok(merkle::root(&row(tx, 0, from, size)?));
    }
    if size.is_power_of_two() {
        let level = size.ilog2() / TILE_BITS;
        let below = TILE_BITS * level;
        let tiles = tiles(tx, level, from >> below, size >> below)?;
        if tiles.len() as u64 == size >> below {
            return Ok(merkle::root(&tiles));
        }
    }
    let middle = split(size);
    Ok(node(&range(tx, from, middle)?, &range(tx, from + middle, size - middle)?))
}

/// So many hashes of a level, from `place` on: of entries on the lowest.
fn row(tx: &Tx<'_>, level: u32, place: u64, count: u64) -> Result<Vec<Digest>, StoreError> {
    let hashes = if level == 0 {
        let sql = "SELECT hash FROM entry WHERE seq > ?1 ORDER BY seq LIMIT ?2";
        let chained = tx.query_all(sql, params![place, count], |row| row.get(0).map(Digest))?;
        chained.iter().map(leaf).collect()
    } else {
        tiles(tx, level, place, count)?
    };
    if hashes.len() as u64 == count {
        return Ok(hashes);
    }
    let missing =
        Broken { seq: place + 1, what: format!("of the {count} entries from there on some are missing") };
    Err(StoreError::custom(missing))
}

fn tiles(tx: &Tx<'_>, level: u32, place: u64, count: u64) -> Result<Vec<Digest>, StoreError> {
    let sql = "SELECT hash FROM tile WHERE level = ?1 AND place >= ?2 AND place < ?2 + ?3 ORDER BY place";
    Ok(tx.query_all(sql, params![level, place, count], |row| row.get(0).map(Digest))?)
}

/// The tree made anew, entry by entry, to compare it with what is stored.
#[derive(Debug, Default)]
pub(crate) struct Forest {
    /// The whole subtrees so far, each with how many entries it is over, as a power of two; the largest
    /// first.
    peaks: Vec<(u32, Digest)>,
    size: u64,
}

impl Forest {
    /// Adds an entry's hash; each tile that is whole with it is compared.
    pub(crate) fn push(&mut self, tx: &Tx<'_>, chained: &Digest) -> Result<Result<(), Broken>, StoreError> {
        self.size += 1;
        let (mut bits, mut hash) = (0, leaf(chained));
        while let Some((_, left)) = self.peaks.pop_if(|(left, _)| *left == bits) {
            (bits, hash) = (bits + 1, node(&left, &hash));
            if !bits.is_multiple_of(TILE_BITS) {
                continue;
            }
            let covered = 1 << bits;
            let stored = tiles(tx, bits / TILE_BITS, self.size / covered - 1, 1)?;
            if stored.first().is_some_and(|stored| *stored != hash) {
                let first = self.size - covered + 1;
                let what = format!(
                    "the tree holds another hash of the entries {first} to {} than they have",
                    self.size
                );
                return Ok(Err(Broken { seq: first, what }));
            }
        }
        self.peaks.push((bits, hash));
        Ok(Ok(()))
    }

    /// The root over all that was added.
    pub(crate) fn root(&self) -> Digest {
        let peaks = self.peaks.iter().rev().map(|(_, peak)| *peak);
        peaks.reduce(|right, left| node(&left, &right)).unwrap_or_else(|| merkle::root(&[]))
    }
}

#[cfg(test)]
mod tests;
