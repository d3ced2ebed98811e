//! The driver: runs a program under ptrace(2), counts its calls over all threads, and kills it at one of
//! them.
//!
//! INVARIANT: all of a run happens on one thread, because the kernel knows a tracer by its thread.

use super::calls::Call;
use anyhow::{Context as _, Result, bail};
use nix::{
    errno::Errno,
    sys::{
        ptrace::{self, Options},
        signal::{Signal, kill},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::Pid,
};
use std::{collections::HashMap, fs, path::Path, process::Command, sync::mpsc, thread, time::Duration};

/// After this time a run counts as hung, and is killed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why there can be no run on this machine.
pub(super) const NOT_ALLOWED: &str = "ptrace is not allowed here";

/// Whose calls are counted, and who is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The process that was started, with all its threads, and its child until that executes the warden.
    Main,
    /// The warden alone.
    Warden,
    /// What the warden forks, as far as it is Bailey's own code: holders, inits, workers. What one of them
    /// executes is let go.
    Walls,
}

impl Role {
    pub(super) const ALL: [Self; 3] = [Self::Main, Self::Warden, Self::Walls];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Warden => "warden",
            Self::Walls => "walls",
        }
    }
}

/// Whether the kill comes before the call is made, or when it has been made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Before,
    After,
}

/// What a run came to.
#[derive(Debug)]
pub(super) struct Traced {
    /// The counted calls.
    pub(super) calls: Vec<Call>,
    /// The one at which it was killed.
    pub(super) killed: Option<Call>,
    /// The program's exit code; none when a signal ended it.
    pub(super) exit: Option<i32>,
    pub(super) hung: bool,
}

/// Runs `program` to its end, or to the call at which `aim`, given the call and its number from 1 on, says
/// so.
pub(super) fn run(
    program: &Command,
    folder: &Path,
    role: Role,
    when: When,
    aim: &mut dyn FnMut(usize, &Call) -> bool,
) -> Result<Traced> {
    // It stops itself, so that it can be seized before its first call.
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", "kill -STOP $$; exec \"$0\" \"$@\""])
        .arg(program.get_program())
        .args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let out = fs::File::create(folder.join("stdout"))?;
    let err = fs::File::create(folder.join("stderr"))?;
    shell.stdin(std::process::Stdio::null()).stdout(out).stderr(err);
    if let Some(directory) = program.get_current_dir() {
        shell.current_dir(directory);
    }
    let child = shell.spawn()?;
    let main = Pid::from_raw(i32::try_from(child.id())?);
    match waitpid(main, Some(WaitPidFlag::WUNTRACED))? {
        WaitStatus::Stopped(..) => {}
        other => bail!("the shell that starts the program did not stop: {other:?}"),
    }
    ptrace::seize(main, following()).context(NOT_ALLOWED)?;
    kill(main, Signal::SIGCONT)?;
    let watchdog = Watchdog::start(main);
    let mut driver = Driver {
        folder,
        role,
        when,
        aim,
        main,
        tasks: HashMap::from([(main, Task { part: Part::Shell, inside: false, last: false })]),
        early: Vec::new(),
        calls: Vec::new(),
        target: None,
        killed: false,
        exit: None,
    };
    driver.drive()?;
    let Driver { calls, target, killed, exit, .. } = driver;
    let killed = target.filter(|_| killed);
    Ok(Traced { calls, killed, exit, hung: watchdog.stop() })
}

fn following() -> Options {
    alone() | Options::PTRACE_O_TRACEFORK | Options::PTRACE_O_TRACEVFORK | Options::PTRACE_O_TRACECLONE
}

fn alone() -> Options {
    Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACEEXEC
}

/// What a traced task is to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Ours, until it executes the program.
    Shell,
    Main,
    /// The main process' child, until it executes the warden.
    Child,
    Warden,
    Walls,
}

#[derive(Debug, Clone, Copy)]
struct Task {
    part: Part,
    /// Whether it is between the entry and the exit of a call.
    inside: bool,
    /// Whether the kill comes at that exit.
    last: bool,
}

struct Driver<'a> {
    folder: &'a Path,
    role: Role,
    when: When,
    aim: &'a mut dyn FnMut(usize, &Call) -> bool,
    main: Pid,
    tasks: HashMap<Pid, Task>,
    /// New tasks that stopped before their parent's call was told of.
    early: Vec<Pid>,
    calls: Vec<Call>,
    /// The call at which the kill comes; once it is known, no other is.
    target: Option<Call>,
    killed: bool,
    exit: Option<i32>,
}

