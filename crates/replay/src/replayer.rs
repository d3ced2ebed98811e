//! Stands in for the world: it returns the recorded results, and does nothing. A request that was never
//! recorded is a divergence.

use super::tape::{RecordedEffect, RecordedQuestion, Step, Tape, TurnRange};
use bailey_agent::Own;
use bailey_journal::{Clock, Fact};
use bailey_kernel::{
    BoxFuture, Chunk, Completion, Context, Decoder, Delta, Encoded, Executor, Io, ModelError, ModelErrorKind,
    Output, Permit, Price, Provider, ResolveError, Route, Seal,
};
use bailey_protocol::{
    Action, Answer, ApprovalId, CallId, Digest, Effect, Inbound, Isolation, Op, Report, SessionId, Status,
    Timestamp, ToolSpec, WsPath,
};
use bailey_session::agent_file;
use bailey_tools::{PeerTool, ToolSource};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::mpsc;

/// Longer than any wait for a provider: a failure that asks for this pause is not tried again.
const TOO_LONG: Duration = Duration::from_secs(1_000_000);

/// A request that differs from the recording.
#[derive(Debug, Clone)]
pub(crate) struct Divergence {
    pub(crate) seq: u64,
    pub(crate) recorded: String,
    pub(crate) now: String,
}

/// The recording, and how far it was played. Clones share one state.
#[derive(Clone)]
pub(super) struct Recording {
    state: Arc<Mutex<State>>,
}

struct State {
    effects: Vec<RecordedEffect>,
    played: BTreeSet<usize>,
    /// The turn that is running.
    turn: TurnRange,
    questions: Vec<RecordedQuestion>,
    /// The ids of questions: first the id in this run, then the id in the recording.
    names: Vec<(ApprovalId, ApprovalId)>,
    /// The reply of the model that was asked last.
    said: Option<Result<Completion, ModelError>>,
    now: Timestamp,
    /// A person's actions between two calls of a model, each with the number of its entry.
    meanwhile: Vec<(u64, Meanwhile)>,
    /// The tools of peers, each list with the number of the entry from which on the model was told of it.
    offered: Vec<(u64, Vec<PeerTool>)>,
    /// Entries of turns that ended because the budget was used up.
    unpaid: Vec<u64>,
    divergence: Option<Divergence>,
}

/// An action of a person while a turn ran.
#[derive(Debug, Clone)]
enum Meanwhile {
    Say(Inbound),
    Answer(ApprovalId),
}

impl State {
    /// The digest of the files that an action names. It comes from the next recorded question about the
    /// action. If the action began before that question was asked, it comes from the last question about it
    /// that was already shown.
    fn named(&self, action: &Action) -> Option<Digest> {
        let digest_of = |action: &Action| serde_json::to_vec(action).map(|bytes| Digest::of(&bytes)).ok();
        let digest = digest_of(action);
        let is_known =
            |asked: &&RecordedQuestion| self.names.iter().any(|(_, recorded)| *recorded == asked.id);
        let (known, open): (Vec<&RecordedQuestion>, Vec<&RecordedQuestion>) =
            self.questions.iter().filter(|asked| asked.action == digest).partition(is_known);
        let unplayed = self.effects.iter().enumerate().filter(|(place, _)| !self.played.contains(place));
        let begun = unplayed.map(|(_, done)| done).find(|done| digest_of(&done.action) == digest);
        let next = open.first().filter(|asked| begun.is_none_or(|done| asked.seq < done.seq));
        next.or(known.last()).or(open.first()).and_then(|asked| asked.named)
    }
}

