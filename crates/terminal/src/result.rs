//! The result of a run for scripts: gathered from events, and printed at the end as one JSON object, or as
//! the answer alone.

use bailey_protocol::{Happening, Money, PathCount, SessionId, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};

/// The longest answer, in bytes; a longer one is cut.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// The result of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunResult {
    pub(crate) session: Option<SessionId>,
    /// How the turn ended, as [`Happening::End`] says it.
    end: String,
    error: Option<String>,
    /// The text of the last reply that called no tool.
    pub(crate) answer: String,
    /// The text of the reply that is being written.
    reply: String,
    usage: Usage,
    nanos: BTreeMap<String, u64>,
    unpriced_calls: u64,
    changes: Vec<PathCount>,
    commits: Vec<String>,
    applied: Vec<String>,
    conflicts: Vec<String>,
}

impl RunResult {
    pub(crate) fn take(&mut self, happening: &Happening) {
        match happening {
            Happening::Session { session, .. } => self.session = Some(*session),
            Happening::Text { text } => {
                let room = ANSWER_BYTES_MAX.saturating_sub(self.reply.len());
                self.reply.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or(text));
            }
            Happening::Usage { usage, cost, .. } => {
                self.spent(usage, cost.as_ref());
                // A summary of the context is a model call without text.
                if !self.reply.is_empty() {
                    self.answer = std::mem::take(&mut self.reply);
                }
            }
            // Words before a call are not the answer.
            Happening::Call { .. } => self.answer.clear(),
            Happening::Repeated { ended: Some(ended), text, .. } => {
                (self.end, self.answer) = (ended.clone(), text.clone());
            }
            Happening::End { reason, error, .. } => {
                (self.end, self.error) = (reason.clone(), error.clone());
            }
            Happening::Diff { counts, commits, .. } => {
                (self.changes, self.commits) = (counts.clone(), commits.clone());
            }
            Happening::Merged { direction, files, conflicts, .. } => {
                self.merged(direction, files);
                self.conflicts.clone_from(conflicts);
            }
            _ => {}
        }
    }

    fn spent(&mut self, usage: &Usage, cost: Option<&Money>) {
        let sum = |total: &mut u64, more: u64| *total = total.saturating_add(more);
        sum(&mut self.usage.input_tokens, usage.input_tokens);
        sum(&mut self.usage.output_tokens, usage.output_tokens);
        sum(&mut self.usage.cache_read_tokens, usage.cache_read_tokens);
        sum(&mut self.usage.cache_write_tokens, usage.cache_write_tokens);
        match cost {
            Some(Money { nanos, currency }) => sum(self.nanos.entry(currency.clone()).or_default(), *nanos),
            None => self.unpriced_calls += 1,
        }
    }

    /// Moves files between those that wait and those that the project has.
    fn merged(&mut self, direction: &str, files: &[String]) {
        let moved: HashSet<&str> = files.iter().map(String::as_str).collect();
        self.applied.retain(|path| !moved.contains(path.as_str()));
        if direction == "apply" {
            self.changes.retain(|change| !moved.contains(change.path.as_str()));
            self.applied.extend(files.iter().cloned());
        }
    }

    /// Notes an error that ended the run after its turn.
    pub(crate) fn failed(&mut self, error: &str) {
        self.error.get_or_insert_with(|| error.to_owned());
    }

    /// The number of files that are changed and not in the project.
    pub(crate) fn waiting(&self) -> usize {
        self.changes.len()
    }

    /// The object that ends `--json`.
    pub(crate) fn json(&self, exit: u8) -> Value {
        let money: Vec<Money> = self
            .nanos
            .iter()
            .map(|(currency, nanos)| Money { nanos: *nanos, currency: currency.clone() })
            .collect();
        json!({
            "v": 1,
            "type": "outcome",
            "exit": exit,
            "session": self.session,
            "end": self.end,
            "error": self.error,
            "answer": self.answer,
            "changes": self.changes,
            "commits": self.commits,
            "applied": self.applied,
            "conflicts": self.conflicts,
            "tokens": {
                "read": self.usage.input_tokens,
                "from_cache": self.usage.cache_read_tokens,
                "written": self.usage.output_tokens,
            },
            "money": money,
            "unpriced_calls": self.unpriced_calls,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::RunResult;
    use bailey_protocol::{CallId, Happening, Money, PathCount, Usage};

    fn text(text: &str) -> Happening {
        Happening::Text { text: text.into() }
    }

    fn usage(cost: Option<u64>) -> Happening {
        let usage = Usage { input_tokens: 10, output_tokens: 2, ..Usage::default() };
        let cost = cost.map(|nanos| Money { nanos, currency: "USD".into() });
        Happening::Usage { usage, cost, context: None }
    }

    fn call() -> Happening {
        Happening::Call {
            call: CallId("c1".into()),
            tool: "fs.read".into(),
            target: "a.txt".into(),
            own: false,
        }
    }

    fn result(happenings: &[Happening]) -> RunResult {
        let mut result = RunResult::default();
        happenings.iter().for_each(|happening| result.take(happening));
        result
    }

    #[test]
    fn the_answer_is_the_last_reply_and_not_the_words_before_a_call() {
        let look = [text("I look "), text("first"), usage(Some(5)), call()];
        assert_eq!(result(&look).answer, "");
        let all = [&look[..], &[text("It is "), text("done."), usage(None), usage(Some(7))]].concat();
        let result = result(&all);
        assert_eq!(result.answer, "It is done.", "a model call without text takes nothing away");
        let json = result.json(0);
        assert_eq!(json["tokens"]["read"], 30);
        assert_eq!(json["money"][0]["currency"], "USD");
        assert_eq!(
            (json["money"][0]["nanos"].clone(), json["unpriced_calls"].clone()),
            ("12".into(), 1.into())
        );
    }

    #[test]
    fn what_is_applied_waits_no_more() {
        let count = |path: &str| PathCount { path: path.into(), more: 1, less: 0, now: None };
        let diff: Happening = serde_json::from_value(serde_json::json!({
            "type": "diff", "diff": "", "files": ["a", "b"], "red": [], "reasons": [],
            "counts": [count("a"), count("b")],
        }))
        .unwrap();
        let merged = |direction: &str| {
            let (direction, files) = (direction.into(), vec!["a".to_owned()]);
            Happening::Merged { direction, files, conflicts: vec![], commits: vec![], stays: vec![] }
        };
        let applied = result(&[diff, merged("apply")]).json(0);
        assert_eq!(
            (applied["changes"][0]["path"].clone(), applied["applied"][0].clone()),
            ("b".into(), "a".into())
        );
        assert_eq!(applied["changes"].as_array().unwrap().len(), 1);
    }
}
