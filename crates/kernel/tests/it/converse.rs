//! Model calls, against a server on a real socket, on both wires.

use bailey_journal::{BeginError, Fact};
use bailey_kernel::{ModelErrorKind, Refused, Reply as Said, StopReason};
use bailey_llm::{Codec, Endpoint, Wire};
use bailey_protocol::{Happening, Status};
use bailey_testkit::{Bench, Gate, Message, ModelServer, Reply, Setup};
use serde_json::json;
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

async fn ask(bench: &Bench, server: &ModelServer, wire: Wire) -> Result<Said, Refused> {
    let (scope, context) = bench.context("go").await;
    let provider = bench.provider(server, wire, 1000);
    bench.kernel.converse(&scope, &context, &*provider, &[]).await
}

async fn with(reply: Reply) -> (Bench, ModelServer) {
    let server = ModelServer::always(reply);
    let bench = Bench::new(Setup::default().model(&server)).await;
    (bench, server)
}

async fn used(bench: &Bench) -> u64 {
    bench.journal.session(&bench.session.to_string()).await.unwrap().tokens_used
}

#[tokio::test]
async fn both_wires_carry_text_calls_and_counts() {
    for wire in [Wire::Anthropic, Wire::OpenAiChat] {
        let calls = [
            ("call_1", "fs_read", json!({ "path": "a" })),
            ("call_2", "fs_write", json!({ "path": "b", "content": "ä\n" })),
        ];
        let message = Message { text: "I look.".into(), ..Message::calls(calls).costs(120, 80) };
        let (mut bench, server) = with(Reply::Message(message)).await;
        let reply = ask(&bench, &server, wire).await.unwrap();
        let answer = reply.answer();
        assert_eq!((answer.text.as_str(), answer.stop), ("I look.", StopReason::Calls));
        let names: Vec<_> =
            answer.calls.iter().map(|call| (call.id.0.as_str(), call.name.as_str())).collect();
        assert_eq!(names, [("call_1", "fs_read"), ("call_2", "fs_write")]);
        let arguments: serde_json::Value = serde_json::from_str(&answer.calls[1].arguments).unwrap();
        assert_eq!(arguments, json!({ "path": "b", "content": "ä\n" }));
        assert_eq!(used(&bench).await, 200);
        let text: String = bench
            .happened()
            .into_iter()
            .filter_map(|event| match event {
                Happening::Text { text } => Some(text),
                _ => None,
            })
            .collect();
        assert_eq!(text, "I look.");
        assert_eq!(bench.trail().await[2..], ["intent", "outcome", "reply"]);
        assert!(server.requests()[0].body.contains("go"));
    }
}

#[tokio::test]
async fn failures_have_kinds() {
    let cases = [
        (Reply::error(401, "authentication_error", "bad key"), ModelErrorKind::Auth),
        (Reply::error(404, "not_found_error", "no such model"), ModelErrorKind::NotFound),
        (Reply::retry_after(429, "7"), ModelErrorKind::RateLimited(Some(Duration::from_secs(7)))),
        (Reply::error(529, "overloaded_error", "busy"), ModelErrorKind::Overloaded(None)),
        (Reply::Cut(Message::text("half of it")), ModelErrorKind::Cut),
    ];
    for (reply, kind) in cases {
        for wire in [Wire::Anthropic, Wire::OpenAiChat] {
            let (bench, server) = with(reply.clone()).await;
            match ask(&bench, &server, wire).await {
                Err(Refused::Model(error)) => assert_eq!(error.kind, kind, "{error}"),
                other => panic!("{reply:?} brought {other:?}"),
            }
            assert_eq!(bench.trail().await[2..], ["intent", "outcome"]);
        }
    }
}

#[tokio::test]
async fn a_reply_without_end_is_cut_off() {
    let (bench, server) = with(Reply::Huge(50 << 20)).await;
    let refused = ask(&bench, &server, Wire::Anthropic).await.unwrap_err();
    assert!(matches!(&refused, Refused::Model(error) if error.kind == ModelErrorKind::TooLarge), "{refused}");
}

#[tokio::test]
async fn a_failed_call_costs_what_may_have_been_used() {
    // Refused before anything was read: nothing.
    let (bench, server) = with(Reply::error(529, "overloaded_error", "busy")).await;
    ask(&bench, &server, Wire::Anthropic).await.unwrap_err();
    assert_eq!(used(&bench).await, 0);
    // Begun and cut: nobody knows, so what was reserved.
    let (bench, server) = with(Reply::Cut(Message::text("half of it"))).await;
    ask(&bench, &server, Wire::Anthropic).await.unwrap_err();
    assert!(used(&bench).await >= 1000, "{} tokens", used(&bench).await);
}

