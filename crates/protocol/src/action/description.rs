//! The description of an action, made in the action's own file. The gate judges it and the journal counts by
//! it, so these consumers match on no action.

use super::{Command, HeaderValue, MergeKind};
use crate::{Blob, Tip, ToolUse, WsPath};
use alloc::{borrow::Cow, string::String, vec::Vec};

/// The description of one action.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description<'a> {
    /// Everything that it touches, in order.
    pub resources: Vec<Resource<'a>>,
    /// The way that a merge goes.
    pub direction: Option<MergeKind>,
    /// Bytes of arguments, without paths: argv, environment, patterns, URL, headers.
    pub argument_bytes: usize,
    /// Bytes of content: new files, bodies, standard input.
    pub content_bytes: usize,
}

impl<'a> Description<'a> {
    /// Every path that it names, in order.
    #[must_use]
    pub fn paths(&self) -> Vec<&'a WsPath> {
        let path = |resource: &Resource<'a>| match resource {
            Resource::Path(used) => Some(used.path),
            Resource::Command(command) => Some(&command.cwd),
            Resource::Branch(_) | Resource::Host(_) | Resource::Tool(_) => None,
        };
        self.resources.iter().filter_map(path).collect()
    }
}

/// One thing that an action touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource<'a> {
    /// A file or a directory.
    Path(PathUse<'a>),
    /// A command, which runs in its working directory.
    Command(&'a Command),
    /// A reference of the project's repository.
    Branch(&'a Tip),
    /// A server.
    Host(Destination<'a>),
    /// A tool of another program.
    Tool(&'a ToolUse),
}

/// A path, and how an action uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathUse<'a> {
    /// The path.
    pub path: &'a WsPath,
    /// Whether it is meant with everything beneath it.
    pub is_tree: bool,
    /// The bytes that are written there, when that is known.
    pub bytes: Option<usize>,
    /// Whether a redaction mark comes to stand in it where a secret stood.
    pub has_marks: bool,
}

impl<'a> PathUse<'a> {
    /// A path by itself.
    pub(super) fn at(path: &'a WsPath) -> Self {
        Self { path, is_tree: false, bytes: None, has_marks: false }
    }
}

/// A server, and the request that it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination<'a> {
    /// The method in upper case.
    pub method: Cow<'a, str>,
    /// An absolute `http` or `https` URL.
    pub url: &'a str,
    /// Whether requests may go to any path of the server.
    pub any_path: bool,
    /// The bytes that are sent in the body; `None` when it may be any number.
    pub bytes: Option<u64>,
    /// Headers in order, names in lower case.
    pub headers: &'a [(String, HeaderValue)],
}

/// A value of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// A value as a whole.
    Word(&'a str),
    /// A text, of which the longest line tells most.
    Text(&'a str),
    /// The same, of content.
    Content(&'a Blob),
    /// A path.
    Path(&'a WsPath),
    /// A command: its line, its variables, its input.
    Command(&'a Command),
    /// A file of settings: the lines that are new in it.
    Settings {
        /// The content before.
        old: Option<&'a Blob>,
        /// The content after.
        new: Option<&'a Blob>,
    },
}

impl<'a> From<PathUse<'a>> for Resource<'a> {
    fn from(used: PathUse<'a>) -> Self {
        Self::Path(used)
    }
}

impl<'a> From<Destination<'a>> for Resource<'a> {
    fn from(to: Destination<'a>) -> Self {
        Self::Host(to)
    }
}
