//! Starts the daemon of a home, begins it again when it does not answer, and says why when that is of no use.
//!
//! It uses the standard library alone, so that it does not end by the daemon's mistakes. It holds the
//! daemon's standard input: after its end the daemon ends, too. The package `bailey` builds this program.

#![forbid(unsafe_code)]

mod engine;
mod ping;
mod settings;

use settings::{DaemonHost, Settings};
use std::{
    collections::VecDeque,
    io::{self, BufRead as _, BufReader, Read, Write as _},
    process::{Child, Command, ExitCode, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// How often it is begun again within a time before it is given up.
const RESTARTS_MAX: usize = 3;
const RESTARTS_WITHIN: Duration = Duration::from_secs(300);
/// How long it may take to answer the first time, and how often it is asked after that.
const START_MAX: Duration = Duration::from_secs(60);
const PING_EVERY: Duration = Duration::from_secs(5);
/// So many times without an answer are an end.
const MISSED_MAX: u32 = 3;
/// How often is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(100);
/// How many of its last lines are kept for the explanation.
const LINES_MAX: usize = 8;
/// The daemon's exit code for what no restart mends: wrong configuration or rules.
const WRONG: i32 = 2;

const HELP: &str = "\
Starts Bailey's daemon, asks it every 5 s whether it is there, and begins it again at most three times in five minutes.

Usage: bailey-boot [OPTIONS]

  --home DIR          Bailey's home [default: as Bailey's own: $BAILEY_HOME, or ~/.bailey]
  --bailey FILE       the program [default: beside this one, else in PATH]
  --container IMAGE   in a container of this image, with Docker or Podman
  --engine FILE       the container engine [default: the first of docker, podman in PATH]
  --mount DIR         show this directory inside the container too; may be repeated
  --engine-option X   one more option for the engine; may be repeated
  --check             say what would be run, and whether the walls can stand there, and end
  --help, --version

The same names without dashes, as `name = value` lines of HOME/boot.conf, are the defaults.
When this program ends, the daemon ends, once the turns that run have ended.

Exit codes: 0 the daemon was told to end, 1 it was given up or another one runs, 2 wrong options or configuration.";

/// The whole program, from its arguments to its exit code.
pub fn main() -> ExitCode {
    run().unwrap_or_else(|why| {
        say(&format!("error: {why}"));
        ExitCode::from(2)
    })
}

/// What is said goes to standard error; who reads it may be gone.
fn say(text: &str) {
    io::stderr().lock().write_all(format!("{text}\n").as_bytes()).ok();
}

fn run() -> Result<ExitCode, String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let version = concat!("bailey-boot ", env!("CARGO_PKG_VERSION"));
    for (asked, told) in [("--help", HELP), ("-h", HELP), ("--version", version)] {
        if words.iter().any(|word| word == asked) {
            say(told);
            return Ok(ExitCode::SUCCESS);
        }
    }
    let settings = Settings::read(&words)?;
    if settings.check || matches!(settings.place, DaemonHost::Container { .. }) {
        // In a container with the engine's own options there are no walls, and nothing may run.
        say(&format!("looking whether the walls can stand: {}", line(&engine::doctor(&settings))));
        engine::walls(&settings)?;
    }
    if settings.check {
        say(&format!("the walls can stand; the daemon is: {}", line(&engine::daemon(&settings))));
        return Ok(ExitCode::SUCCESS);
    }
    Ok(keep(&settings))
}

/// Keeps the daemon up until it is told to end, or nothing helps.
fn keep(settings: &Settings) -> ExitCode {
    let is_there = |turn: u32| {
        thread::sleep(LOOK * turn.min(1));
        ping::ping(&settings.home).is_ok_and(|(_, is_ending)| !is_ending)
    };
    let mut ends: VecDeque<(Instant, String)> = VecDeque::new();
    loop {
        // One whose starter has just gone takes a moment to notice that.
        if (0..30).all(is_there) {
            say("error: a daemon of this home runs already; to end it: bailey stop");
            return ExitCode::FAILURE;
        }
        if !ends.is_empty() {
            say(&format!("it is begun again ({} of {RESTARTS_MAX} in five minutes)", ends.len()));
        }
        let (why, is_wrong) = match once(settings) {
            Ok(None) => {
                say("the daemon has ended, as it was told to");
                return ExitCode::SUCCESS;
            }
            Ok(Some(end)) => end,
            Err(error) => (format!("it cannot be started: {error}"), false),
        };
        if is_wrong {
            say(&format!("{why}\nno restart mends that: `bailey config check` and `bailey doctor` say more"));
            return ExitCode::from(2);
        }
        ends.push_back((Instant::now(), why.clone()));
        ends.retain(|(at, _)| at.elapsed() <= RESTARTS_WITHIN);
        if ends.len() > RESTARTS_MAX {
            explain(settings, &ends);
            return ExitCode::FAILURE;
        }
        say(&format!("the daemon ended: {why}"));
        thread::sleep(Duration::from_secs(1 << ends.len().min(3)));
    }
}