impl Driver<'_> {
    fn drive(&mut self) -> Result<()> {
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        loop {
            match waitpid(None, Some(flags)) {
                Err(Errno::ECHILD) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
                Ok(WaitStatus::Exited(pid, code)) => {
                    self.tasks.remove(&pid);
                    if pid == self.main {
                        self.exit = Some(code);
                    }
                }
                Ok(WaitStatus::Signaled(pid, ..)) => drop(self.tasks.remove(&pid)),
                Ok(WaitStatus::Stopped(pid, signal)) => self.go_on(pid, Some(signal)),
                Ok(WaitStatus::PtraceSyscall(pid)) => self.call(pid),
                Ok(WaitStatus::PtraceEvent(pid, _, event)) => self.event(pid, event)?,
                Ok(WaitStatus::Continued(_) | WaitStatus::StillAlive) => {}
            }
        }
    }

    fn counts(&self, part: Part) -> bool {
        !self.killed
            && match self.role {
                Role::Main => matches!(part, Part::Main | Part::Child),
                Role::Warden => part == Part::Warden,
                Role::Walls => part == Part::Walls,
            }
    }

    /// Lets a stopped task go on; one that is gone needs no help.
    fn go_on(&self, pid: Pid, signal: Option<Signal>) {
        let counts = self.tasks.get(&pid).is_some_and(|task| self.counts(task.part));
        let _ = if counts { ptrace::syscall(pid, signal) } else { ptrace::cont(pid, signal) };
    }

    fn call(&mut self, pid: Pid) {
        let Some(task) = self.tasks.get(&pid).copied().filter(|task| self.counts(task.part)) else {
            return self.go_on(pid, None);
        };
        let mut next = Task { inside: !task.inside, ..task };
        if task.inside {
            if task.last {
                return self.kill(pid);
            }
        } else if let Some(call) = Call::at(pid, self.folder, task.part == Part::Walls) {
            self.calls.push(call.clone());
            if self.target.is_none() && (self.aim)(self.calls.len(), &call) {
                self.target = Some(call);
                match self.when {
                    When::Before => return self.kill(pid),
                    When::After => next.last = true,
                }
            }
        }
        self.tasks.insert(pid, next);
        self.go_on(pid, None);
    }

    /// SIGKILL wakes a stopped task, and a call that was about to be made is not made.
    fn kill(&mut self, pid: Pid) {
        self.killed = true;
        if self.role == Role::Main {
            let _ = kill(self.main, Signal::SIGKILL);
        }
        if self.role != Role::Main || self.tasks.get(&pid).is_some_and(|task| task.part == Part::Child) {
            let _ = kill(pid, Signal::SIGKILL);
        }
    }

    fn event(&mut self, pid: Pid, event: i32) -> Result<()> {
        const FORK: i32 = ptrace::Event::PTRACE_EVENT_FORK as i32;
        const VFORK: i32 = ptrace::Event::PTRACE_EVENT_VFORK as i32;
        const CLONE: i32 = ptrace::Event::PTRACE_EVENT_CLONE as i32;
        const EXEC: i32 = ptrace::Event::PTRACE_EVENT_EXEC as i32;
        match event {
            FORK | VFORK | CLONE => {
                if let Ok(new) = ptrace::getevent(pid) {
                    self.born(pid, Pid::from_raw(i32::try_from(new)?));
                }
                self.go_on(pid, None);
            }
            EXEC => self.executed(pid),
            _ if self.tasks.contains_key(&pid) => self.go_on(pid, None),
            _ => self.early.push(pid),
        }
        Ok(())
    }

    fn born(&mut self, parent: Pid, new: Pid) {
        let part = match self.tasks.get(&parent).map(|task| task.part) {
            Some(Part::Main) if is_thread(self.main, new) => Part::Main,
            Some(Part::Main | Part::Child) => Part::Child,
            Some(Part::Warden | Part::Walls) => Part::Walls,
            Some(Part::Shell) | None => Part::Shell,
        };
        self.tasks.insert(new, Task { part, inside: false, last: false });
        if let Some(at) = self.early.iter().position(|pid| *pid == new) {
            self.early.swap_remove(at);
            self.go_on(new, None);
        }
    }

    fn executed(&mut self, pid: Pid) {
        let Some(task) = self.tasks.get(&pid).copied() else { return self.go_on(pid, None) };
        if task.last && self.counts(task.part) {
            return self.kill(pid);
        }
        let part = match (task.part, self.role) {
            (Part::Shell, _) => Part::Main,
            (Part::Child, Role::Warden) => {
                let _ = ptrace::setoptions(pid, alone());
                Part::Warden
            }
            (Part::Child, Role::Walls) => Part::Warden,
            // The warden of a run that is about the main process, and a payload.
            (Part::Child | Part::Walls, _) => {
                self.tasks.remove(&pid);
                let _ = ptrace::detach(pid, None);
                return;
            }
            (part, _) => part,
        };
        // The call that executed it has not come to its exit yet.
        self.tasks.insert(pid, Task { part, inside: true, last: false });
        self.go_on(pid, None);
    }
}

fn is_thread(process: Pid, task: Pid) -> bool {
    Path::new(&format!("/proc/{process}/task/{task}")).exists()
}

/// Kills a run that does not end.
struct Watchdog {
    done: mpsc::Sender<()>,
    thread: thread::JoinHandle<bool>,
}

impl Watchdog {
    fn start(main: Pid) -> Self {
        let (done, wait) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            let hung = wait.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout);
            if hung {
                let _ = kill(main, Signal::SIGKILL);
            }
            hung
        });
        Self { done, thread }
    }

    /// Whether it had to.
    fn stop(self) -> bool {
        drop(self.done);
        self.thread.join().unwrap_or(true)
    }
}
