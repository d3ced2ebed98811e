//! What a conversation looks like on each wire, also after a change of provider.

use crate::{
    bench::{Bench, codec, door},
    server::{Server, answer, events},
};
use bailey_llm::Wire;
use serde_json::json;

const ANTHROPIC_CALL: &str = r#"data: {"type":"message_start","message":{"usage":{"input_tokens":3,"output_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}

data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"fs_read","input":{}}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"path\":\"a.txt\"}"}}

data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_2","name":"fs_read","input":{"path":"b"}}}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}

data: {"type":"message_stop"}

"#;

const OPENAI_TEXT: &str =
    r#"{"choices":[{"message":{"role":"assistant","content":"It is 42."},"finish_reason":"stop"}]}"#;

#[tokio::test]
async fn a_conversation_goes_on_with_another_provider() {
    let server = Server::start(vec![
        events(ANTHROPIC_CALL),
        answer("200 OK", "Content-Type: application/json\r\n", OPENAI_TEXT),
        events(ANTHROPIC_CALL),
    ])
    .await;
    let mut bench = Bench::new(|seal| door(&server.url, seal), "/tmp/run/toy").await;
    let anthropic = codec("anthropic", Wire::Anthropic, &server.url);
    let other = codec("other", Wire::OpenAiChat, &format!("{}/v1", server.url));
    bench.say("what is it?").await;
    bench.ask(&anthropic).await.unwrap();
    assert_eq!(bench.ask(&other).await.unwrap().text, "It is 42.");
    bench.say("sure?").await;
    bench.ask(&anthropic).await.unwrap();

    let bodies = server.bodies();
    let found = "/tmp/run/toy/a.txt:\nthe answer is 42";
    let refused = "there is only `/tmp/run/toy/a.txt`";
    assert_eq!(bodies[0]["system"][0]["text"], "be brief\nworkspace: /tmp/run/toy");
    assert_eq!(bodies[0]["tools"][0]["name"], "fs_read");
    // Identifiers that every server takes stand for another model's.
    let ids =
        [0, 1].map(|place| bodies[1]["messages"][2]["tool_calls"][place]["id"].as_str().unwrap().to_owned());
    assert!(ids[0] != ids[1] && ids.iter().all(|id| id.len() == 9), "{ids:?}");
    let call = |id: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": "fs_read", "arguments": arguments } });
    let expected = json!([
        { "role": "system", "content": "be brief\nworkspace: /tmp/run/toy" },
        { "role": "user", "content": "what is it?" },
        { "role": "assistant", "content": null, "tool_calls": [
            call(&ids[0], r#"{"path":"a.txt"}"#), call(&ids[1], r#"{"path":"b"}"#),
        ] },
        { "role": "tool", "tool_call_id": ids[0], "content": found },
        { "role": "tool", "tool_call_id": ids[1], "content": refused },
    ]);
    assert_eq!(bodies[1]["messages"], expected);
    let kept = json!({ "type": "ephemeral" });
    let expected = json!([
        { "role": "user", "content": [{ "type": "text", "text": "what is it?" }] },
        { "role": "assistant", "content": [
            { "type": "thinking", "thinking": "hm", "signature": "c2ln" },
            { "type": "tool_use", "id": "toolu_1", "name": "fs_read", "input": { "path": "a.txt" } },
            { "type": "tool_use", "id": "toolu_2", "name": "fs_read", "input": { "path": "b" } },
        ] },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "toolu_1", "content": found },
            { "type": "tool_result", "tool_use_id": "toolu_2", "content": refused, "is_error": true, "cache_control": kept },
        ] },
        { "role": "assistant", "content": [{ "type": "text", "text": "It is 42." }] },
        { "role": "user", "content": [{ "type": "text", "text": "sure?", "cache_control": kept }] },
    ]);
    assert_eq!(bodies[2]["messages"], expected);
}
