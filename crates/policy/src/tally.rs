//! What the rules said so far, and what it comes to.

use crate::{
    Token,
    command::Invocation,
    extension::Extension,
    fit::Fit,
    place::Located,
    policy::speaks,
    rule::{Answer, Rule, Tier},
    subject::{Resource, Subject},
    token::TokenUse,
    verdict::{Reason, Source},
};
use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use bailey_protocol::{Kind, WsPath};

/// Most paths that one reason names; `Decided::red` holds all of them.
const PATHS_SHOWN: usize = 200;

/// What was said so far: for each resource and tier, the highest priority of a review and of an allow.
#[derive(Debug)]
pub(crate) struct Tally {
    votes: Vec<[Vote; Tier::ALL.len()]>,
    /// What stands beside the rules, about everything that the action touches: extensions, and a token that
    /// allows.
    beside: Vote,
    pub(crate) reasons: Vec<Reason>,
    pub(crate) denied: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Vote {
    review: Option<i16>,
    allow: Option<i16>,
}

impl Tally {
    pub(crate) fn new(resources: usize) -> Self {
        let votes = vec![Default::default(); resources];
        Self { votes, beside: Vote::default(), reasons: Vec::new(), denied: false }
    }

    /// A valid token allows what it covers. It lifts no review of the rules that were heard before it.
    pub(crate) fn hear_token(&mut self, token: &Token) {
        self.beside.add(Answer::Allow, 0);
        self.reason(token.id.to_string(), Source::Token, Answer::Allow, "a capability token covers this");
    }

    /// A caller that may act by a token alone has none that holds.
    pub(crate) fn hear_confined(&mut self, token: TokenUse) {
        let why = match token {
            Some(Err(invalid)) => format!("its caller acts by a token alone, and {invalid}"),
            _ => "its caller acts by a token alone, and has none".into(),
        };
        self.hear_own("confined", why);
    }

    /// A token that does not hold is told, and changes nothing.
    pub(crate) fn note(&mut self, token: TokenUse) {
        if let Some(Err(invalid)) = token {
            self.reason(
                "invalid".into(),
                Source::Token,
                Answer::Pass,
                &format!("the token does not count: {invalid}"),
            );
        }
    }

    /// What an extension said, or its silence counts as. No rule lifts its review, and it lifts none of a
    /// rule.
    pub(crate) fn hear_extension(&mut self, extension: &Extension, answer: Answer, text: &str) {
        self.denied |= answer == Answer::Deny;
        self.beside.add(answer, 0);
        self.reason(extension.name.clone(), Source::Extension, answer, text);
    }

    /// A denial of the decision point itself.
    pub(crate) fn hear_own(&mut self, name: &str, text: String) {
        self.denied = true;
        self.reasons.push(Reason::own(name, text));
    }

    fn reason(&mut self, rule: String, source: Source, answer: Answer, text: &str) {
        self.reasons.push(Reason { rule, source, answer, text: text.into(), in_doubt: false });
    }

    /// Counts what a rule says about everything, without a reason.
    pub(crate) fn count(&mut self, rule: &Rule) {
        self.denied |= rule.answer == Answer::Deny;
        let votes = self.votes.iter_mut().flat_map(|votes| Tier::ALL.iter().zip(votes));
        votes
            .filter(|(tier, _)| **tier == rule.tier)
            .for_each(|(_, vote)| vote.add(rule.answer, rule.priority));
    }

    pub(crate) fn hear(&mut self, rule: &Rule, subject: &Subject<'_>, resources: &[Resource<'_>]) {
        let mut about = Vec::new();
        for (resource, votes) in resources.iter().zip(&mut self.votes) {
            if speaks(rule, subject, resource) {
                about.push(resource);
                for (tier, vote) in Tier::ALL.iter().zip(votes) {
                    if *tier == rule.tier {
                        vote.add(rule.answer, rule.priority);
                    }
                }
            }
        }
        if about.is_empty() {
            return;
        }
        self.denied |= rule.answer == Answer::Deny;
        let doubt = doubt(rule, &about);
        let text = match &doubt {
            _ if changes_files(subject.kind) && rule.answer != Answer::Allow => {
                name_paths(&rule.text, about.iter().filter_map(|resource| resource.path.as_ref()))
            }
            Some(doubt) => format!("{doubt}: {}", rule.text),
            None => rule.text.clone(),
        };
        let source = Source::Rule(rule.tier);
        let in_doubt = doubt.is_some();
        self.reasons.push(Reason { rule: rule.name.clone(), source, answer: rule.answer, text, in_doubt });
    }

