//! Calls that wait for a human. A call waits a little itself; then the model is told that it waits, works on,
//! and is told the result when there is one.

use crate::Hands;
use bailey_kernel::{
    CallOutcome, Context, Kernel, Late, Observation, Provenance, Refused, Scope, Settlement, Tool, Waits,
};
use bailey_protocol::{Answer, ApprovalId, ToolCall};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// How often a turn that only waits looks for an answer.
const LOOK: Duration = Duration::from_millis(250);

/// How long a turn waits for a human.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How long a call waits before its model is told so and works on.
    pub call: Duration,
    /// Whether a turn waits at its end for the answers that are still open, instead of ending without them.
    pub at_end: bool,
}

/// The calls of a session whose results are still to come. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct PendingCalls {
    calls: Arc<Mutex<Vec<Waits>>>,
    /// Every call that a human was asked about, by its question: what has run out may be asked once more.
    /// (Some servers number the calls of each reply anew.)
    asked: Arc<Mutex<HashMap<ApprovalId, ToolCall>>>,
    /// The questions among those that were asked once more: each is followed once.
    taken_up: Arc<Mutex<HashSet<ApprovalId>>>,
}

impl PendingCalls {
    /// These wait, and these were asked about.
    #[must_use]
    pub fn of(calls: Vec<Waits>, asked: Vec<Waits>) -> Self {
        let asked = asked.into_iter().map(|waits| (waits.question, waits.call)).collect();
        let taken_up = calls.iter().map(|waits| waits.question).collect();
        Self {
            calls: Arc::new(Mutex::new(calls)),
            asked: Arc::new(Mutex::new(asked)),
            taken_up: Arc::new(Mutex::new(taken_up)),
        }
    }

    fn ask(&self, question: ApprovalId, call: &ToolCall) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(question, call.clone());
    }

    /// Adds the calls whose questions ran out and were asked once more. Returns the new questions.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn take_up(&self, kernel: &Kernel, scope: &Scope) -> Result<Vec<ApprovalId>, Refused> {
        if !self.has_asked() {
            return Ok(Vec::new());
        }
        let again = kernel.asked_again(scope).await?;
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken_up = self.taken_up.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new = Vec::new();
        for (question, first) in again {
            if let Some(call) = asked.get(&first).filter(|_| taken_up.insert(question)) {
                self.push(Waits { question, call: call.clone() });
                new.push(question);
            }
        }
        Ok(new)
    }

    fn has_asked(&self) -> bool {
        !self.asked.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// All that wait, the oldest first.
    #[must_use]
    pub fn calls(&self) -> Vec<Waits> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn push(&self, waits: Waits) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(waits);
    }

    fn remove(&self, question: ApprovalId) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|waits| waits.question != question);
    }
}

impl Hands {
    /// Goes on with a call that a human is asked about, when they have answered, or without them when that
    /// takes too long.
    pub(crate) async fn wait_for(
        &self,
        because: &Provenance,
        tool: &dyn Tool,
        call: &ToolCall,
        id: ApprovalId,
    ) -> Result<CallOutcome, Refused> {
        self.waiting.ask(id, call);
        let settlement = tokio::select! {
            settlement = self.kernel.settled(&self.scope, id) => settlement?,
            () = self.scope.cancel().cancelled() => {
                self.take_back(id).await?;
                let text = "cancelled: the user ended this turn before answering";
                return self.kernel.answer_call(&self.scope, because, call, text).await.map(CallOutcome::Done);
            }
            () = tokio::time::sleep(self.patience.call) => {
                self.waiting.push(Waits { question: id, call: call.clone() });
                return self.kernel.answer_waiting(&self.scope, because, call, id).await.map(CallOutcome::Done);
            }
        };
        self.follow(because, tool, call, id, &settlement).await
    }

    /// Tells the model what became of calls that waited and are settled now.
    ///
    /// # Errors
    /// When the journal cannot be read or written.
    pub async fn woken(&self, context: &mut Context) -> Result<bool, Refused> {
        let mut is_news = false;
        if self.scope.cancel().is_cancelled() {
            // Nothing more is to begin.
            return Ok(false);
        }
        self.waiting.take_up(&self.kernel, &self.scope).await?;
        for Waits { question, call } in self.waiting.calls() {
            let Some(settlement) = self.kernel.settlement(&self.scope, question).await? else { continue };
            self.waiting.remove(question);
            let because = context.provenance();
            let late = self.late(&because, &call, question, &settlement).await?;
            if let Some(observation) = late {
                context.push(Late::of(observation));
                is_news = true;
            }
        }
        Ok(is_news)
    }

