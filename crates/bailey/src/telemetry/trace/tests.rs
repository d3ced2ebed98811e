use super::{OPEN_ENTRIES_MAX, Trace};
use crate::{
    compose,
    config::Config,
    telemetry::{Span, Totals, Word},
};
use bailey_journal::{Recorded, Stored};
use bailey_protocol::WsPath;
use serde_json::{Value, json};

const ONE: &str = "01a20ca3-b062-7cd9-9d1a-aed080c0f301";
const TWO: &str = "01a20ca3-b062-7cd9-9d1a-aed080c0f302";
const FORK: &str = "01a20ca3-b062-7cd9-9d1a-aed080c0f303";
const FIRST: &str = "01a20ca3-b062-7cd9-9d1a-aed080c0f401";
const SECOND: &str = "01a20ca3-b062-7cd9-9d1a-aed080c0f402";
const MODEL: &str = "01a20ca3-b062-7cd9-9d1a-aed080c0f501";
const SUMMARY: &str = "01a20ca3-b062-7cd9-9d1a-aed080c0f502";
const SERVER: &str = "01a20ca3-b062-7cd9-9d1a-aed080c0f503";
const QUESTION: &str = "01a20ca3-b062-7cd9-9d1a-aed080c0f601";

/// An entry, at as many milliseconds as its number says.
fn entry(seq: u64, session: &str, effect: Option<&str>, fact: Value) -> Recorded {
    at(seq, seq, session, effect, fact)
}

fn at(seq: u64, ms: u64, session: &str, effect: Option<&str>, mut fact: Value) -> Recorded {
    let labels = json!({ "integrity": "owner", "secrecy": "private", "sources": [] });
    let payload = fact.as_object_mut().unwrap().remove("says");
    let time = format!("2026-01-01T00:00:{:02}.{:03}Z", ms / 1000 % 60, ms % 1000);
    let rest = json!({
        "v": 1, "seq": seq.to_string(), "time": time, "session": session, "effect": effect, "payload": null,
        "labels": labels, "digest": "0".repeat(64), "reasons": [], "target": "test/model", "admitted": "allowed",
        "approval": QUESTION, "purpose": "act", "call": null, "parent": null, "role": "agent",
        "reserved": { "tokens": "0" }, "used": { "tokens": "7" }, "status": "done", "exit": null, "enforced": null,
        "duration_ms": 1, "redacted": 0
    });
    let mut whole = rest.as_object().unwrap().clone();
    whole.extend(fact.as_object().unwrap().clone());
    let entry: Stored = serde_json::from_value(whole.into()).unwrap();
    Recorded { entry, payload: payload.map(|says| says.to_string().into_bytes()) }
}

fn reply(calls: &[&str]) -> Value {
    let calls: Vec<Value> =
        calls.iter().map(|id| json!({ "id": id, "name": "command_run", "arguments": "" })).collect();
    let usage = json!({ "input_tokens": "11", "output_tokens": "3" });
    let says = json!({ "text": "words", "calls": calls, "stop": "calls", "usage": usage, "verbatim": {} });
    json!({ "type": "reply", "provider": "test", "model": "model", "says": says })
}

/// Two sessions at once: a server that outlives its turn, a call that waits for a human, a fork, and a turn that nobody ends.
fn journal() -> Vec<Recorded> {
    let accepted = |turn| json!({ "type": "accepted", "turn": turn });
    let ended = |turn| json!({ "type": "turn_ended", "turn": turn, "reason": "answered" });
    let seen = |call, waits: Option<&str>| json!({ "type": "observation", "call": call, "tool": "command_run", "ok": true, "waits": waits });
    let forked = json!({ "type": "session_forked", "from": ONE, "at": "9", "workspace": "/w", "principal": "p", "model": "m" });
    vec![
        entry(1, ONE, None, accepted(FIRST)),
        entry(2, ONE, Some(MODEL), json!({ "type": "intent", "kind": "model", "approval": null })),
        entry(3, ONE, Some(MODEL), json!({ "type": "outcome" })),
        entry(4, ONE, None, reply(&["a", "b"])),
        entry(
            5,
            ONE,
            Some(SERVER),
            json!({ "type": "intent", "kind": "exec", "approval": null, "call": "a" }),
        ),
        entry(6, ONE, None, json!({ "type": "asked", "call": "b" })),
        entry(7, ONE, None, seen("b", Some(QUESTION))),
        entry(8, ONE, None, seen("a", None)),
        entry(9, ONE, None, ended(FIRST)),
        entry(10, TWO, None, accepted(SECOND)),
        entry(11, TWO, Some(SUMMARY), json!({ "type": "intent", "kind": "model", "approval": null })),
        entry(12, ONE, Some(SERVER), json!({ "type": "outcome", "exit": 0 })),
        // Its reply is a summary, which has no counts of its own.
        entry(13, TWO, Some(SUMMARY), json!({ "type": "outcome" })),
        at(14, 14, FORK, None, forked),
        at(15, 14, FORK, None, accepted(FIRST)),
        at(16, 14, FORK, None, reply(&["a", "b"])),
        at(17, 14, FORK, None, seen("a", None)),
        entry(18, ONE, None, json!({ "type": "answered", "answer": "yes", "by": "owner" })),
        entry(19, ONE, None, accepted(SECOND)),
        entry(20, ONE, None, seen("b", None)),
        entry(21, ONE, None, ended(SECOND)),
        entry(22, FORK, None, accepted(FIRST)),
        entry(23, FORK, None, ended(FIRST)),
    ]
}

