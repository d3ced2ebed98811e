//! `cargo xtask soak`: a daemon with many sessions at once for half an hour, while things break: its
//! sessions' processes, it itself, its model, its page, its disk. Afterwards nothing may be lost, nothing
//! done twice, and no memory kept.
//!
//! Read `session.rs` first (what one front end does), then `faults.rs` (what breaks).

#![expect(clippy::indexing_slicing, reason = "an index into JSON that is not there is null")]

mod faults;
mod session;

use crate::line::held_kib;
use anyhow::{Context as _, Result, bail, ensure};
use bailey_testkit::{Message, ModelServer, Reply, Request};
use serde_json::{Value, json};
use session::Tally;
use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use xtask::{cargo, check as must, target_dir};

/// How often is looked at the memory.
const LOOK: Duration = Duration::from_secs(30);
/// How long a task takes that is told as late.
const LATE: Duration = Duration::from_secs(60);
/// How much more a daemon may hold in the last third than in the one before, in parts of a hundred and in
/// KiB.
const GROWTH_PERCENT: u64 = 20;
const GROWTH_KIB: u64 = 2048;
/// How long turns may still take when nothing breaks any more.
const REST: Duration = Duration::from_secs(180);

/// What all of it shares.
struct Yard {
    folder: PathBuf,
    bailey: PathBuf,
    /// Turns that have ended.
    turns: AtomicU64,
    /// What each front end is about, since when, and what went wrong last.
    about: Mutex<BTreeMap<usize, (Instant, String)>>,
    /// The model answers nothing but errors until then, in seconds since the beginning.
    outage_until: AtomicU64,
    begun: Instant,
    /// No task begins any more, and nothing breaks any more.
    is_over: AtomicBool,
}

impl Yard {
    fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    fn project(&self, number: usize) -> PathBuf {
        self.folder.join(format!("project-{number}"))
    }

    fn bailey(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.bailey);
        command.arg("--home").arg(self.home()).args(words).current_dir("/").stdin(Stdio::null());
        for key in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "BAILEY_HOME"] {
            command.env_remove(key);
        }
        command
    }

    fn lines(&self, words: &[&str]) -> Result<Vec<Value>> {
        let ran = self.bailey(words).output()?;
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        text.lines().map(|line| serde_json::from_str(line).context(line.to_owned())).collect()
    }

    fn start(&self) -> Result<()> {
        must(self.bailey(&["start"]).stderr(Stdio::null()))
    }

    /// Notes what a front end is about; one that begins something else is so since now.
    fn is_about(&self, number: usize, what: String, is_new: bool) {
        let mut about = self.about.lock().unwrap_or_else(PoisonError::into_inner);
        let since = about.get(&number).filter(|_| !is_new).map_or_else(Instant::now, |(since, _)| *since);
        about.insert(number, (since, what));
    }

    /// Those that are about the same for so long.
    fn late(&self, time: Duration) -> Vec<String> {
        let about = self.about.lock().unwrap_or_else(PoisonError::into_inner);
        let late = about.iter().filter(|(_, (since, _))| since.elapsed() > time);
        late.map(|(number, (since, what))| format!("{number}: for {} s {what}", since.elapsed().as_secs()))
            .collect()
    }

    fn seconds(&self) -> u64 {
        self.begun.elapsed().as_secs()
    }

    /// What the model says: a command that leaves a mark in the workspace, and then that it is done.
    fn reply(&self, request: &Request) -> Reply {
        if self.seconds() < self.outage_until.load(Ordering::Relaxed) {
            return Reply::error(529, "overloaded_error", "down");
        }
        let body = &request.body;
        let Some((task, is_done)) = task_of(body) else { return Reply::text("nothing was asked") };
        if is_done {
            return Reply::text(&format!("done {task}"));
        }
        // A dice that the request itself is: the same falls the same way again, with another count of calls
        // before.
        let dice =
            body.bytes().fold(self.seconds() / 5, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
                % 100;
        let call = || {
            let command = format!("echo {task} >> log.txt");
            Reply::calls([("c", "command_run", json!({ "command": command }))])
        };
        match dice {
            0..8 => Reply::error(500, "api_error", "injected"),
            8..12 => Reply::Gone,
            12..16 => match call() {
                Reply::Message(message) => Reply::Slow(message, Duration::from_millis(200)),
                other => other,
            },
            16..19 => Reply::Cut(Message::text("I begin, and")),
            _ => call(),
        }
    }
}

