//! The line to the daemon: what this process may not do itself, it asks for there. Its end is the daemon's.

use crate::{
    daemon::bridge::{self, Answer, Answered, Asked, What},
    exit,
};
use anyhow::{Context as _, Result};
use bailey_channels::{Conversation, Sender};
use std::{
    collections::HashMap,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, PoisonError},
    thread,
};
use tokio::sync::oneshot;

type Came = (Answer, Option<OwnedFd>);

/// Ours.
#[derive(Debug)]
pub(super) struct Link {
    socket: Arc<OwnedFd>,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    asked: u64,
    answers: HashMap<u64, oneshot::Sender<Came>>,
}

impl Link {
    /// Listens to the daemon from now on.
    pub(super) fn new(socket: OwnedFd) -> Self {
        let link = Self { socket: Arc::new(socket), waiting: Arc::default() };
        let (socket, waiting) = (link.socket.clone(), link.waiting.clone());
        thread::spawn(move || {
            while let Ok(Some((Answered { number, answer }, fd))) = bridge::receive(&*socket) {
                let asker = waiting.lock().unwrap_or_else(PoisonError::into_inner).answers.remove(&number);
                // Who asked may be gone.
                asker.map(|asker| asker.send((answer, fd)));
            }
            // There is no daemon any more, and the notes know how far this came.
            exit::now(exit::FAILED);
        });
        link
    }

    /// Asks for something, for somebody.
    ///
    /// # Errors
    /// When there is no daemon any more.
    pub(super) async fn ask(&self, who: &Sender, at: &Conversation, what: What) -> Result<Came> {
        let (answer, answered) = oneshot::channel();
        let number = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.asked += 1;
            let number = waiting.asked;
            waiting.answers.insert(number, answer);
            number
        };
        let asked = Asked { number, id: who.id.clone(), name: who.name.clone(), at: at.0.clone(), what };
        bridge::send(&*self.socket, &asked, None).context("the daemon has ended")?;
        answered.await.context("the daemon has ended")
    }
}
