use super::{Request, refusal};
use serde_json::{Value, json};

fn refused(path: &str, body: &Value) -> Option<String> {
    let (method, path, body) = ("POST".into(), path.into(), body.to_string());
    refusal(&Request { method, path, headers: Vec::new(), body })
}

/// A conversation that each wire takes: words, two calls, their results, words.
fn taken() -> [(&'static str, Value); 5] {
    let function = |name: &str| json!({ "name": name, "arguments": "{}" });
    [
        (
            "/v1/chat/completions",
            json!({ "model": "m", "messages": [
            { "role": "system", "content": "s" },
            { "role": "user", "content": "u" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "a", "type": "function", "function": function("x") },
                { "id": "b", "type": "function", "function": function("y") },
            ] },
            { "role": "tool", "tool_call_id": "a", "content": "r" },
            { "role": "tool", "tool_call_id": "b", "content": "r" },
            { "role": "assistant", "content": "t" },
            { "role": "user", "content": "u" },
        ] }),
        ),
        (
            "/v1/messages",
            json!({ "model": "m", "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "u" }] },
            { "role": "assistant", "content": [
                { "type": "tool_use", "id": "a", "name": "x", "input": {} },
                { "type": "tool_use", "id": "b", "name": "y", "input": {} },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "a", "content": "r" },
                { "type": "tool_result", "tool_use_id": "b", "content": "r" },
                { "type": "text", "text": "u" },
            ] },
        ] }),
        ),
        (
            "/v1/responses",
            json!({ "model": "m", "input": [
            { "role": "user", "content": "u" },
            { "type": "function_call", "id": "1", "call_id": "a", "name": "x", "arguments": "{}" },
            { "type": "function_call", "id": "2", "call_id": "b", "name": "y", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "a", "output": "r" },
            { "type": "function_call_output", "call_id": "b", "output": "r" },
            { "role": "user", "content": "u" },
        ] }),
        ),
        (
            "/v1beta/models/m:streamGenerateContent",
            json!({ "contents": [
            { "role": "user", "parts": [{ "text": "u" }] },
            { "role": "model", "parts": [
                { "functionCall": { "id": "a", "name": "x", "args": {} } },
                { "functionCall": { "id": "b", "name": "y", "args": {} } },
            ] },
            { "role": "user", "parts": [
                { "functionResponse": { "id": "a", "name": "x", "response": {} } },
                { "functionResponse": { "id": "b", "name": "y", "response": {} } },
            ] },
            { "role": "user", "parts": [{ "text": "u" }] },
        ] }),
        ),
        (
            "/api/chat",
            json!({ "model": "m", "messages": [
            { "role": "user", "content": "u" },
            { "role": "assistant", "content": "", "tool_calls": [
                { "function": { "name": "x", "arguments": {} } },
                { "function": { "name": "y", "arguments": {} } },
            ] },
            { "role": "tool", "content": "r" },
            { "role": "tool", "content": "r" },
            { "role": "user", "content": "u" },
        ] }),
        ),
    ]
}

fn list(body: &mut Value) -> &mut Vec<Value> {
    let name = ["messages", "input", "contents"].into_iter().find(|name| body.get(name).is_some()).unwrap();
    body[name].as_array_mut().unwrap()
}

#[test]
fn what_real_servers_refuse_is_refused_on_every_wire() {
    for (path, body) in taken() {
        assert_eq!(refused(path, &body), None, "control: {path}");
        let changed = |change: &dyn Fn(&mut Vec<Value>)| {
            let mut body = body.clone();
            change(list(&mut body));
            refused(path, &body)
        };
        let renamed = |from: &str, to: &str| {
            let text = body.to_string().replace(&format!("\"{from}\""), &format!("\"{to}\""));
            refused(path, &serde_json::from_str(&text).unwrap())
        };
        let again = changed(&|list| list.push(list.last().unwrap().clone()));
        assert!(again.is_some(), "{path}: the user twice");
        let without_result = changed(&|list| {
            let at = list.iter().position(|message| {
                message.to_string().contains("\"r\"") || message.to_string().contains("functionResponse")
            });
            list.remove(at.unwrap());
        });
        assert!(without_result.is_some(), "{path}: a call without its result");
        let calls = ["\"tool_calls\"", "\"tool_use\"", "\"function_call\"", "\"functionCall\""];
        let alone = changed(&|list| {
            list.retain(|message| !calls.iter().any(|call| message.to_string().contains(call)))
        });
        assert!(alone.is_some(), "{path}: results without their calls");
        assert!(renamed("x", "fs.read").is_some(), "{path}: a name that no wire takes");
        assert!(renamed("x", &"x".repeat(65)).is_some(), "{path}: a long name");
        if !path.starts_with("/api") {
            assert!(renamed("b", "a").is_some(), "{path}: an identifier twice");
        }
        let mut unknown = body.clone();
        unknown["temperament"] = 1.into();
        assert!(refused(path, &unknown).is_some(), "{path}: an unknown parameter");
    }
}

#[test]
fn what_only_some_wires_refuse() {
    let [(chat, body), (anthropic, blocks), (responses, items), ..] = taken();
    let mut without = body.clone();
    without["messages"].as_array_mut().unwrap().remove(5);
    assert!(refused(chat, &without).unwrap().contains("'user' after role 'tool'"));
    let mut thinking = body.clone();
    thinking["messages"][2]["reasoning_content"] = "hm".into();
    assert!(refused(chat, &thinking).unwrap().contains("reasoning_content"));
    thinking["messages"][5]["reasoning_content"] = "".into();
    assert_eq!(refused(chat, &thinking), None);
    let mut behind = blocks;
    behind["messages"][2]["content"].as_array_mut().unwrap().rotate_right(1);
    assert!(refused(anthropic, &behind).unwrap().contains("must come first"));
    let mut twice = items;
    twice["input"][2]["id"] = "1".into();
    assert!(refused(responses, &twice).unwrap().contains("duplicate item"));
}
