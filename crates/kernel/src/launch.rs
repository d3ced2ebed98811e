//! Launching: a begun effect runs in a task of its own, so that a dropped caller, a panic and a hang each still get an
//! outcome.

use crate::{Chunk, Door, Executor, Io, Kernel, Output, Refused, Scope, admit::Started, cut};
use bailey_journal::{Entry, Receipt};
use bailey_protocol::{Action, CallId, Cost, Happening, Labels, Outcome, Report, Seq, Status};
use bailey_secrets::StreamRedactor;
use std::sync::Arc;
use tokio::sync::mpsc;

/// How many chunks may wait for whoever reads them.
const CHUNKS_WAITING_MAX: usize = 32;

/// An effect's output and the entry of its outcome.
pub(crate) struct Finished {
    pub(crate) output: Output,
    pub(crate) seq: Seq,
}

impl Kernel {
    /// Runs a tool's effect to its end and writes its outcome.
    pub(crate) async fn launch(
        &self,
        scope: &Scope,
        started: Started,
        action: &Action,
        call: Option<CallId>,
    ) -> Result<Finished, Refused> {
        let executor = self.performer(action)?;
        let (kernel, scope) = (self.clone(), scope.clone());
        let (permit, receipt, labels) = started.launched()?;
        let task = tokio::spawn(async move {
            let mut live = Live::new(&kernel, call);
            let run = kernel.io(&scope, &receipt, labels);
            let output = run.drive(&kernel, executor, permit, &scope, |chunk| live.take(chunk)).await;
            let output = cut::tidy(kernel.journal().redactor(), output);
            for happening in live.rest() {
                kernel.tell(&scope, happening).await?;
            }
            kernel.finish(receipt, output, Cost::default(), Vec::new()).await
        });
        task.await.map_err(|error| Refused::Failed(format!("the effect's task ended badly: {error}")))?
    }

    pub(crate) fn io(&self, scope: &Scope, receipt: &Receipt, labels: Labels) -> Run {
        let door = Door { kernel: self.clone(), scope: scope.inside(), parent: receipt.effect(), labels };
        let (out, chunks) = mpsc::channel(CHUNKS_WAITING_MAX);
        Run { io: Io { out, cancel: scope.cancel.child_token(), door }, chunks }
    }

    pub(crate) async fn finish(
        &self,
        receipt: Receipt,
        output: Output,
        used: Cost,
        follow: Vec<Entry>,
    ) -> Result<Finished, Refused> {
        let seq = self.inner.mint.finish(receipt, output.outcome(), used, follow).await?;
        Ok(Finished { output, seq })
    }
}

/// A running effect's ends of the channels.
pub(crate) struct Run {
    io: Io,
    chunks: mpsc::Receiver<Chunk>,
}

impl Run {
    /// Performs the effect, handing each chunk to `take` and what that answers to the front end. A cancelled effect is
    /// awaited for the grace time; one that panicked or did not end then is `unknown`.
    pub(crate) async fn drive(
        self,
        kernel: &Kernel,
        executor: Arc<dyn Executor>,
        permit: bailey_journal::Permit,
        scope: &Scope,
        mut take: impl FnMut(Chunk) -> Vec<Happening>,
    ) -> Output {
        let Self { io, mut chunks } = self;
        let cancelled = io.cancel.clone();
        let grace = kernel.inner.config.grace;
        let mut task = tokio::spawn(async move { executor.perform(permit, io).await });
        let deadline = async move {
            cancelled.cancelled().await;
            tokio::time::sleep(grace).await;
        };
        tokio::pin!(deadline);
        let output = loop {
            tokio::select! {
                biased;
                Some(chunk) = chunks.recv() => {
                    for happening in take(chunk) {
                        kernel.tell(scope, happening).await.ok();
                    }
                }
                ended = &mut task => break ended.unwrap_or_else(|_| unknown()),
                () = &mut deadline => {
                    task.abort();
                    break unknown();
                }
            }
        };
        while let Ok(chunk) = chunks.try_recv() {
            for happening in take(chunk) {
                kernel.tell(scope, happening).await.ok();
            }
        }
        output
    }
}

/// Of an effect whose end nobody saw.
pub(crate) fn unknown() -> Output {
    Output::new(Outcome { status: Status::Unknown, enforced: None, duration_ms: 0, report: Report::Nothing })
}

/// Shows a command's output while it runs, past a redactor for each stream, because pieces of the other one come between
/// those of a secret.
struct Live {
    call: Option<CallId>,
    redactors: Option<[StreamRedactor; 2]>,
}

impl Live {
    fn new(kernel: &Kernel, call: Option<CallId>) -> Self {
        let redactor = kernel.journal().redactor();
        Self { call, redactors: Some([redactor.stream(), redactor.stream()]) }
    }

    fn take(&mut self, chunk: Chunk) -> Vec<Happening> {
        let Some([out, err]) = &mut self.redactors else { return Vec::new() };
        let clean = match chunk {
            Chunk::Stdout(bytes) => out.push(&bytes),
            Chunk::Stderr(bytes) => err.push(&bytes),
            Chunk::Head(..) | Chunk::Body(_) => return Vec::new(),
        };
        self.show(&clean)
    }

    fn rest(&mut self) -> Vec<Happening> {
        let Some([out, err]) = self.redactors.take() else { return Vec::new() };
        let mut happenings = self.show(&out.finish());
        happenings.extend(self.show(&err.finish()));
        happenings
    }

    fn show(&self, clean: &[u8]) -> Vec<Happening> {
        match &self.call {
            Some(call) if !clean.is_empty() => {
                vec![Happening::Output {
                    call: call.clone(),
                    text: String::from_utf8_lossy(clean).into_owned(),
                }]
            }
            _ => Vec::new(),
        }
    }
}
