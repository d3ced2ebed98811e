//! What in a rule is understood but does not do what it seems to.

use super::mistake::TextPosition;
use crate::{
    command::CommandPrefix,
    condition::Condition,
    programs::{Nature, Programs},
    rule::{Answer, Rule},
};
use bailey_protocol::{Kind, Role};
use std::{
    fmt, format,
    string::{String, ToString},
    vec::Vec,
};

/// Something that its writer cannot have meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The file's name.
    pub file: String,
    /// The line of the rule, from 1; 0 when it is about the whole file.
    pub line: usize,
    /// What is odd and what it means.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.text),
            line => write!(f, "{}:{line}: {}", self.file, self.text),
        }
    }
}

impl Warning {
    pub(super) fn ignored(file: &str) -> Self {
        Self {
            file: file.to_string(),
            line: 0,
            text: "ignored: rule files end in `.toml`, `.yaml` or `.yml`".to_string(),
        }
    }
}

pub(super) fn of(file: &str, at: TextPosition, rule: &Rule) -> Vec<Warning> {
    let mut texts = Vec::new();
    for field in empty_fields(&rule.matches) {
        texts.push(format!(
            "rule `{}` can never speak: the list `{field}` of its `match` is empty",
            rule.name
        ));
    }
    if let Some(field) = homeless_field(&rule.matches) {
        texts.push(format!("rule `{}` can never speak: none of its actions has a `{field}`", rule.name));
    }
    for (place, condition) in
        [("match", &rule.matches)].into_iter().chain(rule.except.iter().map(|except| ("except", except)))
    {
        for (field, means) in unset_fields(condition) {
            texts.push(format!(
                "nothing in this version sets a `{field}`: the one in `{place}` of rule `{}` {means}",
                rule.name
            ));
        }
    }
    for except in &rule.except {
        if *except == rule.matches {
            texts.push(format!(
                "rule `{}` can never speak: an `except` is the same as its `match`",
                rule.name
            ));
        } else if covers(except, &rule.matches) {
            texts
                .push(format!("rule `{}` can never speak: an `except` covers all of its `match`", rule.name));
        }
        for field in empty_fields(except) {
            texts
                .push(format!("an `except` of rule `{}` never fits: its list `{field}` is empty", rule.name));
        }
    }
    if !rule.tier.grants() && rule.answer == Answer::Allow {
        texts.push(format!(
            "rule `{}` allows in a tier that only narrows: it decides nothing by itself",
            rule.name
        ));
    }
    if rule.answer == Answer::Allow {
        let all = || rule.matches.command.iter().flatten();
        texts.extend(all().map(CommandPrefix::program).filter(launches).map(|launcher| {
            format!(
                "rule `{}` never allows `{launcher}`: what that runs is among its arguments, and is not known for certain",
                rule.name
            )
        }));
        texts.extend(all().filter_map(|own| {
            let options = Programs::KNOWN.code_options(own.program());
            let first = options.first().filter(|_| own.is_bare())?;
            Some(format!(
                "rule `{}` allows `{own}` for files only, and not with {}: what that runs has to be named, as `{own} {first}`",
                rule.name,
                options.iter().map(|option| format!("`{option}`")).collect::<Vec<_>>().join(", ")
            ))
        }));
    }
    if matches!(rule.answer, Answer::Deny | Answer::Pass) && rule.priority != 0 {
        let answer = rule.answer.name();
        texts.push(format!("the priority of rule `{}` does nothing: its answer is `{answer}`", rule.name));
    }
    let is_against = matches!(rule.answer, Answer::Deny | Answer::Review);
    if let Some(field) = largest_field(&rule.matches).filter(|_| is_against) {
        texts.push(format!(
            "rule `{}` speaks against what keeps to its `{field}`, and not against what exceeds it: write `{field}` \
             into its `except`",
            rule.name
        ));
    }
    texts.into_iter().map(|text| Warning { file: file.to_string(), line: at.line, text }).collect()
}

