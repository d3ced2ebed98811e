//! The agent's own way to the web: a person says yes to a server once, what is fetched becomes text inside
//! the walls, and what is sent is shown first.

use crate::{
    door::{MAY_END, Upstream, whole},
    stage::{Ran, Stage},
};
use bailey_testkit::{Gate, Message, Reply};
use serde_json::{Value, json};
use std::{fs, process::Stdio};

pub(crate) const DEFAULT: &str = include_str!("../../../policy/src/default.toml");

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

pub(crate) fn run(stage: &Stage, calls: &[(&str, Value)], options: &[&str]) -> Vec<String> {
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
        "it is no text",
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
    let seen = stage.entries("observation");
    assert!(seen.iter().take(4).all(|seen| seen["labels"]["integrity"] == "external"), "{seen:#?}");
}

/// Who is told of a plain failure sends again, what may have been taken the first time.
#[test]
fn what_may_have_arrived_is_told_to_have() {
    let server = Upstream::start(|first, _| match first.split(' ').nth(1).unwrap() {
        "/whole" => whole("200 OK", b"took it"),
        "/half" => b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_vec(),
        _ => Vec::new(),
    });
    let stage = stage(&server, ALLOW);
    let config = stage.home().join("config.toml");
    let shut = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let private = format!("private = [\"http://{}\", \"http://{shut}\"]", server.address);
    fs::write(config, format!("[network]\n{private}\n")).unwrap();
    let post = |url: String| ("web_request", json!({ "method": "POST", "url": url, "body": "hello" }));
    let calls = [
        post(format!("http://{}/nothing", server.address)),
        post(format!("http://{}/half", server.address)),
        post(format!("http://{shut}/")),
        post(format!("http://{}/whole", server.address)),
    ];
    let told = run(&stage, &calls, &["--approve", "never"]);
    assert!(told[0].contains("gave no answer") && told[0].contains("may have arrived"), "{told:?}");
    assert!(told[1].contains("the connection broke") && told[1].contains("may have arrived"), "{told:?}");
    assert!(told[2].contains("cannot be reached") && !told[2].contains("arrived"), "the control: {told:?}");
    assert!(told[3].contains("took it") && !told[3].contains("arrived"), "the control: {told:?}");
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
fn servers_that_were_said_yes_to_are_listed_and_every_session_asks_again_once_one_is_taken_back() {
    let servers: Vec<Upstream> =
        (0..2).map(|_| Upstream::start(|_, _| whole("200 OK", b"page of it"))).collect();
    let place = |of: &Upstream| format!("http://{}", of.address);
    let stage = stage(&servers[0], "");
    let both = format!("[network]\nprivate = [\"{}\", \"{}\"]\n", place(&servers[0]), place(&servers[1]));
    fs::write(stage.home().join("config.toml"), both).unwrap();
    let fetch = |of: &Upstream| ("web_fetch", json!({ "url": format!("{}/1", place(of)) }));
    let both = || [fetch(&servers[0]), fetch(&servers[1])];
    let listed = || stage.ran(&["--json", "approvals", "servers"]).lines();
    for server in &servers {
        run(&stage, &[fetch(server)], &["--approve", "later"]);
    }
    assert_eq!(listed(), [] as [Value; 0], "what is only asked is no yes");
    let open = stage.ran(&["--json", "approvals", "list"]).lines();
    let id = |question: &Value| question["id"].as_str().unwrap().to_owned();
    for question in &open {
        assert_eq!(stage.ran(&["approvals", "approve", &id(question), "--pattern"]).code, Some(0));
    }
    let found = listed();
    let names: Vec<_> = found.iter().map(|yes| yes["server"].clone()).collect();
    assert_eq!(names, [place(&servers[0]), place(&servers[1])]);
    assert_eq!((&found[0]["question"], &found[0]["session"]), (&open[0]["id"], &open[0]["session"]));
    assert!(found[0]["by"] == "owner" && found[0]["person"]["uid"].is_u64(), "{found:?}");
    assert!(found[0]["since"].as_str() >= open[0]["asked"].as_str(), "{found:?}");
    let shown = stage.ran(&["approvals", "servers"]);
    assert!(shown.stdout.contains(&place(&servers[0])) && shown.stdout.contains("in session"), "{shown:?}");
    // The control: other sessions fetch from both.
    let told = run(&stage, &both(), &["--approve", "never"]);
    assert!(told.iter().all(|text| text.contains("page of it")), "{told:?}");
    let unknown = stage.ran(&["approvals", "revoke", "http://192.0.2.1:80"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("are not approved"), "{unknown:?}");
    // A session that fetched there already asks again, too.
    let gate = Gate::default();
    let config = stage.home().join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.split("[providers.test]").next().unwrap()).unwrap();
    let [first, second] = both();
    let model = stage.model_beside(vec![
        Reply::calls([("c1", first.0, first.1.clone())]),
        Reply::Held(gate.clone(), Message::calls([("c2", first.0, first.1)])),
        Reply::calls([("c3", second.0, second.1)]),
        Reply::text("done"),
    ]);
    let mut task = stage.bailey(&["--json", "run", "--model", "test/model", "--approve", "never", "do it"]);
    let child = task.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    model.wait_for(2);
    let revoked = stage.ran(&["approvals", "revoke", &place(&servers[0]), "--reason", "no more"]);
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    assert_eq!(listed(), found[1..]);
    gate.open();
    let told = Ran::of(child.wait_with_output().unwrap()).results();
    let is_page: Vec<bool> = told.iter().map(|text| text.contains("page of it")).collect();
    assert_eq!(is_page, [true, false, true], "{told:?}");
    assert_eq!((servers[0].asked().len(), servers[1].asked().len()), (2, 2));
    // By its name alone: the other one is at the same address.
    let revoked = stage.ran(&["approvals", "revoke", "127.0.0.1"]);
    assert!(revoked.code == Some(0) && revoked.stdout.contains(&place(&servers[1])), "{revoked:?}");
    assert_eq!(listed(), [] as [Value; 0]);
    let trail = stage.trail();
    let is_no =
        |entry: &&Value| entry["type"] == "answered" && entry["answer"] == "no" && entry["by"] == "owner";
    assert_eq!(trail.iter().filter(is_no).count(), 2, "each is an entry");
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));
}

