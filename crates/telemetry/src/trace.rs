//! Turns the journal's entries, one after the other, into spans.
//!
//! A turn is a trace, and its root is an `invoke_agent`. Beneath the root hang the calls of models (`chat`)
//! and of tools (`execute_tool`). Beneath a tool's call hang its effects, the requests of commands, and the
//! time in which a human was asked. A sub-agent is an `invoke_agent` beneath the call that began it. Work
//! outside any turn is a trace of its own.
//!
//! A span is complete when it has ended, and belongs to the entry that ended it. A reader that continues
//! later begins at [`Trace::oldest`], the entry from which the oldest open span hangs, and leaves out the
//! spans that it has.

use super::{Attributes, ERROR, Span, SpanId, TraceId, Value, Word};
use bailey_journal::{BAILEY, Fact, Recorded, fact::Admitted};
use bailey_kernel::StopReason;
use bailey_protocol::{
    Answer, ApprovalId, CallId, EffectId, Kind, Labels, Seq, SessionId, Status, Timestamp, Usage, Verdict,
};
use bailey_tools::Toolbox;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A span that began so many entries ago is not waited for any more: its process was killed, and no other
/// process went on with it.
const OPEN_ENTRIES_MAX: u64 = 100_000;
/// The most calls of one reply that are read.
const CALLS_MAX: usize = 256;
/// How many levels of sub-agents are searched for the session that one works in; the kernel allows fewer
/// levels.
const DEPTH_MAX: usize = 8;
/// The reason of a span that nothing ended: its process was killed, and no other process went on with it.
const CUT_OFF: &str = "cut_off";

/// The spans that have begun and not ended.
pub struct Trace {
    tools: Toolbox,
    /// By conversation: turns, and the work of sub-agents.
    turns: HashMap<SessionId, TurnSpan>,
    calls: HashMap<(SessionId, CallId), CallSpan>,
    effects: HashMap<EffectId, Effect>,
    questions: HashMap<ApprovalId, Question>,
    /// A call of a model that has ended, and whose reply may be the next entry.
    replying: Option<(u64, Effect, Span)>,
    /// The fork whose copies of entries are being read, with its time and its entry.
    copied: Option<(SessionId, Timestamp, u64)>,
    /// The last entry of each session in which a span may be open; the entries of its sub-agents count, too.
    last: BTreeMap<SessionId, At>,
    /// The last entry.
    seq: u64,
}

/// The place of a span: beneath this one.
#[derive(Debug, Clone, Copy)]
struct SpanPlace {
    trace: TraceId,
    span: Option<SpanId>,
    /// The entry from which on the whole trace can be read again.
    base: u64,
}

/// An open span: its own id, and its place.
#[derive(Debug, Clone, Copy)]
struct OpenSpan {
    above: SpanPlace,
    id: SpanId,
    session: SessionId,
    begun: Timestamp,
}

/// The open span of a turn.
struct TurnSpan {
    open: OpenSpan,
    /// Whether its session was taken up again since, and nothing was done in it yet.
    is_resumed: bool,
    /// For a sub-agent: the conversation that gave the task.
    parent: Option<SessionId>,
    /// Its last reply, or the entry that it began with. Entries that follow from the turn name this entry
    /// among their sources.
    last: u64,
    model: Option<(Word, Word)>,
    usage: Usage,
}

/// The open span of a tool call.
struct CallSpan {
    open: OpenSpan,
    /// Its reply, and its place among the calls of that reply.
    place: (u64, usize),
    tool: Option<Word>,
    error: Option<&'static str>,
    /// Whether the model was told that its result comes later.
    waits: bool,
    /// The conversation of the sub-agent that does the task.
    delegate: Option<SessionId>,
}

struct Effect {
    open: OpenSpan,
    kind: Kind,
    is_relay: bool,
    is_approved: bool,
    model: Option<(Word, Word)>,
    call: Option<(SessionId, CallId)>,
}

