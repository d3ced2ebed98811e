//! A model that makes the same call again and again and gets the same result: first the model is told, then
//! the turn pauses. A call that fails is stopped soonest, and a command last: a model may wait for something
//! by it.

use bailey_kernel::Observation;
use bailey_protocol::{Digest, ToolCall};
use bailey_tools::Toolbox;
use std::collections::BTreeMap;

/// How a call ended, as far as it matters for a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Failed,
    Read,
    /// It may have changed something.
    Changed,
}

impl Class {
    /// At how many calls the model is told, and at how many the turn pauses.
    fn limits(self) -> (u32, u32) {
        match self {
            Self::Failed => (3, 5),
            Self::Read => (5, 15),
            Self::Changed => (10, 30),
        }
    }
}

/// Calls by tool and arguments: each with its last result, and how often it came one after the other since
/// something else was changed.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    seen: BTreeMap<(String, String), (Digest, u32)>,
}

/// The consequence of a repetition.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Repetition {
    /// The model is told this.
    Tell(String),
    /// The turn pauses: this tool was called so often.
    Pause(String, u32),
}

impl Repeats {
    /// Takes up the results of one step. A reply that makes the same call several times makes it once here.
    pub(crate) fn take(
        &mut self,
        tools: &Toolbox,
        calls: &[ToolCall],
        results: &[Observation],
    ) -> Option<Repetition> {
        let mut step = BTreeMap::new();
        for (call, result) in calls.iter().zip(results) {
            let class = match result.is_ok() {
                false => Class::Failed,
                true if changes(tools, call) => Class::Changed,
                true => Class::Read,
            };
            let key = (call.name.clone(), call.arguments.clone());
            if class == Class::Changed {
                // After a change another call may come to something else.
                self.seen.retain(|seen, _| *seen == key);
            }
            step.insert(key, (class, Digest::of(result.text().as_bytes())));
        }
        let mut worst = None;
        for (key, (class, result)) in step {
            let tool = key.0.clone();
            let (before, times) = self.seen.entry(key).or_insert((result, 0));
            *times = if *before == result { *times + 1 } else { 1 };
            *before = result;
            let (told, stopped) = class.limits();
            worst = worst.max(match *times {
                times if times == told => Some((1, times, class, tool)),
                times if times >= stopped => Some((2, times, class, tool)),
                _ => None,
            });
        }
        let (rank, times, class, tool) = worst?;
        if rank == 2 {
            self.seen.clear();
            return Some(Repetition::Pause(tool, times));
        }
        let advice = match class {
            Class::Failed => "it failed each time in the same way. It will fail again.",
            Class::Read => "it brought the same each time. You have that result already.",
            Class::Changed => {
                "it brought the same each time. If you wait for something, wait longer in one command."
            }
        };
        Some(Repetition::Tell(format!(
            "you made the same call of `{tool}` {times} times, and {advice} Do something else, or say what is missing."
        )))
    }
}

/// Whether a call may have changed something.
fn changes(tools: &Toolbox, call: &ToolCall) -> bool {
    let kinds = tools.find(&call.name).and_then(|tool| tool.kinds());
    kinds.is_none_or(|kinds| kinds.iter().any(|kind| !kind.is_read()))
}
