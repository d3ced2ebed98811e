//! Coming back: the context and the loose ends of a session, read from the journal.

use crate::{
    Context, Guide, Instruction, Kernel, Late, Note, Observation, Output, Refused, Reply, Scope, Segment,
    Tool, UserMessage,
    call::brought,
    cut,
    ended::Began,
    provider::Completion,
    question::{self, Waits},
    tool::{self, Conclusion, Plan},
};
use bailey_journal::{
    Fact, Journal, Purpose, Query, Question, QuestionState, Recorded, SessionLock, Unfinished,
};
use bailey_protocol::{
    Action, ApprovalId, CallId, Effect, EffectId, Image, Integrity, Kind, Labels, Outcome, Report, Role,
    Secrecy, Seq, SessionId, Status, ToolCall,
};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Finds a tool by the name that a model used.
pub type FindTool<'a> = &'a (dyn Fn(&str) -> Option<Arc<dyn Tool>> + Send + Sync);

/// A session as the journal holds it.
#[derive(Debug)]
pub struct Restored {
    /// What the model sees.
    pub context: Context,
    /// The calls that a human is asked about, or was: their results are still to come.
    pub waiting: Vec<Waits>,
    /// All calls that a human was ever asked about, each with its first question.
    pub asked: Vec<Waits>,
    /// The results of the owner's own commands that no message brought along yet, screened.
    pub asides: Vec<String>,
}

/// A command of the owner's own, outside any turn.
struct OwnCommand {
    effect: Option<EffectId>,
    call: ToolCall,
    outcome: Option<Outcome>,
}

impl Kernel {
    /// The context of a session as the journal holds it, with every call answered: effects that were cut in
    /// the middle become `unknown` and are told as "may have happened", finished ones are concluded from
    /// their stored outcome, what waits for a human still does, and what was not begun is told so. Nothing is
    /// done again.
    ///
    /// # Errors
    /// When the journal cannot be read or written.
    pub async fn restore(
        &self,
        lock: &SessionLock,
        scope: &Scope,
        instruction: Instruction,
        find: FindTool<'_>,
    ) -> Result<Restored, Refused> {
        self.tie_up_effects(lock).await?;
        let query = Query { session: Some(lock.session()), ..Query::default() };
        let entries = self.journal().entries(query).await?;
        let mut tape = Tape::read(&entries, Context::new(instruction))?;
        self.tie_up_late(scope, &mut tape, find).await?;
        let questions = self.journal().questions(Some(lock.session())).await?;
        tape.wait_again(&questions);
        for call in std::mem::take(&mut tape.open) {
            let asked = questions.iter().rfind(|question| question.call.as_ref() == Some(&call.id));
            let is_wanted = |standing| matches!(standing, QuestionState::Open | QuestionState::Yes);
            tape.asked
                .extend(asked.map(|asked| Waits { question: asked.first(&questions), call: call.clone() }));
            let observation = match asked.filter(|question| is_wanted(question.standing)) {
                Some(question) if !tape.outcomes.contains_key(&call.id.0) => {
                    let labels = tape.context.labels().clone();
                    let id = question.id;
                    tape.waiting.push(Waits { question: id, call: call.clone() });
                    self.record(scope, &call, question::waiting(id), labels, Some(id), None).await?
                }
                _ => {
                    // How what it began ended is told here.
                    let ends = tape.began_by(&call);
                    tape.began.retain(|began| Some(began.effect) != ends);
                    self.tie_up(scope, &tape, &call, find, ends).await?
                }
            };
            tape.context.push_result(observation, &tape.calls);
        }
        for began in std::mem::take(&mut tape.began) {
            let labels = tape.context.labels().clone();
            if let Some(seen) = self.end_before(scope, labels, &began, find).await? {
                tape.observe(seen, None, true);
            }
        }
        tape.wait_for_newest(&questions);
        // Nobody takes up what else that process asked.
        for question in questions.iter().filter(|question| question.standing == QuestionState::Open) {
            let is_known = tape.waiting.iter().any(|waits| waits.question == question.id);
            if !is_known && question.again.is_none() {
                self.withdraw(scope, question.id, "the process that asked has ended").await?;
            }
        }
        let waiting = std::mem::take(&mut tape.waiting);
        let asked = std::mem::take(&mut tape.asked);
        let own = std::mem::take(&mut tape.own).into_iter();
        let asides = own.filter_map(|own| {
            let tool = find(&own.call.name)?;
            Some(self.conclude_aside(&*tool, &own.call, &Output::new(own.outcome?)).1)
        });
        let asides = asides.collect();
        Ok(Restored { context: tape.end(), waiting, asked, asides })
    }

