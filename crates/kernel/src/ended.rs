//! Processes in the background that ended: the model is told of each end once, as a later result of the call
//! that began it. The entry of that result is about the process's effect, so a session that is resumed knows
//! which ends were told.

use crate::{
    Kernel, Late, Observation, Output, Refused, Scope,
    background::Process,
    call::brought,
    context::Provenance,
    restore::FindTool,
    screen,
    tool::{self, Conclusion},
};
use bailey_journal::Recorded;
use bailey_protocol::{
    Action, Blob, EffectId, ExecReport, Happening, Labels, Outcome, ProcessReport, Report, Seq, Status,
    ToolCall,
};
use bailey_secrets::Redactor;
use std::sync::{Arc, PoisonError};

/// The most of a command that is named in a notice, in bytes.
const LINE_BYTES_MAX: usize = 200;

/// A process in the background, as the journal knows it.
pub(crate) struct Began {
    pub(crate) effect: EffectId,
    pub(crate) intent: Seq,
    pub(crate) call: ToolCall,
    line: String,
    brings: Labels,
    pub(crate) outcome: Option<Outcome>,
    /// Whether somebody asked for its end.
    pub(crate) is_stopped: bool,
}

impl Began {
    /// None where this intent begins no process.
    pub(crate) fn of(intent: &Recorded, action: &Action, call: &ToolCall) -> Option<Self> {
        let Action::Exec(command) = action else { return None };
        command.background.then_some(Self {
            effect: intent.entry.effect?,
            intent: intent.entry.seq,
            call: call.clone(),
            line: action.target(),
            brings: brought(action, intent.entry.seq),
            outcome: None,
            is_stopped: false,
        })
    }
}

impl Kernel {
    /// What ended in the background and was not told yet, each as it is told now.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn ends(
        &self,
        scope: &Scope,
        because: &Provenance,
        find: FindTool<'_>,
    ) -> Result<Vec<Late>, Refused> {
        let mut told = Vec::new();
        // A sub-agent begins none, and is told of none.
        let ended = if scope.conversation.is_some() { Vec::new() } else { self.untold(scope) };
        for process in ended {
            let (Some(call), Ok(outcome)) = (process.call.get(), process.report()) else { continue };
            let conclusion = self.conclude_end(call, outcome.report, find);
            let notice = format!("{}: `{}`", conclusion.summary, self.short(&process.line));
            let effect = Some(process.effect);
            let labels = process.brings.clone().join(because.labels());
            let seen = self.record(scope, call, conclusion, labels, None, effect).await?;
            process.settle();
            self.tell(scope, Happening::Notice { text: notice }).await?;
            told.push(Late::end(seen));
        }
        Ok(told)
    }

    fn untold(&self, scope: &Scope) -> Vec<Arc<Process>> {
        let processes = self.inner.processes.lock().unwrap_or_else(PoisonError::into_inner);
        let session = scope.session();
        let of_session = processes.range((session, 0)..=(session, u32::MAX)).map(|(_, process)| process);
        of_session.filter(|process| process.is_over() && !process.is_settled()).cloned().collect()
    }

    /// Tells the end of what was begun in an earlier process of Bailey. None of what never ran: its call was
    /// answered with that.
    pub(crate) async fn end_before(
        &self,
        scope: &Scope,
        labels: Labels,
        began: &Began,
        find: FindTool<'_>,
    ) -> Result<Option<Observation>, Refused> {
        let Some(outcome) = &began.outcome else { return Ok(None) };
        let number = self.journal().process_number(scope.session(), began.intent).await?;
        let conclusion = match (&outcome.status, &outcome.report) {
            (Status::Cancelled, Report::Exec(_)) if !began.is_stopped => {
                with_session(number, &self.short(&began.line))
            }
            (Status::Unknown, _) => with_session(number, &self.short(&began.line)),
            (status, Report::Exec(exec)) => {
                let exec = without_secrets(self.journal().redactor(), exec);
                let report = ProcessReport { number, ended: Some(status.clone()), exec };
                self.conclude_end(&began.call, Report::Process(report), find)
            }
            _ => return Ok(None),
        };
        let labels = began.brings.clone().join(&labels);
        self.record(scope, &began.call, conclusion, labels, None, Some(began.effect)).await.map(Some)
    }

    /// Nobody knows half of a secret.
    fn short(&self, line: &str) -> String {
        screen::bound(&self.journal().redactor().redact(line).text, LINE_BYTES_MAX)
    }

    fn conclude_end(&self, call: &ToolCall, report: Report, find: FindTool<'_>) -> Conclusion {
        let outcome = Outcome { status: Status::Done, enforced: None, duration_ms: 0, report };
        match find(&call.name) {
            Some(tool) => tool::conclude(&*tool, call, &[], &Output::new(outcome), self.journal().redactor()),
            None => plain("it has ended"),
        }
    }
}

/// An outcome may lie in the journal in a form in which a secret was not seen.
fn without_secrets(redactor: &Redactor, exec: &ExecReport) -> ExecReport {
    let mut exec = exec.clone();
    for stream in [&mut exec.stdout, &mut exec.stderr] {
        let before = stream.head.0.len() + stream.tail.0.len();
        let [head, tail] =
            [&stream.head, &stream.tail].map(|part| redactor.redact_bytes(&part.0).into_owned());
        // What was left out is told by the difference.
        stream.total = stream.total.saturating_sub(before as u64) + (head.len() + tail.len()) as u64;
        (stream.head, stream.tail) = (Blob(head), Blob(tail));
    }
    exec
}

fn with_session(number: u32, line: &str) -> Conclusion {
    plain(&format!("process {number} ended with the session, and runs no more: `{line}`"))
}

fn plain(text: &str) -> Conclusion {
    Conclusion { ok: false, summary: text.into(), text: text.into() }
}
