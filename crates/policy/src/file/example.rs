//! Examples in rule files: what the rules are meant to say of an action, checked against what they do say.
//!
//! An example is judged by all rules together, in a place that is the same on every machine: the workspace is
//! `/home/you/project`, your home `/home/you`.

use super::mistake::Mistake;
use crate::{Answer, Decided, Described, Facts, Places, Policy, Verdict, classify, rule::Rule, tool};
use bailey_protocol::{
    Action, Adaptation, Blob, Command, Cost, Effect, EffectId, FileChange, HttpRequest, Labels, Limits,
    Merge, MergeFile, MergeKind, Role, Sealed, SessionId, Timestamp, ToolUse, WsPath,
};
use std::{
    collections::BTreeMap,
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

/// An example as it was written: a line, or a line with who asks and whether it wants the network.
pub(super) struct Written {
    pub(super) text: String,
    pub(super) role: Role,
    pub(super) action: Action,
}

impl Written {
    /// Reads a line such as `read src/main.rs` or `exec cargo test`.
    pub(super) fn new(text: &str, role: Option<Role>, network: bool) -> Result<Self, String> {
        let action = action(text, network)?;
        let usual = match action {
            Action::Diff { .. } | Action::Merge(_) => Role::Owner,
            Action::Tool(_) => Role::Plugin,
            _ => Role::Agent,
        };
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

const ACTIONS: &str = "read, stat, list, search, diff or adapt with a path; change, apply, undo or discard with paths; exec with a \
                       command; http with, maybe, a method, and a URL; model with a URL; tool with a name and, maybe, what it does";

fn action(text: &str, network: bool) -> Result<Action, String> {
    let words = split(text)?;
    let (kind, rest) = words.split_first().ok_or_else(|| format!("an empty example: write {ACTIONS}"))?;
    let paths: Vec<WsPath> = rest.iter().map(|word| path(word)).collect();
    let one = || match paths.as_slice() {
        [path] => Ok(path.clone()),
        _ => Err(format!("`{kind}` takes one path")),
    };
    let merge = |direction| {
        let file = |path: &WsPath| MergeFile::whole(path.clone(), None, None);
        Action::Merge(Merge::of_files(direction, None, paths.iter().map(file).collect()))
    };
    let request = |usual: &str| {
        let (method, url) = match rest {
            [url] => (usual, url),
            [method, url] if kind == "http" => (method.as_str(), url),
            _ => return Err(format!("`{kind}` takes one URL")),
        };
        let (method, url) = (method.to_string(), url.clone());
        Ok(HttpRequest { method, url, headers: Vec::new(), body: Blob(Vec::new()) })
    };
    Ok(match kind.as_str() {
        "read" => Action::Read { path: one()? },
        "stat" => Action::Stat { path: one()? },
        "list" => Action::List { path: one()? },
        "search" => Action::Search { root: one()?, pattern: None, glob: None },
        "diff" => Action::Diff { root: one()?, also: Vec::new() },
        "change" => {
            let file =
                |path: &WsPath| FileChange { path: path.clone(), base: None, new: Some(Blob(Vec::new())) };
            Action::Change { files: paths.iter().map(file).collect() }
        }
        "adapt" => Action::Adapt(Adaptation { path: one()?, old: None, new: Some(Blob(Vec::new())) }),
        "apply" => merge(MergeKind::Apply),
        "undo" => merge(MergeKind::Undo),
        "discard" => merge(MergeKind::Discard),
        "exec" if rest.is_empty() => return Err("`exec` needs a command".to_string()),
        "exec" => Action::Exec(Command {
            argv: rest.to_vec(),
            cwd: WORKSPACE.into(),
            env: BTreeMap::new(),
            stdin: None,
            network,
            background: false,
            limits: Limits::default(),
        }),
        "http" => Action::Http(request("GET")?),
        "model" => {
            Action::Model { provider: "example".into(), model: "example".into(), request: request("POST")? }
        }
        "tool" => match rest {
            [name] => use_of(name, None)?,
            [name, effect] => use_of(name, Some(effect))?,
            _ => return Err("`tool` takes a name and, maybe, what the tool does".to_string()),
        },
        other => return Err(format!("unknown action `{other}`: write {ACTIONS}")),
    })
}

fn use_of(name: &str, effect: Option<&String>) -> Result<Action, String> {
    let name = tool::named(name)?;
    let effect = match effect {
        Some(effect) => tool::tool_effect(effect)?,
        None => classify(&Described { name, ..Described::default() }),
    };
    Ok(Action::Tool(ToolUse::judged(name.to_string(), Some(effect), "{}".to_string())))
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
