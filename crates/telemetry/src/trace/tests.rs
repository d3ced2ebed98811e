use super::{OPEN_ENTRIES_MAX, Trace};
use crate::{Span, Totals, Word};
use bailey_home::config::Config;
use bailey_journal::{Recorded, Stored};
use bailey_kernel::Standpoint;
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

/// Two sessions at once: a server that outlives its turn, a call that waits for a human, a fork, and a turn
/// that never ends.
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
    Trace::new(Config::default().toolbox(&WsPath("/".into()), &Standpoint::default()))
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
    // The server ends outside any turn, and belongs to the turn that began it.
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
    // The control: a turn that no process went on with was cut off.
    let resumed = entry(2, ONE, None, json!({ "type": "session_resumed", "model": "test/model" }));
    assert_eq!(told(&[said[0].clone(), resumed.clone(), entry(3, ONE, None, accepted(SECOND))]), [(3, true)]);
    // A turn that a process went on with runs.
    let ended = json!({ "type": "turn_ended", "turn": FIRST, "reason": "answered" });
    let goes_on = [
        said[0].clone(),
        resumed,
        entry(3, ONE, Some(MODEL), json!({ "type": "intent", "kind": "model", "approval": null })),
        entry(4, ONE, None, accepted(SECOND)),
        entry(5, ONE, Some(MODEL), json!({ "type": "outcome" })),
        entry(6, ONE, None, reply(&[])),
        entry(7, ONE, None, ended),
    ];
    assert_eq!(told(&goes_on), [(6, false), (7, false)]);
}

/// Labels with these entries as their sources.
fn of(sources: &[u64]) -> Value {
    let sources: Vec<String> = sources.iter().map(u64::to_string).collect();
    json!({ "integrity": "owner", "secrecy": "private", "sources": sources })
}