struct Question {
    open: OpenSpan,
    call: Option<(SessionId, CallId)>,
}

/// The parts of a reply that are read: its counts, and the tools that it calls.
#[derive(Default, Deserialize)]
struct Counted {
    #[serde(default)]
    usage: Usage,
    #[serde(default)]
    calls: Vec<Called>,
    stop: Option<StopReason>,
}

#[derive(Deserialize)]
struct Called {
    id: CallId,
    name: String,
}

/// An entry's place in the journal.
#[derive(Clone, Copy)]
struct At {
    session: SessionId,
    seq: u64,
    time: Timestamp,
}

impl OpenSpan {
    /// The place for spans beneath this one.
    fn beneath(&self) -> SpanPlace {
        SpanPlace { span: Some(self.id), ..self.above }
    }

    fn close(
        self,
        name: &'static str,
        about: Option<Word>,
        ended: Timestamp,
        attributes: Attributes,
    ) -> Span {
        let Self { above, id, session, begun } = self;
        let (trace, parent) = (above.trace, above.span);
        // A clock that was put back must not make a span end before it began.
        let ended = ended.max(begun);
        Span { trace, id, parent, session, name, about, is_client: false, begun, ended, attributes }
    }
}

impl TurnSpan {
    fn begin(open: OpenSpan, parent: Option<SessionId>, last: u64) -> Self {
        Self { open, is_resumed: false, parent, last, model: None, usage: Usage::default() }
    }
}

impl Trace {
    /// Spans name only these tools: a model may write any name.
    pub fn new(tools: Toolbox) -> Self {
        Self {
            tools,
            turns: HashMap::new(),
            calls: HashMap::new(),
            effects: HashMap::new(),
            questions: HashMap::new(),
            replying: None,
            copied: None,
            last: BTreeMap::new(),
            seq: 0,
        }
    }

    /// Reads the next entry. Adds the spans that it ended to `ended`, each with the number of its entry.
    pub fn take(&mut self, recorded: &Recorded, ended: &mut Vec<(u64, Span)>) {
        let entry = &recorded.entry;
        let Some(session) = entry.session else { return self.pass(entry.seq.0, ended) };
        let at = At { session, seq: entry.seq.0, time: entry.time };
        if self.is_copy(at, &entry.fact) {
            return self.pass(at.seq, ended);
        }
        match &entry.fact {
            Fact::Reply { model, .. } => self.reply(at, model, recorded, ended),
            Fact::Summary { author, usage: Some(usage), .. } => {
                let model = author.split_once('/').map_or(author.as_str(), |(_, model)| model);
                self.counted(at, model, usage, None, ended);
            }
            _ => {}
        }
        self.pass(at.seq, ended);
        match &entry.fact {
            Fact::Accepted { .. } => self.accepted(at, ended),
            Fact::Delegated { parent, labels, .. } => self.delegated(at, parent.session, labels),
            Fact::Intent { .. } => self.intent(at, entry.effect, &entry.fact),
            Fact::Outcome { status, exit, used, enforced, .. } => {
                let walls = enforced.as_ref().map(|enforced| enforced.backend.as_str());
                self.outcome(at, entry.effect, status, (*exit, used.tokens, walls), ended);
            }
            Fact::Denied { kind, call, labels, .. } => {
                let asker = self.asker(session, call.as_ref(), labels);
                let call = call.clone().map(|call| (asker, call));
                call.iter().for_each(|call| self.fail(call, "denied"));
                let decided = [("bailey.verdict", "denied".into()), (ERROR, "denied".into())];
                self.decided(at, (asker, call), kind.name(), decided.into(), ended);
            }
            Fact::Judged { verdict, .. } => {
                let said = match verdict {
                    Verdict::Allowed => "allowed",
                    Verdict::Approved => "approved",
                    Verdict::Asked => "asked",
                    Verdict::Denied => "denied",
                };
                let decided = vec![("bailey.verdict", said.into())];
                self.decided(at, (session, None), Kind::Tool.name(), decided, ended);
            }
            Fact::Asked { approval, call, terms, .. } => {
                let asker = terms.asker.and_then(|asker| asker.conversation).unwrap_or(session);
                self.asked(at, *approval, call.clone().map(|call| (asker, call)));
            }
            Fact::Answered { approval, answer, by, .. } => self.answered(at, *approval, *answer, by, ended),
            Fact::Observation { call, waits: Some(_), .. } => {
                let call = self.calls.get_mut(&(session, call.clone()));
                call.into_iter().for_each(|call| call.waits = true);
            }
            Fact::Observation { call, tool, ok, labels, .. } => {
                self.observed(at, call, tool, *ok, labels, ended);
            }
            Fact::TurnEnded { reason, .. } => self.end_turn(at, reason, ended),
            Fact::SessionResumed { .. } => {
                self.turns.get_mut(&at.session).into_iter().for_each(|turn| turn.is_resumed = true);
            }
            _ => {}
        }
        self.last.insert(self.root(session), at);
    }

