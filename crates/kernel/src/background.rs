//! Processes in the background: commands that go on after the call that began them.
//!
//! Such a command is an effect as any other: decided, begun and ended by the same rules, its intent written
//! before it starts and its outcome when it has ended. Only whoever asked is answered earlier, as soon as it
//! runs. To look at what it printed and to end it are no effects of their own: what it may do was decided
//! when it began.

use crate::{
    Chunk, Kernel, Observation, Output, Refused, Scope, Tool,
    admit::Started,
    call::{How, brought},
    context::Provenance,
    cut,
    launch::Finished,
    live::StreamExcerpt,
    tool,
};
use bailey_protocol::{
    Action, Cost, EffectId, Enforced, ExecReport, Labels, Outcome, ProcessReport, Report, Seq, SessionId,
    Status, ToolCall,
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Processes of one session that live at once.
const PROCESSES_MAX: usize = 8;
/// The most that is kept of each of a process's streams, in bytes.
const LOG_BYTES: usize = 64 << 10;
/// How often is looked whether somebody asked in another process that one ends.
const LOOK: Duration = Duration::from_millis(250);

/// What a tool wants of a process in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attend {
    /// Its number in the session.
    pub process: u32,
    /// Whether it shall end.
    pub stop: bool,
}

/// The processes that this kernel began, by session and number.
pub(crate) type Processes = Mutex<BTreeMap<(SessionId, u32), Arc<Process>>>;

/// One process, while it lives and afterwards.
pub(crate) struct Process {
    pub(crate) number: u32,
    pub(crate) line: String,
    pub(crate) intent: Seq,
    pub(crate) effect: EffectId,
    /// The labels of what it prints, by itself.
    pub(crate) brings: Labels,
    /// The call that began it, once that is answered: its end is told as a later result of the same.
    pub(crate) call: OnceLock<ToolCall>,
    is_told: AtomicBool,
    cancel: CancellationToken,
    log: Mutex<[StreamExcerpt; 2]>,
    stage: watch::Receiver<Stage>,
}

/// How far a process is.
#[derive(Debug, Clone)]
enum Stage {
    Begins,
    Runs(Enforced),
    Ended(Arc<Outcome>),
}

impl Process {
    pub(crate) fn is_over(&self) -> bool {
        matches!(*self.stage.borrow(), Stage::Ended(_))
    }

    /// Whether the model knows that it ended, or never heard that it runs.
    pub(crate) fn is_settled(&self) -> bool {
        self.call.get().is_none() || self.is_told.load(Ordering::Acquire)
    }

    /// The model is told that it ended.
    pub(crate) fn settle(&self) {
        self.is_told.store(true, Ordering::Release);
    }

    /// The effect, where this output tells its end: then it is told no more.
    fn end_in(&self, output: &Output) -> Option<EffectId> {
        let is_end = matches!(output.report(), Report::Process(report) if report.ended.is_some());
        is_end.then(|| {
            self.settle();
            self.effect
        })
    }

    /// Waits until it has ended.
    async fn ended(&self) {
        // A stage that nobody can change any more is its last one.
        self.stage.clone().wait_for(|stage| matches!(stage, Stage::Ended(_))).await.ok();
    }

    fn take(&self, chunk: Chunk) {
        let (place, bytes) = match chunk {
            Chunk::Stdout(bytes) => (0, bytes),
            Chunk::Stderr(bytes) => (1, bytes),
            Chunk::Begun(_) | Chunk::Head(..) | Chunk::Body(_) => return,
        };
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(record) = log.get_mut(place) {
            record.push(&bytes);
        }
    }