fn explain(settings: &Settings, ends: &VecDeque<(Instant, String)>) {
    say(&format!("the daemon is given up: it ended {} times in five minutes", ends.len()));
    for (at, why) in ends {
        say(&format!("- {} s ago: {why}", at.elapsed().as_secs()));
    }
    say(&format!(
        "what to do: `bailey doctor` looks at this machine, `{}` has what happened before; what the agents did is in the journal, and what \
         ran goes on with the next start",
        settings.home.join("daemon/log").display()
    ));
}

/// A daemon from its start to its end: why it ended, and whether that is for good; none where it was told to.
fn once(settings: &Settings) -> io::Result<Option<(String, bool)>> {
    let mut command = engine::daemon(settings);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let held = child.stdin.take();
    let said = Arc::new(Mutex::new(VecDeque::new()));
    let listener = child.stderr.take().map(|stderr| {
        let said = said.clone();
        thread::spawn(move || listen(stderr, &said))
    });
    let unanswered = watch(settings, &mut child)?;
    if unanswered.is_some() {
        child.kill().ok();
        engine::kill(settings);
    }
    let status = child.wait()?;
    drop(held);
    listener.map(thread::JoinHandle::join);
    if unanswered.is_none() && status.success() {
        return Ok(None);
    }
    let said = said.lock().unwrap_or_else(PoisonError::into_inner);
    let last = said.iter().map(String::as_str).collect::<Vec<_>>().join("\n  ");
    let how = unanswered.unwrap_or_else(|| status.to_string());
    let why = if last.is_empty() { how } else { format!("{how}; it said last:\n  {last}") };
    Ok(Some((why, status.code() == Some(WRONG))))
}

/// Watches it until it has ended, or does not answer any more: how.
fn watch(settings: &Settings, child: &mut Child) -> io::Result<Option<String>> {
    let mut begun = Instant::now();
    let (mut is_up, mut missed, mut next) = (false, 0, begun);
    loop {
        if child.try_wait()?.is_some() {
            return Ok(None);
        }
        if Instant::now() >= next {
            match ping::ping(&settings.home) {
                // The one of before, for whose end this one waits: its own time begins with that.
                Ok((_, true)) if !is_up => begun = Instant::now(),
                Ok((pid, _)) => {
                    if !is_up {
                        let time = begun.elapsed().as_millis();
                        say(&format!("the daemon is up (process {pid}), after {time} ms"));
                    }
                    (is_up, missed) = (true, 0);
                }
                Err(_) if !is_up && begun.elapsed() < START_MAX => {}
                Err(why) => {
                    missed += 1;
                    if !is_up || missed >= MISSED_MAX {
                        return Ok(Some(format!("it did not answer: {why}")));
                    }
                }
            }
            next = Instant::now() + if is_up { PING_EVERY } else { LOOK };
        }
        thread::sleep(LOOK);
    }
}

/// Passes on what it says, and keeps the last of it.
fn listen(stderr: impl Read, said: &Mutex<VecDeque<String>>) {
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        say(&line);
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        let over = (said.len() + 1).saturating_sub(LINES_MAX);
        said.drain(..over);
        said.push_back(line);
    }
}

/// A command as somebody would type it.
fn line(command: &Command) -> String {
    let quoted = |word: &std::ffi::OsStr| {
        let word = word.to_string_lossy();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) { word.into_owned() } else { format!("'{word}'") }
    };
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(quoted).collect::<Vec<_>>().join(" ")
}
