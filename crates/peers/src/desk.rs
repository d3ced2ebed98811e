//! The desk of one program: the program is started by a permit, says when it is ready, is asked one question
//! at a time, and has a fixed time for its answer.
//!
//! A program that breaks the protocol is ended: one that writes anything but an answer, that answers a
//! question nobody asked, or that does not read its question. An extension that was merely late lives on; its
//! late answer is dropped by its number.

use crate::{
    frame::{FrameError, Frames, Object, answer, frame, ready},
    speech::{Speech, Spoken},
};
use bailey_kernel::{Door, Output};
use bailey_protocol::{CallReport, SessionId};
use bailey_sandbox::{Guest, Visit, Walls};
use serde_json::Value;
use std::{
    collections::BTreeSet,
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

/// How long a program may take from its start to being ready.
const READY: Duration = Duration::from_secs(10);
/// Spoken of a program that is gone, where nothing better is known.
const ENDED: &str = "it ended";
/// Spoken when the asker wants no answer any more.
pub(crate) const CANCELLED: &str = "the call was cancelled";

/// An order to a desk.
pub(crate) enum Order {
    Start(Box<(Guest, Option<Door>)>, OutputSender, oneshot::Sender<Result<(), Failed>>),
    Ask(Object, CancellationToken, oneshot::Sender<Result<Result<Spoken, Failed>, Object>>),
    /// To end the program; it may be started again. The answer says whether it ran.
    Stop(oneshot::Sender<bool>),
}

/// Takes the output with which a program ended.
pub(crate) type OutputSender = oneshot::Sender<Output>;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) fault: FailureKind,
    /// The reason, and the last lines of the program's standard error.
    pub(crate) told: String,
}

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The answer did not come in time.
    Late,
    /// The question is longer than a frame.
    TooLong,
    /// The program has ended, or takes nothing.
    Crashed,
    /// It wrote something else than an answer.
    Garbled,
}

impl Failed {
    pub(crate) fn crashed(told: impl Into<String>) -> Self {
        Self { fault: FailureKind::Crashed, told: told.into() }
    }
}

impl From<FrameError> for Failed {
    fn from(error: FrameError) -> Self {
        Self { fault: FailureKind::Garbled, told: error.to_string() }
    }
}

/// Where one program is asked, one question after the other, also when the asker waits for the answer no
/// longer.
pub(crate) struct Desk {
    walls: Arc<Walls>,
    lease: SessionId,
    within: Duration,
    speech: Speech,
    live: Option<LiveProgram>,
    /// Whether it is there, for those who only want to know that.
    runs: Arc<AtomicBool>,
    /// The session ends.
    closing: CancellationToken,
    /// The number of the newest question.
    number: u64,
}

/// A program that said that it is ready, or has yet to say it.
struct LiveProgram {
    visit: Visit,
    ended: OutputSender,
    frames: Frames,
    /// Questions whose answers are not waited for any more.
    late: BTreeSet<u64>,
}

impl Desk {
    pub(crate) fn new(
        walls: Arc<Walls>,
        (lease, within): (SessionId, Duration),
        speech: Speech,
        (runs, closing): (Arc<AtomicBool>, CancellationToken),
    ) -> Self {
        Self { walls, lease, within, speech, live: None, runs, closing, number: 0 }
    }

    pub(crate) async fn serve(mut self, mut orders: mpsc::Receiver<Order>) {
        while let Some(order) = orders.recv().await {
            match order {
                Order::Start(program, ended, reply) => {
                    let (guest, door) = *program;
                    drop(reply.send(self.start(guest, door, ended).await));
                }
                Order::Ask(question, cancel, reply) => {
                    drop(reply.send(self.ask(question, &cancel).await));
                }
                Order::Stop(reply) => {
                    let ran = self.live.is_some();
                    self.part(false).await;
                    reply.send(ran).ok();
                }
            }
        }
    }

