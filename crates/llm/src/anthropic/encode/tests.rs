use super::body;
use crate::{
    Endpoint, Wire,
    transcript::{CallResult, ForeignCall, ModelInput, Turn},
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
        takes_images: false,
        parameters: std::collections::BTreeMap::new(),
    }
}

fn messages(turns: &[Turn<'_>]) -> Value {
    body(&endpoint(), "", turns, &[])["messages"].clone()
}

fn tool() -> ToolSpec {
    ToolSpec {
        name: "fs.read".into(),
        aliases: vec![],
        summary: "Reads a file.".into(),
        description: "Give a path.".into(),
        schema: json!({ "type": "object" }),
    }
}

fn kept() -> Value {
    json!({ "type": "ephemeral" })
}

/// Where a request is marked.
fn marks(value: &Value, at: &str, found: &mut Vec<String>) {
    if value.get("cache_control").is_some() {
        found.push(at.into());
    }
    let parts: Vec<(String, &Value)> = match value {
        Value::Array(list) => list.iter().enumerate().map(|(n, part)| (n.to_string(), part)).collect(),
        Value::Object(fields) => fields.iter().map(|(name, part)| (name.clone(), part)).collect(),
        _ => Vec::new(),
    };
    parts.into_iter().for_each(|(name, part)| marks(part, &format!("{at}/{name}"), found));
}

fn marked(turns: &[Turn<'_>], tools: &[ToolSpec]) -> Vec<String> {
    let mut found = Vec::new();
    marks(&body(&endpoint(), "be brief", turns, tools), "", &mut found);
    found.sort();
    found
}

fn told(texts: &[&'static str]) -> Turn<'static> {
    let results = texts.iter().map(|text| CallResult {
        id: "t".into(),
        name: "x".into(),
        ok: true,
        text: (*text).into(),
    });
    Turn::Heard(ModelInput { results: results.collect(), texts: vec![] })
}

#[test]
fn what_the_server_may_keep_is_marked_at_most_four_times() {
    let said = || Turn::Foreign { text: "well", calls: vec![] };
    let turns = [told(&["a"]), said(), told(&["b", "c"]), said(), told(&["d", "e", ""]), said()];
    assert_eq!(
        marked(&turns, &[tool(), tool()]),
        ["/messages/2/content/1", "/messages/4/content/1", "/system/0", "/tools/1"]
    );
    assert_eq!(marked(&[told(&[""])], &[tool()]), ["/system/0", "/tools/0"], "nothing empty is marked");
}

#[test]
fn a_single_question_is_not_kept() {
    assert_eq!(marked(&[told(&["a"])], &[]), Vec::<String>::new());
    assert_eq!(body(&endpoint(), "be brief", &[], &[])["system"], "be brief");
}

#[test]
fn a_request_begins_with_what_the_one_before_it_had_kept() {
    let said = || Turn::Foreign { text: "well", calls: vec![] };
    let without_marks = |turns: &[Turn<'_>]| {
        let mut body = body(&endpoint(), "be brief", turns, &[tool()]);
        for message in body["messages"].as_array_mut().unwrap() {
            for block in message["content"].as_array_mut().unwrap() {
                block.as_object_mut().unwrap().remove("cache_control");
            }
        }
        body["messages"].as_array().unwrap().clone()
    };
    let first = without_marks(&[told(&["a"])]);
    let second = without_marks(&[told(&["a"]), said(), told(&["b"])]);
    assert_eq!(first[..], second[..1]);
}

#[test]
fn a_whole_request() {
    let tool = tool();
    let heard = ModelInput { results: vec![], texts: vec!["hi".into()] };
    let expected = json!({
        "model": "claude", "max_tokens": 64, "stream": true,
        "system": [{ "type": "text", "text": "be brief", "cache_control": kept() }],
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": "hi", "cache_control": kept() }] }],
        "tools": [{
            "name": "fs_read", "description": "Reads a file.\nGive a path.", "input_schema": { "type": "object" },
            "cache_control": kept(),
        }],
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
        CallResult { id: "t1".into(), name: "fs_read".into(), ok: true, text: "fine".into() },
        CallResult { id: "t2".into(), name: "fs_read".into(), ok: false, text: "no".into() },
    ];
    let heard = ModelInput { results, texts: vec!["and now?".into()] };
    let expected = json!([
        { "role": "assistant", "content": content },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "t1", "content": "fine" },
            { "type": "tool_result", "tool_use_id": "t2", "content": "no", "is_error": true },
            { "type": "text", "text": "and now?" },
        ] },
    ]);
    assert_eq!(messages(&[Turn::Own(std::borrow::Cow::Borrowed(&verbatim)), Turn::Heard(heard)]), expected);
}

#[test]
fn arguments_that_are_no_object_are_kept_readable() {
    let call = |arguments: &'static str| ForeignCall { id: "c".into(), name: "x".into(), arguments };
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
    assert_eq!(messages(&[Turn::Own(std::borrow::Cow::Borrowed(&verbatim))]), json!([]));
}
