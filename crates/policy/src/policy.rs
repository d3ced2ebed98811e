//! The decision point.
//!
//! The phases, in order: shape, binding rules (built-in and organisation), file rules. A token's fast path will
//! stand between the last two, extensions after them. Each phase runs all its rules, so that every reason is
//! known; a deny ends the work at its phase's end. Nothing depends on the order of rules.

use crate::{
    built_in::Names,
    condition::Condition,
    fit::Fit,
    place::{Located, Places},
    rule::{Answer, Rule, Tier},
    shape,
    subject::{Resource, Subject},
    verdict::{Allowed, Decided, Denial, Reason, Review, Verdict},
};
use alloc::{format, string::String, vec, vec::Vec};
use bailey_protocol::{Action, Digest, Isolation, Kind, Profile, Sealed, Timestamp, WsPath};

/// Part of every policy's digest, so that a new meaning of old rules is a new policy. Raise it with the meaning.
const SEMANTICS: &str = "bailey-policy 1";
/// Most paths that one reason names; `Decided::red` holds all of them.
const PATHS_SHOWN: usize = 200;
/// What the inside of the walls has of its own: never bound in from outside.
pub const INSIDE: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/tmp"];

/// Everything that a decision depends on.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The effect; its paths are canonical.
    pub effect: &'a Sealed,
    /// The one reading of the clock for this decision; tokens will be judged by it.
    pub now: Timestamp,
    /// What the globs' variables stand for.
    pub places: &'a Places,
    /// The actions inside which this one was asked for, the nearest first; no rule reads them yet.
    pub parents: &'a [Action],
    /// Masked files of the workspace that the human revealed in this session.
    pub revealed: &'a [WsPath],
}

/// A set of rules, ready to judge.
#[derive(Debug)]
pub struct Policy {
    binding: Phase,
    file: Phase,
    secrets: Names,
    digest: Digest,
    profile: Profile,
}

impl Policy {
    /// A policy of these rules. Whatever their tier says, rules in `built_in` become built-in and rules in
    /// `rules` are at most the organisation's. The digest is over all rules, whatever their order.
    #[must_use]
    pub fn new(mut built_in: Vec<Rule>, mut rules: Vec<Rule>) -> Self {
        for rule in &mut built_in {
            rule.tier = Tier::BuiltIn;
        }
        for rule in &mut rules {
            rule.tier = rule.tier.max(Tier::Organisation);
        }
        built_in.append(&mut rules);
        let digest = digest(&built_in);
        let (binding, file) = built_in.into_iter().partition(|rule| rule.tier.binds());
        Self {
            binding: Phase::new(binding),
            file: Phase::new(file),
            secrets: Names::secret_looking(),
            digest,
            profile: Profile::default(),
        }
    }

    /// Judges one effect.
    pub fn decide(&self, facts: &Facts<'_>) -> Decided {
        let action = &facts.effect.effect().action;
        if let Err(text) = shape::check(action) {
            let rule = if action.kind() == Kind::Foreign { "unknown-action" } else { "malformed-shape" };
            return self.denied(facts, Vec::new(), Some((rule, text)));
        }
        let subject = Subject::new(facts);
        let resources = Resource::all(facts);
        let mut tally = Tally::new(resources.len());
        self.binding.run(&subject, &resources, &mut tally);
        if tally.denied {
            return self.denied(facts, tally.reasons, None);
        }
        self.file.run(&subject, &resources, &mut tally);
        if tally.denied {
            return self.denied(facts, tally.reasons, None);
        }
        match tally.strictest() {
            Answer::Allow => self.allowed(facts, tally.reasons),
            Answer::Review => {
                let red = tally.red(&resources);
                Decided { red, ..self.review(facts, tally.reasons) }
            }
            Answer::Pass | Answer::Deny => {
                let text = unallowed(&tally, &resources);
                self.denied(facts, tally.reasons, Some(("default", text)))
            }
        }
    }

    /// The same policy, whose commands may make the system calls of this profile.
    #[must_use]
    pub fn with_profile(self, profile: Profile) -> Self {
        Self { profile, ..self }
    }

