//! The daemon: how soon it is there, what it holds and does while nothing happens, what a turn takes beneath
//! it, and five hundred sessions at once. Each turn calls the model twice and runs one command inside the
//! walls.

#![expect(clippy::indexing_slicing, reason = "an index into JSON that is not there is null")]

use super::{
    case::{Case, compare, table},
    lab::{Lab, finished, mib},
    walls::{Sessions, bubblewrap, plain},
};
use crate::line::{self, Line, held_kib};
use anyhow::{Result, anyhow, ensure};
use bailey_testkit::{Reply, Request};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

const STARTS: usize = 30;
const TURNS: usize = 30;
/// For how long nothing is done.
const IDLE: Duration = Duration::from_secs(20);
/// Front ends that begin one new session after the other, and for how long.
const FRONTS: usize = 4;
const RUSH: Duration = Duration::from_secs(10);
/// Sessions that are there at once, and turns of each.
const SESSIONS: usize = 500;
const EACH: usize = 2;

pub(super) fn run(bailey: &Path) -> Result<()> {
    let lab = Lab::new(bailey, reply)?;
    ready(bailey, &home(&lab, 0)?)?;
    let used = home(&lab, 1)?;
    let up = Up::start(bailey, &used)?;
    up.idle()?;
    let known = line::open(&used, &lab.project(), None)?;
    let project = lab.project();
    let mut cases = vec![
        Case::new("bailey run, without the daemon", || finished(lab.run(&used).arg("--alone"))),
        Case::new("bailey run, as its client", || finished(&mut lab.run(&used))),
        Case::new("a turn in a new session", || turn(&used, &line::open(&used, &lab.project(), None)?)),
        Case::new("a turn in a session that is there", || turn(&used, &known)),
    ];
    // What a sandbox costs by itself, where nothing is asked, decided or written down.
    if works(&project) {
        cases.push(Case::new("bubblewrap, one command alone", || plain(&mut bubblewrap(&project))));
    } else {
        println!("SKIPPED bubblewrap (not installed, or not let): apt-get install bubblewrap");
    }
    compare("turns beneath a daemon, one after the other", TURNS, 1, cases)?;
    drop(up);
    rush(bailey, &home(&lab, 2)?, &lab.project())?;
    many(bailey, &home(&lab, 3)?, &lab.project())
}

/// What it says after the last words of a person: a call, and then that it is done.
fn reply(request: &Request) -> Reply {
    let is_done = serde_json::from_str(&request.body).is_ok_and(|body: Value| {
        let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned();
        last.is_some_and(|last| last.to_string().contains("tool_result"))
    });
    if is_done {
        return Reply::text("done");
    }
    Reply::calls([("c1", "command_run", json!({ "command": "true" }))])
}

/// A home whose sessions need no word about the model.
fn home(lab: &Lab<'_>, number: usize) -> Result<PathBuf> {
    let home = lab.home(number)?;
    let config = home.join("config.toml");
    fs::write(&config, format!("model = \"test/model\"\n{}", fs::read_to_string(&config)?))?;
    Ok(home)
}

/// A running daemon, which ends with this.
struct Up {
    child: Child,
    home: PathBuf,
}

impl Up {
    fn start(bailey: &Path, home: &Path) -> Result<Self> {
        let manager = UnixDatagram::bind(home.join("notify"))?;
        let mut daemon = Command::new(bailey);
        daemon
            .arg("--home")
            .arg(home)
            .args(["start", "--foreground"])
            .env("NOTIFY_SOCKET", home.join("notify"));
        daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let up = Self { child: daemon.spawn()?, home: home.to_owned() };
        manager.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut words = [0; 64];
        let length = manager.recv(&mut words)?;
        ensure!(
            words.get(..length) == Some(b"READY=1"),
            "the daemon said something else than that it is ready"
        );
        fs::remove_file(home.join("notify"))?;
        Ok(up)
    }