    /// The journal has no more entries: a reply that was waited for does not come.
    pub fn rest(&mut self, ended: &mut Vec<(u64, Span)>) {
        ended.extend(self.replying.take().map(|(seq, _, span)| (seq, span)));
    }

    /// The sessions in which a span may be open.
    pub fn sessions(&self) -> impl Iterator<Item = SessionId> {
        self.last.keys().copied()
    }

    /// Ends the open spans of sessions in which no process works, with the last entry of each session. A
    /// question to a human stays open, together with its call: no process works on it until the answer.
    pub fn cut_off(&mut self, is_held: impl Fn(SessionId) -> bool, ended: &mut Vec<(u64, Span)>) {
        for (session, at) in std::mem::take(&mut self.last) {
            if !is_held(session) {
                self.cut_off_at(session, at, ended);
            }
        }
    }

    fn cut_off_at(&mut self, session: SessionId, at: At, ended: &mut Vec<(u64, Span)>) {
        let of_it = self.turns.keys().copied().filter(|conversation| self.root(*conversation) == session);
        let family: BTreeSet<SessionId> = of_it.chain([session]).collect();
        let is_of_it = |open: &OpenSpan| family.contains(&open.session);
        let effects = self.effects.extract_if(|_, effect| is_of_it(&effect.open));
        let mut effects: Vec<Effect> = effects.map(|(_, effect)| effect).collect();
        let calls = self.calls.extract_if(|_, call| is_of_it(&call.open) && !call.waits);
        let mut calls: Vec<CallSpan> = calls.map(|(_, call)| call).collect();
        // The deepest spans began last.
        effects.sort_by_key(|effect| effect.open.id.0);
        calls.sort_by_key(|call| std::cmp::Reverse(call.place));
        for effect in effects {
            ended.push((at.seq, effect.close(at, Some(CUT_OFF), (None, 0, None))));
        }
        calls.into_iter().for_each(|call| self.end_call(at, call, Some(CUT_OFF), ended));
        let turns = self.turns.extract_if(|conversation, _| family.contains(conversation));
        let mut turns: Vec<TurnSpan> = turns.map(|(_, turn)| turn).collect();
        turns.sort_by_key(|turn| std::cmp::Reverse(turn.last));
        ended.extend(turns.into_iter().map(|turn| (at.seq, turn.close(at, CUT_OFF))));
    }

    /// The session in which a conversation's work is done: its own, or that of the conversation that gave the
    /// task.
    fn root(&self, conversation: SessionId) -> SessionId {
        let above = |of: &SessionId| self.turns.get(of).and_then(|turn| turn.parent);
        let row = std::iter::successors(Some(conversation), above);
        row.take(DEPTH_MAX).last().unwrap_or(conversation)
    }