    async fn start(&mut self, guest: Guest, door: Option<Door>, ended: OutputSender) -> Result<(), Failed> {
        if self.live.is_some() {
            return Err(not_started(ended, "it runs already".into()));
        }
        let visit = match timeout(READY, self.walls.receive(self.lease, guest, door)).await {
            Ok(Ok(visit)) => visit,
            Ok(Err(error)) => return Err(not_started(ended, format!("it did not start: {error}"))),
            Err(_) => return Err(not_started(ended, "its walls were not ready in time".into())),
        };
        let live =
            self.live.insert(LiveProgram { visit, ended, frames: Frames::default(), late: BTreeSet::new() });
        let late = |_| Failed::crashed(format!("it was not ready within {} s", READY.as_secs()));
        let readied = tokio::select! {
            biased;
            readied = timeout(READY, live.ready(&self.speech)) => readied.map_err(late).flatten(),
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

    /// Its answer. The question comes back when the program does not run.
    async fn ask(
        &mut self,
        question: Object,
        cancel: &CancellationToken,
    ) -> Result<Result<Spoken, Failed>, Object> {
        let Some(live) = &mut self.live else { return Err(question) };
        self.number += 1;
        let answered = tokio::select! {
            biased;
            answered = live.exchange(self.number, question, self.within, &self.speech) => answered,
            () = self.closing.cancelled() => Err(closed()),
            () = cancel.cancelled() => Err(Failed::crashed(CANCELLED)),
        };
        Ok(match answered {
            Ok(Spoken::Result(report)) => {
                Ok(Spoken::Result(CallReport { touched: live.visit.look().await, ..report }))
            }
            Ok(said) => Ok(said),
            Err(failed) => Err(self.failed(failed).await),
        })
    }

    /// A failure, with the program's last lines. It ends the program, unless that was merely late and may
    /// be.
    async fn failed(&mut self, failed: Failed) -> Failed {
        let Failed { fault, told } = failed;
        if fault == FailureKind::TooLong || (fault == FailureKind::Late && self.speech.may_be_late()) {
            return Failed { fault, told };
        }
        let by_itself = fault == FailureKind::Crashed && !self.closing.is_cancelled() && told != CANCELLED;
        let last = self.part(by_itself).await;
        let told = match (told.as_str(), last.as_str()) {
            (_, "") => told,
            // How it ended says that it did.
            (ENDED, _) => last,
            _ => format!("{told}\n{last}"),
        };
        Failed { fault, told }
    }

    /// Ends the program when it runs, and tells the waiting party. Returns how it ended by itself, as far as
    /// that is known.
    async fn part(&mut self, by_itself: bool) -> String {
        self.runs.store(false, Ordering::Release);
        let Some(LiveProgram { visit, ended, .. }) = self.live.take() else { return String::new() };
        let parting = visit.end(by_itself).await;
        ended.send(Output::new(parting.outcome)).ok();
        parting.told
    }
}

pub(crate) fn not_started(ended: OutputSender, why: String) -> Failed {
    ended.send(Output::failed(&why)).ok();
    Failed::crashed(why)
}

fn closed() -> Failed {
    Failed::crashed("the session ended")
}

impl LiveProgram {
    async fn exchange(
        &mut self,
        number: u64,
        mut question: Object,
        within: Duration,
        speech: &Speech,
    ) -> Result<Spoken, Failed> {
        question.insert("number".into(), Value::from(number));
        let too_long = || Failed { fault: FailureKind::TooLong, told: "the question is too long".into() };
        let frame = frame(&question).ok_or_else(too_long)?;
        self.hear_unasked(speech)?;
        let until = Instant::now() + within;
        match timeout_at(until, self.visit.write(&frame)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(Failed::crashed(ENDED)),
            // It has a part of the question, which is no whole frame: nothing more can be asked.
            Err(_) => return Err(Failed::crashed("it did not read the question")),
        }
        match timeout_at(until, self.answer(number, speech)).await {
            Ok(answer) => answer,
            Err(_) => {
                self.late.insert(number);
                let told = format!("it did not answer within {:.1} s", within.as_secs_f64());
                Err(Failed { fault: FailureKind::Late, told })
            }
        }
    }

    async fn ready(&mut self, speech: &Speech) -> Result<(), Failed> {
        loop {
            if let Some(json) = self.frames.next()? {
                return Ok(speech.begin(&ready(&json)?)?);
            }
            self.more().await?;
        }
    }

    /// Reads the frames since the last answer. Each may only answer a question that the program was late
    /// with.
    fn hear_unasked(&mut self, speech: &Speech) -> Result<(), Failed> {
        loop {
            while let Some(json) = self.frames.next()? {
                let (number, object) = answer(&json, speech.form())?;
                speech.answer(&object)?;
                self.drop_late(number)?;
            }
            match self.visit.read_now(&mut self.frames.bytes) {
                None => return Ok(()),
                Some(true) => {}
                Some(false) => return Err(Failed::crashed(ENDED)),
            }
        }
    }

    async fn answer(&mut self, asked: u64, speech: &Speech) -> Result<Spoken, Failed> {
        loop {
            while let Some(json) = self.frames.next()? {
                let (number, object) = answer(&json, speech.form())?;
                let said = speech.answer(&object)?;
                if number == asked {
                    return Ok(said);
                }
                self.drop_late(number)?;
            }
            self.more().await?;
        }
    }

    fn drop_late(&mut self, number: u64) -> Result<(), Failed> {
        match self.late.remove(&number) {
            true => Ok(()),
            false => Err(FrameError::Unasked(number).into()),
        }
    }

    async fn more(&mut self) -> Result<(), Failed> {
        match self.visit.read(&mut self.frames.bytes).await {
            true => Ok(()),
            false => Err(Failed::crashed(ENDED)),
        }
    }
}
