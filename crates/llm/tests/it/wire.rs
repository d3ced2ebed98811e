//! Failures as they come over a real socket, through the real network door.

use crate::{
    bench::{Bench, codec, door},
    server::{Server, answer, events},
};
use bailey_kernel::{Completion, ModelError, ModelErrorKind};
use bailey_llm::Wire;
use std::time::Duration;

const WIRES: [Wire; 5] = Wire::ALL;

async fn ask(wire: Wire, reply: Vec<u8>) -> Result<Completion, ModelError> {
    let server = Server::start(vec![reply]).await;
    let mut bench = Bench::new(|seal| door(&server.url, seal), "/tmp/run/toy").await;
    bench.say("hello").await;
    bench.ask(&codec("acme", wire, &server.url)).await
}

async fn failure(wire: Wire, reply: Vec<u8>) -> ModelError {
    ask(wire, reply).await.unwrap_err()
}

const ERROR: &str = r#"{"type":"error","error":{"type":"x","message":"slow down"}}"#;

#[tokio::test]
async fn too_many_requests_says_how_long_to_wait() {
    for wire in WIRES {
        let error = failure(wire, answer("429 Too Many", "Retry-After: 17\r\n", ERROR)).await;
        assert_eq!(error.kind, ModelErrorKind::RateLimited(Some(Duration::from_secs(17))));
        assert!(error.message.contains("slow down") && error.message.contains("17 s"), "{error}");
    }
}

#[tokio::test]
async fn overload_passes() {
    for (wire, status) in [(WIRES[0], "529 Overloaded"), (WIRES[1], "503 Busy"), (WIRES[1], "500 Oops")] {
        let error = failure(wire, answer(status, "", ERROR)).await;
        assert_eq!(error.kind, ModelErrorKind::Overloaded(None));
        assert!(error.kind.is_passing());
    }
}

#[tokio::test]
async fn a_wrong_key_names_the_secret() {
    let error = failure(Wire::OpenAiChat, answer("401 No", "", ERROR)).await;
    assert_eq!(error.kind, ModelErrorKind::Auth);
    assert!(error.message.contains("set the secret `TEST_API_KEY`"), "{error}");
}

#[tokio::test]
async fn a_stream_that_is_cut() {
    let start = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"I am\"}}\n\n";
    let error = failure(Wire::Anthropic, events(start)).await;
    assert_eq!(error.kind, ModelErrorKind::Cut, "{error}");
    let start = "data: {\"choices\":[{\"delta\":{\"content\":\"I am\"}}]}\n\ndata: {\"choices\":[{\"del";
    let error = failure(Wire::OpenAiChat, events(start)).await;
    assert_eq!(error.kind, ModelErrorKind::Cut, "{error}");
    assert!(error.message.contains("broke off in the middle"), "{error}");
    // The control: with its end the same stream is an answer.
    let whole = "data: {\"choices\":[{\"delta\":{\"content\":\"I am\"},\"finish_reason\":\"stop\"}]}\n\n";
    assert_eq!(ask(Wire::OpenAiChat, events(whole)).await.unwrap().text, "I am");
}

#[tokio::test]
async fn fifty_megabytes_are_not_taken() {
    let body = format!("data: {{\"choices\":[]}}\n\n: {}\n", "x".repeat(1 << 20)).repeat(50);
    let error = failure(Wire::OpenAiChat, events(&body)).await;
    assert!(error.message.contains("32 MiB"), "{error}");
}

#[tokio::test]
async fn an_error_inside_a_stream() {
    let event = format!("event: error\ndata: {}\n\n", ERROR.replace("\"x\"", "\"overloaded_error\""));
    let error = failure(Wire::Anthropic, events(&event)).await;
    assert_eq!(error.kind, ModelErrorKind::Overloaded(None));
}
