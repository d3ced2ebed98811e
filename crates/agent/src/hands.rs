//! What a brain can do.

use crate::{CallsLeft, Ceiling, Guides, ModelRole, Models, Patience, PendingCalls, Retry, Warned};
use bailey_kernel::{
    BeginError, BoxFuture, CallOutcome, Claims, Context, Kernel, ModelError, ModelErrorKind, Observation,
    Provenance, Provider, Refused, Reply, Scope, Segment, Tool, UserMessage, claims,
};
use bailey_protocol::{Happening, Seq, ToolCall, ToolSpec, WsPath};
use bailey_tools::Tools;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::{sync::Semaphore, task::JoinSet};

/// How many calls of one reply run at a time: each may bring a process tree of its own.
const CALLS_AT_ONCE_MAX: usize = 8;
/// How many forms of one request a server may refuse: each names another parameter.
const FORMS_MAX: u32 = 6;
/// How much of a call's arguments is told when it begins.
const TARGET_CHARS_MAX: usize = 200;

/// What a brain can do in one turn. Cheap to clone.
#[derive(Clone)]
pub struct Hands {
    /// The gate.
    pub kernel: Kernel,
    /// The turn's authority.
    pub scope: Scope,
    /// The tools, as they were when the step began.
    pub tools: Tools,
    /// The models, by what they are asked for.
    pub models: Models,
    /// How failed model calls are tried again.
    pub retry: Retry,
    /// How long it waits for a human.
    pub patience: Patience,
    /// The calls that wait for one.
    pub waiting: PendingCalls,
    /// What the user said during the turn.
    pub news: News,
    /// Where was looked for what the project says about itself.
    pub guides: Guides,
    /// What the model's window was seen to be.
    pub ceiling: Ceiling,
    /// What the model was told of its budgets.
    pub warned: Warned,
    /// How many tool calls the turn may still make.
    pub calls_left: CallsLeft,
}

/// Messages that were accepted during a turn and wait to be seen.
#[derive(Debug, Clone, Default)]
pub struct News {
    queue: Arc<Mutex<Vec<UserMessage>>>,
    unpinned: Arc<Mutex<Vec<Seq>>>,
}