#[test]
fn what_a_server_has_is_saved_byte_for_byte_where_the_rules_let_it_be_written() {
    const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\0\xff\xfe<html>";
    let server = Upstream::start(|first, _| match first.split(' ').nth(1).unwrap() {
        "/picture" => whole("200 OK", PICTURE),
        "/most" => whole("200 OK", &vec![b'x'; 8 << 20]),
        "/more" => whole("200 OK", &vec![b'x'; (8 << 20) + 1]),
        "/moved" => {
            b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/x\r\nContent-Length: 0\r\n\r\n".to_vec()
        }
        _ => whole("404 Not Found", b"nothing here"),
    });
    let stage = stage(&server, ALLOW);
    std::os::unix::fs::symlink("/etc", stage.project().join("out")).unwrap();
    fs::write(stage.project().join(".env"), "KEY=value\n").unwrap();
    let save = |path: &str, to: &str| {
        ("web_fetch", json!({ "url": format!("http://{}{path}", server.address), "save_to": to }))
    };
    let calls = [
        save("/picture", "new/picture.png"),
        save("/picture", "a.txt"),
        save("/most", "most"),
        save("/more", "more"),
        save("/moved", "moved"),
        save("/none", "none"),
        ("command_run", json!({ "argv": ["sh", "-c", "sha256sum new/picture.png a.txt; ls"] })),
        // Nothing is asked of the server for these.
        save("/1", "out/passwd"),
        save("/2", "/etc/passwd"),
        save("/3", "new"),
        save("/4", ".env"),
        save("/5", ".git/hooks/pre-commit"),
    ];
    let told = run(&stage, &calls, &["--approve", "never"]);
    let digest = bailey_protocol::Digest::of(PICTURE).to_string();
    for told in &told[..2] {
        assert!(told.contains("200, ") && told.contains(&format!("SHA-256 {digest}")), "{told}");
        assert!(!told.contains("PNG"), "{told}");
    }
    assert!(told[2].contains("8388608 bytes, saved as"), "{}", told[2]);
    assert!(told[3].contains("there is more of it") && told[3].contains("nothing was saved"), "{}", told[3]);
    assert!(told[4].contains("302") && told[4].contains("It leads on to http://169.254"), "{}", told[4]);
    assert!(told[5].contains("404") && told[5].contains("nothing was saved"), "{}", told[5]);
    assert_eq!(told[6].matches(&digest).count(), 2, "{}", told[6]);
    for absent in ["more", "moved", "none"] {
        assert!(!told[6].lines().any(|line| line == absent), "{}", told[6]);
    }
    for refused in &told[7..] {
        assert!(!refused.contains("saved as"), "{refused}");
    }
    let asked = server.asked();
    assert!(asked.iter().all(|head| !head.starts_with("GET /4")), "{asked:?}");
    assert_eq!(fs::read(stage.project().join("a.txt")).unwrap(), b"a\n", "it is the session's alone");
}

