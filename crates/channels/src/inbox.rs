//! Deliveries of servers to a channel: each waits here until the channel's process has noted it, or found it
//! wrong, and its server is told that.

use crate::need::Taken;
use bailey_web::{Answer, Delivery};
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    time::Duration,
};
use tokio::{
    sync::{Notify, oneshot},
    time::timeout,
};

/// How many deliveries wait at once, and for how long.
const WAITING_MAX: usize = 64;
const WAIT_MAX: Duration = Duration::from_secs(20);

/// The deliveries that wait.
#[derive(Default)]
pub struct Inbox {
    waiting: RefCell<VecDeque<(Delivery, oneshot::Sender<Taken>)>>,
    /// The delivery that the process looks at.
    taken: RefCell<Option<oneshot::Sender<Taken>>>,
    came: Notify,
    /// How many processes have asked and ended.
    left: Cell<u64>,
}

impl Inbox {
    /// Delivers something and returns the answer for its server. A server that is told of a failure delivers
    /// it again.
    pub async fn deliver(&self, delivery: Delivery) -> Answer {
        let (tell, told) = oneshot::channel();
        {
            let mut waiting = self.waiting.borrow_mut();
            waiting.retain(|(_, asker)| !asker.is_closed());
            if waiting.len() >= WAITING_MAX {
                return Answer::Later(1);
            }
            waiting.push_back((delivery, tell));
        }
        self.came.notify_one();
        match timeout(WAIT_MAX, told).await {
            Ok(Ok(Taken::Noted)) => Answer::Done(String::new()),
            Ok(Ok(Taken::Unsigned)) => Answer::Unknown,
            Ok(Ok(Taken::Wrong(why))) => Answer::Refused(why),
            // The channel's process ended, or was not there.
            Ok(Err(_)) | Err(_) => Answer::Later(5),
        }
    }

    /// The next delivery, for the channel's process, which reports the outcome of the one before; `None` once
    /// that process has ended. `left` is [`Inbox::left`] from when it asked.
    pub async fn next(&self, left: u64, taken: Option<Taken>) -> Option<Delivery> {
        // A new process asks without an outcome: the delivery before is delivered again.
        let before = self.taken.borrow_mut().take();
        before.zip(taken).map(|(asker, taken)| asker.send(taken));
        while self.left.get() == left {
            let next = self.waiting.borrow_mut().pop_front();
            if let Some((delivery, asker)) = next.filter(|(_, asker)| !asker.is_closed()) {
                *self.taken.borrow_mut() = Some(asker);
                return Some(delivery);
            }
            self.came.notified().await;
        }
        None
    }

    /// How many processes have ended so far.
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// Notes that the channel's process has ended: it is given nothing more, and the delivery that it looked
    /// at is delivered again.
    pub fn leave(&self) {
        self.left.set(self.left.get() + 1);
        self.taken.borrow_mut().take();
        self.came.notify_waiters();
    }
}
