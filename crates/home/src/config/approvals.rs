//! `[approvals]`: how long Bailey waits for a human, and how much a human reviews.

use super::{ConfigError, Document};
use bailey_policy::{Policy, Reviewing, Rule, Tier, Trust};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The longest that a question waits: a year.
const ANSWER_SECONDS_MAX: u64 = 366 * 24 * 60 * 60;

/// How long a question of an unattended session waits, unless the file says otherwise: a day.
const UNATTENDED_SECONDS: u64 = 24 * 60 * 60;

/// How Bailey asks a human.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approvals {
    /// How many seconds a question waits, before it counts as a no.
    pub answer_seconds: u64,
    /// The same for a session that a schedule, the page or a channel began, or `--approve later`: its person
    /// may be away for hours. `answer_seconds` in the file sets both.
    pub unattended_seconds: u64,
    /// How many seconds a tool call waits, before Bailey tells its model so.
    pub patience_seconds: u64,
    /// How much a human reviews, whatever the other rules allow. `None`: the file does not say.
    review: Option<Reviewing>,
    /// The same by the trust in the caller.
    review_by_trust: BTreeMap<Trust, Reviewing>,
    /// Whether a human answers each question separately, with a reason.
    compliance: bool,
    /// How much the project wants a human to review.
    project: Reviewing,
    /// The steps that Bailey takes while a question has no answer, in order.
    pub escalation: Vec<Step>,
}

/// A step that Bailey takes while a question has no answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The seconds between the question and this step.
    pub after_seconds: u64,
    /// A program of the owner's, and its arguments. Bailey adds the first digits of the question and the kind
    /// of the waiting action. Empty: Bailey only writes the step to the journal.
    #[serde(default)]
    pub notify: Vec<String>,
}

/// The most steps of a question.
const STEPS_MAX: usize = 16;

/// The shape of `[approvals]` in `config.toml`.
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
            unattended_seconds: UNATTENDED_SECONDS,
            patience_seconds: 60,
            review: None,
            review_by_trust: BTreeMap::new(),
            compliance: false,
            project: Reviewing::Auto,
            escalation: Vec::new(),
        }
    }
}

/// The reason why Bailey cannot obey the review settings.
#[derive(Debug, thiserror::Error)]
#[error(
    "{whose} asks for compliance, under which a human is always asked: `{key} = \"auto\"` in config.toml cannot stand beside it, so take it out"
)]
pub struct NotCompliant {
    whose: &'static str,
    key: String,
}

impl Approvals {
    /// Takes the settings of the user's file.
    ///
    /// # Errors
    /// At a value that is not valid.
    pub(super) fn take(&mut self, document: &Document, file: FileApprovals) -> Result<(), ConfigError> {
        if file.answer_seconds == Some(0) {
            let message = "it must be 1 or more, because nobody can answer a question that runs out at once";
            return Err(document.mistake("approvals.answer_seconds", message));
        }
        if file.answer_seconds.is_some_and(|seconds| seconds > ANSWER_SECONDS_MAX) {
            let message = format!("a question waits for a year at most, {ANSWER_SECONDS_MAX} s");
            return Err(document.mistake("approvals.answer_seconds", message));
        }
        self.answer_seconds = file.answer_seconds.unwrap_or(self.answer_seconds);
        self.unattended_seconds = file.answer_seconds.unwrap_or(self.unattended_seconds);
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
                return Err(mistake(format!(
                    "`{program}` is not a full path; write the path of the program from `/` on"
                )));
            }
            before = *after_seconds;
        }
        if file.escalation.len() > STEPS_MAX {
            return Err(mistake(format!("more than {STEPS_MAX} steps")));
        }
        self.escalation = file.escalation;
        Ok(())
    }

    /// Takes the settings of a trusted project, which can only ask for more review.
    ///
    /// # Errors
    /// When the project sets anything but `review`, or sets it to an invalid value.
    pub(super) fn narrow(&mut self, document: &Document, table: &toml::Table) -> Result<bool, ConfigError> {
        for (name, value) in table {
            let key = format!("approvals.{name}");
            if name != "review" {
                let message = format!(
                    "a project may not set `{key}`, only `review`, and only so that more is asked about"
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

    /// Whether a human answers each question separately.
    pub fn is_compliance(&self) -> bool {
        self.compliance
    }

    /// Checks that no review setting contradicts compliance, when this configuration or the organisation asks
    /// for compliance.
    ///
    /// # Errors
    /// When a setting says `auto`, although a human must always be asked.
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

    /// Adds the rules of these settings to the policy, so that a human reviews more. When the organisation
    /// wants compliance, they become the organisation's rules, which no setting of a home can lift.
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

    /// The rules of the project's own setting, for sessions in that project.
    pub fn narrowing(&self) -> Vec<Rule> {
        self.project.rules(Tier::Project, None)
    }
}
