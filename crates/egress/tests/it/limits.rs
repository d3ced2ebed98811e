//! Times, sizes, and stopping.

use crate::{
    bench::{Bench, config, get},
    server::{Step, answer, open_ended, serve},
};
use bailey_protocol::Status;
use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

#[tokio::test]
async fn a_server_that_never_answers() {
    let server = serve(vec![Step::Hang]).await;
    let bench = Bench::new(config(&[&server.url])).await;
    let began = Instant::now();
    let seen = bench.send(get(&server.url)).await;
    assert!(seen.failure().contains("did not begin to answer within 0.4 s"), "{}", seen.failure());
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(seen.report.status, 0);
}

#[tokio::test]
async fn a_stream_that_stops_moving() {
    let server = serve(vec![open_ended(), Step::Send(b"data: 1\n".to_vec()), Step::Hang]).await;
    let bench = Bench::new(config(&[&server.url])).await;
    let began = Instant::now();
    let seen = bench.send(get(&server.url)).await;
    assert!(seen.failure().contains("sent nothing for 0.4 s"), "{}", seen.failure());
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(seen.report.body.0, b"data: 1\n");
}

#[tokio::test]
async fn a_stream_that_keeps_moving_has_no_limit() {
    let mut steps = vec![open_ended()];
    for _ in 0..8 {
        steps.extend([Step::Wait(150), Step::Send(b"x".to_vec())]);
    }
    steps.push(Step::Close);
    let server = serve(steps).await;
    let bench = Bench::new(config(&[&server.url])).await;
    let seen = bench.send(get(&server.url)).await;
    assert_eq!((seen.status, seen.report.body.0.len()), (Status::Done, 8));
}

#[tokio::test]
async fn nobody_listens() {
    let bench = Bench::new(config(&["http://127.0.0.1:1"])).await;
    let seen = bench.send(get("http://127.0.0.1:1/")).await;
    assert!(
        seen.failure().contains("no server listens at `http://127.0.0.1:1`; check"),
        "{}",
        seen.failure()
    );
    assert!(seen.sent, "another attempt may succeed");
}

#[tokio::test]
async fn an_answer_that_breaks_off() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_vec();
    let server = serve(vec![Step::Send(head), Step::Close]).await;
    let bench = Bench::new(config(&[&server.url])).await;
    let seen = bench.send(get(&server.url)).await;
    assert!(seen.failure().contains("broke in the middle"), "{}", seen.failure());
    assert_eq!((seen.report.status, seen.report.body.0.as_slice()), (200, b"half".as_slice()));
    let server = serve(vec![Step::Close]).await;
    let bench = Bench::new(config(&[&server.url])).await;
    let seen = bench.send(get(&server.url)).await;
    assert!(seen.failure().contains("without an answer"), "{}", seen.failure());
}

#[tokio::test]
async fn a_body_is_bounded() {
    let limit = 1 << 20;
    for (size, fits) in [(limit, true), (limit + 1, false), (50 << 20, false)] {
        let server = serve(answer("200 OK", &vec![b'x'; size])).await;
        let bench =
            Bench::new(bailey_egress::Config { body_bytes_max: limit, ..config(&[&server.url]) }).await;
        let seen = bench.send(get(&server.url)).await;
        assert_eq!(seen.status == Status::Done, fits, "{size}");
        assert_eq!((seen.report.body.0.len(), seen.streamed().len()), (limit, limit));
        if !fits {
            assert!(seen.failure().contains("answer larger than 1 MiB"), "{}", seen.failure());
        }
    }
}

#[tokio::test]
async fn a_cancelled_stream_ends_at_once() {
    let server = serve(vec![open_ended(), Step::Send(b"data: 1\n".to_vec()), Step::Hang]).await;
    let slow = bailey_egress::Config { idle_timeout: Duration::from_secs(60), ..config(&[&server.url]) };
    let bench = Bench::new(slow).await;
    let scope = bench.scope();
    let cancel = scope.cancel().clone();
    let sent = server.log.sent.clone();
    tokio::spawn(async move {
        while sent.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
    });
    let began = Instant::now();
    let seen = bench.send_in(&scope, get(&server.url)).await;
    assert_eq!((seen.status, seen.report.body.0.as_slice()), (Status::Cancelled, b"data: 1\n".as_slice()));
    assert!(began.elapsed() < Duration::from_secs(5));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.log.closed.load(Ordering::SeqCst), 1, "the connection is closed");
}

/// What a request that was given up used is told by this: until a connection stands nothing has left.
#[tokio::test]
async fn what_was_given_up_says_whether_it_was_sent() {
    let patient = |url: &str| bailey_egress::Config {
        connect_timeout: Duration::from_secs(60),
        first_byte_timeout: Duration::from_secs(60),
        ..config(&[url])
    };
    // A server that hears the beginning of a secure connection and says nothing to it.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let bench = Bench::new(patient(&url)).await;
    let scope = bench.scope();
    let mute = async {
        let (stream, _) = listener.accept().await.unwrap();
        stream.readable().await.unwrap();
        scope.cancel().cancel();
        stream
    };
    let (seen, _stream) = tokio::join!(bench.send_in(&scope, get(&url)), mute);
    assert_eq!((seen.status, seen.report.sent), (Status::Cancelled, false));
    // The control: one that has the request and does not answer.
    let server = serve(vec![Step::Hang]).await;
    let bench = Bench::new(patient(&server.url)).await;
    let scope = bench.scope();
    let asked = async {
        while server.log.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        scope.cancel().cancel();
    };
    let (seen, ()) = tokio::join!(bench.send_in(&scope, get(&server.url)), asked);
    assert_eq!((seen.status, seen.report.sent), (Status::Cancelled, true));
}

#[tokio::test]
async fn whoever_does_not_read_holds_the_server_back() {
    let size = 8 << 20;
    let server = serve(answer("200 OK", &vec![b'x'; size])).await;
    let bench =
        Bench::new(bailey_egress::Config { idle_timeout: Duration::from_secs(10), ..config(&[&server.url]) })
            .await;
    let open = bench.hold();
    let sent = server.log.sent.clone();
    let held = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let held = sent.load(Ordering::SeqCst);
        open.send(()).await.unwrap();
        held
    });
    let seen = bench.send(get(&server.url)).await;
    let held = held.await.unwrap();
    assert!(held < size * 3 / 4, "{held} bytes were taken although nobody read");
    assert_eq!((seen.streamed().len(), seen.status), (size, Status::Done));
}
