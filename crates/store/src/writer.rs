//! The thread that writes: group commit.
//!
//! INVARIANT: a closure's value reaches its caller only after the COMMIT that holds its rows.

use crate::{
    StoreError, Tx,
    open::{BUSY_TIMEOUT, version},
    turn::{Turn, Turns},
};
use rusqlite::Connection;
use std::{
    any::Any,
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, oneshot};

/// Writes that one transaction takes at most. More would make the first wait for the last without saving
/// much: the cost of a commit is spread thin long before.
pub(crate) const GROUP_MAX: usize = 128;

/// How long a write lasts once its value was handed over. A commit of the higher grade hardens everything
/// committed before it, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grade {
    /// It survives the end of the process, `kill -9` included (`synchronous=NORMAL`).
    Normal,
    /// It survives the loss of power (`synchronous=FULL`).
    Full,
}

/// What the thread is asked for.
pub(crate) enum Job {
    /// A closure to run in the group's transaction.
    Write(Grade, Box<dyn Write>),
    /// A short read on this connection, after the writes that came before it.
    Glance(Box<dyn FnOnce(&Connection) + Send>),
    /// A checkpoint of the whole log, outside any transaction.
    Checkpoint(oneshot::Sender<Result<(), StoreError>>),
    /// Never to wait for the disk again, whatever the grade.
    #[cfg(feature = "controls")]
    Careless,
}

/// One write with its way back to the caller; the value's type is known only inside.
pub(crate) trait Write: Send {
    /// Runs the closure and keeps its value.
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), StoreError>;
    /// Hands the kept value over, or the error.
    fn settle(self: Box<Self>, result: Result<(), StoreError>);
}

/// A write whose closure returns `T`.
pub(crate) struct Request<T, F> {
    closure: Option<F>,
    value: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Request<T, F> {
    pub(crate) fn new(closure: F, reply: oneshot::Sender<Result<T, StoreError>>) -> Self {
        Self { closure: Some(closure), value: None, reply }
    }
}

impl<T, F> Write for Request<T, F>
where
    T: Send,
    F: FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send,
{
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        if let Some(closure) = self.closure.take() {
            self.value = Some(guarded(|| closure(tx))?);
        }
        Ok(())
    }

    fn settle(self: Box<Self>, result: Result<(), StoreError>) {
        let Self { value, reply, .. } = *self;
        let value = result.and_then(|()| value.ok_or(StoreError::Closed { path: PathBuf::new() }));
        // A caller that went away does not want to know.
        let _ = reply.send(value);
    }
}

/// Runs foreign code; a panic becomes an error, so that the thread lives on.
pub(crate) fn guarded<T>(code: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(code)).unwrap_or_else(|payload| {
        Err(StoreError::Panicked { path: PathBuf::new(), message: message(payload.as_ref()) })
    })
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").into()
}

/// The writing thread's state.
pub(crate) struct Writer {
    path: Arc<PathBuf>,
    connection: Connection,
    turns: Turns,
    /// The schema's version that this program writes.
    schema: u32,
    grade: Option<Grade>,
    #[cfg(feature = "controls")]
    careless: bool,
}

impl Writer {
    pub(crate) fn new(path: Arc<PathBuf>, connection: Connection, turns: Turns, schema: u32) -> Self {
        Self {
            path,
            connection,
            turns,
            schema,
            grade: None,
            #[cfg(feature = "controls")]
            careless: false,
        }
    }

