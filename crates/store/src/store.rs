//! The handle: it sends closures to the threads and waits for their values.

use crate::{
    Migration, StoreError, Tx, open,
    reader::{self, Readers},
    turn::Turns,
    writer::{GROUP_MAX, Grade, Job, Request, Writer},
};
use std::{
    fmt,
    fs::{self, File},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, JoinHandle},
};
use tokio::sync::{mpsc, oneshot};

/// Writes that may wait; whoever brings one more waits with it.
const QUEUE_MAX: usize = 4 * GROUP_MAX;

/// A database file that is open and up to date, and that no thread works on yet. While it is open its log and
/// its shared memory exist, so that a process which will make no file later can open it first.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    connection: rusqlite::Connection,
    turns: Turns,
    /// The schema's version that this program writes.
    schema: u32,
}

impl Database {
    /// As [`Store::open`], without its threads.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open(path: &Path, migrations: &[Migration]) -> Result<Self, StoreError> {
        let connection = open::writable(path, migrations).map_err(|error| error.at(path))?;
        let schema = open::supported(migrations);
        Ok(Self { path: path.to_path_buf(), connection, turns: Turns::open(path)?, schema })
    }

    /// All files that the database consists of.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        ["", "-wal", "-shm"].map(|suffix| open::beside(&self.path, suffix)).into()
    }

    /// Runs a closure over what the file holds now, on this thread: for whoever may start no other one yet.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn glance<T>(&self, closure: impl FnOnce(&Tx<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        reader::snapshot(&self.connection, closure).map_err(|error| error.at(&self.path))
    }
}

/// Runs a closure on an empty database of these tables that is in memory alone, and gone afterwards.
///
/// # Errors
/// The closure's error, or SQLite's.
pub fn in_memory<T>(
    migrations: &[Migration],
    closure: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let connection = open::in_memory(migrations)?;
    closure(&mut Tx::new(&connection))
}

/// A handle to one database file; clones share its threads.
///
/// When the last handle is dropped, what is waiting is finished, the file is closed and the threads end;
/// dropping waits for that. A closure must not wait for another write or read of the same store.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Threads>,
}

/// The threads that work on a file.
struct Threads {
    path: Arc<PathBuf>,
    jobs: Option<mpsc::Sender<Job>>,
    writer: Option<JoinHandle<()>>,
    readers: Readers,
}

impl Store {
    /// Opens the file, creating it with mode 600, and brings its schema to the last of `migrations`, which
    /// are in ascending order of version.
    ///
    /// # Errors
    /// `TooNew` when the file's version is above the last migration's, `NotADatabase` for a file that is none
    /// or not Bailey's, `ReadOnly`, `Access`, `Busy`, `Corrupt`, or a migration's own error.
    pub fn open(path: &Path, migrations: &[Migration]) -> Result<Self, StoreError> {
        Self::start(Database::open(path, migrations)?)
    }

