//! Runs the owner's programs, each at a desk of its own, by permits of the kernel.

use crate::{
    Language,
    desk::{Desk, Failed, FailureKind, Order, OutputSender, Question, Tongue, not_started},
    shelf::{Approved, Shelf},
    speech::{Speech, Spoken},
};
use bailey_kernel::{
    BoxFuture, Door, HostGlob, Output, Permit, Redeemed, Seal,
    extension::{ExtensionOutcome, ExtensionReply},
    program::{Duty, Program, Programs},
};
use bailey_protocol::{Action, CallReport, Digest, SessionId, ToolEffect};
use bailey_sandbox::{Guest, Walls};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Spoken of an unknown name.
const NOBODY: &str = "nobody here runs it";
/// Questions that may wait for one program.
const WAITING_MAX: usize = 64;

/// Looks at a program's files as they are now.
pub type Look = Arc<dyn Fn() -> Digest + Send + Sync>;

/// A program that may be run.
pub struct Employed {
    /// Its name.
    pub name: String,
    /// The lease in which it runs: one of its own, or the session's when it sees the workspace.
    pub lease: SessionId,
    /// The program and its walls.
    pub guest: Guest,
    /// How long it may take to answer.
    pub within: Duration,
    /// Reads the digest of the program's files as they are now.
    pub look: Look,
    /// Its work.
    pub work: Work,
}

/// The work of a program.
#[derive(Clone)]
pub enum Work {
    /// It is an extension of the policy.
    Judge,
    /// It has tools.
    Peer {
        /// The digest that it must have to be started.
        declared: Digest,
        /// The hosts that it may ask.
        hosts: Vec<HostGlob>,
        /// The names of the owner's keys that its requests may get.
        keys: BTreeSet<String>,
        /// Where its tools come from.
        tools: ToolsOf,
        /// Whether it sees the session's workspace, and so is ended before a merge.
        is_within: bool,
    },
}

/// Where the tools of a peer come from.
#[derive(Clone)]
pub enum ToolsOf {
    /// From the program, which speaks in frames and is started with the session.
    Frames(Effects),
    /// From the owner, who agreed to these. The program speaks this language and is started at the first
    /// call.
    Foreign(Arc<dyn Language>, Vec<Approved>),
}

/// The effects of a peer's tools, by the owner's word. Bailey asks about each other tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effects(pub BTreeMap<String, ToolEffect>);

impl Effects {
    /// The effect of a tool; the name `*` stands for all others.
    pub(crate) fn of(&self, tool: &str) -> Option<ToolEffect> {
        self.0.get(tool).or_else(|| self.0.get("*")).copied()
    }
}

impl fmt::Debug for Employed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Employed").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Runs programs, each by its name.
#[derive(Debug)]
pub struct Runner {
    seal: Seal,
    counters: BTreeMap<String, Counter>,
}

/// A program from outside its desk.
#[derive(Debug)]
struct Counter {
    employed: Employed,
    shelf: Option<Arc<Shelf>>,
    orders: mpsc::Sender<Order>,
    runs: Arc<AtomicBool>,
    closing: CancellationToken,
}

impl Runner {
    /// A runner of these programs, by permits of the journal with this seal. It starts no program. It must be
    /// called inside a runtime, and its programs end with it.
    #[must_use]
    pub fn new(walls: &Arc<Walls>, seal: Seal, all: Vec<Employed>) -> Self {
        let counter = |employed: Employed| {
            let (orders, waiting) = mpsc::channel(WAITING_MAX);
            let (runs, closing) = (Arc::new(AtomicBool::new(false)), CancellationToken::new());
            let shelf = match &employed.work {
                Work::Judge => None,
                Work::Peer { tools: ToolsOf::Frames(effects), .. } => {
                    Some(Shelf::new(employed.name.clone(), effects.clone()))
                }
                Work::Peer { tools: ToolsOf::Foreign(_, approved), .. } => {
                    Some(Shelf::approved(employed.name.clone(), approved.clone()))
                }
            }
            .map(Arc::new);
            let tongue = match (&employed.work, &shelf) {
                (Work::Peer { tools: ToolsOf::Foreign(language, _), .. }, Some(shelf)) => {
                    Tongue::Foreign(language.clone(), shelf.clone())
                }
                (_, Some(shelf)) => Tongue::Framed(Speech::Tools(shelf.clone())),
                (_, None) => Tongue::Framed(Speech::Verdicts),
            };
            let desk = Desk::new(
                walls.clone(),
                (employed.lease, employed.within),
                tongue,
                (runs.clone(), closing.clone()),
            );
            tokio::spawn(desk.serve(waiting));
            (employed.name.clone(), Counter { employed, shelf, orders, runs, closing })
        };
        Self { seal, counters: all.into_iter().map(counter).collect() }
    }

    /// The program that a permit lets begin.
    fn redeemed(&self, keys: &BTreeSet<String>, permit: Permit) -> Result<Guest, String> {
        let Redeemed { effect, isolation, .. } =
            permit.redeem(&self.seal).map_err(|error| error.to_string())?;
        match effect.action {
            Action::Exec(command) => Ok(Guest { command, isolation, variables: keys.clone() }),
            action => Err(format!("`{}` is no program", action.kind().name())),
        }
    }

    /// The digest that a peer's program must have.
    pub(crate) fn declared(&self, name: &str) -> Option<Digest> {
        match &self.counters.get(name)?.employed.work {
            Work::Peer { declared, .. } => Some(*declared),
            Work::Judge => None,
        }
    }

    /// The tools of a peer; `None` for an unknown name.
    #[must_use]
    pub fn shelf(&self, name: &str) -> Option<&Arc<Shelf>> {
        self.counters.get(name)?.shelf.as_ref()
    }

