//! Signing the journal: when a checkpoint is made, and what a verification makes of those there are.
//!
//! INVARIANT: a secret is overwritten only after the checkpoint that it signed is on disk. Where a crash came
//! between, the same secret signs that checkpoint once more; the one before it was handed to nobody, because
//! everybody reads those of the key's past only. Beside the key of another journal the first secret is in
//! memory alone until then: where a crash came between, another line of keys begins.

use crate::{
    Entry, Fact, Journal, JournalError,
    chain::{self, Broken, random},
    checkpoint::{Checkpoint, PublicKey, Secret, Statement, follow},
    keys::{KeyFile, KeyFileLock, State},
    tree,
};
use bailey_protocol::{Digest, Timestamp};
use bailey_secrets::Redactor;
use bailey_store::{Grade, StoreError, Tx, params};
use std::{collections::BTreeMap, sync::atomic::Ordering::Relaxed};

/// How many entries are written at most before they are signed; the end of a session does not wait for them.
pub(crate) const ENTRIES_UNSIGNED: u64 = 1024;

/// The line of checkpoints to which a journal's key belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointLine {
    /// The key that signed the first.
    pub first: PublicKey,
    /// All of them, in order.
    pub checkpoints: Vec<Checkpoint>,
}

impl Journal {
    /// Signs what the journal holds and steps to the next key; where nothing came since the newest
    /// checkpoint, that one is given again. The first call makes the line's first key, and says so in an
    /// entry.
    ///
    /// # Errors
    /// When the key or the journal cannot be written, or the key is older than the journal.
    pub async fn checkpoint(&self) -> Result<Checkpoint, JournalError> {
        let journal = self.clone();
        // A task of its own: were it dropped between the journal and the key, another process would step
        // meanwhile, and the late write would take the place of a checkpoint that somebody has.
        let step = tokio::spawn(async move { journal.step().await });
        step.await.unwrap_or_else(|error| Err(JournalError::Unsigned(error.to_string())))
    }

    async fn step(&self) -> Result<Checkpoint, JournalError> {
        self.sound().await?;
        let keys = self.inner.keys.lock().await;
        let held = keys.lock().await?;
        self.sign(&keys, &held).await
    }

    /// Signs if as many entries wait for it as may.
    pub(crate) async fn sign_if_due(&self) {
        if self.is_due() {
            let journal = self.clone();
            // As for every checkpoint. The end of the session says what is wrong.
            tokio::spawn(async move { journal.step_if_due().await }).await.ok();
        }
    }

    /// Every process counts the same entries, and one of them signs. Whoever finds the key in use leaves it
    /// to who has it, and looks again at its next entry.
    async fn step_if_due(&self) -> Result<(), JournalError> {
        self.sound().await?;
        let keys = self.inner.keys.lock().await;
        let Some(held) = keys.try_lock()? else { return Ok(()) };
        let journal = self.store().read(|tx| chain::hash_of(tx, 1)).await?;
        let state = keys.read(&held)?.filter(|state| state.is_of(journal));
        if let Some(Ok(says)) = state.and_then(|state| state.newest).map(|newest| newest.statement()) {
            self.inner.signed.fetch_max(says.entries, Relaxed);
        }
        if self.is_due() {
            self.sign(&keys, &held).await?;
        }
        Ok(())
    }

    fn is_due(&self) -> bool {
        self.newest().saturating_sub(self.inner.signed.load(Relaxed)) >= ENTRIES_UNSIGNED
    }

    async fn sign(&self, keys: &KeyFile, held: &KeyFileLock<'_>) -> Result<Checkpoint, JournalError> {
        let signed = self.sign_now(keys, held).await;
        // What failed is not tried again with each entry.
        self.inner.signed.fetch_max(self.newest(), Relaxed);
        signed
    }

    async fn sign_now(&self, keys: &KeyFile, held: &KeyFileLock<'_>) -> Result<Checkpoint, JournalError> {
        let journal = self.store().read(|tx| chain::hash_of(tx, 1)).await?;
        let state = match keys.read(held)? {
            Some(state) if state.is_of(journal) => state,
            // It says that another journal was signed, and goes on to until this one is.
            Some(_) => State::begin()?,
            None => keys.begin(held)?,
        };
        let secret = Secret::new(random()?);
        let next = PublicKey::of(&secret);
        let (redactor, now) = self.pen();
        let (first, epoch) = (state.first, state.epoch);
        let work = move |tx: &mut Tx<'_>| sign(tx, &redactor, now, journal, &state, next);
        match self.write_only(Grade::Full, work).await? {
            Signed::Before(checkpoint) => Ok(checkpoint),
            Signed::Now(checkpoint) => {
                let newest = Some(checkpoint.clone());
                keys.write(held, &State { first, epoch: epoch + 1, secret, newest })?;
                Ok(checkpoint)
            }
        }
    }

