//! What the journal recorded, decided again: by the rules in force and by others, on the same facts.
//!
//! Only rules are compared. What a human answered, what a token stood for and what an extension said are no
//! rules, so the recorded verdict is not looked at: both sets of rules are asked as if nobody had said
//! anything.

use anyhow::Result;
use bailey_home::{clock, config::Config, home::Home, program};
use bailey_journal::{Fact, Journal, Recorded, fact::Admitted};
use bailey_policy::{Answer, ExtensionReply, Facts, Judged, Places, Policy, Rule, Verdict};
use bailey_protocol::{Effect, EffectId, Kind, Sealed, SessionId, Timestamp, Verdict as Told, WsPath};
use bailey_session::place;
use bailey_terminal::{
    one_line,
    print::{Printer, Style},
};
use serde::Deserialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Reasons that are shown of one verdict.
const REASONS_SHOWN: usize = 2;

/// Recorded effects, the oldest first.
#[derive(Debug, Default)]
pub struct EffectRecord {
    cases: Vec<Case>,
    /// Those that cannot be judged again.
    pub lost: Vec<Lost>,
}

/// One effect, with what a decision about it depends on.
#[derive(Debug)]
struct Case {
    seq: u64,
    time: Timestamp,
    effect: Sealed,
    workspace: String,
    revealed: Vec<WsPath>,
    /// What was decided then.
    then: Answer,
    /// Whether it is recorded to the last byte.
    is_whole: bool,
}

/// Why an effect of a removed session cannot be judged again.
const ERASED: &str = "what it was in full was erased";

/// An effect that cannot be judged again.
#[derive(Debug, Clone)]
pub struct Lost {
    seq: u64,
    target: String,
    why: &'static str,
}

/// An effect on which the rules would decide otherwise.
#[derive(Debug, Clone)]
pub struct DecisionChange {
    seq: u64,
    time: Timestamp,
    session: SessionId,
    kind: Kind,
    target: String,
    was: Answer,
    would: Answer,
    by: Vec<String>,
    /// Whether it would be denied only because it may run a program that a rule names.
    in_doubt: bool,
}

/// What two sets of rules make of the same record.
#[derive(Debug, Default)]
pub struct Comparison {
    /// The decisions that become others.
    pub changes: Vec<DecisionChange>,
    /// How many effects were judged.
    pub judged: usize,
    /// How many of them are not recorded to the last byte.
    partial: usize,
    /// How many of them extensions would be asked about.
    asked: usize,
}

/// What a question's payload holds besides the card.
#[derive(Deserialize)]
struct Beside {
    effect: Effect,
}

impl EffectRecord {
    /// The effects that the last `last` decisions were about.
    pub async fn read(journal: &Journal, session: Option<SessionId>, last: u32) -> Result<Self> {
        let mut record = Self::default();
        let mut known: BTreeSet<EffectId> = BTreeSet::new();
        let mut revealed: BTreeMap<SessionId, Vec<WsPath>> = BTreeMap::new();
        let mut workspaces: BTreeMap<SessionId, Option<String>> = BTreeMap::new();
        for recorded in journal.decided(session, last).await? {
            let Some(session) = recorded.entry.session else { continue };
            if let Fact::Revealed { path } = recorded.entry.fact {
                revealed.entry(session).or_default().push(path);
                continue;
            }
            // A question that came to nothing and what came of one are about the same effect.
            if recorded.entry.effect.is_none_or(|effect| known.contains(&effect)) {
                continue;
            }
            let workspace = match workspaces.get(&session) {
                Some(known) => known.clone(),
                None => {
                    let found = journal.session(&session.to_string()).await.ok();
                    let found = found.map(|session| session.workspace.0);
                    workspaces.insert(session, found.clone());
                    found
                }
            };
            let revealed = revealed.get(&session).cloned().unwrap_or_default();
            match Case::of(&recorded, workspace, revealed) {
                Ok(case) => {
                    known.extend(recorded.entry.effect);
                    record.cases.push(case);
                }
                Err(lost) => record.lost.push(lost),
            }
        }
        Ok(record)
    }

    /// What both policies make of it.
    pub fn compare(&self, home: &Home, old: &Policy, new: &Policy) -> Result<Comparison> {
        let programs = program::kept(&Config::load(home)?)?;
        let mut comparison = Comparison::default();
        // What is sent to a model is in the journal as its digest, which matters to who looks at how much it
        // is.
        let is_sized = old.rules().chain(new.rules()).any(is_sized);
        for case in &self.cases {
            let places = case.places(home, &programs);
            let facts = case.facts(&places);
            let (was, would) = (judged(old, &facts), judged(new, &facts));
            comparison.judged += 1;
            let matters = is_sized || case.effect.effect().action.kind() != Kind::Model;
            comparison.partial += usize::from(!case.is_whole && matters);
            comparison.asked += usize::from(was.asks || would.asks);
            if was.answer != would.answer {
                comparison.changes.push(case.change(was.answer, would));
            }
        }
        Ok(comparison)
    }
}

