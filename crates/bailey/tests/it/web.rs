//! The agent's own way to the web: a person says yes to a server once, what is fetched becomes text inside the walls, and what is
//! sent is shown first.

use crate::{
    door::{MAY_END, Upstream, whole},
    stage::Stage,
};
use bailey_testkit::Reply;
use serde_json::{Value, json};
use std::fs;

const DEFAULT: &str = include_str!("../../../policy/src/default.toml");

/// A home whose agent may reach this server, by the default rules and these.
fn stage(server: &Upstream, rules: &str) -> Stage {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    fs::write(stage.home().join("policy/default.toml"), DEFAULT).unwrap();
    fs::write(stage.home().join("policy/own.toml"), format!("{MAY_END}{rules}")).unwrap();
    let place = format!("http://{}", server.address);
    fs::write(stage.home().join("config.toml"), format!("[network]\nprivate = [\"{place}\"]\n")).unwrap();
    stage
}

fn run(stage: &Stage, calls: &[(&str, Value)], options: &[&str]) -> Vec<String> {
    let mut script: Vec<Reply> =
        calls.iter().map(|(tool, args)| Reply::calls([("c1", *tool, args.clone())])).collect();
    script.push(Reply::text("done"));
    // The model of the last run is gone.
    let config = stage.home().join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.split("[providers.test]").next().unwrap()).unwrap();
    let _server = stage.model_beside(script);
    let ran = stage.ran(&[&["--json", "run", "--model", "test/model"], options, &["do it"]].concat());
    ran.results()
}

const ALLOW: &str = "\n[[rule]]\nname = \"all\"\nanswer = \"allow\"\npriority = 1\nmatch = { action = \"http\", method = [\"GET\", \"POST\"] }\n";