    /// The first entry that a later reader must read again.
    pub(crate) fn oldest(&mut self) -> u64 {
        let least = self.seq.saturating_sub(OPEN_ENTRIES_MAX);
        let is_kept = |open: &OpenSpan| open.above.base > least;
        self.turns.retain(|_, turn| is_kept(&turn.open));
        self.calls.retain(|_, call| is_kept(&call.open));
        self.effects.retain(|_, effect| is_kept(&effect.open));
        self.questions.retain(|_, question| is_kept(&question.open));
        let roots: BTreeSet<SessionId> = self.opens().map(|open| self.root(open.session)).collect();
        self.last.retain(|session, _| roots.contains(session));
        let bases = self.opens().map(|open| open.above.base);
        let replying = self.replying.iter().map(|(_, effect, _)| effect.open.above.base);
        let copied = self.copied.iter().map(|(.., seq)| *seq);
        bases.chain(replying).chain(copied).min().unwrap_or(self.seq + 1)
    }

    /// All open spans.
    fn opens(&self) -> impl Iterator<Item = &OpenSpan> {
        let opens = self.turns.values().map(|it| &it.open);
        let opens = opens.chain(self.calls.values().map(|it| &it.open));
        let opens = opens.chain(self.effects.values().map(|it| &it.open));
        opens.chain(self.questions.values().map(|it| &it.open))
    }

    /// Moves on to an entry. A call that waited for its reply has it now, or the reply does not exist.
    fn pass(&mut self, seq: u64, ended: &mut Vec<(u64, Span)>) {
        self.rest(ended);
        self.seq = seq;
    }

    /// Whether an entry is a fork's copy of another session's entry. All copies are written at once, after
    /// the entry that announces the fork.
    fn is_copy(&mut self, at: At, fact: &Fact) -> bool {
        if let Fact::SessionForked { .. } = fact {
            self.copied = Some((at.session, at.time, at.seq));
            return true;
        }
        let is_copy = self.copied.is_some_and(|(session, time, _)| (session, time) == (at.session, at.time));
        if !is_copy {
            self.copied = None;
        }
        is_copy
    }

    /// Begins a span: beneath a call, an effect or a turn, or as a trace of its own.
    fn open(&self, at: At, conversation: SessionId, beneath: Option<SpanPlace>, part: usize) -> OpenSpan {
        let root = || SpanPlace { trace: TraceId::of(at.session, at.seq), span: None, base: at.seq };
        let of_turn = || self.turns.get(&conversation).map(|turn| turn.open.beneath());
        let above = beneath.or_else(of_turn).unwrap_or_else(root);
        let id = SpanId::of(at.session, at.seq, part);
        OpenSpan { above, id, session: conversation, begun: at.time }
    }

    fn accepted(&mut self, at: At, ended: &mut Vec<(u64, Span)>) {
        // A message that comes while a turn runs joins it, under a turn name of its own.
        if self.turns.get(&at.session).is_some_and(|open| !open.is_resumed) {
            return;
        }
        self.end_turn(at, CUT_OFF, ended);
        let open = self.open(at, at.session, None, 0);
        self.turns.insert(at.session, TurnSpan::begin(open, None, at.seq));
    }

    /// A sub-agent begins. Its parent is a call that gives a task and has no sub-agent yet: if possible a
    /// call of the reply that led to it, and the first of several. The result later says which of these calls
    /// it was ([`Trace::came_back`]).
    fn delegated(&mut self, at: At, parent: SessionId, labels: &Labels) {
        let gives = |tool: &Option<Word>| tool.as_ref().is_some_and(|tool| tool.as_str() == "agent.run");
        let of_parent = self.calls.iter_mut().filter(|((session, _), call)| {
            *session == parent && call.delegate.is_none() && gives(&call.tool)
        });
        let call = of_parent.min_by_key(|(_, call)| (!is_from(labels, call.place.0), call.place));
        let call = call.map(|(_, call)| call);
        let beneath = call.map(|call| {
            call.delegate = Some(at.session);
            call.open.beneath()
        });
        let open = self.open(at, at.session, beneath, 0);
        self.turns.insert(at.session, TurnSpan::begin(open, Some(parent), at.seq));
    }

