//! What a rule looks at: an action taken apart once, before any rule runs.

use crate::{
    Facts, Trust,
    command::{self, Invocation},
    host::Host,
    place::Located,
    programs::Programs,
    url::UrlPath,
};
use alloc::{borrow::Cow, collections::BTreeSet, string::String, vec::Vec};
use bailey_protocol::{
    Kind, MergeKind, Role, ToolEffect, WsPath,
    action::{self, Description},
};

/// What is the same for all that an action touches.
#[derive(Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) kind: Kind,
    pub(crate) role: Role,
    pub(crate) trust: Option<Trust>,
    pub(crate) tags: &'a BTreeSet<String>,
    pub(crate) mode: Option<&'a str>,
    pub(crate) state: Option<&'a str>,
    /// None where nobody knows.
    pub(crate) network: Option<bool>,
    pub(crate) direction: Option<MergeKind>,
    pub(crate) tool: Option<&'a str>,
    pub(crate) effect: Option<ToolEffect>,
    pub(crate) wall_ms: Option<u64>,
    pub(crate) memory_bytes: Option<u64>,
}

/// One thing that an action touches. The action is as restricted as the most restricted of them.
#[derive(Debug)]
pub(crate) struct Resource<'a> {
    pub(crate) path: Option<Located<'a>>,
    pub(crate) words: Option<Invocation>,
    /// Each request that an action may make is one of them.
    pub(crate) host: Option<Host>,
    pub(crate) method: Option<Cow<'a, str>>,
    pub(crate) url_path: Option<UrlPath>,
    /// Bytes that it would write, send or be given.
    pub(crate) size: Option<u64>,
    pub(crate) revealed: bool,
    /// Whether a redaction mark comes to stand in it where a secret stood.
    pub(crate) marks: bool,
}

impl<'a> Subject<'a> {
    pub(crate) fn new(facts: &Facts<'a>, about: &Description<'a>) -> Self {
        let effect = facts.effect.effect();
        let mut subject = Self {
            kind: effect.action.kind(),
            role: effect.role,
            trust: facts.caller.trust,
            tags: &facts.caller.tags,
            mode: facts.mode,
            state: facts.state,
            network: Some(false),
            direction: about.direction,
            tool: None,
            effect: None,
            wall_ms: None,
            memory_bytes: None,
        };
        for resource in &about.resources {
            match resource {
                action::Resource::Command(command) => {
                    subject.network = Some(command.network);
                    subject.wall_ms = Some(command.limits.wall_ms);
                    subject.memory_bytes = Some(command.limits.memory_bytes);
                }
                action::Resource::Host(_) => subject.network = Some(true),
                action::Resource::Tool(tool) => {
                    subject.network = None;
                    (subject.tool, subject.effect) = (Some(tool.name.as_str()), tool.effect);
                }
                action::Resource::Path(_) | action::Resource::Branch(_) => {}
            }
        }
        subject
    }
}

impl<'a> Resource<'a> {
    /// Everything that the action touches, at least one.
    pub(crate) fn all(facts: &Facts<'a>, about: &Description<'a>, known: Programs) -> Vec<Self> {
        let nowhere = |size| Self {
            path: None,
            words: None,
            host: None,
            method: None,
            url_path: None,
            size,
            revealed: false,
            marks: false,
        };
        let at = |path: &'a WsPath, tree: bool, size: Option<usize>| Self {
            path: Some(Located::new(&path.0, tree, facts.places)),
            revealed: facts.revealed.iter().any(|revealed| path.is_within(&revealed.0)),
            ..nowhere(size.map(bytes))
        };
        let mut all = Vec::new();
        let mut has_branch = false;
        for resource in &about.resources {
            match resource {
                action::Resource::Path(used) => {
                    all.push(Self { marks: used.has_marks, ..at(used.path, used.is_tree, used.bytes) });
                }
                action::Resource::Command(command) => {
                    let programs = command::programs(command, known).into_iter();
                    all.extend(
                        programs.map(|words| Self { words: Some(words), ..at(&command.cwd, false, None) }),
                    );
                }
                action::Resource::Host(to) => all.push(Self {
                    host: Host::of(to.url),
                    method: Some(to.method.clone()),
                    url_path: (!to.any_path).then(|| UrlPath::of(to.url)),
                    ..nowhere(Some(to.bytes.unwrap_or(u64::MAX)))
                }),
                action::Resource::Tool(tool) => all.push(nowhere(Some(bytes(tool.args.len())))),
                action::Resource::Branch(_) => has_branch = true,
            }
        }
        match all.is_empty() {
            // References alone are about the project as a whole.
            true if has_branch => {
                let path = Some(Located::new(&facts.places.workspace, false, facts.places));
                [Self { path, ..nowhere(None) }].into()
            }
            // A merge without files is about no path.
            true if about.direction.is_some() => [nowhere(None)].into(),
            _ => all,
        }
    }
}

fn bytes(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
