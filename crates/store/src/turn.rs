//! Whose turn it is to write, among all processes that share a database.
//!
//! Whoever finds SQLite's own lock taken sleeps and looks again, so that among hundreds of writers some find
//! it taken each time they look. The kernel keeps those who wait for the lock of a file (flock(2)) in a row,
//! and wakes nobody in vain. That lock orders who writes and protects nothing: a program which knows nothing
//! of it is held back by SQLite's.

use crate::{StoreError, open::beside};
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::Duration,
};

/// The row that writers of one database wait in.
#[derive(Debug)]
pub(crate) struct Turns {
    file: Arc<File>,
    /// The same file, opened once more, for the thread that waits: what waits and what looks whether nobody
    /// does are two, or the end of one's turn would be that of the other's. Opened ahead, because a process
    /// that has bound itself opens nothing.
    waits: Arc<File>,
    waiter: Option<Waiter>,
}

/// Held by whoever writes, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn(Arc<File>);

/// The thread that waits in the row, since nobody can leave it after a time.
#[derive(Debug)]
struct Waiter {
    asks: Sender<()>,
    turns: Receiver<io::Result<Turn>>,
    place: Arc<Mutex<QueueState>>,
}

/// Whether the thread stands in the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueueState {
    Outside,
    Waiting,
    /// For nobody any more: a turn that comes is passed on.
    Abandoned,
}

impl Turns {
    /// The row of a database, beside its file.
    pub(crate) fn open(database: &Path) -> Result<Self, StoreError> {
        let path = beside(database, "-turn");
        let open = || {
            let open = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
            open.map_err(|source| StoreError::Access { path: path.clone(), source: Arc::new(source) })
        };
        let (file, waits) = (open()?, open()?);
        // As SQLite does with its own: one that root made in passing must not keep the owner out.
        if let (Ok(whose), Ok(mine)) = (fs::metadata(database), file.metadata())
            && (whose.uid(), whose.gid()) != (mine.uid(), mine.gid())
        {
            let _ = fchown(&file, Some(whose.uid()), Some(whose.gid()));
        }
        Ok(Self { file: Arc::new(file), waits: Arc::new(waits), waiter: None })
    }

    /// Waits for this process's turn, for as long as others have theirs: `mark` is another one after each
    /// commit.
    ///
    /// # Errors
    /// `Busy` when nobody committed for as long as `patience`; `Access` when there can be no lock, or no
    /// thread.
    pub(crate) fn next<M: PartialEq>(
        &mut self,
        patience: Duration,
        mark: impl Fn() -> M,
    ) -> Result<Turn, StoreError> {
        match self.file.try_lock() {
            Ok(()) => return Ok(Turn(Arc::clone(&self.file))),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(access(error)),
        }
        let waiter = match &mut self.waiter {
            Some(waiter) => waiter,
            none => none.insert(Waiter::start(Arc::clone(&self.waits)).map_err(access)?),
        };
        let mut last = mark();
        waiter.ask();
        loop {
            match waiter.turns.recv_timeout(patience) {
                Ok(turn) => return turn.map_err(access),
                Err(RecvTimeoutError::Timeout) => {
                    let now = mark();
                    if now == last {
                        let came = waiter.give_up();
                        return came.map_or(Err(StoreError::Busy { path: PathBuf::new() }), |turn| {
                            turn.map_err(access)
                        });
                    }
                    last = now;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(StoreError::Closed { path: PathBuf::new() });
                }
            }
        }
    }
}

impl Waiter {
    fn start(file: Arc<File>) -> io::Result<Self> {
        let (asks, asked) = channel();
        let (bring, turns) = channel();
        let place = Arc::new(Mutex::new(QueueState::Outside));
        let of_thread = Arc::clone(&place);
        let wait = move || {
            while let Ok(()) = asked.recv() {
                let turn = file.lock().map(|()| Turn(Arc::clone(&file)));
                let mut place = of_thread.lock().unwrap_or_else(PoisonError::into_inner);
                if *place == QueueState::Waiting {
                    // Where the store is gone, it ends with the channel.
                    let _ = bring.send(turn);
                }
                *place = QueueState::Outside;
            }
        };
        thread::Builder::new().name("store-turn".into()).spawn(wait)?;
        Ok(Self { asks, turns, place })
    }

    /// Asks for a turn; a place that was abandoned serves as well.
    fn ask(&self) {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        if *place == QueueState::Outside {
            // Where the thread is gone, its other channel says so.
            let _ = self.asks.send(());
        }
        *place = QueueState::Waiting;
    }

    /// Abandons the place, unless the turn has just come.
    fn give_up(&self) -> Option<io::Result<Turn>> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        if *place == QueueState::Outside {
            return self.turns.try_recv().ok();
        }
        *place = QueueState::Abandoned;
        None
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // It ends with the file at the latest.
        let _ = self.0.unlock();
    }
}

fn access(error: io::Error) -> StoreError {
    StoreError::Access { path: PathBuf::new(), source: Arc::new(error) }
}

#[cfg(test)]
mod tests;