    /// Hangs a sub-agent beneath the call of its result: the result is made of the sub-agent's last words. If
    /// another call was taken for that call before, the two calls exchange their sub-agents.
    fn came_back(&mut self, parent: SessionId, call: &mut CallSpan, labels: &Labels) {
        let is_it = |turn: &TurnSpan| turn.parent == Some(parent) && is_from(labels, turn.last);
        let Some(delegate) = self.turns.iter().find(|(_, turn)| is_it(turn)).map(|(of, _)| *of) else {
            return;
        };
        if call.delegate == Some(delegate) {
            return;
        }
        let other = self.calls.values_mut().find(|other| other.delegate == Some(delegate));
        let place = other.map(|other| {
            other.delegate = call.delegate;
            other.open.beneath()
        });
        for (of, above) in [(call.delegate, place), (Some(delegate), Some(call.open.beneath()))] {
            let turn = of.and_then(|of| self.turns.get_mut(&of));
            // The spans beneath it were told as part of its trace, so it must stay in that trace.
            if let (Some(turn), Some(above)) = (turn, above)
                && turn.open.above.trace == above.trace
            {
                turn.open.above.span = above.span;
            }
        }
        call.delegate = Some(delegate);
    }

    /// The conversation whose action was refused. For a sub-agent, the entry names the session that it works
    /// in, but a reply of its own led to the action.
    fn asker(&self, session: SessionId, call: Option<&CallId>, labels: &Labels) -> SessionId {
        let calls = self.calls.iter().filter(|((_, id), of)| Some(id) == call && is_from(labels, of.place.0));
        let of_call = calls.max_by_key(|(_, call)| call.place).map(|((conversation, _), _)| *conversation);
        let turns = || self.turns.iter().filter(|(_, turn)| is_from(labels, turn.last));
        let of_turn = || turns().max_by_key(|(_, turn)| turn.last).map(|(conversation, _)| *conversation);
        of_call.or_else(of_turn).unwrap_or(session)
    }

    fn intent(&mut self, at: At, effect: Option<EffectId>, fact: &Fact) {
        let Fact::Intent { kind, target, admitted, call, parent, payer, .. } = fact else { return };
        let Some(effect) = effect else { return };
        // A channel's connection to its platform stays open for days, and is not work.
        if *kind == Kind::Http && call.is_none() && parent.is_none() {
            return;
        }
        let conversation = payer.unwrap_or(at.session);
        if *kind == Kind::Model || call.is_some() {
            // A process goes on with the turn: messages from now on join it.
            self.turns.get_mut(&conversation).into_iter().for_each(|turn| turn.is_resumed = false);
        }
        let beneath = match (call, parent) {
            (_, Some(parent)) => self.effects.get(parent).map(|effect| effect.open.beneath()),
            (Some(call), None) => Some(self.call(at, conversation, call).open.beneath()),
            (None, None) => None,
        };
        let model = (*kind == Kind::Model).then(|| target.split_once('/')).flatten();
        let begun = Effect {
            open: self.open(at, conversation, beneath, 0),
            kind: *kind,
            is_relay: parent.is_some(),
            is_approved: *admitted == Admitted::Approved,
            model: model.map(|(provider, model)| (provider_of(provider), Word::of(model))),
            call: call.clone().map(|call| (conversation, call)),
        };
        self.effects.insert(effect, begun);
    }

    /// The call of this name. A call that its reply did not list begins here.
    fn call(&mut self, at: At, conversation: SessionId, id: &CallId) -> &mut CallSpan {
        let open = self.open(at, conversation, None, 1);
        let place = (at.seq, 0);
        let new = || CallSpan { open, place, tool: None, error: None, waits: false, delegate: None };
        self.calls.entry((conversation, id.clone())).or_insert_with(new)
    }

