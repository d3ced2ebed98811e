//! The folder of archives: one process at a time writes there; a file is whole or not there, and of mode 600.

use crate::{
    Archive, Journal, JournalError,
    archive::{self, ArchiveError, Contents, Head, List, Writer},
    checkpoint::{Checkpoint, PublicKey},
    fact::ArchiveFile,
    proof::ProvenEntry,
    prove::proven,
    retain::{entries_of, stored},
    tree,
};
use bailey_protocol::{Digest, Timestamp, number::Seq};
use bailey_store::{StoreError, Tx, params};
use serde::Serialize;
use std::{
    fmt,
    fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError},
    io::{self, BufReader, BufWriter, Read as _, Seek as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

/// What is behind the name of a file that is not whole yet.
pub(crate) const PART: &str = ".part";

/// The file whose lock is the folder's, and that says how the last run ended.
const LOCK: &str = "lock";
/// The most of that which is read, in bytes.
const NOTE_BYTES_MAX: u64 = 4096;

/// How much of the disk a journal takes, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Room {
    /// Its database and log; pages that are free for what comes do not count.
    pub journal: u64,
    /// Its archives.
    pub archives: u64,
}

impl Room {
    /// Of the journal at this path, whether it is open or not.
    ///
    /// # Errors
    /// When its files cannot be read.
    pub fn of(journal: &Path) -> Result<Self, JournalError> {
        let io = |source| JournalError::Io { path: journal.to_path_buf(), source };
        let mut archives = 0;
        for found in fs::read_dir(folder(journal)).into_iter().flatten() {
            archives += found.and_then(|found| found.metadata()).map_or(0, |about| about.len());
        }
        Ok(Self { journal: bailey_store::used(journal).map_err(io)?, archives })
    }

    /// Both.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.journal.saturating_add(self.archives)
    }
}

/// The folder, while this process has it.
#[derive(Debug)]
pub struct Shelf {
    folder: PathBuf,
    lock: File,
    /// Where this process ends itself, as kill -9 would.
    #[cfg(feature = "controls")]
    pub crash_at: Option<CrashPoint>,
}

impl Shelf {
    /// Takes the folder of archives beside a journal, which is made where it is not there; none while another
    /// process has it.
    ///
    /// # Errors
    /// When it cannot be made, or is no folder of its own.
    pub fn take(journal: &Path) -> Result<Option<Self>, JournalError> {
        let folder = folder(journal);
        let io = |source| JournalError::Io { path: folder.clone(), source };
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.map_err(io)?,
        }
        if !fs::symlink_metadata(&folder).map_err(io)?.is_dir() {
            return Err(io(io::Error::new(io::ErrorKind::NotADirectory, "it is no folder")));
        }
        // The disk has its own name too before rows are emptied for what lies in it.
        synced(&folder.join("..")).map_err(io)?;
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).map_err(io)?;
        let lock = folder.join(LOCK);
        let mut options = OpenOptions::new();
        let lock = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(lock);
        let lock = lock.map_err(io)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        Ok(Some(Self {
            folder,
            lock,
            #[cfg(feature = "controls")]
            crash_at: None,
        }))
    }

    /// Notes that a run is over, and what hindered it; the next process that looks sees it.
    ///
    /// # Errors
    /// When the note cannot be written.
    pub fn done(&self, now: SystemTime, hindered: &str) -> Result<(), JournalError> {
        let mut lock = &self.lock;
        let noted = lock.set_len(0).and_then(|()| lock.rewind()).and_then(|()| {
            lock.write_all(hindered.as_bytes())?;
            lock.set_modified(now)
        });
        noted.map_err(|source| JournalError::Io { path: self.folder.join(LOCK), source })
    }

    /// When the last run was over, and what hindered it; none where there was none yet.
    #[must_use]
    pub fn last(journal: &Path) -> Option<(SystemTime, String)> {
        let file = File::open(folder(journal).join(LOCK)).ok()?;
        let about = file.metadata().ok()?;
        let mut hindered = String::new();
        file.take(NOTE_BYTES_MAX).read_to_string(&mut hindered).ok()?;
        Some((about.modified().ok()?, hindered))
    }

    /// A new file for an archive of this name; what a crash left of one goes.
    pub(crate) fn part(&self, name: &str) -> Result<BufWriter<File>, JournalError> {
        let path = self.folder.join(format!("{name}{PART}"));
        let io = |source| JournalError::Io { path: path.clone(), source };
        absent(fs::remove_file(&path)).map_err(io)?;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(io)?;
        Ok(BufWriter::new(file))
    }

    /// Reads a written file back, and gives it its name once it holds what it should.
    pub(crate) fn finish(
        &self,
        name: &str,
        written: &ArchiveSummary,
        key: &PublicKey,
    ) -> Result<(), JournalError> {
        #[cfg(feature = "controls")]
        CrashPoint::Written.reach(self.crash_at);
        let part = self.folder.join(format!("{name}{PART}"));
        let no = |why: String| JournalError::NoArchive { name: name.into(), why };
        let io = |source| JournalError::Io { path: part.clone(), source };
        let contents = File::open(&part).map_err(ArchiveError::from);
        let contents = contents.and_then(|file| Contents::read(BufReader::new(file)));
        let contents = contents.map_err(|error| no(error.to_string()))?;
        if contents.digest != written.digest {
            return Err(no("the disk does not give back what was written".into()));
        }
        contents.check(key).map_err(|error| no(error.to_string()))?;
        fs::rename(&part, self.folder.join(name)).map_err(io)?;
        synced(&self.folder).map_err(io)?;
        #[cfg(feature = "controls")]
        CrashPoint::Named.reach(self.crash_at);
        Ok(())
    }

    /// Removes a file of it, where it is there.
    pub(crate) fn remove(&self, name: &str) -> Result<(), JournalError> {
        let path = self.folder.join(plain(name)?);
        absent(fs::remove_file(&path)).map_err(|source| JournalError::Io { path, source })
    }

    /// The files of archives that are here, named by the journal or not, and what a crash left of half ones.
    fn names(&self) -> Result<Vec<String>, JournalError> {
        let io = |source| JournalError::Io { path: self.folder.clone(), source };
        let mut names = Vec::new();
        for found in fs::read_dir(&self.folder).map_err(io)? {
            names.extend(found.map_err(io)?.file_name().into_string());
        }
        names.retain(|name| plain(name).is_ok());
        Ok(names)
    }

    /// Whether a file of this name is here.
    pub(crate) fn has(&self, name: &str) -> bool {
        fs::symlink_metadata(self.folder.join(name)).is_ok()
    }
}

