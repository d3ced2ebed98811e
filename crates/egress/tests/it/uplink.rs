//! Uplinks: where they lead, where the key goes, and streams.

use crate::{
    bench::{KEY, Yard, yard},
    server::{Log, Server, Step, answer, frame, open_ended, serve, text},
};
use bailey_egress::{
    Config, Uplink, UplinkEnd, UplinkError,
    uplink::{Opening, Request, ServerResponse, StreamEnd, StreamKind, StreamMessage, UplinkStream},
};
use bailey_kernel::Acted;
use bailey_protocol::{Action, Report, Status, Uplink as Way, UplinkServer};
use bailey_secrets::{Secret, Vault};
use std::{sync::Arc, time::Duration};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

const ANY: &str = "[[rule]]\nname = \"any\"\nanswer = \"allow\"\nmatch = { action = \"http\" }\n";
const PATIENCE: Duration = Duration::from_millis(400);
const MESSAGE_MAX: usize = 1 << 20;

/// An uplink whose action runs.
struct Open {
    end: UplinkEnd,
    acted: JoinHandle<Acted>,
    _home: tempfile::TempDir,
}

async fn uplink_under(rules: &str, way: Way) -> Open {
    let mut vault = Vault::default();
    vault.insert("TEST_API_KEY".into(), Secret::new(KEY.into()));
    let Yard { kernel, registrar, journal, connection, home } = yard(rules).await;
    let config = Config { connect_timeout: PATIENCE, ..Config::default() };
    let (executor, end) = Uplink::new(way.clone(), &config, Arc::new(vault), journal.seal()).unwrap();
    registrar.register(vec![executor]);
    let owner = registrar.owner(&connection);
    let acted = tokio::spawn(async move {
        let acted = kernel.act(&owner, Action::Uplink(way), &[]).await.unwrap();
        // Its connection ends with it.
        drop((connection, registrar));
        acted
    });
    Open { end, acted, _home: home }
}

async fn uplink(way: Way) -> UplinkEnd {
    uplink_under(ANY, way).await.end
}

fn of(methods: &[&str]) -> Vec<String> {
    methods.iter().map(|it| (*it).to_owned()).collect()
}

/// The key stands in a header, behind a word.
fn way(url: &str, methods: &[&str]) -> Way {
    Way {
        header: Some("authorization".into()),
        prefix: "Bot ".into(),
        methods: of(methods),
        ..Way::new("chat", url, "TEST_API_KEY")
    }
}

fn and(mut way: Way, url: &str, methods: &[&str], takes_key: bool) -> Way {
    way.also.push(UplinkServer { url: url.into(), methods: of(methods), takes_key });
    way
}

fn request(method: &str, target: &str) -> Request {
    Request {
        method: method.into(),
        target: target.into(),
        headers: Vec::new(),
        body: "{}".into(),
        name: "one".into(),
        bytes_max: 1 << 20,
        patience: PATIENCE,
    }
}

fn opening(kind: StreamKind, target: &str) -> Opening {
    Opening {
        kind,
        target: target.into(),
        headers: Vec::new(),
        message_bytes_max: MESSAGE_MAX,
        quiet_max: PATIENCE,
        patience: PATIENCE,
    }
}

fn websocket(target: &str) -> Opening {
    opening(StreamKind::WebSocket, target)
}

fn refused<T: std::fmt::Debug>(answer: Result<T, UplinkError>, words: &str) {
    let error = answer.unwrap_err();
    assert!(error.why.contains(words) && !error.may_have_arrived, "{error:?}");
}

async fn ok() -> Server {
    serve(answer("200 OK", b"{}")).await
}

#[tokio::test]
async fn any_method_goes_with_headers_and_with_the_key_behind_its_prefix() {
    let server = ok().await;
    let end = uplink(way(&format!("{}/api", server.url), &["PATCH", "PUT", "GET"])).await;
    let headers = vec![("Content-Type".to_owned(), "text/plain".to_owned())];
    for method in ["PATCH", "PUT", "GET"] {
        let sent = Request { headers: headers.clone(), body: "a".into(), ..request(method, "/m/1?x=2") };
        assert_eq!(end.send(sent).await.unwrap().status, 200);
    }
    let [patch, put, get] = &server.log.requests()[..] else { panic!("{:?}", server.log.requests()) };
    assert!(patch.starts_with("PATCH /api/m/1?x=2 HTTP/1.1\r\n") && patch.ends_with("\r\n\r\na"), "{patch}");
    assert!(put.contains("content-type: text/plain\r\n") && !put.contains("json"), "{put}");
    assert!(get.ends_with("\r\n\r\n"), "{get}");
    for sent in [patch, put, get] {
        assert!(sent.contains(&format!("authorization: Bot {KEY}\r\n")), "{sent}");
    }
    // Headers that say who is spoken to, and the key's own, are not the caller's.
    for name in ["Host", "Authorization", "Connection"] {
        let headers = vec![(name.to_owned(), "x".to_owned())];
        refused(end.send(Request { headers, ..request("PUT", "/") }).await, "network door alone");
    }
    let headers = vec![("X-Name".to_owned(), "a\r\nhost: b".to_owned())];
    refused(end.send(Request { headers, ..request("PUT", "/") }).await, "cannot be sent");
}