    /// Works until the last handle is dropped and the queue is empty.
    pub(crate) fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        while let Some(first) = jobs.blocking_recv() {
            let mut group = VecDeque::new();
            let mut next = Some(first);
            while let Some(job) = next.take() {
                match job {
                    Job::Write(grade, write) => group.push_back((grade, write)),
                    Job::Glance(look) => {
                        self.commit(&mut group);
                        look(&self.connection);
                    }
                    Job::Checkpoint(reply) => {
                        self.commit(&mut group);
                        let _ = reply.send(self.checkpoint().map_err(|error| error.at(&self.path)));
                    }
                    #[cfg(feature = "controls")]
                    Job::Careless => self.careless = true,
                }
                if group.len() < GROUP_MAX {
                    next = jobs.try_recv().ok();
                }
            }
            self.commit(&mut group);
        }
    }

    /// Commits a group. A write that takes the whole transaction down (a full disk) fails those before it;
    /// those after it get a transaction of their own.
    fn commit(&mut self, group: &mut VecDeque<(Grade, Box<dyn Write>)>) {
        while let Some(grade) = group.iter().map(|(grade, _)| *grade).max() {
            let (done, result) = match self.begin(grade) {
                Ok(_turn) => self.run_group(group),
                Err(error) => (group.drain(..).map(|(_, write)| write).collect(), Err(error)),
            };
            let result = result.map_err(|error| error.at(&self.path));
            done.into_iter().for_each(|write| write.settle(result.clone()));
        }
    }

    /// Runs writes until the group is empty or the transaction is gone. Returns those that share its fate.
    fn run_group(
        &self,
        group: &mut VecDeque<(Grade, Box<dyn Write>)>,
    ) -> (Vec<Box<dyn Write>>, Result<(), StoreError>) {
        let mut done = Vec::with_capacity(group.len());
        while let Some((_, mut write)) = group.pop_front() {
            match self.run_one(write.as_mut()) {
                Ok(()) => done.push(write),
                Err(error) => {
                    let error = error.at(&self.path);
                    write.settle(Err(error.clone()));
                    if self.connection.is_autocommit() {
                        let path = self.path.to_path_buf();
                        return (done, Err(StoreError::RolledBack { path, cause: Arc::new(error) }));
                    }
                }
            }
        }
        let result = self.execute("COMMIT");
        if result.is_err() {
            // The first error counts; when this one fails as well, `begin` clears the rest.
            let _ = self.execute("ROLLBACK");
        }
        (done, result)
    }

    fn run_one(&self, write: &mut dyn Write) -> Result<(), StoreError> {
        self.execute("SAVEPOINT bailey_write")?;
        let mut result = write.run(&mut Tx::new(&self.connection));
        if self.connection.is_autocommit() {
            let ended = || Err(StoreError::custom("the write ended the store's transaction by hand"));
            return result.and_then(|()| ended());
        }
        if result.is_err() {
            result = self.execute("ROLLBACK TO bailey_write").and(result);
        }
        self.execute("RELEASE bailey_write").and(result)
    }

    /// Sets the grade, waits for this process's turn, and takes the write lock.
    fn begin(&mut self, grade: Grade) -> Result<Turn, StoreError> {
        if !self.connection.is_autocommit() {
            self.execute("ROLLBACK")?;
        }
        #[cfg(feature = "controls")]
        if self.careless {
            self.connection.execute_batch("PRAGMA synchronous = OFF")?;
            self.grade = Some(grade);
        }
        if self.grade != Some(grade) {
            self.connection.execute_batch(match grade {
                Grade::Normal => "PRAGMA synchronous = NORMAL",
                Grade::Full => "PRAGMA synchronous = FULL",
            })?;
            self.grade = Some(grade);
        }
        let turn = self.turns.next(BUSY_TIMEOUT, || commits(&self.connection).ok())?;
        let start = Instant::now();
        loop {
            match self.execute("BEGIN IMMEDIATE") {
                // Somebody who does not wait in the row. BUSY_SNAPSHOT and BUSY_RECOVERY come without
                // waiting: somebody was faster, not slow.
                Err(StoreError::Busy { .. }) if start.elapsed() < BUSY_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                result => {
                    result?;
                    self.is_ours()?;
                    return Ok(turn);
                }
            }
        }
    }

    /// That the schema is not a newer one: a newer program may take the file over while this one has it open.
    fn is_ours(&self) -> Result<(), StoreError> {
        let found = version(&self.connection)?;
        if found > self.schema {
            self.execute("ROLLBACK")?;
            return Err(StoreError::TooNew { path: PathBuf::new(), found, supported: self.schema });
        }
        Ok(())
    }

    fn execute(&self, sql: &str) -> Result<(), StoreError> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    fn checkpoint(&self) -> Result<(), StoreError> {
        let busy: bool =
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if busy { Err(StoreError::Busy { path: PathBuf::new() }) } else { Ok(()) }
    }
}

/// A number that changes with each commit of somebody else.
fn commits(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA data_version", [], |row| row.get(0))
}
