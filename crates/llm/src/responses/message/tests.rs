use super::PartialResponse;
use crate::failure::Fault;
use bailey_kernel::{Completion, Delta, StopReason};
use serde_json::{Value, json};

fn read(events: &[Value]) -> Result<(Completion, String), Fault> {
    let mut message = PartialResponse::default();
    let mut said = String::new();
    for event in events {
        for delta in message.event(&event.to_string())? {
            if let Delta::Text(text) = delta {
                said.push_str(&text);
            }
        }
    }
    message.end().map(|answer| (answer, said))
}

fn item(kind: &str, index: u64, item: &Value) -> Value {
    json!({ "type": format!("response.output_item.{kind}"), "output_index": index, "item": item })
}

fn piece(kind: &str, index: u64, delta: &str) -> Value {
    json!({ "type": format!("response.{kind}.delta"), "output_index": index, "delta": delta })
}

fn completed() -> Value {
    json!({ "type": "response.completed", "response": {
        "id": "resp_1", "status": "completed", "output": [],
        "usage": { "input_tokens": 50, "input_tokens_details": { "cached_tokens": 40, "cache_write_tokens": 7 }, "output_tokens": 9 },
    } })
}

fn reasoning() -> Value {
    json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "opaque" })
}

fn text_item(text: &str) -> Value {
    json!({ "type": "message", "id": "msg_1", "role": "assistant", "content": [{ "type": "output_text", "text": text }] })
}

fn call_item(arguments: &str) -> Value {
    json!({ "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "fs_read", "arguments": arguments })
}

#[test]
fn reasoning_text_and_calls() {
    let events = [
        json!({ "type": "response.created", "response": { "id": "resp_1" } }),
        item("added", 0, &json!({ "type": "reasoning", "id": "rs_1" })),
        item("done", 0, &reasoning()),
        item("added", 1, &json!({ "type": "message", "content": [] })),
        piece("output_text", 1, "I re"),
        piece("output_text", 1, "ad."),
        item("done", 1, &text_item("I read.")),
        item("added", 2, &call_item("")),
        piece("function_call_arguments", 2, "{\"path\":"),
        piece("function_call_arguments", 2, "\"a\"}"),
        item("done", 2, &call_item("{\"path\":\"a\"}")),
        item("done", 3, &text_item("More.")),
        completed(),
    ];
    let (answer, said) = read(&events).unwrap();
    assert_eq!((answer.text.as_str(), answer.stop), ("I read.\n\nMore.", StopReason::Calls));
    assert_eq!(said, answer.text);
    assert_eq!(
        (answer.calls[0].id.0.as_str(), answer.calls[0].arguments.as_str()),
        ("call_1", "{\"path\":\"a\"}")
    );
    let items = json!([reasoning(), text_item("I read."), call_item("{\"path\":\"a\"}"), text_item("More.")]);
    assert_eq!(answer.verbatim["items"], items);
    let usage = answer.usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (50, 9));
    assert_eq!((usage.cache_read_tokens, usage.cache_write_tokens), (40, 7));
}

#[test]
fn items_without_an_end_are_made_of_their_pieces() {
    let events = [
        item("added", 0, &call_item("")),
        piece("function_call_arguments", 0, "{\"path\":\"a\"}"),
        completed(),
    ];
    let (answer, _) = read(&events).unwrap();
    assert_eq!(answer.verbatim["items"], json!([call_item("{\"path\":\"a\"}")]));
    assert_eq!(answer.calls.len(), 1);
}

#[test]
fn ends() {
    let incomplete = |reason: &str| json!({ "type": "response.incomplete", "response": { "incomplete_details": { "reason": reason } } });
    assert_eq!(read(&[completed()]).unwrap().0.stop, StopReason::Answered);
    assert_eq!(read(&[incomplete("max_output_tokens")]).unwrap().0.stop, StopReason::Length);
    assert_eq!(read(&[incomplete("content_filter")]).unwrap().0.stop, StopReason::Refused);
    let refusal = [piece("refusal", 0, "No."), completed()];
    let (answer, said) = read(&refusal).unwrap();
    assert_eq!((answer.stop, said.as_str()), (StopReason::Refused, "No."));
    assert!(matches!(read(&[piece("output_text", 0, "half")]), Err(Fault::Cut(_))));
    let error = json!({ "code": "rate_limit_exceeded", "message": "slow" });
    let failed = json!({ "type": "response.failed", "response": { "error": error } });
    assert!(matches!(read(&[failed]), Err(Fault::Reported(complaint)) if complaint.status() == 429));
    let error = json!({ "type": "error", "code": "server_error", "message": "oops" });
    assert!(matches!(read(&[error]), Err(Fault::Reported(complaint)) if complaint.message == "oops"));
}

#[test]
fn an_answer_that_was_not_streamed() {
    let mut message = PartialResponse::default();
    message
        .whole(&json!({ "id": "r", "output": [text_item("hi"), call_item("{}")], "error": null }))
        .unwrap();
    let answer = message.end().unwrap();
    assert_eq!((answer.text.as_str(), answer.calls.len()), ("hi", 1));
    assert!(matches!(PartialResponse::default().whole(&json!({})), Err(Fault::Malformed(_))));
}
