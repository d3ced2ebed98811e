//! What can still be read of a torn database, brought into a new one that takes its place.
//!
//! Entries are read from the pages themselves (`source.rs`), and the chain says which of them are one: the
//! longest row of entries from genesis on in which each hash fits (`way.rs`). Where a page is gone, a copy of
//! the home may have what stood on it: whoever links is taken, wherever it lies. What follows from entries is
//! made anew; what was signed is kept as far as it follows from its first key. An entry behind all of them
//! says what was lost, by numbers, and shows the newest checkpoint that is about more than what is there: so
//! tearing a database hides no entry that was signed. Where nobody can tell that the torn journal was not
//! stopped, the new one is: the entry that says so may be among what was lost.
//!
//! The torn file is read, and renamed at the end; nothing writes to it. The exchange is `swap.rs`.

mod seen;
mod signed;
mod source;
mod swap;
mod way;

pub(crate) use swap::finish as finish_swap;

use crate::{
    Clock, Entry, Fact, JournalError, Payload,
    begin::state,
    chain::{self, Broken},
    checkpoint::{Checkpoint, PublicKey, Statement},
    fact::Loss,
    keys::{KeyFile, State},
    project, rebuild, schema, stop,
};
use bailey_protocol::{Digest, Timestamp, number::Seq};
use bailey_secrets::Redactor;
use bailey_store::{Grade, Store, StoreError, Tx};
use seen::Seen;
use signed::Signed;
use source::Source;
use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};
use way::LongestChain;

/// Entries that are written in one transaction.
const GROUP: usize = 500;
/// How often a row of entries is made shorter because the whole does not hold.
const ROUNDS: usize = 32;
/// How much of a file is read at a time, in bytes.
const PIECE: usize = 256 << 10;
/// What of it the disk gives or does not give, in bytes.
const PAGE: usize = 4096;
/// Why the new journal is stopped where no entry that was kept says so.
const MAYBE_STOPPED: &str = "the journal was torn, and was stopped, or nobody can tell that it was not";

/// A journal that was brought over, and is not in its place yet. Dropped before that, it leaves nothing.
#[derive(Debug)]
pub struct Salvage {
    journal: PathBuf,
    /// What the torn one was when it was read.
    seen: Seen,
    folder: SalvageFolder,
    /// Where the torn one will be kept.
    aside: PathBuf,
    loss: Loss,
    copies: Vec<PathBuf>,
    keeps_key: bool,
    is_stopped: bool,
}

