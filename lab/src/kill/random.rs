//! Kills at random moments under load: several sessions in projects of their own share one home, and each
//! runs its task and applies it, takes the apply back, and applies again. One of Bailey's processes,
//! whichever, is killed at a random moment. Its session does again what was cut; the others must not notice.
//! Then the same must hold as at every other kill.

use super::{
    Options, Program, check,
    dice::Dice,
    stage::{AFTER, BEFORE, Stage},
};
use anyhow::{Context as _, Result, bail, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// How many sessions run at once.
const SESSIONS: usize = 3;
/// How often the dice are thrown for one kill, when everything had ended before it came.
const THROWS: usize = 5;
/// How often it is looked whether everything has ended.
const GLANCE: Duration = Duration::from_millis(20);
/// How often a step that was cut is done again.
const AGAIN: usize = 3;

/// Kills so many times.
pub(super) fn run(times: usize, options: &Options) -> Result<()> {
    let program = Program::build(options.build)?;
    let seed = Dice::new(options.seed).seed();
    println!("seed {seed}; kill 7 again: `cargo xtask kill --random {times} --seed {seed} --from 7 --to 7`");
    let begin = Instant::now();
    let mut span = round(&program.path, None).context("a run without a kill")?.took;
    println!("{SESSIONS} sessions at once; a run without a kill took {:.2} s\n", span.as_secs_f64());
    let mut failures = Vec::new();
    let numbers = options.from.max(1)..=options.to.min(times);
    for number in numbers.clone() {
        // Dice of its own, so that it can be done again alone. The moment is a part of what the last round
        // took.
        let mut dice = Dice::new(Some(seed.wrapping_add(u64::try_from(number)?)));
        match killed(&program.path, &mut dice, &mut span) {
            Ok(told) => println!("{number:>4}  {told}: holds"),
            Err(error) => {
                println!("{number:>4}  FAILED: {error:#}");
                failures.push(format!("{number}: {error:#}"));
            }
        }
    }
    println!("\n{} kills; {:.0} s", numbers.count(), begin.elapsed().as_secs_f64());
    ensure!(failures.is_empty(), "{} kills failed:\n  {}", failures.len(), failures.join("\n  "));
    println!("everything holds");
    Ok(())
}

/// A round with a kill: in a few words, when and of what.
fn killed(program: &Path, dice: &mut Dice, span: &mut Duration) -> Result<String> {
    for _ in 0..THROWS {
        let aim = Aim { after: dice.within(*span), pick: dice.next() };
        let told = format!("after {:>6.3} s of {:.3} s", aim.after.as_secs_f64(), span.as_secs_f64());
        let round = round(program, Some(aim)).with_context(|| told.clone())?;
        *span = round.took;
        if let Some(victim) = round.victim {
            return Ok(format!("{told}: {victim}"));
        }
    }
    bail!("{THROWS} times everything had ended before the kill")
}

/// When a kill comes, and which of the processes there are then.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aim {
    pub(super) after: Duration,
    pub(super) pick: u64,
}

/// A run of all sessions.
#[derive(Debug)]
pub(super) struct Round {
    /// What was killed; none when everything had ended before.
    pub(super) victim: Option<String>,
    /// From the beginning of the first step to the end of the last.
    pub(super) took: Duration,
}

/// Runs all sessions to their ends, and checks what must hold then.
pub(super) fn round(program: &Path, aim: Option<Aim>) -> Result<Round> {
    let stages = Stage::several(program, SESSIONS)?;
    let actors: Vec<Actor<'_>> = stages.iter().map(Actor::new).collect();
    let begin = Instant::now();
    let victim = thread::scope(|scope| {
        let acting: Vec<_> = actors.iter().map(|actor| scope.spawn(|| actor.act())).collect();
        let over = || acting.iter().all(thread::ScopedJoinHandle::is_finished);
        let victim = aim.and_then(|aim| strike(program, &actors, aim, &over));
        for (number, act) in acting.into_iter().enumerate() {
            let acted = act.join().unwrap_or_else(|_| bail!("its thread panicked"));
            acted.with_context(|| format!("session {number}; killed was {victim:?}"))?;
        }
        anyhow::Ok(victim)
    })?;
    let took = begin.elapsed();
    for actor in &actors {
        let printed = actor.printed.lock().unwrap_or_else(PoisonError::into_inner);
        check::after_resume(actor.stage, program, &printed)
            .with_context(|| format!("killed was {victim:?}"))?;
    }
    Ok(Round { victim, took })
}