/// Waits until the disk has the names in a folder.
fn synced(folder: &Path) -> io::Result<()> {
    File::open(folder).and_then(|folder| folder.sync_all())
}

/// Where the archives of a journal lie.
fn folder(journal: &Path) -> PathBuf {
    journal.with_file_name("archive")
}

/// A name that can be one of an archive. It stands in the journal, and whoever can write there could name any
/// file of the disk.
pub(crate) fn plain(name: &str) -> Result<&str, JournalError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let is_name = name.starts_with("journal-") && name.bytes().all(is_plain) && !name.contains("..");
    if is_name { Ok(name) } else { Err(JournalError::NotAnArchive(name.into())) }
}

fn absent(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// What an archive holds.
pub(crate) struct ArchiveSummary {
    digest: Digest,
    bytes: u64,
    entries: u64,
    first: u64,
    last: u64,
    pub(crate) list: Digest,
    pub(crate) until: Timestamp,
}

impl ArchiveSummary {
    /// Writes the entries of these sessions to a file, under a checkpoint over so many, and waits for the
    /// disk.
    pub(crate) fn write(
        tx: &Tx<'_>,
        to: BufWriter<File>,
        sessions: &str,
        size: u64,
        checkpoints: Vec<Checkpoint>,
    ) -> Result<Self, JournalError> {
        let entries = entries_of(tx, sessions)?;
        let (Some((first, _)), Some((last, _))) = (entries.first(), entries.last()) else {
            return Err(StoreError::custom("there is nothing to archive").into());
        };
        if *last > size {
            return Err(StoreError::custom("what is to be archived is not signed yet").into());
        }
        let places: Vec<u64> = entries.iter().map(|(number, _)| number - 1).collect();
        let path = tree::several(tx, &places, size)?;
        let mut file = Writer::new(to);
        let (mut list, mut until) = (List::default(), Timestamp::MIN);
        file.line(&Head::new(path, checkpoints)).map_err(StoreError::custom)?;
        for (number, hash) in &entries {
            let entry = proven(tx, *number, true)?.ok_or(JournalError::Absent(*number))?;
            until = until.max(stored(entry.body.as_bytes())?.time);
            list.push(*number, hash);
            file.line(&entry).map_err(StoreError::custom)?;
        }
        let (first, last, entries) = (*first, *last, list.entries);
        file.to.flush().and_then(|()| file.to.get_ref().sync_all()).map_err(StoreError::custom)?;
        let bytes = file.bytes;
        Ok(Self { digest: file.digest(), bytes, entries, first, last, list: list.digest(), until })
    }

    pub(crate) fn file(&self, name: String) -> ArchiveFile {
        let Self { digest, bytes, entries, first, last, .. } = *self;
        ArchiveFile { name, digest, bytes, entries, first: Seq(first), last: Seq(last) }
    }
}

/// An archive that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, what } = self;
        write!(f, "the archive `{name}` {what}; put the file back from a copy: the journal itself holds")
    }
}