#[tokio::test]
async fn a_slow_reply_comes_whole() {
    let (bench, server) = with(Reply::Slow(Message::text("slowly"), Duration::from_millis(5))).await;
    assert_eq!(ask(&bench, &server, Wire::Anthropic).await.unwrap().answer().text, "slowly");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_call_ends_at_once_and_is_recorded() {
    let gate = Gate::default();
    let (bench, server) = with(Reply::Held(gate.clone(), Message::text("late"))).await;
    let (scope, context) = bench.context("go").await;
    let provider = bench.provider(&server, Wire::Anthropic, 1000);
    let cancel = scope.cancel().clone();
    let cancelling = async {
        tokio::task::spawn_blocking(move || server.wait_for(1)).await.unwrap();
        cancel.cancel();
    };
    let (ended, ()) = tokio::join!(bench.kernel.converse(&scope, &context, &*provider, &[]), cancelling);
    assert!(matches!(ended, Err(Refused::Cancelled)));
    gate.open();
    let Some(Fact::Outcome { status, .. }) = bench.facts("outcome").await.pop() else { panic!("no outcome") };
    assert_eq!(status, Status::Cancelled);
    assert!(used(&bench).await >= 1000);
}

#[tokio::test]
async fn the_journal_keeps_no_second_copy_of_a_request() {
    let (bench, server) = with(Reply::text("hi")).await;
    let (scope, context) = bench.context("a sentence that is easy to find").await;
    let provider = bench.provider(&server, Wire::Anthropic, 1000);
    bench.kernel.converse(&scope, &context, &*provider, &[]).await.unwrap();
    let entries = bench.entries().await;
    let holders = entries.iter().filter(|recorded| recorded.text().contains("easy to find"));
    let names: Vec<_> = holders.map(|recorded| recorded.entry.fact.name()).collect();
    assert_eq!(names, ["accepted"]);
}

#[tokio::test]
async fn a_used_up_budget_says_how_to_go_on() {
    let server = ModelServer::always(Reply::text("hi"));
    let bench = Bench::new(Setup { limit: 500, ..Setup::default() }.model(&server)).await;
    let refused = ask(&bench, &server, Wire::Anthropic).await.unwrap_err();
    assert!(matches!(&refused, Refused::Begin(BeginError::Budget(_))));
    assert!(refused.to_string().contains("raise `limits.session_tokens`"), "{refused}");
}

#[tokio::test]
async fn a_server_that_counts_too_little_is_not_believed() {
    let words = "one word after the other ".repeat(200);
    for (reported, least) in [((1, 1), 2_000), ((50_000, 9_000), 59_000)] {
        let (bench, server) = with(Reply::Message(Message::text(&words).costs(reported.0, reported.1))).await;
        let (scope, context) = bench.context(&words).await;
        let provider = bench.provider(&server, Wire::Anthropic, 100_000);
        bench.kernel.converse(&scope, &context, &*provider, &[]).await.unwrap();
        let used = used(&bench).await;
        assert!(used >= least, "{used} for {reported:?}");
        // Control: what it says of itself is no more than that where it says more.
        assert!(used <= least * 2, "{used} for {reported:?}");
    }
}

#[tokio::test]
async fn what_was_sent_counts_though_nobody_answers() {
    let (bench, server) = with(Reply::Gone).await;
    let refused = ask(&bench, &server, Wire::Anthropic).await.unwrap_err();
    assert!(
        matches!(&refused, Refused::Model(error) if error.kind == ModelErrorKind::Unreachable),
        "{refused}"
    );
    let sent = used(&bench).await;
    assert!((1..1000).contains(&sent), "what it was sent, and not the whole reservation: {sent}");
    // Control: where nobody was there to read it, it counts nothing.
    let (bench, server) = with(Reply::Gone).await;
    let (scope, context) = bench.context("go").await;
    let provider = bench.provider(&server, Wire::Anthropic, 1000);
    let address = server.base_url().replace("http://", "");
    drop(server);
    // Its socket is closed by its own thread.
    while std::net::TcpStream::connect(&address).is_ok() {}
    bench.kernel.converse(&scope, &context, &*provider, &[]).await.unwrap_err();
    assert_eq!(used(&bench).await, 0);
}

/// A gateway that gave up may have passed the request on: what was sent counts, and no answer that was not
/// written.
#[tokio::test]
async fn what_a_gateway_gave_up_counts_as_sent() {
    for wire in [Wire::Anthropic, Wire::OpenAiChat] {
        let used_at = async |status| {
            let (bench, server) = with(Reply::error(status, "api_error", "the gateway gave up")).await;
            ask(&bench, &server, wire).await.unwrap_err();
            let read = match bench.facts("outcome").await.pop() {
                Some(Fact::Outcome { used, .. }) => used.tokens,
                other => panic!("{other:?}"),
            };
            assert_eq!((used(&bench).await, server.requests().len()), (read, 1), "{status}");
            read
        };
        for status in [502, 504, 524] {
            let sent = used_at(status).await;
            assert!((1..1000).contains(&sent), "{status}: what was sent, not the whole reservation: {sent}");
        }
        // Controls: who refuses says so itself, and reads nothing.
        for status in [400, 401, 429, 503, 529] {
            assert_eq!(used_at(status).await, 0, "{status}");
        }
    }
}

/// Given up before anything left it counts nothing; the control is
/// `a_cancelled_call_ends_at_once_and_is_recorded`, where the server has the request.
#[tokio::test]
async fn a_call_that_was_cancelled_before_it_was_sent_counts_nothing() {
    let (bench, server) = with(Reply::text("late")).await;
    let (scope, context) = bench.context("go").await;
    scope.cancel().cancel();
    let provider = bench.provider(&server, Wire::Anthropic, 1000);
    let ended = bench.kernel.converse(&scope, &context, &*provider, &[]).await;
    assert!(matches!(ended, Err(Refused::Cancelled)), "{ended:?}");
    let Some(Fact::Outcome { status, .. }) = bench.facts("outcome").await.pop() else { panic!("no outcome") };
    assert_eq!((status, server.requests().len(), used(&bench).await), (Status::Cancelled, 0, 0));
}

const SECRET: &str = "sk-4711-of-nobody-else";

fn codec(wire: Wire, url: &str) -> Arc<Codec> {
    bailey_llm::provider(Endpoint {
        provider: "test".into(),
        wire,
        base_url: url.into(),
        model: "model".into(),
        key: None,
        max_tokens: 1000,
        window_tokens: None,
        prices: Vec::new(),
        takes_images: false,
        parameters: std::collections::BTreeMap::new(),
    })
}

/// A server that answers a request with these bytes and closes the connection.
fn sends(answer: impl Into<Vec<u8>>) -> String {
    serves(answer, false)
}

/// A server that answers a request with these bytes, and may leave the connection open until the other side
/// closes it.
fn serves(answer: impl Into<Vec<u8>>, stays_open: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (url, answer) = (format!("http://{}", listener.local_addr().unwrap()), answer.into());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = BufReader::new(stream.try_clone().unwrap());
        let mut length = 0;
        loop {
            let mut line = String::new();
            request.read_line(&mut line).unwrap();
            match line.trim_end().to_ascii_lowercase().split_once("content-length:") {
                Some((_, size)) => length = size.trim().parse().unwrap(),
                None if line.trim_end().is_empty() => break,
                None => {}
            }
        }
        request.read_exact(&mut vec![0; length]).unwrap();
        stream.write_all(&answer).unwrap();
        if stays_open {
            std::io::copy(&mut request, &mut std::io::sink()).ok();
        }
    });
    url
}

