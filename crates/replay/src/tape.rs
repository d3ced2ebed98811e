//! The recorded entries of one session, in the order in which the replay needs them.

use anyhow::{Context as _, Result, bail};
use bailey_journal::{BAILEY, Fact, Journal, Query, Recorded, SessionInfo};
use bailey_kernel::{Completion, Paper, StopReason};
use bailey_protocol::{
    Action, Adaptation, Answer, ApprovalId, CallId, Digest, Effect, EffectId, Image, Inbound, Integrity,
    Kind, Outcome, Role, Timestamp, Usage, WsPath,
};
use bailey_sandbox::Shape;
use bailey_session::compose::shape_of;
use bailey_tools::PeerTool;
use std::collections::{HashMap, HashSet};

/// One recorded session.
pub(super) struct Tape {
    pub(super) info: SessionInfo,
    pub(super) entries: Vec<Recorded>,
    /// The session's effects in order, without the owner's own.
    pub(super) effects: Vec<RecordedEffect>,
    pub(super) questions: Vec<RecordedQuestion>,
    /// The entry from which on the session cannot be run again, and why.
    pub(super) end: Option<(u64, &'static str)>,
}

/// An effect that was begun, and its outcome.
#[derive(Debug, Clone)]
pub(super) struct RecordedEffect {
    pub(super) seq: u64,
    pub(super) time: Timestamp,
    pub(super) call: Option<CallId>,
    pub(super) action: Action,
    pub(super) outcome: Option<Outcome>,
    /// The reply of a model.
    pub(super) reply: Option<Completion>,
}

/// A step that a person or a process took outside of a turn.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// A process opened the session, with this model.
    Open {
        /// The model's name, `provider/model`.
        model: String,
        /// Whether the session existed before.
        resumed: bool,
        /// The content of the agent's own file at that time, as the model was told.
        own: Option<String>,
        /// The content of the home's papers at that time, as the model was told.
        papers: PaperContents,
        /// The shape of the isolation between the session's effects and the host.
        shape: Shape,
    },
    /// A person said this, and a turn began.
    Say(Inbound, TurnRange),
    /// A turn went on that had ended before a person answered.
    GoOn(TurnRange),
    /// A person answered this question.
    Answer(ApprovalId),
    /// A person pinned these words.
    Pin(String),
}

/// The entries of a turn: from the end of the turn before it, or the opening of the session, to its own end.
pub(super) type TurnRange = std::ops::Range<u64>;

impl Step {
    /// The question that this step answers.
    pub(super) fn answered(&self) -> Option<ApprovalId> {
        match self {
            Self::Answer(id) => Some(*id),
            _ => None,
        }
    }
}

/// The papers of a home, each with its content.
pub(super) type PaperContents = Vec<(Paper, WsPath, Option<String>)>;

/// The paper that an entry is about.
fn paper(fact: &Fact) -> Option<(Paper, &WsPath)> {
    let Fact::Guide { path, own: true, .. } = fact else { return None };
    let name = path.0.rsplit('/').next()?;
    Some((Paper::ALL.into_iter().find(|paper| paper.name() == name)?, path))
}

/// A question and its answer.
#[derive(Debug, Clone)]
pub(super) struct RecordedQuestion {
    pub(super) seq: u64,
    pub(super) id: ApprovalId,
    pub(super) call: Option<CallId>,
    pub(super) action: Option<Digest>,
    pub(super) named: Option<Digest>,
    pub(super) answer: Option<(u64, Answer, String)>,
    /// Whether the model was told that the question waits.
    pub(super) waits: bool,
}

