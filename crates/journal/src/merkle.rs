//! The hash tree of RFC 6962, section 2.1: what proves that an entry is in a journal, and that one journal
//! goes on from another, without the rest of it.
//!
//! A leaf is over the hash that an entry has in the chain, so the tree needs no byte of the entries
//! themselves. Leaves and nodes are hashed with different first bytes (0 and 1), so that neither can be taken
//! for the other. This module is pure: `tree.rs` knows where the hashes lie.

use bailey_protocol::Digest;
use serde::{Deserialize, Serialize};

/// What a proof that does not hold lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unproven {
    /// The place is not in a tree of that size.
    #[error("there is no such place in a tree of that size")]
    Outside,
    /// The path has not as many hashes as the tree has levels there.
    #[error("the path is too long or too short")]
    Length,
    /// The hashes lead to another root.
    #[error("the path leads to another root")]
    Root,
}

/// The hash of a leaf.
#[must_use]
pub fn leaf(chained: &Digest) -> Digest {
    let mut bytes = [0; 33];
    let (_, rest) = bytes.split_at_mut(1);
    rest.copy_from_slice(&chained.0);
    Digest::of(&bytes)
}

/// The hash of two subtrees.
pub(crate) fn node(left: &Digest, right: &Digest) -> Digest {
    let mut bytes = [1; 65];
    let (_, rest) = bytes.split_at_mut(1);
    let (one, other) = rest.split_at_mut(32);
    one.copy_from_slice(&left.0);
    other.copy_from_slice(&right.0);
    Digest::of(&bytes)
}

/// The largest power of two below `size`, which is 2 or more: where a tree is split.
pub(crate) fn split(size: u64) -> u64 {
    1 << (63 - size.saturating_sub(1).max(1).leading_zeros())
}

/// The root over hashes of leaves, or of subtrees of one size; of nothing, the hash of nothing.
pub(crate) fn root(hashes: &[Digest]) -> Digest {
    match hashes {
        [] => Digest::of(&[]),
        [only] => *only,
        _ => {
            let middle = usize::try_from(split(hashes.len() as u64)).unwrap_or(1);
            let (left, right) = hashes.split_at(middle.min(hashes.len()));
            node(&root(left), &root(right))
        }
    }
}

/// That a leaf has a place in a tree: the hashes beside the way from it to the root, the lowest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Inclusion(pub Vec<Digest>);

impl Inclusion {
    /// Whether the leaf is the one at `place` (from 0) among `size`, by RFC 9162, section 2.1.3.2.
    ///
    /// # Errors
    /// What does not fit.
    pub fn check(&self, leaf: Digest, place: u64, size: u64, root: &Digest) -> Result<(), Unproven> {
        if place >= size {
            return Err(Unproven::Outside);
        }
        let (mut place, mut last, mut hash) = (place, size - 1, leaf);
        for beside in &self.0 {
            if last == 0 {
                return Err(Unproven::Length);
            }
            if place & 1 == 1 || place == last {
                hash = node(beside, &hash);
                while place & 1 == 0 && place != 0 {
                    (place, last) = (place >> 1, last >> 1);
                }
            } else {
                hash = node(&hash, beside);
            }
            (place, last) = (place >> 1, last >> 1);
        }
        if last != 0 {
            return Err(Unproven::Length);
        }
        if hash == *root { Ok(()) } else { Err(Unproven::Root) }
    }
}

/// That several leaves have places in a tree: the hash of each largest subtree that holds none of them, from
/// the left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Several(pub Vec<Digest>);

impl Several {
    /// Whether the leaves are at their places (from 0, ascending) among `size`.
    ///
    /// # Errors
    /// What does not fit.
    pub fn check(&self, leaves: &[(u64, Digest)], size: u64, root: &Digest) -> Result<(), Unproven> {
        let is_ascending = leaves.windows(2).all(|pair| matches!(pair, [(one, _), (next, _)] if one < next));
        if !is_ascending || leaves.last().is_none_or(|(place, _)| *place >= size) {
            return Err(Unproven::Outside);
        }
        let mut rest = self.0.iter();
        let found = climb(leaves, &mut rest, 0, size)?;
        match (rest.next(), found == *root) {
            (Some(_), _) => Err(Unproven::Length),
            (None, false) => Err(Unproven::Root),
            (None, true) => Ok(()),
        }
    }
}

/// The hash over `size` places from `from` on, of which these leaves are known; it goes down where there are
/// some.
fn climb(
    leaves: &[(u64, Digest)],
    rest: &mut std::slice::Iter<'_, Digest>,
    from: u64,
    size: u64,
) -> Result<Digest, Unproven> {
    match leaves {
        [] => rest.next().copied().ok_or(Unproven::Length),
        // They have places of their own, so there is one of them.
        [(_, leaf), ..] if size < 2 => Ok(*leaf),
        _ => {
            let middle = split(size);
            let (left, right) = leaves.split_at(leaves.partition_point(|(place, _)| *place < from + middle));
            let left = climb(left, rest, from, middle)?;
            Ok(node(&left, &climb(right, rest, from + middle, size - middle)?))
        }
    }
}

/// That a tree goes on from a smaller one, with every leaf of it where it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Consistency(pub Vec<Digest>);

impl Consistency {
    /// Whether the tree of `new` leaves begins with the one of `old`, by RFC 9162, section 2.1.4.2.
    ///
    /// # Errors
    /// What does not fit.
    pub fn check(
        &self,
        (old, old_root): (u64, &Digest),
        (new, new_root): (u64, &Digest),
    ) -> Result<(), Unproven> {
        if old == 0 || old > new {
            return Err(Unproven::Outside);
        }
        if old == new {
            return match (self.0.is_empty(), old_root == new_root) {
                (true, true) => Ok(()),
                (false, _) => Err(Unproven::Length),
                (true, false) => Err(Unproven::Root),
            };
        }
        let mut path = self.0.iter();
        let (mut place, mut last) = (old - 1, new - 1);
        while place & 1 == 1 {
            (place, last) = (place >> 1, last >> 1);
        }
        let first = if old.is_power_of_two() { old_root } else { path.next().ok_or(Unproven::Length)? };
        let (mut of_old, mut of_new) = (*first, *first);
        for beside in path {
            if last == 0 {
                return Err(Unproven::Length);
            }
            if place & 1 == 1 || place == last {
                of_old = node(beside, &of_old);
                of_new = node(beside, &of_new);
                while place & 1 == 0 && place != 0 {
                    (place, last) = (place >> 1, last >> 1);
                }
            } else {
                of_new = node(&of_new, beside);
            }
            (place, last) = (place >> 1, last >> 1);
        }
        if last != 0 {
            return Err(Unproven::Length);
        }
        if of_old == *old_root && of_new == *new_root { Ok(()) } else { Err(Unproven::Root) }
    }
}

#[cfg(test)]
mod tests;