/// The task of the turn that runs, and whether its command has a result.
fn task_of(body: &str) -> Option<(String, bool)> {
    let body: Value = serde_json::from_str(body).ok()?;
    let messages = body["messages"].as_array()?;
    let parts = messages.iter().filter(|message| message["role"] == "user").flat_map(|message| {
        let whole = message["content"].as_str().map(|text| json!({ "type": "text", "text": text }));
        whole
            .into_iter()
            .chain(message["content"].as_array().into_iter().flatten().cloned())
            .collect::<Vec<_>>()
    });
    parts.fold(None, |found, part| match part["text"].as_str().and_then(|text| text.strip_prefix("task ")) {
        Some(task) => Some((task.to_owned(), false)),
        None => found.map(|(task, is_done)| (task, is_done || part["type"] == "tool_result")),
    })
}

/// Runs it.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let (mut minutes, mut sessions, mut bailey) = (30_u64, 50_usize, None);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let mut value = || options.next().with_context(|| format!("`{option}` needs a value"));
        match *option {
            "--minutes" => minutes = value()?.parse()?,
            "--sessions" => sessions = value()?.parse()?,
            "--program" => bailey = Some(PathBuf::from(value()?)),
            other => bail!("`soak` has no option `{other}`"),
        }
    }
    let bailey = match bailey {
        Some(bailey) => fs::canonicalize(bailey)?,
        None => {
            must(&mut cargo(&["build", "--release", "--locked", "--package", "bailey"]))?;
            target_dir().join("release/bailey")
        }
    };
    let folder = TempDir::with_prefix("bailey-soak-")?;
    let disk = faults::Disk::mount(folder.path());
    let yard = Arc::new(Yard {
        folder: folder.path().to_owned(),
        bailey,
        turns: AtomicU64::new(0),
        about: Mutex::default(),
        outage_until: AtomicU64::new(0),
        begun: Instant::now(),
        is_over: AtomicBool::new(false),
    });
    let result = soak(&yard, &disk, Duration::from_secs(minutes * 60), sessions);
    yard.bailey(&["stop", "--patience", "5"]).stderr(Stdio::null()).status().ok();
    if result.is_err() {
        yard.late(Duration::ZERO).iter().for_each(|late| println!("  {late}"));
        println!("the daemon's last words:");
        let log = fs::read_to_string(yard.home().join("daemon/log")).unwrap_or_default();
        log.lines().rev().take(20).for_each(|line| println!("  {line}"));
    }
    if result.is_err() && std::env::var_os("BAILEY_SOAK_KEEP").is_some() {
        println!("left as it is: {}", folder.keep().display());
        return result;
    }
    disk.unmount();
    result
}

fn soak(yard: &Arc<Yard>, disk: &faults::Disk, time: Duration, sessions: usize) -> Result<()> {
    let of_model = yard.clone();
    let model = ModelServer::by(move |request| of_model.reply(request));
    fs::create_dir_all(yard.home())?;
    let config = format!(
        "model = \"test/model\"\n[providers.test]\nwire = \"anthropic\"\nbase_url = \"{}\"\n\
         [limits]\nsession_tokens = 100000000\n[page]\nlisten = \"127.0.0.1:0\"\n",
        model.base_url()
    );
    fs::write(yard.home().join("config.toml"), config)?;
    for number in 0..sessions {
        fs::create_dir_all(yard.project(number))?;
        fs::write(yard.project(number).join("a.txt"), "a\n")?;
    }
    yard.start()?;
    println!("{sessions} sessions for {} s; {disk}", time.as_secs());
    let fronts: Vec<_> = (0..sessions)
        .map(|number| {
            let yard = yard.clone();
            thread::spawn(move || session::run(&yard, number))
        })
        .collect();
    let of_faults = yard.clone();
    let disk_of_faults = disk.clone();
    let breaker = thread::spawn(move || faults::run(&of_faults, &disk_of_faults, time));
    let mut held = Vec::new();
    let mut looked = Instant::now();
    while yard.begun.elapsed() < time {
        thread::sleep(Duration::from_secs(1));
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            held.extend(look(yard));
        }
    }
    yard.is_over.store(true, Ordering::SeqCst);
    let broken = breaker.join().map_err(|_| anyhow::anyhow!("what breaks things broke"))?;
    let rest = Instant::now();
    while fronts.iter().any(|front| !front.is_finished()) && rest.elapsed() < REST {
        thread::sleep(Duration::from_millis(200));
    }
    let left = fronts.iter().filter(|front| !front.is_finished()).count();
    ensure!(left == 0, "{left} sessions did not come to the end of their task in {} s", REST.as_secs());
    let mut tallies = Vec::new();
    for front in fronts {
        tallies.push(front.join().map_err(|_| anyhow::anyhow!("a front end broke"))??);
    }
    must(yard.bailey(&["stop"]).stderr(Stdio::null()))?;
    judge(yard, &tallies)?;
    tell(yard, &tallies, &broken, time);
    flat(&held)
}