fn trace() -> Trace {
    Trace::new(compose::toolbox(&Config::default(), &WsPath("/".into())))
}

/// Reads entries to the end of a journal that holds no more.
fn read(trace: &mut Trace, entries: &[Recorded]) -> Vec<(u64, Span)> {
    let mut ended = Vec::new();
    entries.iter().for_each(|recorded| trace.take(recorded, &mut ended));
    trace.rest(&mut ended);
    ended
}

#[test]
fn each_thing_is_a_span_and_hangs_where_it_began() {
    let spans = read(&mut trace(), &journal());
    let told: Vec<(u64, String, i64, bool)> = spans
        .iter()
        .map(|(seq, span)| {
            let ms = span.ended.as_millisecond() - span.begun.as_millisecond();
            (*seq, span.title(), ms, span.parent.is_none())
        })
        .collect();
    let expected = [
        (4, "chat model", 1, false),
        (8, "execute_tool command.run", 4, false),
        (9, "invoke_agent", 8, true),
        (12, "exec", 7, false),
        (13, "chat model", 2, false),
        (18, "wait_for_human", 12, false),
        (20, "execute_tool command.run", 16, false),
        (21, "invoke_agent", 2, true),
        (23, "invoke_agent", 1, true),
    ];
    let expected = expected.map(|(seq, name, ms, is_root)| (seq, name.to_owned(), ms, is_root));
    assert_eq!(told, expected);
    let by_name = |seq: u64| &spans.iter().find(|(at, _)| *at == seq).unwrap().1;
    // The server ends in nobody's turn, and belongs to the one that began it.
    assert_eq!((by_name(12).trace, by_name(12).parent), (by_name(9).trace, Some(by_name(8).id)));
    assert_eq!((by_name(20).trace, by_name(18).parent), (by_name(9).trace, Some(by_name(20).id)));
    assert_ne!(by_name(23).trace, by_name(9).trace);
}

#[test]
fn what_is_said_while_a_turn_runs_joins_it() {
    let accepted = |turn| json!({ "type": "accepted", "turn": turn });
    let ended = json!({ "type": "turn_ended", "turn": FIRST, "reason": "answered" });
    let said = [
        entry(1, ONE, None, accepted(FIRST)),
        entry(2, ONE, None, accepted(SECOND)),
        entry(3, ONE, None, ended),
    ];
    let told = |entries: &[Recorded]| -> Vec<(u64, bool)> {
        let spans = read(&mut trace(), entries);
        spans
            .iter()
            .map(|(seq, span)| (*seq, span.attributes.iter().any(|(name, _)| *name == "error.type")))
            .collect()
    };
    assert_eq!(told(&said), [(3, false)]);
    // The control: one that nobody went on with was cut off.
    let resumed = json!({ "type": "session_resumed", "model": "test/model" });
    let said = [said[0].clone(), entry(2, ONE, None, resumed), entry(3, ONE, None, accepted(SECOND))];
    assert_eq!(told(&said), [(3, true)]);
}

/// Whoever is killed after any entry, and goes on where the oldest of what was open hangs from, tells the rest: nothing twice, and
/// nothing less.
#[test]
fn what_was_told_is_not_told_again() {
    let entries = journal();
    let whole = read(&mut trace(), &entries);
    let counted = |mut totals: Totals, spans: &[(u64, Span)]| {
        spans.iter().for_each(|(_, span)| totals.add(span));
        totals
    };
    let in_all = counted(Totals::default(), &whole);
    for cut in 0..=entries.len() {
        // A transaction is read whole or not at all.
        if [3, 14, 15, 16].contains(&cut) {
            continue;
        }
        let mut before = trace();
        let mut told = read(&mut before, &entries[..cut]);
        let oldest = usize::try_from(before.oldest()).unwrap();
        assert!(oldest <= cut + 1);
        let noted = serde_json::to_string(&counted(Totals::default(), &told)).unwrap();
        let again = read(&mut trace(), &entries[oldest.saturating_sub(1)..]);
        let rest: Vec<(u64, Span)> = again.into_iter().filter(|(seq, _)| *seq > cut as u64).collect();
        assert_eq!(counted(serde_json::from_str(&noted).unwrap(), &rest), in_all, "cut after {cut}");
        told.extend(rest);
        assert_eq!(told, whole, "cut after {cut}, read again from {oldest}");
    }
}

#[test]
fn what_nobody_ends_is_not_waited_for_for_ever() {
    let mut trace = trace();
    read(&mut trace, &journal());
    // The turn of the second session began here.
    assert_eq!(trace.oldest(), 10);
    let late = entry(11 + OPEN_ENTRIES_MAX, ONE, None, json!({ "type": "stopped" }));
    read(&mut trace, &[late]);
    assert_eq!(trace.oldest(), 12 + OPEN_ENTRIES_MAX);
    assert!(trace.turns.is_empty());
}

#[test]
fn a_word_looks_like_a_name() {
    let is_one = |text: &str| Word::of(text).as_str() == text;
    for name in ["fs.read", "qwen3-coder:30b", "anthropic/claude-sonnet-5-5", "01a20ca3-b062"] {
        assert!(is_one(name), "{name}");
    }
    for other in ["", "two words", "a;b", "line\nbreak", "ключ", "\u{1b}[31m", "a".repeat(97).as_str()] {
        assert_eq!(Word::of(other).as_str(), "_OTHER", "{other}");
    }
}
