//! Places for connections. If all are taken, the connection that has asked for nothing for the longest time
//! gives way: a request that comes one letter at a time cannot block other clients.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// All places.
pub(crate) struct Places {
    free: Arc<Semaphore>,
    taken: Mutex<Vec<Arc<Seat>>>,
    /// A connection has become silent.
    freed: Notify,
}

/// A place that is taken.
pub(crate) struct Seat {
    /// Since when the connection has asked for nothing; `None` while an answer is on its way.
    silent: Mutex<Option<Instant>>,
    /// Whether the place must be given up.
    is_going: AtomicBool,
    gone: Notify,
}

/// A connection's place.
pub(crate) struct Place {
    places: Arc<Places>,
    seat: Arc<Seat>,
    _permit: OwnedSemaphorePermit,
}

/// An answer is on its way; its connection keeps the place until this is dropped.
pub(crate) struct Busy {
    places: Arc<Places>,
    seat: Arc<Seat>,
}

impl Places {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let free = Arc::new(Semaphore::new(most));
        Arc::new(Self { free, taken: Mutex::default(), freed: Notify::new() })
    }

    /// Takes a place, for which another connection may have to give way. `None` when no connections are
    /// served any more.
    pub(crate) async fn take(self: &Arc<Self>) -> Option<Place> {
        let permit = loop {
            if let Ok(permit) = self.free.clone().try_acquire_owned() {
                break permit;
            }
            self.give_way();
            // If all connections are busy, wait for the first that finishes.
            tokio::select! {
                permit = self.free.clone().acquire_owned() => break permit.ok()?,
                () = self.freed.notified() => {}
            }
        };
        let silent = Mutex::new(Some(Instant::now()));
        let seat = Arc::new(Seat { silent, is_going: AtomicBool::new(false), gone: Notify::new() });
        lock(&self.taken).push(seat.clone());
        Some(Place { places: self.clone(), seat, _permit: permit })
    }

    /// Ends the connection that has been silent longest, unless one is already about to go.
    fn give_way(&self) {
        let taken = lock(&self.taken);
        if taken.iter().any(|seat| seat.is_going.load(Ordering::Relaxed)) {
            return;
        }
        let silent = taken.iter().filter_map(|seat| Some((lock(&seat.silent).as_ref().copied()?, seat)));
        if let Some((_, seat)) = silent.min_by_key(|(since, _)| *since) {
            seat.is_going.store(true, Ordering::Relaxed);
            seat.gone.notify_one();
        }
    }
}

impl Place {
    /// Waits until the place must be given up.
    pub(crate) async fn is_over(&self) {
        self.seat.gone.notified().await;
    }

    /// From now on, an answer is on its way there.
    pub(crate) fn busy(&self) -> Busy {
        *lock(&self.seat.silent) = None;
        Busy { places: self.places.clone(), seat: self.seat.clone() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.places.taken).retain(|seat| !Arc::ptr_eq(seat, &self.seat));
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        *lock(&self.seat.silent) = Some(Instant::now());
        self.places.freed.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