impl EffectRecord {
    /// What these rules would have decided otherwise than what was decided then, whoever decided it.
    pub(crate) fn compare_with_then(&self, home: &Home, new: &Policy) -> Result<Comparison> {
        let programs = program::kept(&Config::load(home)?)?;
        let mut comparison = Comparison::default();
        for case in &self.cases {
            let places = case.places(home, &programs);
            let would = judged(new, &case.facts(&places));
            comparison.judged += 1;
            comparison.asked += usize::from(would.asks);
            if case.then != would.answer {
                comparison.changes.push(case.change(case.then, would));
            }
        }
        Ok(comparison)
    }
}

impl Case {
    fn places(&self, home: &Home, programs: &[String]) -> Places {
        Places {
            workspace: self.workspace.clone(),
            user_home: home.user.display().to_string(),
            bailey_home: home.root.display().to_string(),
            programs: programs.to_vec(),
            project: place::origin(home, self.effect.effect().session).map(|project| project.0),
        }
    }

    fn facts<'a>(&'a self, places: &'a Places) -> Facts<'a> {
        Facts { revealed: &self.revealed, ..Facts::new(&self.effect, self.time, places) }
    }

    fn of(recorded: &Recorded, workspace: Option<String>, revealed: Vec<WsPath>) -> Result<Self, Lost> {
        let (digest, target) = match &recorded.entry.fact {
            Fact::Intent { digest, target, .. } | Fact::Denied { digest, target, .. } => (*digest, target),
            Fact::Asked { digest, target, .. } | Fact::Judged { digest, tool: target, .. } => {
                (*digest, target)
            }
            other => {
                return Err(Lost {
                    seq: recorded.entry.seq.0,
                    target: other.name().into(),
                    why: "it is no decision",
                });
            }
        };
        let lost = |why| Lost { seq: recorded.entry.seq.0, target: target.clone(), why };
        let payload = recorded.payload.as_deref().ok_or_else(|| lost(ERASED))?;
        let effect = match &recorded.entry.fact {
            Fact::Asked { .. } => serde_json::from_slice(payload).map(|Beside { effect }| effect),
            _ => serde_json::from_slice(payload),
        };
        let effect: Effect = effect
            .map_err(|_| lost("an older Bailey kept only the card of a question, and nothing came of it"))?;
        let workspace = workspace.ok_or_else(|| lost("its session was removed"))?;
        let then = match &recorded.entry.fact {
            Fact::Denied { .. } => Answer::Deny,
            Fact::Intent { admitted: Admitted::Allowed, .. } => Answer::Allow,
            // Of what another program asked, what it was told.
            Fact::Judged { verdict: Told::Denied, .. } => Answer::Deny,
            Fact::Judged { verdict: Told::Allowed, .. } => Answer::Allow,
            _ => Answer::Review,
        };
        let effect = Sealed::new(effect).map_err(|_| lost("it cannot be put together again"))?;
        Ok(Self {
            seq: recorded.entry.seq.0,
            time: recorded.entry.time,
            is_whole: effect.digest() == digest,
            effect,
            workspace,
            revealed,
            then,
        })
    }

    fn change(&self, was: Answer, would: JudgedAgain) -> DecisionChange {
        let effect = self.effect.effect();
        let (session, kind, target) = (effect.session, effect.action.kind(), effect.action.target());
        let JudgedAgain { answer: would, by, in_doubt, .. } = would;
        DecisionChange { seq: self.seq, time: self.time, session, kind, target, was, would, by, in_doubt }
    }
}

fn is_sized(rule: &Rule) -> bool {
    rule.except.iter().chain([&rule.matches]).any(|condition| condition.max_size.is_some())
}

/// What the rules say, why, and whether they would ask extensions, of which nobody knows what they would say.
fn judged(policy: &Policy, facts: &Facts<'_>) -> JudgedAgain {
    let (decided, asks) = match policy.judge(facts) {
        Judged::Decided(decided) => (decided, false),
        Judged::Asks(inquiry) => {
            let pass = || Some(ExtensionReply::Said { answer: Answer::Pass, reason: String::new() });
            (inquiry.conclude(|_| pass()), true)
        }
    };
    let answer = match decided.verdict {
        Verdict::Allow(_) => Answer::Allow,
        Verdict::Review(_) => Answer::Review,
        Verdict::Deny(_) => Answer::Deny,
    };
    let deciding: Vec<_> = decided.reasons.iter().take_while(|reason| reason.answer == answer).collect();
    JudgedAgain {
        answer,
        in_doubt: !deciding.is_empty() && deciding.iter().all(|reason| reason.in_doubt),
        by: deciding.into_iter().take(REASONS_SHOWN).map(ToString::to_string).collect(),
        asks,
    }
}

