//! The policy's extensions, run: each a guest that says when it is ready, is asked one question at a time, and has a fixed
//! time for its answer.
//!
//! Whatever it does else ends it: to end, to write what is no answer, to answer what it was not asked, to take no question.
//! One that was merely late lives on, and what it still answers then is dropped by its number. A guest that ended is started
//! again by the next question; whether there may be one is not decided here.

use crate::{
    frame::{FrameError, Frames, Said, frame, ready, said},
    guest::Visit,
    native::Native,
};
use bailey_kernel::{
    BoxFuture,
    extension::{Extensions, Heard, Reply},
};
use bailey_protocol::SessionId;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout, timeout_at},
};

/// How long one may take from its start to being ready.
const READY: Duration = Duration::from_secs(10);
/// Said of one that is not there any more, where nothing better is known.
const ENDED: &str = "it ended";
/// Questions that may wait for one extension.
const WAITING_MAX: usize = 64;

/// Runs extensions, each by its name.
#[derive(Debug)]
pub struct Runner {
    desks: BTreeMap<String, mpsc::Sender<Order>>,
}

#[derive(Debug)]
enum Order {
    /// Be ready for questions.
    Prepare,
    Ask(Value, oneshot::Sender<Heard>),
}

impl Runner {
    /// Those of these names, each with the lease that it is the guest of and how long it may take to answer. Nothing starts
    /// yet. It must be called inside a runtime, and its extensions end with it.
    #[must_use]
    pub fn new(native: &Arc<Native>, extensions: Vec<(String, SessionId, Duration)>) -> Self {
        let desk = |(name, lease, within)| {
            let (orders, waiting) = mpsc::channel(WAITING_MAX);
            tokio::spawn(
                Desk { native: native.clone(), lease, within, live: None, number: 0 }.serve(waiting),
            );
            (name, orders)
        };
        Self { desks: extensions.into_iter().map(desk).collect() }
    }

    /// Starts them, so that the first question need not wait for that.
    pub fn prepare(&self) {
        // A queue that is full has questions in it, which start it too.
        self.desks.values().for_each(|desk| drop(desk.try_send(Order::Prepare)));
    }
}

impl Extensions for Runner {
    fn ask<'a>(&'a self, name: &'a str, question: Value) -> BoxFuture<'a, Heard> {
        Box::pin(async move {
            let nobody = || Heard { reply: Reply::Crashed, told: "nobody here runs it".into() };
            let Some(desk) = self.desks.get(name) else { return nobody() };
            let (reply, heard) = oneshot::channel();
            desk.send(Order::Ask(question, reply)).await.ok();
            heard.await.unwrap_or_else(|_| nobody())
        })
    }
}

/// Where one extension is asked, one question after the other, whoever waits for the answer or does not any more.
struct Desk {
    native: Arc<Native>,
    lease: SessionId,
    within: Duration,
    live: Option<Live>,
    /// Of the newest question.
    number: u64,
}

/// An extension that said that it is ready.
struct Live {
    visit: Visit,
    frames: Frames,
    /// Questions whose answers are not waited for any more.
    late: BTreeSet<u64>,
}

/// Why there is no answer.
enum Failed {
    Late,
    TooLong,
    /// It has ended, or takes nothing.
    Ended(String),
    Garbled(String),
}

impl From<FrameError> for Failed {
    fn from(error: FrameError) -> Self {
        Self::Garbled(error.to_string())
    }
}

impl Desk {
    async fn serve(mut self, mut orders: mpsc::Receiver<Order>) {
        while let Some(order) = orders.recv().await {
            match order {
                Order::Prepare => {
                    if let Err(failed) = self.prepare().await {
                        // The next question tries again, and tells.
                        self.failed(failed).await;
                    }
                }
                Order::Ask(question, reply) => drop(reply.send(self.ask(question).await)),
            }
        }
    }

    async fn ask(&mut self, question: Value) -> Heard {
        match self.exchange(question).await {
            Ok(Said { answer, reason, .. }) => {
                Heard { reply: Reply::Said { answer: answer.into(), reason }, told: String::new() }
            }
            Err(failed) => self.failed(failed).await,
        }
    }

