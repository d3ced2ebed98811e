//! The code that runs *inside the walls* instead of an executed program.
//!
//! The daemon opens no file of a workspace. Reads, searches, writes and merges are asked for as a
//! [`Request`]; the warden forks a child, gives it its namespaces, its root, Landlock and the strict
//! system-call profile, and the child calls [`run`]. So this module is plain synchronous code on file
//! descriptors: no threads, no processes, no environment, no network, bounded memory and time.
//!
//! Every path is opened by `openat2` with `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS` (`beneath`), so a path
//! that became a symlink after it was judged is refused by the kernel, whatever races. Read `state` next:
//! its digest is what merges compare. `layer` knows what an overlay's upper directory means, and `merge`
//! is the only code that writes to a project.

mod attributes;
mod bases;
mod beneath;
mod blob;
mod change;
mod charset;
mod copy;
mod diff;
mod error;
mod ignores;
mod index;
mod layer;
mod links;
mod merge;
mod named;
mod outside;
mod owners;
mod page;
mod read;
mod references;
mod repository;
mod resolve;
mod search;
mod settle;
mod state;

use bailey_protocol::{
    Action, Blob, Command, DiffReport, Digest, Merge, Outside, Report, Touched, WsPath, number::decimal,
};
pub use bases::Keep;
use beneath::Root;
pub use diff::may_hold_changes;
use error::Error;
pub(crate) use links::leads_out;
pub(crate) use merge::remove_all;
pub(crate) use named::is_what_was_named;
pub(crate) use owners::of_others;
pub use references::{References, may_hold_commits};
pub(crate) use references::{is_object, is_plain};
pub(crate) use repository::{MARKS, in_vcs, is_of_repository, is_shaped};
use serde::{Deserialize, Serialize};
pub(crate) use settle::settle;
use std::io::{self, BufRead as _};
use std::path::Path;

/// The longest request that a waiting worker reads.
const REQUEST_BYTES_MAX: u64 = 256 << 20;

/// What the worker is asked to do. It crosses a pipe as JSON, from the warden to its own child.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "request")]
pub enum Request {
    /// Make every path of an action absolute and canonical.
    Resolve {
        /// The action as it was named.
        action: Action,
        /// The absolute path that relative names start from.
        workspace: String,
    },
    /// Tell the digest of what a command names.
    Named {
        /// The command; its directory is canonical.
        command: Command,
        /// The directories in which its program is looked for, as in `PATH`.
        path: String,
    },
    /// Do a Read, Stat, List, Search or Change whose paths are canonical.
    Perform {
        /// The action.
        action: Action,
    },
    /// Tell what the layer holds that is not known yet.
    Scan {
        /// The overlay's upper directory.
        upper: String,
        /// The project, the overlay's lower directory.
        project: String,
        /// What was told before.
        known: Vec<WsPath>,
        /// Unix time in nanoseconds; a project's file changed since then makes its base unsure.
        #[serde(with = "decimal")]
        since: u64,
        /// Whether to tell what the host changed in the project since then.
        outside: bool,
        /// Where to keep what the project holds of texts that the layer newly changes; none: nowhere.
        #[serde(default)]
        bases: Option<Keep>,
    },
    /// Tell everything that the session changed against the project.
    Diff {
        /// The overlay's upper directory.
        upper: String,
        /// The project.
        project: String,
        /// Whether each file of the layer is a link to one in a copy of the project, as `Settle` lays it out.
        is_copy: bool,
        /// Paths that are compared although git ignores them.
        #[serde(default)]
        also: Vec<WsPath>,
        /// Where base texts are kept.
        #[serde(default)]
        bases: Option<Keep>,
    },
    /// Tell what the project's repository names: as the session sees it or, with `upper`, as it is, where the
    /// session has one of its own.
    References {
        /// The project.
        project: String,
        /// The overlay's upper directory.
        upper: Option<String>,
    },
    /// Bring a session's copy of its project up to date, and lay out what differs in it.
    Settle {
        /// The project.
        project: String,
        /// The copy.
        copy: String,
        /// Where what differs is laid out, as an overlay's upper directory.
        upper: String,
        /// The record of what was copied.
        record: String,
        /// Is the session's, whatever the project came to hold.
        own: Vec<WsPath>,
        /// Whether the copy is thrown away first.
        anew: bool,
        /// Names of files that are left out; the warden's word.
        #[serde(default)]
        masks: Vec<String>,
    },
    /// Make text of what a server of the web sent.
    Page {
        /// What it sent.
        body: Blob,
        /// The set of characters that it named.
        charset: Option<String>,
        /// Whether it is HTML.
        html: bool,
    },
    /// Apply, undo or discard.
    Merge {
        /// What moves which way.
        merge: Merge,
        /// The overlay's upper directory, mounted nowhere else at this time.
        upper: String,
        /// The project.
        project: String,
        /// The folder of this merge's backups, of its own for each apply; made when absent.
        backup: String,
        /// What its references need, made ready.
        #[serde(default)]
        carried: Option<Carried>,
        /// Where base texts are kept.
        #[serde(default)]
        bases: Option<Keep>,
    },
}