impl Recording {
    pub(super) fn of(tape: &Tape) -> Self {
        let mut meanwhile = Vec::new();
        let mut runs = false;
        for (place, recorded) in tape.entries.iter().enumerate() {
            match &recorded.entry.fact {
                Fact::Accepted { .. } if runs => {
                    meanwhile.push((recorded.entry.seq.0, Meanwhile::Say(tape.said(place))));
                }
                Fact::Accepted { .. } => runs = true,
                Fact::TurnEnded { .. } | Fact::SessionResumed { .. } => runs = false,
                _ => {}
            }
        }
        let outside: Vec<ApprovalId> = tape.steps().iter().filter_map(Step::answered).collect();
        for asked in tape.questions.iter().filter(|asked| asked.waits && !outside.contains(&asked.id)) {
            meanwhile.extend(asked.answer.as_ref().map(|(seq, ..)| (*seq, Meanwhile::Answer(asked.id))));
        }
        meanwhile.sort_by_key(|(seq, _)| *seq);
        let is_unpaid = |fact: &Fact| matches!(fact, Fact::TurnEnded { reason, .. } if reason == "budget");
        let unpaid = tape.entries.iter().filter(|it| is_unpaid(&it.entry.fact)).map(|it| it.entry.seq.0);
        let state = State {
            effects: tape.effects.clone(),
            played: BTreeSet::new(),
            turn: 0..u64::MAX,
            questions: tape.questions.clone(),
            names: Vec::new(),
            said: None,
            now: tape.began(),
            meanwhile,
            offered: tape.offered(),
            unpaid: unpaid.collect(),
            divergence: None,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a turn begins.
    pub(super) fn begin(&self, turn: TurnRange) {
        self.lock().turn = turn;
    }

    /// The first request that was not recorded.
    pub(super) fn divergence(&self) -> Option<Divergence> {
        self.lock().divergence.clone()
    }

    /// Whether this question was shown before.
    pub(super) fn is_known(&self, id: ApprovalId) -> bool {
        self.lock().names.iter().any(|(here, _)| *here == id)
    }

    /// This run's id of a recorded question, and its answer.
    pub(super) fn answer(&self, recorded: ApprovalId) -> Option<(ApprovalId, Answer, String)> {
        let state = self.lock();
        let (id, _) = state.names.iter().find(|(_, there)| *there == recorded)?;
        let asked = state.questions.iter().find(|asked| asked.id == recorded)?;
        let (_, answer, why) = asked.answer.clone()?;
        Some((*id, answer, why))
    }

    /// The recorded question that corresponds to this one.
    pub(super) fn question(&self, id: ApprovalId, call: Option<&CallId>) -> Option<RecordedQuestion> {
        let mut state = self.lock();
        let known: Vec<ApprovalId> = state.names.iter().map(|(_, recorded)| *recorded).collect();
        let found =
            state.questions.iter().find(|asked| asked.call.as_ref() == call && !known.contains(&asked.id));
        let found = found.cloned()?;
        state.names.push((id, found.id));
        Some(found)
    }

    /// The same text with the recorded ids of questions.
    pub(super) fn renamed(&self, text: &str) -> String {
        let state = self.lock();
        state
            .names
            .iter()
            .fold(text.to_owned(), |text, (here, there)| text.replace(&here.to_string(), &there.to_string()))
    }

    /// How many effects were played.
    pub(super) fn played(&self) -> usize {
        self.lock().played.len()
    }

    /// Whether the budget would not pay for the next call of a model.
    fn is_unpaid(&self) -> bool {
        let state = self.lock();
        let last = state
            .played
            .iter()
            .next_back()
            .and_then(|place| state.effects.get(*place))
            .map_or(0, |it| it.seq)
            .max(state.turn.start);
        let next = state.effects.iter().find(|it| it.seq > last && matches!(it.action, Action::Model { .. }));
        let end = state.unpaid.iter().find(|end| **end > last);
        end.is_some_and(|end| next.is_none_or(|next| next.seq > *end))
    }

    /// Whether the recording has this effect, asked for by no call, before the turn's next call of a model.
    fn is_next(&self, action: &Action) -> bool {
        let state = self.lock();
        let unplayed = state.effects.iter().enumerate().filter(|(place, _)| !state.played.contains(place));
        let of_turn = unplayed.map(|(_, done)| done).filter(|done| state.turn.contains(&done.seq));
        let mut next = of_turn.take_while(|done| model(&done.action).is_none());
        next.any(|done| done.call.is_none() && done.action == *action)
    }

    /// The recorded effect that matches this effect of the workspace.
    fn effect(&self, effect: &Effect) -> Result<RecordedEffect, String> {
        let mut state = self.lock();
        let fits = |done: &RecordedEffect| done.call == effect.call && done.action == effect.action;
        let place = state
            .effects
            .iter()
            .enumerate()
            .position(|(place, done)| !state.played.contains(&place) && fits(done));
        let of_call =
            |done: &&RecordedEffect| done.call == effect.call && !matches!(done.action, Action::Model { .. });
        let instead = state
            .effects
            .iter()
            .enumerate()
            .find(|(place, done)| !state.played.contains(place) && of_call(done));
        let instead = instead.map(|(_, done)| (done.seq, shown(&done.action)));
        let Some(done) = place.and_then(|place| state.play(place)) else {
            return Err(state.diverge(instead, shown(&effect.action)));
        };
        Ok(done)
    }

    /// The recorded next call of a model, and the person's actions until the call after it.
    fn model(&self, action: &Action) -> Result<(RecordedEffect, Vec<Meanwhile>), String> {
        let mut state = self.lock();
        let is_model = |done: &RecordedEffect| matches!(done.action, Action::Model { .. });
        let place = state
            .effects
            .iter()
            .enumerate()
            .position(|(place, done)| !state.played.contains(&place) && is_model(done));
        let Some(found) = place.and_then(|place| state.effects.get(place)).cloned() else {
            return Err(state.diverge(None, shown(action)));
        };
        if *action != found.action {
            return Err(state.diverge(Some((found.seq, shown(&found.action))), shown(action)));
        }
        let done = place.and_then(|place| state.play(place)).unwrap_or(found);
        let next =
            state.effects.iter().find(|it| it.seq > done.seq && is_model(it)).map_or(u64::MAX, |it| it.seq);
        let said = state.said(&done, next);
        state.said = Some(said);
        let meanwhile = state.meanwhile.iter().filter(|(seq, _)| (done.seq..next).contains(seq));
        let meanwhile = meanwhile.map(|(_, what)| what.clone()).collect();
        Ok((done, meanwhile))
    }
}

impl State {
    fn play(&mut self, place: usize) -> Option<RecordedEffect> {
        let done = self.effects.get(place).cloned()?;
        self.played.insert(place);
        self.now = self.now.max(done.time);
        Some(done)
    }

    fn diverge(&mut self, recorded: Option<(u64, String)>, now: String) -> String {
        let last =
            self.played.iter().next_back().and_then(|place| self.effects.get(*place)).map_or(0, |it| it.seq);
        let (seq, recorded) = recorded.unwrap_or((last, "nothing more".into()));
        let divergence = Divergence { seq, recorded, now };
        self.divergence.get_or_insert(divergence);
        "this was never recorded".into()
    }

    /// The model's reply. For a call that failed: a failure that leads to the recorded next step.
    fn said(&self, done: &RecordedEffect, next: u64) -> Result<Completion, ModelError> {
        if let Some(reply) = &done.reply {
            return Ok(reply.clone());
        }
        let same = self
            .effects
            .iter()
            .find(|it| it.seq == next)
            .and_then(|it| Some(model(&it.action)? == model(&done.action)?));
        let kind = match same {
            Some(true) => ModelErrorKind::RateLimited(Some(Duration::ZERO)),
            Some(false) => ModelErrorKind::RateLimited(Some(TOO_LONG)),
            None => ModelErrorKind::Malformed,
        };
        Err(ModelError::new(kind, "the recorded call brought no reply"))
    }
}

fn model(action: &Action) -> Option<(&str, &str)> {
    match action {
        Action::Model { provider, model, .. } => Some((provider, model)),
        _ => None,
    }
}

/// An action as JSON, for people.
pub(super) fn shown(action: &Action) -> String {
    serde_json::to_string_pretty(action).unwrap_or_else(|_| action.target())
}

impl ToolSource for Recording {
    /// The tools that the model was told of in its recorded next call.
    fn tools(&self) -> BoxFuture<'_, Vec<PeerTool>> {
        let state = self.lock();
        let unplayed = state.effects.iter().enumerate().filter(|(place, _)| !state.played.contains(place));
        let next = unplayed.map(|(_, done)| done).find(|done| matches!(done.action, Action::Model { .. }));
        let next = next.map_or(u64::MAX, |done| done.seq);
        let offered = state.offered.iter().rev().find(|(seq, _)| *seq < next);
        let tools = offered.map(|(_, tools)| tools.clone()).unwrap_or_default();
        Box::pin(async { tools })
    }
}

impl Clock for Recording {
    fn now(&self) -> Timestamp {
        self.lock().now
    }
}

/// Performs every effect by returning its recorded result.
pub(super) struct Replayer {
    pub(super) recording: Recording,
    /// The agent's own file as it was in the recording.
    pub(super) own: Own,
    pub(super) seal: Seal,
    pub(super) workspace: String,
    pub(super) user_home: String,
    pub(super) ops: mpsc::Sender<Op>,
    /// Tells whether a question of this run is settled.
    pub(super) journal: bailey_journal::Journal,
}

impl Replayer {
    /// Makes a name canonical as the walls would, if no link is on the way.
    fn canonical(&self, path: &mut WsPath) {
        let named = match path.0.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{}{rest}", self.user_home),
            _ if path.0.starts_with('/') => path.0.clone(),
            _ => format!("{}/{}", self.workspace, path.0),
        };
        let mut parts: Vec<&str> = Vec::new();
        for part in named.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        path.0 = format!("/{}", parts.join("/"));
    }