    fn end(&self) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.iter_mut().for_each(StreamExcerpt::end);
    }

    /// How it stands, with what is kept of what it printed; none of one that never ran.
    pub(crate) fn report(&self) -> Result<Outcome, Arc<Outcome>> {
        let stage = self.stage.borrow().clone();
        let enforced = match &stage {
            Stage::Begins => None,
            Stage::Runs(enforced) => Some(enforced.clone()),
            Stage::Ended(outcome) => match &outcome.report {
                Report::Exec(_) => outcome.enforced.clone(),
                _ => return Err(outcome.clone()),
            },
        };
        let mut exec = match &stage {
            Stage::Ended(outcome) => match &outcome.report {
                Report::Exec(report) => report.clone(),
                _ => ExecReport::default(),
            },
            Stage::Begins | Stage::Runs(_) => ExecReport::default(),
        };
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let [stdout, stderr] = &*log;
        (exec.stdout, exec.stderr) = (stdout.stream(), stderr.stream());
        let status = match &stage {
            Stage::Ended(outcome) => Some(outcome.status.clone()),
            Stage::Begins | Stage::Runs(_) => None,
        };
        let report = Report::Process(ProcessReport { number: self.number, ended: status, exec });
        Ok(Outcome { status: Status::Done, enforced, duration_ms: 0, report })
    }
}

impl Kernel {
    /// Begins a process in the background. The answer comes as soon as it runs, or when it did not come to
    /// that.
    pub(crate) async fn launch_background(
        &self,
        scope: &Scope,
        started: Started,
        action: &Action,
    ) -> Result<Finished, Refused> {
        let executor = self.performer(action)?;
        let session = scope.session();
        let refusal = self.no_process(scope);
        let (effect, intent) = started.begun_as()?;
        let number = self.journal().process_number(session, intent).await?;
        let (permit, receipt, labels) = started.launched()?;
        if let Some(reason) = refusal {
            drop(permit);
            return self.finish(receipt, Output::failed(reason), Cost::default(), Vec::new()).await;
        }
        let (say, mut stage) = watch::channel(Stage::Begins);
        let process = Arc::new(Process {
            number,
            line: action.target(),
            intent,
            effect,
            brings: brought(action, intent),
            call: OnceLock::new(),
            is_told: AtomicBool::new(false),
            cancel: CancellationToken::new(),
            log: Mutex::new([(), ()].map(|()| StreamExcerpt::new(self, LOG_BYTES))),
            stage: stage.clone(),
        });
        self.remember(session, process.clone());
        let (kernel, of) = (self.clone(), process.clone());
        // Its turn's end is not its own.
        let scope = Scope { cancel: process.cancel.clone(), ..scope.clone() };
        let task = tokio::spawn(async move {
            let run = kernel.io(&scope, &receipt, labels);
            let take = |chunk: Chunk| {
                if let Chunk::Begun(enforced) = &chunk {
                    say.send_replace(Stage::Runs(enforced.clone()));
                }
                of.take(chunk);
                Vec::new()
            };
            let output = run.drive(&kernel, executor, permit, &scope, take).await;
            let output = cut::tidy(kernel.journal().redactor(), output);
            let outcome = Arc::new(output.outcome().clone());
            let finished = kernel.finish(receipt, output, Cost::default(), Vec::new()).await;
            of.end();
            say.send_replace(Stage::Ended(outcome));
            finished
        });
        tokio::spawn(self.clone().heed(session, effect, process.clone()));
        stage.wait_for(|stage| !matches!(stage, Stage::Begins)).await.ok();
        match process.report() {
            Ok(outcome) => Ok(Finished { output: Output::new(outcome), seq: intent }),
            Err(_) => task
                .await
                .map_err(|error| Refused::Failed(format!("the effect's task ended badly: {error}")))?,
        }
    }

    /// Why no process can begin in the background here.
    fn no_process(&self, scope: &Scope) -> Option<String> {
        if scope.conversation.is_some() {
            return Some("a sub-agent starts nothing in the background".into());
        }
        let living = self.living(scope.session());
        (living.len() >= PROCESSES_MAX).then(|| {
            format!(
                "{} run in the background already, and more cannot: stop one ({})",
                living.len(),
                list(&living)
            )
        })
    }