/// What is held at one moment, in KiB, after so many turns.
struct Held {
    daemon: u64,
    journal: u64,
    turns: u64,
}

/// Looks at it, unless the daemon is not there.
fn look(yard: &Yard) -> Option<Held> {
    let status = yard.lines(&["--json", "status"]).ok()?.pop()?;
    let daemon = held_kib(&status["pid"])?;
    let sessions = status["sessions"].as_array()?;
    let all: u64 = sessions.iter().filter_map(|session| held_kib(&session["pid"])).sum();
    let journal = fs::metadata(yard.home().join("journal.db")).map_or(0, |about| about.len() >> 10);
    let turns = yard.turns.load(Ordering::Relaxed);
    println!(
        "{:>5} s {turns:>6} turns, {} late  daemon {daemon:>6} KiB  {:>3} sessions {all:>8} KiB  journal {journal:>8} KiB",
        yard.seconds(),
        yard.late(LATE).len(),
        sessions.len(),
    );
    Some(Held { daemon, journal, turns })
}

/// That each task was accepted once, its command begun once at most, and its turn ended with an answer.
fn judge(yard: &Yard, tallies: &[Tally]) -> Result<()> {
    let verified = yard.lines(&["--json", "audit", "verify"])?;
    ensure!(verified.iter().any(|line| line["ok"] == true), "the journal does not verify: {verified:?}");
    for tally in tallies {
        let mut accepted: BTreeMap<String, usize> = BTreeMap::new();
        let mut begun: BTreeMap<String, usize> = BTreeMap::new();
        for line in yard.lines(&["--json", "sessions", "show", &tally.session])? {
            let entry = &line["entry"];
            match entry["type"].as_str() {
                Some("accepted") => *accepted.entry(line["payload"].to_string()).or_default() += 1,
                Some("intent") if entry["kind"] == "exec" => {
                    *begun.entry(entry["target"].to_string()).or_default() += 1;
                }
                _ => {}
            }
        }
        let session = &tally.session;
        ensure!(
            accepted.len() == tally.turns.len(),
            "session {session}: {} of {} tasks are there",
            accepted.len(),
            tally.turns.len()
        );
        let twice = accepted.iter().chain(&begun).find(|(_, count)| **count > 1);
        ensure!(twice.is_none(), "session {session}: twice: {twice:?}");
    }
    Ok(())
}

fn tell(yard: &Yard, tallies: &[Tally], broken: &BTreeMap<&'static str, usize>, time: Duration) {
    let mut turns: Vec<Duration> = tallies.iter().flat_map(|tally| tally.turns.iter().copied()).collect();
    turns.sort_unstable();
    let part = |percent: usize| {
        turns.get(turns.len().saturating_sub(1) * percent / 100).copied().unwrap_or_default()
    };
    let again: usize = tallies.iter().map(|tally| tally.said_again).sum();
    let failed: usize = tallies.iter().map(|tally| tally.failed).sum();
    println!("what broke: {broken:?}");
    println!(
        "{} turns in {} s, {:.1} a second; p50 {:?}, p99 {:?}; {again} messages were said again, {failed} turns were begun again",
        turns.len(),
        time.as_secs(),
        turns.len() as f64 / time.as_secs_f64(),
        part(50),
        part(99)
    );
    println!("each task was accepted once and its command begun once at most; the journal verifies");
    println!("after {} s", yard.seconds());
}

/// That the daemon does not grow, and that a turn takes no more of the journal the more there were before it.
fn flat(held: &[Held]) -> Result<()> {
    let third = held.len() / 3;
    if third == 0 {
        println!("too short to say anything about memory");
        return Ok(());
    }
    let (_, rest) = held.split_at(third);
    let (middle, last) = rest.split_at(third);
    let most = |part: &[Held]| part.iter().map(|held| held.daemon).max().unwrap_or(0);
    let each = |part: &[Held]| match part {
        [first, .., last] => (last.journal - first.journal) as f64 / (last.turns - first.turns).max(1) as f64,
        _ => 0.0,
    };
    let (before, after) = (most(middle), most(last));
    ensure!(
        after <= before + before * GROWTH_PERCENT / 100 + GROWTH_KIB,
        "the daemon grows: {before} KiB in the second third, {after} KiB in the last"
    );
    println!("memory is flat: {before} KiB in the second third, {after} KiB in the last");
    let (before, after) = (each(middle), each(last));
    ensure!(
        after <= before * (100 + GROWTH_PERCENT) as f64 / 100.0 + 1.0,
        "a turn takes more and more: {before:.1} KiB of the journal in the second third, {after:.1} KiB in the last"
    );
    println!("so is the journal: {before:.1} KiB for a turn in the second third, {after:.1} KiB in the last");
    Ok(())
}
