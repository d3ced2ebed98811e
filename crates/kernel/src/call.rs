//! The verb `call`: a tool call, from its plan to its observation.

use crate::{
    Errand, Kernel, Observation, Output, Refused, Scope, Tool,
    admit::{ActionRequest, Admission, Shown},
    context::Provenance,
    cut,
    launch::Finished,
    live::Audience,
    screen,
    tool::{self, Conclusion, Plan},
};
use bailey_journal::{Entry, Fact, Payload, Purpose};
use bailey_protocol::{
    Action, ApprovalId, Cost, Digest, EffectId, Enforced, FileChange, Happening, Image, Labels, Outcome,
    Report, Secrecy, Seq, Status, ToolCall, WsPath,
};
use serde::Serialize;
use std::{collections::VecDeque, sync::PoisonError};

/// How often a tool may ask for something to read before it acts.
const PLANS_MAX: usize = 8;

/// Files of which is kept what conversations last saw of them; beyond them it is forgotten.
const SHOWN_FILES_MAX: usize = 10_000;

/// The outcome of a call.
#[derive(Debug)]
pub enum CallOutcome {
    /// Its result.
    Done(Observation),
    /// A human is asked; `Kernel::resume` goes on when they have answered.
    Waiting(ApprovalId),
    /// A sub-agent is to do it: `Kernel::delegate` begins it, `Kernel::come_back` answers the call.
    Delegate(Errand),
}

/// An effect that waits for a human, with what its plan had read and what it still wants to read.
pub(crate) struct Pending {
    pub(crate) shown: Shown,
    pub(crate) purpose: Purpose,
    pub(crate) seen: Vec<Output>,
    pub(crate) needed: VecDeque<Action>,
    /// What it read brought.
    pub(crate) labels: Labels,
}

/// What is said of a result beside its text.
#[derive(Default)]
pub(crate) struct How {
    pub(crate) enforced: Option<Enforced>,
    pub(crate) duration_ms: u64,
    /// The process in the background whose end it tells.
    pub(crate) ends: Option<EffectId>,
    /// The picture that was read.
    pub(crate) images: Vec<Image>,
}

/// The result of one effect.
pub(crate) enum EffectResult {
    Finished(Finished),
    Denied(Vec<String>),
    Waits(ApprovalId, Box<Shown>),
}

impl Kernel {
    /// Runs a tool call: plan, admit, perform, conclude, screen, record. `because` is the context that led to
    /// it.
    ///
    /// # Errors
    /// When the journal cannot be written; then nothing more happens.
    pub async fn call(
        &self,
        scope: &Scope,
        because: &Provenance,
        tool: &dyn Tool,
        call: &ToolCall,
    ) -> Result<CallOutcome, Refused> {
        self.plan(scope, because, tool, call, Vec::new(), VecDeque::new()).await
    }

    /// Goes on with a call whose question was answered with yes: the bytes that were shown are decided again,
    /// and run.
    ///
    /// # Errors
    /// When the question is unknown or not granted, or the journal cannot be written.
    pub async fn resume(
        &self,
        scope: &Scope,
        because: &Provenance,
        id: ApprovalId,
        tool: &dyn Tool,
        call: &ToolCall,
    ) -> Result<CallOutcome, Refused> {
        let pending = self.unpend(id).ok_or(Refused::NoQuestion(id))?;
        let Pending { shown, purpose, mut seen, needed, labels } = pending;
        let because = &because.with(&labels);
        let action = shown.sealed.effect().action.clone();
        let admission = self.admit_approved(scope, shown, id, purpose).await?;
        match self.settle(scope, admission, &action, Some(call)).await? {
            EffectResult::Finished(finished) if purpose == Purpose::Need => {
                let because = because.with(&brought(&action, finished.seq));
                seen.push(finished.output);
                self.plan(scope, &because, tool, call, seen, needed).await
            }
            EffectResult::Finished(finished) => {
                self.learn(scope, &action, &finished.output);
                let labels = brought(&action, finished.seq).join(because.labels());
                self.observe_output(scope, labels, tool, call, &seen, &finished).await.map(CallOutcome::Done)
            }
            EffectResult::Denied(reasons) => {
                self.refused(scope, because, call, &reasons).await.map(CallOutcome::Done)
            }
            EffectResult::Waits(id, _) => Ok(CallOutcome::Waiting(id)),
        }
    }