/// What was made ready for the references of a merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// The folder with the pack, the index and the paths that differ.
    pub folder: String,
    /// For each reference of the merge, in its order.
    pub fates: Vec<Fate>,
}

/// How a reference is to be moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "fate", content = "why")]
pub enum Fate {
    /// As it is named.
    Ready,
    /// Its commits are good, and this is why it cannot move where it is named.
    Aside(String),
    /// Nothing of it leaves the session, and why.
    Refused(String),
}

impl Request {
    /// Whether no file's content is seen for it, so that its worker may go on to another request.
    pub(crate) fn is_about_names(&self) -> bool {
        matches!(self, Self::Resolve { .. })
    }

    /// Whether it only looks.
    pub(crate) fn is_read(&self) -> bool {
        match self {
            Self::Perform { action } => action.is_read(),
            Self::Resolve { .. } | Self::Named { .. } | Self::Diff { .. } | Self::References { .. } => true,
            _ => false,
        }
    }

    /// Whether a worker that waits may be asked for it: one of the same view, which writes nowhere but where
    /// that view can.
    pub(crate) fn is_for_waiting(&self) -> bool {
        matches!(self, Self::Resolve { .. } | Self::Perform { .. } | Self::Page { .. })
    }
}

/// The worker's answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reply", content = "value")]
pub enum Response {
    /// To `Resolve`.
    Resolved(Action),
    /// To `Named`.
    Named(Digest),
    /// To `Perform` and `Merge`.
    Report(Report),
    /// To `Scan`.
    Scanned {
        /// What is new in the layer.
        touched: Vec<Touched>,
        /// Whether it holds something that can never leave it.
        is_holding: bool,
        /// What the host changed in the project, where that was asked for.
        outside: Outside,
    },
    /// To `Diff`.
    Diff(DiffReport),
    /// To `References`; none where the session has no repository of its own.
    References(Option<References>),
    /// To `Page`.
    Page {
        /// What can be read of it; none where it is no text, or in a set of characters that nobody knows.
        text: Option<String>,
        /// Whether there was more.
        cut: bool,
    },
    /// To `Settle`.
    Settled,
    /// It was not done.
    Refused {
        /// Why, for people and the model.
        reason: String,
    },
}

/// Files that look like secrets. A search shows no line of them, wherever they lie: whoever reads one names
/// it, and is asked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unseen<'a> {
    /// Their names, in a workspace or anywhere.
    pub(crate) masks: Option<&'a crate::mask::Masks>,
    /// The absolute paths of those that a human revealed, and of directories of such.
    pub(crate) revealed: &'a [WsPath],
    /// The workspace, an absolute path.
    pub(crate) workspace: &'a str,
}

impl Unseen<'_> {
    /// Whether a file at this absolute path is one of them.
    fn contains(&self, path: &str) -> bool {
        let Some(masks) = self.masks else { return false };
        let path = Path::new(path);
        let below = path.strip_prefix(self.workspace).or_else(|_| path.strip_prefix("/")).unwrap_or(path);
        let is_revealed = self.revealed.iter().any(|revealed| path.starts_with(&revealed.0));
        !is_revealed && masks.names(below)
    }
}

/// Does what was asked. Blocks for at most about ten seconds (searches) or as long as the disk needs.
#[must_use]
pub fn run(request: Request) -> Response {
    run_but(request, Unseen::default())
}