#[test]
fn a_page_becomes_text_and_what_is_none_is_said_to_be_none() {
    let server = Upstream::start(|first, length| match first.split(' ').nth(1).unwrap() {
        "/page" => {
            whole("200 OK", b"<title>A title</title><p>Some <a href='/x'>words</a><script>hidden()</script>")
        }
        "/moved" => {
            b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/x\r\nContent-Length: 0\r\n\r\n".to_vec()
        }
        "/json" => b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{\"a\":1}"
            .to_vec(),
        "/image" => {
            b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 4\r\n\r\n\x89PNG".to_vec()
        }
        "/long" => whole("200 OK", "<p>word</p>".repeat(20_000).as_bytes()),
        "/endless" => whole("200 OK", &vec![b'x'; 6 << 20]),
        _ => whole("200 OK", format!("took {length}").as_bytes()),
    });
    let stage = stage(&server, ALLOW);
    let url = |path: &str| format!("http://{}{path}", server.address);
    let fetch = |path: &str| ("web_fetch", json!({ "url": url(path) }));
    let calls = [
        fetch("/page"),
        fetch("/moved"),
        fetch("/json"),
        fetch("/image"),
        ("web_fetch", json!({ "url": url("/long"), "from": 119_990 })),
        fetch("/endless"),
        (
            "web_request",
            json!({ "method": "POST", "url": url("/x"), "headers": { "X-A": "b" }, "body": "hello" }),
        ),
        ("web_fetch", json!({ "url": "file:///etc/passwd" })),
        ("web_fetch", json!({ "url": "http://127.0.0.1:1/x" })),
        ("web_request", json!({ "method": "POST", "url": url("/x"), "headers": { "Host": "evil.example" } })),
    ];
    let told = run(&stage, &calls, &["--approve", "never"]);
    let expect = [
        "A title\nSome words (/x)",
        "It leads on to http://169.254.169.254/x",
        "{\"a\":1}",
        "It is no text",
        "characters 119990 to 119998 of 119998",
        "there was more than is taken",
        "took 5",
        "is no absolute",
        "at another port than",
        "the header `host` cannot be sent",
    ];
    for (told, expected) in told.iter().zip(expect) {
        assert!(told.contains(expected), "{expected}: {}", told.chars().take(600).collect::<String>());
    }
    assert_eq!(told.len(), expect.len());
    assert!(!told[0].contains("hidden()"), "{}", told[0]);
    let asked = server.asked();
    assert!(
        asked.iter().any(|head| head.contains("x-a: b")) && !asked.iter().any(|head| head.contains("ookie"))
    );
    // The page was read behind walls, and the entry says so.
    let exported = stage.ran(&["audit", "export"]).stdout;
    assert!(exported.contains(r#"\"report\":\"page\""#) && exported.contains("net_namespace"), "walls");
}

#[test]
fn a_person_is_asked_once_for_a_server_and_each_time_for_what_is_sent() {
    let server = Upstream::start(|_, length| whole("200 OK", format!("page {length}").as_bytes()));
    let other = Upstream::start(|_, _| whole("200 OK", b"page of another"));
    let stage = stage(&server, "");
    let both =
        format!("[network]\nprivate = [\"http://{}\", \"http://{}\"]\n", server.address, other.address);
    fs::write(stage.home().join("config.toml"), both).unwrap();
    let fetch =
        |of: &Upstream, path: &str| ("web_fetch", json!({ "url": format!("http://{}{path}", of.address) }));
    run(&stage, &[fetch(&server, "/1")], &["--approve", "later"]);
    assert_eq!(server.asked(), [""; 0], "nothing leaves before the yes");
    let open = stage.ran(&["--json", "approvals", "list"]).lines();
    let id = open[0]["id"].as_str().unwrap().to_owned();
    let shown = stage.ran(&["approvals", "show", &id]);
    assert!(shown.stdout.contains(&format!("every page of http://{}", server.address)), "{shown:?}");
    let approved = stage.ran(&["approvals", "approve", &id, "--pattern"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    // Another session, where nobody is asked.
    let sent = (
        "web_request",
        json!({ "method": "POST", "url": format!("http://{}/x", server.address), "body": "b" }),
    );
    let asks = (
        "web_request",
        json!({ "method": "GET", "url": format!("http://{}/x", server.address), "headers": { "X-A": "b" } }),
    );
    let calls = [fetch(&server, "/2"), fetch(&server, "/3"), fetch(&other, "/4"), sent, asks];
    let told = run(&stage, &calls, &["--approve", "never"]);
    assert!(told[0].contains("page 0") && told[1].contains("page 0"), "{told:?}");
    for refused in &told[2..] {
        assert!(!refused.contains("page "), "{refused}");
    }
    assert_eq!((server.asked().len(), other.asked().len()), (2, 0));
    // A command is no better off for it.
    let command = "curl -sS --noproxy '' ".to_owned() + &format!("http://{}/5", server.address);
    let own = fs::read_to_string(stage.home().join("policy/own.toml")).unwrap();
    fs::write(stage.home().join("policy/own.toml"), own + crate::door::MAY_ASK).unwrap();
    let ran = stage.ran(&["sandbox", "run", "--network", "--", "sh", "-c", &command]);
    assert!(ran.stdout.contains("refused this request"), "{ran:?}");
    assert_eq!(
        stage.ran(&["--json", "approvals", "list"]).lines(),
        [] as [Value; 0],
        "nobody waits for an answer"
    );
    // Other rules void what was said.
    let told = run(&stage, &[fetch(&server, "/6")], &["--approve", "never"]);
    assert!(!told[0].contains("page 0") && server.asked().len() == 2, "{told:?}");
}

#[test]
fn so_many_requests_are_made_in_a_minute() {
    let server = Upstream::start(|_, _| whole("200 OK", b"page"));
    let stage = stage(&server, ALLOW);
    let calls: Vec<_> = (0..12)
        .map(|_| ("web_request", json!({ "method": "POST", "url": format!("http://{}/", server.address) })))
        .collect();
    let told = run(&stage, &calls, &["--approve", "never"]);
    assert_eq!(server.asked().len(), 10);
    assert!(told[10].contains("10 requests of this kind were made in a minute"), "{}", told[10]);
}
