//! `fs.patch`: several edits in several files, all or nothing.

use crate::{
    aliases, arguments,
    change::{self, NewContent},
    patch::{self, Change, FilePatch, PatchError},
    typed::{PerformedCall, Typed},
};
use bailey_kernel::{Claims, Conclusion, Output, Plan};
use bailey_protocol::{Action, FileKind, Kind, Report, StatReport, Status, ToolSpec, WsPath};
use serde::Deserialize;
use serde_json::json;

/// Applies a patch.
pub(crate) struct FsPatch;

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(crate) struct Args {
    patch: String,
}

impl Typed for FsPatch {
    type Args = Args;
    const KINDS: Option<&'static [Kind]> = Some(&[Kind::Stat, Kind::Read, Kind::Change]);

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "fs.patch".into(),
            aliases: aliases::names("fs.patch"),
            summary: "Apply a patch to one or more files, all or nothing.".into(),
            description:
                "A unified diff (create: `--- /dev/null`, delete: `+++ /dev/null`) or the `*** Begin Patch` \
                          form. Context must match exactly; line numbers may be off where it is unique."
                    .into(),
            schema: json!({
                "type": "object",
                "properties": {"patch": {"type": "string"}},
                "required": ["patch"]
            }),
        }
    }

    fn claims(&self, args: &Args) -> Claims {
        let Ok(files) = patch::parse(&args.patch) else {
            return Claims { everything: true, ..Claims::default() };
        };
        let names = files.into_iter().flat_map(|file| [Some(file.path), file.to]).flatten();
        Claims { writes: names.map(WsPath).collect(), ..Claims::default() }
    }

    fn plan(&self, args: &Args, seen: &[Output]) -> Result<Plan, String> {
        let files = patch::parse(&args.patch).map_err(|error| error.to_string())?;
        let looks = files.iter().map(looks).collect::<Result<Vec<_>, _>>()?;
        let wanted: usize = looks.iter().map(Vec::len).sum();
        if seen.len() < wanted {
            return Ok(Plan::Need(looks.into_iter().flatten().collect()));
        }
        let mut rest = seen;
        let mut changes = Vec::new();
        for (file, looks) in files.iter().zip(looks) {
            let (of_file, after) = rest.split_at(looks.len());
            changes.extend(contents(file, of_file)?);
            rest = after;
        }
        change::plan(changes)
    }

    fn conclude(&self, done: &PerformedCall<'_, Args>) -> Conclusion {
        change::conclude(done)
    }
}

/// What must be known of a file before it is changed: the content of an old one, the absence of a new one; of
/// a name that is to go, whether it is a file's.
fn looks(file: &FilePatch) -> Result<Vec<Action>, String> {
    let path = arguments::path("patch", &file.path)?;
    let stat = Action::Stat { path: path.clone() };
    let mut looks = match file.change {
        Change::Create(_) => vec![stat],
        _ if goes(file) => vec![stat, Action::Read { path }],
        Change::Delete(_) | Change::Update(_) => vec![Action::Read { path }],
    };
    if let Some(to) = &file.to {
        looks.push(Action::Stat { path: arguments::path("patch", to)? });
    }
    Ok(looks)
}

/// Whether nothing is to bear the file's name afterwards.
fn goes(file: &FilePatch) -> bool {
    matches!(file.change, Change::Delete(_)) || file.to.is_some()
}

/// A link's name leads to another file, whose content a change is about: that file would go, and the link
/// stay.
fn no_link<'a>(path: &WsPath, seen: &'a [Output]) -> Result<&'a [Output], String> {
    let Some((stat, rest)) = seen.split_first() else { return Ok(seen) };
    match stat.report() {
        Report::Stat(StatReport { found: Some(FileKind::Symlink), .. }) => {
            Err(format!("cannot delete or move `{path}`: it is a symbolic link; use command.run"))
        }
        _ => Ok(rest),
    }
}

/// What the file, and the name it moves to, shall hold.
fn contents<'a>(file: &FilePatch, seen: &'a [Output]) -> Result<Vec<NewContent<'a>>, String> {
    let path = WsPath(file.path.clone());
    let is_new = matches!(file.change, Change::Create(_));
    let seen = if goes(file) && !is_new { no_link(&path, seen)? } else { seen };
    let Some((first, target)) = seen.split_first() else { return Ok(Vec::new()) };
    if let Change::Create(content) = &file.change {
        vacant(&path, first)?;
        let new = Some(content.clone().into_bytes());
        return Ok(vec![NewContent { path, base: None, source: None, new }]);
    }
    let base = change::base(&path, first)?;
    let new = match &file.change {
        Change::Update(hunks) if hunks.is_empty() => Some(base.content.0.clone()),
        Change::Update(hunks) => Some(patched(&path, change::text(&path, base)?, hunks)?.into_bytes()),
        Change::Delete(hunks) => {
            let rest = if hunks.is_empty() {
                String::new()
            } else {
                patched(&path, change::text(&path, base)?, hunks)?
            };
            if !rest.is_empty() {
                return Err(PatchError::Remains(file.path.clone()).to_string());
            }
            None
        }
        Change::Create(_) => None,
    };
    let (Some(to), Some(target)) = (&file.to, target.first()) else {
        return Ok(vec![NewContent { path, base: Some(base), source: None, new }]);
    };
    let to = WsPath(to.clone());
    vacant(&to, target)?;
    if base.mode & 0o111 != 0 {
        return Err(format!(
            "cannot move `{path}`: it is executable, and what is made here is not; use command.run"
        ));
    }
    let source = Some(base.content.0.as_slice());
    Ok(vec![
        NewContent { path, base: Some(base), source: None, new: None },
        NewContent { path: to, base: None, source, new },
    ])
}

fn patched(path: &WsPath, text: &str, hunks: &[patch::Hunk]) -> Result<String, String> {
    patch::apply(&path.0, text, hunks).map_err(|error| error.to_string())
}

fn vacant(path: &WsPath, stat: &Output) -> Result<(), String> {
    match (&stat.outcome().status, stat.report()) {
        (Status::Failed { reason }, _) => Err(format!("cannot create `{path}`: {reason}")),
        (_, Report::Stat(stat)) if stat.found.is_none() => Ok(()),
        _ => Err(format!("cannot create `{path}`: it exists; update it, or delete it first")),
    }
}
