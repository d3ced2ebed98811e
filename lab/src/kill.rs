//! `cargo xtask kill`: a crash at every step.
//!
//! A scripted turn of the real binary is killed with SIGKILL at every database write, sync, rename, unlink,
//! clone and exec of Bailey's own processes: the main process with all its threads, the warden, and what runs
//! inside the walls until it executes something else. Then the session goes on. Stores into the shared memory
//! of SQLite's index and messages between processes are no calls of this list; the calls around them are.
//!
//! Read `stage.rs` first (what the turn is), then `trace.rs` (how it is killed), `check.rs` (what must hold)
//! and `control.rs` (why the check can fail).

mod calls;
mod check;
mod control;
mod dice;
mod merges;
pub(crate) mod power;
mod random;
mod stage;
mod trace;

use anyhow::{Context as _, Result, bail, ensure};
use calls::Call;
use merges::{Way, Yard};
use stage::Stage;
use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};
use tempfile::TempDir;
use trace::{Role, When};
use xtask::{cargo, check as must, target_dir};

/// How often a point is tried when a run ended before it: threads race, so a run may make a call less.
const TRIES: usize = 3;

/// Which points are run.
#[derive(Debug, Clone)]
struct Options {
    every: usize,
    from: usize,
    to: usize,
    roles: Vec<Role>,
    whens: Vec<When>,
    build: Build,
    /// Which merge is killed, in place of a turn.
    merge: Option<Way>,
    /// How often the power is lost, in place of the points.
    power: Option<usize>,
    /// How often a process is killed at a random moment, in place of the points.
    random: Option<usize>,
    seed: Option<u64>,
}

impl Options {
    fn parse(options: &[&str]) -> Result<Self> {
        let mut chosen = Self {
            every: 1,
            from: 1,
            to: usize::MAX,
            roles: Role::ALL.to_vec(),
            whens: vec![When::Before, When::After],
            build: Build::default(),
            merge: None,
            power: None,
            random: None,
            seed: None,
        };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            if *option == "--release" {
                chosen.build.release = true;
                continue;
            }
            let value =
                options.next().with_context(|| format!("`{option}` needs a value, or is no option"))?;
            match *option {
                "--every" => chosen.every = value.parse::<usize>()?.max(1),
                "--from" => chosen.from = value.parse()?,
                "--to" => chosen.to = value.parse()?,
                "--power" => chosen.power = Some(value.parse()?),
                "--random" => chosen.random = Some(value.parse()?),
                "--seed" => chosen.seed = Some(value.parse()?),
                "--merge" if *value == "apply" => chosen.merge = Some(Way::Apply),
                "--merge" if *value == "undo" => chosen.merge = Some(Way::Undo),
                "--role" => chosen.roles.retain(|role| role.name() == *value),
                "--when" if *value == "before" => chosen.whens = vec![When::Before],
                "--when" if *value == "after" => chosen.whens = vec![When::After],
                _ => bail!("`kill` does not understand `{option} {value}`"),
            }
        }
        ensure!(!chosen.roles.is_empty(), "the roles are main, warden and walls");
        Ok(chosen)
    }

    fn points(&self, count: usize) -> impl Iterator<Item = usize> {
        (self.from.max(1)..=self.to.min(count)).step_by(self.every)
    }
}

/// Runs the points.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let options = Options::parse(options)?;
    if let Some(times) = options.power {
        return power::run(times, options.seed, options.build);
    }
    if let Some(times) = options.random {
        return random::run(times, &options);
    }
    let program = Program::build(options.build)?;
    let begin = Instant::now();
    let mut failures = Vec::new();
    for role in &options.roles {
        let calls = shortest(&program.path, *role, options.merge)?;
        let what = options.merge.map_or("turn", Way::name);
        println!("== {}: {} calls in a whole {what}\n", role.name(), calls.len());
        for (number, call) in calls.iter().enumerate() {
            println!("{:>5}  {call}", number + 1);
        }
        println!();
        for when in &options.whens {
            failures.extend(points(&program.path, &options, *role, *when, calls.len())?);
        }
    }
    if options.merge.is_some() {
        merges::control().context("the control")?;
        println!(
            "== control: a torn file, a foreign one, a missing one and a foreign commit are each noticed"
        );
    } else {
        let seen = control::run(&program, options.build).context("the control")?;
        println!("== control: with the intent written after the effect, the check fails: {seen}");
    }
    println!("\n{:.0} s", begin.elapsed().as_secs_f64());
    ensure!(failures.is_empty(), "{} points failed:\n  {}", failures.len(), failures.join("\n  "));
    println!("everything holds");
    Ok(())
}

/// How the program is built.
#[derive(Debug, Clone, Copy, Default)]
struct Build {
    release: bool,
    /// The program for tests, whose promises can be broken.
    controls: bool,
}

/// The program, under a path of its own by which its processes are known.
struct Program {
    path: PathBuf,
    _folder: TempDir,
}

impl Program {
    fn build(build: Build) -> Result<Self> {
        let name = if build.controls { "bailey-controls" } else { "bailey" };
        let mut arguments = vec!["build", "--quiet", "--locked", "-p", "bailey", "--bin", name];
        arguments.extend(build.controls.then_some("--features=controls"));
        arguments.extend(build.release.then_some("--release"));
        must(&mut cargo(&arguments))?;
        Self::copy(&target_dir().join(if build.release { "release" } else { "debug" }).join(name), name)
    }

