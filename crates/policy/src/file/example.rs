//! Examples in rule files: what the rules are meant to say of an action, checked against what they do say.
//!
//! An example is judged by all rules together, in a place that is the same on every machine: the workspace is
//! `/home/you/project`, your home `/home/you`.

use super::{
    mistake::Mistake,
    terms::{Terms, request, usual_role},
};
use crate::{Answer, Decided, Facts, Places, Policy, Verdict, rule::Rule};
use bailey_protocol::{
    Action, Cost, Effect, EffectId, Labels, Limits, Role, Sealed, SessionId, Timestamp, WsPath,
};
use std::{
    format,
    string::{String, ToString},
    vec::Vec,
};

const WORKSPACE: &str = "/home/you/project";
const HOME: &str = "/home/you";
const BAILEY: &str = "/home/you/.bailey";

/// One example of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The rule that carries it.
    pub rule: String,
    /// What its writer expects: an allow, a review, or a deny.
    pub expected: Answer,
    /// The action as it was written, with what is said beside its line.
    pub text: String,
    /// Who asks.
    pub role: Role,
    pub(super) action: Action,
    /// Its place; the message is written when it fails.
    pub(super) at: Mistake,
}

/// What an example came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// What the rules say.
    pub answer: Answer,
    /// Why, one line for each of the strongest reasons.
    pub reasons: Vec<String>,
    /// What to tell its writer, where that is not what they expect.
    pub mistake: Option<Mistake>,
}

impl Example {
    /// Judges it by a policy.
    #[must_use]
    pub fn attempt(&self, policy: &Policy) -> Tried {
        let places = Places {
            workspace: WORKSPACE.into(),
            user_home: HOME.into(),
            bailey_home: BAILEY.into(),
            programs: Vec::new(),
            project: None,
        };
        let effect = Effect {
            id: EffectId::new(0, [0; 10]),
            session: SessionId::new(0, [0; 10]),
            parent: None,
            call: None,
            role: self.role,
            action: self.action.clone(),
            labels: Labels::default(),
            cost: Cost::default(),
        };
        match Sealed::new(effect) {
            Ok(effect) => self.judged(policy.decide(&Facts::new(&effect, Timestamp::UNIX_EPOCH, &places))),
            Err(error) => self.tried(Answer::Deny, [error].into()),
        }
    }

    /// Its file, line and column.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}:{}:{}", self.at.file, self.at.line, self.at.column)
    }

    fn judged(&self, decided: Decided) -> Tried {
        let answer = match decided.verdict {
            Verdict::Allow(_) => Answer::Allow,
            Verdict::Review(_) => Answer::Review,
            Verdict::Deny(_) => Answer::Deny,
        };
        let strongest = decided.reasons.iter().take_while(|reason| reason.answer == answer);
        self.tried(answer, strongest.map(ToString::to_string).collect())
    }

    fn tried(&self, answer: Answer, reasons: Vec<String>) -> Tried {
        let mistake = (answer != self.expected).then(|| {
            let (is, wanted, why) = (word(answer), word(self.expected), reasons.join("; "));
            let message =
                format!("example `{}` of rule `{}`: {is}, not {wanted}: {why}", self.text, self.rule);
            Mistake { message, ..self.at.clone() }
        });
        Tried { answer, reasons, mistake }
    }
}

/// The key of an example's list in a rule file.
#[must_use]
pub fn word(answer: Answer) -> &'static str {
    match answer {
        Answer::Review => "ask",
        other => other.name(),
    }
}

/// An example of a rule file: a line, or a line with who asks and whether it wants the network.
pub(super) struct ExampleCase {
    pub(super) text: String,
    pub(super) role: Role,
    pub(super) action: Action,
}

impl ExampleCase {
    /// Reads a line such as `read src/main.rs` or `exec cargo test`.
    pub(super) fn new(text: &str, role: Option<Role>, network: bool) -> Result<Self, String> {
        let action = action(text, network)?;
        let usual = usual_role(&action);
        let role = role.unwrap_or(usual);
        // What a line alone would not say.
        let network = network.then_some("network");
        let asides: Vec<&str> = network.into_iter().chain((role != usual).then(|| role.name())).collect();
        let text = match asides.as_slice() {
            [] => text.to_string(),
            asides => format!("{text} ({})", asides.join(", ")),
        };
        Ok(Self { text, role, action })
    }

    pub(super) fn of(self, rule: &Rule, expected: Answer, at: Mistake) -> Example {
        let Self { text, role, action } = self;
        Example { rule: rule.name.clone(), expected, text, role, action, at }
    }
}

/// The action of a line, in the place of examples.
fn action(text: &str, network: bool) -> Result<Action, String> {
    let model = |url: &str| {
        Ok(Action::Model {
            provider: "example".into(),
            model: "example".into(),
            request: request("POST", url),
        })
    };
    let terms = Terms {
        path: &path,
        here: None,
        start: WORKSPACE.into(),
        limits: Limits::default(),
        network,
        model: &model,
        effect: None,
    };
    terms.action(&split(text)?)
}

/// Where a word leads: `{workspace}`, `{home}` and `{bailey}` stand for their places, and the rest is in the
/// workspace.
fn path(word: &str) -> WsPath {
    let text = word.replace("{workspace}", WORKSPACE).replace("{home}", HOME).replace("{bailey}", BAILEY);
    let text = if text.starts_with('/') { text } else { format!("{WORKSPACE}/{text}") };
    WsPath(match text.trim_end_matches("/.").trim_end_matches('/') {
        "" => "/".to_string(),
        path => path.to_string(),
    })
}

/// Splits a line into words at its spaces; `'…'` and `"…"` keep theirs.
fn split(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            ' ' => words.extend(word.take()),
            '\'' | '"' => {
                let (quoted, after) =
                    rest.split_once(c).ok_or_else(|| format!("nothing closes the {c} in `{text}`"))?;
                word.get_or_insert_default().push_str(quoted);
                rest = after;
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}