fn run_but(request: Request, unseen: Unseen<'_>) -> Response {
    let reply = match request {
        Request::Resolve { action, workspace } => {
            resolve::resolve(action, &workspace).map(Response::Resolved)
        }
        Request::Named { command, path } => named::named(&command, &path).map(Response::Named),
        Request::Settle { project, copy, upper, record, own, anew, masks } => {
            let places = copy::CopyPaths { project: &project, copy: &copy, upper: &upper, record: &record };
            copy::settle(&places, &masks, &own, anew).map(|()| Response::Settled)
        }
        Request::Page { body, charset, html } => Ok(page::read(&body.0, charset.as_deref(), html)),
        Request::Perform { action } => perform(action, unseen).map(Response::Report),
        Request::Scan { upper, project, known, since, outside, bases } => {
            let outside = outside.then_some(since);
            diff::scan(&upper, &project, &known, since, bases.as_ref())
                .and_then(|(touched, is_holding)| scanned(touched, is_holding, &project, outside))
        }
        Request::Diff { upper, project, is_copy, also, bases } => {
            diff::diff(&upper, &project, is_copy, &also, bases.as_ref()).map(Response::Diff)
        }
        Request::References { project, upper } => {
            references::of(&project, upper.as_deref()).map(Response::References)
        }
        Request::Merge { merge, upper, project, backup, carried, bases } => {
            let merged = merge::merge(&merge, &upper, &project, &backup, carried.as_ref());
            if let (Ok(Report::Merged { files, .. }), Some(bases)) = (&merged, &bases) {
                merge::rebase(&merge, files, &project, bases);
            }
            merged.map(Response::Report)
        }
    };
    reply.unwrap_or_else(|error| Response::Refused { reason: error.to_string() })
}

/// A worker's life: does what was asked, and as long as that was about names only, what is asked next.
/// Requests and replies are JSON, one a line.
///
/// # Errors
/// Of reading and writing, `InvalidData` for what no waiting worker may be asked.
pub(crate) fn serve(
    first: Request,
    unseen: Unseen<'_>,
    input: impl io::Read,
    mut output: impl io::Write,
) -> io::Result<()> {
    let mut input = io::BufReader::new(input);
    let mut next = Some(first);
    while let Some(request) = next {
        let may_stay = request.is_about_names();
        let mut line = serde_json::to_vec(&run_but(request, unseen))?;
        line.push(b'\n');
        output.write_all(&line)?;
        next = if may_stay { hear(&mut input)? } else { None };
    }
    Ok(())
}

/// The next request; none when no more come.
fn hear(input: impl io::BufRead) -> io::Result<Option<Request>> {
    let mut line = Vec::new();
    input.take(REQUEST_BYTES_MAX).read_until(b'\n', &mut line)?;
    // Whoever asked went away: what they had not ended is not asked for.
    if line.pop() != Some(b'\n') {
        return Ok(None);
    }
    let request: Request = serde_json::from_slice(&line)?;
    let unfit = || io::Error::new(io::ErrorKind::InvalidData, "this worker is for names and files");
    if request.is_for_waiting() { Ok(Some(request)) } else { Err(unfit()) }
}

/// Makes text of a page; for fuzzing.
#[cfg(feature = "fuzz")]
pub(crate) fn page_text(html: &[u8]) -> String {
    match page::read(html, None, true) {
        Response::Page { text, .. } => text.unwrap_or_default(),
        _ => String::new(),
    }
}

/// Reads git's index as a scan does; for fuzzing.
#[cfg(feature = "fuzz")]
pub(crate) fn read_index(bytes: &[u8]) {
    for hash in index::HASHES {
        let entries = index::entries(bytes, hash).unwrap_or_default();
        assert!(entries.iter().all(|entry| entry.at < bytes.len()), "an entry outside of the index");
    }
}

/// The answer to a scan; `outside`: since when to tell what the host changed.
fn scanned(
    touched: Vec<Touched>,
    is_holding: bool,
    project: &str,
    outside: Option<u64>,
) -> Result<Response, Error> {
    let outside = outside.map(|since| outside::changed(project, since)).transpose()?.unwrap_or_default();
    Ok(Response::Scanned { touched, is_holding, outside })
}

fn perform(action: Action, unseen: Unseen<'_>) -> Result<Report, Error> {
    let root = Root::open("/")?;
    match action {
        Action::Read { path } => read::read(&root, &path).map(Report::File),
        Action::Stat { path } => read::stat(&root, &path).map(Report::Stat),
        Action::List { path } => read::list(&root, &path).map(Report::List),
        Action::Search { root: path, pattern, glob } => {
            search::search(&root, &path, pattern.as_deref(), glob.as_deref(), unseen).map(Report::Search)
        }
        Action::Change { files } => change::change(&root, &files).map(|files| Report::Changed { files }),
        other => Err(Error::Unfit { kind: other.kind().name() }),
    }
}

#[cfg(test)]
mod tests;