impl Salvage {
    /// Reads what there is of the journal at `path`, and of copies of it, the newest first, which are asked
    /// only where it lacks something. Nobody may use the journal meanwhile.
    ///
    /// # Errors
    /// [`JournalError::Whole`] where nothing is torn, [`JournalError::NothingLeft`] where nothing can be
    /// read; others when the new one cannot be written. Nothing was changed then.
    pub fn prepare(
        path: &Path,
        copies: &[PathBuf],
        redactor: &Redactor,
        clock: &dyn Clock,
    ) -> Result<Self, JournalError> {
        swap::finish(path).map_err(|source| JournalError::Io { path: path.into(), source })?;
        let folder = SalvageFolder::make(path)?;
        let aside = swap::name(path, &clock.now().strftime("%Y%m%dT%H%M%SZ").to_string());
        // Before anything is read: what is written from here on shows.
        let seen = Seen::of(path)?;
        let torn = Source::read(path)?;
        let key = KeyFile::look(&path.with_extension("key"))?;
        let going = Going::of(&torn, key.as_ref());
        let signed = stated(key.as_ref());
        let newest = torn.last();
        let known = newest.max(signed.as_ref().map_or(0, |says| says.entries));
        if is_whole(path, &folder.path, known)? {
            return Err(JournalError::Whole(path.into()));
        }
        let mut sources = vec![torn];
        let mut way = LongestChain::along(&sources, u64::MAX);
        if way.entries() < known || way.lost().next().is_some() || !signed::is_complete(&sources, &way) {
            for copy in copies {
                sources.push(Source::read(copy)?);
            }
            way = LongestChain::along(&sources, u64::MAX);
        }
        if let Some(newer) = way.newer(&sources) {
            return Err(newer.into());
        }
        let mut limit = way.entries();
        for _ in 0..ROUNDS {
            if limit == 0 {
                return Err(JournalError::NothingLeft(path.into()));
            }
            let way = LongestChain::along(&sources, limit);
            let lines = Signed::of(&sources, &way, key.as_ref());
            let loss = Loss {
                torn: seen.file.unwrap_or(Digest([0; 32])),
                log: seen.log,
                kept: Seq(way.entries()),
                known: Seq(known.max(way.entries())),
                payloads: rows(way.lost()),
                signed: lines.beyond.clone(),
                checkpoints: lines.left,
                lines: lines.lost.clone(),
            };
            let store = build(&folder.path, &sources, &way, &lines.kept)?;
            let going = going.as_ref().filter(|going| going.reaches(&way)).map(|going| going.until);
            match close(&store, &aside, &loss, going, redactor, clock)? {
                Ok(is_stopped) => {
                    let used = sources.iter().enumerate().skip(1).filter(|(place, _)| way.uses(*place));
                    let copies = used.map(|(_, source)| source.path.clone()).collect();
                    let (journal, keeps_key) = (path.into(), lines.goes_on);
                    return Ok(Self { journal, seen, folder, aside, loss, copies, keeps_key, is_stopped });
                }
                // What holds before that entry is tried by itself.
                Err(broken) if broken.seq <= limit => limit = broken.seq.saturating_sub(1),
                Err(broken) => return Err(broken.into()),
            }
        }
        Err(JournalError::NothingLeft(path.into()))
    }

    /// What was lost.
    #[must_use]
    pub fn loss(&self) -> &Loss {
        &self.loss
    }

    /// The copies that something was taken from.
    #[must_use]
    pub fn copies(&self) -> &[PathBuf] {
        &self.copies
    }

    /// Whether the journal's key goes on: nothing that it signed is missing.
    #[must_use]
    pub fn keeps_key(&self) -> bool {
        self.keeps_key
    }

    /// Whether the new journal is stopped: the torn one was, or nobody can tell that it was not.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Puts the new journal in the place of the torn one; where that is kept now. Once begun, whoever opens
    /// the journal next ends it.
    ///
    /// # Errors
    /// When somebody wrote into the torn one since it was read, and nothing was changed then; or a file
    /// cannot be renamed.
    pub fn finish(self) -> Result<PathBuf, JournalError> {
        let io = |source| JournalError::Io { path: self.journal.clone(), source };
        swap::harden(&self.folder.path, &self.aside, self.keeps_key).map_err(io)?;
        self.seen.holds(&self.journal)?;
        swap::begin(&self.journal, &self.folder.path).map_err(io)?;
        swap::finish(&self.journal).map_err(io)?;
        Ok(self.aside.clone())
    }
}

/// Whether the journal at `path` is stopped, as its pages and the key beside it say: so it can be asked of a
/// damaged one, too, and nothing is written to it, but that an exchange which a salvage began is ended. One
/// of which nobody can tell that it is not stopped, is; so is one that is gone from beside a key which signed
/// it. Where there never was a journal, nothing is stopped.
#[must_use]
pub fn is_stopped(path: &Path) -> bool {
    let look = || -> Result<bool, JournalError> {
        swap::finish(path).map_err(|source| JournalError::Io { path: path.into(), source })?;
        let key = KeyFile::look(&path.with_extension("key"))?;
        if path.try_exists().is_ok_and(|is_there| !is_there) {
            return Ok(key.is_some_and(|state| state.newest.is_some()));
        }
        let torn = Source::read(path)?;
        let going = Going::of(&torn, key.as_ref());
        let is_going =
            going.is_some_and(|it| it.is_exact || it.reaches(&LongestChain::along(&[torn], u64::MAX)));
        Ok(!is_going)
    };
    look().unwrap_or(true)
}