    async fn bring(&self, permit: Permit, io: &Io) -> Result<Output, String> {
        let effect = permit.redeem(&self.seal).map_err(|error| error.to_string())?.effect;
        // In the form that the journal keeps: without keys, and with the digest of a request to a model.
        let kept = self.journal.shown(&effect).map_err(|error| error.to_string())?;
        let effect: Effect = serde_json::from_value(kept).map_err(|error| error.to_string())?;
        let done = if let Action::Model { .. } = &effect.action {
            let (done, meanwhile) = self.recording.model(&effect.action)?;
            for what in meanwhile {
                self.happen(what).await;
            }
            if let Some(Report::Http(answer)) = done.outcome.as_ref().map(|outcome| &outcome.report)
                && answer.status > 0
            {
                io.out.send(Chunk::Head(answer.status, answer.headers.clone())).await.ok();
            }
            done
        } else {
            self.recording.effect(&effect)?
        };
        let outcome = done.outcome.ok_or("its end is not recorded")?;
        if let (Action::Adapt(adaptation), Status::Done) = (&done.action, &outcome.status) {
            self.own.set(adaptation.new.as_ref().map(|new| new.lossy().into_owned()));
        }
        if outcome.status == Status::Cancelled {
            self.ops.send(Op::Cancel).await.ok();
            io.cancel.cancelled().await;
        }
        Ok(Output::new(outcome))
    }

