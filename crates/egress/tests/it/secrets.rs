//! Keys are put in at the door and are nowhere else.

use crate::{
    bench::{Bench, KEY, config, get, key, with_header},
    server::{answer, serve},
};
use bailey_egress::Endpoint;
use bailey_protocol::Status;

#[tokio::test]
async fn secrets_stay_outside() {
    let server = serve(answer("200 OK", b"fine")).await;
    let bench = Bench::new(config(&[&server.url])).await;
    let seen = bench.send(with_header(&server.url, "authorization", key("TEST_API_KEY"))).await;
    assert_eq!(seen.status, Status::Done);
    // The control: the key did get there.
    assert!(server.log.requests()[0].contains(&format!("authorization: Bearer {KEY}\r\n")));
    let journal = bench.journal_text().await;
    assert!(journal.contains("TEST_API_KEY") && !journal.contains(KEY), "{journal}");
}

#[tokio::test]
async fn a_secret_goes_to_its_own_endpoint_only() {
    let (own, other) = (serve(answer("200 OK", b"")).await, serve(answer("200 OK", b"")).await);
    let mut config = config(&[&own.url]);
    config.endpoints.push(Endpoint { url: other.url.clone(), secrets: vec![], first_byte_timeout: None });
    let bench = Bench::new(config).await;
    let send = |url: &str| with_header(url, "authorization", key("TEST_API_KEY"));
    let refused = bench.send(send(&other.url)).await;
    assert!(refused.failure().contains("does not belong to"), "{}", refused.failure());
    assert_eq!(other.log.connections(), 0);
    // The controls: the key goes to its own endpoint, and the other endpoint is open to requests without it.
    assert_eq!(bench.send(send(&own.url)).await.status, Status::Done);
    assert_eq!(bench.send(get(&other.url)).await.status, Status::Done);
}

#[tokio::test]
async fn a_missing_secret_is_named() {
    let server = serve(answer("200 OK", b"")).await;
    let mut config = config(&[&server.url]);
    config.endpoints[0].secrets.push("OTHER_API_KEY".into());
    let bench = Bench::new(config).await;
    let seen = bench.send(with_header(&server.url, "x-api-key", key("OTHER_API_KEY"))).await;
    assert!(seen.failure().contains("`OTHER_API_KEY` is not set; set it"), "{}", seen.failure());
    assert!(!seen.sent);
    assert_eq!(server.log.connections(), 0);
}

#[tokio::test]
async fn a_key_never_stands_in_an_error() {
    let server = serve(answer("200 OK", b"")).await;
    let mut config = config(&[&server.url]);
    config.endpoints[0].secrets.push("BROKEN_API_KEY".into());
    let bench = Bench::new(config).await;
    let broken = bench.send(with_header(&server.url, "x-api-key", key("BROKEN_API_KEY"))).await;
    assert!(broken.failure().contains("`BROKEN_API_KEY`"), "{}", broken.failure());
    assert!(!broken.failure().contains(KEY), "{}", broken.failure());
    let gone = Bench::new(crate::bench::config(&["http://127.0.0.1:1"])).await;
    let seen = gone.send(with_header("http://127.0.0.1:1/", "authorization", key("TEST_API_KEY"))).await;
    assert!(
        seen.failure().contains("no server listens") && !seen.failure().contains(KEY),
        "{}",
        seen.failure()
    );
}