/// Up to where it is known that nothing is stopped, as the states of a journal say. These follow from the
/// newest entry, and know its time alone; a clock that was ahead for a while makes that of an older one the
/// newest. So what is missing is told by numbers.
struct Going {
    /// The newest entry that can be read.
    newest: u64,
    /// The newest time that the states know of.
    until: Timestamp,
    /// Whether that is the time of the newest entry.
    is_exact: bool,
}

impl Going {
    /// None where something is stopped, and where nobody can tell: the states cannot be read, or are older
    /// than what anything names, or more was signed than there is, as where a log is gone.
    fn of(torn: &Source, key: Option<&State>) -> Option<Self> {
        let (newest, written) = torn.newest()?;
        let journal = torn.journal();
        // A new journal may lie beside an old key.
        let is_of = |says: &Statement| journal.as_ref().is_none_or(|journal| *journal == says.journal);
        let is_beyond = |says: Statement| says.entries > newest && is_of(&says);
        let mut signed = torn.checkpoints.iter().filter_map(|(_, checkpoint)| checkpoint.statement().ok());
        if signed.any(is_beyond) || stated(key).is_some_and(is_beyond) {
            return None;
        }
        let until = torn.going_until().filter(|until| *until >= written)?;
        Some(Self { newest, until, is_exact: until == written })
    }

    /// Whether it says anything of what a way leaves out: what is on it is known by itself. A time that is
    /// not the newest entry's may be of before what is left out.
    fn reaches(&self, way: &LongestChain) -> bool {
        way.entries() == self.newest || way.entries() < self.newest && self.is_exact
    }
}

/// What the newest checkpoint beside a key says.
fn stated(key: Option<&State>) -> Option<Statement> {
    key?.newest.as_ref()?.statement().ok()
}

/// The folder in which a new journal is made. It is removed when the salvage comes to nothing.
#[derive(Debug)]
struct SalvageFolder {
    path: PathBuf,
    /// The home, locked: there is one salvage at a time.
    _home: File,
}