    fn fail(&mut self, call: &(SessionId, CallId), why: &'static str) {
        self.calls.get_mut(call).into_iter().for_each(|call| call.error = Some(why));
    }

    fn outcome(
        &mut self,
        at: At,
        effect: Option<EffectId>,
        status: &Status,
        (exit, tokens, walls): (Option<i32>, u64, Option<&str>),
        ended: &mut Vec<(u64, Span)>,
    ) {
        let Some(effect) = effect.and_then(|effect| self.effects.remove(&effect)) else { return };
        let error = match status {
            Status::Done => None,
            Status::Failed { .. } => Some("failed"),
            Status::Cancelled => Some("cancelled"),
            Status::Unknown => Some("unknown"),
        };
        if let (Some(error), Some(call)) = (error, &effect.call) {
            self.fail(call, error);
        }
        let is_answered = effect.model.is_some() && error.is_none();
        let span = effect.close(at, error, (exit, tokens, walls));
        if is_answered {
            self.replying = Some((at.seq, effect, span));
            return;
        }
        ended.push((at.seq, span));
    }

    /// Reads a model's reply, which was written together with the end of its call.
    fn reply(&mut self, at: At, model: &str, recorded: &Recorded, ended: &mut Vec<(u64, Span)>) {
        let counted = recorded.payload.as_deref().map(serde_json::from_slice::<Counted>);
        let Counted { usage, calls, stop } = counted.and_then(Result::ok).unwrap_or_default();
        self.counted(at, model, &usage, Some(finish(stop)), ended);
        self.turns.get_mut(&at.session).into_iter().for_each(|turn| turn.last = at.seq);
        for (part, Called { id, name }) in calls.into_iter().take(CALLS_MAX).enumerate() {
            let tool = Some(self.tool(&name));
            let open = self.open(at, at.session, None, part);
            let place = (at.seq, part);
            let call = CallSpan { open, place, tool, error: None, waits: false, delegate: None };
            self.calls.insert((at.session, id), call);
        }
    }

    /// Adds the usage of a model's reply or summary, which was written together with the end of its call.
    /// Only a reply has a reason why the model stopped.
    fn counted(
        &mut self,
        at: At,
        model: &str,
        usage: &Usage,
        why: Option<&'static str>,
        ended: &mut Vec<(u64, Span)>,
    ) {
        let Some((_, effect, mut span)) = self.replying.take_if(|(seq, ..)| *seq + 1 == at.seq) else {
            return;
        };
        span.attributes.extend([
            ("gen_ai.response.model", Value::from(model)),
            ("gen_ai.usage.input_tokens", usage.input_tokens.into()),
            ("gen_ai.usage.output_tokens", usage.output_tokens.into()),
            ("gen_ai.usage.cache_read.input_tokens", usage.cache_read_tokens.into()),
            ("gen_ai.usage.cache_creation.input_tokens", usage.cache_write_tokens.into()),
        ]);
        span.attributes
            .extend(why.map(|why| ("gen_ai.response.finish_reasons", Value::Words(vec![why.into()]))));
        if let Some(turn) = self.turns.get_mut(&at.session) {
            // A summary may come from another model than the turn's.
            turn.model = if why.is_some() { effect.model } else { turn.model.take().or(effect.model) };
            let Usage { input_tokens, output_tokens, .. } = &mut turn.usage;
            *input_tokens = input_tokens.saturating_add(usage.input_tokens);
            *output_tokens = output_tokens.saturating_add(usage.output_tokens);
        }
        ended.push((at.seq, span));
    }

    /// A tool's own name: a model may write any text.
    fn tool(&self, name: &str) -> Word {
        Word::of(&self.tools.find(name).map(|tool| tool.spec().name).unwrap_or_default())
    }

