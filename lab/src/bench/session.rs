//! Sessions of many calls: what a call costs between the model's reply and its result, how fifty turns add
//! up, and a large repository.

use super::{
    case::{Case, compare, table},
    lab::{Lab, finished, mib, peaks},
};
use anyhow::{Context as _, Result, ensure};
use bailey_testkit::{Reply, Request};
use serde_json::{Value, json};
use std::{
    fs,
    path::Path,
    process::Command,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Sessions of one call each, and calls of one kind in a session.
const COLD: usize = 10;
const WARM: usize = 30;
/// Model calls of the long session, its answer among them.
const TURNS: usize = 50;
const FILES: usize = 100_000;
const LARGE_ROUNDS: usize = 5;

pub(super) fn run(bailey: &Path) -> Result<()> {
    calls(bailey)?;
    long(bailey)?;
    large(bailey)
}

/// The calls that are measured: their names in the table, and what the model says.
fn kinds() -> [(&'static str, &'static str, Value); 4] {
    [
        ("read a file", "fs_read", json!({"path": "notes"})),
        ("search the project", "search_grep", json!({"pattern": "one"})),
        ("change a file", "fs_write", json!({"path": "new", "content": "two\n"})),
        ("run `true`", "command_run", json!({"command": "true"})),
    ]
}

/// A model that makes calls and notes how long each result takes to come.
#[derive(Default)]
struct Caller {
    /// Indices into [`kinds`], the next one last.
    script: Vec<usize>,
    asked: Option<(usize, Instant)>,
    took: Vec<(usize, Duration)>,
    /// The longest of the first requests, in bytes.
    first_request: usize,
}

impl Caller {
    fn answer(&mut self, request: &Request) -> Reply {
        match self.asked.take() {
            Some((kind, at)) => self.took.push((kind, at.elapsed())),
            None => self.first_request = self.first_request.max(request.body.len()),
        }
        let Some((kind, (_, tool, arguments))) =
            self.script.pop().and_then(|kind| Some((kind, kinds().into_iter().nth(kind)?)))
        else {
            return Reply::text("done");
        };
        let id = format!("c{}", self.took.len());
        let reply = Reply::calls([(id.as_str(), tool, arguments)]);
        self.asked = Some((kind, Instant::now()));
        reply
    }
}

fn scripted(bailey: &Path) -> Result<(Lab<'_>, Arc<Mutex<Caller>>)> {
    let caller = Arc::new(Mutex::new(Caller::default()));
    let of_server = caller.clone();
    let answer = move |request: &Request| lock(&of_server).answer(request);
    Ok((Lab::new(bailey, answer)?, caller))
}

fn lock(caller: &Mutex<Caller>) -> std::sync::MutexGuard<'_, Caller> {
    caller.lock().unwrap_or_else(PoisonError::into_inner)
}

fn calls(bailey: &Path) -> Result<()> {
    let (lab, caller) = scripted(bailey)?;
    let home = lab.home(0)?;
    let count = kinds().len();
    let mut sessions = vec![(0..count).cycle().take(count * WARM).collect::<Vec<_>>()];
    sessions.extend((0..COLD).flat_map(|_| (0..count).map(|kind| vec![kind])));
    let mut rows: Vec<(String, Vec<Duration>)> = Vec::new();
    for state in ["next call", "first call"] {
        rows.extend(kinds().iter().map(|(name, ..)| (format!("{name}, {state} of a session"), Vec::new())));
    }
    for (number, script) in sessions.into_iter().enumerate() {
        lock(&caller).script = script;
        finished(&mut lab.run(&home))?;
        // The first session's first calls of each kind are cold, too.
        let offset = if number == 0 { 0 } else { count };
        for (kind, took) in std::mem::take(&mut lock(&caller).took).into_iter().skip(count - offset) {
            rows.get_mut(kind + offset).into_iter().for_each(|(_, times)| times.push(took));
        }
    }
    table("from the model's reply to the result back at the model", rows);
    let bytes = lock(&caller).first_request;
    println!("a request beyond the conversation: {:.1} kB\n", bytes as f64 / 1e3);
    Ok(())
}

fn long(bailey: &Path) -> Result<()> {
    let (lab, caller) = scripted(bailey)?;
    let home = lab.home(0)?;
    lock(&caller).script = (0..kinds().len()).cycle().take(TURNS - 1).collect();
    let begin = Instant::now();
    let mut child = lab.run(&home).spawn().context("cannot run it")?;
    let (main, warden) = peaks(&mut child)?;
    ensure!(child.wait()?.success(), "the long session failed");
    println!("a session of {TURNS} model calls and {} tool calls", TURNS - 1);
    println!(
        "  {:.0} ms, main {:.1} MiB, warden {:.1} MiB\n",
        begin.elapsed().as_secs_f64() * 1e3,
        mib(main),
        mib(warden)
    );
    Ok(())
}

fn large(bailey: &Path) -> Result<()> {
    let begin = Arc::new(Mutex::new((Instant::now(), Vec::new())));
    let of_server = begin.clone();
    let lab = Lab::new(bailey, move |request| {
        if request.body.contains("tool_result") {
            return Reply::text("done");
        }
        let mut first = of_server.lock().unwrap_or_else(PoisonError::into_inner);
        let took = first.0.elapsed();
        first.1.push(took);
        Reply::calls([("c1", "command_run", json!({"command": "true"}))])
    })?;
    let project = lab.project();
    for number in 0..FILES {
        let folder = project.join(format!("folder-{:03}", number / 100));
        if number % 100 == 0 {
            fs::create_dir(&folder)?;
        }
        fs::write(folder.join(format!("file-{number}")), format!("line {number}\n"))?;
    }
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(&project).args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "-c",
            "gc.auto=0",
        ]);
        command.args(arguments).stdout(std::process::Stdio::null());
        command
    };
    for arguments in [&["init", "-q"][..], &["add", "-A"], &["commit", "-q", "-m", "files"]] {
        finished(&mut git(arguments))?;
    }
    let home = lab.home(0)?;
    let cases = vec![
        Case::new("git status", || finished(&mut git(&["status", "--short"]))),
        Case::new("bailey run, one command", || {
            begin.lock().unwrap_or_else(PoisonError::into_inner).0 = Instant::now();
            finished(&mut lab.run(&home))
        }),
    ];
    compare(&format!("a repository of {FILES} files"), LARGE_ROUNDS, 1, cases)?;
    let first = std::mem::take(&mut begin.lock().unwrap_or_else(PoisonError::into_inner).1);
    table("there, from start to the first request to the model", vec![("bailey run".into(), first)]);
    Ok(())
}