    /// The most restrictive answer over all resources.
    pub(crate) fn strictest(&self) -> Answer {
        self.votes.iter().map(|votes| self.answer(votes)).max().unwrap_or(Answer::Deny)
    }

    /// The paths that a review stands for, where files change: a command has a directory, and names no files.
    pub(crate) fn red(&self, kind: Kind, resources: &[Resource<'_>]) -> Vec<WsPath> {
        if !changes_files(kind) {
            return Vec::new();
        }
        let asked =
            resources.iter().zip(&self.votes).filter(|(_, votes)| self.answer(votes) == Answer::Review);
        asked.filter_map(|(resource, _)| resource.path.as_ref()).map(|path| WsPath::from(path.path)).collect()
    }

    /// Why nothing is allowed: with the paths that no rule decided about, where there are several.
    pub(crate) fn unallowed(&self, resources: &[Resource<'_>]) -> String {
        let base = "no rule allows this";
        if resources.len() < 2 {
            return base.into();
        }
        let open = resources.iter().zip(&self.votes).filter(|(_, votes)| self.answer(votes) == Answer::Deny);
        name_paths(base, open.filter_map(|(resource, _)| resource.path.as_ref()))
    }

    /// The answer about one resource that nothing denied. Only the tiers that grant, a token and extensions
    /// can open it, be it to a question.
    fn answer(&self, votes: &[Vote; Tier::ALL.len()]) -> Answer {
        let tiers = Tier::ALL.iter().zip(votes).filter(|(tier, _)| tier.grants()).map(|(_, vote)| vote);
        let granted = tiers.chain([&self.beside]).any(|vote| vote.has_spoken());
        let reviewed = votes.iter().any(|vote| vote.review_stands()) || self.beside.review.is_some();
        match (granted, reviewed) {
            (false, _) => Answer::Deny,
            (true, true) => Answer::Review,
            (true, false) => Answer::Allow,
        }
    }
}

impl Vote {
    fn add(&mut self, answer: Answer, priority: i16) {
        let place = match answer {
            Answer::Review => &mut self.review,
            Answer::Allow => &mut self.allow,
            Answer::Pass | Answer::Deny => return,
        };
        *place = (*place).max(Some(priority));
    }

    fn has_spoken(self) -> bool {
        self.allow.is_some() || self.review.is_some()
    }

    /// A review stands unless an allow of its own tier has the higher priority.
    fn review_stands(self) -> bool {
        self.review.is_some() && self.review >= self.allow
    }
}

/// Why a command only may run the program that a denial names; `None` where it runs it for certain.
fn doubt(rule: &Rule, about: &[&Resource<'_>]) -> Option<String> {
    let prefixes = rule.matches.command.as_deref().filter(|_| rule.answer == Answer::Deny)?;
    let fit = |words: &Invocation| prefixes.iter().map(|prefix| prefix.fit(words)).max();
    let words: Vec<&Invocation> = about.iter().filter_map(|resource| resource.words.as_ref()).collect();
    if words.iter().any(|words| fit(words) == Some(Fit::Yes)) {
        return None;
    }
    let words = words.into_iter().find(|words| fit(words) == Some(Fit::Maybe))?;
    let mut named = prefixes.iter().filter(|prefix| prefix.fit(words) == Fit::Maybe);
    let first = named.next()?;
    let others = if named.next().is_some() { " or another program that the rule names" } else { "" };
    Some(format!("this command may run `{first}`{others}, for {}", words.doubt()))
}

fn changes_files(kind: Kind) -> bool {
    matches!(kind, Kind::Change | Kind::Merge)
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
