//! What a rule speaks about.

use crate::{
    Trust,
    command::CommandPrefix,
    fit::Fit,
    glob::Glob,
    host::{HostGlob, Method},
    subject::{Resource, Subject},
    tool::ToolGlob,
    url::UrlGlob,
};
use alloc::{string::String, vec::Vec};
use bailey_protocol::{Kind, MergeKind, Role, ToolEffect};
use serde::{Deserialize, Serialize};

/// A condition: all its fields must fit, each with any of its values. A field that is `None` always fits, an
/// empty list never does, and a field that an action cannot have (the path of a model call) never does.
///
/// Where a value is not known (a program hidden in a shell line, what lies beneath a search's root), an allow
/// does not match; a review and a deny do; an `except` keeps an allow from matching and leaves a review and a
/// deny standing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Condition {
    /// Kinds of action.
    pub action: Option<Vec<Kind>>,
    /// Paths: of a file, a directory, a search's root, a command's working directory.
    pub path: Option<Vec<Glob>>,
    /// Hosts of requests and model calls.
    pub host: Option<Vec<HostGlob>>,
    /// Methods of requests and model calls, in upper case (RFC 9110, 9.1).
    pub method: Option<Vec<Method>>,
    /// Paths of the URLs of requests and model calls.
    pub url_path: Option<Vec<UrlGlob>>,
    /// Programs, with their first arguments.
    pub command: Option<Vec<CommandPrefix>>,
    /// Names of other programs' tools.
    pub tool: Option<Vec<ToolGlob>>,
    /// What such a tool does to the world.
    pub effect: Option<Vec<ToolEffect>>,
    /// Who asks.
    pub role: Option<Vec<Role>>,
    /// How far the caller is trusted.
    pub trust: Option<Vec<Trust>>,
    /// Tags, of which the caller has one.
    pub tag: Option<Vec<String>>,
    /// Modes of the session.
    pub mode: Option<Vec<String>>,
    /// States of the session, within its mode.
    pub state: Option<Vec<String>>,
    /// Whether it asks for a way to the network. Requests and model calls always do; of other programs' tools
    /// nobody knows.
    pub network: Option<bool>,
    /// Which way a merge goes.
    pub direction: Option<Vec<MergeKind>>,
    /// Whether the human has revealed the file in this session.
    pub revealed: Option<bool>,
    /// Whether a merge puts a redaction mark where the project's file has a secret.
    pub marks: Option<bool>,
    /// At most so many bytes are written to one file, sent, or given to a tool as arguments.
    pub max_size: Option<u64>,
    /// A command's time limit is at most so many milliseconds.
    pub max_wall: Option<u64>,
    /// A command's memory limit is at most so many bytes.
    pub max_memory: Option<u64>,
}

impl Condition {
    /// Whether it can fit actions of this kind.
    pub(crate) fn concerns(&self, kind: Kind) -> bool {
        self.action.as_ref().is_none_or(|kinds| kinds.contains(&kind))
    }

    /// How many values it compares at most; the fields with one value count as one.
    pub(crate) fn steps(&self) -> u64 {
        fn values<T>(list: &Option<Vec<T>>) -> usize {
            list.as_ref().map_or(0, Vec::len)
        }
        let names = values(&self.tag) + values(&self.mode) + values(&self.state);
        let lists = values(&self.path)
            + values(&self.host)
            + values(&self.method)
            + values(&self.url_path)
            + values(&self.command)
            + values(&self.tool)
            + names;
        1 + u64::try_from(lists).unwrap_or(u64::MAX)
    }

    /// How it fits. What tells most rules apart in the fewest steps is looked at first.
    pub(crate) fn fit(&self, subject: &Subject<'_>, resource: &Resource<'_>) -> Fit {
        let path = resource.path.as_ref();
        let fit = list(&self.command, resource.words.as_ref(), CommandPrefix::fit);
        if fit == Fit::No {
            return Fit::No;
        }
        let fit = fit.min(list(&self.host, resource.host.as_ref(), HostGlob::fit));
        if fit == Fit::No {
            return Fit::No;
        }
        let fit = fit.min(list(&self.path, path, Glob::fit));
        if fit == Fit::No {
            return Fit::No;
        }
        let fit = fit.min(list(&self.tool, subject.tool.as_ref(), |own, given| own.fit(given).into()));
        if fit == Fit::No {
            return Fit::No;
        }
        fit.min(list(&self.action, Some(&subject.kind), same))
            .min(list(&self.method, resource.method.as_ref(), |own, given| own.fit(given)))
            .min(list(&self.url_path, resource.url_path.as_ref(), UrlGlob::fit))
            .min(list(&self.effect, subject.effect.as_ref(), does))
            .min(list(&self.role, Some(&subject.role), same))
            .min(known(&self.trust, subject.trust.as_ref(), |own, given| own == given))
            .min(known(&self.tag, Some(subject.tags), |own, given| given.contains(own)))
            .min(known(&self.mode, subject.mode.as_ref(), |own, given| own == given))
            .min(known(&self.state, subject.state.as_ref(), |own, given| own == given))
            .min(network(self.network, subject.network))
            .min(list(&self.direction, subject.direction.as_ref(), same))
            .min(one(self.revealed, path.map(|_| resource.revealed), |own, given| own == given))
            .min(one(self.marks, path.map(|_| resource.marks), |own, given| own == given))
            .min(one(self.max_size, resource.size, |own, given| given <= own))
            .min(one(self.max_wall, subject.wall_ms, |own, given| given <= own))
            .min(one(self.max_memory, subject.memory_bytes, |own, given| given <= own))
    }
}

fn list<T, V>(own: &Option<Vec<T>>, given: Option<&V>, fit: impl Fn(&T, &V) -> Fit) -> Fit {
    match (own, given) {
        (None, _) => Fit::Yes,
        (Some(_), None) => Fit::No,
        (Some(own), Some(given)) => own.iter().map(|own| fit(own, given)).max().unwrap_or(Fit::No),
    }
}

/// The same for what every caller and session has, though it may not be known.
fn known<T, V>(own: &Option<Vec<T>>, given: Option<&V>, fits: impl Fn(&T, &V) -> bool) -> Fit {
    match (own, given) {
        (Some(own), None) if !own.is_empty() => Fit::Maybe,
        _ => list(own, given, |own, given| fits(own, given).into()),
    }
}

fn one<T>(own: Option<T>, given: Option<T>, fits: impl Fn(T, T) -> bool) -> Fit {
    match (own, given) {
        (None, _) => Fit::Yes,
        (Some(_), None) => Fit::No,
        (Some(own), Some(given)) => fits(own, given).into(),
    }
}

/// Whether something asks for the network may not be known.
fn network(own: Option<bool>, given: Option<bool>) -> Fit {
    match (own, given) {
        (Some(_), None) => Fit::Maybe,
        _ => one(own, given, |own, given| own == given),
    }
}

/// What nobody can tell may be any of them.
fn does(own: &ToolEffect, given: &ToolEffect) -> Fit {
    if *given == ToolEffect::Unclear { Fit::Maybe } else { same(own, given) }
}

fn same<T: PartialEq>(own: &T, given: &T) -> Fit {
    (own == given).into()
}

#[cfg(test)]
mod tests;
