//! A witness: a place outside of this machine's reach that was told of each checkpoint. What it tells back
//! shows whether journal and key were put back together, which nothing on the machine itself can show.

use crate::{
    Journal, JournalError,
    chain::{self, Broken},
    checkpoint::{Checkpoint, PublicKey, Statement},
    sign::{changed, cut},
    tree,
};
use bailey_store::{Grade, OptionalExtension as _, StoreError, Tx, params};
use std::collections::BTreeMap;

/// The most that is read of what a witness has, in bytes.
pub const WITNESS_BYTES_MAX: usize = 64 << 20;
/// The longest line that is looked at, in bytes; a checkpoint's has 700.
const LINE_BYTES_MAX: usize = 2048;

/// The checkpoints that a witness has, as far as they can be read: each line is one checkpoint as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WitnessRecord {
    /// The checkpoints, of whichever journal.
    pub checkpoints: Vec<Checkpoint>,
    /// Lines that are none.
    pub unreadable: usize,
}

impl WitnessRecord {
    /// Reads JSON lines; `None` of more than [`WITNESS_BYTES_MAX`], because what is left unread could be what
    /// matters.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut told = Self::default();
        if bytes.len() > WITNESS_BYTES_MAX {
            return None;
        }
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            let fits = line.len() <= LINE_BYTES_MAX;
            let read = fits.then(|| serde_json::from_slice::<Checkpoint>(line).ok()).flatten();
            match read.filter(|checkpoint| checkpoint.statement().is_ok()) {
                Some(checkpoint) => told.checkpoints.push(checkpoint),
                None => told.unreadable += 1,
            }
        }
        Some(told)
    }
}

/// What a witness vouches for.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Testimony {
    /// How many of its checkpoints are this journal's.
    pub checkpoints: u64,
    /// How many it has of other journals.
    pub others: u64,
    /// Lines that are none.
    pub unreadable: usize,
    /// The one of this journal that is about the most entries.
    pub newest: Option<Statement>,
}

impl Journal {
    /// The checkpoints that this witness was not told of yet, in order.
    ///
    /// # Errors
    /// When the key or the journal cannot be read.
    pub async fn unwitnessed(&self, witness: &str) -> Result<Vec<Checkpoint>, JournalError> {
        let Some(line) = self.line().await? else { return Ok(Vec::new()) };
        let (witness, first) = (witness.to_owned(), line.first.to_string());
        let told = self.store().read(move |tx| {
            let sql = "SELECT epoch FROM witnessed WHERE witness = ?1 AND line = ?2";
            Ok(tx.query_row(sql, params![witness, first], |row| row.get::<_, u64>(0)).optional()?)
        });
        let told = told.await?;
        let is_new = |checkpoint: &Checkpoint| {
            checkpoint.statement().is_ok_and(|says| told.is_none_or(|told| says.epoch > told))
        };
        Ok(line.checkpoints.into_iter().filter(is_new).collect())
    }

    /// Notes that this witness was told of the line up to here.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn witnessed(&self, witness: &str, newest: &Checkpoint) -> Result<(), JournalError> {
        let Some(line) = self.line().await? else { return Ok(()) };
        let Ok(says) = newest.statement() else { return Ok(()) };
        let (witness, first) = (witness.to_owned(), line.first.to_string());
        let work = move |tx: &mut Tx<'_>| {
            let sql = "INSERT OR REPLACE INTO witnessed (witness, line, epoch) VALUES (?1, ?2, ?3)";
            tx.execute(sql, params![witness, first, says.epoch])?;
            Ok(())
        };
        self.write_only(Grade::Normal, work).await
    }

    /// Compares what a witness told with what is here.
    ///
    /// # Errors
    /// [`JournalError::Broken`] when it knows entries that are not here, others than those here, or a
    /// checkpoint of this journal that no key of it signed.
    pub async fn compare(&self, told: WitnessRecord) -> Result<Testimony, JournalError> {
        #[cfg(feature = "controls")]
        let told = if bailey_protocol::broken::broken("witness") { WitnessRecord::default() } else { told };
        let found: Result<Testimony, Broken> = self.store().read(move |tx| compare(tx, &told)).await?;
        Ok(found?)
    }
}

fn compare(tx: &Tx<'_>, told: &WitnessRecord) -> Result<Result<Testimony, Broken>, StoreError> {
    let journal = chain::hash_of(tx, 1)?;
    let last = chain::last(tx)?;
    let stated =
        told.checkpoints.iter().filter_map(|checkpoint| Some((checkpoint, checkpoint.statement().ok()?)));
    let (mut own, others): (Vec<_>, Vec<_>) = stated.partition(|(_, says)| says.journal == journal);
    own.sort_by_key(|(_, says)| says.epoch);
    let mut keys = keys(tx)?;
    for (checkpoint, says) in &own {
        let may_sign = keys.get(&says.epoch).cloned().unwrap_or_default();
        if !may_sign.iter().any(|key| checkpoint.check(key).is_ok()) {
            let what = format!(
                "the witness has checkpoint {} of this journal, over {} entries, that no key of it signed: journal and key \
                 were put back, or somebody else writes there",
                says.epoch, says.entries
            );
            return Ok(Err(Broken { seq: says.entries.min(last + 1), what }));
        }
        keys.entry(says.epoch.saturating_add(1)).or_default().push(says.next);
        if says.entries > last {
            return Ok(Err(at_the_witness(cut(last, says))));
        }
        if tree::root(tx, says.entries)? != says.root {
            return Ok(Err(at_the_witness(changed(says))));
        }
    }
    let newest = own.iter().map(|(_, says)| says).max_by_key(|says| says.entries).cloned();
    let (checkpoints, others) = (own.len() as u64, others.len() as u64);
    Ok(Ok(Testimony { checkpoints, others, unreadable: told.unreadable, newest }))
}

fn at_the_witness(broken: Broken) -> Broken {
    Broken { what: format!("{}; the witness has it", broken.what), ..broken }
}

/// The keys that may sign a checkpoint, by its epoch.
fn keys(tx: &Tx<'_>) -> Result<BTreeMap<u64, Vec<PublicKey>>, StoreError> {
    let mut keys = BTreeMap::<u64, Vec<PublicKey>>::new();
    let sql = "SELECT line, epoch, note, signature FROM checkpoint";
    let rows = tx.query_all(sql, params![], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, u64>(1)?, Checkpoint::of_parts(row.get(2)?, row.get(3)?)))
    })?;
    for (line, epoch, checkpoint) in rows {
        if epoch == 0 {
            keys.entry(0).or_default().extend(PublicKey::parse(&line));
        }
        keys.entry(epoch + 1).or_default().extend(checkpoint.statement().ok().map(|says| says.next));
    }
    Ok(keys)
}