    /// Puts the threads to work on a file that is open.
    ///
    /// # Errors
    /// `Access` when there can be no thread.
    pub fn start(database: Database) -> Result<Self, StoreError> {
        let Database { path, connection, turns, schema } = database;
        let path = Arc::new(path);
        let (jobs, queue) = mpsc::channel(QUEUE_MAX);
        let writer = Writer::new(Arc::clone(&path), connection, turns, schema);
        let thread = thread::Builder::new().name("store-write".into()).spawn(move || writer.run(queue));
        let thread = thread
            .map_err(|source| StoreError::Access { path: path.to_path_buf(), source: Arc::new(source) })?;
        let inner = Threads { path, jobs: Some(jobs), writer: Some(thread), readers: Readers::default() };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Runs `closure` in a write transaction (`BEGIN IMMEDIATE`, shared with other writes of the moment) and
    /// hands its value over after the commit. Once it waits in the queue it is done, even if the caller stops
    /// waiting.
    ///
    /// # Errors
    /// The closure's error, after its writes alone were rolled back; `Panicked`; `Busy`, `Full`, `RolledBack`
    /// or another error of the commit, which fails the whole group; `Closed`.
    pub async fn write<T: Send + 'static>(
        &self,
        grade: Grade,
        closure: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, value) = oneshot::channel();
        let job = Job::Write(grade, Box::new(Request::new(closure, reply)));
        self.jobs()?.send(job).await.map_err(|_| self.closed())?;
        self.located(value.await)
    }

    /// As [`write`](Self::write), for a thread that is not part of an asynchronous runtime.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Panics
    /// When called from an asynchronous task, which it would block.
    pub fn write_blocking<T: Send + 'static>(
        &self,
        grade: Grade,
        closure: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, value) = oneshot::channel();
        let job = Job::Write(grade, Box::new(Request::new(closure, reply)));
        self.jobs()?.blocking_send(job).map_err(|_| self.closed())?;
        self.located(value.blocking_recv())
    }

    /// Runs `closure` on one snapshot of the database, on a connection that cannot write. It sees every write
    /// whose value was handed over.
    ///
    /// # Errors
    /// The closure's error, `Panicked`, `Closed`, or SQLite's.
    pub async fn read<T: Send + 'static>(
        &self,
        closure: impl FnOnce(&Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (job, value) = read_job(closure);
        let (queue, ticket) = self.inner.readers.pick(&self.inner.path)?;
        queue.send((job, ticket)).await.map_err(|_| self.closed())?;
        self.located(value.await)
    }

    /// A short read on the connection that writes: it waits for the writes before it, and saves a command
    /// that reads little a connection and a thread of its own. What reads more than a few rows would hold up
    /// the writes.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn glance<T: Send + 'static>(
        &self,
        closure: impl FnOnce(&Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, value) = oneshot::channel();
        let look = Job::Glance(Box::new(move |connection| {
            let _ = reply.send(reader::snapshot(connection, closure));
        }));
        self.jobs()?.send(look).await.map_err(|_| self.closed())?;
        self.located(value.await)
    }

    /// As [`read`](Self::read), for a thread that is not part of an asynchronous runtime.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    ///
    /// # Panics
    /// When called from an asynchronous task, which it would block.
    pub fn read_blocking<T: Send + 'static>(
        &self,
        closure: impl FnOnce(&Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (job, value) = read_job(closure);
        let (queue, ticket) = self.inner.readers.pick(&self.inner.path)?;
        queue.blocking_send((job, ticket)).map_err(|_| self.closed())?;
        self.located(value.blocking_recv())
    }

    /// Moves the whole write-ahead log into the database file and empties it.
    ///
    /// # Errors
    /// `Busy` when a reader still needs the log, or SQLite's.
    pub async fn checkpoint(&self) -> Result<(), StoreError> {
        let (reply, done) = oneshot::channel();
        self.jobs()?.send(Job::Checkpoint(reply)).await.map_err(|_| self.closed())?;
        self.located(done.await)
    }

    /// As [`checkpoint`](Self::checkpoint), for a thread that is not part of an asynchronous runtime.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    ///
    /// # Panics
    /// When called from an asynchronous task, which it would block.
    pub fn checkpoint_blocking(&self) -> Result<(), StoreError> {
        let (reply, done) = oneshot::channel();
        self.jobs()?.blocking_send(Job::Checkpoint(reply)).map_err(|_| self.closed())?;
        self.located(done.blocking_recv())
    }

    /// From now on no write waits for the disk: what a test of power loss must notice.
    ///
    /// # Errors
    /// `Closed`.
    #[cfg(feature = "controls")]
    pub async fn careless(&self) -> Result<(), StoreError> {
        self.jobs()?.send(Job::Careless).await.map_err(|_| self.closed())
    }

    /// Writes a copy of the database as it is at one moment, while others go on; a file that is there is not
    /// replaced.
    ///
    /// # Errors
    /// `Full` names the copy: then a part of it may be there. Others name the database.
    pub async fn copy_to(&self, copy: &Path) -> Result<(), StoreError> {
        let (from, to) = (self.path().to_path_buf(), copy.to_path_buf());
        let copied = tokio::task::spawn_blocking(move || {
            let connection = open::read_only(&from)?;
            let name = to.to_str().ok_or_else(|| StoreError::custom("the copy's name is not UTF-8"))?;
            connection.execute("VACUUM INTO ?1", [name])?;
            fs::set_permissions(&to, fs::Permissions::from_mode(0o600))
                .and_then(|()| File::open(&to)?.sync_all())
                .map_err(StoreError::custom)
        });
        copied.await.map_err(StoreError::custom)?.map_err(|error| match error {
            error @ (StoreError::Full { .. } | StoreError::ReadOnly { .. }) => error.at(copy),
            error => error.at(self.path()),
        })
    }

    /// Checks every page, index and foreign key; an empty list means that all is well. It reads the whole
    /// file.
    ///
    /// # Errors
    /// SQLite's, when the file cannot even be read.
    pub async fn integrity(&self) -> Result<Vec<String>, StoreError> {
        self.read(|tx| {
            let mut found = tx.query_all("PRAGMA integrity_check(100)", [], |row| row.get::<_, String>(0))?;
            found.retain(|line| line != "ok");
            found.extend(tx.query_all("PRAGMA foreign_key_check", [], |row| {
                Ok(format!("a row of `{}` points nowhere", row.get::<_, String>(0)?))
            })?);
            Ok(found)
        })
        .await
    }

    fn jobs(&self) -> Result<&mpsc::Sender<Job>, StoreError> {
        self.inner.jobs.as_ref().ok_or_else(|| self.closed())
    }

    fn closed(&self) -> StoreError {
        StoreError::Closed { path: self.inner.path.to_path_buf() }
    }

    fn located<T>(
        &self,
        reply: Result<Result<T, StoreError>, oneshot::error::RecvError>,
    ) -> Result<T, StoreError> {
        reply.map_err(|_| self.closed())?.map_err(|error| error.at(&self.inner.path))
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.inner.path.display())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.jobs = None;
        let threads = self.readers.close().into_iter().chain(self.writer.take());
        // A closure may hold the last handle: a thread cannot wait for itself, and ends by itself.
        for thread in threads.filter(|thread| thread.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    }
}

fn read_job<T: Send + 'static>(
    closure: impl FnOnce(&Tx<'_>) -> Result<T, StoreError> + Send + 'static,
) -> (reader::Job, oneshot::Receiver<Result<T, StoreError>>) {
    let (reply, value) = oneshot::channel();
    let job: reader::Job = Box::new(move |connection| {
        let _ = reply.send(connection.and_then(|connection| reader::snapshot(connection, closure)));
    });
    (job, value)
}