/// The control: the same server, once the permit names it.
#[tokio::test]
async fn attack_a_server_or_a_method_that_the_permit_does_not_name_is_refused() {
    let (api, other) = (ok().await, ok().await);
    let alone = way(&api.url, &["POST"]);
    let end = uplink(alone.clone()).await;
    let at_other = format!("{}/file", other.url);
    let host = other.url.trim_start_matches("http://");
    let of_host = api.url.trim_start_matches("http://");
    for target in [
        at_other.clone(),
        format!("@{host}/file"),
        format!("http://{of_host}@{host}/file"),
        format!("https://{of_host}/file"),
        format!("HTTP://{host}/file"),
        format!("ws://{host}/file"),
    ] {
        for method in ["POST", "GET", "WEBSOCKET"] {
            let answer = end.send(request(method, &target)).await;
            assert!(answer.is_err_and(|error| !error.may_have_arrived), "{method} {target}");
        }
        assert!(end.open(websocket(&target)).await.is_err(), "{target}");
        assert!(end.open(opening(StreamKind::Events, &target)).await.is_err(), "{target}");
    }
    refused(end.send(request("GET", "/x")).await, "does not name the method `GET`");
    let end_of_stream = end.open(websocket("/x")).await.unwrap_err();
    assert!(end_of_stream.why.contains("does not name the method `WEBSOCKET`"), "{end_of_stream}");
    assert_eq!((api.log.connections(), other.log.connections()), (0, 0));
    let end = uplink(and(alone, &other.url, &["GET"], false)).await;
    assert_eq!(end.send(request("GET", &at_other)).await.unwrap().status, 200, "the control");
    refused(end.send(request("POST", &at_other)).await, "does not name the method `POST`");
}

