//! What must hold after a kill, and after the session went on to its end.

#![expect(clippy::indexing_slicing, reason = "an index into JSON that is not there is null")]

use super::stage::{AFTER, BEFORE, Stage, TASK, Told};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use std::{
    collections::HashMap,
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// How long processes may take to end after their runtime was killed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Right after a kill: nothing of the run is left but files, and each file of the project is a whole one.
pub(super) fn after_kill(stage: &Stage, program: &Path) -> Result<()> {
    nothing_left(stage, program)?;
    is_whole(stage)
}

/// Each file of the project is a whole one.
pub(super) fn is_whole(stage: &Stage) -> Result<()> {
    let notes = stage.file("notes").context("the project's `notes` is gone")?;
    ensure!(notes == BEFORE || notes == AFTER, "the project's `notes` is neither old nor new: {notes:?}");
    let marks = stage.file("marks");
    let whole = stage.layer_marks();
    let is_whole = marks.as_ref().is_none_or(|marks| *marks == whole);
    ensure!(is_whole, "the project's `marks` is {marks:?}, in the session it is {whole:?}");
    Ok(())
}

/// After the session went on: nothing was lost, nothing was done twice, nothing was kept from the model.
pub(super) fn after_resume(stage: &Stage, program: &Path, printed: &str) -> Result<()> {
    stage.verify().context("the chain does not hold")?;
    let effects = Effects::read(&stage.trail()?);
    let told = stage.told()?;
    accepted(stage, printed, &told)?;
    let marks = stage.layer_marks();
    effects.check_marks(&marks)?;
    effects.check_told(&told)?;
    let answered = ["edit", "first", "second"]
        .iter()
        .all(|step| told.results.iter().any(|(name, _)| name.starts_with(step)));
    ensure!(answered, "the session did not come to its end: the model was told of {:?}", told.results);
    ensure!(stage.file("notes").as_deref() == Some(AFTER), "`notes` did not reach the project");
    ensure!(stage.file("marks").as_deref() == Some(marks.as_str()), "`marks` did not reach the project");
    let mut names: Vec<_> = fs::read_dir(stage.project())?.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    ensure!(names == ["marks", "notes"], "the project holds {names:?}");
    nothing_left(stage, program)
}

/// What was accepted is in the journal and before the model, once.
fn accepted(stage: &Stage, printed: &str, told: &Told) -> Result<()> {
    let was_accepted = printed
        .lines()
        .any(|line| serde_json::from_str::<Value>(line).is_ok_and(|event| event["type"] == "accepted"));
    let in_journal = stage
        .transcript()?
        .iter()
        .filter(|shown| shown["entry"]["type"] == "accepted" && shown["payload"] == TASK)
        .count();
    ensure!(in_journal == 1 || !was_accepted, "the accepted message is {in_journal} times in the journal");
    let before_model = told.said.iter().filter(|text| *text == TASK).count();
    ensure!(before_model == 1, "the model was told the task {before_model} times");
    Ok(())
}

/// How an effect ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Nobody wrote how.
    None,
    Done,
    /// A command that was killed by itself, without its sandbox, ended so.
    Failed,
    Unknown,
}

/// The effects that calls came to, by the call's name.
struct Effects {
    acts: HashMap<String, End>,
}

impl Effects {
    fn read(trail: &[Value]) -> Self {
        let mut acts = HashMap::new();
        let mut calls = HashMap::new();
        for entry in trail {
            let effect = entry["effect"].to_string();
            if entry["type"] == "intent" && entry["purpose"] == "act" {
                let call = entry["call"].as_str().unwrap_or_default().to_owned();
                acts.insert(call.clone(), End::None);
                calls.insert(effect, (call, entry["kind"] == "exec"));
            } else if entry["type"] == "outcome"
                && let Some((call, is_command)) = calls.get(&effect)
            {
                let end = match entry["status"].as_str() {
                    Some("done") if !is_command || entry["exit"] == 0 => End::Done,
                    Some("unknown") => End::Unknown,
                    _ => End::Failed,
                };
                acts.insert(call.clone(), end);
            }
        }
        Self { acts }
    }

    /// Every line that a command wrote has an intent and is there once; every finished command wrote its
    /// line.
    fn check_marks(&self, marks: &str) -> Result<()> {
        let mut lines: HashMap<&str, usize> = HashMap::new();
        marks.lines().for_each(|line| *lines.entry(line).or_default() += 1);
        for (line, count) in &lines {
            ensure!(
                self.acts.contains_key(*line),
                "`{line}` was done, and the journal knows of no such effect"
            );
            ensure!(*count == 1, "`{line}` was done {count} times");
        }
        let done = self.acts.iter().filter(|(_, end)| **end == End::Done);
        for (call, _) in done.filter(|(call, _)| !call.starts_with("edit")) {
            ensure!(lines.contains_key(call.as_str()), "`{call}` counts as done, and its line is not there");
        }
        Ok(())
    }

    /// Every call has a result; of an effect that was cut, the model knows that it may have happened.
    fn check_told(&self, told: &Told) -> Result<()> {
        for (call, result) in &told.results {
            let Some((ok, text)) = result else { bail!("the call `{call}` has no result") };
            match self.acts.get(call) {
                Some(End::Unknown) => {
                    ensure!(
                        text.contains("may have happened"),
                        "of `{call}`, which was cut, the model was told: {text}"
                    );
                }
                Some(End::Done) => ensure!(ok, "of `{call}`, which was done, the model was told: {text}"),
                Some(End::None) => bail!("`{call}` was begun and has no outcome"),
                Some(End::Failed) | None => {
                    ensure!(!ok, "of `{call}`, which was not done, the model was told: {text}")
                }
            }
        }
        Ok(())
    }
}

/// No process of the program's lives, and nothing is mounted below the folder.
pub(super) fn nothing_left(stage: &Stage, program: &Path) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = processes(program);
        if left.is_empty() {
            break;
        }
        ensure!(Instant::now() < deadline, "processes are left: {left:?}");
        thread::sleep(Duration::from_millis(2));
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let folder = stage.folder().display().to_string();
    ensure!(!mounts.contains(&folder), "something is still mounted below {folder}");
    Ok(())
}

/// Who executes this file. What a sandbox executed besides ends with its init, which does.
pub(super) fn processes(program: &Path) -> Vec<u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ours = all.filter(|entry| fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == program));
    ours.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}