/// All that the test kit's server sends for a message on a wire, head and chunks.
fn sent(wire: Wire, message: Message) -> Vec<u8> {
    let server = ModelServer::always(Reply::Message(message)).lenient();
    let url = codec(wire, &server.base_url()).endpoint().url();
    let mut stream = TcpStream::connect(server.base_url().trim_start_matches("http://")).unwrap();
    let path = url.trim_start_matches(&server.base_url());
    write!(stream, "POST {path} HTTP/1.1\r\ncontent-length: 2\r\n\r\n{{}}").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut raw = Vec::new();
    stream.read_to_end(&mut raw).unwrap();
    raw
}

/// What a call of the server at this URL brings, and the text that front ends are told.
async fn heard(setup: Setup, wire: Wire, url: String) -> (Result<Said, Refused>, String, Bench) {
    let mut bench = Bench::new(Setup { models: vec![url.clone()], ..setup }).await;
    let (scope, context) = bench.context("go").await;
    let said = bench.kernel.converse(&scope, &context, &*codec(wire, &url), &[]).await;
    let text = bench
        .happened()
        .into_iter()
        .filter_map(|event| match event {
            Happening::Text { text } => Some(text),
            _ => None,
        })
        .collect();
    (said, text, bench)
}

fn sized(media: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {media}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_is_told() {
    let whole = [
        (
            Wire::Anthropic,
            json!({ "content": [{ "type": "text", "text": "All of it." }], "stop_reason": "end_turn" }),
        ),
        (
            Wire::OpenAiChat,
            json!({ "choices": [{ "message": { "content": "All of it." }, "finish_reason": "stop" }] }),
        ),
        (
            Wire::OpenAiResponses,
            json!({ "status": "completed", "output": [
                { "type": "message", "content": [{ "type": "output_text", "text": "All of it." }] }
            ] }),
        ),
        (
            Wire::Gemini,
            json!([{ "candidates": [{ "content": { "parts": [{ "text": "All of it." }] }, "finishReason": "STOP" }] }]),
        ),
        (Wire::Ollama, json!({ "message": { "content": "All of it." }, "done": true })),
    ];
    for (wire, body) in whole {
        let url = sends(sized("application/json", &body.to_string()));
        let (said, text, _) = heard(Setup::default(), wire, url).await;
        assert_eq!(
            (said.unwrap().answer().text.as_str(), text.as_str()),
            ("All of it.", "All of it."),
            "{wire:?}"
        );
    }
}

/// A stream whose last event lacks its blank line. The secret lies across that: its first half was streamed.
#[tokio::test]
async fn the_end_of_a_stream_is_told_and_shows_no_secret() {
    let (first, last) = SECRET.split_at(9);
    let first = json!({ "choices": [{ "delta": { "content": format!("It is {first}") } }] });
    let last = json!({ "choices": [{ "delta": { "content": format!("{last}, I think.") }, "finish_reason": "stop" }] });
    let body = format!("data: {first}\n\ndata: {last}");
    for redact in [true, false] {
        let setup = Setup { secrets: vec![("KEY".into(), SECRET.into())], redact, ..Setup::default() };
        let (said, text, _) = heard(setup, Wire::OpenAiChat, sends(sized("text/event-stream", &body))).await;
        assert!(said.is_ok() && text.starts_with("It is ") && text.ends_with(", I think."), "{text}");
        assert_eq!(text.contains(SECRET), !redact, "{text}");
    }
}

/// A whole answer behind which the connection breaks is paid for, and counts. Control: half of one does not.
#[tokio::test]
async fn a_whole_answer_counts_however_its_connection_ends() {
    for wire in Wire::ALL {
        let raw = sent(wire, Message::text("the whole answer").costs(12_000, 80));
        let open = raw.strip_suffix(b"0\r\n\r\n").unwrap().to_vec();
        let half = open[..open.len() / 2].to_vec();
        let (said, text, bench) = heard(Setup::default(), wire, sends(open)).await;
        assert_eq!(said.unwrap().answer().text, "the whole answer", "{wire:?}");
        assert_eq!((text.as_str(), used(&bench).await), ("the whole answer", 12_080), "{wire:?}");
        let Some(Fact::Outcome { status, .. }) = bench.facts("outcome").await.pop() else {
            panic!("no outcome")
        };
        assert_eq!(status, Status::Done, "{wire:?}");
        let (said, _, bench) = heard(Setup::default(), wire, sends(half)).await;
        assert!(
            matches!(&said, Err(Refused::Model(error)) if error.kind == ModelErrorKind::Cut),
            "{wire:?}: {said:?}"
        );
        let Some(Fact::Outcome { status, .. }) = bench.facts("outcome").await.pop() else {
            panic!("no outcome")
        };
        assert!(matches!(status, Status::Failed { .. }), "{wire:?}: {status:?}");
    }
}

/// Some servers leave the connection open behind a reply. Nobody waits for what cannot come; the time that a
/// connection may idle for is two minutes.
#[tokio::test]
async fn a_reply_that_is_over_waits_for_no_connection() {
    let open = |wire| {
        let raw = sent(wire, Message::text("the whole answer").costs(12_000, 80));
        raw.strip_suffix(b"0\r\n\r\n").unwrap().to_vec()
    };
    for wire in Wire::ALL.into_iter().filter(|wire| *wire != Wire::Gemini) {
        let (said, text, bench) = heard(Setup::default(), wire, serves(open(wire), true)).await;
        assert_eq!(said.unwrap().answer().text, "the whole answer", "{wire:?}");
        assert_eq!((text.as_str(), used(&bench).await), ("the whole answer", 12_080), "{wire:?}");
        let outcomes = bench.facts("outcome").await;
        assert!(matches!(outcomes.last(), Some(Fact::Outcome { status: Status::Done, .. })), "{outcomes:?}");
    }
    // What went wrong is told as soon.
    let error = "data: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"fell over\"}}\n\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let broken = format!("{head}{:x}\r\n{error}\r\n", error.len());
    let (said, ..) = heard(Setup::default(), Wire::Anthropic, serves(broken, true)).await;
    assert!(matches!(&said, Err(Refused::Model(error)) if error.message.contains("fell over")), "{said:?}");
    // The control: where a wire has no end of its own, what follows is waited for.
    let waited = heard(Setup::default(), Wire::Gemini, serves(open(Wire::Gemini), true));
    assert!(tokio::time::timeout(Duration::from_secs(3), waited).await.is_err());
}
