//! The agent's own requests at the door, beside keys of commands.

use crate::{
    bench::get,
    server::{Server, Step, answer, serve},
};
use bailey_egress::{Authority, BoundKey, ForwardConfig, ForwardProxy, KeyForm, Proxies};
use bailey_journal::{Journal, SystemClock};
use bailey_kernel::Gateway as _;
use bailey_policy::{Method, UrlGlob};
use bailey_protocol::{Blob, HttpRequest};
use bailey_secrets::{Redactor, Secret, Vault};
use std::{sync::Arc, time::Duration};

/// A door where a key is bound to one server, and another server is the owner's, too.
async fn door(keyed: &str, private: &[&str]) -> ForwardProxy {
    let home = tempfile::tempdir().unwrap();
    let redactor = Redactor::new(&Vault::default());
    let (journal, _) =
        Journal::open(&home.path().join("journal.db"), redactor, Arc::new(SystemClock)).await.unwrap();
    let mut vault = Vault::default();
    vault.insert("FORGE_TOKEN".into(), Secret::new("ghp_Zk3vQ9sX1bN7tR5wY2mC8dF6hJ4lP0aE".into()));
    let key = BoundKey {
        secret: "FORGE_TOKEN".into(),
        variable: "FORGE_TOKEN".into(),
        at: keyed.into(),
        methods: vec![Method::new("POST").unwrap()],
        paths: vec![UrlGlob::new("/**").unwrap()],
        header: "authorization".into(),
        form: KeyForm::Prefixed("Bearer ".into()),
    };
    let config = ForwardConfig {
        private: private.iter().map(|&url| url.into()).collect(),
        proxies: Proxies::default(),
        extra_authorities: None,
        connect_timeout: Duration::from_secs(10),
        idle_timeout: Duration::from_secs(10),
        requests_max: 100,
        keys: vec![key],
        tunnels: vec![],
        limits: vec![],
    };
    ForwardProxy::new(config, Authority::new().unwrap(), Arc::new(vault), journal.seal()).unwrap()
}

fn post(server: &Server, body: &[u8]) -> HttpRequest {
    HttpRequest { method: "POST".into(), body: Blob(body.to_vec()), ..get(&format!("{}/x", server.url)) }
}

#[tokio::test]
async fn a_stand_in_in_the_body_of_a_request_of_the_agents_own_is_refused() {
    let (keyed, other) =
        (serve(answer("200 OK", b"took it")).await, serve(answer("200 OK", b"took it")).await);
    let door = door(&keyed.url, &[&keyed.url, &other.url]).await;
    let stand_in = door.stand_ins().remove(0).value;
    let hex: String = stand_in.bytes().map(|byte| format!("{byte:02x}")).collect();
    for server in [&keyed, &other] {
        for body in [format!("here: {stand_in}, and more"), hex.clone(), stand_in.replace('-', "\\u002D")] {
            let refused = door.fetch(&post(server, body.as_bytes()), 1000).await.unwrap_err();
            assert!(refused.why.contains("shows the stand-in of a key"), "{body}: {refused:?}");
            assert!(!refused.sent);
        }
        assert_eq!(server.log.requests(), [""; 0], "nothing left");
        let half = &stand_in[..stand_in.len() - 1];
        let passed = door.fetch(&post(server, half.as_bytes()), 1000).await.unwrap();
        assert_eq!(passed.body, b"took it", "the control");
    }
}

#[tokio::test]
async fn what_is_packed_though_nobody_asked_for_that_is_told_as_packed() {
    for (head, packed) in [("gzip", true), ("br, identity", true), ("identity", false)] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Encoding: {head}\r\n\r\nok");
        let server = serve(vec![Step::Send(head.into_bytes())]).await;
        let door = door("https://keyed.example", &[&server.url]).await;
        let got = door.fetch(&get(&format!("{}/x", server.url)), 1000).await.unwrap();
        assert_eq!((got.body.as_slice(), got.packed), (&b"ok"[..], packed));
    }
}
