//! The desk of one program: the program is started by a permit, says when it is ready, is asked one question
//! at a time, and has a fixed time for its answer.
//!
//! A program that breaks the protocol is ended: one that writes anything but an answer, that answers a
//! question without being asked, or that does not read its question. An extension that was merely late lives
//! on; its late answer is dropped by its number.
//!
//! A program with a [`Language`] of its own is spoken to through that.

use crate::{
    frame::Object,
    framed::Framed,
    language::{Conversation, Language},
    shelf::Shelf,
    speech::{Speech, Spoken},
};
use bailey_kernel::{Door, Output};
use bailey_protocol::{CallReport, SessionId};
use bailey_sandbox::{Guest, Streams, Visit, Walls};
use serde_json::{Map, Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// How long a program may take from its start to being ready.
const READY: Duration = Duration::from_secs(10);
/// Spoken of a program that is gone, where nothing better is known.
pub(crate) const ENDED: &str = "it ended";
/// Spoken when the asker wants no answer any more.
pub(crate) const CANCELLED: &str = "the call was cancelled";

/// An order to a desk.
pub(crate) enum Order {
    Start(Box<(Guest, Option<Door>)>, OutputSender, oneshot::Sender<Result<(), Failed>>),
    Ask(Question, CancellationToken, oneshot::Sender<Result<Result<Spoken, Failed>, Question>>),
    /// To end the program; it may be started again. The answer says whether it ran.
    Stop(oneshot::Sender<bool>),
}

/// A question to a program.
#[derive(Debug)]
pub(crate) enum Question {
    /// The extension's verdict on an effect.
    Judge(Object),
    /// To perform a call of a peer's tool, with these arguments.
    Call(String, Map<String, Value>),
}

impl Question {
    /// The question as the content of a frame.
    pub(crate) fn object(self) -> Object {
        match self {
            Self::Judge(object) => object,
            Self::Call(tool, args) => {
                let mut object = Object::new();
                object.insert("call".into(), json!(tool));
                object.insert("args".into(), Value::Object(args));
                object
            }
        }
    }
}

/// How a program speaks.
pub(crate) enum Tongue {
    /// In frames.
    Framed(Speech),
    /// In a language of its own.
    Foreign(Arc<dyn Language>, Arc<Shelf>),
}

impl Tongue {
    /// How long it may take to be ready.
    fn ready(&self) -> Duration {
        match self {
            Self::Framed(_) => READY,
            Self::Foreign(language, _) => language.ready(),
        }
    }

    /// Whether a program that was late lives on. A late peer may hang in the call.
    fn may_be_late(&self) -> bool {
        matches!(self, Self::Framed(Speech::Verdicts))
    }
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

    pub(crate) fn late(within: Duration) -> Self {
        let told = format!("it did not answer within {:.1} s", within.as_secs_f64());
        Self { fault: FailureKind::Late, told }
    }
}

/// Where one program is asked, one question after the other, also when the asker waits for the answer no
/// longer.
pub(crate) struct Desk {
    walls: Arc<Walls>,
    lease: SessionId,
    within: Duration,
    tongue: Tongue,
    live: Option<LiveProgram>,
    /// Whether it is there, for those who only want to know that.
    runs: Arc<AtomicBool>,
    /// The session ends.
    closing: CancellationToken,
}

/// A program that said that it is ready, or has yet to say it.
struct LiveProgram {
    visit: Visit,
    ended: OutputSender,
    talk: Talk,
}

/// A conversation with a program.
enum Talk {
    /// Nothing yet.
    Begins(Streams),
    Framed(Framed),
    Foreign(Box<dyn Conversation>),
    /// Nothing more.
    Over,
}

impl Desk {
    pub(crate) fn new(
        walls: Arc<Walls>,
        (lease, within): (SessionId, Duration),
        tongue: Tongue,
        (runs, closing): (Arc<AtomicBool>, CancellationToken),
    ) -> Self {
        Self { walls, lease, within, tongue, live: None, runs, closing }
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
        let (visit, streams) = match timeout(READY, self.walls.receive(self.lease, guest, door)).await {
            Ok(Ok(visit)) => visit,
            Ok(Err(error)) => return Err(not_started(ended, format!("it did not start: {error}"))),
            Err(_) => return Err(not_started(ended, "its walls were not ready in time".into())),
        };
        let live = self.live.insert(LiveProgram { visit, ended, talk: Talk::Begins(streams) });
        let ready = self.tongue.ready();
        let late = |_| Failed::crashed(format!("it was not ready within {} s", ready.as_secs()));
        let readied = tokio::select! {
            biased;
            readied = timeout(ready, live.talk.begin(&self.tongue)) => readied.map_err(late).flatten(),
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
        question: Question,
        cancel: &CancellationToken,
    ) -> Result<Result<Spoken, Failed>, Question> {
        let Some(live) = &mut self.live else { return Err(question) };
        let answered = tokio::select! {
            biased;
            answered = live.talk.ask(question, self.within, &self.tongue) => answered,
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
        if fault == FailureKind::TooLong || (fault == FailureKind::Late && self.tongue.may_be_late()) {
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
        let Some(LiveProgram { visit, ended, talk }) = self.live.take() else { return String::new() };
        drop(talk);
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

impl Talk {
    /// Waits until the program says that it is ready.
    async fn begin(&mut self, tongue: &Tongue) -> Result<(), Failed> {
        let Self::Begins(streams) = std::mem::replace(self, Self::Over) else { return Ok(()) };
        *self = match tongue {
            Tongue::Framed(speech) => Self::Framed(Framed::begin(streams, speech).await?),
            Tongue::Foreign(language, shelf) => {
                let begun = language.begin(streams, shelf.clone()).await;
                Self::Foreign(begun.map_err(Failed::crashed)?)
            }
        };
        Ok(())
    }

    async fn ask(&mut self, question: Question, within: Duration, tongue: &Tongue) -> Result<Spoken, Failed> {
        match (self, tongue, question) {
            (Self::Framed(framed), Tongue::Framed(speech), question) => {
                framed.exchange(question.object(), within, speech).await
            }
            (Self::Foreign(conversation), _, Question::Call(tool, args)) => {
                match timeout(within, conversation.call(&tool, args)).await {
                    Ok(answer) => answer.map(Spoken::Result).map_err(Failed::crashed),
                    Err(_) => Err(Failed::late(within)),
                }
            }
            _ => Err(Failed::crashed("it was asked in another language")),
        }
    }
}
