//! The events since a turn began, for front ends that connect later. They are kept as they came. When they
//! become too many, consecutive pieces of the model's text or of a command's output are joined into longer
//! pieces. When that is still too much, the oldest events go. Two kinds of events always stay: that the
//! session works, and the open questions to a human.

use bailey_protocol::{ApprovalId, CallId, Happening};
use serde_json::Value;
use std::{collections::VecDeque, sync::Arc};

/// How many lines, and bytes of them, are kept.
const LINES_MAX: usize = 2048;
const BYTES_MAX: usize = 4 << 20;
/// The longest line that is kept, where it may go: a file or a diff that is longer is not told again.
const LINE_BYTES_MAX: usize = 1 << 20;
/// The largest size of a joined piece, in bytes of its lines.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// The lines of a turn, in order.
#[derive(Default)]
pub(super) struct TurnEvents {
    lines: VecDeque<KeptEvent>,
    bytes: usize,
}

struct KeptEvent {
    text: Arc<str>,
    what: LineKind,
}

/// The kind of a line, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
enum LineKind {
    /// The session works.
    Begin,
    /// A question that is open.
    Open(ApprovalId),
    /// A piece of the model's words.
    Words,
    /// A piece of a command's output.
    Output(CallId),
    Rest,
}

impl LineKind {
    fn of(happening: &Happening) -> Self {
        match happening {
            Happening::Accepted { .. } | Happening::GoingOn => Self::Begin,
            Happening::Ask { id, .. } => Self::Open(*id),
            Happening::Text { .. } => Self::Words,
            Happening::Output { call, .. } => Self::Output(call.clone()),
            _ => Self::Rest,
        }
    }

    fn may_go(&self) -> bool {
        !matches!(self, Self::Begin | Self::Open(_))
    }
}