    /// Adds a decision after which nothing was done.
    fn decided(
        &mut self,
        at: At,
        (asker, call): (SessionId, Option<(SessionId, CallId)>),
        kind: &'static str,
        mut attributes: Attributes,
        ended: &mut Vec<(u64, Span)>,
    ) {
        let beneath = call.and_then(|call| self.calls.get(&call)).map(|call| call.open.beneath());
        attributes.extend([("bailey.effect.kind", kind.into()), ("bailey.entry", at.seq.into())]);
        let open = self.open(at, asker, beneath, 0);
        ended.push((at.seq, open.close("decide", Some(Word::of(kind)), at.time, attributes)));
    }

    fn asked(&mut self, at: At, approval: ApprovalId, call: Option<(SessionId, CallId)>) {
        let of_call = call.as_ref().and_then(|call| self.calls.get(call));
        let beneath = of_call.map(|call| call.open.beneath());
        let open = self.open(at, at.session, beneath, 0);
        self.questions.insert(approval, Question { open, call });
    }

    fn answered(
        &mut self,
        at: At,
        approval: ApprovalId,
        answer: Answer,
        by: &str,
        ended: &mut Vec<(u64, Span)>,
    ) {
        let Some(Question { open, call }) = self.questions.remove(&approval) else { return };
        let said = match answer {
            Answer::Yes => "yes",
            Answer::YesForSession => "yes_for_session",
            Answer::YesForPattern => "yes_for_pattern",
            Answer::No => "no",
        };
        if let (false, Some(call)) = (answer.is_yes(), &call) {
            self.fail(call, "denied");
        }
        let by = if by == BAILEY { "nobody" } else { "person" };
        let attributes = vec![
            ("bailey.answer", said.into()),
            ("bailey.answered_by", by.into()),
            ("bailey.entry", at.seq.into()),
        ];
        ended.push((at.seq, open.close("wait_for_human", None, at.time, attributes)));
    }

    fn observed(
        &mut self,
        at: At,
        id: &CallId,
        tool: &str,
        ok: bool,
        labels: &Labels,
        ended: &mut Vec<(u64, Span)>,
    ) {
        let Some(mut call) = self.calls.remove(&(at.session, id.clone())) else { return };
        self.came_back(at.session, &mut call, labels);
        call.tool.get_or_insert_with(|| self.tool(tool));
        let error = if ok { None } else { Some(call.error.unwrap_or("failed")) };
        self.end_call(at, call, error, ended);
    }

    fn end_call(
        &mut self,
        at: At,
        call: CallSpan,
        error: Option<&'static str>,
        ended: &mut Vec<(u64, Span)>,
    ) {
        if let Some(turn) = call.delegate.and_then(|conversation| self.turns.remove(&conversation)) {
            let reason = match error {
                None => "answered",
                Some(CUT_OFF) => CUT_OFF,
                Some(_) => "failed",
            };
            ended.push((at.seq, turn.close(at, reason)));
        }
        let tool = call.tool.unwrap_or_else(|| Word::of(""));
        let mut attributes = vec![
            ("gen_ai.operation.name", "execute_tool".into()),
            ("gen_ai.tool.name", tool.clone().into()),
            ("gen_ai.tool.type", "function".into()),
            ("gen_ai.conversation.id", call.open.session.to_string().as_str().into()),
            ("bailey.entry", at.seq.into()),
        ];
        attributes.extend(error.map(|error| (ERROR, error.into())));
        ended.push((at.seq, call.open.close("execute_tool", Some(tool), at.time, attributes)));
    }

    /// Ends a conversation's turn. Calls that a human was asked about are answered in a later turn.
    fn end_turn(&mut self, at: At, reason: &str, ended: &mut Vec<(u64, Span)>) {
        let Some(turn) = self.turns.remove(&at.session) else { return };
        let is_over =
            |(session, _): &(SessionId, CallId), call: &mut CallSpan| *session == at.session && !call.waits;
        let mut over: Vec<CallSpan> = self.calls.extract_if(is_over).map(|(_, call)| call).collect();
        over.sort_by_key(|call| call.open.id.0);
        over.into_iter().for_each(|call| self.end_call(at, call, Some("cancelled"), ended));
        ended.push((at.seq, turn.close(at, reason)));
    }
}