/// One session's steps, and which process does the one at hand.
struct Actor<'a> {
    stage: &'a Stage,
    running: AtomicU32,
    struck: AtomicBool,
    printed: Mutex<String>,
}

impl<'a> Actor<'a> {
    fn new(stage: &'a Stage) -> Self {
        Self { stage, running: AtomicU32::new(0), struck: AtomicBool::new(false), printed: Mutex::default() }
    }

    fn act(&self) -> Result<()> {
        self.step(true, AFTER, &mut self.stage.task(), || self.stage.going_on()).context("run")?;
        let session = || self.stage.session()?.context("there is no session");
        let step = |verb: &str| Ok(self.stage.bailey(&["--json", "sessions", verb, &session()?]));
        self.step(false, BEFORE, &mut step("undo")?, || step("undo")).context("undo")?;
        self.step(false, AFTER, &mut step("apply")?, || step("apply")).context("apply")
    }

    /// Runs a command; where it was cut, what does the rest. In the end `notes` is as wanted.
    fn step(
        &self,
        is_task: bool,
        wanted: &str,
        command: &mut Command,
        again: impl Fn() -> Result<Command>,
    ) -> Result<()> {
        let mut output = self.ran(command)?;
        for number in 0..=AGAIN {
            let is_wanted = self.stage.file("notes").as_deref() == Some(wanted);
            // A merge that was cut between its last change and its end leaves nothing to do for the one after
            // it.
            if is_wanted && (output.status.success() || (number > 0 && !is_task)) {
                return Ok(());
            }
            let struck = self.struck.load(Ordering::SeqCst);
            ensure!(struck, "nothing of it was killed, and it ended with {}", told(&output));
            check::is_whole(self.stage)?;
            if number < AGAIN {
                output = self.ran(&mut again()?)?;
            }
        }
        bail!("done again {AGAIN} times, it ended with {}", told(&output))
    }

    fn ran(&self, command: &mut Command) -> Result<Output> {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        self.running.store(child.id(), Ordering::SeqCst);
        let output = child.wait_with_output()?;
        self.running.store(0, Ordering::SeqCst);
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        printed.push_str(&String::from_utf8_lossy(&output.stdout));
        Ok(output)
    }
}

fn told(output: &Output) -> String {
    let text = [&output.stderr, &output.stdout].map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned());
    format!("{}: {}", output.status, text.join("\n"))
}

/// Kills one of the processes there are; in a few words, which.
fn strike(program: &Path, actors: &[Actor<'_>], aim: Aim, over: &dyn Fn() -> bool) -> Option<String> {
    let moment = Instant::now() + aim.after;
    while let Some(left) = moment.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        if over() {
            return None;
        }
        thread::sleep(left.min(GLANCE));
    }
    let victims: Vec<(u32, &Actor<'_>)> = check::processes(program)
        .into_iter()
        .filter_map(|pid| {
            Some((pid, actors.iter().find(|actor| descends(pid, actor.running.load(Ordering::SeqCst)))?))
        })
        .collect();
    let index = usize::try_from(aim.pick).ok()?.checked_rem(victims.len())?;
    let (pid, actor) = victims.get(index)?;
    let told = describe(*pid, *pid == actor.running.load(Ordering::SeqCst));
    actor.struck.store(true, Ordering::SeqCst);
    kill(Pid::from_raw(i32::try_from(*pid).ok()?), Signal::SIGKILL).ok()?;
    Some(told)
}

fn describe(pid: u32, is_main: bool) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let verb = words.iter().find(|word| ["run", "resume", "undo", "apply"].contains(&&***word));
    match verb {
        Some(verb) if is_main => format!("the main process of `{verb}`"),
        _ => format!(
            "a process of the walls: {}",
            words.iter().skip(1).take(1).map(|word| &**word).collect::<String>()
        ),
    }
}

/// Whether a process is this one or a child of its children.
fn descends(mut pid: u32, from: u32) -> bool {
    while pid > 1 && from > 0 {
        if pid == from {
            return true;
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name may hold anything; after it come the state and the parent.
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        pid = parent.unwrap_or(0);
    }
    false
}
