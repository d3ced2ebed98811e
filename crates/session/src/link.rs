//! The line to the daemon: a process that listens to the outside asks there for the things that it may not do
//! itself. The line ends when the daemon ends.

use crate::{
    exit,
    packet::{self, Packet},
};
use anyhow::{Context as _, Result};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    collections::HashMap,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, PoisonError},
    thread,
};
use tokio::sync::oneshot;

/// An answer, and the descriptor that was handed over with it.
type Received<A> = (A, Option<OwnedFd>);

/// This process's end, for answers of one type.
#[derive(Debug)]
pub struct Link<A> {
    socket: Arc<OwnedFd>,
    waiting: Arc<Mutex<PendingAnswers<A>>>,
}

/// The askers that wait, by the numbers of their packets.
#[derive(Debug)]
struct PendingAnswers<A> {
    asked: u64,
    answers: HashMap<u64, oneshot::Sender<Received<A>>>,
}

impl<A: DeserializeOwned + Send + 'static> Link<A> {
    /// Listens to the daemon from now on.
    pub fn new(socket: OwnedFd) -> Self {
        let waiting = PendingAnswers { asked: 0, answers: HashMap::new() };
        let link = Self { socket: Arc::new(socket), waiting: Arc::new(Mutex::new(waiting)) };
        let (socket, waiting) = (link.socket.clone(), link.waiting.clone());
        thread::spawn(move || {
            while let Ok(Some((Packet { number, it }, fd))) = packet::receive(&*socket) {
                let asker = waiting.lock().unwrap_or_else(PoisonError::into_inner).answers.remove(&number);
                // The asker may be gone.
                asker.map(|asker| asker.send((it, fd)));
            }
            // The daemon is gone; unfinished work is noted where it has to be.
            crate::front::quit(exit::FAILED);
        });
        link
    }

    /// Asks for something.
    ///
    /// # Errors
    /// When the daemon is gone.
    pub async fn ask(&self, it: &impl Serialize) -> Result<Received<A>> {
        let (answer, answered) = oneshot::channel();
        let number = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.asked += 1;
            let number = waiting.asked;
            waiting.answers.insert(number, answer);
            number
        };
        packet::send(&*self.socket, &Packet { number, it }, None).context("the daemon has ended")?;
        answered.await.context("the daemon has ended")
    }
}