    /// Tells the model what ended in the background.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn learn_ends(&self, context: &mut Context) -> Result<(), Refused> {
        let find = |name: &str| self.tools.find(name);
        let ends = self.kernel.ends(&self.scope, &context.provenance(), &find).await?;
        ends.into_iter().for_each(|late| context.push(late));
        Ok(())
    }

    /// Waits at a turn's end for what is still asked; whether there is news for the model.
    ///
    /// # Errors
    /// When the journal cannot be read or written.
    pub async fn wait_at_end(&self, context: &mut Context) -> Result<bool, Refused> {
        loop {
            if self.woken(context).await? || !self.news.is_empty() {
                return Ok(true);
            }
            if !self.patience.at_end || self.waiting.calls().is_empty() {
                return Ok(false);
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = self.scope.cancel().cancelled() => return Ok(false),
            }
        }
    }

    /// Takes back what is asked: whoever stopped the turn is to answer nothing more of it.
    pub(crate) async fn withdraw(&self) -> Result<(), Refused> {
        for Waits { question, .. } in self.waiting.calls() {
            self.take_back(question).await?;
            let settlement = self.kernel.settlement(&self.scope, question).await?;
            // What was let happen for longer, and was used by others since, stays so; this call does not go
            // on by it.
            if settlement.is_some_and(|settlement| settlement.answer.is_yes()) {
                self.waiting.remove(question);
            }
        }
        Ok(())
    }

    /// A question that is open is settled with no, and so is one with a yes that nothing at all has begun on.
    async fn take_back(&self, question: ApprovalId) -> Result<(), Refused> {
        const WHY: &str = "the turn was cancelled";
        self.kernel.withdraw(&self.scope, question, WHY).await?;
        self.kernel.take_back(&self.scope, question, WHY).await
    }

    /// None when the call waits once more.
    async fn late(
        &self,
        because: &Provenance,
        call: &ToolCall,
        id: ApprovalId,
        settlement: &Settlement,
    ) -> Result<Option<Observation>, Refused> {
        let tool = self.tools.find(&call.name);
        // What it was answered with while it waited was told as its end.
        if settlement.answer.is_yes() {
            self.tell_of(tool.as_deref(), call).await?;
        }
        let Some(tool) = tool else {
            self.use_up(id, settlement).await?;
            let text = self.tools.now().unavailable(&call.name);
            return self.kernel.answer_call(&self.scope, because, call, &text).await.map(Some);
        };
        match self.follow(because, &*tool, call, id, settlement).await {
            Ok(CallOutcome::Done(observation)) => Ok(Some(observation)),
            Ok(CallOutcome::Delegate(errand)) => self.delegate(because, call, &errand).await.map(Some),
            // What it found on the way wants another answer.
            Ok(CallOutcome::Waiting(id)) => {
                self.waiting.push(Waits { question: id, call: call.clone() });
                Ok(None)
            }
            Err(error) => {
                let text = format!("not done, or its end was not seen: {error}");
                self.kernel.answer_call(&self.scope, because, call, &text).await.map(Some)
            }
        }
    }

    /// A yes to one call is good for none that comes later, also where this one was not done after all: a
    /// server may call it by the same name.
    async fn use_up(&self, id: ApprovalId, settlement: &Settlement) -> Result<(), Refused> {
        if settlement.answer != Answer::Yes {
            return Ok(());
        }
        self.kernel.take_back(&self.scope, id, "it was good for that call alone").await
    }

    /// What follows from an answer.
    async fn follow(
        &self,
        because: &Provenance,
        tool: &dyn Tool,
        call: &ToolCall,
        id: ApprovalId,
        settlement: &Settlement,
    ) -> Result<CallOutcome, Refused> {
        let text = match settlement {
            Settlement { answer, .. } if answer.is_yes() => {
                let step = match self.kernel.resume(&self.scope, because, id, tool, call).await {
                    // Another process asked. The call is planned anew, and the yes is good for that very
                    // action only.
                    Err(Refused::NoQuestion(_)) => self.kernel.call(&self.scope, because, tool, call).await,
                    step => step,
                };
                self.use_up(id, settlement).await?;
                return step;
            }
            Settlement { why, .. } if why.is_empty() => "rejected by the user".to_owned(),
            Settlement { why, .. } => format!("not approved: {why}"),
        };
        self.kernel.answer_call(&self.scope, because, call, &text).await.map(CallOutcome::Done)
    }
}
