//! The decision point.
//!
//! The phases, in order: shape; binding rules (built-in and organisation); a valid token, which ends the
//! work; file rules; extensions ([`Inquiry`]). Each phase runs all its rules, so that every reason is known;
//! a deny ends the work at its phase's end. Nothing depends on the order of rules.

use crate::{
    Facts,
    built_in::{self, Names},
    condition::Condition,
    extension::Extension,
    fit::Fit,
    inquiry::{Inquiry, Judged},
    phase::Phase,
    programs::Programs,
    rule::{Answer, Rule, Tier},
    shape,
    subject::{Resource, Subject},
    tally::Tally,
    token::{InvalidToken, TokenUse},
    verdict::{Allowed, DEFAULT, Decided, Denial, Reason, Review, Verdict},
};
use alloc::{collections::BTreeSet, format, string::String, vec, vec::Vec};
use bailey_protocol::{Action, Digest, Isolation, Kind, Profile, ToolUse, WsPath};
use serde::Serialize;

/// Part of every policy's digest, so that a new meaning of old rules is a new policy. Raise it with the
/// meaning.
const SEMANTICS: &str = "bailey-policy 7";
/// Most steps that one phase may take: values of conditions, times the things that the action touches. It is
/// far beyond what the limits of rule files and honest actions come to, and about a second.
pub const STEPS_MAX: u64 = 50_000_000;
/// What the inside of the walls has of its own: never bound in from outside.
pub const INSIDE: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/tmp"];