    /// Keeps a process, and forgets the oldest whose end is known.
    fn remember(&self, session: SessionId, process: Arc<Process>) {
        let mut processes = self.inner.processes.lock().unwrap_or_else(PoisonError::into_inner);
        let of_session: Vec<_> = processes.range((session, 0)..=(session, u32::MAX)).collect();
        let over = of_session.iter().find(|(_, process)| process.is_over() && process.is_settled());
        let over = over.map(|(key, _)| **key);
        if let Some(key) = over.filter(|_| of_session.len() >= PROCESSES_MAX) {
            processes.remove(&key);
        }
        processes.insert((session, process.number), process);
    }

    fn living(&self, session: SessionId) -> Vec<Arc<Process>> {
        let processes = self.inner.processes.lock().unwrap_or_else(PoisonError::into_inner);
        let of_session = processes.range((session, 0)..=(session, u32::MAX)).map(|(_, process)| process);
        of_session.filter(|process| !process.is_over()).cloned().collect()
    }

    /// Ends a process that somebody asked for in another process.
    async fn heed(self, session: SessionId, effect: EffectId, process: Arc<Process>) {
        let mut after = process.intent;
        loop {
            tokio::select! {
                () = process.ended() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            // A journal that cannot be read now may be readable later.
            if let Ok((asked, newest)) = self.journal().is_end_asked(session, effect, after).await {
                if asked {
                    process.cancel.cancel();
                }
                after = newest;
            }
        }
    }

    /// The processes of a session that live in the background, each as its number and command.
    #[must_use]
    pub fn processes(&self, session: SessionId) -> Vec<(u32, String)> {
        let redactor = self.journal().redactor();
        let line = |process: &Process| redactor.redact(&process.line).text.into_owned();
        self.living(session).iter().map(|process| (process.number, line(process))).collect()
    }

    /// How many there are.
    #[must_use]
    pub fn process_count(&self, session: SessionId) -> usize {
        self.living(session).len()
    }

    /// Ends all processes of a session, and waits until their outcomes are written.
    pub async fn end_processes(&self, session: SessionId) {
        let living = self.living(session);
        living.iter().for_each(|process| process.cancel.cancel());
        for process in living {
            process.ended().await;
        }
    }

    /// Answers a call that looks at a process in the background, or ends it.
    pub(crate) async fn attend(
        &self,
        scope: &Scope,
        because: &Provenance,
        tool: &dyn Tool,
        call: &ToolCall,
        attend: Attend,
    ) -> Result<Observation, Refused> {
        let key = (scope.session(), attend.process);
        let found = {
            let processes = self.inner.processes.lock().unwrap_or_else(PoisonError::into_inner);
            processes.get(&key).cloned().filter(|_| scope.conversation.is_none())
        };
        let Some(process) = found else {
            let living = self.living(scope.session());
            let living = if living.is_empty() { "none runs".into() } else { list(&living) };
            let why = format!("there is no process {} in the background here: {living}", attend.process);
            return self.answer_call(scope, because, call, &why).await;
        };
        if attend.stop {
            process.cancel.cancel();
            process.ended().await;
        }
        let output = match process.report() {
            Ok(outcome) => Output::new(outcome),
            Err(outcome) => Output::new((*outcome).clone()),
        };
        let ends = process.end_in(&output);
        let redactor = self.journal().redactor();
        let conclusion = tool::conclude(tool, call, &[], &output, redactor);
        let labels = process.brings.clone().join(because.labels());
        self.observe(scope, call, conclusion, labels, How { ends, ..How::default() }).await
    }

    /// A call that began a process is answered: its end is told from now on. The effect, where the answer
    /// tells that already.
    pub(crate) fn began(&self, scope: &Scope, call: &ToolCall, output: &Output) -> Option<EffectId> {
        let Report::Process(report) = output.report() else { return None };
        let processes = self.inner.processes.lock().unwrap_or_else(PoisonError::into_inner);
        let process = processes.get(&(scope.session(), report.number))?;
        process.call.set(call.clone()).ok();
        process.end_in(output)
    }
}

/// Processes for people and the model.
fn list(processes: &[Arc<Process>]) -> String {
    let line = |process: &Arc<Process>| format!("{}: {}", process.number, process.line);
    processes.iter().map(line).collect::<Vec<_>>().join("; ")
}
