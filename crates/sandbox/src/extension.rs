//! The policy's extensions, run: each a guest that is started by a permit, says when it is ready, is asked
//! one question at a time, and has a fixed time for its answer.
//!
//! Whatever it does else ends it: to end, to write what is no answer, to answer what it was not asked, to
//! take no question. One that was merely late lives on, and what it still answers then is dropped by its
//! number. Nothing starts here by itself: a question to a guest that does not run is given back, and whether
//! there may be one is the kernel's to decide.

use crate::{
    config::Guest,
    frame::{FrameError, Frames, Said, frame, ready, said},
    guest::Visit,
    native::Native,
};
use bailey_kernel::{
    BoxFuture, Output, Permit, Redeemed, Seal,
    extension::{Extensions, Heard, Program, Reply},
};
use bailey_protocol::{Action, Digest, SessionId};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

/// How long one may take from its start to being ready.
const READY: Duration = Duration::from_secs(10);
/// Said of one that is not there any more, where nothing better is known.
const ENDED: &str = "it ended";
/// Said where nobody has it.
const NOBODY: &str = "nobody here runs it";
/// Questions that may wait for one extension.
const WAITING_MAX: usize = 64;

/// Looks at a program's files as they are now.
pub type Look = Arc<dyn Fn() -> Digest + Send + Sync>;

/// An extension that may be run.
pub struct Employed {
    /// Its name.
    pub name: String,
    /// The lease that it is the guest of.
    pub lease: SessionId,
    /// How long it may take to answer.
    pub within: Duration,
    /// Names what would be started now, as the policy does.
    pub look: Look,
}

impl fmt::Debug for Employed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Employed").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Runs extensions, each by its name.
#[derive(Debug)]
pub struct Runner {
    native: Arc<Native>,
    seal: Seal,
    counters: BTreeMap<String, Counter>,
}

/// Where one of them is spoken to.
#[derive(Debug)]
struct Counter {
    employed: Employed,
    orders: mpsc::Sender<Order>,
    runs: Arc<AtomicBool>,
    closing: CancellationToken,
}

enum Order {
    Start(Guest, Ended, oneshot::Sender<Result<(), Heard>>),
    Ask(Value, oneshot::Sender<Result<Heard, Value>>),
    End(oneshot::Sender<()>),
}

/// Who is told how it ended.
type Ended = oneshot::Sender<Output>;

impl Runner {
    /// Those that may be run, by permits of the journal with this seal. Nothing starts yet. It must be called
    /// inside a runtime, and its extensions end with it.
    #[must_use]
    pub fn new(native: &Arc<Native>, seal: Seal, all: Vec<Employed>) -> Self {
        let counter = |employed: Employed| {
            let (orders, waiting) = mpsc::channel(WAITING_MAX);
            let (runs, closing) = (Arc::new(AtomicBool::new(false)), CancellationToken::new());
            let desk = Desk {
                native: native.clone(),
                lease: employed.lease,
                within: employed.within,
                live: None,
                runs: runs.clone(),
                closing: closing.clone(),
                number: 0,
            };
            tokio::spawn(desk.serve(waiting));
            (employed.name.clone(), Counter { employed, orders, runs, closing })
        };
        Self { native: native.clone(), seal, counters: all.into_iter().map(counter).collect() }
    }

    /// What a permit lets begin, and nothing else.
    fn redeemed(&self, permit: Permit) -> Result<Guest, String> {
        let Redeemed { effect, isolation, .. } =
            permit.redeem(&self.seal).map_err(|error| error.to_string())?;
        match effect.action {
            Action::Exec(command) => Ok(Guest { command, isolation }),
            action => Err(format!("`{}` is no program", action.kind().name())),
        }
    }
}

impl Extensions for Runner {
    fn runs(&self, name: &str) -> bool {
        self.counters.get(name).is_some_and(|counter| counter.runs.load(Ordering::Acquire))
    }

    fn program<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Program>> {
        Box::pin(async move {
            let employed = &self.counters.get(name)?.employed;
            let Guest { command, isolation } = self.native.guest(employed.lease)?.clone();
            let look = employed.look.clone();
            // It reads files.
            let digest = tokio::task::spawn_blocking(move || look()).await.ok()?;
            Some(Program { command, isolation, digest })
        })
    }

    fn start<'a>(
        &'a self,
        name: &'a str,
        permit: Permit,
        ended: oneshot::Sender<Output>,
    ) -> BoxFuture<'a, Result<(), Heard>> {
        Box::pin(async move {
            let counter = self.counters.get(name).ok_or_else(|| NOBODY.to_owned());
            let (counter, guest) = match counter.and_then(|it| Ok((it, self.redeemed(permit)?))) {
                Ok(both) => both,
                Err(why) => return Err(not_started(ended, why)),
            };
            let (reply, heard) = oneshot::channel();
            counter.orders.send(Order::Start(guest, ended, reply)).await.ok();
            heard.await.unwrap_or_else(|_| Err(crashed(NOBODY)))
        })
    }

    fn ask<'a>(&'a self, name: &'a str, question: Value) -> BoxFuture<'a, Result<Heard, Value>> {
        Box::pin(async move {
            let Some(counter) = self.counters.get(name) else { return Err(question) };
            let (reply, heard) = oneshot::channel();
            counter.orders.send(Order::Ask(question, reply)).await.ok();
            heard.await.unwrap_or_else(|_| Ok(crashed(NOBODY)))
        })
    }

    fn end<'a>(&'a self, name: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(counter) = self.counters.get(name) else { return };
            counter.closing.cancel();
            let (reply, done) = oneshot::channel();
            counter.orders.send(Order::End(reply)).await.ok();
            done.await.ok();
        })
    }
}

