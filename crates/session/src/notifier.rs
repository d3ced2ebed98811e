//! The notifier: runs the owner's own programs when a question is escalated.
//!
//! A process that has bound itself can start nothing. So the notifier is started before: the same file
//! executed again with a private first argument. It is told once which programs there are. From then on it
//! learns only three things of a question, six bytes in all: the number of a step, the question's first
//! digits and a kind. The programs are the owner's; they run outside the walls, with these two words and a
//! few variables. The notifier ends with the process that started it: when the other end of their pipe is
//! closed, the notifier ends the running program and begins nothing more.

use crate::{config::Step, program};
use anyhow::{Context as _, Result};
use bailey_protocol::{ApprovalId, Kind};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal, kill_process_group},
};
use std::{
    env,
    ffi::OsString,
    io::{self, Read as _, Write as _},
    os::{fd::AsFd, unix::process::CommandExt as _},
    process::{Child, ChildStdin, Command, ExitCode, Stdio},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The private first argument.
const ARGUMENT: &str = "__notifier";
/// The longest list of programs, in bytes.
const PROGRAMS_BYTES_MAX: u32 = 64 * 1024;
/// The most programs that one notifier runs, for any asker.
const RUNS_MAX: usize = 200;
/// How long a program may take.
const RUN_MAX: Duration = Duration::from_secs(30);
/// How often the notifier looks whether the program has ended, in nanoseconds.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// The number for the kind of a question about no effect.
const NO_KIND: u8 = u8::MAX;
/// The variables that its programs get: those for reaching a person, and no key.
const VARIABLES: [&str; 10] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TZ",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// The connection to a notifier.
#[derive(Debug)]
pub(crate) struct Notifier {
    pipe: Mutex<ChildStdin>,
    has_program: Vec<bool>,
}

impl Notifier {
    /// Starts a notifier, if a step has a program.
    ///
    /// # Errors
    /// When the notifier cannot be started.
    pub(crate) fn start(steps: &[Step]) -> Result<Option<Self>> {
        let programs: Vec<&[String]> = steps.iter().map(|step| step.notify.as_slice()).collect();
        if programs.iter().all(|program| program.is_empty()) {
            return Ok(None);
        }
        let mut child = program::again()
            .arg(ARGUMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Signals of the terminal to its foreground are not for the notifier.
            .process_group(0)
            .spawn()
            .context("cannot start the process that tells of questions")?;
        let mut pipe = child.stdin.take().context("the process that tells of questions has no input")?;
        let list = serde_json::to_vec(&programs)?;
        let length = u32::try_from(list.len()).unwrap_or(u32::MAX);
        pipe.write_all(&length.to_be_bytes()).and_then(|()| pipe.write_all(&list))?;
        let has_program = programs.iter().map(|program| !program.is_empty()).collect();
        Ok(Some(Self { pipe: Mutex::new(pipe), has_program }))
    }

    /// Has the program of a step run. Returns whether there is one and the notifier was asked.
    pub(crate) fn tell(&self, step: usize, id: ApprovalId, kind: Option<Kind>) -> bool {
        let place = |kind: Kind| Kind::ALL.iter().position(|known| *known == kind);
        let kind = kind.and_then(place).and_then(|place| u8::try_from(place).ok()).unwrap_or(NO_KIND);
        let (Ok(number), true) = (u8::try_from(step), self.has_program.get(step) == Some(&true)) else {
            return false;
        };
        let digits: String = id.to_string().chars().take(8).collect();
        let Ok(digits) = u32::from_str_radix(&digits, 16) else { return false };
        let mut order = vec![number, kind];
        order.extend(digits.to_be_bytes());
        // The order is written whole or not at all, because it is shorter than a pipe takes at once.
        self.pipe.lock().unwrap_or_else(PoisonError::into_inner).write_all(&order).is_ok()
    }
}

/// Runs the notifier itself when these are its arguments; `None` when they are not.
pub fn main(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.nth(1)? != ARGUMENT {
        return None;
    }
    let asker = io::stdin();
    Some(match serve(&mut asker.lock(), &asker) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

/// `asker` is the pipe that `input` reads.
fn serve(input: &mut impl io::Read, asker: &impl AsFd) -> io::Result<()> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > PROGRAMS_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut list = Vec::new();
    input.by_ref().take(u64::from(length)).read_to_end(&mut list)?;
    let programs: Vec<Vec<String>> = serde_json::from_slice(&list)?;
    for _ in 0..RUNS_MAX {
        let mut order = [0; 6];
        input.read_exact(&mut order)?;
        // An order that waited in the pipe is dropped when no process waits for an answer any more.
        if is_gone(asker, &AT_ONCE) {
            return Ok(());
        }
        let [step, kind, digits @ ..] = order;
        let kind = Kind::ALL.get(usize::from(kind)).map_or("turn", |kind| kind.name());
        let Some([program, arguments @ ..]) = programs.get(usize::from(step)).map(Vec::as_slice) else {
            continue;
        };
        run(program, arguments, &format!("{:08x}", u32::from_be_bytes(digits)), kind, asker);
    }
    Ok(())
}

/// Whether the other end of the pipe is closed everywhere; waits this long for that.
fn is_gone(asker: &impl AsFd, most: &Timespec) -> bool {
    // This works also while there is something to read: no event is asked for, and the end is reported all
    // the same.
    let mut pipe = [PollFd::new(asker, PollFlags::empty())];
    poll(&mut pipe, Some(most)).is_ok_and(|ready| ready > 0)
}

/// Runs one of the owner's programs to its end, or ends it. The result is of no use here.
pub fn run(program: &str, arguments: &[String], id: &str, kind: &str, asker: &impl AsFd) {
    let kept = VARIABLES.iter().filter_map(|name| Some((name, env::var_os(name)?)));
    let mut command = Command::new(program);
    command.args(arguments).args([id, kind]).env_clear().envs(kept);
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The names that the program uses start at `/`, and never in the asker's project. The program has a group
    // of its own, so that it ends with the processes that it started.
    let Ok(mut child) = quiet.current_dir("/").process_group(0).spawn() else { return };
    let since = Instant::now();
    while let Ok(None) = child.try_wait() {
        if is_gone(asker, &LOOK) || since.elapsed() > RUN_MAX {
            return end(&mut child);
        }
    }
}

fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        kill_process_group(group, Signal::KILL).ok();
    }
    child.kill().ok();
    child.wait().ok();
}