impl SalvageFolder {
    /// Makes it, and removes what salvages left that were killed.
    fn make(journal: &Path) -> Result<Self, JournalError> {
        let parent = journal.parent().unwrap_or(Path::new("."));
        let io = |source| JournalError::Io { path: parent.into(), source };
        let home = File::open(parent).map_err(io)?;
        if let Err(TryLockError::WouldBlock) = home.try_lock() {
            return Err(io(io::Error::other("another recovery runs here; wait for its end")));
        }
        let begin = journal.with_extension("salvaging-");
        let name = begin.file_name().unwrap_or_default().as_encoded_bytes();
        for entry in fs::read_dir(parent).map_err(io)? {
            let entry = entry.map_err(io)?;
            if entry.file_name().as_encoded_bytes().starts_with(name) {
                fs::remove_dir_all(entry.path()).map_err(io)?;
            }
        }
        let path = journal.with_extension(format!("salvaging-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path).map_err(io)?;
        Ok(Self { path, _home: home })
    }
}

impl Drop for SalvageFolder {
    fn drop(&mut self) {
        // Where it took the journal's place, it is gone.
        fs::remove_dir_all(&self.path).ok();
    }
}

/// Whether nothing is the matter: SQLite finds no mistake in it, the chain holds, and no more than it has is
/// known. SQLite brings a log over as it opens a file, so it looks at a copy.
fn is_whole(path: &Path, folder: &Path, known: u64) -> Result<bool, JournalError> {
    let copy = folder.join("look.db");
    let io = |source| JournalError::Io { path: path.into(), source };
    for end in ["", "-wal"] {
        match fs::copy(swap::beside(path, end), swap::beside(&copy, end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                // What the disk does not give is torn; that there is no room is not.
                if error.kind() == io::ErrorKind::StorageFull {
                    return Err(io(error));
                }
                return Ok(false);
            }
            _ => {}
        }
    }
    let found = Store::open(&copy, schema::MIGRATIONS).and_then(|store| {
        store.read_blocking(|tx| {
            let mistakes = tx.query_all("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0))?;
            let is_sound = mistakes.iter().all(|line| line == "ok");
            Ok((is_sound, chain::verify(tx, 0)?))
        })
    });
    for end in ["", "-wal", "-shm"] {
        fs::remove_file(swap::beside(&copy, end)).ok();
    }
    match found {
        Ok((is_sound, verified)) => Ok(is_sound && verified.is_ok_and(|found| found.entries >= known)),
        Err(error @ (StoreError::TooNew { .. } | StoreError::Full { .. })) => Err(error.into()),
        Err(_) => Ok(false),
    }
}

/// Makes the new journal of what was found.
fn build(
    folder: &Path,
    sources: &[Source],
    way: &LongestChain,
    kept: &[(PublicKey, Checkpoint)],
) -> Result<Store, JournalError> {
    let path = folder.join("journal.db");
    for end in ["", "-wal", "-shm"] {
        match fs::remove_file(swap::beside(&path, end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(JournalError::Io { path, source: error });
            }
            _ => {}
        }
    }
    let store = Store::open(&path, schema::MIGRATIONS)?;
    let mut group = Vec::with_capacity(GROUP);
    for row in way.rows(sources) {
        group.push(row.ok_or_else(|| JournalError::Io { path: path.clone(), source: changed() })?);
        if group.len() == GROUP {
            write(&store, std::mem::take(&mut group))?;
        }
    }
    write(&store, group)?;
    let kept = kept.to_vec();
    store.write_blocking(Grade::Normal, move |tx| signed::write(tx, &kept))?;
    Ok(store)
}

/// Makes what follows from the entries, writes the one that says what was lost, and one that stops everything
/// unless nothing was stopped up to the newest that was kept (`going`), and looks whether all of it holds.
/// Whether the new journal is stopped.
fn close(
    store: &Store,
    aside: &Path,
    loss: &Loss,
    going: Option<Timestamp>,
    redactor: &Redactor,
    clock: &dyn Clock,
) -> Result<Result<bool, Broken>, JournalError> {
    let (redactor, now) = (redactor.clone(), clock.now());
    let (fact, place) = (Fact::Salvaged(Box::new(loss.clone())), aside.display().to_string());
    let is_stopped = store.write_blocking(Grade::Full, move |tx| {
        rebuild::replay(tx, redactor.clone())?;
        let newest = state(tx, project::NEWEST)?.and_then(|time| time.parse::<Timestamp>().ok());
        let is_going = newest.is_some_and(|newest| going.is_some_and(|until| until >= newest));
        let entry = Entry { session: None, effect: None, fact, payload: Some(Payload::Text(place)) };
        chain::append(tx, &redactor, now, &entry)?;
        // What was lost may have used a yes up.
        project::void(tx)?;
        if !is_going {
            stop::stop(tx, &redactor, now, MAYBE_STOPPED.into())?;
        }
        Ok(state(tx, project::STOPPED)?.is_some())
    })?;
    let verified = store.read_blocking(|tx| chain::verify(tx, 0))?;
    // The file alone takes the place of the torn one.
    store.checkpoint_blocking()?;
    Ok(verified.map(|_| is_stopped))
}

fn write(store: &Store, rows: Vec<way::JournalRow>) -> Result<(), StoreError> {
    let work = move |tx: &mut Tx<'_>| rows.iter().try_for_each(|row| row.write(tx));
    store.write_blocking(Grade::Normal, work)
}

fn changed() -> io::Error {
    io::Error::other("it is being changed while it is read: end whoever uses it, and begin again")
}

/// Numbers in order as rows of numbers without a gap.
fn rows(numbers: impl Iterator<Item = u64>) -> Vec<(Seq, Seq)> {
    let mut rows: Vec<(Seq, Seq)> = Vec::new();
    for number in numbers {
        match rows.last_mut() {
            Some((_, last)) if last.0 + 1 == number => *last = Seq(number),
            _ => rows.push((Seq(number), Seq(number))),
        }
    }
    rows
}
