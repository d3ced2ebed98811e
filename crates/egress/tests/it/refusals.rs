//! Where the door does not send, and what it does not do on its own.

use crate::{
    bench::{Bench, config, get, with_header},
    server::{Step, answer, serve},
};
use bailey_egress::{Config, Egress, Endpoint};
use bailey_kernel::Chunk;
use bailey_protocol::{HeaderValue, HttpRequest, Status};

#[tokio::test]
async fn only_configured_endpoints_are_dialled() {
    let (known, other) = (serve(answer("200 OK", b"")).await, serve(answer("200 OK", b"")).await);
    let bench = Bench::new(config(&[&known.url])).await;
    let refused = bench.send(get(&other.url)).await;
    assert!(refused.failure().contains("is no configured endpoint"), "{}", refused.failure());
    assert_eq!(other.log.connections(), 0);
    // The control: with the endpoint configured the same request arrives.
    let open = Bench::new(config(&[&known.url, &other.url])).await;
    assert_eq!(open.send(get(&other.url)).await.status, Status::Done);
    assert_eq!(other.log.connections(), 1);
}

#[tokio::test]
async fn who_is_spoken_to_is_not_for_headers_to_say() {
    let server = serve(answer("200 OK", b"")).await;
    let bench = Bench::new(config(&[&server.url])).await;
    for name in ["host", "Host", "content-length", "transfer-encoding", "connection"] {
        let seen = bench.send(with_header(&server.url, name, HeaderValue::Text("x".into()))).await;
        assert!(seen.failure().contains("network door alone"), "{}", seen.failure());
    }
    let connect = HttpRequest { method: "CONNECT".into(), ..get(&server.url) };
    assert!(bench.send(connect).await.failure().contains("no HTTP method"));
    assert_eq!(server.log.connections(), 0);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let target = serve(answer("200 OK", b"")).await;
    let head = format!("HTTP/1.1 307 Go\r\nLocation: {}/x\r\nContent-Length: 0\r\n\r\n", target.url);
    let server = serve(vec![Step::Send(head.into_bytes())]).await;
    let bench = Bench::new(config(&[&server.url, &target.url])).await;
    let seen = bench.send(get(&server.url)).await;
    assert_eq!((seen.status, seen.report.status), (Status::Done, 307));
    assert_eq!((server.log.requests().len(), target.log.connections()), (1, 0));
}

#[tokio::test]
async fn the_answer_is_streamed_and_reported() {
    let server = serve(answer("418 Teapot", b"short and stout")).await;
    let bench = Bench::new(config(&[&server.url])).await;
    let seen = bench.send(get(&server.url)).await;
    assert_eq!((seen.report.status, seen.report.body.0.as_slice()), (418, b"short and stout".as_slice()));
    assert!(seen.report.headers.contains(&("x-test".into(), "yes".into())));
    assert_eq!(seen.chunks[0], Chunk::Head(418, seen.report.headers.clone()));
    assert_eq!(seen.streamed(), b"short and stout");
}

#[tokio::test]
async fn connections_are_reused() {
    let server = serve(answer("200 OK", b"x")).await;
    let bench = Bench::new(config(&[&server.url])).await;
    for _ in 0..3 {
        assert_eq!(bench.send(get(&server.url)).await.status, Status::Done);
    }
    assert_eq!((server.log.requests().len(), server.log.connections()), (3, 1));
}

#[tokio::test]
async fn an_endpoint_that_is_no_url_is_refused_at_start_up() {
    let bench = Bench::new(config(&[])).await;
    for url in ["", "example.com", "ftp://example.com", "https://me@example.com", "https://"] {
        let endpoints = vec![Endpoint { url: url.into(), secrets: vec![], first_byte_timeout: None }];
        let config = Config { endpoints, ..Config::default() };
        assert!(Egress::new(config, Default::default(), bench.kernel.journal().seal()).is_err(), "{url}");
    }
}