/// The rules' decision on an action.
struct JudgedAgain {
    answer: Answer,
    by: Vec<String>,
    /// Whether they would ask extensions.
    asks: bool,
    /// Whether they deny it only because it may run a program that they name.
    in_doubt: bool,
}

impl DecisionChange {
    /// What was allowed would be denied.
    pub(crate) fn is_breaking(&self) -> bool {
        self.was == Answer::Allow && self.would == Answer::Deny
    }

    /// What was not allowed without a question would be.
    pub(crate) fn opens(&self) -> bool {
        self.would == Answer::Allow
    }

    fn mark(&self) -> Option<&'static str> {
        match (self.is_breaking(), self.opens()) {
            (true, _) => Some("BREAKING"),
            (_, true) => Some("OPENS"),
            _ => None,
        }
    }

    fn print(&self, printer: &Printer) {
        let Self { seq, time, session, kind, target, was, would, by, in_doubt } = self;
        let (was, would, mark) = (was.name(), would.name(), self.mark());
        if printer.is_json() {
            printer.json(&json!({
                "entry": seq, "time": time, "session": session, "action": kind.name(), "target": target,
                "was": was, "would": would, "mark": mark.map(str::to_lowercase), "by": by, "in_doubt": in_doubt,
            }));
            return;
        }
        let time = clock::local_second(*time);
        let (style, mark) = match mark {
            Some(mark @ "BREAKING") => (Style::Red, mark),
            Some(mark) => (Style::Yellow, mark),
            None => (Style::Dim, ""),
        };
        printer.line(format!(
            "{} {}  {} {}",
            printer.paint(Style::Dim, &format!("{seq:>6}  {time}")),
            printer.paint(style, &format!("{was} → {would} {mark}")),
            kind.name(),
            printer.paint(Style::Bold, &short(&one_line(target))),
        ));
        by.iter().for_each(|why| printer.line(printer.paint(Style::Dim, &format!("        {why}"))));
    }
}

impl Comparison {
    /// How many decisions become stricter.
    pub fn breaking(&self) -> usize {
        self.changes.iter().filter(|change| change.is_breaking()).count()
    }

    /// How many decisions become milder.
    pub fn opening(&self) -> usize {
        self.changes.iter().filter(|change| change.opens()).count()
    }

    /// Prints every change, what cannot be judged, and how many there are of each.
    pub fn print(&self, lost: &[Lost], printer: &Printer) {
        self.changes.iter().for_each(|change| change.print(printer));
        let (judged, changed) = (self.judged, self.changes.len());
        let (breaking, opening) = (self.breaking(), self.opening());
        if printer.is_json() {
            let lost: Vec<_> = lost
                .iter()
                .map(|lost| json!({ "entry": lost.seq, "target": lost.target, "why": lost.why }))
                .collect();
            printer.json(&json!({
                "judged": judged, "changed": changed, "breaking": breaking, "opening": opening,
                "partial": self.partial, "extensions": self.asked, "unjudged": lost,
            }));
            return;
        }
        let (erased, lost): (Vec<&Lost>, Vec<&Lost>) = lost.iter().partition(|lost| lost.why == ERASED);
        // A session that was removed takes its own along: one by one they say nothing.
        if let Some(first) = erased.first() {
            printer.note(&format!(
                "{} cannot be judged again: {ERASED} (the first is entry {})",
                some(erased.len(), "entry", "entries"),
                first.seq
            ));
        }
        for lost in lost {
            printer.note(&format!(
                "entry {} ({}) cannot be judged again: {}",
                lost.seq,
                short(&one_line(&lost.target)),
                lost.why
            ));
        }
        if self.partial > 0 {
            printer.note(&format!(
                "{} judged without what the journal leaves out: keys, and what is sent to a model",
                some(self.partial, "was", "were")
            ));
        }
        if self.asked > 0 {
            printer.note(&format!(
                "of {} extensions would be asked, too: what they would say is not known",
                self.asked
            ));
        }
        let in_doubt = self.changes.iter().filter(|change| change.in_doubt).count();
        if in_doubt > 0 {
            printer.note(&format!(
                "{} denied only because nobody knows whether the command runs what the rule names; with \
                 `answer = \"review\"` in the place of `\"deny\"`, Bailey asks you about such a command instead",
                some(in_doubt, "is", "are")
            ));
        }
        let told = match changed {
            0 => format!("{judged} recorded actions: no decision would change"),
            _ => format!(
                "{changed} of {judged} recorded decisions would change: {breaking} BREAKING, {opening} OPENS"
            ),
        };
        printer.line(printer.paint(Style::Bold, &told));
    }
}

fn some(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// What fits a line.
fn short(target: &str) -> String {
    const CHARS_MAX: usize = 120;
    match target.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", target.get(..end).unwrap_or(target)),
        None => target.to_owned(),
    }
}