    /// Repeats a person's action, and waits until it is in the journal.
    async fn happen(&self, what: Meanwhile) {
        let before = self.journal.newest();
        let op = match what {
            Meanwhile::Say(inbound) => Op::Say(inbound),
            Meanwhile::Answer(recorded) => match self.recording.answer(recorded) {
                Some((id, answer, why)) => Op::Answer { id, answer, why, by: None },
                None => return,
            },
        };
        self.ops.send(op).await.ok();
        while self.journal.newest() == before {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

impl Executor for Replayer {
    fn routes(&self) -> Vec<Route> {
        Route::ALL.into()
    }

    fn resolve<'a>(
        &'a self,
        _: SessionId,
        mut action: Action,
    ) -> BoxFuture<'a, Result<Action, ResolveError>> {
        Box::pin(async move {
            action.change_paths(|path| self.canonical(path));
            if let Action::Adapt(adaptation) = &mut action {
                *adaptation = agent_file::planned(&self.own, adaptation.clone()).map_err(ResolveError)?;
            }
            Ok(action)
        })
    }

    fn lacks<'a>(&'a self, _: SessionId, path: &'a WsPath) -> BoxFuture<'a, bool> {
        Box::pin(async move { !self.recording.is_next(&Action::Read { path: path.clone() }) })
    }

    fn named<'a>(
        &'a self,
        _: SessionId,
        action: &'a Action,
        _: &'a Isolation,
    ) -> BoxFuture<'a, Result<Option<Digest>, ResolveError>> {
        Box::pin(async move { Ok(self.recording.lock().named(action)) })
    }

    fn perform<'a>(&'a self, permit: Permit, io: Io) -> BoxFuture<'a, Output> {
        Box::pin(async move { self.bring(permit, &io).await.unwrap_or_else(Output::failed) })
    }
}

/// A model of the recording: its own codec writes the request, and the recorded reply comes back.
pub(super) struct Replayed {
    pub(super) codec: Arc<bailey_llm::Codec>,
    pub(super) recording: Recording,
}

impl Provider for Replayed {
    fn name(&self) -> &str {
        self.codec.name()
    }

    fn model(&self) -> &str {
        self.codec.model()
    }

    fn window_tokens(&self) -> Option<u64> {
        self.codec.window_tokens()
    }

    fn prices(&self) -> &[Price] {
        self.codec.prices()
    }

    fn takes_images(&self) -> bool {
        self.codec.takes_images()
    }

    fn encode(&self, context: &Context, tools: &[ToolSpec]) -> Encoded {
        let mut encoded = self.codec.encode(context, tools);
        if let Ok(body) = std::str::from_utf8(&encoded.request.body.0) {
            encoded.request.body = self.recording.renamed(body).as_str().into();
        }
        // An empty context only measures the room for a conversation, so the budget does not apply to it.
        if !context.segments().is_empty() && self.recording.is_unpaid() {
            encoded.writes = u64::MAX / 4;
        }
        encoded
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(RecordedDecoder(self.recording.clone()))
    }
}

/// Gives the recorded reply, whatever it is fed.
struct RecordedDecoder(Recording);

impl Decoder for RecordedDecoder {
    fn head(&mut self, _: u16, _: &[(String, String)]) {}

    fn push(&mut self, _: &[u8]) -> Vec<Delta> {
        Vec::new()
    }

    fn is_over(&self) -> bool {
        false
    }

    fn end(self: Box<Self>) -> Result<Completion, ModelError> {
        let said = self.0.lock().said.take();
        said.unwrap_or_else(|| Err(ModelError::new(ModelErrorKind::Malformed, "this was never recorded")))
    }
}