    /// Effects that were cut in the middle: what can be seen of their end is their outcome, and of the others
    /// it is `unknown`.
    async fn tie_up_effects(&self, lock: &SessionLock) -> Result<(), Refused> {
        for lost in self.inner.mint.unfinished(lock).await? {
            match self.aftermath(lock, &lost).await? {
                Some(status) => {
                    let outcome = Outcome { status, enforced: None, duration_ms: 0, report: Report::Nothing };
                    self.inner.mint.settle(lock, &lost, &outcome).await?;
                }
                None => self.inner.mint.give_up(lock, &lost).await?,
            }
        }
        Ok(())
    }

    async fn aftermath(&self, lock: &SessionLock, lost: &Unfinished) -> Result<Option<Status>, Refused> {
        // Of others nothing is left that says it.
        if lost.kind != Kind::Adapt.name() {
            return Ok(None);
        }
        let query = Query { session: Some(lock.session()), ..Query::default() };
        let entries = self.journal().entries(query).await?;
        let is_its = |it: &&Recorded| {
            it.entry.effect == Some(lost.effect) && matches!(it.entry.fact, Fact::Intent { .. })
        };
        let payload = entries.iter().find(is_its).and_then(|it| it.payload.as_deref());
        let Some(effect) = payload.and_then(|bytes| serde_json::from_slice::<Effect>(bytes).ok()) else {
            return Ok(None);
        };
        match self.executor(&effect.action) {
            Some(executor) => Ok(executor.aftermath(lock.session(), &effect.action).await),
            None => Ok(None),
        }
    }

    /// Calls that a human let happen when the model had been told something else of them, such as that they
    /// wait: what of them began is not begun again, and is told.
    async fn tie_up_late(&self, scope: &Scope, tape: &mut Tape, find: FindTool<'_>) -> Result<(), Refused> {
        let begun: Vec<ToolCall> = tape.late.iter().filter_map(|id| tape.call(id)).cloned().collect();
        for call in begun {
            let ends = tape.began.iter().find(|began| began.call == call).map(|began| began.effect);
            tape.began.retain(|began| Some(began.effect) != ends);
            let observation = self.tie_up(scope, tape, &call, find, ends).await?;
            tape.observe(observation, None, false);
        }
        Ok(())
    }

    /// Nobody is told: a front end that resumes shows what the journal holds, and may not listen yet.
    async fn tie_up(
        &self,
        scope: &Scope,
        tape: &Tape,
        call: &ToolCall,
        find: FindTool<'_>,
        ends: Option<EffectId>,
    ) -> Result<Observation, Refused> {
        let planned = || find(&call.name).map(|tool| tool::plan(&*tool, call, &[]));
        let conclusion = match tape.outcomes.get(&call.id.0) {
            // A sub-agent's effects are not told apart here.
            None if matches!(planned(), Some(Plan::Delegate(_))) => may_have_happened(),
            None => told(
                "it was not begun: the session was interrupted before; call it again if it is still wanted",
            ),
            Some((_, None)) => may_have_happened(),
            Some((_, Some(outcome))) => match (&outcome.status, find(&call.name)) {
                (Status::Done | Status::Failed { .. }, Some(tool)) => {
                    let output = Output::new(outcome.clone());
                    let redactor = self.journal().redactor();
                    let clean = cut::to_conclude(redactor, &output);
                    tool::conclude(&*tool, call, &[], clean.as_ref().unwrap_or(&output), redactor)
                }
                (Status::Cancelled, _) => told("cancelled: the user ended this turn"),
                _ => may_have_happened(),
            },
        };
        let brought = tape.outcomes.get(&call.id.0).map(|(brought, _)| brought.clone());
        let brought = brought.unwrap_or_else(|| Labels::new(Integrity::Workspace, Secrecy::Workspace));
        let labels = brought.join(tape.context.labels());
        self.record(scope, call, conclusion, labels, None, ends).await
    }
}

/// The context of a session as the journal holds it, only to look at it: nothing is written, and calls that
/// were cut off have no result yet.
///
/// # Errors
/// When the journal cannot be read.
pub async fn recall(
    journal: &Journal,
    session: SessionId,
    instruction: Instruction,
) -> Result<Context, Refused> {
    let entries = journal.entries(Query { session: Some(session), ..Query::default() }).await?;
    Ok(Tape::read(&entries, Context::new(instruction))?.end())
}

fn told(text: &str) -> Conclusion {
    Conclusion { ok: false, summary: text.into(), text: text.into() }
}

fn may_have_happened() -> Conclusion {
    told(
        "interrupted: the session ended while this ran, so it may have happened; look before you do it again",
    )
}