impl Effect {
    fn close(
        &self,
        at: At,
        error: Option<&'static str>,
        (exit, tokens, walls): (Option<i32>, u64, Option<&str>),
    ) -> Span {
        let mut attributes: Attributes = Vec::new();
        if let Some((provider, model)) = &self.model {
            attributes.extend([
                ("gen_ai.operation.name", "chat".into()),
                ("gen_ai.provider.name", provider.clone().into()),
                ("gen_ai.request.model", model.clone().into()),
                ("bailey.tokens", tokens.into()),
            ]);
        }
        let admitted = if self.is_approved { "approved" } else { "allowed" };
        attributes.extend([
            ("gen_ai.conversation.id", self.open.session.to_string().as_str().into()),
            ("bailey.effect.kind", self.kind.name().into()),
            ("bailey.verdict", admitted.into()),
            ("bailey.entry", at.seq.into()),
        ]);
        attributes.extend(exit.map(|code| ("process.exit.code", Value::Code(code))));
        attributes.extend(walls.map(|backend| ("bailey.walls", backend.into())));
        attributes.extend(error.map(|error| (ERROR, error.into())));
        let (name, about) = match (&self.model, self.is_relay) {
            (Some((_, model)), _) => ("chat", Some(model.clone())),
            (None, true) => ("relay", None),
            (None, false) => (self.kind.name(), None),
        };
        let mut span = self.open.close(name, about, at.time, attributes);
        span.is_client = matches!(self.kind, Kind::Model | Kind::Http);
        span
    }
}

impl TurnSpan {
    fn close(self, at: At, reason: &str) -> Span {
        let error = match reason {
            "answered" | "waiting" => None,
            "cancelled" => Some("cancelled"),
            "refused" => Some("refused"),
            "limit" => Some("limit"),
            "budget" => Some("budget"),
            "stuck" => Some("stuck"),
            "unanswered" => Some("unanswered"),
            CUT_OFF => Some(CUT_OFF),
            _ => Some("failed"),
        };
        let mut attributes: Attributes = vec![
            ("gen_ai.operation.name", "invoke_agent".into()),
            ("gen_ai.conversation.id", self.open.session.to_string().as_str().into()),
        ];
        if let Some((provider, model)) = self.model {
            attributes
                .extend([("gen_ai.provider.name", provider.into()), ("gen_ai.request.model", model.into())]);
        }
        attributes.extend([
            ("gen_ai.usage.input_tokens", self.usage.input_tokens.into()),
            ("gen_ai.usage.output_tokens", self.usage.output_tokens.into()),
            ("bailey.entry", at.seq.into()),
        ]);
        attributes.extend(error.map(|error| (ERROR, error.into())));
        self.open.close("invoke_agent", None, at.time, attributes)
    }
}

/// Whether an entry is among the sources of these labels.
fn is_from(labels: &Labels, entry: u64) -> bool {
    labels.sources.contains(&Seq(entry))
}

/// A provider's name in the conventions, if it differs from Bailey's.
fn provider_of(name: &str) -> Word {
    Word::of(if name == "gemini" { "gcp.gemini" } else { name })
}

/// The reason why a model stopped, in the conventions' words.
fn finish(stop: Option<StopReason>) -> &'static str {
    match stop {
        Some(StopReason::Answered) => "stop",
        Some(StopReason::Calls) => "tool_call",
        Some(StopReason::Length) => "length",
        Some(StopReason::Refused) => "content_filter",
        Some(StopReason::NoCalls) | None => super::OTHER,
    }
}

#[cfg(test)]
mod tests;
