use super::body;
use crate::{
    Endpoint, Wire,
    transcript::{CallResult, ForeignCall, ModelInput, Turn},
};
use bailey_protocol::ToolSpec;
use serde_json::json;

fn endpoint(base_url: &str) -> Endpoint {
    Endpoint {
        provider: "p".into(),
        wire: Wire::OpenAiChat,
        base_url: base_url.into(),
        model: "m".into(),
        key: None,
        max_tokens: 64,
        window_tokens: None,
        prices: Vec::new(),
        takes_images: false,
        parameters: std::collections::BTreeMap::new(),
    }
}

#[test]
fn a_whole_request() {
    let tool = ToolSpec {
        name: "command.run".into(),
        aliases: vec![],
        summary: "Runs.".into(),
        description: String::new(),
        schema: json!({ "type": "object" }),
    };
    let own = json!({ "role": "assistant", "content": "well", "tool_calls": [{ "id": "c1", "type": "function", "function": { "name": "x", "arguments": "{}" } }] });
    let verbatim = json!({ "wire": "open-ai-chat", "message": own });
    let results = vec![CallResult { id: "c1".into(), name: "fs_read".into(), ok: false, text: "no".into() }];
    let foreign = Turn::Foreign {
        text: "",
        calls: vec![ForeignCall { id: "t1".into(), name: "y".into(), arguments: "{" }],
    };
    let turns = [
        Turn::Heard(ModelInput { results: vec![], texts: vec!["hi".into()] }),
        Turn::Own(std::borrow::Cow::Borrowed(&verbatim)),
        Turn::Heard(ModelInput { results, texts: vec!["and?".into()] }),
        foreign,
    ];
    let expected = json!({
        "model": "m", "stream": true, "stream_options": { "include_usage": true }, "max_tokens": 64,
        "messages": [
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": "hi" },
            own,
            { "role": "tool", "tool_call_id": "c1", "content": "no" },
            { "role": "assistant", "content": "I have the results." },
            { "role": "user", "content": "and?" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "t1", "type": "function", "function": { "name": "y", "arguments": "{\"unreadable_arguments\":\"{\"}" } },
            ] },
        ],
        "tools": [{ "type": "function", "function": { "name": "command_run", "description": "Runs.", "parameters": { "type": "object" } } }],
    });
    assert_eq!(body(&endpoint("http://127.0.0.1:1/v1"), "be brief", &turns, &[tool]), expected);
    assert_eq!(endpoint("http://127.0.0.1:1/v1/").url(), "http://127.0.0.1:1/v1/chat/completions");
}

#[test]
fn the_limit_is_called_as_the_server_knows_it() {
    let limit = |base: &str| body(&endpoint(base), "", &[], &[])["max_completion_tokens"].clone();
    assert_eq!(limit("https://api.openai.com/v1"), json!(64));
    assert_eq!(limit("https://me.openai.azure.com/openai/v1"), json!(64));
    assert_eq!(limit("https://api.mistral.ai/v1"), json!(null));
}