    /// The line that the key stands in; none before the first checkpoint.
    ///
    /// # Errors
    /// When the key or the journal cannot be read.
    pub async fn line(&self) -> Result<Option<CheckpointLine>, JournalError> {
        let Some(state) = self.state().await? else { return Ok(None) };
        let (first, epoch) = (state.first, state.epoch);
        let checkpoints = self.store().read(move |tx| line(tx, &first, epoch)).await?;
        Ok(Some(CheckpointLine { first, checkpoints }))
    }

    pub(crate) async fn state(&self) -> Result<Option<State>, JournalError> {
        let keys = self.inner.keys.lock().await;
        let held = keys.lock().await?;
        keys.read(&held)
    }

    /// Whether the journal still holds what the newest checkpoint, which lies beside the key, is about.
    pub(crate) async fn holds_what_was_signed(&self) -> Result<(), JournalError> {
        #[cfg(feature = "controls")]
        if bailey_protocol::broken::broken("checkpoints") {
            return Ok(());
        }
        let Some(newest) = self.state().await?.and_then(|state| state.newest) else { return Ok(()) };
        let Ok(signed) = newest.statement() else { return Ok(()) };
        let entries = signed.entries;
        let found: Result<(), Broken> = self.store().read(move |tx| holds(tx, &signed)).await?;
        found?;
        self.inner.signed.fetch_max(entries, Relaxed);
        Ok(())
    }
}

impl State {
    /// A journal that begins anew beside an old key gets a key of its own.
    fn is_of(&self, journal: Digest) -> bool {
        let of = |newest: &Checkpoint| newest.statement().is_ok_and(|says| says.journal == journal);
        self.newest.as_ref().is_none_or(of)
    }
}

enum Signed {
    /// Nothing came since.
    Before(Checkpoint),
    Now(Checkpoint),
}

fn sign(
    tx: &mut Tx<'_>,
    redactor: &Redactor,
    now: Timestamp,
    journal: Digest,
    state: &State,
    next: PublicKey,
) -> Result<Signed, StoreError> {
    let (line, epoch) = (state.first.to_string(), state.epoch);
    let last = tx.query_row("SELECT max(epoch) FROM checkpoint WHERE line = ?1", params![line], |row| {
        row.get::<_, Option<u64>>(0)
    })?;
    if last.is_some_and(|last| last > epoch) {
        return Err(StoreError::custom(
            "`journal.key` is older than the journal beside it: put the newer one back, or move it away, and a new line \
             of keys begins",
        ));
    }
    if last.is_none() {
        let fact = Fact::SigningBegun { key: state.first };
        chain::append(tx, redactor, now, &Entry { session: None, effect: None, fact, payload: None })?;
    }
    let (entries, head) = chain::head(tx)?;
    if let Some(newest) = &state.newest
        && newest.statement().is_ok_and(|says| says.entries == entries)
    {
        return Ok(Signed::Before(newest.clone()));
    }
    let root = tree::root(tx, entries)?;
    let statement = Statement { journal, epoch, entries, root, head, time: now, next };
    let checkpoint = Checkpoint::sign(&statement, &state.secret);
    let (note, signature) = checkpoint.parts();
    tx.execute(
        "INSERT OR REPLACE INTO checkpoint (line, epoch, entries, note, signature) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![line, epoch, entries, note, signature],
    )?;
    Ok(Signed::Now(checkpoint))
}

/// A line's checkpoints before an epoch.
fn line(tx: &Tx<'_>, first: &PublicKey, before: u64) -> Result<Vec<Checkpoint>, StoreError> {
    let sql = "SELECT note, signature FROM checkpoint WHERE line = ?1 AND epoch < ?2 ORDER BY epoch";
    Ok(tx.query_all(sql, params![first.to_string(), before], |row| {
        Ok(Checkpoint::of_parts(row.get(0)?, row.get(1)?))
    })?)
}

