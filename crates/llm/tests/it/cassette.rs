//! Recording in front of the real door, and playing back without any.

use crate::{
    bench::{Bench, KEY, codec, door},
    server::{Server, events},
};
use bailey_kernel::{Completion, Executor, ModelError};
use bailey_llm::{Cassette, Codec, Normaliser, Player, Recorder, Recording, Wire};
use std::{os::unix::fs::PermissionsExt as _, path::Path, sync::Arc};

const CALL: &str = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"fs_read\",\
    \"arguments\":\"{\\\"path\\\":\\\"/tmp/first/run/toy/a.txt\\\"}\"}}]},\"finish_reason\":\"tool_calls\"}]}\r\n\r\ndata: [DONE]\r\n\r\n";
const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"It is 42.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// Two model calls with a tool call in between.
async fn session(bench: &mut Bench, codec: &Codec, question: &str) -> Result<[Completion; 2], ModelError> {
    bench.say(question).await;
    Ok([bench.ask(codec).await?, bench.ask(codec).await?])
}

async fn record(file: &Path) -> [Completion; 2] {
    let server = Server::start(vec![events(CALL), events(TEXT)]).await;
    let codec = codec("acme", Wire::OpenAiChat, &server.url);
    let empty = Cassette::new(codec.endpoint());
    let recorder = |seal| -> Arc<dyn Executor> {
        let file = Recording::open(file).unwrap();
        Arc::new(Recorder::new(door(&server.url, seal), empty, file, Normaliser::new("/tmp/first/run/toy")))
    };
    let mut bench = Bench::new(recorder, "/tmp/first/run/toy").await;
    session(&mut bench, &codec, "what is it?").await.unwrap()
}

async fn play(file: &Path, question: &str) -> Result<[Completion; 2], ModelError> {
    let cassette = Cassette::parse(&std::fs::read(file).unwrap()).unwrap();
    let mut bench = replaying(cassette, "/tmp/second/toy").await;
    session(&mut bench, &codec("acme", Wire::OpenAiChat, "http://127.0.0.1:1"), question).await
}

async fn replaying(cassette: Cassette, workspace: &str) -> Bench {
    let normaliser = Normaliser::new(workspace);
    let player = |seal| -> Arc<dyn Executor> { Arc::new(Player::new(cassette, normaliser, seal)) };
    Bench::new(player, workspace).await
}

#[tokio::test]
async fn a_recorded_session_plays_in_another_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.json");
    let recorded = record(&file).await;
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("$WORKSPACE/a.txt") && !text.contains("/tmp/first"), "{text}");
    assert!(!text.contains(KEY) && !text.contains("authorization") && !text.contains("onnection"), "{text}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

    let played = play(&file, "what is it?").await.unwrap();
    assert_eq!(played[1], recorded[1]);
    assert_eq!(played[0].calls[0].arguments, r#"{"path":"/tmp/second/toy/a.txt"}"#);
}

#[tokio::test]
async fn bodies_are_played_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.json");
    record(&file).await;
    let cassette = Cassette::parse(&std::fs::read(&file).unwrap()).unwrap();
    let body = |n: usize| {
        let lines: Vec<_> = cassette.exchanges[n].response.body.iter().map(|line| line.0.clone()).collect();
        String::from_utf8(lines.join(&b'\n')).unwrap()
    };
    assert_eq!(body(0), CALL.replace("/tmp/first/run/toy", "$WORKSPACE"));
    assert_eq!(body(1), TEXT);
}

#[tokio::test]
async fn another_question_stops_the_player_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.json");
    record(&file).await;
    let error = play(&file, "what was it?").await.unwrap_err();
    for part in ["exchange 1 of 2", "`/messages/1/content`", "-what is it?", "+what was it?"] {
        assert!(error.message.contains(part), "{part:?} is not in {error}");
    }
    let cassette = Cassette::parse(&std::fs::read(&file).unwrap()).unwrap();
    let mut bench = replaying(cassette, "/tmp/second/toy").await;
    let codec = codec("acme", Wire::OpenAiChat, "http://127.0.0.1:1");
    let first = session(&mut bench, &codec, "what was it?").await.unwrap_err();
    // Even the right question is too late.
    bench.context = bailey_kernel::Context::new(bench.context.instruction().clone());
    let again = session(&mut bench, &codec, "what is it?").await.unwrap_err();
    assert_eq!(first.message, again.message);
}

#[tokio::test]
async fn a_session_that_goes_on_runs_off_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.json");
    record(&file).await;
    let cassette = Cassette::parse(&std::fs::read(&file).unwrap()).unwrap();
    let mut bench = replaying(cassette, "/tmp/second/toy").await;
    let codec = codec("acme", Wire::OpenAiChat, "http://127.0.0.1:1");
    session(&mut bench, &codec, "what is it?").await.unwrap();
    bench.say("and now?").await;
    let error = bench.ask(&codec).await.unwrap_err();
    assert!(error.message.contains("at its end: exchange 3 was asked for and it holds 2"), "{error}");
}

#[tokio::test]
async fn what_was_cut_off_is_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.json");
    let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ndata: ".to_vec();
    let server = Server::start(vec![cut]).await;
    let codec = codec("acme", Wire::OpenAiChat, &server.url);
    let empty = Cassette::new(codec.endpoint());
    let recorder = |seal| -> Arc<dyn Executor> {
        let file = Recording::open(&file).unwrap();
        Arc::new(Recorder::new(door(&server.url, seal), empty, file, Normaliser::new("/tmp/w")))
    };
    let mut bench = Bench::new(recorder, "/tmp/w").await;
    bench.say("hello").await;
    bench.ask(&codec).await.unwrap_err();
    assert_eq!(std::fs::read(&file).unwrap(), b"");
}
