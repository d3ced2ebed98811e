//! Launching: a begun effect runs in a task of its own, so that a dropped caller, a panic and a hang each
//! still get an outcome.

use crate::{
    Chunk, Door, Executor, Io, Kernel, Output, Refused, Scope,
    admit::Started,
    cut,
    live::{Audience, ChunkNotice, LiveOutput},
};
use bailey_journal::{Entry, Receipt};
use bailey_protocol::{Action, Cost, Labels, Outcome, Report, Seq, Status};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How many chunks may wait for whoever reads them.
const CHUNKS_WAITING_MAX: usize = 32;

/// An effect's output and the entry of its outcome.
pub(crate) struct Finished {
    pub(crate) output: Output,
    pub(crate) seq: Seq,
}

impl Kernel {
    /// Runs an effect to its end and writes its outcome; of a process in the background the answer comes as
    /// soon as it runs. The audience sees its output meanwhile.
    pub(crate) async fn launch(
        &self,
        scope: &Scope,
        started: Started,
        action: &Action,
        audience: Audience,
    ) -> Result<Finished, Refused> {
        if matches!(action, Action::Exec(command) if command.background) {
            return self.launch_background(scope, started, action).await;
        }
        let _merging = match action {
            Action::Merge(_) => {
                let merging = self.inner.merging.write().await;
                self.rest_programs().await;
                Some(merging)
            }
            _ => None,
        };
        let executor = self.performer(action)?;
        let (kernel, scope) = (self.clone(), scope.clone());
        let (permit, receipt, labels) = started.launched()?;
        let mut live = LiveOutput::new(self, action, audience);
        let task = tokio::spawn(async move {
            let run = kernel.io(&scope, &receipt, labels);
            let output = run.drive(&kernel, executor, permit, &scope, |chunk| live.take(chunk)).await;
            let output = cut::tidy(kernel.journal().redactor(), output);
            for told in live.rest() {
                told.pass(&kernel, &scope).await;
            }
            kernel.finish(receipt, output, Cost::default(), Vec::new()).await
        });
        task.await.map_err(|error| Refused::Failed(format!("the effect's task ended badly: {error}")))?
    }

    pub(crate) fn io(&self, scope: &Scope, receipt: &Receipt, labels: Labels) -> Run {
        let parent = receipt.effect();
        let door = Door { kernel: self.clone(), scope: scope.inside(), parent, labels, hosts: None };
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
    pub(crate) io: Io,
    chunks: mpsc::Receiver<Chunk>,
}

impl Run {
    /// Ends this effect alone.
    pub(crate) fn cancel(&self) -> CancellationToken {
        self.io.cancel.clone()
    }

    /// Performs the effect, handing each chunk to `take` and passing on what that answers. A cancelled effect
    /// is awaited for the grace time; one that panicked or did not end then is `unknown`.
    pub(crate) async fn drive(
        self,
        kernel: &Kernel,
        executor: Arc<dyn Executor>,
        permit: bailey_journal::Permit,
        scope: &Scope,
        mut take: impl FnMut(Chunk) -> Vec<ChunkNotice>,
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
                    for told in take(chunk) {
                        told.pass(kernel, scope).await;
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
            for told in take(chunk) {
                told.pass(kernel, scope).await;
            }
        }
        output
    }
}

/// Of an effect whose end nobody saw.
pub(crate) fn unknown() -> Output {
    Output::new(Outcome { status: Status::Unknown, enforced: None, duration_ms: 0, report: Report::Nothing })
}
