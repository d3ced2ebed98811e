//! What a rule looks at: an action taken apart once, before any rule runs.

use crate::{
    Facts, Trust,
    command::{self, Words},
    host::Host,
    place::Located,
    programs::Programs,
    url::UrlPath,
};
use alloc::{collections::BTreeSet, string::String, vec::Vec};
use bailey_protocol::{Action, HttpRequest, Kind, Line, MergeKind, Relay, Role, ToolEffect, WsPath};

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
    pub(crate) host: Option<Host>,
    pub(crate) method: Option<&'a str>,
    pub(crate) url_path: Option<UrlPath>,
    pub(crate) tool: Option<&'a str>,
    pub(crate) effect: Option<ToolEffect>,
    pub(crate) wall_ms: Option<u64>,
    pub(crate) memory_bytes: Option<u64>,
}

/// One thing that an action touches. The action is as restricted as the most restricted of them.
#[derive(Debug)]
pub(crate) struct Resource<'a> {
    pub(crate) path: Option<Located<'a>>,
    pub(crate) words: Option<Words>,
    /// Bytes that it would write, send or be given.
    pub(crate) size: Option<u64>,
    pub(crate) revealed: bool,
    /// Whether a redaction mark comes to stand in it where a secret stood.
    pub(crate) marks: bool,
}

impl<'a> Subject<'a> {
    pub(crate) fn new(facts: &Facts<'a>) -> Self {
        let effect = facts.effect.effect();
        let mut subject = Self {
            kind: effect.action.kind(),
            role: effect.role,
            trust: facts.caller.trust,
            tags: &facts.caller.tags,
            mode: facts.mode,
            state: facts.state,
            network: Some(false),
            direction: None,
            host: None,
            method: None,
            url_path: None,
            tool: None,
            effect: None,
            wall_ms: None,
            memory_bytes: None,
        };
        match &effect.action {
            Action::Exec(command) => {
                subject.network = Some(command.network);
                subject.wall_ms = Some(command.limits.wall_ms);
                subject.memory_bytes = Some(command.limits.memory_bytes);
            }
            Action::Http(HttpRequest { method, url, .. })
            | Action::Fetch { request: HttpRequest { method, url, .. }, .. }
            | Action::Model { request: HttpRequest { method, url, .. }, .. }
            | Action::Relay(Relay { method, url, .. }) => {
                subject.network = Some(true);
                subject.host = Host::of(url);
                subject.method = Some(method);
                subject.url_path = Some(UrlPath::of(url));
            }
            // Who opens a line may send anything over it.
            Action::Line(Line { url, .. }) => {
                subject.network = Some(true);
                subject.host = Host::of(url);
                subject.method = Some("POST");
            }
            Action::Merge(merge) => subject.direction = Some(merge.direction),
            Action::Tool(tool) => {
                subject.network = None;
                (subject.tool, subject.effect) = (Some(tool.name.as_str()), tool.effect);
            }
            Action::Read { .. }
            | Action::Stat { .. }
            | Action::List { .. }
            | Action::Search { .. }
            | Action::Change { .. }
            | Action::Amend(_)
            | Action::Adapt(_)
            | Action::Diff { .. } => {}
        }
        subject
    }
}

impl<'a> Resource<'a> {
    /// Everything that the action touches, at least one.
    pub(crate) fn all(facts: &Facts<'a>, known: Programs) -> Vec<Self> {
        let at = |path: &'a WsPath, tree: bool, size: Option<usize>| Self {
            path: Some(Located::new(&path.0, tree, facts.places)),
            words: None,
            size: size.map(bytes),
            revealed: facts.revealed.iter().any(|revealed| path.is_within(&revealed.0)),
            marks: false,
        };
        let nowhere = |size| Self { path: None, words: None, size, revealed: false, marks: false };
        match &facts.effect.effect().action {
            Action::Read { path } | Action::Stat { path } | Action::List { path } => {
                [at(path, false, None)].into()
            }
            Action::Search { root, .. } | Action::Diff { root, .. } => [at(root, true, None)].into(),
            Action::Change { files } => files
                .iter()
                .map(|file| at(&file.path, false, Some(file.new.as_ref().map_or(0, |new| new.0.len()))))
                .collect(),
            // References alone are about the project as a whole.
            Action::Merge(merge) if merge.files.is_empty() && !merge.tips.is_empty() => {
                let path = Some(Located::new(&facts.places.workspace, false, facts.places));
                [Self { path, ..nowhere(None) }].into()
            }
            Action::Merge(merge) if merge.files.is_empty() => [nowhere(None)].into(),
            Action::Merge(merge) => merge
                .files
                .iter()
                .map(|file| Self { marks: !file.marks.is_empty(), ..at(&file.path, false, None) })
                .collect(),
            Action::Exec(command) => command::programs(command, known)
                .into_iter()
                .map(|words| Self { words: Some(words), ..at(&command.cwd, false, None) })
                .collect(),
            Action::Http(request) | Action::Fetch { request, .. } | Action::Model { request, .. } => {
                [nowhere(Some(bytes(request.body.0.len())))].into()
            }
            // A body that does not say how long it is may be of any length.
            Action::Relay(relay) => [nowhere(Some(relay.length.unwrap_or(u64::MAX)))].into(),
            Action::Line(_) => [nowhere(Some(u64::MAX))].into(),
            Action::Amend(amendment) => [at(&amendment.path, false, None)].into(),
            Action::Adapt(adaptation) => {
                let size = adaptation.new.as_ref().map_or(0, |new| new.0.len());
                [at(&adaptation.path, false, Some(size))].into()
            }
            Action::Tool(tool) => [nowhere(Some(bytes(tool.args.len())))].into(),
        }
    }
}

fn bytes(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
