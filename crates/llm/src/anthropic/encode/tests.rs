use super::body;
use crate::{
    Endpoint, Wire,
    transcript::{Call, CallResult, Heard, Turn},
};
use bailey_protocol::ToolSpec;
use serde_json::{Value, json};

fn endpoint() -> Endpoint {
    Endpoint {
        provider: "anthropic".into(),
        wire: Wire::Anthropic,
        base_url: "https://api.anthropic.com/".into(),
        model: "claude".into(),
        key: None,
        max_tokens: 64,
        window_tokens: None,
        prices: Vec::new(),
    }
}

fn messages(turns: &[Turn<'_>]) -> Value {
    body(&endpoint(), "", turns, &[])["messages"].clone()
}

#[test]
fn a_whole_request() {
    let tool = ToolSpec {
        name: "fs.read".into(),
        aliases: vec![],
        summary: "Reads a file.".into(),
        description: "Give a path.".into(),
        schema: json!({ "type": "object" }),
    };
    let heard = Heard { results: vec![], texts: vec!["hi".into()] };
    let expected = json!({
        "model": "claude", "max_tokens": 64, "stream": true, "system": "be brief",
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": "hi" }] }],
        "tools": [{ "name": "fs_read", "description": "Reads a file.\nGive a path.", "input_schema": { "type": "object" } }],
    });
    assert_eq!(body(&endpoint(), "be brief", &[Turn::Heard(heard)], &[tool]), expected);
    assert_eq!(endpoint().url(), "https://api.anthropic.com/v1/messages");
    let with_v1 = Endpoint { base_url: "https://api.anthropic.com/v1".into(), ..endpoint() };
    assert_eq!(with_v1.url(), "https://api.anthropic.com/v1/messages");
}

#[test]
fn its_own_messages_go_back_verbatim_and_results_in_one_message() {
    let content = json!([
        { "type": "thinking", "thinking": "hm", "signature": "sig" },
        { "type": "tool_use", "id": "t1", "name": "x", "input": { "b": 1, "a": 2 } },
    ]);
    let verbatim = json!({ "wire": "anthropic", "content": content });
    let results = vec![
        CallResult { id: "t1".into(), name: "fs_read".into(), ok: true, text: "fine" },
        CallResult { id: "t2".into(), name: "fs_read".into(), ok: false, text: "no" },
    ];
    let heard = Heard { results, texts: vec!["and now?".into()] };
    let expected = json!([
        { "role": "assistant", "content": content },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "t1", "content": "fine" },
            { "type": "tool_result", "tool_use_id": "t2", "content": "no", "is_error": true },
            { "type": "text", "text": "and now?" },
        ] },
    ]);
    assert_eq!(messages(&[Turn::Own(&verbatim), Turn::Heard(heard)]), expected);
}

#[test]
fn arguments_that_are_no_object_are_kept_readable() {
    let call = |arguments: &'static str| Call { id: "c".into(), name: "x".into(), arguments };
    let calls = vec![call(r#"{"a":1}"#), call(""), call("[1]"), call(r#"{"a":"#)];
    let inputs: Vec<Value> = messages(&[Turn::Foreign { text: " ", calls }])[0]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["input"].clone())
        .collect();
    let unreadable = |text: &str| json!({ "unreadable_arguments": text });
    assert_eq!(inputs, [json!({ "a": 1 }), json!({}), unreadable("[1]"), unreadable(r#"{"a":"#)]);
}

#[test]
fn an_empty_message_is_left_out() {
    let verbatim = json!({ "wire": "anthropic", "content": [] });
    assert_eq!(messages(&[Turn::Own(&verbatim)]), json!([]));
}