fn gives(calls: &[&str]) -> Value {
    let mut reply = reply(calls);
    reply["says"]["calls"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .for_each(|call| call["name"] = "agent_run".into());
    reply
}

fn delegated(sources: &[u64]) -> Value {
    let parent = json!({ "session": ONE, "part": "5" });
    json!({ "type": "delegated", "parent": parent, "token": "0".repeat(32), "workspace": "/w", "model": "m", "labels": of(sources) })
}

fn seen(call: &str, ok: bool, sources: &[u64]) -> Value {
    json!({ "type": "observation", "call": call, "tool": "command_run", "ok": ok, "labels": of(sources) })
}

/// The reason why a span failed.
fn error(span: &Span) -> Option<&str> {
    span.word("error.type").map(Word::as_str)
}

#[test]
fn a_sub_agent_hangs_beneath_its_own_call_of_several() {
    let accepted = json!({ "type": "accepted", "turn": FIRST });
    // The sources of each result name the last words that it is made of. They are empty if the result does
    // not say.
    let beneath = |first: &[u64], second: &[u64]| {
        let entries = [
            entry(1, ONE, None, accepted.clone()),
            entry(2, ONE, None, gives(&["a", "b"])),
            entry(3, TWO, None, delegated(&[2])),
            entry(4, FORK, None, delegated(&[2])),
            entry(5, TWO, None, reply(&[])),
            entry(6, FORK, None, reply(&[])),
            entry(7, ONE, None, seen("a", true, first)),
            entry(8, ONE, None, seen("b", true, second)),
        ];
        let spans = read(&mut trace(), &entries);
        let tool =
            |seq| spans.iter().find(|(at, span)| *at == seq && span.name == "execute_tool").unwrap().1.id;
        let [a, b] = [tool(7), tool(8)];
        let above = |session: &str| {
            let is_it = |span: &&Span| span.name == "invoke_agent" && span.session.to_string() == session;
            let parent = spans.iter().map(|(_, span)| span).find(is_it).unwrap().parent.unwrap();
            if parent == a {
                "a"
            } else {
                assert_eq!(parent, b);
                "b"
            }
        };
        [above(TWO), above(FORK)]
    };
    assert_eq!(beneath(&[2, 5], &[2, 6]), ["a", "b"]);
    assert_eq!(beneath(&[2, 6], &[2, 5]), ["b", "a"]);
    // The control: if nothing says it, the sub-agent that began first belongs to the first call.
    assert_eq!(beneath(&[], &[]), ["a", "b"]);
}

#[test]
fn what_a_sub_agent_was_refused_is_its_own() {
    let denied =
        |sources: &[u64]| json!({ "type": "denied", "kind": "exec", "call": "a", "labels": of(sources) });
    let told = |of_denial: &[u64]| {
        let entries = [
            entry(1, ONE, None, json!({ "type": "accepted", "turn": FIRST })),
            // Both conversations use the same call id.
            entry(2, ONE, None, gives(&["a"])),
            entry(3, TWO, None, delegated(&[2])),
            entry(4, TWO, None, reply(&["a"])),
            entry(5, ONE, None, denied(of_denial)),
            entry(6, TWO, None, seen("a", false, &[4])),
            entry(7, ONE, None, seen("a", false, &[2, 4])),
        ];
        let spans = read(&mut trace(), &entries);
        let calls = spans.iter().filter(|(_, span)| span.name == "execute_tool");
        let errors: Vec<(u64, String)> =
            calls.map(|(at, span)| (*at, error(span).unwrap_or_default().to_owned())).collect();
        let decided = &spans.iter().find(|(_, span)| span.name == "decide").unwrap().1;
        (errors, decided.session.to_string())
    };
    let [denied, failed] = ["denied", "failed"].map(str::to_owned);
    assert_eq!(told(&[4]), (vec![(6, denied.clone()), (7, failed.clone())], TWO.to_owned()));
    // The control: a refused action of the parent belongs to the parent.
    assert_eq!(told(&[2]), (vec![(6, failed), (7, denied)], ONE.to_owned()));
}

#[test]
fn what_a_summary_took_is_told_and_counted() {
    let told = |usage: Value| {
        let mut summary = json!({ "type": "summary", "replaces": ["1"], "author": "test/model" });
        if !usage.is_null() {
            summary["usage"] = usage;
        }
        let entries = [
            entry(1, ONE, None, json!({ "type": "accepted", "turn": FIRST })),
            entry(2, ONE, Some(SUMMARY), json!({ "type": "intent", "kind": "model", "approval": null })),
            entry(3, ONE, Some(SUMMARY), json!({ "type": "outcome" })),
            entry(4, ONE, None, summary),
            entry(5, ONE, None, json!({ "type": "turn_ended", "turn": FIRST, "reason": "answered" })),
        ];
        let spans = read(&mut trace(), &entries);
        let counts = |name: &str| {
            spans.iter().find(|(_, span)| span.name == name).unwrap().1.count("gen_ai.usage.input_tokens")
        };
        (counts("chat"), counts("invoke_agent"))
    };
    assert_eq!(told(json!({ "input_tokens": "70", "output_tokens": "5" })), (Some(70), Some(70)));
    // The control: an older entry does not record it.
    assert_eq!(told(Value::Null), (None, Some(0)));
}

#[test]
fn what_nobody_works_at_any_more_ends_as_cut_off_and_what_waits_waits() {
    let accepted = |turn| json!({ "type": "accepted", "turn": turn });
    let exec = |call| json!({ "type": "intent", "kind": "exec", "approval": null, "call": call });
    let waits =
        json!({ "type": "observation", "call": "b", "tool": "command_run", "ok": true, "waits": QUESTION });
    let entries = [
        entry(1, ONE, None, accepted(FIRST)),
        entry(2, ONE, None, gives(&["a", "b"])),
        entry(3, ONE, None, json!({ "type": "asked", "call": "b" })),
        entry(4, ONE, None, waits),
        entry(5, TWO, None, delegated(&[2])),
        entry(6, TWO, None, reply(&["c"])),
        at(7, 7, ONE, Some(SERVER), {
            let mut exec = exec("c");
            exec["payer"] = TWO.into();
            exec
        }),
        entry(8, FORK, None, accepted(SECOND)),
    ];
    let left = |is_held: fn(String) -> bool| {
        let mut trace = trace();
        let mut ended = Vec::new();
        entries.iter().for_each(|recorded| trace.take(recorded, &mut ended));
        trace.rest(&mut ended);
        assert!(ended.is_empty(), "{ended:#?}");
        trace.cut_off(|session| is_held(session.to_string()), &mut ended);
        let told =
            |(seq, span): &(u64, Span)| (*seq, span.title(), error(span).unwrap_or_default().to_owned());
        let mut told: Vec<_> = ended.iter().map(told).collect();
        told.sort();
        told
    };
    let cut = |seq, title: &str| (seq, title.to_owned(), "cut_off".to_owned());
    // The spans end at the last entry of their session. The sub-agent's work ends there, too.
    let of_one = [
        cut(7, "exec"),
        cut(7, "execute_tool agent.run"),
        cut(7, "execute_tool command.run"),
        cut(7, "invoke_agent"),
        cut(7, "invoke_agent"),
    ];
    assert_eq!(left(|session| session != ONE), of_one);
    assert_eq!(left(|session| session != FORK), [cut(8, "invoke_agent")]);
    // The control: the work of a running process goes on.
    assert!(left(|_| true).is_empty());
}

/// A reader that is killed after any entry, and goes on from the oldest open span, tells the rest: no span
/// twice, and no span missing.
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