    /// All rules: the binding ones first, each group in the order it was given.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.binding.rules.iter().chain(&self.file.rules)
    }

    /// Names all rules and their meaning: what a verdict carries, and what an approval is void without.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    fn allowed(&self, facts: &Facts<'_>, mut reasons: Vec<Reason>) -> Decided {
        // A review that a higher priority lifted is no reason any more.
        reasons.retain(|reason| reason.answer == Answer::Allow);
        let proof = Allowed::new(facts.effect.digest(), self.digest, self.isolation(facts));
        decided(Verdict::Allow(proof), reasons)
    }

    /// What the human then says yes to must also be possible: a secret-looking file comes out from behind its mask.
    fn review(&self, facts: &Facts<'_>, reasons: Vec<Reason>) -> Decided {
        let mut isolation = self.isolation(facts);
        if let Action::Read { path } = &facts.effect.effect().action
            && self.secrets.contains(path, facts.places)
            && !isolation.revealed.contains(path)
        {
            isolation.revealed.push(path.clone());
        }
        decided(Verdict::Review(Review::new(facts.effect.digest(), self.digest, isolation)), reasons)
    }

    /// What the walls need so that the effect can be done at all: the revealed files, and what it reads outside.
    fn isolation(&self, facts: &Facts<'_>) -> Isolation {
        let mut isolation =
            Isolation { profile: self.profile, revealed: facts.revealed.to_vec(), ..Isolation::default() };
        let action = &facts.effect.effect().action;
        if matches!(action.kind(), Kind::Read | Kind::Stat | Kind::List | Kind::Search) {
            let outside = |path: &&WsPath| {
                !path.is_within(&facts.places.workspace) && !INSIDE.iter().any(|own| path.is_within(own))
            };
            isolation.extra_reads = action.paths().into_iter().filter(outside).cloned().collect();
        }
        isolation
    }

    fn denied(&self, facts: &Facts<'_>, mut reasons: Vec<Reason>, own: Option<(&str, String)>) -> Decided {
        if let Some((rule, text)) = own {
            reasons.push(Reason { rule: rule.into(), tier: Tier::BuiltIn, answer: Answer::Deny, text });
        }
        decided(Verdict::Deny(Denial::new(facts.effect.digest(), self.digest)), reasons)
    }
}

fn decided(verdict: Verdict, mut reasons: Vec<Reason>) -> Decided {
    reasons.sort_by(|a, b| {
        b.answer.cmp(&a.answer).then(a.tier.cmp(&b.tier)).then(a.rule.cmp(&b.rule)).then(a.text.cmp(&b.text))
    });
    Decided { verdict, reasons, red: Vec::new() }
}

fn digest(rules: &[Rule]) -> Digest {
    // A rule is strings and numbers, which always serialise; were it otherwise, the error would be hashed.
    let json = |rule: &Rule| serde_json::to_vec(rule).unwrap_or_else(|error| format!("{error}").into_bytes());
    let mut parts: Vec<_> = rules.iter().map(json).collect();
    parts.sort();
    let mut all = vec![SEMANTICS.as_bytes()];
    all.extend(parts.iter().map(Vec::as_slice));
    Digest::of_parts(&all)
}

