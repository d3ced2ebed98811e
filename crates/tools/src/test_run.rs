//! `test.run`: the project's tests, by what lies in the workspace's root.

use crate::{
    aliases,
    config::ToolConfig,
    exec,
    typed::{PerformedCall, Typed},
};
use bailey_kernel::{Claims, Conclusion, Output, Plan};
use bailey_protocol::{Action, Command, FileKind, Kind, Report, ToolSpec, WsPath};
use serde::Deserialize;
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc};

/// A file in the root, the command that it stands for, and what precedes a filter; none: no filter is taken.
type Runner = (&'static str, &'static [&'static str], Option<&'static [&'static str]>);

/// The first file that is there decides.
const RUNNERS: [Runner; 7] = [
    ("Cargo.toml", &["cargo", "test"], Some(&[])),
    ("go.mod", &["go", "test", "./..."], Some(&["-run"])),
    ("package.json", &["npm", "test"], Some(&["--"])),
    ("pyproject.toml", &["python3", "-m", "pytest"], Some(&["-k"])),
    ("setup.py", &["python3", "-m", "pytest"], Some(&["-k"])),
    ("pytest.ini", &["python3", "-m", "pytest"], Some(&["-k"])),
    ("Makefile", &["make", "test"], None),
];

/// What runs the tests of a root without any of these files, where Python's own naming finds some.
const PYTHON: Runner = ("test_*.py", &["python3", "-m", "unittest"], Some(&["-k"]));

/// Runs tests.
pub(crate) struct TestRun(pub(crate) Arc<ToolConfig>);

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(crate) struct Args {
    filter: Option<String>,
    timeout_s: Option<u64>,
}

impl Typed for TestRun {
    type Args = Args;
    const KINDS: Option<&'static [Kind]> = Some(&[Kind::Stat, Kind::List, Kind::Exec]);

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "test.run".into(),
            aliases: aliases::names("test.run"),
            summary: "Run the project's tests.".into(),
            description:
                "Picks cargo, go, npm, pytest, make, or Python's unittest for test_*.py, by the files in the \
                          workspace's root. For anything else use command.run."
                    .into(),
            schema: json!({
                "type": "object",
                "properties": {
                    "filter": {"type": "string", "minLength": 1, "description": "Only tests of this name, in the runner's syntax."},
                    "timeout_s": {"type": "integer", "minimum": 1}
                },
                "required": []
            }),
        }
    }

    fn claims(&self, _args: &Args) -> Claims {
        Claims { everything: true, ..Claims::default() }
    }

    fn plan(&self, args: &Args, seen: &[Output]) -> Result<Plan, String> {
        let limits = self.0.limits(args.timeout_s)?;
        // The nearest directory that has one: a package of a monorepo before the whole.
        let runners = || self.0.upwards().flat_map(|at| RUNNERS.iter().map(move |runner| (at, runner)));
        let count = runners().count();
        if seen.len() < count {
            let stat =
                |(at, (file, ..)): (&str, &Runner)| Action::Stat { path: WsPath(format!("{at}/{file}")) };
            return Ok(Plan::Need(runners().map(stat).collect()));
        }
        let found = runners().zip(seen).find(|(_, output)| is_file(output)).map(|(runner, _)| runner);
        let root = || self.0.upwards().next().unwrap_or_default();
        let python = match seen.get(count) {
            None if found.is_none() => {
                return Ok(Plan::Need(vec![Action::List { path: WsPath(root().into()) }]));
            }
            listed => listed.filter(|listed| has_python_tests(listed)).map(|_| (root(), &PYTHON)),
        };
        let Some((at, (file, command, filter))) = found.or(python) else {
            let names: Vec<&str> = RUNNERS.iter().map(|(file, ..)| *file).collect();
            return Err(format!(
                "no tests are known here: the workspace's root has none of {}, test_*.py; use command.run",
                names.join(", ")
            ));
        };
        exec::plan(Command {
            argv: argv(file, command, *filter, args.filter.as_deref())?,
            cwd: WsPath(at.into()),
            env: BTreeMap::new(),
            stdin: None,
            network: false,
            background: false,
            limits,
        })
    }

    fn conclude(&self, done: &PerformedCall<'_, Args>) -> Conclusion {
        exec::conclude(done.action, done.outcome, self.0.max_wall_ms)
    }
}

fn is_file(output: &Output) -> bool {
    matches!(output.report(), Report::Stat(stat) if matches!(stat.found, Some(FileKind::File | FileKind::Symlink)))
}

/// Whether Python's unittest finds tests by their names.
fn has_python_tests(listed: &Output) -> bool {
    let Report::List(list) = listed.report() else { return false };
    let is_test = |name: &str| name.starts_with("test_") && name.ends_with(".py");
    list.entries.iter().any(|entry| entry.kind == FileKind::File && is_test(&entry.name))
}

fn argv(
    file: &str,
    command: &[&str],
    before: Option<&[&str]>,
    filter: Option<&str>,
) -> Result<Vec<String>, String> {
    let mut argv: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
    let Some(filter) = filter.filter(|filter| !filter.is_empty()) else { return Ok(argv) };
    if filter.starts_with('-') {
        return Err("`filter` starts with `-` and would be taken for an option; use command.run".into());
    }
    let Some(before) = before else {
        return Err(format!("`{}` (from {file}) takes no `filter`; use command.run", command.join(" ")));
    };
    argv.extend(before.iter().map(|&word| word.to_owned()));
    argv.push(filter.into());
    Ok(argv)
}
