//! The control: a program that writes a command's intent after the command was begun.
//!
//! The released program cannot: a permit comes out of the transaction that writes the intent, and without one
//! there is nothing to perform. `bailey-controls` is the same program with that one promise broken: it
//! commits the intent of a command some time after the permit is out. Both are killed at the first write to
//! the log that comes when the command's line is in the layer: of the released program the check holds, of
//! the other it must not.

use super::{
    Build, Program, check,
    stage::Stage,
    trace::{Role, When},
};
use anyhow::{Context as _, Result, bail, ensure};
use std::fs;

/// Obeyed by `bailey-controls` alone.
const BREACH: (&str, &str) = ("BAILEY_CONTROL_JOURNAL", "late");
/// What the check must say, and nothing else will do.
const NOTICED: &str = "`first-1` was done, and the journal knows of no such effect";
/// How often the command may be slower than the late commit.
const TRIES: usize = 3;

/// Runs the control; the error that the check gave.
pub(super) fn run(program: &Program, build: Build) -> Result<String> {
    let breaking = Program::build(Build { controls: true, ..build })?;
    ensure!(
        !knows_breach(program)? && knows_breach(&breaking)?,
        "`{}` must be known to the program for tests, and to no other",
        BREACH.0
    );
    let stage = Stage::new(&program.path)?.with(BREACH);
    killed_after_effect(&stage, program)?;
    ensure!(intent_is_there(&stage)?, "the intent of a command that was done is not in the journal");
    stage.resume()?;
    check::after_resume(&stage, &program.path, &stage.printed()).context("the released program")?;
    for _ in 0..TRIES {
        let stage = Stage::new(&breaking.path)?.with(BREACH);
        killed_after_effect(&stage, &breaking)?;
        if intent_is_there(&stage)? {
            continue;
        }
        return match stage
            .resume()
            .and_then(|_| check::after_resume(&stage, &breaking.path, &stage.printed()))
        {
            Ok(()) => bail!("the intent was not written before the effect, and the check did not see it"),
            Err(error) if format!("{error:#}").contains(NOTICED) => Ok(format!("{error:#}")),
            Err(error) => Err(error.context("the check failed for another reason")),
        };
    }
    bail!("in {TRIES} runs each command took longer than its intent is late, so this shows nothing")
}

fn knows_breach(program: &Program) -> Result<bool> {
    let bytes = fs::read(&program.path)?;
    Ok(bytes.windows(BREACH.0.len()).any(|window| window == BREACH.0.as_bytes()))
}

fn killed_after_effect(stage: &Stage, program: &Program) -> Result<()> {
    let traced = stage.traced(Role::Main, When::Before, &mut |_, call| {
        call.is_database_write() && call.file.ends_with("-wal") && stage.layer_marks().contains("first-1")
    })?;
    ensure!(traced.killed.is_some(), "the run ended before its command's line was in the layer");
    check::after_kill(stage, &program.path)
}

fn intent_is_there(stage: &Stage) -> Result<bool> {
    let trail = stage.trail()?;
    let intent = |entry: &serde_json::Value| {
        entry["type"] == "intent" && entry["call"] == "first-1" && entry["purpose"] == "act"
    };
    Ok(trail.iter().any(intent))
}