fn crashed(why: impl Into<String>) -> Heard {
    Heard { reply: Reply::Crashed, told: why.into() }
}

fn not_started(ended: Ended, why: String) -> Heard {
    ended.send(Output::failed(&why)).ok();
    crashed(why)
}

fn closed() -> Failed {
    Failed::Ended("the session ended".into())
}

/// Where one extension is asked, one question after the other, whoever waits for the answer or does not any
/// more.
struct Desk {
    native: Arc<Native>,
    lease: SessionId,
    within: Duration,
    live: Option<Live>,
    /// Whether it is there, for those who only want to know that.
    runs: Arc<AtomicBool>,
    /// The session ends.
    closing: CancellationToken,
    /// Of the newest question.
    number: u64,
}

/// An extension that said that it is ready, or has yet to say it.
struct Live {
    visit: Visit,
    ended: Ended,
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
                Order::Start(guest, ended, reply) => drop(reply.send(self.start(guest, ended).await)),
                Order::Ask(question, reply) => drop(reply.send(self.ask(question).await)),
                Order::End(reply) => {
                    self.part(false).await;
                    reply.send(()).ok();
                }
            }
        }
    }

    async fn start(&mut self, guest: Guest, ended: Ended) -> Result<(), Heard> {
        if self.live.is_some() {
            return Err(not_started(ended, "it runs already".into()));
        }
        let visit = match self.native.receive(self.lease, guest) {
            Ok(visit) => visit,
            Err(error) => return Err(not_started(ended, format!("it did not start: {error}"))),
        };
        let live = self.live.insert(Live { visit, ended, frames: Frames::default(), late: BTreeSet::new() });
        let late = |_| Failed::Ended(format!("it was not ready within {} s", READY.as_secs()));
        let readied = tokio::select! {
            biased;
            readied = timeout(READY, live.ready()) => readied.map_err(late).flatten(),
            () = self.closing.cancelled() => Err(closed()),
        };
        match readied {
            Ok(()) => {
                self.runs.store(true, Ordering::Release);
                Ok(())
            }
            Err(failed) => Err(self.failed(failed).await),
        }
    }

    /// What it answers. The question comes back where it does not run.
    async fn ask(&mut self, question: Value) -> Result<Heard, Value> {
        let Some(live) = &mut self.live else { return Err(question) };
        self.number += 1;
        let answered = tokio::select! {
            biased;
            answered = live.exchange(self.number, question, self.within) => answered,
            () = self.closing.cancelled() => Err(closed()),
        };
        Ok(match answered {
            Ok(Said { answer, reason, .. }) => {
                Heard { reply: Reply::Said { answer: answer.into(), reason }, told: String::new() }
            }
            Err(failed) => self.failed(failed).await,
        })
    }

    /// What a failure counts as. Whoever did anything but come late is ended.
    async fn failed(&mut self, failed: Failed) -> Heard {
        let (reply, why) = match failed {
            Failed::Late => return Heard { reply: Reply::Late, told: String::new() },
            Failed::TooLong => return Heard { reply: Reply::TooLong, told: String::new() },
            Failed::Ended(why) => (Reply::Crashed, why),
            Failed::Garbled(why) => (Reply::Garbled, why),
        };
        let by_itself = reply == Reply::Crashed && !self.closing.is_cancelled();
        let last = self.part(by_itself).await;
        let told = match (why.as_str(), last.as_str()) {
            (_, "") => why,
            // How it ended says that it did.
            (ENDED, _) => last,
            _ => format!("{why}\n{last}"),
        };
        Heard { reply, told }
    }

    /// Ends it where it runs, and tells whoever waits for that; what is known of how it ended by itself.
    async fn part(&mut self, by_itself: bool) -> String {
        self.runs.store(false, Ordering::Release);
        let Some(Live { visit, ended, .. }) = self.live.take() else { return String::new() };
        let parting = visit.end(by_itself).await;
        ended.send(Output::new(parting.outcome)).ok();
        parting.told
    }
}

impl Live {
    async fn exchange(&mut self, number: u64, mut question: Value, within: Duration) -> Result<Said, Failed> {
        if let Value::Object(fields) = &mut question {
            fields.insert("number".into(), number.into());
        }
        let frame = frame(&question).ok_or(Failed::TooLong)?;
        self.hear_unasked()?;
        let until = Instant::now() + within;
        match timeout_at(until, self.visit.write(&frame)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(Failed::Ended(ENDED.into())),
            // What it has of the question is no whole frame: nothing more can be asked.
            Err(_) => return Err(Failed::Ended("it did not read the question".into())),
        }
        match timeout_at(until, self.answer(number)).await {
            Ok(answer) => answer,
            Err(_) => {
                self.late.insert(number);
                Err(Failed::Late)
            }
        }
    }

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