/// A session's entries, read in order into a context.
struct Tape {
    context: Context,
    /// What was said during a step, and is seen when the model is asked next.
    said: Vec<UserMessage>,
    /// Pictures of the message that comes next.
    images: Vec<Image>,
    /// Calls of the last reply, and those of them that have no result yet.
    calls: Vec<ToolCall>,
    open: Vec<ToolCall>,
    /// Calls that were answered with "waiting".
    waiting: Vec<Waits>,
    /// Calls that began although the model had its answer, when a human had said yes, and of which it was
    /// told no more.
    late: BTreeSet<String>,
    /// The questions that something was begun on, and where those stand that were answered.
    used: HashSet<ApprovalId>,
    answered: HashMap<ApprovalId, Seq>,
    /// Where the last word on each call stands.
    told: HashMap<String, Seq>,
    /// All of those, also when their result came.
    asked: Vec<Waits>,
    /// What the effects of those calls came to, none when only an intent is known; and the labels of what
    /// they brought.
    outcomes: HashMap<String, (Labels, Option<Outcome>)>,
    acts: HashMap<String, String>,
    /// Where the last reply stands.
    replied: Seq,
    /// Processes in the background whose end the model was not told.
    began: Vec<Began>,
    /// Whether the session has a model here: otherwise its commands are no part of a conversation.
    has_model: bool,
    /// Commands of the owner's own since the last message.
    own: Vec<OwnCommand>,
}

impl Tape {
    fn read(entries: &[Recorded], context: Context) -> Result<Self, Refused> {
        let mut tape = Self {
            context,
            said: Vec::new(),
            images: Vec::new(),
            calls: Vec::new(),
            open: Vec::new(),
            waiting: Vec::new(),
            late: BTreeSet::new(),
            used: HashSet::new(),
            answered: HashMap::new(),
            told: HashMap::new(),
            asked: Vec::new(),
            outcomes: HashMap::new(),
            acts: HashMap::new(),
            replied: Seq(0),
            began: Vec::new(),
            has_model: false,
            own: Vec::new(),
        };
        for recorded in entries {
            tape.take(recorded)?;
        }
        Ok(tape)
    }

