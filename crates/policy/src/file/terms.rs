//! An action in a person's words, such as `read src/main.rs` or `exec cargo test`: of an example in a rule
//! file, or of a question about the rules.

use crate::{Described, classify, tool};
use bailey_protocol::{
    Action, Adaptation, Blob, Command, FileChange, HttpRequest, Limits, Merge, MergeFile, MergeKind, Role,
    ToolEffect, ToolUse, WsPath,
};
use std::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};

const ACTIONS: &str = "read, stat, list, search, diff or adapt with a path; change, apply, undo or discard with paths; exec with a \
                       command; http with, maybe, a method, and a URL; model with a model or URL; tool with a name and, maybe, \
                       its effect";

/// How the words are meant.
pub struct Terms<'a> {
    /// The path that a word names.
    pub path: &'a dyn Fn(&str) -> WsPath,
    /// The path of an action that takes one, when no word names it. `None`: it must be named.
    pub here: Option<WsPath>,
    /// The directory of commands.
    pub start: WsPath,
    /// The limits of commands.
    pub limits: Limits,
    /// Whether commands ask for the network.
    pub network: bool,
    /// The request to a model that a word names.
    pub model: &'a dyn Fn(&str) -> Result<Action, String>,
    /// The effect of a tool, when no word names it. `None`: it is told from the tool's name.
    pub effect: Option<ToolEffect>,
}

impl Terms<'_> {
    /// Reads the words of an action.
    ///
    /// # Errors
    /// The mistake in them.
    pub fn action(&self, words: &[String]) -> Result<Action, String> {
        let (kind, rest) =
            words.split_first().ok_or_else(|| format!("no action is named: write {ACTIONS}"))?;
        let paths: Vec<WsPath> = rest.iter().map(|word| (self.path)(word)).collect();
        let one = || match (paths.as_slice(), &self.here) {
            ([path], _) => Ok(path.clone()),
            ([], Some(here)) => Ok(here.clone()),
            _ => Err(format!("`{kind}` takes one path")),
        };
        let merge = |direction| {
            let file = |path: &WsPath| MergeFile::whole(path.clone(), None, None);
            Action::Merge(Merge::of_files(direction, None, paths.iter().map(file).collect()))
        };
        let new_file =
            |path: &WsPath| FileChange { path: path.clone(), base: None, new: Some(Blob(Vec::new())) };
        Ok(match (kind.as_str(), rest) {
            ("read", _) => Action::Read { path: one()? },
            ("stat", _) => Action::Stat { path: one()? },
            ("list", _) => Action::List { path: one()? },
            ("search", _) => Action::Search { root: one()?, pattern: None, glob: None },
            ("diff", _) => Action::Diff { root: one()?, also: Vec::new() },
            ("change", _) => Action::Change { files: paths.iter().map(new_file).collect() },
            ("adapt", _) => {
                Action::Adapt(Adaptation { path: one()?, old: None, new: Some(Blob(Vec::new())) })
            }
            ("apply", _) => merge(MergeKind::Apply),
            ("undo", _) => merge(MergeKind::Undo),
            ("discard", _) => merge(MergeKind::Discard),
            ("exec", []) => return Err("`exec` needs a command".to_string()),
            ("exec", argv) => Action::Exec(Command {
                argv: argv.to_vec(),
                cwd: self.start.clone(),
                env: BTreeMap::new(),
                stdin: None,
                network: self.network,
                background: false,
                limits: self.limits.clone(),
            }),
            ("http", [url]) => Action::Http(request("GET", url)),
            ("http", [method, url]) => Action::Http(request(method, url)),
            ("http", _) => return Err("`http` takes one URL".to_string()),
            ("model", [model]) => (self.model)(model)?,
            ("model", _) => return Err("`model` takes one model or URL".to_string()),
            ("tool", [name]) => self.tool(name, self.effect)?,
            ("tool", [name, effect]) => self.tool(name, Some(tool::tool_effect(effect)?))?,
            ("tool", _) => return Err("`tool` takes a name and, maybe, its effect".to_string()),
            (other, _) => return Err(format!("unknown action `{other}`: write {ACTIONS}")),
        })
    }

    fn tool(&self, name: &str, effect: Option<ToolEffect>) -> Result<Action, String> {
        let name = tool::named(name)?;
        let effect = effect.unwrap_or_else(|| classify(&Described { name, ..Described::default() }));
        Ok(Action::Tool(ToolUse::judged(name.to_string(), Some(effect), "{}".to_string())))
    }
}

/// The role that asks for such an action in most cases.
#[must_use]
pub fn usual_role(action: &Action) -> Role {
    match action {
        Action::Diff { .. } | Action::Merge(_) => Role::Owner,
        Action::Tool(_) => Role::Plugin,
        _ => Role::Agent,
    }
}

/// A request without headers and body.
#[must_use]
pub fn request(method: &str, url: &str) -> HttpRequest {
    HttpRequest { method: method.into(), url: url.into(), headers: Vec::new(), body: Blob(Vec::new()) }
}
