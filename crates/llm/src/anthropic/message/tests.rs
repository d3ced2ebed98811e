use super::PartialMessage;
use crate::failure::Fault;
use bailey_kernel::{Completion, Delta, StopReason};
use bailey_protocol::Usage;
use serde_json::{Value, json};

/// The answer and every delta on the way.
fn read(events: &[Value]) -> Result<(Completion, Vec<Delta>), Fault> {
    let mut message = PartialMessage::default();
    let mut deltas = Vec::new();
    for event in events {
        deltas.extend(message.event(&event.to_string())?);
    }
    message.end().map(|answer| (answer, deltas))
}

fn start(index: u64, block: Value) -> Value {
    json!({ "type": "content_block_start", "index": index, "content_block": block })
}

fn piece(index: u64, delta: Value) -> Value {
    json!({ "type": "content_block_delta", "index": index, "delta": delta })
}

fn stop(reason: &str) -> [Value; 2] {
    [
        json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": 9 } }),
        json!({ "type": "message_stop" }),
    ]
}

fn full() -> Vec<Value> {
    let mut events = vec![
        json!({ "type": "message_start", "message": { "usage": { "input_tokens": 5, "cache_read_input_tokens": 20, "output_tokens": 1 } } }),
        json!({ "type": "ping" }),
        start(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
        piece(0, json!({ "type": "thinking_delta", "thinking": "let me " })),
        piece(0, json!({ "type": "thinking_delta", "thinking": "see" })),
        piece(0, json!({ "type": "signature_delta", "signature": "c2ln" })),
        json!({ "type": "content_block_stop", "index": 0 }),
        start(1, json!({ "type": "redacted_thinking", "data": "opaque" })),
        start(2, json!({ "type": "text", "text": "" })),
        piece(2, json!({ "type": "text_delta", "text": "I read " })),
        piece(2, json!({ "type": "text_delta", "text": "it." })),
        start(3, json!({ "type": "tool_use", "id": "t1", "name": "fs_read", "input": {} })),
        piece(3, json!({ "type": "input_json_delta", "partial_json": "" })),
        piece(3, json!({ "type": "input_json_delta", "partial_json": "{\"path\":" })),
        piece(3, json!({ "type": "input_json_delta", "partial_json": "\"a\"}" })),
        start(4, json!({ "type": "text", "text": "" })),
        piece(4, json!({ "type": "text_delta", "text": "More." })),
        json!({ "type": "something_new", "index": 99 }),
    ];
    events.extend(stop("tool_use"));
    events
}

#[test]
fn a_streamed_reply_with_thinking_text_and_a_call() {
    let (answer, deltas) = read(&full()).unwrap();
    assert_eq!(answer.text, "I read it.\n\nMore.");
    let streamed: String =
        deltas.iter().filter_map(|d| if let Delta::Text(t) = d { Some(t.as_str()) } else { None }).collect();
    assert_eq!(streamed, answer.text);
    assert_eq!(answer.stop, StopReason::Calls);
    assert_eq!(
        answer.usage,
        Usage { input_tokens: 25, output_tokens: 9, cache_read_tokens: 20, cache_write_tokens: 0 }
    );
    assert_eq!(answer.calls[0].arguments, r#"{"path":"a"}"#);
    let content = json!([
        { "type": "thinking", "thinking": "let me see", "signature": "c2ln" },
        { "type": "redacted_thinking", "data": "opaque" },
        { "type": "text", "text": "I read it." },
        { "type": "tool_use", "id": "t1", "name": "fs_read", "input": { "path": "a" } },
        { "type": "text", "text": "More." },
    ]);
    assert_eq!(answer.verbatim, json!({ "wire": "anthropic", "content": content }));
}

#[test]
fn the_same_reply_unstreamed_is_the_same_answer() {
    let (streamed, _) = read(&full()).unwrap();
    let mut message = PartialMessage::default();
    let whole = json!({
        "content": streamed.verbatim["content"], "stop_reason": "tool_use",
        "usage": { "input_tokens": 5, "cache_read_input_tokens": 20, "output_tokens": 9 },
    });
    message.whole(&whole).unwrap();
    assert_eq!(message.end().unwrap(), streamed);
}

#[test]
fn a_reply_cut_anywhere_is_cut() {
    let events = full();
    for length in 0..events.len() {
        assert!(matches!(read(&events[..length]), Err(Fault::Cut(_))), "{length} events");
    }
    read(&events).unwrap();
}

#[test]
fn stop_reasons() {
    let text = start(0, json!({ "type": "text", "text": "x" }));
    for (reason, expected) in [
        ("end_turn", StopReason::Answered),
        ("stop_sequence", StopReason::Answered),
        ("tool_use", StopReason::NoCalls),
        ("max_tokens", StopReason::Length),
        ("refusal", StopReason::Refused),
    ] {
        let [delta, end] = stop(reason);
        assert_eq!(read(&[text.clone(), delta, end]).unwrap().0.stop, expected, "{reason}");
    }
}

#[test]
fn broken_arguments_and_empty_texts() {
    let [delta, end] = stop("max_tokens");
    let events = [
        start(0, json!({ "type": "text", "text": "" })),
        start(1, json!({ "type": "tool_use", "id": "t1", "name": "x" })),
        start(2, json!({ "type": "tool_use", "id": "t2", "name": "x", "input": {} })),
        piece(2, json!({ "type": "input_json_delta", "partial_json": "{\"path\":" })),
        delta,
        end,
    ];
    let (answer, _) = read(&events).unwrap();
    assert_eq!(answer.calls[0].arguments, "{}");
    assert_eq!(answer.calls[1].arguments, r#"{"unreadable_arguments":"{\"path\":"}"#);
    assert_eq!(answer.verbatim["content"].as_array().unwrap().len(), 2);
    assert_eq!(answer.stop, StopReason::Length);
}

#[test]
fn faults() {
    let overloaded =
        json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    assert!(matches!(read(&[overloaded]), Err(Fault::Reported(_))));
    let stray = piece(0, json!({ "type": "input_json_delta", "partial_json": "{}" }));
    assert!(matches!(read(&[stray]), Err(Fault::Malformed(_))));
    for reason in ["error", "abort", "some_new_reason"] {
        let [delta, end] = stop(reason);
        let text = start(0, json!({ "type": "text", "text": "half" }));
        assert_eq!(read(&[text, delta, end]).unwrap_err(), Fault::Ended(reason.into()));
    }
    let many: Vec<Value> = (0..5000).map(|index| start(index, json!({ "type": "text" }))).collect();
    assert!(matches!(read(&many), Err(Fault::TooLarge(_))));
    assert!(matches!(PartialMessage::default().event("{\"type\":"), Err(Fault::Cut(_))));
    assert!(matches!(PartialMessage::default().event("nonsense"), Err(Fault::Malformed(_))));
}

/// Gateways give every block one number, begin no block, or begin a block twice: there is one way to read it.
#[test]
fn blocks_are_read_however_they_are_numbered() {
    let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "x", "input": {} });
    let arguments = |n: u32| json!({ "type": "input_json_delta", "partial_json": format!("{{\"n\":{n}}}") });
    let text = json!({ "type": "text_delta", "text": "I look." });
    let numbered = [[0, 0, 0], [0, 1, 2], [5, 0, 5]];
    for [first, second, third] in numbered {
        let [delta, end] = stop("tool_use");
        let events = [
            piece(first, json!({ "type": "thinking_delta", "thinking": "hm" })),
            piece(first, text.clone()),
            start(second, call("a")),
            start(second, call("a")),
            piece(second, arguments(1)),
            start(third, call("b")),
            piece(third, arguments(2)),
            delta,
            end,
        ];
        let (answer, _) = read(&events).unwrap();
        let calls: Vec<(&str, &str)> =
            answer.calls.iter().map(|call| (call.id.0.as_str(), call.arguments.as_str())).collect();
        assert_eq!(calls, [("a", r#"{"n":1}"#), ("b", r#"{"n":2}"#)], "{first} {second} {third}");
        assert_eq!(answer.text, "I look.");
    }
}