    fn take(&mut self, recorded: &Recorded) -> Result<(), Refused> {
        let entry = &recorded.entry;
        let effect = entry.effect.map(|id| id.to_string()).unwrap_or_default();
        match &entry.fact {
            Fact::SessionOpened { model, .. }
            | Fact::SessionForked { model, .. }
            | Fact::SessionResumed { model } => self.has_model = !model.is_empty(),
            Fact::Accepted { labels, .. } => {
                self.own.clear();
                self.say(recorded, labels, false);
            }
            Fact::Intent { kind: Kind::Exec, purpose: Purpose::Own, .. } if self.has_model => {
                self.own.extend(own_command(recorded));
            }
            Fact::Image { .. } => self.images.extend(recorded.payload.clone().and_then(Image::of)),
            Fact::Pinned { labels } => self.say(recorded, labels, true),
            Fact::Unpinned { entry } => {
                self.said.iter_mut().filter(|said| said.entry == *entry).for_each(|said| said.pinned = false);
                self.context.unpin(*entry);
            }
            Fact::Unsaid { entry } => self.said.retain(|said| said.entry != *entry),
            // The labels of a model call name every message that no reply before it has seen.
            Fact::Intent { kind: Kind::Model, labels, .. } => {
                self.see(|said| labels.sources.contains(&said.entry));
            }
            Fact::Reply { provider, labels, .. } => {
                // A fork holds the replies, and not the calls of models that brought them.
                self.see(|said| labels.sources.contains(&said.entry));
                let answer: Completion = parse(recorded)?;
                self.calls.clone_from(&answer.calls);
                self.open.clone_from(&answer.calls);
                // Some servers number the calls of each reply anew.
                self.late.retain(|late| answer.calls.iter().all(|call| call.id.0 != *late));
                self.outcomes.retain(|call, _| self.late.contains(call));
                self.replied = entry.seq;
                let labels = labels.clone().from_entry(entry.seq);
                self.context.push(Reply { entry: entry.seq, provider: provider.clone(), answer, labels });
            }
            // What was asked under a token was a sub-agent's, whose calls are numbered for themselves.
            Fact::Intent { purpose: Purpose::Act, call: Some(call), under: None, approval, .. } => {
                self.used.extend(approval);
                let action = parse::<Effect>(recorded).ok().map(|effect| effect.action);
                // What a torn journal lost may have come from anywhere.
                let lost = || Labels::new(Integrity::External, Secrecy::Workspace).from_entry(entry.seq);
                let brought = action.as_ref().map_or_else(lost, |action| brought(action, entry.seq));
                if !self.open.iter().any(|open| open.id == *call) {
                    self.late.insert(call.0.clone());
                }
                self.outcomes.insert(call.0.clone(), (brought, None));
                self.acts.insert(effect, call.0.clone());
                let asked = self.asked.iter().map(|waits| &waits.call);
                let call = self.calls.iter().chain(asked).find(|known| known.id == *call);
                let began = call.zip(action).and_then(|(call, action)| Began::of(recorded, &action, call));
                self.began.extend(began);
            }
            Fact::Outcome { .. } => {
                if let Some(own) = self.own.iter_mut().find(|own| own.effect == entry.effect) {
                    own.outcome = Some(parse(recorded)?);
                }
                if let Some(call) = self.acts.get(&effect) {
                    let outcome: Outcome = parse(recorded)?;
                    let began = self.began.iter_mut().find(|began| Some(began.effect) == entry.effect);
                    if let Some(began) = began {
                        began.outcome = Some(outcome.clone());
                    }
                    if let Some((_, came)) = self.outcomes.get_mut(call) {
                        *came = Some(outcome);
                    }
                }
            }
            Fact::Observation { call, tool, ok, labels, waits, .. } => {
                let labels = labels.clone().from_entry(entry.seq);
                let (call, tool, ok, text) = (call.clone(), tool.clone(), *ok, words(recorded));
                let outcome = self.outcomes.get(&call.0).and_then(|(_, outcome)| outcome.as_ref());
                let images = outcome.and_then(crate::call::picture).into_iter().collect();
                let seen = Observation { entry: entry.seq, call, tool, ok, text, images, labels };
                self.began.retain(|began| Some(began.effect) != entry.effect);
                self.observe(seen, *waits, entry.effect.is_some());
            }
            Fact::Answered { approval, .. } => drop(self.answered.insert(*approval, entry.seq)),
            Fact::EndAsked { .. } => {
                let asked = self.began.iter_mut().filter(|began| Some(began.effect) == entry.effect);
                asked.for_each(|began| began.is_stopped = true);
            }
            Fact::Guide { path, digest, own, labels } => {
                let labels = labels.clone().from_entry(entry.seq);
                let (path, digest, own, text) = (path.clone(), *digest, *own, words(recorded));
                self.context.push(Guide { entry: entry.seq, path, digest, own, text, labels });
            }
            Fact::Warned { .. } | Fact::Reminded {} => {
                self.context.push(Note::warning(entry.seq, words(recorded)))
            }
            Fact::Shortened { entries, bytes } => self.context.shorten(entries, *bytes as usize),
            Fact::Summary { replaces, labels, .. } => {
                self.see(|said| replaces.contains(&said.entry));
                let labels = labels.clone().from_entry(entry.seq);
                self.context.replace(replaces, Note { entry: entry.seq, text: words(recorded), labels });
            }
            _ => {}
        }
        Ok(())
    }

    /// The call of that name in any reply; none where several have it.
    fn call(&self, id: &str) -> Option<&ToolCall> {
        let replies = self.context.segments().iter().filter_map(|segment| match segment {
            Segment::Reply(reply) => Some(&reply.answer().calls),
            _ => None,
        });
        let mut named = replies.flatten().filter(|call| call.id.0 == id);
        let mut asked = self.asked.iter().map(|waits| &waits.call);
        let first = named.next().or_else(|| asked.find(|call| call.id.0 == id));
        first.filter(|_| named.next().is_none())
    }

    /// Takes up the calls whose questions ran out, were asked once more and were let happen for longer than
    /// this once, where nothing came of that. (A yes for this once says by itself whether it was used.)
    fn wait_again(&mut self, questions: &[Question]) {
        for question in questions.iter().filter(|question| question.again.is_some()) {
            let lasts =
                matches!(question.standing, QuestionState::YesForSession | QuestionState::YesForPattern);
            let Some(id) = question.call.as_ref().filter(|_| lasts) else { continue };
            let is_told = self.told.get(&id.0) > self.answered.get(&question.id);
            let first = question.first(questions);
            let asked = self.asked.iter().find(|waits| waits.question == first).map(|waits| &waits.call);
            let call = asked.or_else(|| self.call(&id.0));
            let call = call.filter(|_| !is_told && !self.used.contains(&question.id)).cloned();
            self.waiting.extend(call.map(|call| Waits { question: question.id, call }));
        }
    }