    /// What a failure counts as. Whoever did anything but come late is ended.
    async fn failed(&mut self, failed: Failed) -> Heard {
        let (reply, why) = match failed {
            Failed::Late => return Heard { reply: Reply::Late, told: String::new() },
            Failed::TooLong => return Heard { reply: Reply::TooLong, told: String::new() },
            Failed::Ended(why) => (Reply::Crashed, why),
            Failed::Garbled(why) => (Reply::Garbled, why),
        };
        let last = match self.live.take() {
            Some(live) => live.visit.end(reply == Reply::Crashed).await,
            None => String::new(),
        };
        let told = match (why.as_str(), last.as_str()) {
            (_, "") => why,
            // How it ended says that it did.
            (ENDED, _) => last,
            _ => format!("{why}\n{last}"),
        };
        Heard { reply, told }
    }

    async fn exchange(&mut self, mut question: Value) -> Result<Said, Failed> {
        self.number += 1;
        let (number, within) = (self.number, self.within);
        if let Value::Object(fields) = &mut question {
            fields.insert("number".into(), number.into());
        }
        let frame = frame(&question).ok_or(Failed::TooLong)?;
        let live = self.prepare().await?;
        live.hear_unasked()?;
        let until = Instant::now() + within;
        match timeout_at(until, live.visit.write(&frame)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(Failed::Ended(ENDED.into())),
            // What it has of the question is no whole frame: nothing more can be asked.
            Err(_) => return Err(Failed::Ended("it did not read the question".into())),
        }
        match timeout_at(until, live.answer(number)).await {
            Ok(answer) => answer,
            Err(_) => {
                live.late.insert(number);
                Err(Failed::Late)
            }
        }
    }

    /// The extension, started where it does not live.
    async fn prepare(&mut self) -> Result<&mut Live, Failed> {
        if self.live.is_none() {
            let visit = self.native.receive(self.lease);
            let visit = visit.map_err(|error| Failed::Ended(format!("it did not start: {error}")))?;
            let live = self.live.insert(Live { visit, frames: Frames::default(), late: BTreeSet::new() });
            let late = || Failed::Ended(format!("it was not ready within {} s", READY.as_secs()));
            timeout(READY, live.ready()).await.map_err(|_| late())??;
        }
        self.live.as_mut().ok_or_else(|| Failed::Ended("it did not start".into()))
    }
}

impl Live {
    async fn ready(&mut self) -> Result<(), Failed> {
        loop {
            if let Some(json) = self.frames.next()? {
                return Ok(ready(&json)?);
            }
            self.more().await?;
        }
    }

    /// What it wrote since the last answer may answer what it was late with, and nothing else.
    fn hear_unasked(&mut self) -> Result<(), Failed> {
        loop {
            while let Some(json) = self.frames.next()? {
                self.drop_late(&said(&json)?)?;
            }
            match self.visit.read_now(&mut self.frames.bytes) {
                None => return Ok(()),
                Some(true) => {}
                Some(false) => return Err(Failed::Ended(ENDED.into())),
            }
        }
    }

    async fn answer(&mut self, number: u64) -> Result<Said, Failed> {
        loop {
            while let Some(json) = self.frames.next()? {
                let said = said(&json)?;
                if said.number == number {
                    return Ok(said);
                }
                self.drop_late(&said)?;
            }
            self.more().await?;
        }
    }

    fn drop_late(&mut self, said: &Said) -> Result<(), Failed> {
        let was_late = self.late.remove(&said.number);
        was_late
            .then_some(())
            .ok_or_else(|| Failed::Garbled(format!("it answered {}, which was not asked", said.number)))
    }

    async fn more(&mut self) -> Result<(), Failed> {
        match self.visit.read(&mut self.frames.bytes).await {
            true => Ok(()),
            false => Err(Failed::Ended(ENDED.into())),
        }
    }
}
