//! A real server of every wire, written by others: npm `@copilotkit/aimock`.

use crate::{
    bench::{Bench, KEY, codec, door},
    foreign,
};
use bailey_kernel::{ModelErrorKind, StopReason};
use bailey_llm::Wire;
use serde_json::json;
use std::{process::Stdio, time::Duration};
use tokio::process::{Child, Command};

const PACKAGE: &str = "@copilotkit/aimock@1.43.0";

const WIRES: [Wire; 5] = Wire::ALL;

struct Mock {
    url: String,
    _server: Child,
    _fixtures: tempfile::TempDir,
}

/// Starts the server with these fixtures; `None`, with the reason printed, where it cannot be had.
async fn mock(fixtures: serde_json::Value) -> Option<Mock> {
    let install = ["npm", "install", "--no-audit", "--no-fund", "--no-save", PACKAGE];
    let folder =
        foreign::installed("aimock", "node_modules/@copilotkit/aimock/package.json", &[&install]).await?;
    let own = tempfile::tempdir().unwrap();
    let file = own.path().join("fixtures.json");
    std::fs::write(&file, json!({ "fixtures": fixtures }).to_string()).unwrap();
    let port = foreign::port();
    let server = Command::new("node")
        .arg(folder.join("node_modules/.bin/llmock"))
        .args([
            "--strict",
            "--host",
            "127.0.0.1",
            "--chunk-size",
            "5",
            "--port",
            &port.to_string(),
            "--fixtures",
        ])
        .arg(&file)
        .env("AIMOCK_API_KEYS", KEY)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    for _ in 0..200 {
        if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            return Some(Mock { url: format!("http://127.0.0.1:{port}"), _server: server, _fixtures: own });
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("aimock did not start");
}

impl Mock {
    async fn bench(&self) -> Bench {
        Bench::new(|seal| door(&self.url, seal), "/tmp/run/toy").await
    }

    fn base(&self, wire: Wire) -> String {
        match wire {
            Wire::Anthropic | Wire::Gemini | Wire::Ollama => self.url.clone(),
            Wire::OpenAiChat | Wire::OpenAiResponses => format!("{}/v1", self.url),
        }
    }
}

#[tokio::test]
async fn text_calls_and_results_on_every_wire() {
    let calls = json!([
        { "id": "call_a", "name": "fs_read", "arguments": { "path": "a.txt" } },
        { "id": "call_b", "name": "fs_read", "arguments": { "path": "ä \"b\"" } },
    ]);
    let usage = json!({ "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18 });
    let fixtures = json!([
        { "match": { "userMessage": "read", "toolName": "fs_read", "systemMessage": "be brief", "hasToolResult": false },
          "response": { "content": "I look.", "toolCalls": calls, "usage": usage } },
        { "match": { "toolResultContains": "there is only", "hasToolResult": true },
          "response": { "content": "It is 42 — and “that” is äll.", "usage": usage } },
    ]);
    let Some(mock) = mock(fixtures).await else { return };
    for wire in WIRES {
        let mut bench = mock.bench().await;
        let codec = codec("acme", wire, &mock.base(wire));
        bench.say("read it").await;
        let answer = bench.ask(&codec).await.unwrap();
        assert_eq!((answer.stop, answer.calls.len()), (StopReason::Calls, 2), "{wire:?}");
        assert_eq!(answer.text, "I look.");
        let arguments: serde_json::Value = serde_json::from_str(&answer.calls[1].arguments).unwrap();
        assert_eq!(arguments, json!({ "path": "ä \"b\"" }));
        let answer = bench.ask(&codec).await.unwrap();
        assert_eq!(
            (answer.stop, answer.text.as_str()),
            (StopReason::Answered, "It is 42 — and “that” is äll.")
        );
        // It counts nothing on Ollama's wire, whatever its fixtures say.
        let counted = if wire == Wire::Ollama { (0, 0) } else { (11, 7) };
        assert_eq!((answer.usage.input_tokens, answer.usage.output_tokens), counted, "{wire:?}");
    }
}

#[tokio::test]
async fn thinking_comes_back_verbatim() {
    let fixtures = json!([{ "match": { "userMessage": "think" }, "response": { "content": "Done.", "reasoning": "step by step" } }]);
    let Some(mock) = mock(fixtures).await else { return };
    for wire in WIRES {
        let mut bench = mock.bench().await;
        let codec = codec("acme", wire, &mock.base(wire));
        bench.say("think").await;
        let answer = bench.ask(&codec).await.unwrap();
        assert_eq!(answer.text, "Done.", "{wire:?}");
        let (place, expected) = match wire {
            Wire::Anthropic => ("/content/0/thinking", "step by step"),
            Wire::OpenAiResponses => ("/items/0/type", "reasoning"),
            Wire::Gemini => ("/content/parts/0/text", "step by step"),
            Wire::Ollama => ("/message/role", "assistant"),
            Wire::OpenAiChat => ("/message/content", "Done."),
        };
        assert_eq!(answer.verbatim.pointer(place).unwrap(), expected, "{wire:?}: {}", answer.verbatim);
        // And it takes back what it said.
        bench.say("think again").await;
        assert_eq!(bench.ask(&codec).await.unwrap().text, "Done.", "{wire:?}");
    }
}

#[tokio::test]
async fn its_errors_are_understood() {
    let error = |word: &str, status: u16, kind: &str| json!({ "match": { "userMessage": word }, "response": { "error": { "message": word, "type": kind }, "status": status, "retryAfter": 3 } });
    let fixtures = json!([
        error("too many", 429, "rate_limit_error"),
        error("too busy", 529, "overloaded_error"),
        error("prompt is too long", 400, "invalid_request_error"),
        { "match": { "userMessage": "cut" }, "response": { "content": "a long answer that never ends" }, "truncateAfterChunks": 3 },
        { "match": { "userMessage": "length" }, "response": { "content": "so f", "finishReason": "length" } },
    ]);
    let Some(mock) = mock(fixtures).await else { return };
    for wire in WIRES {
        let codec = codec("acme", wire, &mock.base(wire));
        let ask = async |words: &str| {
            let mut bench = mock.bench().await;
            bench.say(words).await;
            bench.ask(&codec).await
        };
        let wanted = ModelErrorKind::RateLimited(Some(Duration::from_secs(3)));
        assert_eq!(ask("too many").await.unwrap_err().kind, wanted, "{wire:?}");
        assert!(matches!(ask("too busy").await.unwrap_err().kind, ModelErrorKind::Overloaded(_)));
        assert_eq!(ask("prompt is too long").await.unwrap_err().kind, ModelErrorKind::Overflow);
        let cut = ask("cut").await.unwrap_err();
        assert!(cut.kind.is_passing(), "{cut:?}");
        // On Ollama's wire it always says `stop`.
        let stop = if wire == Wire::Ollama { StopReason::Answered } else { StopReason::Length };
        assert_eq!(ask("length").await.unwrap().stop, stop, "{wire:?}");
    }
}

#[tokio::test]
async fn a_wrong_key_is_refused() {
    let fixtures = json!([{ "match": { "userMessage": "hello" }, "response": { "content": "hi" } }]);
    let Some(mock) = mock(fixtures).await else { return };
    for wire in WIRES {
        let mut bench = mock.bench().await;
        bench.say("hello").await;
        let keyless =
            bailey_llm::Endpoint { key: None, ..codec("acme", wire, &mock.base(wire)).endpoint().clone() };
        let error = bench.ask(&bailey_llm::provider(keyless)).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Auth, "{error}");
        // The control: with the key the same question is answered.
        assert_eq!(bench.ask(&codec("acme", wire, &mock.base(wire))).await.unwrap().text, "hi");
    }
}