/// A set of rules, ready to judge.
#[derive(Debug)]
pub struct Policy {
    binding: Phase,
    file: Phase,
    extensions: Vec<Extension>,
    programs: Programs,
    digest: Digest,
    profile: Profile,
    compliance: bool,
    direct: bool,
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
        let digest = digest(built_in.iter(), &[], false);
        let (binding, file) = built_in.into_iter().partition(|rule| rule.tier.binds());
        Self {
            binding: Phase::new(binding),
            file: Phase::new(file),
            extensions: Vec::new(),
            programs: Programs::KNOWN,
            digest,
            profile: Profile::default(),
            compliance: false,
            direct: false,
        }
    }

    /// Judges one effect. Extensions that would have to be asked count as failed: see [`Policy::judge`].
    pub fn decide(&self, facts: &Facts<'_>) -> Decided {
        match self.judge(facts) {
            Judged::Decided(decided) => decided,
            Judged::Asks(inquiry) => inquiry.conclude(|_| None),
        }
    }

    /// Judges one effect as far as rules and a token go. Extensions are asked only where nothing has denied
    /// yet and no token stands in for them.
    pub fn judge<'a>(&'a self, facts: &Facts<'a>) -> Judged<'a> {
        // Where no yes of before stands in for another, nothing stays revealed.
        let revealed = if self.asks_each() { &[] } else { facts.revealed };
        let facts = &Facts { revealed, ..*facts };
        guard(|| self.weigh(facts), || Judged::Decided(self.failed(facts)))
    }

    fn weigh<'a>(&'a self, facts: &Facts<'a>) -> Judged<'a> {
        let action = &facts.effect.effect().action;
        let about = action.describe();
        if let Err(text) = shape::check(&about) {
            let rule = if is_unknown(action) { "unknown-action" } else { "malformed-shape" };
            let token =
                facts.token.map(|it| it.stands(self.digest, facts).and(Err(InvalidToken::OutOfScope)));
            return Judged::Decided(self.denied(facts, token, Vec::new(), Some((rule, text))));
        }
        let subject = Subject::new(facts, &about);
        let resources = Resource::all(facts, &about, self.programs);
        let token = facts.token.map(|it| it.check(self.digest, facts, &subject, &resources));
        let mut tally = Tally::new(resources.len());
        self.binding.run(&subject, &resources, &mut tally);
        for rule in facts.narrowing {
            // INVARIANT: whatever it says of itself, it opens and lifts nothing.
            if matches!(rule.answer, Answer::Review | Answer::Deny) {
                let tier = rule.tier.max(Tier::Project);
                tally.hear(&Rule { tier, ..rule.clone() }, &subject, &resources);
            }
        }
        if !tally.denied {
            match (facts.token, token) {
                (Some(held), Some(Ok(()))) => tally.hear_token(held),
                (_, invalid) if facts.caller.is_confined => tally.hear_confined(invalid),
                (_, invalid) => {
                    tally.note(invalid);
                    self.file.run(&subject, &resources, &mut tally);
                }
            }
        }
        let asks = !tally.denied && token != Some(Ok(())) && self.asked(subject.kind).next().is_some();
        let inquiry = Inquiry { policy: self, facts: *facts, resources, tally, token };
        if asks { Judged::Asks(inquiry) } else { Judged::Decided(inquiry.verdict()) }
    }

    /// What the rules, and whoever else was heard, come to.
    pub(crate) fn verdict(
        &self,
        facts: &Facts<'_>,
        tally: Tally,
        resources: &[Resource<'_>],
        token: TokenUse,
    ) -> Decided {
        if tally.denied {
            return self.denied(facts, token, tally.reasons, None);
        }
        match tally.strictest() {
            Answer::Allow => self.allowed(facts, token, tally.reasons),
            Answer::Review => {
                let red = tally.red(facts.effect.effect().action.kind(), resources);
                Decided { red, ..self.review(facts, token, tally.reasons) }
            }
            #[cfg(feature = "controls")]
            Answer::Pass | Answer::Deny if bailey_protocol::broken::broken("default_deny") => {
                self.allowed(facts, token, tally.reasons)
            }
            Answer::Pass | Answer::Deny => {
                let text = tally.unallowed(resources);
                self.denied(facts, token, tally.reasons, Some((DEFAULT, text)))
            }
        }
    }

    /// The same policy, in which these extensions have a say. They are part of its digest.
    #[must_use]
    pub fn with_extensions(mut self, mut extensions: Vec<Extension>) -> Self {
        extensions.sort_by(|a, b| a.name.cmp(&b.name));
        self.extensions = extensions;
        self.digest = digest(self.rules(), &self.extensions, self.compliance);
        self
    }

    /// The same policy with more rules in front of its own, at most the organisation's.
    #[must_use]
    pub fn with_rules(mut self, mut rules: Vec<Rule>) -> Self {
        for rule in &mut rules {
            rule.tier = rule.tier.max(Tier::Organisation);
        }
        let (mut binding, mut file): (Vec<Rule>, _) = rules.into_iter().partition(|rule| rule.tier.binds());
        binding.extend(self.binding.rules);
        file.extend(self.file.rules);
        (self.binding, self.file) = (Phase::new(binding), Phase::new(file));
        self.digest = digest(self.rules(), &self.extensions, self.compliance);
        self
    }

    /// The same policy under which a human answers each question by itself, with a reason.
    #[must_use]
    pub fn with_compliance(mut self) -> Self {
        self.compliance = true;
        self.digest = digest(self.rules(), &self.extensions, true);
        self
    }

    /// Whether a human answers each question by itself, with a reason.
    #[must_use]
    pub fn is_compliance(&self) -> bool {
        self.compliance
    }

    /// The same policy where nothing stands between what is done and the host: a human answers for each
    /// command, each change of a file and each look at the machine's temporary files by itself, whatever
    /// other rules allow.
    #[must_use]
    pub fn without_walls(mut self) -> Self {
        #[cfg(feature = "controls")]
        if bailey_protocol::broken::broken("unwalled") {
            return self;
        }
        let mut binding = built_in::without_walls();
        binding.extend(self.binding.rules);
        self.binding = Phase::new(binding);
        self.direct = true;
        self.digest = digest(self.rules(), &self.extensions, self.compliance);
        self
    }

    /// Whether no yes of before stands in for another.
    #[must_use]
    pub fn asks_each(&self) -> bool {
        self.compliance || self.direct
    }

    /// Whether nothing stands between what is done and the host.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// The extensions that have a say.
    pub fn extensions(&self) -> impl Iterator<Item = &Extension> {
        self.extensions.iter()
    }

    /// The extensions that judge this kind. A change of the rules is the owner's, and asked of none: nobody
    /// else could mend what keeps one from answering.
    pub(crate) fn asked(&self, kind: Kind) -> impl Iterator<Item = &Extension> {
        let asks = move |extension: &&Extension| kind != Kind::Amend && extension.kinds.contains(&kind);
        self.extensions.iter().filter(asks)
    }

    /// The same policy, which knows these programs. Only what shows that no wall depends on them takes them
    /// away.
    #[must_use]
    pub fn with_programs(self, programs: Programs) -> Self {
        Self { programs, ..self }
    }

    pub(crate) fn programs(&self) -> Programs {
        self.programs
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

    fn allowed(&self, facts: &Facts<'_>, token: TokenUse, mut reasons: Vec<Reason>) -> Decided {
        // A review that a higher priority lifted is no reason any more.
        reasons.retain(|reason| reason.answer != Answer::Review);
        let proof = Allowed::new(facts.effect.digest(), self.digest, self.isolation(facts));
        decided(Verdict::Allow(proof), token, reasons)
    }

    /// What the human then says yes to must also be possible: a secret-looking file comes out from behind its
    /// mask.
    fn review(&self, facts: &Facts<'_>, token: TokenUse, reasons: Vec<Reason>) -> Decided {
        let mut isolation = self.isolation(facts);
        if let Action::Read { path } = &facts.effect.effect().action
            && !isolation.revealed.contains(path)
            && Names::secret_looking().contains(path, facts.places)
        {
            isolation.revealed.push(path.clone());
        }
        decided(Verdict::Review(Review::new(facts.effect.digest(), self.digest, isolation)), token, reasons)
    }

    /// What the walls need so that the effect can be done at all: the revealed files, and what it reads
    /// outside.
    fn isolation(&self, facts: &Facts<'_>) -> Isolation {
        if let Some(walls) = facts.walls {
            return walls.clone();
        }
        let mut isolation =
            Isolation { profile: self.profile, revealed: facts.revealed.to_vec(), ..Isolation::default() };
        if self.direct {
            (isolation.minimum, isolation.landlock_abi) = (BTreeSet::new(), 0);
        }
        let action = &facts.effect.effect().action;
        if matches!(action.kind(), Kind::Read | Kind::Stat | Kind::List | Kind::Search) {
            let outside = |path: &&WsPath| {
                !path.is_within(&facts.places.workspace) && !INSIDE.iter().any(|own| path.is_within(own))
            };
            isolation.extra_reads = action.paths().into_iter().filter(outside).cloned().collect();
        }
        isolation
    }

    fn denied(
        &self,
        facts: &Facts<'_>,
        token: TokenUse,
        mut reasons: Vec<Reason>,
        own: Option<(&str, String)>,
    ) -> Decided {
        if let Some((rule, text)) = own {
            reasons.push(Reason::own(rule, text));
        }
        decided(Verdict::Deny(Denial::new(facts.effect.digest(), self.digest)), token, reasons)
    }

    /// The decision when the evaluation itself failed.
    pub(crate) fn failed(&self, facts: &Facts<'_>) -> Decided {
        let text = "the rules could not be evaluated: this is an error in Bailey";
        self.denied(facts, None, Vec::new(), Some(("evaluation", text.into())))
    }
}

/// Runs an evaluation; when it panics, the runtime lives on and the effect is denied. Nothing of the
/// evaluation outlives it, so that what it left half done is seen by nobody.
#[cfg(feature = "std")]
pub(crate) fn guard<T>(evaluate: impl FnOnce() -> T, failed: impl FnOnce() -> T) -> T {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(evaluate)).unwrap_or_else(|_| failed())
}