impl TurnEvents {
    /// Forgets the turn before, but not the questions that are still open.
    pub(super) fn clear(&mut self) {
        self.lines.retain(|line| matches!(line.what, LineKind::Open(_)));
        self.bytes = self.lines.iter().map(|line| line.text.len()).sum();
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = &Arc<str>> {
        self.lines.iter().map(|line| &line.text)
    }

    pub(super) fn push(&mut self, text: Arc<str>, happening: &Happening) {
        if let Happening::Answered { id, .. } = happening {
            // The question is not asked any more. The answer stays for front ends that were asked and then
            // cut off.
            let mut gone = 0;
            self.lines.retain(|line| {
                let is_asked = line.what == LineKind::Open(*id);
                gone += if is_asked { line.text.len() } else { 0 };
                !is_asked
            });
            self.bytes -= gone;
        }
        let what = LineKind::of(happening);
        if what.may_go() && text.len() > LINE_BYTES_MAX {
            return;
        }
        self.bytes += text.len();
        self.lines.push_back(KeptEvent { text, what });
        if self.is_full() {
            self.join();
        }
        while self.is_full() {
            // In one turn, people do not write so many messages and are not asked so many questions. Events
            // that a front end misses are in the journal.
            let oldest = self.lines.iter().position(|line| line.what.may_go()).unwrap_or(0);
            let Some(gone) = self.lines.remove(oldest) else { return };
            self.bytes -= gone.text.len();
        }
    }

    fn is_full(&self) -> bool {
        self.lines.len() > LINES_MAX || self.bytes > BYTES_MAX
    }

    /// Joins pieces that follow each other into fewer lines.
    fn join(&mut self) {
        let mut runs: Vec<Vec<KeptEvent>> = Vec::new();
        let mut bytes = 0;
        for line in self.lines.drain(..) {
            let is_piece = matches!(line.what, LineKind::Words | LineKind::Output(_));
            match runs.last_mut() {
                Some(run)
                    if is_piece
                        && run.last().is_some_and(|last| last.what == line.what)
                        && bytes + line.text.len() <= PIECE_BYTES_MAX =>
                {
                    bytes += line.text.len();
                    run.push(line);
                }
                _ => {
                    bytes = line.text.len();
                    runs.push(vec![line]);
                }
            }
        }
        self.lines = runs.into_iter().flat_map(one).collect();
        self.bytes = self.lines.iter().map(|line| line.text.len()).sum();
    }
}

/// Joins pieces into one, in the place of the last piece. The result names the line of its first piece: a
/// front end that has only some of the pieces cannot continue with it.
fn one(mut run: Vec<KeptEvent>) -> Vec<KeptEvent> {
    let read = |line: &KeptEvent| serde_json::from_str::<Value>(&line.text).ok();
    let all: Option<Vec<Value>> = (run.len() > 1).then(|| run.iter().map(read).collect()).flatten();
    let Some(all) = all else { return run };
    let words: String =
        all.iter().filter_map(|event| event.get("text").and_then(Value::as_str)).collect::<Vec<_>>().concat();
    let from = all.first().and_then(|first| first.get("from").or_else(|| first.get("line"))).cloned();
    let (Some(mut event), Some(last)) = (all.into_iter().next_back(), run.pop()) else { return run };
    if let Some(text) = event.get_mut("text") {
        *text = words.into();
    }
    if let (Some(event), Some(from)) = (event.as_object_mut(), from) {
        event.insert("from".into(), from);
    }
    vec![KeptEvent { text: format!("{event}\n").into(), what: last.what }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use bailey_protocol::{Answer, Card};
    use serde_json::json;

    fn put(kept: &mut TurnEvents, happening: &Happening) {
        let line = serde_json::to_string(happening).unwrap() + "\n";
        kept.push(line.into(), happening);
    }

    fn events(kept: &TurnEvents) -> Vec<Happening> {
        kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_long_answer_is_kept_whole_and_with_it_what_is_open() {
        let mut kept = TurnEvents::default();
        let card = json!({ "title": "deploy", "reasons": [], "parts": [], "caveats": [] });
        let card: Card = serde_json::from_value(card).unwrap();
        let (open, over) = (ApprovalId::new([1; 16]), ApprovalId::new([2; 16]));
        put(&mut kept, &Happening::Accepted { key: None });
        for id in [open, over] {
            put(&mut kept, &Happening::Ask { id, call: None, card: card.clone() });
        }
        put(&mut kept, &Happening::Answered { id: over, answer: Answer::No, why: String::new() });
        // A front end that connects now is not asked again; one that was asked is told that the question is
        // answered.
        assert!(matches!(
            &events(&kept)[..],
            [Happening::Accepted { .. }, Happening::Ask { id, .. }, Happening::Answered { id: told, .. }]
                if *id == open && *told == over
        ));
        let pieces: Vec<String> = (0..20_000).map(|number| format!("{number} ")).collect();
        for text in &pieces {
            put(&mut kept, &Happening::Text { text: text.clone() });
        }
        let told = events(&kept);
        let words: String = told
            .iter()
            .filter_map(|it| if let Happening::Text { text } = it { Some(&**text) } else { None })
            .collect();
        assert_eq!(words, pieces.concat());
        assert!(told.len() <= LINES_MAX, "{}", told.len());

        // Lines that cannot be joined go, the oldest first.
        for number in 0..LINES_MAX {
            put(&mut kept, &Happening::Notice { text: number.to_string() });
        }
        let told = events(&kept);
        assert_eq!(told.len(), LINES_MAX);
        assert!(matches!(told.first(), Some(Happening::Accepted { .. })));
        let asked =
            told.iter().filter_map(|it| if let Happening::Ask { id, .. } = it { Some(*id) } else { None });
        assert_eq!(asked.collect::<Vec<_>>(), [open]);
        assert!(kept.bytes <= BYTES_MAX && kept.bytes == kept.lines().map(|line| line.len()).sum::<usize>());
    }

    #[test]
    fn pieces_that_were_put_together_say_where_they_begin() {
        let mut kept = TurnEvents::default();
        let put = |kept: &mut TurnEvents, line: usize, happening: &Happening| {
            let mut event = serde_json::to_value(happening).unwrap();
            event["line"] = line.into();
            kept.push(format!("{event}\n").into(), happening);
        };
        put(&mut kept, 1, &Happening::Accepted { key: None });
        // Joining happens more than once, also with pieces that were joined before.
        let last = 3 * LINES_MAX;
        for line in 2..=last {
            put(&mut kept, line, &Happening::Text { text: format!("{line} ") });
        }
        let lines: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut next = 1;
        for event in &lines {
            let line = event["line"].as_u64().unwrap();
            assert_eq!(event["from"].as_u64().unwrap_or(line), next, "{event}");
            let words: Vec<u64> = event["text"]
                .as_str()
                .unwrap_or_default()
                .split_whitespace()
                .map(|it| it.parse().unwrap())
                .collect();
            assert!(
                words.is_empty() || words == (next..=line).collect::<Vec<_>>(),
                "{next}..={line}: {words:?}"
            );
            next = line + 1;
        }
        assert_eq!(next, last as u64 + 1);
        // The control: a line of one piece begins at its own number.
        assert!(lines[0].get("from").is_none() && lines.last().unwrap().get("from").is_none());
        assert!(lines[1].get("from").is_some());
    }

    #[test]
    fn what_two_commands_print_stays_apart() {
        let mut kept = TurnEvents::default();
        for number in 0..LINES_MAX + 10 {
            let call = if number % 1000 < 500 { "a" } else { "b" };
            put(&mut kept, &Happening::Output { call: CallId(call.into()), text: call.to_owned() });
        }
        for it in events(&kept) {
            let Happening::Output { call, text } = it else { panic!("{it:?}") };
            assert!(text.chars().all(|letter| call.0 == letter.to_string()), "{call:?}: {text}");
        }
    }
}