impl News {
    /// Queues an accepted message.
    pub fn push(&self, message: UserMessage) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }

    /// Whether nothing waits that wants an answer: pinned words do not.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).iter().all(UserMessage::is_pinned)
    }

    /// Takes the messages of these entries out again, unless the model has seen them.
    pub fn take_back(&self, entries: &[Seq]) -> Vec<UserMessage> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.extract_if(.., |message| entries.contains(&message.entry())).collect()
    }

    /// Takes the pin off a message, at the turn's next step.
    pub fn unpin(&self, entry: Seq) {
        self.unpinned.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    fn take_unpinned(&self) -> Vec<Seq> {
        std::mem::take(&mut *self.unpinned.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn take(&self) -> Vec<UserMessage> {
        std::mem::take(&mut *self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Hands {
    /// Begins a step with the tools that there are now. The journal keeps those of peers when they change.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn renew_tools(&self) -> Result<(), Refused> {
        match self.tools.renew(self.kernel.journal().redactor()).await {
            Some(tools) => self.kernel.offer(&self.scope, &tools).await,
            None => Ok(()),
        }
    }

    /// Puts what the user said since the last look in front of the model.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn hear(&self, context: &mut Context) -> Result<(), Refused> {
        let news = self.news.take();
        let said = news.iter().filter(|message| !message.is_pinned()).count();
        let messages = u32::try_from(said).unwrap_or(u32::MAX);
        news.into_iter().for_each(|message| context.push(message));
        self.news.take_unpinned().into_iter().for_each(|entry| context.unpin(entry));
        if messages > 0 {
            self.kernel.tell(&self.scope, Happening::Heard { messages }).await?;
        }
        Ok(())
    }

    /// Asks the turn's own model, offering every tool.
    ///
    /// # Errors
    /// What the last attempt ended with.
    pub async fn converse(&self, context: &Context) -> Result<Reply, Refused> {
        self.ask(ModelRole::Main, context, &self.tools.specs()).await
    }

    /// Asks the model of this role: again where a failure may pass, and where it does not pass the models
    /// that may stand in, in order. Each attempt is an effect of its own, which the gate decides for its own
    /// provider and reserves for anew; a stand-in that the gate refuses is passed over. Who answered once is
    /// asked for the rest of the turn.
    ///
    /// # Errors
    /// What the last attempt ended with.
    pub async fn ask(
        &self,
        role: ModelRole,
        context: &Context,
        tools: &[ToolSpec],
    ) -> Result<Reply, Refused> {
        let ask = |provider| -> BoxFuture<'_, _> {
            Box::pin(self.kernel.converse(&self.scope, context, provider, tools))
        };
        self.over(role, ask).await
    }

    /// Asks in any way over the route of a role.
    pub(crate) async fn over<'a, T>(
        &'a self,
        role: ModelRole,
        ask: impl Fn(&'a dyn Provider) -> BoxFuture<'a, Result<T, Refused>> + Send + Sync,
    ) -> Result<T, Refused> {
        let route = self.models.route(role);
        let mut failed: Option<ModelError> = None;
        for (place, provider) in route.remaining() {
            if let Some(error) = &failed {
                let text = format!("{error}; asking `{}/{}` instead", provider.name(), provider.model());
                self.notice(text).await?;
            }
            match (self.attempts(&**provider, &ask).await, &failed) {
                (Ok(reply), _) => {
                    route.stay_at(place);
                    return Ok(reply);
                }
                (Err(Refused::Model(error)), _) if error.kind.is_passing() => failed = Some(error),
                (Err(Refused::Denied(reasons)), Some(_)) => {
                    let (name, model, why) = (provider.name(), provider.model(), reasons.join("; "));
                    self.notice(format!("`{name}/{model}` may not be asked instead: {why}")).await?;
                }
                (Err(Refused::Begin(error @ BeginError::NoPrice { .. })), Some(_)) => {
                    let (name, model) = (provider.name(), provider.model());
                    self.notice(format!("`{name}/{model}` may not be asked instead: {error}")).await?;
                }
                (Err(error), _) => return Err(error),
            }
        }
        Err(failed.map_or_else(|| Refused::Failed("the route holds no model".into()), Refused::Model))
    }

    /// Asks one model, again where a failure may pass.
    async fn attempts<'a, T>(
        &'a self,
        provider: &'a dyn Provider,
        ask: &(impl Fn(&'a dyn Provider) -> BoxFuture<'a, Result<T, Refused>> + Send + Sync),
    ) -> Result<T, Refused> {
        let (mut attempt, mut forms) = (1, 0);
        loop {
            let error = match ask(provider).await {
                Err(Refused::Model(error)) => error,
                other => return other,
            };
            if error.kind == ModelErrorKind::OtherForm && forms < FORMS_MAX {
                forms += 1;
                self.notice(error.to_string()).await?;
                continue;
            }
            let Some(pause) = self.retry.pause(attempt, error.kind) else { return Err(error.into()) };
            let text = format!("{error}; trying again in {:.0} s", pause.as_secs_f64().ceil());
            self.kernel.tell(&self.scope, Happening::Notice { text }).await?;
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.scope.cancel().cancelled() => return Err(Refused::Cancelled),
            }
            attempt += 1;
        }
    }

    /// Runs the first `most` calls of one reply, in parallel where they do not conflict, a few at a time.
    /// Every call gets a result, in order; those past `most` are told that they were too many.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn calls(
        &self,
        context: &Context,
        calls: &[ToolCall],
        most: usize,
    ) -> Result<Vec<Observation>, Refused> {
        let (calls, over) = calls.split_at_checked(most).unwrap_or((calls, &[]));
        let mut results = self.run(context, calls).await?;
        for call in over {
            let text = "not begun: the turn has reached its limit of tool calls";
            results.push(self.kernel.answer_call(&self.scope, &context.provenance(), call, text).await?);
        }
        Ok(results)
    }

    /// Answers a call that is not run with the reason.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub(crate) async fn leave(
        &self,
        context: &mut Context,
        call: &ToolCall,
        why: &str,
    ) -> Result<(), Refused> {
        let observation = self.kernel.answer_call(&self.scope, &context.provenance(), call, why).await?;
        context.push(Segment::Observation(observation));
        Ok(())
    }

    async fn run(&self, context: &Context, calls: &[ToolCall]) -> Result<Vec<Observation>, Refused> {
        let places = Arc::new(Semaphore::new(CALLS_AT_ONCE_MAX));
        let tools: Vec<Option<Arc<dyn Tool>>> =
            calls.iter().map(|call| self.tools.find(&call.name)).collect();
        let claims: Vec<_> = calls
            .iter()
            .zip(&tools)
            .map(|(call, tool)| tool.as_ref().map(|tool| claims(&**tool, call)).unwrap_or_default())
            .map(|claims| placed(&self.scope, &claims))
            .collect();
        let mut results: Vec<Option<Observation>> = vec![None; calls.len()];
        for wave in crate::waves(&claims, &self.scope.workspace().0) {
            let mut running = JoinSet::new();
            for index in wave {
                let (Some(call), Some(tool)) = (calls.get(index), tools.get(index)) else { continue };
                let (hands, call, tool) = (self.clone(), call.clone(), tool.clone());
                let because = context.provenance();
                let places = places.clone();
                running.spawn(async move {
                    let _place = places.acquire_owned().await;
                    (index, hands.answered(&because, tool, &call).await)
                });
            }
            while let Some(ended) = running.join_next().await {
                let (index, observation) = ended.map_err(|error| Refused::Failed(error.to_string()))?;
                if let Some(slot) = results.get_mut(index) {
                    *slot = Some(observation?);
                }
            }
        }
        Ok(results.into_iter().flatten().collect())
    }

    /// Runs a call; one that the kernel could not begin or end is answered with the reason. Only when even
    /// that cannot be written does the turn fail.
    async fn answered(
        &self,
        because: &Provenance,
        tool: Option<Arc<dyn Tool>>,
        call: &ToolCall,
    ) -> Result<Observation, Refused> {
        match self.call(because, tool, call).await {
            Err(error) => {
                let text = format!("not done, or its end was not seen: {error}");
                self.kernel.answer_call(&self.scope, because, call, &text).await
            }
            done => done,
        }
    }

    /// Says that a call begins, or goes on after it had been answered with that it waits.
    pub(crate) async fn tell_of(&self, tool: Option<&dyn Tool>, call: &ToolCall) -> Result<(), Refused> {
        let tool = tool.map_or_else(|| call.name.clone(), |tool| tool.spec().name);
        let target = call.arguments.chars().take(TARGET_CHARS_MAX).collect();
        self.kernel
            .tell(&self.scope, Happening::Call { call: call.id.clone(), tool, target, own: false })
            .await
    }

    async fn call(
        &self,
        because: &Provenance,
        tool: Option<Arc<dyn Tool>>,
        call: &ToolCall,
    ) -> Result<Observation, Refused> {
        self.tell_of(tool.as_deref(), call).await?;
        if self.scope.cancel().is_cancelled() {
            let text = "cancelled: the user ended this turn before the call began";
            return self.kernel.answer_call(&self.scope, because, call, text).await;
        }
        let Some(tool) = tool else {
            let text = self.tools.now().unavailable(&call.name);
            return self.kernel.answer_call(&self.scope, because, call, &text).await;
        };
        let mut step = self.kernel.call(&self.scope, because, &*tool, call).await?;
        loop {
            let id = match step {
                CallOutcome::Done(observation) => return Ok(observation),
                CallOutcome::Waiting(id) => id,
                CallOutcome::Delegate(errand) => return self.delegate(because, call, &errand).await,
            };
            step = self.wait_for(because, &*tool, call, id).await?;
        }
    }
}

/// Claims of a call as its session reads the paths.
fn placed(scope: &Scope, claims: &Claims) -> Claims {
    let place = |paths: &[WsPath]| paths.iter().map(|path| scope.place(path)).collect();
    Claims { reads: place(&claims.reads), writes: place(&claims.writes), ..*claims }
}