impl Journal {
    /// Removes what a crash left on the way in or out: half a file, an archive whose entries are all still
    /// here, and one that the journal says is gone. Any other file stays, though the journal names it not: it
    /// may be of a journal that was lost.
    ///
    /// # Errors
    /// When the folder or the journal cannot be read, or a file not be removed.
    pub async fn sweep(&self, shelf: &Shelf) -> Result<(), JournalError> {
        let archives = self.archives().await?;
        for name in shelf.names()? {
            let known = archives.iter().find(|archive| archive.file.name == name);
            let is_left = match known {
                Some(archive) => archive.removed.is_some(),
                None if name.ends_with(PART) => true,
                None => self.is_all_here(shelf.folder.join(&name)).await?,
            };
            if is_left {
                shelf.remove(&name)?;
            }
        }
        Ok(())
    }

    /// Whether a file is an archive of this journal whose entries have not left.
    async fn is_all_here(&self, path: PathBuf) -> Result<bool, JournalError> {
        let look = move |tx: &Tx<'_>| {
            let contents = open(&path).map_err(ArchiveError::from).and_then(Contents::read);
            let Ok(Contents { entries, .. }) = contents else { return Ok(false) };
            let sql = "SELECT EXISTS (SELECT 1 FROM entry WHERE seq = ?1 AND hash = ?2 AND archive IS NULL)";
            for (number, hash) in &entries {
                if !tx.query_row(sql, params![number, hash.0], |row| row.get(0))? {
                    return Ok(false);
                }
            }
            Ok(!entries.is_empty())
        };
        Ok(self.store().read(look).await?)
    }

    /// Whether each archive that is not removed is there, with every byte.
    pub(crate) async fn verify_archives(&self, archives: &[Archive]) -> Result<(), JournalError> {
        let folder = folder(self.store().path());
        let mut kept = Vec::new();
        for Archive { file, removed, .. } in archives {
            let path = folder.join(plain(&file.name)?);
            kept.extend(removed.is_none().then(|| (path, file.clone())));
        }
        // On a thread that may wait for the disk.
        let look = move |_: &Tx<'_>| Ok(kept.iter().filter_map(|(path, file)| damage(path, file)).collect());
        let found: Vec<Damage> = self.store().read(look).await?;
        if found.is_empty() { Ok(()) } else { Err(JournalError::Archives(found)) }
    }

    /// An entry out of its archive.
    pub(crate) async fn out_of_archive(
        &self,
        number: u64,
        archive: u64,
    ) -> Result<ProvenEntry, JournalError> {
        let known = self.archives().await?.into_iter().find(|known| known.entry.0 == archive);
        let archive = known.ok_or(JournalError::Absent(number))?;
        if archive.removed.is_some() {
            return Err(archive.holds(format!("entry {number}")));
        }
        let path = folder(self.store().path()).join(plain(&archive.file.name)?);
        let damaged =
            |what: String| JournalError::Archives(vec![Damage { name: archive.file.name.clone(), what }]);
        let find = move |_: &Tx<'_>| {
            let file = open(&path).map_err(ArchiveError::from);
            Ok(file.and_then(|file| archive::find(file, number)))
        };
        let found = self.store().read(find).await?.map_err(|error| damaged(says(&error)))?;
        let entry = found.ok_or_else(|| damaged(format!("does not hold entry {number}")))?;
        let is_it = match entry.open() {
            Ok(opened) => opened.chained == self.chained(Seq(number)).await?,
            Err(_) => false,
        };
        if is_it { Ok(entry) } else { Err(damaged(format!("holds another entry {number}"))) }
    }
}

/// A file that is no link.
fn open(path: &Path) -> io::Result<BufReader<File>> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
    }
    Ok(BufReader::new(File::open(path)?))
}

fn damage(path: &Path, known: &ArchiveFile) -> Option<Damage> {
    let contents = open(path).map_err(ArchiveError::from).and_then(Contents::read);
    let what = match contents {
        Ok(contents) if contents.digest == known.digest => return None,
        Ok(_) => "is another file than the one that was written".to_owned(),
        Err(error) => says(&error),
    };
    Some(Damage { name: known.name.clone(), what })
}

fn says(error: &ArchiveError) -> String {
    match error {
        ArchiveError::Io(error) if error.kind() == io::ErrorKind::NotFound => "is missing".into(),
        ArchiveError::Io(error) => format!("cannot be read: {error}"),
        error => format!("was changed: {error}"),
    }
}

/// Where a test ends this process as kill -9 would.
#[cfg(feature = "controls")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPoint {
    /// The file is on disk, and has not its name yet.
    Written,
    /// It has its name.
    Named,
    /// The entry that names it is written, and not committed.
    Entered,
    /// The rows are emptied, and that is not committed.
    Emptied,
    /// All of that is committed.
    Committed,
}

#[cfg(feature = "controls")]
impl CrashPoint {
    /// All of them, by their names.
    pub const ALL: [(&'static str, Self); 5] = [
        ("written", Self::Written),
        ("named", Self::Named),
        ("entered", Self::Entered),
        ("emptied", Self::Emptied),
        ("committed", Self::Committed),
    ];

    pub(crate) fn reach(self, crash_at: Option<Self>) {
        if crash_at == Some(self) {
            std::process::abort();
        }
    }
}
