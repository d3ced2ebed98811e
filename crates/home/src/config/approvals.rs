//! `[approvals]`: how long a human is waited for, and how much a human looks at.

use super::{ConfigError, Document};
use bailey_policy::{Policy, Reviewing, Rule, Tier, Trust};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The longest that a question waits: a year.
const ANSWER_SECONDS_MAX: u64 = 366 * 24 * 60 * 60;

/// How a human is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approvals {
    /// How many seconds a question waits, before it counts as a no.
    pub answer_seconds: u64,
    /// How many seconds a tool call waits, before its model is told so.
    pub patience_seconds: u64,
    /// What is looked at, whatever the other rules allow; none: nobody said so.
    review: Option<Reviewing>,
    /// The same by how far the caller is trusted.
    review_by_trust: BTreeMap<Trust, Reviewing>,
    /// Whether a human answers each question by itself, with a reason.
    compliance: bool,
    /// What the project wants looked at.
    project: Reviewing,
    /// What happens while nobody answers, in order.
    pub escalation: Vec<Step>,
}

/// A step of a question that nobody answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// How long after the question it begins.
    pub after_seconds: u64,
    /// A program of the owner's and its arguments, to which the question's first digits and the kind of what
    /// waits are added; none: the step is written to the journal only.
    #[serde(default)]
    pub notify: Vec<String>,
}

/// The most steps of a question.
const STEPS_MAX: usize = 16;

/// Its shape in `config.toml`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileApprovals {
    answer_seconds: Option<u64>,
    patience_seconds: Option<u64>,
    review: Option<Reviewing>,
    review_by_trust: BTreeMap<Trust, Reviewing>,
    compliance: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    escalation: Vec<Step>,
}

impl Default for Approvals {
    fn default() -> Self {
        Self {
            answer_seconds: 300,
            patience_seconds: 60,
            review: None,
            review_by_trust: BTreeMap::new(),
            compliance: false,
            project: Reviewing::Auto,
            escalation: Vec::new(),
        }
    }
}

/// Why the review policies cannot be obeyed.
#[derive(Debug, thiserror::Error)]
#[error(
    "{whose} asks for compliance, under which a human is always asked: `{key} = \"auto\"` in config.toml cannot stand beside it, so take it out"
)]
pub struct NotCompliant {
    whose: &'static str,
    key: String,
}

impl Approvals {
    /// Takes what the human's file says.
    ///
    /// # Errors
    /// At a value that cannot be.
    pub(super) fn take(&mut self, document: &Document, file: FileApprovals) -> Result<(), ConfigError> {
        if file.answer_seconds == Some(0) {
            let message =
                "a question that runs out at once could be answered by nobody: it must be 1 or more";
            return Err(document.mistake("approvals.answer_seconds", message));
        }
        if file.answer_seconds.is_some_and(|seconds| seconds > ANSWER_SECONDS_MAX) {
            let message = format!("a question waits for a year at most, {ANSWER_SECONDS_MAX} s");
            return Err(document.mistake("approvals.answer_seconds", message));
        }
        self.answer_seconds = file.answer_seconds.unwrap_or(self.answer_seconds);
        self.patience_seconds = file.patience_seconds.unwrap_or(self.patience_seconds);
        self.review = file.review;
        self.review_by_trust = file.review_by_trust;
        self.compliance = file.compliance.unwrap_or_default();
        let mistake = |message: String| document.mistake("approvals.escalation", message);
        let mut before = 0;
        for Step { after_seconds, notify } in &file.escalation {
            if *after_seconds <= before || *after_seconds >= self.answer_seconds {
                return Err(mistake(format!(
                    "a step begins after {after_seconds} s: it must be later than the one before it, and before the question \
                     runs out after {} s, which is a no (`answer_seconds`)",
                    self.answer_seconds
                )));
            }
            if let Some(program) = notify.first().filter(|program| !program.starts_with('/')) {
                return Err(mistake(format!("`{program}` is no whole path: name the program from `/` on")));
            }
            before = *after_seconds;
        }
        if file.escalation.len() > STEPS_MAX {
            return Err(mistake(format!("more than {STEPS_MAX} steps")));
        }
        self.escalation = file.escalation;
        Ok(())
    }

    /// Takes what a trusted project says: it can only have more looked at.
    ///
    /// # Errors
    /// When it names anything but `review`, or nothing that is one.
    pub(super) fn narrow(&mut self, document: &Document, table: &toml::Table) -> Result<bool, ConfigError> {
        for (name, value) in table {
            let key = format!("approvals.{name}");
            if name != "review" {
                let message = format!(
                    "`{key}` may not be set by a project: only `review` may, and only to have more looked at"
                );
                return Err(document.mistake(&key, message));
            }
            let review = value.clone().try_into::<Reviewing>();
            self.project = review.map_err(|error| document.mistake(&key, error.message().to_owned()))?;
        }
        Ok(self.project > self.review.unwrap_or_default())
    }

    pub(super) fn as_file(&self) -> FileApprovals {
        let review = self.review.unwrap_or_default().max(self.project);
        FileApprovals {
            answer_seconds: Some(self.answer_seconds),
            patience_seconds: Some(self.patience_seconds),
            review: Some(review),
            review_by_trust: self.review_by_trust.clone(),
            compliance: Some(self.compliance),
            escalation: self.escalation.clone(),
        }
    }

    /// Whether a human answers each question by itself.
    pub fn is_compliance(&self) -> bool {
        self.compliance
    }

    /// Looks whether what is asked for can stand beside compliance, where that is wanted here or by the
    /// organisation.
    ///
    /// # Errors
    /// When something says `auto` where a human is always asked.
    pub fn check(&self, by_organisation: bool) -> Result<(), NotCompliant> {
        let general = [("approvals.review".to_owned(), self.review)].into_iter();
        let by_trust = self
            .review_by_trust
            .iter()
            .map(|(trust, review)| (format!("approvals.review_by_trust.{}", trust.name()), Some(*review)));
        let auto = general.chain(by_trust).find(|(_, review)| *review == Some(Reviewing::Auto));
        let whose = if by_organisation { "your organisation" } else { "`approvals.compliance`" };
        match auto {
            Some((key, _)) if by_organisation || self.compliance => Err(NotCompliant { whose, key }),
            _ => Ok(()),
        }
    }

    /// The policy in which more is looked at. Where the organisation wants compliance, these are its rules,
    /// which nothing of a home lifts.
    pub fn join(&self, policy: Policy) -> Policy {
        let by_organisation = policy.is_compliance();
        let tier = if by_organisation { Tier::Organisation } else { Tier::User };
        let compliance = by_organisation || self.compliance;
        let least = if compliance { Reviewing::BeforeExecute } else { Reviewing::Auto };
        let mut rules = self.review.unwrap_or_default().max(least).rules(tier, None);
        for (trust, review) in &self.review_by_trust {
            rules.extend(review.rules(tier, Some(*trust)));
        }
        let policy = policy.with_rules(rules);
        if compliance { policy.with_compliance() } else { policy }
    }

    /// The project's, for its own sessions.
    pub fn narrowing(&self) -> Vec<Rule> {
        self.project.rules(Tier::Project, None)
    }
}