/// Whether a condition says nothing but what is true of all that another one fits.
fn covers(except: &Condition, matches: &Condition) -> bool {
    let has_all = |kinds: &Vec<Kind>| {
        let of = matches.action.as_deref().unwrap_or(&Kind::ALL);
        of.iter().all(|kind| kinds.contains(kind))
    };
    let has_each = |roles: &Vec<Role>| Role::ALL.iter().all(|role| roles.contains(role));
    let left = Condition {
        action: except.action.clone().filter(|kinds| !has_all(kinds)),
        role: except.role.clone().filter(|roles| !has_each(roles)),
        ..except.clone()
    };
    left == Condition::default()
}

fn empty_fields(condition: &Condition) -> impl Iterator<Item = &'static str> {
    fn empty<T>(list: &Option<Vec<T>>) -> bool {
        list.as_ref().is_some_and(Vec::is_empty)
    }
    [
        ("action", empty(&condition.action)),
        ("path", empty(&condition.path)),
        ("host", empty(&condition.host)),
        ("method", empty(&condition.method)),
        ("url_path", empty(&condition.url_path)),
        ("command", empty(&condition.command)),
        ("tool", empty(&condition.tool)),
        ("effect", empty(&condition.effect)),
        ("role", empty(&condition.role)),
        ("trust", empty(&condition.trust)),
        ("tag", empty(&condition.tag)),
        ("mode", empty(&condition.mode)),
        ("state", empty(&condition.state)),
        ("direction", empty(&condition.direction)),
    ]
    .into_iter()
    .filter_map(|(name, empty)| empty.then_some(name))
}

/// Fields that the language has and nothing sets yet, and what a condition with them comes to.
fn unset_fields(condition: &Condition) -> impl Iterator<Item = (&'static str, &'static str)> {
    fn given(list: &Option<Vec<String>>) -> bool {
        list.as_ref().is_some_and(|names| !names.is_empty())
    }
    // A caller is known to have no tags; of a session's mode and state nothing is known, which binds and
    // never frees.
    let unknown = "never frees and always binds";
    [
        ("tag", "never fits", given(&condition.tag)),
        ("mode", unknown, given(&condition.mode)),
        ("state", unknown, given(&condition.state)),
    ]
    .into_iter()
    .filter_map(|(field, means, given)| given.then_some((field, means)))
}

fn launches(program: &&str) -> bool {
    Programs::KNOWN.nature(program) == Some(Nature::Launcher)
}

/// A limit that the condition keeps to.
fn largest_field(condition: &Condition) -> Option<&'static str> {
    let limits = [
        ("max_size", condition.max_size),
        ("max_wall", condition.max_wall),
        ("max_memory", condition.max_memory),
    ];
    limits.into_iter().find_map(|(name, limit)| limit.map(|_| name))
}

/// A field that none of the condition's kinds of action has.
fn homeless_field(condition: &Condition) -> Option<&'static str> {
    let kinds = condition.action.as_deref().filter(|kinds| !kinds.is_empty())?;
    let homeless = |here: &[Kind]| !kinds.iter().any(|kind| here.contains(kind));
    let sends = [Kind::Model, Kind::Http];
    let has_path = |kind: &Kind| !sends.contains(kind) && *kind != Kind::Tool;
    let sized = [Kind::Change, Kind::Model, Kind::Http, Kind::Tool];
    let fields = [
        ("path", condition.path.is_some() && !kinds.iter().any(has_path)),
        ("revealed", condition.revealed.is_some() && !kinds.iter().any(has_path)),
        ("host", condition.host.is_some() && homeless(&sends)),
        ("method", condition.method.is_some() && homeless(&sends)),
        ("url_path", condition.url_path.is_some() && homeless(&sends)),
        ("command", condition.command.is_some() && homeless(&[Kind::Exec])),
        ("tool", condition.tool.is_some() && homeless(&[Kind::Tool])),
        ("effect", condition.effect.is_some() && homeless(&[Kind::Tool])),
        ("direction", condition.direction.is_some() && homeless(&[Kind::Merge])),
        ("max_size", condition.max_size.is_some() && homeless(&sized)),
        ("max_wall", condition.max_wall.is_some() && homeless(&[Kind::Exec])),
        ("max_memory", condition.max_memory.is_some() && homeless(&[Kind::Exec])),
    ];
    fields.into_iter().find_map(|(name, homeless)| homeless.then_some(name))
}