    fn idle(&self) -> Result<()> {
        let pid = json!(self.child.id());
        thread::sleep(Duration::from_secs(2));
        let before = switches(self.child.id());
        thread::sleep(IDLE);
        let woken = (switches(self.child.id()) - before) as f64 / IDLE.as_secs_f64();
        let resident = field_kib(&format!("/proc/{pid}/status"), "VmRSS:").unwrap_or_default();
        println!("a daemon without sessions, for {} s", IDLE.as_secs());
        println!(
            "  {:.1} MiB resident, {:.1} MiB without what it shares; woken {woken:.2} times a second\n",
            mib(resident),
            mib(held_kib(&pid).unwrap_or_default())
        );
        Ok(())
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        // Its sessions end with it, each by itself.
        while fs::read_dir(self.home.join("daemon")).is_ok_and(|_| has_processes(&self.home)) {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn has_processes(home: &Path) -> bool {
    let found = Command::new("pgrep").arg("-f").arg(home).stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

/// How often the threads of a process were given a processor.
fn switches(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let status = |task: fs::DirEntry| task.path().join("status").display().to_string();
    let of = |status: String| {
        ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"]
            .iter()
            .filter_map(|name| field_kib(&status, name))
            .sum::<u64>()
    };
    tasks.map(status).map(of).sum()
}

fn field_kib(path: &str, name: &str) -> Option<u64> {
    let about = fs::read_to_string(path).ok()?;
    about.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

fn ready(bailey: &Path, home: &Path) -> Result<()> {
    let up = std::cell::RefCell::new(None);
    let cases = vec![
        Case::new("bailey version", || finished(Command::new(bailey).arg("version").stdout(Stdio::null()))),
        Case::new("a daemon, until it is ready", || {
            *up.borrow_mut() = Some(Up::start(bailey, home)?);
            Ok(())
        })
        .after(|| {
            up.borrow_mut().take();
            Ok(())
        }),
    ];
    compare("start of a daemon", STARTS, 1, cases)
}

/// One turn, from its message to its end. Who connects hears of the turn before first: a message is known by
/// its name.
fn turn(home: &Path, session: &str) -> Result<()> {
    static MESSAGES: AtomicU64 = AtomicU64::new(0);
    let key = format!("message {}", MESSAGES.fetch_add(1, Ordering::Relaxed));
    let mut events = Line::to(home, session)?;
    events.say(&json!({ "op": "say", "text": "do it", "key": key }))?;
    let mut is_ours = false;
    loop {
        let event = events.hear()?;
        match event["type"].as_str() {
            Some("accepted") => is_ours |= event["key"] == json!(key),
            Some("end") if is_ours => {
                ensure!(event["reason"] == "answered", "{event}");
                return Ok(());
            }
            Some("failed") => return Err(anyhow!("{event}")),
            _ => {}
        }
    }
}

/// One new session after the other, from several front ends; and one sandbox after the other, with nothing
/// around it.
fn rush(bailey: &Path, home: &Path, project: &Path) -> Result<()> {
    println!("one after the other from {FRONTS} front ends, for {} s", RUSH.as_secs());
    if works(project) {
        let alone = a_second(|| plain(&mut bubblewrap(project)))?;
        println!("  bubblewrap, one command alone: {alone:.1} a second");
    }
    let waiting = Mutex::new(Vec::new());
    let walls = a_second(|| {
        let taken = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut sessions = taken.map_or_else(|| Sessions::new(bailey), Ok)?;
        while !sessions.next()? {
            sessions = Sessions::new(bailey)?;
        }
        waiting.lock().unwrap_or_else(PoisonError::into_inner).push(sessions);
        Ok(())
    })?;
    println!("  Bailey's walls of a new session, one command alone: {walls:.1} a second");
    drop(waiting);
    let _up = Up::start(bailey, home)?;
    let turns = a_second(|| turn(home, &line::open(home, project, None)?))?;
    println!("  new sessions with one turn each: {turns:.1} a second\n");
    Ok(())
}

/// Whether bubblewrap can be compared with.
fn works(project: &Path) -> bool {
    plain(&mut bubblewrap(project)).is_ok()
}

/// How often something is done in a second, where several do it one after the other.
fn a_second(work: impl Fn() -> Result<()> + Sync) -> Result<f64> {
    let begun = Instant::now();
    let of_front = |_| {
        let mut done = 0;
        while begun.elapsed() < RUSH {
            work()?;
            done += 1;
        }
        Ok(done)
    };
    let done: usize = at_once(0..FRONTS, of_front)?.into_iter().sum();
    Ok(done as f64 / begun.elapsed().as_secs_f64())
}

/// Many sessions that are there together.
fn many(bailey: &Path, home: &Path, project: &Path) -> Result<()> {
    let up = Up::start(bailey, home)?;
    let of_front = |_| {
        let open = |_| {
            let begun = Instant::now();
            Ok((line::open(home, project, None)?, begun.elapsed()))
        };
        (0..SESSIONS / FRONTS).map(open).collect::<Result<Vec<_>>>()
    };
    let sessions = at_once(0..FRONTS, of_front)?.concat();
    let begun = Instant::now();
    let turns_of = |session: &String| {
        let one = |_| {
            let begun = Instant::now();
            turn(home, session)?;
            Ok(begun.elapsed())
        };
        (0..EACH).map(one).collect::<Result<Vec<_>>>()
    };
    let took = at_once(sessions.iter().map(|(session, _)| session), turns_of)?.concat();
    let time = begun.elapsed();
    let opened: Vec<Duration> = sessions.iter().map(|(_, opened)| *opened).collect();
    let turns = took.len();
    let rows = vec![("until a session is open".to_owned(), opened), ("a turn".to_owned(), took)];
    table(&format!("{SESSIONS} sessions at once, {EACH} turns each"), rows);
    let below: u64 = below(up.child.id()).iter().filter_map(|pid| held_kib(&json!(pid))).sum();
    println!(
        "  {:.1} turns a second; {:.1} MiB for each session with its warden, {:.1} MiB the daemon itself\n",
        turns as f64 / time.as_secs_f64(),
        mib(below) / SESSIONS as f64,
        mib(held_kib(&json!(up.child.id())).unwrap_or_default())
    );
    Ok(())
}

/// Does something for each of many, on a thread each.
fn at_once<T: Send, V: Send>(
    all: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<V> + Sync,
) -> Result<Vec<V>> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = all.into_iter().map(|it| scope.spawn(move || work(it))).collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a front end broke"))?).collect()
    })
}

/// All processes that a process began, and theirs.
fn below(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut waiting = vec![pid];
    while let Some(pid) = waiting.pop() {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok());
            let children: Vec<u32> = children.collect();
            found.extend(&children);
            waiting.extend(children);
        }
    }
    found
}