    /// Answers a call without an effect: refused arguments, a rejection, a notice. The text passes the
    /// screen.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn answer_call(
        &self,
        scope: &Scope,
        because: &Provenance,
        call: &ToolCall,
        text: &str,
    ) -> Result<Observation, Refused> {
        let summary = text.lines().next().unwrap_or_default().to_owned();
        let conclusion = Conclusion { ok: false, summary, text: text.to_owned() };
        self.observe(scope, call, conclusion, because.labels().clone(), How::default()).await
    }

    async fn plan(
        &self,
        scope: &Scope,
        because: &Provenance,
        tool: &dyn Tool,
        call: &ToolCall,
        mut seen: Vec<Output>,
        mut needed: VecDeque<Action>,
    ) -> Result<CallOutcome, Refused> {
        // What a call does, and what is answered to it, follows from what it read, too.
        let mut because = because.clone();
        for _ in 0..PLANS_MAX {
            // What a plan asked for is read to its end before the plan is made again.
            while let Some(action) = needed.pop_front() {
                let for_a_change = !tool.claims(call).writes.is_empty();
                let purpose = Purpose::Need;
                let asked = asked(&because, purpose, for_a_change, action.clone(), call);
                match self.effect(scope, asked, call, &seen).await? {
                    EffectResult::Finished(finished) => {
                        because = because.with(&brought(&action, finished.seq));
                        seen.push(finished.output);
                    }
                    EffectResult::Denied(reasons) => {
                        return self.refused(scope, &because, call, &reasons).await.map(CallOutcome::Done);
                    }
                    EffectResult::Waits(id, shown) => {
                        self.pend(
                            id,
                            Pending {
                                shown: *shown,
                                purpose,
                                seen,
                                needed,
                                labels: because.labels().clone(),
                            },
                        );
                        return Ok(CallOutcome::Waiting(id));
                    }
                }
            }
            match tool::plan(tool, call, &seen) {
                Plan::Refuse(reason) => {
                    return self.answer_call(scope, &because, call, &reason).await.map(CallOutcome::Done);
                }
                Plan::Delegate(errand) => return Ok(CallOutcome::Delegate(errand)),
                Plan::Attend(attend) => {
                    return self.attend(scope, &because, tool, call, attend).await.map(CallOutcome::Done);
                }
                Plan::Act(action) => return self.planned(scope, &because, tool, call, action, seen).await,
                Plan::Need(actions) if actions.iter().all(Action::is_read) => {
                    needed = actions.into();
                }
                Plan::Need(_) => return Err(Refused::Failed("a plan may ask for reads only".into())),
            }
        }
        let why = format!("the tool still wants to read more after {PLANS_MAX} rounds");
        Ok(CallOutcome::Done(self.answer_call(scope, &because, call, &why).await?))
    }

    /// What a plan came to.
    async fn planned(
        &self,
        scope: &Scope,
        because: &Provenance,
        tool: &dyn Tool,
        call: &ToolCall,
        action: Action,
        seen: Vec<Output>,
    ) -> Result<CallOutcome, Refused> {
        if tool::claims(tool, call).whole
            && let Some(path) = self.changed_since(scope, &action)
        {
            let text = format!(
                "`{path}` is not what you last saw of it: somebody changed it since. Read it again, and write what is to stand there"
            );
            return self.answer_call(scope, because, call, &text).await.map(CallOutcome::Done);
        }
        let asked = asked(because, Purpose::Act, false, action.clone(), call);
        match self.effect(scope, asked, call, &seen).await? {
            EffectResult::Finished(finished) => {
                self.learn(scope, &action, &finished.output);
                let labels = brought(&action, finished.seq).join(because.labels());
                self.observe_output(scope, labels, tool, call, &seen, &finished).await.map(CallOutcome::Done)
            }
            EffectResult::Denied(reasons) => {
                self.refused(scope, because, call, &reasons).await.map(CallOutcome::Done)
            }
            EffectResult::Waits(id, shown) => {
                let (purpose, needed) = (Purpose::Act, VecDeque::new());
                let labels = because.labels().clone();
                self.pend(id, Pending { shown: *shown, purpose, seen, needed, labels });
                Ok(CallOutcome::Waiting(id))
            }
        }
    }

    /// Keeps what a conversation was shown of a file, or made of it. A file that its command changed, it has
    /// not seen.
    fn learn(&self, scope: &Scope, action: &Action, output: &Output) {
        let mut shown = self.inner.last_seen.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.len() > SHOWN_FILES_MAX {
            shown.clear();
        }
        let mut keep = |path: &WsPath, digest: Option<Digest>| {
            let key = (scope.conversation(), path.clone());
            match digest {
                Some(digest) => shown.insert(key, digest),
                None => shown.remove(&key),
            };
        };
        match (action, output.report()) {
            (Action::Read { path }, Report::File(file)) => keep(path, file.digest),
            (Action::Read { path }, _) => keep(path, None),
            (Action::Change { files }, Report::Changed { files: changed }) => {
                files.iter().zip(changed).for_each(|(file, changed)| keep(&file.path, changed.new));
            }
            _ => {}
        }
    }

    /// The first file of a change that is not what the conversation last saw of it.
    fn changed_since<'a>(&self, scope: &Scope, action: &'a Action) -> Option<&'a WsPath> {
        let Action::Change { files } = action else { return None };
        let shown = self.inner.last_seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_another = |file: &&FileChange| {
            let last = shown.get(&(scope.conversation(), file.path.clone()));
            file.base.is_some() && last.is_some() && last != file.base.as_ref()
        };
        files.iter().find(is_another).map(|file| &file.path)
    }

    /// Writes down the tools of peers that a model is told of from now on, a list in JSON.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn offer(&self, scope: &Scope, tools: &impl Serialize) -> Result<(), Refused> {
        let tools = serde_json::to_string(tools).map_err(|error| Refused::Failed(error.to_string()))?;
        let fact = Fact::Offered { digest: Digest::of(tools.as_bytes()) };
        self.journal().append(Entry::of(scope.conversation(), fact).with(Payload::Text(tools))).await?;
        Ok(())
    }

    async fn effect(
        &self,
        scope: &Scope,
        asked: ActionRequest,
        call: &ToolCall,
        seen: &[Output],
    ) -> Result<EffectResult, Refused> {
        let action = asked.action.clone();
        let admission = self.admit(scope, asked, seen).await?;
        self.settle(scope, admission, &action, Some(call)).await
    }

    pub(crate) async fn settle(
        &self,
        scope: &Scope,
        admission: Admission,
        action: &Action,
        call: Option<&ToolCall>,
    ) -> Result<EffectResult, Refused> {
        Ok(match admission {
            Admission::Run(started) => {
                let audience = call.map_or(Audience::Nobody, |call| Audience::Call(call.id.clone()));
                EffectResult::Finished(self.launch(scope, *started, action, audience).await?)
            }
            Admission::Denied(reasons) => EffectResult::Denied(reasons),
            Admission::Waits(id, shown) => EffectResult::Waits(id, shown),
        })
    }

    async fn refused(
        &self,
        scope: &Scope,
        because: &Provenance,
        call: &ToolCall,
        reasons: &[String],
    ) -> Result<Observation, Refused> {
        self.answer_call(scope, because, call, &format!("denied: {}", reasons.join("; "))).await
    }

    async fn observe_output(
        &self,
        scope: &Scope,
        labels: Labels,
        tool: &dyn Tool,
        call: &ToolCall,
        seen: &[Output],
        finished: &Finished,
    ) -> Result<Observation, Refused> {
        let outcome = finished.output.outcome();
        let mut images = Vec::new();
        let conclusion = match &outcome.status {
            Status::Cancelled => ended("cancelled: the user ended this turn"),
            Status::Unknown => {
                ended("its end was not seen: it may have happened; look before you do it again")
            }
            Status::Done | Status::Failed { .. } => {
                let redactor = self.journal().redactor();
                let clean = cut::to_conclude(redactor, &finished.output);
                images.extend(clean.is_none().then(|| picture(outcome)).flatten());
                tool::conclude(tool, call, seen, clean.as_ref().unwrap_or(&finished.output), redactor)
            }
        };
        let (enforced, duration_ms) = (outcome.enforced.clone(), outcome.duration_ms);
        let ends = self.began(scope, call, &finished.output);
        self.observe(scope, call, conclusion, labels, How { enforced, duration_ms, ends, images }).await
    }

    pub(crate) async fn observe(
        &self,
        scope: &Scope,
        call: &ToolCall,
        conclusion: Conclusion,
        labels: Labels,
        how: How,
    ) -> Result<Observation, Refused> {
        let (ok, summary) = (conclusion.ok, conclusion.summary.clone());
        let How { enforced, duration_ms, ends, images } = how;
        let mut observation = self.record(scope, call, conclusion, labels, None, ends).await?;
        observation.images = images;
        let text = observation.text().to_owned();
        let happening = Happening::Result { call: call.id.clone(), ok, summary, text, duration_ms, enforced };
        self.tell(scope, happening).await?;
        Ok(observation)
    }

    /// Screens and writes a call's result. Nobody is told, but of one that was withheld. `waits` says that it
    /// is one for now only, `ends` which process in the background it tells the end of.
    pub(crate) async fn record(
        &self,
        scope: &Scope,
        call: &ToolCall,
        conclusion: Conclusion,
        labels: Labels,
        waits: Option<ApprovalId>,
        ends: Option<EffectId>,
    ) -> Result<Observation, Refused> {
        let Conclusion { ok, text, .. } = conclusion;
        let mut screened = screen::screen(self.journal().redactor(), &text);
        let counting = match screened.known.is_empty() {
            true => None,
            false => Some(self.inner.hits.lock().await),
        };
        let masked = self.weigh(scope, call, &mut screened).await?;
        let is_withheld = masked.as_ref().is_some_and(|masked| masked.withheld);
        let fact = Fact::Observation {
            call: call.id.clone(),
            tool: call.name.clone(),
            ok,
            redacted: u32::try_from(screened.redacted).unwrap_or(u32::MAX),
            masked,
            labels: labels.clone(),
            waits,
        };
        let entry = Entry::of(scope.conversation(), fact).with(Payload::Text(screened.text.clone()));
        let seq = self.journal().append(Entry { effect: ends, ..entry }).await?;
        drop(counting);
        if is_withheld {
            self.tell(scope, Happening::Notice { text: self.withheld() }).await?;
        }
        Ok(screen::observation(seq, call, ok, screened, labels))
    }
}

fn ended(text: &str) -> Conclusion {
    Conclusion { ok: false, summary: text.into(), text: text.into() }
}

/// The picture that an effect read: whole, and as it lies in the file. A picture in which a
/// secret was masked is no picture any more.
pub(crate) fn picture(outcome: &Outcome) -> Option<Image> {
    let Report::File(file) = &outcome.report else { return None };
    let image = Image::of(file.content.0.clone())?;
    (file.digest == Some(Digest::of(image.bytes()))).then_some(image)
}

/// The labels of what an action brings back, by itself: what that says changes nothing about them.
pub(crate) fn brought(action: &Action, entry: Seq) -> Labels {
    Labels::new(action.brings(), Secrecy::Workspace).from_entry(entry)
}

/// What a tool call asks for.
fn asked(
    because: &Provenance,
    purpose: Purpose,
    for_a_change: bool,
    action: Action,
    call: &ToolCall,
) -> ActionRequest {
    let (call, labels) = (Some(call.id.clone()), because.labels().clone());
    ActionRequest { action, purpose, for_a_change, call, parent: None, labels, cost: Cost::default() }
}