    /// The tools of all peers.
    pub(crate) fn shelves(&self) -> impl Iterator<Item = &Arc<Shelf>> {
        self.counters.values().filter_map(|counter| counter.shelf.as_ref())
    }

    async fn said(
        &self,
        name: &str,
        question: Question,
        cancel: CancellationToken,
    ) -> Result<Result<Spoken, Failed>, Question> {
        let Some(counter) = self.counters.get(name) else { return Err(question) };
        let (reply, heard) = oneshot::channel();
        counter.orders.send(Order::Ask(question, cancel, reply)).await.ok();
        heard.await.unwrap_or_else(|_| Ok(Err(Failed::crashed(NOBODY))))
    }

    /// Has a peer perform a call of its tool. The call comes back when the peer does not run.
    pub(crate) async fn call(
        &self,
        name: &str,
        (tool, args): (&str, Map<String, Value>),
        cancel: CancellationToken,
    ) -> Result<Result<CallReport, Failed>, Question> {
        Ok(match self.said(name, Question::Call(tool.to_owned(), args), cancel).await? {
            Ok(Spoken::Result(report)) => Ok(report),
            Ok(Spoken::Verdict(..)) => Err(Failed::crashed("it judges, and has no tools")),
            Err(failed) => Err(failed),
        })
    }
}

impl Programs for Runner {
    fn peers(&self) -> Vec<String> {
        let is_eager = |counter: &Counter| {
            matches!(&counter.employed.work, Work::Peer { tools: ToolsOf::Frames(_), .. })
        };
        let peers = self.counters.iter().filter(|(_, counter)| is_eager(counter));
        peers.map(|(name, _)| name.clone()).collect()
    }

    fn runs(&self, name: &str) -> bool {
        self.counters.get(name).is_some_and(|counter| counter.runs.load(Ordering::Acquire))
    }

    fn program<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Program>> {
        Box::pin(async move {
            let employed = &self.counters.get(name)?.employed;
            let Guest { command, isolation, .. } = employed.guest.clone();
            let look = employed.look.clone();
            // It reads files.
            let digest = tokio::task::spawn_blocking(move || look()).await.ok()?;
            let duty = match &employed.work {
                Work::Judge => Duty::Judge,
                Work::Peer { declared, hosts, keys, .. } => {
                    Duty::Peer { declared: *declared, hosts: hosts.clone(), keys: keys.clone() }
                }
            };
            Some(Program { command, isolation, digest, duty })
        })
    }

    fn start<'a>(
        &'a self,
        name: &'a str,
        permit: Permit,
        door: Option<Door>,
        ended: oneshot::Sender<Output>,
    ) -> BoxFuture<'a, Result<(), ExtensionOutcome>> {
        Box::pin(async move { self.begin(name, permit, door, ended).await.map_err(heard) })
    }

    fn ask<'a>(&'a self, name: &'a str, question: Value) -> BoxFuture<'a, Result<ExtensionOutcome, Value>> {
        Box::pin(async move {
            let Value::Object(question) = question else { return Err(question) };
            match self.said(name, Question::Judge(question), CancellationToken::new()).await {
                Err(back) => Err(Value::Object(back.object())),
                Ok(Ok(Spoken::Verdict(answer, reason))) => Ok(ExtensionOutcome {
                    reply: ExtensionReply::Said { answer, reason },
                    told: String::new(),
                }),
                Ok(Ok(Spoken::Result(_))) => Ok(heard(Failed::crashed("it has tools, and judges nothing"))),
                Ok(Err(failed)) => Ok(heard(failed)),
            }
        })
    }

    fn within(&self) -> Vec<String> {
        let is_within =
            |counter: &Counter| matches!(counter.employed.work, Work::Peer { is_within: true, .. });
        let within = self.counters.iter().filter(|(_, counter)| is_within(counter));
        within.map(|(name, _)| name.clone()).collect()
    }

    fn stop<'a>(&'a self, name: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let Some(counter) = self.counters.get(name) else { return false };
            let (reply, done) = oneshot::channel();
            counter.orders.send(Order::Stop(reply)).await.ok();
            done.await.unwrap_or_default()
        })
    }

    fn end<'a>(&'a self, name: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(counter) = self.counters.get(name) {
                counter.closing.cancel();
                self.stop(name).await;
            }
        })
    }
}

impl Runner {
    async fn begin(
        &self,
        name: &str,
        permit: Permit,
        door: Option<Door>,
        ended: OutputSender,
    ) -> Result<(), Failed> {
        let counter = self.counters.get(name).ok_or_else(|| NOBODY.to_owned());
        let (counter, guest) = match counter.and_then(|it| {
            let variables = &it.employed.guest.variables;
            Ok((it, self.redeemed(variables, permit)?))
        }) {
            Ok(both) => both,
            Err(why) => return Err(not_started(ended, why)),
        };
        let (reply, heard) = oneshot::channel();
        counter.orders.send(Order::Start(Box::new((guest, door)), ended, reply)).await.ok();
        heard.await.unwrap_or_else(|_| Err(Failed::crashed(NOBODY)))
    }
}

/// A failure, as the policy counts it.
fn heard(Failed { fault, told }: Failed) -> ExtensionOutcome {
    match fault {
        FailureKind::Late => ExtensionOutcome { reply: ExtensionReply::Late, told: String::new() },
        FailureKind::TooLong => ExtensionOutcome { reply: ExtensionReply::TooLong, told: String::new() },
        FailureKind::Crashed => ExtensionOutcome { reply: ExtensionReply::Crashed, told },
        FailureKind::Garbled => ExtensionOutcome { reply: ExtensionReply::Garbled, told },
    }
}