impl Tape {
    pub(super) async fn read(journal: &Journal, name: &str) -> Result<Self> {
        let info = journal.session(name).await?;
        let query = Query { session: Some(info.id), ..Query::default() };
        let mut entries = without_inner(journal.entries(query).await?);
        let end = unplayable(&entries);
        if let Some((seq, why)) = end {
            // Keep the entries up to the last turn that ended before that one.
            let turn = |recorded: &Recorded| matches!(recorded.entry.fact, Fact::TurnEnded { .. });
            let last = entries.iter().rposition(|it| it.entry.seq.0 < seq && turn(it));
            let Some(last) = last else { bail!("the session cannot be run again: entry {seq}: {why}") };
            entries.truncate(last + 1);
        }
        let mut tape = Self { info, effects: Vec::new(), questions: Vec::new(), entries, end };
        tape.gather()?;
        Ok(tape)
    }

    fn gather(&mut self) -> Result<()> {
        let mut places: HashMap<EffectId, usize> = HashMap::new();
        let mut ended: Option<(usize, u64)> = None;
        for recorded in &self.entries {
            let seq = recorded.entry.seq.0;
            match &recorded.entry.fact {
                Fact::Intent { role, call, .. } if *role != Role::Owner => {
                    let effect: Effect = parse(recorded)?;
                    places.insert(effect.id, self.effects.len());
                    let (action, call, time) = (effect.action, call.clone(), recorded.entry.time);
                    self.effects.push(RecordedEffect { seq, time, call, action, outcome: None, reply: None });
                }
                Fact::Outcome { .. } => {
                    let place = recorded.entry.effect.and_then(|id| places.get(&id)).copied();
                    if let Some((place, done)) =
                        place.and_then(|place| Some((place, self.effects.get_mut(place)?)))
                    {
                        done.outcome = Some(parse(recorded)?);
                        ended = Some((place, seq));
                    }
                }
                // The reply is written right after the outcome of its call.
                Fact::Reply { .. } | Fact::Summary { .. } => {
                    let of = ended.take().filter(|(_, outcome)| outcome + 1 == seq);
                    if let Some(done) = of.and_then(|(place, _)| self.effects.get_mut(place)) {
                        done.reply = Some(match &recorded.entry.fact {
                            Fact::Reply { .. } => parse(recorded)?,
                            _ => summary(&recorded.text()),
                        });
                    }
                }
                Fact::Asked { approval, call, action, terms, .. } => self.questions.push(RecordedQuestion {
                    seq,
                    id: *approval,
                    call: call.clone(),
                    action: *action,
                    named: terms.named,
                    answer: None,
                    waits: false,
                }),
                Fact::Answered { approval, answer, by, .. } => {
                    let found = self.questions.iter_mut().find(|asked| asked.id == *approval);
                    // A withdrawal by Bailey itself happens again in the replay, so it does not replace an
                    // answer.
                    let is_own = by == BAILEY;
                    if let Some(asked) = found.filter(|asked| !is_own || asked.answer.is_none()) {
                        asked.answer = Some((seq, *answer, recorded.text()));
                    }
                }
                Fact::Observation { waits: Some(id), .. } => {
                    self.questions
                        .iter_mut()
                        .filter(|asked| asked.id == *id)
                        .for_each(|asked| asked.waits = true);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The recorded steps, in order.
    pub(super) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let (mut runs, mut is_new) = (false, false);
        let mut own = None;
        let mut papers = Vec::new();
        for (place, recorded) in self.entries.iter().enumerate() {
            match &recorded.entry.fact {
                Fact::SessionOpened { model, .. } => {
                    own = self.own_after(place, own);
                    papers = self.papers_after(place, papers);
                    let (own, papers, shape) = (own.clone(), papers.clone(), self.shape_after(place));
                    steps.push(Step::Open { model: model.clone(), resumed: false, own, papers, shape });
                }
                Fact::SessionResumed { model } => {
                    (runs, is_new) = (false, true);
                    own = self.own_after(place, own);
                    papers = self.papers_after(place, papers);
                    let (own, papers, shape) = (own.clone(), papers.clone(), self.shape_after(place));
                    steps.push(Step::Open { model: model.clone(), resumed: true, own, papers, shape });
                }
                fact @ Fact::Guide { own: true, .. } if paper(fact).is_none() => {
                    own = self.own_text(recorded)
                }
                Fact::Accepted { .. } if !runs => {
                    (runs, is_new) = (true, false);
                    steps.push(Step::Say(self.said(place), self.turn(place)));
                }
                Fact::Intent { kind: Kind::Model, .. } if is_new => {
                    is_new = false;
                    steps.push(Step::GoOn(self.turn(place)));
                }
                Fact::Answered { approval, .. } if !runs => steps.push(Step::Answer(*approval)),
                Fact::Pinned { .. } if !runs => steps.push(Step::Pin(recorded.text())),
                Fact::TurnEnded { .. } => runs = false,
                _ => {}
            }
        }
        steps
    }

    /// The tools of peers, each list with the number of the entry from which on the model was told of it. A
    /// process that opens the session begins without any.
    pub(super) fn offered(&self) -> Vec<(u64, Vec<PeerTool>)> {
        let of = |it: &Recorded| match &it.entry.fact {
            Fact::SessionOpened { .. } | Fact::SessionResumed { .. } => Some((it.entry.seq.0, Vec::new())),
            Fact::Offered { .. } => Some((it.entry.seq.0, parse(it).ok()?)),
            _ => None,
        };
        self.entries.iter().filter_map(of).collect()
    }

    /// The turn that runs at this entry.
    fn turn(&self, place: usize) -> TurnRange {
        let bounds = |fact: &Fact| {
            matches!(fact, Fact::TurnEnded { .. } | Fact::SessionOpened { .. } | Fact::SessionResumed { .. })
        };
        let (before, after) = self.entries.split_at(place);
        let seq = |it: &Recorded| it.entry.seq.0;
        let from = before.iter().rev().find(|it| bounds(&it.entry.fact)).map_or(0, seq);
        from..after.iter().find(|it| bounds(&it.entry.fact)).map_or(u64::MAX, seq)
    }

    /// The shape of the isolation of the process that opened the session at this entry.
    fn shape_after(&self, place: usize) -> Shape {
        let rest = self.entries.iter().skip(place + 1).map(|it| &it.entry.fact);
        let mut process = rest.take_while(|fact| !matches!(fact, Fact::SessionResumed { .. }));
        shape_of(process.find_map(|fact| match fact {
            Fact::Walls { backend } => Some(backend.as_str()),
            _ => None,
        }))
    }

    /// The content of the agent's own file for the process that opened the session at this entry. It is the
    /// text that the first change of the file was to replace. Without a change, it is the text that the model
    /// is told before anything else is done, or else the text that it was told last.
    fn own_after(&self, place: usize, last: Option<String>) -> Option<String> {
        // The owner starts extensions, at the same time as everything else.
        let is_begun = |fact: &Fact| match fact {
            Fact::Intent { role, .. } => *role != Role::Owner,
            Fact::Accepted { .. } => true,
            _ => false,
        };
        let rest = || self.entries.iter().skip(place + 1);
        let mut process = rest().take_while(|it| !matches!(it.entry.fact, Fact::SessionResumed { .. }));
        if let Some(Adaptation { old, .. }) = process.find_map(adapted) {
            return old.map(|old| old.lossy().into_owned());
        }
        let mut before = rest().take_while(|it| !is_begun(&it.entry.fact));
        let is_own = |fact: &Fact| matches!(fact, Fact::Guide { own: true, .. }) && paper(fact).is_none();
        let guide = before.find(|it| is_own(&it.entry.fact));
        guide.map_or(last, |guide| self.own_text(guide))
    }

    /// The content of the papers for the process that opened the session at this entry: as its own entries
    /// tell, or as told last. The papers stay the same as long as the process lives.
    fn papers_after(&self, place: usize, last: PaperContents) -> PaperContents {
        let rest = self.entries.iter().skip(place + 1);
        let process = rest.take_while(|it| !matches!(it.entry.fact, Fact::SessionResumed { .. }));
        let told = process.filter_map(|it| {
            let (paper, path) = paper(&it.entry.fact)?;
            Some((paper, path.clone(), self.own_text(it)))
        });
        let mut papers: PaperContents = told.collect();
        let is_told = |paper: Paper| papers.iter().any(|(told, ..)| *told == paper);
        let before: PaperContents = last.into_iter().filter(|(paper, ..)| !is_told(*paper)).collect();
        papers.extend(before);
        papers.sort_by_key(|(paper, ..)| *paper);
        papers
    }

    /// The content of the file that a guide is about; `None` if the file was gone. The text beneath the
    /// guide's frame has passed the screen, so the text of a change with the same digest is preferred.
    fn own_text(&self, recorded: &Recorded) -> Option<String> {
        let Fact::Guide { digest: Some(digest), .. } = recorded.entry.fact else { return None };
        let changes = self.entries.iter().filter_map(adapted);
        let mut texts = changes.flat_map(|Adaptation { old, new, .. }| [old, new]).flatten();
        match texts.find(|text| Digest::of(&text.0) == digest) {
            Some(text) => Some(text.lossy().into_owned()),
            None => recorded.text().split_once('\n').map(|(_, text)| text.to_owned()),
        }
    }

    /// The message that was accepted at this entry, with its pictures, which are the entries before it.
    pub(super) fn said(&self, place: usize) -> Inbound {
        let (before, rest) = self.entries.split_at(place.min(self.entries.len()));
        let shown = before.iter().rev().map_while(|it| match it.entry.fact {
            Fact::Image { .. } => Image::of(it.payload.clone()?),
            _ => None,
        });
        let mut images: Vec<Image> = shown.collect();
        images.reverse();
        let text = rest.first().map(Recorded::text).unwrap_or_default();
        let is_quoted = rest.first().is_some_and(|it| {
            matches!(&it.entry.fact, Fact::Accepted { labels, .. } if labels.integrity == Integrity::External)
        });
        Inbound { text, images, is_quoted, ..Inbound::default() }
    }

    /// When the session began.
    pub(super) fn began(&self) -> Timestamp {
        self.entries.first().map_or(Timestamp::UNIX_EPOCH, |recorded| recorded.entry.time)
    }

    /// The models that the session asks from this effect on, in order: provider, model and URL.
    pub(super) fn models(&self, played: usize) -> Vec<(String, String, String)> {
        let mut models = Vec::new();
        for done in self.effects.iter().skip(played) {
            if let Action::Model { provider, model, request } = &done.action {
                let found = (provider.clone(), model.clone(), request.url.clone());
                if !models.contains(&found) {
                    models.push(found);
                }
            }
        }
        models
    }

    /// The paths that the owner revealed before the first message.
    pub(super) fn revealed(&self) -> Vec<WsPath> {
        let before = self.entries.iter().take_while(|it| !matches!(it.entry.fact, Fact::Accepted { .. }));
        let path = |it: &Recorded| match &it.entry.fact {
            Fact::Revealed { path } => Some(path.clone()),
            _ => None,
        };
        before.filter_map(path).collect()
    }
}

/// The session's entries without requests that came from inside its effects: the effects are not performed
/// again, so they make no such requests.
fn without_inner(mut entries: Vec<Recorded>) -> Vec<Recorded> {
    let is_inner = |it: &Recorded| match &it.entry.fact {
        Fact::Intent { parent, .. } => parent.is_some(),
        Fact::Denied { kind: Kind::Http, .. } => parse::<Effect>(it).is_ok_and(|it| it.parent.is_some()),
        _ => false,
    };
    let inner = entries.iter().filter(|it| is_inner(it)).filter_map(|it| it.entry.effect);
    let inner: HashSet<EffectId> = inner.collect();
    entries.retain(|it| it.entry.effect.is_none_or(|id| !inner.contains(&id)));
    entries
}

/// The first entry that cannot be run again here, and why.
fn unplayable(entries: &[Recorded]) -> Option<(u64, &'static str)> {
    let why = |recorded: &Recorded| {
        let is_gone = recorded.entry.payload.is_some() && recorded.payload.is_none();
        match &recorded.entry.fact {
            _ if is_gone => Some("what it was in full was erased"),
            Fact::SessionForked { .. } => Some("it begins with what another session said"),
            Fact::Delegated { .. } => Some("it is a sub-agent's"),
            Fact::Unsaid { .. } => Some("its person took back a message"),
            Fact::Confined(_) => Some("its agent acted by a token of that time"),
            Fact::Intent { payer: Some(_), .. } => {
                Some("a sub-agent worked in it, and what that was told lies in a conversation of its own")
            }
            Fact::Intent { kind: Kind::Exec, .. } if is_background(recorded) => {
                Some("a process went on in the background, and when it printed what is not recorded")
            }
            _ => None,
        }
    };
    let mut runs = false;
    let torn = entries.iter().find(|it| {
        match it.entry.fact {
            Fact::Accepted { .. } => runs = true,
            Fact::TurnEnded { .. } => runs = false,
            _ => {}
        }
        runs && matches!(it.entry.fact, Fact::SessionResumed { .. })
    });
    let mut runs = false;
    let compacted = entries.iter().find(|it| {
        match it.entry.fact {
            Fact::Accepted { .. } => runs = true,
            Fact::TurnEnded { .. } => runs = false,
            _ => {}
        }
        !runs && matches!(it.entry.fact, Fact::Summary { .. })
    });
    let stopped = entries.iter().find_map(|it| Some((it.entry.seq.0, why(it)?)));
    let torn = torn.map(|it| (it.entry.seq.0, "a turn was cut off, and another process went on"));
    let compacted =
        compacted.map(|it| (it.entry.seq.0, "its person had the conversation summed up between two turns"));
    let stopped = stopped.into_iter().chain(torn).chain(compacted).min();
    let open = entries
        .iter()
        .rev()
        .find(|it| matches!(it.entry.fact, Fact::Accepted { .. } | Fact::TurnEnded { .. }));
    let cut = open.filter(|it| matches!(it.entry.fact, Fact::Accepted { .. }));
    stopped.or_else(|| Some((cut?.entry.seq.0, "its turn was cut off, or runs still")))
}

/// Whether an intent's command goes on after its call.
fn is_background(recorded: &Recorded) -> bool {
    let effect = parse::<Effect>(recorded);
    effect.is_ok_and(|effect| matches!(effect.action, Action::Exec(command) if command.background))
}

/// The change of the agent's own file that an entry records.
fn adapted(recorded: &Recorded) -> Option<Adaptation> {
    match &recorded.entry.fact {
        Fact::Intent { kind: Kind::Adapt, .. } | Fact::Denied { kind: Kind::Adapt, .. } => {}
        _ => return None,
    }
    match parse::<Effect>(recorded).ok()?.action {
        Action::Adapt(adaptation) => Some(adaptation),
        _ => None,
    }
}

fn parse<T: serde::de::DeserializeOwned>(recorded: &Recorded) -> Result<T> {
    let bytes = recorded.payload.as_deref().unwrap_or_default();
    serde_json::from_slice(bytes)
        .with_context(|| format!("entry {} cannot be read back", recorded.entry.seq.0))
}

/// The text of a model that was asked for a summary, taken out of its frame again.
fn summary(framed: &str) -> Completion {
    let text = framed.split_once('\n').map_or(framed, |(_, text)| text);
    let text = text.rsplit_once('\n').map_or(text, |(text, _)| text);
    Completion {
        text: text.into(),
        calls: Vec::new(),
        stop: StopReason::Answered,
        usage: Usage::default(),
        cost: None,
        verbatim: serde_json::Value::Null,
    }
}

#[cfg(test)]
mod tests;
