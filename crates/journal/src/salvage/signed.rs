//! What was signed of a torn journal: which checkpoints are kept, and what those say that are not.

use super::{source::Source, way::LongestChain};
use crate::{
    checkpoint::{Checkpoint, PublicKey, Statement},
    keys::State,
};
use bailey_store::{StoreError, Tx, params};
use std::collections::BTreeMap;

/// The checkpoints of a line by their epochs; of one epoch there may be several, and one of them follows from
/// the one before.
type Statements<'a> = BTreeMap<u64, Vec<(&'a Checkpoint, Statement)>>;

/// The checkpoints of a new journal, and of those that are not its own what has to be told.
pub(super) struct Signed {
    /// With the first key of each one's line.
    pub(super) kept: Vec<(PublicKey, Checkpoint)>,
    /// The newest that is about more entries than there are.
    pub(super) beyond: Option<Checkpoint>,
    /// How many were found and are not kept.
    pub(super) left: u32,
    /// Lines that an entry names, and of which none is kept.
    pub(super) lost: Vec<PublicKey>,
    /// Whether the key beside the journal signs the next one: nothing that it has signed is missing.
    pub(super) goes_on: bool,
}

impl Signed {
    /// Of each line that an entry on the way names, its checkpoints from the first on, as long as each
    /// follows from the one before and is about entries on the way.
    pub(super) fn of(sources: &[Source], way: &LongestChain, key: Option<&State>) -> Self {
        let of_key = key.and_then(|state| Some((state.first.to_string(), state.newest.clone()?)));
        let found = sources.iter().flat_map(|source| &source.checkpoints).chain(&of_key);
        let mut lines: BTreeMap<&str, Statements<'_>> = BTreeMap::new();
        for (line, checkpoint) in found {
            let Some(says) = checkpoint.statement().ok().filter(|says| says.journal == way.journal) else {
                continue;
            };
            let same = lines.entry(line).or_default().entry(says.epoch).or_default();
            if same.iter().all(|(other, _)| *other != checkpoint) {
                same.push((checkpoint, says));
            }
        }
        let total: usize = lines.values().flat_map(BTreeMap::values).map(Vec::len).sum();
        let (mut kept, mut lost, mut ends) = (Vec::new(), Vec::new(), BTreeMap::new());
        for first in &way.begun {
            let line = lines.get(first.to_string().as_str()).map(|line| follow(line, first, way.entries()));
            let line = line.unwrap_or_default();
            if line.is_empty() {
                lost.push(*first);
            }
            ends.insert(first.to_string(), line.len() as u64);
            kept.extend(line.into_iter().map(|checkpoint| (*first, checkpoint)));
        }
        let goes_on = key.is_none_or(|state| {
            let end = ends.get(&state.first.to_string()).copied().unwrap_or(0);
            let covers = |newest: &Checkpoint| {
                newest.statement().is_ok_and(|says| {
                    says.journal == way.journal && says.entries <= way.entries() && end >= state.epoch
                })
            };
            state.newest.as_ref().is_none_or(covers)
        });
        let left = u32::try_from(total - kept.len()).unwrap_or(u32::MAX);
        Self { kept, beyond: beyond(sources, way, of_key.as_ref()), left, lost, goes_on }
    }
}

/// The newest checkpoint that is about more than what there is. Copies do not count: they may be of before
/// something was brought back on purpose.
fn beyond(
    sources: &[Source],
    way: &LongestChain,
    of_key: Option<&(String, Checkpoint)>,
) -> Option<Checkpoint> {
    let torn = sources.first().into_iter().flat_map(|source| &source.checkpoints);
    let is_of = |says: &Statement| says.journal == way.journal && says.entries > way.entries();
    let all = torn.chain(of_key).filter_map(|(_, it)| Some((it.statement().ok().filter(is_of)?.entries, it)));
    all.max_by_key(|(entries, _)| *entries).map(|(_, checkpoint)| checkpoint.clone())
}

/// A line from its first key on, as far as it holds and is about no more than there is.
fn follow(line: &Statements<'_>, first: &PublicKey, entries: u64) -> Vec<Checkpoint> {
    let (mut kept, mut key, mut about) = (Vec::new(), *first, 0);
    for epoch in 0.. {
        let fits = |(checkpoint, says): &&(&Checkpoint, Statement)| {
            checkpoint.check(&key).is_ok() && (about..=entries).contains(&says.entries)
        };
        let Some((checkpoint, says)) = line.get(&epoch).and_then(|all| all.iter().find(fits)) else { break };
        (key, about) = (says.next, says.entries);
        kept.push((*checkpoint).clone());
    }
    kept
}

/// Whether a source by itself has every checkpoint of every line that begins on the way.
pub(super) fn is_complete(sources: &[Source], way: &LongestChain) -> bool {
    let signed = Signed::of(sources, way, None);
    signed.left == 0 && signed.lost.is_empty()
}

/// Writes checkpoints into a new journal.
pub(super) fn write(tx: &mut Tx<'_>, kept: &[(PublicKey, Checkpoint)]) -> Result<(), StoreError> {
    for (line, checkpoint) in kept {
        let says = checkpoint.statement().map_err(StoreError::custom)?;
        let (note, signature) = checkpoint.parts();
        tx.execute(
            "INSERT INTO checkpoint (line, epoch, entries, note, signature) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![line.to_string(), says.epoch, says.entries, note, signature],
        )?;
    }
    Ok(())
}