#[test]
fn a_yes_to_a_servers_pages_is_one_to_saving_them_inside() {
    let server = Upstream::start(|_, _| whole("200 OK", b"its bytes"));
    let stage = stage(&server, "");
    let save = ("web_fetch", json!({ "url": format!("http://{}/file", server.address), "save_to": "got" }));
    let look = ("command_run", json!({ "argv": ["cat", "got"] }));
    run(&stage, std::slice::from_ref(&save), &["--approve", "later"]);
    assert_eq!(server.asked(), [""; 0], "nothing leaves before the yes");
    let id = stage.ran(&["--json", "approvals", "list"]).lines()[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(stage.ran(&["approvals", "approve", &id, "--pattern"]).code, Some(0));
    let told = run(&stage, &[save, look], &["--approve", "never"]);
    assert!(told[0].contains("saved as") && told[1].contains("its bytes"), "{told:?}");
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

/// What came back was told as words with holes in them, or with an invisible character between each two
/// letters.
#[test]
fn text_is_read_in_its_own_letters_or_said_to_be_unread() {
    let server = Upstream::start(|first, _| {
        let wide: Vec<u8> = "<p>Grüße".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let (head, body) = match first.split(' ').nth(1).unwrap() {
            "/latin" => ("Content-Type: text/html; charset=iso-8859-1", b"<p>Gr\xfc\xdfe".to_vec()),
            "/latin.txt" => ("Content-Type: text/plain; charset=\"ISO-8859-1\"", b"Gr\xfc\xdfe".to_vec()),
            "/wide" => ("Content-Type: text/html; charset=utf-16", wide),
            "/odd" => ("Content-Type: text/html; charset=klingon", b"<p>odd".to_vec()),
            "/packed" => ("Content-Type: text/html\r\nContent-Encoding: gzip", b"\x1f\x8bgarbage".to_vec()),
            "/long" => ("Content-Type: text/html", format!("<p>{}", "語".repeat(360_000)).into_bytes()),
            _ => ("Content-Type: text/plain", "Grüße".into()),
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{head}\r\n\r\n", body.len());
        [head.as_bytes(), &body].concat()
    });
    let stage = stage(&server, ALLOW);
    let paths = ["/latin", "/latin.txt", "/wide", "/odd", "/packed", "/long", "/plain"];
    let calls: Vec<_> = paths
        .iter()
        .map(|path| ("web_fetch", json!({ "url": format!("http://{}{path}", server.address) })))
        .collect();
    let told = run(&stage, &calls, &["--approve", "never"]);
    let expect = [
        "Grüße",
        "Grüße",
        "Grüße",
        "a set of characters that is not known here",
        "it is packed, which nobody asked for",
        "there was more than is taken of one page",
        "Grüße",
    ];
    assert_eq!(told.len(), expect.len());
    for (told, expected) in told.iter().zip(expect) {
        assert!(told.contains(expected), "{expected}: {}", told.chars().take(600).collect::<String>());
        assert!(!told.contains("garbage") && !told.contains("␀") && !told.contains('\u{fffd}'), "{told}");
    }
}