    /// The program that the other tests use, as the same build makes it.
    #[cfg(test)]
    fn tested() -> Result<Self> {
        must(&mut cargo(&["build", "--quiet", "--locked", "--workspace", "--all-targets"]))?;
        Self::copy(&target_dir().join("debug/bailey"), "bailey")
    }

    fn copy(built: &Path, name: &str) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("bailey-kill-").tempdir()?;
        let path = folder.path().join(name);
        fs::copy(built, &path).with_context(|| format!("cannot copy `{}`", built.display()))?;
        Ok(Self { path, _folder: folder })
    }

    fn path(&self) -> &PathBuf {
        &self.path
    }
}

/// Of a few whole turns the one with the fewest calls, which every run comes to: processes race, and a holder
/// that is made ahead in one turn is not needed in another.
fn shortest(program: &Path, role: Role, merge: Option<Way>) -> Result<Vec<Call>> {
    let whole = |_| match merge {
        None => dry(program, role),
        Some(way) => dry_merge(program, role, way),
    };
    let turns: Vec<Vec<Call>> = (0..TRIES).map(whole).collect::<Result<_>>()?;
    turns.into_iter().min_by_key(Vec::len).context("no turn was tried")
}

/// The calls of a whole turn, which itself must pass the check.
fn dry(program: &Path, role: Role) -> Result<Vec<Call>> {
    let stage = Stage::new(program)?;
    let traced = stage.traced(role, When::Before, &mut |_, _| false)?;
    let printed = stage.printed();
    ensure!(traced.exit == Some(0) && !traced.hung, "a run without a kill failed: {printed}");
    check::after_resume(&stage, program, &printed).context("a run without a kill")?;
    Ok(traced.calls)
}

/// The calls of a whole merge, which itself must pass the check.
fn dry_merge(program: &Path, role: Role, way: Way) -> Result<Vec<Call>> {
    let yard = Yard::new(program, way)?;
    let traced = yard.traced(role, When::Before, &mut |_, _| false)?;
    ensure!(traced.exit == Some(0) && !traced.hung, "a merge without a kill failed");
    yard.whole(program).context("a merge without a kill")?;
    Ok(traced.calls)
}

/// Kills at each point, and says what did not hold.
fn points(program: &Path, options: &Options, role: Role, when: When, count: usize) -> Result<Vec<String>> {
    let word = if when == When::Before { "before" } else { "after" };
    let mut failures = Vec::new();
    let (mut killed, mut missed, mut yard) = (0, Vec::new(), None);
    for number in options.points(count) {
        let tried = match options.merge {
            None => point(program, role, when, number),
            Some(way) => point_of_merge(program, role, when, number, way, &mut yard),
        };
        match tried {
            Ok(Some(call)) => {
                killed += 1;
                println!("{} {word} call {number}, which was {call}: holds", role.name());
            }
            Ok(None) => missed.push(number),
            Err(error) => {
                println!("{} {word} call {number}: FAILED: {error:#}", role.name());
                failures.push(format!("{} {word} call {number}: {error:#}", role.name()));
            }
        }
    }
    println!("\n{}, {word}: killed at {killed} of {} calls\n", role.name(), options.points(count).count());
    if !missed.is_empty() {
        println!("no run of {TRIES} came to the calls {missed:?}: threads race, and those made fewer\n");
        // A list that most runs do not follow would show nothing.
        if missed.len() * 20 > count {
            failures.push(format!("{} {word}: {} calls were never reached", role.name(), missed.len()));
        }
    }
    Ok(failures)
}

/// One kill; the call it came at, or none when no run came so far.
fn point(program: &Path, role: Role, when: When, number: usize) -> Result<Option<Call>> {
    for _ in 0..TRIES {
        let stage = Stage::new(program)?;
        let traced = stage.traced(role, when, &mut |at, _| at == number)?;
        ensure!(!traced.hung, "the run did not end: {}", stage.printed());
        let Some(call) = traced.killed else { continue };
        let told = || format!("at {call}");
        check::after_kill(&stage, program).with_context(told)?;
        stage.resume().with_context(told)?;
        check::after_resume(&stage, program, &stage.printed()).with_context(told)?;
        return Ok(Some(call));
    }
    Ok(None)
}

/// The same of a merge. A yard in which everything held serves the next one.
fn point_of_merge(
    program: &Path,
    role: Role,
    when: When,
    number: usize,
    way: Way,
    kept: &mut Option<Yard>,
) -> Result<Option<Call>> {
    for _ in 0..TRIES {
        let mut yard = kept.take().map_or_else(|| Yard::new(program, way), Ok)?;
        let traced = yard.traced(role, when, &mut |at, _| at == number)?;
        ensure!(!traced.hung, "the merge did not end");
        let told =
            || traced.killed.as_ref().map_or_else(|| "without a kill".into(), |call| format!("at {call}"));
        yard.after_kill(program).with_context(told)?;
        yard.again(program).with_context(told)?;
        yard.back().with_context(told)?;
        *kept = Some(yard);
        if traced.killed.is_some() {
            return Ok(traced.killed);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