fn unallowed(tally: &Tally, resources: &[Resource<'_>]) -> String {
    let base = "no rule allows this";
    if resources.len() < 2 {
        return base.into();
    }
    let open = tally.open();
    name_paths(
        base,
        resources.iter().zip(open).filter(|(_, open)| *open).filter_map(|(it, _)| it.path.as_ref()),
    )
}

/// Rules of one phase, found by the kind of action.
#[derive(Debug)]
struct Phase {
    rules: Vec<Rule>,
    by_kind: [Vec<usize>; Kind::ALL.len()],
}

impl Phase {
    fn new(rules: Vec<Rule>) -> Self {
        let concerned = |kind| {
            let speaks = |rule: &Rule| rule.answer != Answer::Pass && rule.matches.concerns(kind);
            rules.iter().enumerate().filter(|(_, rule)| speaks(rule)).map(|(i, _)| i).collect()
        };
        Self { by_kind: Kind::ALL.map(concerned), rules }
    }

    fn run(&self, subject: &Subject, resources: &[Resource<'_>], tally: &mut Tally) {
        let places = Kind::ALL.iter().position(|kind| *kind == subject.kind);
        let found = places.and_then(|place| self.by_kind.get(place)).map(Vec::as_slice).unwrap_or_default();
        for rule in found.iter().filter_map(|i| self.rules.get(*i)) {
            tally.hear(rule, subject, resources);
        }
    }
}

/// Whether a rule speaks about a resource. What is not known binds and never frees: see [`Condition`].
pub(crate) fn speaks(rule: &Rule, subject: &Subject, resource: &Resource<'_>) -> bool {
    let (enough, exempt) = match rule.answer {
        Answer::Allow => (Fit::Yes, Fit::Maybe),
        Answer::Pass | Answer::Review | Answer::Deny => (Fit::Maybe, Fit::Yes),
    };
    let excepted = |except: &Condition| except.fit(subject, resource) >= exempt;
    rule.matches.fit(subject, resource) >= enough && !rule.except.iter().any(excepted)
}

/// What was said so far: for each resource and tier, the highest priority of a review and of an allow.
#[derive(Debug)]
struct Tally {
    votes: Vec<[Vote; Tier::ALL.len()]>,
    reasons: Vec<Reason>,
    denied: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Vote {
    review: Option<i16>,
    allow: Option<i16>,
}

impl Tally {
    fn new(resources: usize) -> Self {
        Self { votes: vec![Default::default(); resources], reasons: Vec::new(), denied: false }
    }

    fn hear(&mut self, rule: &Rule, subject: &Subject, resources: &[Resource<'_>]) {
        let mut about = Vec::new();
        for (resource, votes) in resources.iter().zip(&mut self.votes) {
            if speaks(rule, subject, resource) {
                about.push(resource);
                for (tier, vote) in Tier::ALL.iter().zip(votes) {
                    if *tier == rule.tier {
                        vote.add(rule);
                    }
                }
            }
        }
        if about.is_empty() {
            return;
        }
        self.denied |= rule.answer == Answer::Deny;
        let writes = matches!(subject.kind, Kind::Change | Kind::Merge);
        let text = match writes && rule.answer != Answer::Allow {
            true => name_paths(&rule.text, about.iter().filter_map(|resource| resource.path.as_ref())),
            false => rule.text.clone(),
        };
        self.reasons.push(Reason { rule: rule.name.clone(), tier: rule.tier, answer: rule.answer, text });
    }

    /// The most restrictive answer over all resources.
    fn strictest(&self) -> Answer {
        self.votes.iter().map(answer).max().unwrap_or(Answer::Deny)
    }

    /// The paths that a review stands for.
    fn red(&self, resources: &[Resource<'_>]) -> Vec<WsPath> {
        let asked = resources.iter().zip(&self.votes).filter(|(_, votes)| answer(votes) == Answer::Review);
        asked.filter_map(|(resource, _)| resource.path.as_ref()).map(|path| WsPath::from(path.path)).collect()
    }

    /// For each resource, whether no rule decided about it.
    fn open(&self) -> impl Iterator<Item = bool> {
        self.votes.iter().map(|votes| answer(votes) == Answer::Deny)
    }
}

impl Vote {
    fn add(&mut self, rule: &Rule) {
        let place = match rule.answer {
            Answer::Review => &mut self.review,
            Answer::Allow => &mut self.allow,
            Answer::Pass | Answer::Deny => return,
        };
        *place = (*place).max(Some(rule.priority));
    }

    /// A review stands unless an allow of its own tier has the higher priority.
    fn review_stands(self) -> bool {
        self.review.is_some() && self.review >= self.allow
    }
}

/// The answer about one resource that nothing denied. Only the tiers that grant can open it, be it to a question.
fn answer(votes: &[Vote; Tier::ALL.len()]) -> Answer {
    let spoken = |vote: &Vote| vote.allow.is_some() || vote.review.is_some();
    let granted = Tier::ALL.iter().zip(votes).any(|(tier, vote)| tier.grants() && spoken(vote));
    match (granted, votes.iter().any(|vote| vote.review_stands())) {
        (false, _) => Answer::Deny,
        (true, true) => Answer::Review,
        (true, false) => Answer::Allow,
    }
}

fn name_paths<'a, 'b: 'a>(text: &str, paths: impl Iterator<Item = &'a Located<'b>>) -> String {
    let mut line = String::from(text);
    let mut more = 0_usize;
    for (i, path) in paths.enumerate() {
        match i {
            0 => line.push_str(&format!(": `{}`", path.shown())),
            1..PATHS_SHOWN => line.push_str(&format!(", `{}`", path.shown())),
            _ => more += 1,
        }
    }
    if more > 0 {
        line.push_str(&format!(" and {more} more"));
    }
    line
}
