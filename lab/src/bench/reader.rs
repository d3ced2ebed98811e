//! Reads and searches: by the reader of a session, behind all its walls, and by the same code in this
//! process, with none.

use super::{
    case::{Case, compare},
    walls::{Walls, session, yard},
};
use anyhow::{Result, bail};
use bailey_protocol::{Action, Isolation, WsPath};
use bailey_sandbox::worker::{self, Request, Response};
use std::{fs, path::Path};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 100;
/// Files of the project, a hundred in each folder, and the lines of each.
const FILES: usize = 1_000;
const LINES: usize = 100;

pub(super) fn run(bailey: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let root = fs::canonicalize(folder.path())?;
    let yard = yard(&root)?;
    for number in 0..FILES {
        let folder = yard.project.join(format!("folder-{}", number / 100));
        fs::create_dir_all(&folder)?;
        let lines: String = (0..LINES).map(|line| format!("line {line} of the file {number}\n")).collect();
        fs::write(folder.join(format!("file-{number}")), lines)?;
    }
    let path = |name: &str| WsPath(format!("{}/{name}", yard.project.display()));
    let (file, root_of) = (path("folder-5/file-500"), WsPath(yard.project.display().to_string()));
    let search = |pattern: Option<&str>, glob: Option<&str>| Action::Search {
        root: root_of.clone(),
        pattern: pattern.map(Into::into),
        glob: glob.map(Into::into),
    };
    let actions = [
        ("read a file", Action::Read { path: file }),
        ("find a line among 1,000 files", search(Some("line 7 of the file 500$"), None)),
        ("find a name among 1,000 files", search(None, Some("file-500"))),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let walls = Walls::new(bailey, &root, &yard)?;
    for (title, action) in actions {
        let cases = vec![
            Case::new("the same code, without walls", || inside(|request| Ok(worker::run(request)), &action)),
            Case::new("Bailey, next call of a session", || {
                inside(|request| asked(&walls, &runtime, request), &action)
            })
            .after(|| walls.expect(session(0))),
        ];
        compare(title, ROUNDS, 1, cases)?;
    }
    Ok(())
}

fn asked(walls: &Walls, runtime: &Runtime, request: Request) -> Result<Response> {
    let (isolation, cancel) = (Isolation::default(), CancellationToken::new());
    let answer = walls.native.work(session(0), request, &isolation, &cancel);
    Ok(runtime.block_on(answer)?.0)
}

/// What a call comes to: its names first, which are what is decided, and then the act itself.
fn inside(mut work: impl FnMut(Request) -> Result<Response>, action: &Action) -> Result<()> {
    let resolve = Request::Resolve { action: action.clone(), workspace: "/".into() };
    let Response::Resolved(action) = work(resolve)? else { bail!("its names lead nowhere") };
    match work(Request::Perform { action })? {
        Response::Report(_) => Ok(()),
        other => bail!("no report: {other:?}"),
    }
}
