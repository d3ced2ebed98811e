//! The threads that read: at most two, each with its own connection, started when first needed.

use crate::{StoreError, Tx, open, writer::guarded};
use rusqlite::Connection;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
};
use tokio::sync::mpsc;

/// Connections that read at once. A third would wait for the same two cores and the same disk.
const READERS_MAX: usize = 2;

/// Reads that may wait for one connection.
const QUEUE_MAX: usize = 256;

/// A read with its way back to the caller, run on a connection or failed with the reason there is none.
pub(crate) type Job = Box<dyn FnOnce(Result<&Connection, StoreError>) + Send>;

/// The readers of one store.
#[derive(Default)]
pub(crate) struct Readers {
    running: Mutex<Vec<Reader>>,
}

struct Reader {
    jobs: mpsc::Sender<(Job, Ticket)>,
    waiting: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

/// A place in a reader's queue, free again when the read is done or given up.
pub(crate) struct Ticket(Arc<AtomicUsize>);

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Readers {
    /// The queue of an idle reader; a new one's while there is room; else the shortest.
    pub(crate) fn pick(
        &self,
        path: &Arc<PathBuf>,
    ) -> Result<(mpsc::Sender<(Job, Ticket)>, Ticket), StoreError> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.len() < READERS_MAX && running.iter().all(|reader| reader.queued() > 0) {
            running.push(start(Arc::clone(path))?);
        }
        let shortest = running.iter().min_by_key(|reader| reader.queued());
        let reader = shortest.ok_or_else(|| StoreError::Closed { path: path.to_path_buf() })?;
        reader.waiting.fetch_add(1, Ordering::Relaxed);
        Ok((reader.jobs.clone(), Ticket(Arc::clone(&reader.waiting))))
    }

    /// Lets the threads finish what is waiting and end.
    pub(crate) fn close(&mut self) -> Vec<JoinHandle<()>> {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner);
        running.drain(..).map(|reader| reader.thread).collect()
    }
}

impl Reader {
    fn queued(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

fn start(path: Arc<PathBuf>) -> Result<Reader, StoreError> {
    let (jobs, queue) = mpsc::channel(QUEUE_MAX);
    let file = path.to_path_buf();
    let thread = thread::Builder::new().name("store-read".into()).spawn(move || serve(&path, queue));
    let thread = thread.map_err(|source| StoreError::Access { path: file, source: Arc::new(source) })?;
    Ok(Reader { jobs, waiting: Arc::default(), thread })
}

fn serve(path: &Path, mut queue: mpsc::Receiver<(Job, Ticket)>) {
    let mut connection = None;
    while let Some((job, _ticket)) = queue.blocking_recv() {
        // Tried again for each read until it succeeds: what failed may have been put right.
        let opened = match connection.take() {
            Some(opened) => Ok(opened),
            None => open::read_only(path),
        };
        match opened {
            Ok(opened) => job(Ok(connection.insert(opened))),
            Err(error) => job(Err(error)),
        }
    }
}

/// Runs a closure on one snapshot of the database.
pub(crate) fn snapshot<T>(
    connection: &Connection,
    closure: impl FnOnce(&Tx<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    connection.prepare_cached("BEGIN")?.execute([])?;
    let result = guarded(|| closure(&Tx::new(connection)));
    if !connection.is_autocommit() {
        connection.prepare_cached("COMMIT")?.execute([])?;
    }
    result
}