fn holds(tx: &Tx<'_>, signed: &Statement) -> Result<Result<(), Broken>, StoreError> {
    if signed.journal != chain::hash_of(tx, 1)? {
        return Ok(Ok(()));
    }
    let last = chain::last(tx)?;
    if last < signed.entries {
        return Ok(Err(cut(last, signed)));
    }
    let root = tree::root(tx, signed.entries)?;
    Ok(if root == signed.root { Ok(()) } else { Err(changed(signed)) })
}

pub(crate) fn cut(last: u64, signed: &Statement) -> Broken {
    let Statement { entries, time, epoch, .. } = signed;
    let what =
        format!("it is missing: {entries} entries were there when checkpoint {epoch} was signed, at {time}");
    Broken { seq: last + 1, what }
}

pub(crate) fn changed(signed: &Statement) -> Broken {
    let Statement { entries, time, epoch, .. } = signed;
    let what = format!(
        "the first {entries} entries are not those of checkpoint {epoch}, which was signed at {time}"
    );
    Broken { seq: *entries, what }
}

/// What stands beside a chain that holds: up to where it is signed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Vouched {
    /// The key that signed the line's first checkpoint: compare it with the one that was kept elsewhere.
    pub key: PublicKey,
    /// The entry that names it.
    pub since: u64,
    /// How many checkpoints follow from it.
    pub checkpoints: u64,
    /// The newest of them.
    pub newest: Statement,
}

/// Every checkpoint there is, to compare with the entries while they are walked.
#[derive(Default)]
pub(crate) struct Signatures {
    /// By the line's first key.
    lines: BTreeMap<String, Vec<Checkpoint>>,
    /// By how many entries they are about.
    stated: BTreeMap<u64, Vec<Statement>>,
    /// Keys that an entry names, with that entry.
    begun: Vec<(u64, PublicKey)>,
    /// Keys of which everything that they signed is said to be lost.
    lost: Vec<PublicKey>,
}

impl Signatures {
    pub(crate) fn read(tx: &Tx<'_>) -> Result<Self, StoreError> {
        let mut all = Self::default();
        let sql = "SELECT line, note, signature FROM checkpoint ORDER BY line, epoch";
        let mut statement = tx.prepare_cached(sql)?;
        let mut rows = statement.query(params![])?;
        while let Some(row) = rows.next()? {
            let checkpoint = Checkpoint::of_parts(row.get(1)?, row.get(2)?);
            if let Ok(says) = checkpoint.statement() {
                all.stated.entry(says.entries).or_default().push(says);
            }
            all.lines.entry(row.get(0)?).or_default().push(checkpoint);
        }
        Ok(all)
    }

    /// An entry that a line begins with.
    pub(crate) fn begins(&mut self, seq: u64, key: PublicKey) {
        self.begun.push((seq, key));
    }

    /// What these lines signed was lost with a torn database.
    pub(crate) fn lost(&mut self, lines: Vec<PublicKey>) {
        self.lost.extend(lines);
    }

    /// Compares what was signed of the first entries, of which there are so many.
    pub(crate) fn compare(&self, entries: u64, root: impl FnOnce() -> Digest) -> Result<(), Broken> {
        let Some(stated) = self.stated.get(&entries) else { return Ok(()) };
        let root = root();
        stated.iter().find(|says| says.root != root).map_or(Ok(()), |says| Err(changed(says)))
    }

    /// Checks every line, and says where the newest one ends.
    pub(crate) fn finish(self, entries: u64) -> Result<Option<Vouched>, Broken> {
        if let Some(says) = self.stated.values().flatten().find(|says| says.entries > entries) {
            return Err(cut(entries, says));
        }
        let mut lines = self.lines;
        let mut vouched = None;
        for (since, key) in self.begun {
            let at = |what: String| Broken { seq: since, what };
            // The entry that names a key is written together with the first that it signed.
            let line = lines.remove(&key.to_string());
            if line.is_none() && self.lost.contains(&key) {
                continue;
            }
            let line =
                line.ok_or_else(|| at(format!("everything that the key `{key}` signed is missing")))?;
            let stated = follow(&line, &key).map_err(|forged| at(forged.to_string()))?;
            let Some(newest) = stated.last().cloned() else { continue };
            vouched = Some(Vouched { key, since, checkpoints: stated.len() as u64, newest });
        }
        match lines.keys().next() {
            None => Ok(vouched),
            Some(key) => {
                let what = format!("no entry names the key `{key}`, which checkpoints are signed by");
                Err(Broken { seq: entries, what })
            }
        }
    }
}