#[cfg(not(feature = "std"))]
pub(crate) fn guard<T>(evaluate: impl FnOnce() -> T, _: impl FnOnce() -> T) -> T {
    evaluate()
}

/// Whether nobody says what it is: the tool of another program that did not declare it.
fn is_unknown(action: &Action) -> bool {
    matches!(action, Action::Tool(ToolUse { effect: None, .. }))
}

fn decided(verdict: Verdict, token: TokenUse, mut reasons: Vec<Reason>) -> Decided {
    reasons.sort_by(|a, b| {
        b.answer
            .cmp(&a.answer)
            .then(a.source.cmp(&b.source))
            .then(a.rule.cmp(&b.rule))
            .then(a.text.cmp(&b.text))
    });
    Decided { verdict, reasons, red: Vec::new(), token }
}

fn digest<'a>(rules: impl Iterator<Item = &'a Rule>, extensions: &[Extension], compliance: bool) -> Digest {
    // These are strings and numbers, which always serialise; were it otherwise, the error would be hashed.
    fn json<T: Serialize>(part: &T) -> Vec<u8> {
        serde_json::to_vec(part).unwrap_or_else(|error| format!("{error}").into_bytes())
    }
    let mut rules: Vec<_> = rules.map(json).collect();
    rules.sort();
    let extensions = json(&extensions);
    let mut parts = vec![SEMANTICS.as_bytes(), &extensions];
    parts.extend(rules.iter().map(Vec::as_slice));
    parts.extend(compliance.then_some(&b"compliance"[..]));
    Digest::of_parts(&parts)
}

/// Whether a rule speaks about a resource. What is not known binds and never frees: see [`Condition`].
pub(crate) fn speaks(rule: &Rule, subject: &Subject<'_>, resource: &Resource<'_>) -> bool {
    let (enough, exempt) = match rule.answer {
        Answer::Allow => (Fit::Yes, Fit::Maybe),
        Answer::Pass | Answer::Review | Answer::Deny => (Fit::Maybe, Fit::Yes),
    };
    let excepted = |except: &Condition| except.fit(subject, resource) >= exempt;
    #[cfg(test)]
    tests::panic_at(rule);
    rule.concerns(subject.kind)
        && rule.matches.fit(subject, resource) >= enough
        && !rule.except.iter().any(excepted)
}

#[cfg(test)]
mod tests;