    /// Has calls wait for the newest question about them: when the yes to a question came, the same call was
    /// another effect, such as an edit of a file that has changed, and was asked about anew.
    fn wait_for_newest(&mut self, questions: &[Question]) {
        // Such a question was settled by Bailey, after a person's yes, and is about the same thing. A name of
        // a call alone says little: some servers number the calls of each reply anew.
        let is_before = |id: ApprovalId, at: usize, newer: &Question| {
            let before = questions.iter().take(at).find(|question| question.id == id);
            before.is_some_and(|before| {
                (before.standing, before.kind, &before.target)
                    == (QuestionState::No, newer.kind, &newer.target)
            })
        };
        for (at, question) in questions.iter().enumerate() {
            let is_wanted = matches!(question.standing, QuestionState::Open | QuestionState::Yes);
            let is_known = self.waiting.iter().any(|waits| waits.question == question.id);
            if !is_wanted || is_known || question.again.is_some() {
                continue;
            }
            let mut waiting =
                self.waiting.iter_mut().filter(|waits| Some(&waits.call.id) == question.call.as_ref());
            if let Some(waits) = waiting.find(|waits| is_before(waits.question, at, question)) {
                waits.question = question.id;
            }
        }
    }

    fn observe(&mut self, seen: Observation, waits: Option<ApprovalId>, is_end: bool) {
        self.told.insert(seen.call.0.clone(), seen.entry);
        let Some(place) = self.open.iter().position(|open| open.id == seen.call) else {
            // It has its answer already, which was "waiting", or that something runs now.
            self.late.remove(&seen.call.0);
            let waited = self.waiting.iter().any(|waits| waits.call.id == seen.call);
            self.waiting.retain(|waits| waits.call.id != seen.call);
            self.see(|said| seen.labels.sources.contains(&said.entry));
            return self.context.push(if is_end && !waited { Late::end(seen) } else { Late::of(seen) });
        };
        let call = self.open.remove(place);
        let waits = waits.map(|question| Waits { question, call });
        self.asked.extend(waits.clone());
        self.waiting.extend(waits);
        // As the loop itself puts them, whichever came first.
        self.context.push_result(seen, &self.calls);
    }

    /// The process in the background that this call of the last reply began.
    fn began_by(&self, call: &ToolCall) -> Option<EffectId> {
        let its = |began: &&Began| began.call == *call && began.intent > self.replied;
        self.began.iter().find(its).map(|began| began.effect)
    }

    fn say(&mut self, recorded: &Recorded, labels: &Labels, pinned: bool) {
        let entry = recorded.entry.seq;
        let labels = labels.clone().from_entry(entry);
        let images = if pinned { Vec::new() } else { std::mem::take(&mut self.images) };
        self.said.push(UserMessage { entry, text: words(recorded), images, labels, pinned });
    }

    /// Those of the waiting messages come into the context.
    fn see(&mut self, is_seen: impl Fn(&UserMessage) -> bool) {
        for said in self.said.extract_if(.., |said| is_seen(said)) {
            self.context.push(said);
        }
    }

    fn end(mut self) -> Context {
        self.see(|_| true);
        self.context
    }
}

/// The owner's own command that this intent begins.
fn own_command(recorded: &Recorded) -> Option<OwnCommand> {
    let effect = parse::<Effect>(recorded).ok()?;
    let (Role::Owner, Action::Exec(command)) = (effect.role, &effect.action) else { return None };
    let [_, flag, line] = command.argv.as_slice() else { return None };
    let arguments = serde_json::json!({ "command": line }).to_string();
    let id = CallId(format!("owner-{}", recorded.entry.seq));
    let call = ToolCall { id, name: "command.run".into(), arguments };
    (flag == "-c").then_some(OwnCommand { effect: recorded.entry.effect, call, outcome: None })
}

/// What an entry said. Where that was lost with a torn journal, the model is told so: without a word it would
/// take less for all.
fn words(recorded: &Recorded) -> String {
    if recorded.entry.payload.is_some() && recorded.payload.is_none() {
        return format!("[what entry {} said was lost with a torn journal]", recorded.entry.seq);
    }
    recorded.text()
}

fn parse<T: serde::de::DeserializeOwned>(recorded: &Recorded) -> Result<T, Refused> {
    let Some(bytes) = recorded.payload.as_deref() else {
        return Err(Refused::Failed(format!(
            "what entry {} said was lost with a torn journal (`bailey audit verify` names what was): this session cannot go on; \
             `bailey sessions fork --at` an entry before it does",
            recorded.entry.seq
        )));
    };
    serde_json::from_slice(bytes).map_err(|error| {
        Refused::Failed(format!("entry {} of the journal cannot be read back: {error}", recorded.entry.seq))
    })
}