/// The control: the same requests to a server that takes the key.
#[tokio::test]
async fn attack_the_key_goes_to_no_server_that_does_not_take_it() {
    let (api, cdn) = (ok().await, ok().await);
    let socket = serve(vec![Step::Switch, Step::Frame, Step::Hang]).await;
    let of_url = |header: Option<&str>, takes_key| {
        let way = Way { header: header.map(Into::into), ..way(&api.url, &["POST", "GET"]) };
        let way = and(way, &cdn.url, &["POST", "GET"], takes_key);
        and(way, &socket.url, &["WEBSOCKET"], takes_key)
    };
    let at = |server: &Server, path: &str| format!("{}{path}", server.url);
    for header in [Some("authorization"), None] {
        let end = uplink(of_url(header, false)).await;
        for method in ["POST", "GET"] {
            end.send(request(method, &at(&cdn, "/file"))).await.unwrap();
            let keyed = end.send(request(method, &at(&cdn, "/file/{key}"))).await;
            refused(keyed, "`TEST_API_KEY` is not for `http://127.0.0.1:");
        }
        let keyed = end.open(websocket(&at(&socket, "/{key}"))).await.unwrap_err();
        assert!(keyed.why.contains("is not for `http://127.0.0.1:"), "{keyed}");
        // A place for the key in the host leads nowhere.
        let host = cdn.url.trim_start_matches("http://");
        for target in [format!("http://{{key}}.{host}/"), format!("http://{{key}}@{host}/"), "{key}/".into()]
        {
            let answer = end.send(request("GET", &target)).await;
            assert!(answer.is_err_and(|error| !error.may_have_arrived), "{target}");
        }
        let mut stream = end.open(websocket(&at(&socket, "/"))).await.unwrap();
        stream.say(r#"{"token":"{key}"}"#.into(), true).unwrap();
        assert!(stream.next().await.unwrap_err().why.contains("is not for"));
        let text = [cdn.log.requests(), socket.log.requests()].concat().concat();
        assert!(!text.contains(KEY) && !text.contains("webhook-signature"), "{text}");
    }
    let end = uplink(of_url(Some("authorization"), true)).await;
    end.send(request("GET", &at(&cdn, "/{key}"))).await.unwrap();
    let stream = end.open(websocket(&at(&socket, "/{key}"))).await.unwrap();
    stream.say("{key} stays".into(), false).unwrap();
    sleep(PATIENCE / 4).await;
    let seen = [cdn.log.requests(), socket.log.requests()].concat().concat();
    assert_eq!(seen.matches(&format!("GET /{KEY} HTTP/1.1\r\n")).count(), 2, "the control: {seen}");
    assert_eq!(seen.matches(&format!("authorization: Bot {KEY}\r\n")).count(), 2, "the control: {seen}");
    assert!(seen.ends_with("81 {key} stays"), "only a text that is meant to have the key gets it: {seen}");
    let stream = end.open(websocket(&at(&socket, "/"))).await.unwrap();
    stream.say(r#"{"token":"{key}"}"#.into(), true).unwrap();
    sleep(PATIENCE / 4).await;
    let seen = socket.log.requests().concat();
    assert!(seen.ends_with(&format!(r#"81 {{"token":"{KEY}"}}"#)), "the control: {seen}");
}

/// The control: without the rule about one of them it opens.
#[tokio::test]
async fn attack_a_rule_about_one_server_of_several_stops_the_uplink() {
    let (api, cdn) = (ok().await, serve(vec![Step::Switch, Step::Hang]).await);
    let way = and(
        way(&api.url, &["POST"]),
        &cdn.url.replace("127.0.0.1", "localhost"),
        &["GET", "WEBSOCKET"],
        false,
    );
    for matches in [r#"host = "localhost""#, r#"method = "WEBSOCKET""#, r#"host = "127.0.0.1""#] {
        let rules = format!("{ANY}\n[[rule]]\nname = \"not\"\nanswer = \"deny\"\nmatch = {{ {matches} }}\n");
        let open = uplink_under(&rules, way.clone()).await;
        let acted = timeout(Duration::from_secs(5), open.acted).await.unwrap().unwrap();
        assert!(matches!(acted, Acted::Denied(_)), "{matches}: {acted:?}");
    }
    assert_eq!((api.log.connections(), cdn.log.connections()), (0, 0));
    let end = uplink(way).await;
    assert_eq!(end.send(request("POST", "/x")).await.unwrap().status, 200, "the control");
}

#[tokio::test]
async fn redirects_are_not_followed_by_requests_and_streams() {
    let other = ok().await;
    let head = format!("HTTP/1.1 302 Found\r\nLocation: {}/x\r\nContent-Length: 0\r\n\r\n", other.url);
    let server = serve(vec![Step::Send(head.into_bytes())]).await;
    let way = and(way(&server.url, &["GET", "WEBSOCKET"]), &other.url, &["GET", "WEBSOCKET"], true);
    let end = uplink(way).await;
    let answer: ServerResponse = end.send(request("GET", "/")).await.unwrap();
    assert_eq!(answer.status, 302);
    for kind in [StreamKind::WebSocket, StreamKind::Events] {
        assert_eq!(end.open(opening(kind, "/")).await.unwrap_err().status, Some(302));
    }
    assert_eq!(other.log.connections(), 0);
}

/// The texts of a WebSocket whose server does this, until its end.
async fn heard(steps: Vec<Step>) -> (Vec<String>, StreamEnd, Log) {
    let server = serve([vec![Step::Switch], steps].concat()).await;
    let end = uplink(way(&server.url, &["WEBSOCKET"])).await;
    let stream = end.open(websocket("/")).await.unwrap();
    let (messages, end) = until_its_end(stream).await;
    (messages.into_iter().map(|it| it.data).collect(), end, server.log)
}

async fn until_its_end(mut stream: UplinkStream) -> (Vec<StreamMessage>, StreamEnd) {
    let mut messages = Vec::new();
    loop {
        match timeout(Duration::from_secs(10), stream.next()).await.unwrap() {
            Ok(message) => messages.push(message),
            Err(end) => return (messages, end),
        }
    }
}

#[tokio::test]
async fn a_websocket_brings_whole_texts_however_they_are_torn() {
    let mut steps = vec![text("\u{2603} one".as_bytes())];
    // A text in two frames, with a ping between, torn in the middle of a character and of a head.
    let parts = [frame(0x01, 2, b"t\xe2"), frame(0x89, 1, b"p"), frame(0x80, 5, b"\x98\x83 wo")].concat();
    for byte in parts {
        steps.extend([Step::Send(vec![byte]), Step::Wait(1)]);
    }
    // The answer to the ping, and the close.
    steps.push(Step::Frame);
    steps.push(Step::Send(frame(0x88, 15, b"\x0f\xa4Not allowed\x1b[")));
    steps.push(Step::Frame);
    let (texts, end, log) = heard(steps).await;
    assert_eq!(texts, ["\u{2603} one", "t\u{2603} wo"]);
    assert_eq!(end.code, Some(4004));
    assert!(end.why.ends_with("closed the stream (4004 Not allowed[)"), "{end}");
    let seen = log.requests();
    assert!(seen[0].starts_with("GET / HTTP/1.1\r\n") && seen[0].contains("sec-websocket-version: 13\r\n"));
    assert_eq!(seen[1], "8a p");
}

/// The control: a message that is just as long as it may be.
#[tokio::test]
async fn attack_a_message_of_a_websocket_that_is_too_long_ends_it() {
    let long = vec![b'x'; MESSAGE_MAX];
    let (texts, end, _) = heard(vec![text(&long), Step::Close]).await;
    assert_eq!((texts.len(), texts[0].len()), (1, MESSAGE_MAX), "the control: {end}");
    let too_long = |steps: Vec<Step>| async move {
        let began = Instant::now();
        let (texts, end, log) = heard(steps).await;
        assert!(texts.is_empty() && end.why.contains("more than 1048576 bytes"), "{end}");
        assert!(log.sent.load(std::sync::atomic::Ordering::SeqCst) < 12 << 20, "it was cut");
        assert!(began.elapsed() < Duration::from_secs(5));
    };
    // 50 MB in one frame, by its head alone; more than there is; and in frames without end.
    too_long(vec![Step::Send(frame(0x81, 50 << 20, b"x")), Step::Hang]).await;
    too_long(vec![Step::Send(frame(0x81, u64::MAX >> 1, b"x")), Step::Hang]).await;
    let piece = || Step::Send(frame(0x00, 256 << 10, &[b'x'; 256 << 10]));
    let first = Step::Send(frame(0x01, 1, b"x"));
    too_long([vec![first], (0..200).map(|_| piece()).collect()].concat()).await;
}

#[tokio::test]
async fn attack_hostile_frames_end_a_websocket() {
    let masked = [&[0x81, 0x81, 0, 0, 0, 0][..], b"x"].concat();
    for (bytes, words) in [
        (frame(0x81, 3, b"a\xff\xfe"), "no UTF-8"),
        (frame(0x82, 1, b"x"), "bytes where a text is expected"),
        (masked, "broke the stream"),
        (frame(0xf1, 1, b"x"), "broke the stream"),
        (frame(0x80, 1, b"x"), "broke the stream"),
        (frame(0x89, 126, &[b'x'; 126]), "broke the stream"),
        (b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), "broke the stream"),
    ] {
        let (texts, end, _) = heard(vec![text(b"before"), Step::Send(bytes), Step::Hang]).await;
        assert_eq!(texts, ["before"]);
        assert!(end.why.contains(words), "{words}: {end}");
    }
    let (_, end, _) = heard(vec![Step::Send(frame(0x81, 9, b"cut")), Step::Close]).await;
    assert!(end.why.contains("stream"), "{end}");
}

/// The control: one that answers pings stays open.
#[tokio::test]
async fn a_silent_websocket_is_pinged_and_then_ended() {
    let (_, end, log) = heard(vec![Step::Frame, Step::Hang]).await;
    assert!(end.why.contains("sent nothing for 0.4 s"), "{end}");
    assert_eq!(log.requests()[1], "89 ");
    let drip = (0..30).flat_map(|_| [Step::Send(b"x".to_vec()), Step::Wait(40)]).collect();
    let (_, end, _) = heard([vec![Step::Send(frame(0x81, 30, b""))], drip, vec![Step::Close]].concat()).await;
    assert!(end.why.contains("sent nothing for 0.4 s"), "one byte after the other: {end}");
    let pong = || [Step::Frame, Step::Send(frame(0x8a, 0, b""))];
    let steps = [(0..4).flat_map(|_| pong()).collect(), vec![text(b"late"), Step::Close]].concat();
    let began = Instant::now();
    let (texts, ..) = heard(steps).await;
    assert_eq!(texts, ["late"], "the control");
    assert!(began.elapsed() > PATIENCE * 3 / 2, "{:?}", began.elapsed());
}

/// The control: the head that such a server sends.
#[tokio::test]
async fn attack_a_server_that_does_not_open_a_websocket() {
    let opened = |steps: Vec<Step>| async move {
        let server = serve(steps).await;
        uplink(way(&server.url, &["WEBSOCKET"])).await.open(websocket("/")).await
    };
    assert!(opened(vec![Step::Switch, Step::Hang]).await.is_ok(), "the control");
    let began = Instant::now();
    let end = opened(vec![Step::Hang]).await.unwrap_err();
    assert!(end.why.contains("did not begin to answer within 0.4 s"), "{end}");
    assert!(began.elapsed() < PATIENCE * 5);
    let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    let end = opened(vec![Step::Send(head.into()), Step::Hang]).await.unwrap_err();
    assert!(end.why.contains("does not speak WebSocket"), "the accept of another key: {end}");
    let end = opened(answer("401 Unauthorized", b"no")).await.unwrap_err();
    assert_eq!(end.status, Some(401), "{end}");
}

/// The events of a server that does this, until its end.
async fn events(steps: Vec<Step>) -> (Vec<StreamMessage>, StreamEnd, Log) {
    let server = serve([vec![open_ended()], steps].concat()).await;
    let end = uplink(way(&server.url, &["GET"])).await;
    let (messages, end) =
        until_its_end(end.open(opening(StreamKind::Events, "/sse?since=1")).await.unwrap()).await;
    (messages, end, server.log)
}

#[tokio::test]
async fn events_come_as_they_are_sent_and_an_event_without_end_is_cut() {
    let send = |text: &str| Step::Send(text.as_bytes().to_vec());
    let (came, end, log) =
        events(vec![send("id: 1\nevent: message\nda"), Step::Wait(20), send("ta: one\n\n"), Step::Close])
            .await;
    assert_eq!(came, [StreamMessage { name: "message".into(), id: "1".into(), data: "one".into() }]);
    assert!(end.why.contains("ended the stream"), "{end}");
    let asked = log.requests().concat();
    assert!(
        asked.starts_with("GET /sse?since=1 HTTP/1.1\r\n") && asked.contains("accept: text/event-stream")
    );
    assert!(asked.contains(&format!("authorization: Bot {KEY}\r\n")), "{asked}");

    let endless = vec![Step::Send(vec![b'x'; 50 << 20]), Step::Hang];
    let (came, end, log) = events([vec![send("data: one\n\ndata: ")], endless].concat()).await;
    assert_eq!((came.len(), end.why.contains("more than 1048576 bytes")), (1, true), "{end}");
    assert!(log.sent.load(std::sync::atomic::Ordering::SeqCst) < 12 << 20, "it was cut");

    let (_, end, _) = events(vec![send(": still here\n"), Step::Hang]).await;
    assert!(end.why.contains("sent nothing for 0.4 s"), "{end}");

    // One byte after the other, and never whole; the control: comments that are whole.
    let dripped = |text: &str| {
        let drip = |byte: u8| [Step::Send(vec![byte]), Step::Wait(40)];
        text.bytes().cycle().take(30).flat_map(drip).collect::<Vec<_>>()
    };
    let (_, end, _) = events(dripped("data: x\n").into_iter().chain([Step::Close]).collect()).await;
    assert!(end.why.contains("sent nothing for 0.4 s"), "{end}");
    let (_, end, _) = events(dripped(":\n").into_iter().chain([Step::Close]).collect()).await;
    assert!(end.why.contains("ended the stream"), "the control: {end}");

    let server = serve(answer("200 OK", b"<html>")).await;
    let end = uplink(way(&server.url, &["GET"])).await;
    let end = end.open(opening(StreamKind::Events, "/")).await.unwrap_err();
    assert!(end.why.contains("sends no events"), "{end}");
}

#[tokio::test]
async fn a_stream_ends_with_its_holder_and_with_its_effect() {
    let server = serve(vec![Step::Switch, Step::Frame, Step::Hang]).await;
    let open = uplink_under(ANY, way(&server.url, &["WEBSOCKET"])).await;
    drop(open.end.open(websocket("/")).await.unwrap());
    sleep(PATIENCE / 4).await;
    assert!(server.log.requests()[1].starts_with("88 "), "it is closed: {:?}", server.log.requests());

    let mut stream = open.end.open(websocket("/")).await.unwrap();
    stream.say("hello".into(), false).unwrap();
    sleep(PATIENCE / 4).await;
    drop(open.end);
    let acted = timeout(Duration::from_secs(5), open.acted).await.unwrap().unwrap();
    let Acted::Done(output) = acted else { panic!("{acted:?}") };
    let Report::Relayed(report) = &output.outcome().report else { panic!("{output:?}") };
    assert_eq!((&output.outcome().status, report.out), (&Status::Done, 5));
    assert!(stream.next().await.is_err());
}
