//! A model that makes the same failing call again and again: at the third time the model
//! is told, and at the fifth the turn pauses.

use bailey_kernel::Observation;
use bailey_protocol::{Digest, ToolCall};
use bailey_tools::Toolbox;
use std::collections::BTreeMap;

/// At so many failures of one call the model is told.
const TOLD: u32 = 3;
/// At so many the turn pauses.
const STOPPED: u32 = 5;

/// The calls that failed, and how often, since something was last changed.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// By tool and arguments: how the call failed, and how often in that way.
    failed: BTreeMap<(String, String), (Digest, u32)>,
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
        let mut failed = BTreeMap::new();
        for (call, result) in calls.iter().zip(results) {
            match result.is_ok() {
                false => {
                    failed.insert(
                        (call.name.clone(), call.arguments.clone()),
                        Digest::of(result.text().as_bytes()),
                    );
                }
                // After a change the same call may come to something else.
                true if changes(tools, call) => self.failed.clear(),
                true => drop(self.failed.remove(&(call.name.clone(), call.arguments.clone()))),
            }
        }
        let mut worst = None;
        for (key, how) in failed {
            let tool = key.0.clone();
            let (before, times) = self.failed.entry(key).or_insert((how, 0));
            *times = if *before == how { *times + 1 } else { 1 };
            *before = how;
            worst = worst.max(Some((*times, tool)));
        }
        let (times, tool) = worst?;
        match times {
            TOLD => Some(Repetition::Tell(format!(
                "you made the same call of `{tool}` {times} times, and it failed each time in the same way. It will fail \
                 again. Do something else, or say what is missing."
            ))),
            STOPPED => {
                self.failed.clear();
                Some(Repetition::Pause(tool, times))
            }
            _ => None,
        }
    }
}

/// Whether a call may have changed something.
fn changes(tools: &Toolbox, call: &ToolCall) -> bool {
    let kinds = tools.find(&call.name).and_then(|tool| tool.kinds());
    kinds.is_none_or(|kinds| kinds.iter().any(|kind| !kind.is_read()))
}
