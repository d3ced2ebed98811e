//! A worker, from the runtime's side: a sandbox that is asked, answers, and is kept for a moment where the
//! next request follows at once.
//!
//! To make a sandbox costs more than most of what a worker does in it, and nearly every read is two requests:
//! its path is made canonical, the gate decides, the file is read. So a worker that made paths canonical
//! stays for what is asked next. It saw names only; one that saw what is in a file answers once and is used
//! up, so that nothing a file does to it can answer for another.

use crate::{
    running::{Story, hear},
    worker::{Request, Response},
};
use bailey_protocol::{Enforced, Isolation, SessionId};
use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        UnixDatagram,
        unix::pipe::{Receiver, Sender},
    },
};
use tokio_util::sync::CancellationToken;

/// The most bytes of a reply.
const REPLY_BYTES_MAX: usize = 64 << 20;
/// How long a worker is kept. What it sees of the project is at most so much older than the next request.
const PATIENCE: Duration = Duration::from_millis(20);

/// A worker while it lives.
#[derive(Debug)]
pub(crate) struct Clerk {
    pub(crate) session: SessionId,
    pub(crate) isolation: Isolation,
    pub(crate) stdout: Receiver,
    /// Nothing is read of it; closed, it would end a worker that writes there.
    pub(crate) _stderr: Receiver,
    pub(crate) control: UnixDatagram,
    /// Where further requests go.
    pub(crate) requests: Sender,
    /// What was heard so far.
    pub(crate) story: Story,
}

/// How much of a worker is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// One reply; the worker stays.
    Reply,
    /// Its last reply, and its end.
    End,
}

impl Clerk {
    /// Asks for one thing more.
    ///
    /// # Errors
    /// When the worker is gone; then it did not get the whole request, and did nothing.
    pub(crate) async fn ask(&mut self, request: &Request) -> io::Result<()> {
        let mut line = serde_json::to_vec(request).map_err(io::Error::other)?;
        line.push(b'\n');
        self.requests.write_all(&line).await
    }

    /// Hears the worker. A reply is none when it did not come whole; with [`Until::Reply`] that means that
    /// the worker is gone, too.
    pub(crate) async fn hear(&mut self, until: Until, cancel: &CancellationToken) -> Option<Response> {
        let Self { stdout, control, story, .. } = self;
        let mut bytes = Vec::new();
        let (mut has_ended, mut is_over, mut asked) = (false, false, false);
        loop {
            let has_line = bytes.last() == Some(&b'\n');
            let is_enough = match until {
                Until::Reply => has_line && story.enforced.is_some(),
                Until::End => false,
            };
            if is_enough || (has_ended && is_over) {
                return serde_json::from_slice(&bytes).ok();
            }
            tokio::select! {
                // First, so that what is cancelled does not wait for a reply that never ends.
                biased;
                () = cancel.cancelled(), if !asked => {
                    asked = true;
                    // When it is gone already, its end is on the way.
                    drop(control.try_send(b"t"));
                }
                heard = hear(control), if !is_over => match heard {
                    Some((message, _)) => story.take(message),
                    None => is_over = true,
                },
                read = stdout.read_buf(&mut bytes), if !has_ended => {
                    has_ended = !read.is_ok_and(|read| read > 0);
                    if bytes.len() > REPLY_BYTES_MAX {
                        // It is read on for nothing, so that the worker need not wait for us.
                        bytes.clear();
                        bytes.push(b'!');
                    }
                }
            }
        }
    }

    /// What its walls are; none before it said so.
    pub(crate) fn enforced(&self) -> Option<&Enforced> {
        self.story.enforced.as_ref()
    }

    /// Sends it away, and waits until nothing is left of it.
    async fn dismiss(mut self) {
        drop(self.requests.shutdown().await);
        let Self { control, requests, .. } = self;
        drop(requests);
        while hear(&control).await.is_some() {}
    }
}

/// Workers that stay for the next request. All clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct IdleClerks {
    clerks: Arc<Mutex<Vec<(u64, Clerk)>>>,
    /// Held while some are sent away: whoever needs them gone waits for those that another sends.
    leaving: Arc<tokio::sync::Mutex<u64>>,
}

impl IdleClerks {
    /// Keeps a worker for a moment.
    pub(crate) async fn keep(&self, clerk: Clerk) {
        let mut number = self.leaving.lock().await;
        *number += 1;
        let mine = *number;
        drop(number);
        self.with(|clerks| clerks.push((mine, clerk)));
        let waiting = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(PATIENCE).await;
            waiting.dismiss(|number, _| number == mine).await;
        });
    }

    /// One of this session behind these walls.
    pub(crate) fn take(&self, session: SessionId, isolation: &Isolation) -> Option<Clerk> {
        self.with(|clerks| {
            let fits = |(_, clerk): &(u64, Clerk)| clerk.session == session && clerk.isolation == *isolation;
            clerks.iter().position(fits).map(|at| clerks.swap_remove(at).1)
        })
    }

    /// Whether one of a session may live.
    pub(crate) fn has(&self, session: SessionId) -> bool {
        // Those that are being sent away live as well.
        self.leaving.try_lock().is_err()
            || self.with(|clerks| clerks.iter().any(|(_, clerk)| clerk.session == session))
    }

    /// Sends all of a session away: when this returns, none of them lives.
    pub(crate) async fn clear(&self, session: SessionId) {
        self.dismiss(|_, clerk| clerk.session == session).await;
    }

    async fn dismiss(&self, which: impl Fn(u64, &Clerk) -> bool) {
        let _alone = self.leaving.lock().await;
        let gone = |(number, clerk): &mut (u64, Clerk)| which(*number, clerk);
        let leaving: Vec<_> = self.with(|clerks| clerks.extract_if(.., gone).collect());
        for (_, clerk) in leaving {
            clerk.dismiss().await;
        }
    }

    fn with<T>(&self, with: impl FnOnce(&mut Vec<(u64, Clerk)>) -> T) -> T {
        with(&mut self.clerks.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
