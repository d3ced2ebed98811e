//! The page: who is let in, what a browser may ask for and in whose name, and a person's day in a real one.

use crate::{
    attacks::actor::controls,
    daemon::{Daemon, PATIENCE, end, pid, resume},
    stage::{Ran, Stage},
};
use bailey_testkit::{Gate, Message, Reply};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    slice, thread,
    time::{Duration, Instant},
};

/// A page of a stage's home.
pub(crate) struct Page {
    pub(crate) port: u16,
    bearer: String,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// Its lines of JSON, of whatever pieces it came in.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.body
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .filter(Value::is_object)
            .collect()
    }
}

fn link(stage: &Stage) -> String {
    let ran = stage.ran(&["--json", "web", "link"]);
    ran.lines()[0]["url"].as_str().unwrap_or_else(|| panic!("{ran:?}")).to_owned()
}

fn port(link: &str) -> u16 {
    link.split(':').nth(2).unwrap().split('/').next().unwrap().parse().unwrap()
}

fn code(link: &str) -> &str {
    link.split("#code=").nth(1).unwrap()
}

/// The home wants its page anywhere: tests run beside each other.
pub(crate) fn anywhere(stage: &Stage) {
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap_or_default();
    fs::write(config, format!("{own}\n[page]\nlisten = \"127.0.0.1:0\"\n")).unwrap();
}

/// Sends a request as it is, and hears all of the answer.
fn raw(port: u16, request: &str) -> Answer {
    let mut stream = connect(port);
    stream.write_all(request.as_bytes()).unwrap();
    heard(stream)
}

/// The page listens from the daemon's start on, and its process may just begin.
pub(crate) fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn heard(mut stream: TcpStream) -> Answer {
    let mut answer = Vec::new();
    // Who cuts a request off in the middle may reset the connection.
    stream.read_to_end(&mut answer).ok();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head: head.into(), body: body.into() }
}

pub(crate) fn ask(port: u16, line: &str, heads: &[String], body: Option<&Value>) -> Answer {
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut request = format!("{line} HTTP/1.1\r\nconnection: close\r\n");
    heads.iter().for_each(|head| request.push_str(&format!("{head}\r\n")));
    if line.starts_with("POST") {
        request.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    raw(port, &format!("{request}\r\n{body}"))
}

impl Page {
    pub(crate) fn of(stage: &Stage) -> Self {
        let link = link(stage);
        let port = port(&link);
        let answer = enter(port, code(&link));
        assert_eq!(answer.status, 200, "{answer:?}");
        Self { port, bearer: answer.lines()[0]["done"].as_str().unwrap().to_owned() }
    }

    pub(crate) fn heads(&self) -> Vec<String> {
        vec![
            format!("host: 127.0.0.1:{}", self.port),
            format!("authorization: Bearer {}", self.bearer),
            "content-type: application/json".into(),
        ]
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        ask(self.port, &format!("GET {path}"), &self.heads(), None)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        ask(self.port, &format!("POST {path}"), &self.heads(), Some(body))
    }

    /// Begins a session: what happens there, and its stream and name.
    pub(crate) fn begin(&self, stage: &Stage, model: Option<&str>) -> (BufReader<TcpStream>, String, String) {
        let begun = self.post("/api/sessions", &json!({ "directory": stage.project(), "model": model }));
        let session = begun.lines()[0]["done"].as_str().unwrap_or_else(|| panic!("{begun:?}")).to_owned();
        let (lines, stream) = self.join(&session, "");
        (lines, stream, session)
    }

    pub(crate) fn say(&self, stream: &str, text: &str) {
        let said = self.post(&format!("/api/streams/{stream}"), &json!({ "op": "say", "text": text }));
        assert_eq!(said.status, 202, "{said:?}");
    }

    /// Looks on at a session: the lines, and the name of the stream.
    pub(crate) fn join(&self, session: &str, after: &str) -> (BufReader<TcpStream>, String) {
        let mut stream = connect(self.port);
        let heads = self.heads().join("\r\n");
        let line = format!("GET /api/sessions/{session}/events{after} HTTP/1.1\r\n{heads}\r\n\r\n");
        stream.write_all(line.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream);
        let first = event(&mut lines, "stream");
        (lines, first["stream"].as_str().unwrap().to_owned())
    }
}

/// Waits until no session has a process.
fn rests(daemon: &Daemon<'_>) {
    let deadline = Instant::now() + PATIENCE;
    while !daemon.status()["sessions"].as_array().unwrap().is_empty() {
        assert!(Instant::now() < deadline, "a session at rest stays: {}", daemon.status());
        thread::sleep(Duration::from_millis(50));
    }
}

fn enter(port: u16, code: &str) -> Answer {
    let heads = [format!("host: localhost:{port}"), "content-type: application/json".into()];
    ask(port, "POST /api/login", &heads, Some(&json!({ "code": code })))
}

/// The next event of a type.
pub(crate) fn event(lines: &mut BufReader<TcpStream>, kind: &str) -> Value {
    loop {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the stream ended before `{kind}`");
        match serde_json::from_str::<Value>(&line) {
            Ok(value) if value["type"] == kind => return value,
            _ => {}
        }
    }
}

pub(crate) fn started(stage: &Stage, program: &Path, without: &str) {
    let mut start = Command::new(program);
    start.args(stage.bailey(&["start"]).get_args()).env("BAILEY_CONTROL_PAGE_WITHOUT", without);
    assert!(start.current_dir(stage.project()).stderr(Stdio::null()).status().unwrap().success());
}

fn released() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_bailey"))
}

/// Attack A06.
#[test]
fn a_link_lets_one_browser_in_once_and_a_bearer_is_nowhere() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let _model = stage.model(Vec::new());
    anywhere(&stage);
    let _daemon = Daemon::start(&stage);
    let link = link(&stage);
    let (port, code) = (port(&link), code(&link).to_owned());
    assert_eq!(enter(port, &"0".repeat(64)).status, 401);
    let answer = enter(port, &code);
    assert_eq!(answer.status, 200, "{answer:?}");
    let bearer = answer.lines()[0]["done"].as_str().unwrap().to_owned();
    assert_eq!(enter(port, &code).status, 401, "it is good once");
    let page = Page { port, bearer };
    assert_eq!(page.get("/api/status").status, 200);
    let listed = stage.ran(&["--json", "page", "list"]).lines();
    assert_eq!(listed.len(), 1);

    for word in [&page.bearer, &code] {
        let found = Command::new("grep").args(["-rlaF", word]).arg(stage.home()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&found.stdout), "", "it is written down");
        let found = format!("grep -laF {word} /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null");
        let found = Command::new("sh").args(["-c", &found]).output().unwrap();
        // The shell that looks has it in its own line.
        let found = String::from_utf8_lossy(&found.stdout).lines().count();
        assert!(found <= 2, "a process was told it: {found}");
    }
    for wrong in [&page.bearer[1..], &format!("{} x", page.bearer), ""] {
        let page = Page { port, bearer: wrong.to_owned() };
        assert_eq!(page.get("/api/status").status, 401);
    }
}

/// Attacks A01 and A02.
#[test]
fn nobody_without_a_bearer_and_no_other_page_changes_or_sees_anything() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let _model = stage.model(Vec::new());
    anywhere(&stage);
    let schedule = json!({
        "act": "add_schedule", "name": "evil", "when": "* * * * *", "task": "x", "directory": stage.project(),
    });
    let has_it = || stage.ran(&["--json", "schedule", "list"]).stdout.contains("evil");
    // Each wall by itself: with it away, and only then, the same request is served.
    for (without, program) in [("", released()), ("bearer", controls()), ("origins", controls())] {
        started(&stage, program, without);
        let _daemon = Daemon::of(&stage);
        let page = Page::of(&stage);
        let (port, json) = (page.port, "content-type: application/json".to_owned());
        let host = format!("host: 127.0.0.1:{port}");
        let bearer = format!("authorization: Bearer {}", page.bearer);
        let other = |head: &str| vec![host.clone(), json.clone(), bearer.clone(), head.to_owned()];

        let nobody = [host.clone(), json.clone()];
        for (line, body) in [
            ("POST /api/do", Some(&schedule)),
            ("POST /api/do", Some(&json!({ "act": "estop" }))),
            ("POST /api/sessions", Some(&json!({ "directory": stage.project() }))),
            ("POST /api/logout", Some(&json!({}))),
            ("GET /api/status", None),
            ("GET /api/sessions", None),
            ("GET /api/audit", None),
            ("GET /metrics", None),
        ] {
            if without == "bearer"
                && (line == "POST /api/do" && body != Some(&schedule) || line.contains("logout"))
            {
                continue;
            }
            // A header that is empty is there, and whoever looks at what it says decides.
            let shown = [nobody.as_slice(), &["authorization: Bearer 0".to_owned()]].concat();
            let answer = ask(port, line, &shown, body);
            let is_served = answer.status == 200 || answer.status == 409;
            assert_eq!(is_served, without == "bearer", "{without}: {line}: {answer:?}");
            assert!(!without.is_empty() || answer.status == 401, "{line}: {answer:?}");
            assert_eq!(ask(port, line, &nobody, body).status, 401, "{line}: none is not even asked about");
        }
        assert_eq!(has_it(), without == "bearer");
        stage.ran(&["schedule", "rm", "evil"]);

        // Another page that came by a bearer, a name that was led here, a form.
        for (what, heads) in [
            ("another page", other("origin: https://evil.example")),
            ("another port's page", other(&format!("origin: http://127.0.0.1:{}", port - 1))),
            ("no page", other("origin: null")),
            ("a cross-site request", other("sec-fetch-site: cross-site")),
            ("a same-site request", other("sec-fetch-site: same-site")),
            ("rebinding", vec![format!("host: evil.example:{port}"), json.clone(), bearer.clone()]),
            ("a form", vec![host.clone(), "content-type: text/plain".into(), bearer.clone()]),
        ] {
            let answer = ask(port, "POST /api/do", &heads, Some(&schedule));
            let is_refused = matches!(answer.status, 403 | 415 | 421);
            assert_eq!(is_refused, without != "origins", "{without}: {what}: {answer:?}");
            assert_eq!(has_it(), without == "origins", "{without}: {what}");
            stage.ran(&["schedule", "rm", "evil"]);
        }
    }
}

/// Attack A04.
#[test]
fn guesses_are_counted_over_all_connections_and_a_right_code_waits_too() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let _model = stage.model(Vec::new());
    anywhere(&stage);
    for (without, program) in [("", released()), ("limit", controls())] {
        started(&stage, program, without);
        let _daemon = Daemon::of(&stage);
        let inside = Page::of(&stage);
        let link = link(&stage);
        let statuses: Vec<u16> = (0..40)
            .map(|number| {
                let wrong = format!("{number:064x}");
                if number % 2 == 0 {
                    enter(inside.port, &wrong).status
                } else {
                    Page { port: inside.port, bearer: wrong }.get("/api/status").status
                }
            })
            .collect();
        let later = statuses.iter().filter(|status| **status == 429).count();
        // Ten of each kind are looked at.
        assert_eq!(later, if without.is_empty() { 20 } else { 0 }, "{statuses:?}");
        // Names that a client may wish to be taken by change nothing.
        let heads = [format!("host: localhost:{}", inside.port), "content-type: application/json".into()];
        let more = json!({ "code": "0", "role": "owner", "token": "x" });
        assert_eq!(ask(inside.port, "POST /api/login", &heads, Some(&more)).status, 400);
        let answer = enter(inside.port, code(&link));
        assert_eq!(answer.status, if without.is_empty() { 429 } else { 200 }, "{answer:?}");
        assert_eq!(answer.head.contains("retry-after"), without.is_empty());
        assert_eq!(inside.get("/api/status").status, 200, "who is in already goes on");
    }
}

#[test]
fn wrong_bearers_keep_nobody_from_a_right_code() {
    let stage = Stage::new(&[]);
    let _model = stage.model(Vec::new());
    anywhere(&stage);
    let _daemon = Daemon::start(&stage);
    let link = link(&stage);
    let port = port(&link);
    let junk = |number: u32| Page { port, bearer: format!("{number:064x}") }.get("/api/status").status;
    let statuses: Vec<u16> = (0..12).map(junk).collect();
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
    assert_eq!(enter(port, code(&link)).status, 200);
    // That somebody tries is told once, and not each time.
    let log = stage.ran(&["--json", "logs", "--lines", "50"]).stdout;
    assert_eq!(log.matches("wrong_bearer").count(), 1, "{log}");
}

/// Attack A05. Two processes change who is let in: what one of them read before the other wrote brought a
/// revoked one back.
#[test]
fn whoever_is_revoked_while_others_are_let_in_stays_out() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    fs::create_dir_all(stage.home()).unwrap();
    anywhere(&stage);
    let _daemon = Daemon::start(&stage);
    for round in 0..8 {
        let browser = Page::of(&stage);
        let of = |line: &Value| (line["kind"] == "browser").then(|| line["login"].to_string());
        let numbers =
            || stage.ran(&["--json", "page", "list"]).lines().iter().filter_map(of).collect::<Vec<_>>();
        let number = numbers().pop().unwrap();
        let tokens: Vec<_> = (0..4)
            .map(|_| {
                stage.bailey(&["--json", "page", "token", "figures"]).stdout(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        assert_eq!(stage.ran(&["web", "revoke", &number]).code, Some(0));
        let tokens: Vec<Ran> =
            tokens.into_iter().map(|token| Ran::of(token.wait_with_output().unwrap())).collect();
        assert!(tokens.iter().all(|token| token.code == Some(0)), "{round}: {tokens:?}");
        assert!(!numbers().contains(&number), "{round}: it is back");
        assert_eq!(browser.get("/api/status").status, 401, "{round}");
        let figures = stage.ran(&["--json", "page", "list"]).lines();
        let count = figures.iter().filter(|line| line["kind"] == "figures").count();
        assert_eq!(count, 4 * (round + 1), "each that was printed is let in");
    }
}

#[test]
fn whoever_is_revoked_is_out_at_once_and_the_others_go_on_where_they_were() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = Gate::default();
    let model =
        stage.model(vec![Reply::text("the first"), Reply::Held(gate.clone(), Message::text("the second"))]);
    default_model(&stage);
    anywhere(&stage);
    let _daemon = Daemon::start(&stage);
    let (one, two) = (Page::of(&stage), Page::of(&stage));
    let answer = one.post("/api/sessions", &json!({ "directory": stage.project() }));
    let session = answer.lines()[0]["done"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned();
    let (mut of_one, stream) = one.join(&session, "");
    let (mut of_two, _) = two.join(&session, "");
    // A stream is whose it is: another's bearer says nothing there.
    let say = json!({ "op": "say", "text": "hello" });
    assert_eq!(two.post(&format!("/api/streams/{stream}"), &say).status, 409);
    assert_eq!(one.post(&format!("/api/streams/{stream}"), &say).status, 202);
    assert_eq!(event(&mut of_two, "said")["by"], json!("owner at the page (page 1)"));
    let end = event(&mut of_two, "end");
    event(&mut of_one, "end");
    assert_eq!(one.post(&format!("/api/streams/{stream}"), &say).status, 202);
    model.wait_for(2);

    let begin = Instant::now();
    assert_eq!(stage.ran(&["web", "revoke", "1"]).code, Some(0));
    let mut rest = String::new();
    of_one.read_to_string(&mut rest).ok();
    assert!(begin.elapsed() < Duration::from_secs(1), "its stream is open after {:?}", begin.elapsed());
    assert_eq!(one.get("/api/status").status, 401);
    assert_eq!(one.post(&format!("/api/streams/{stream}"), &say).status, 409);

    // The other one comes back behind the last line that it has, and the turn goes on.
    let (run, line) = (end["run"].as_str().unwrap(), end["line"].as_u64().unwrap());
    let (mut of_two, _) = two.join(&session, &format!("?run={run}&line={line}"));
    let next = event(&mut of_two, "said");
    assert_eq!(next["line"], json!(line + 1), "nothing is missing, and nothing twice");
    gate.open();
    event(&mut of_two, "text");
    event(&mut of_two, "end");
}

/// Attack A03.
#[test]
fn what_a_browser_says_of_itself_counts_for_nothing() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let _model = stage.model(vec![Reply::text("hello")]);
    default_model(&stage);
    anywhere(&stage);
    let _daemon = Daemon::start(&stage);
    let page = Page::of(&stage);
    let body = json!({ "directory": stage.project(), "role": "owner" });
    assert_eq!(page.post("/api/sessions", &body).status, 400, "nothing that is not asked for is taken");
    for (directory, model) in
        [("a", None), ("/nowhere", None), ("--no-sandbox", None), ("/", Some("--no-sandbox"))]
    {
        let answer = page.post("/api/sessions", &json!({ "directory": directory, "model": model }));
        assert_eq!(answer.status, 409, "{answer:?}");
    }
    // Words are words, and no flags.
    for name in ["--home=/tmp", "-C"] {
        let body = json!({ "act": "run_schedule", "name": name });
        let answer = page.post("/api/do", &body);
        assert!(answer.lines()[0]["error"].as_str().unwrap().contains(name), "{answer:?}");
    }
    let answer = page.post("/api/do", &json!({ "act": "config", "key": "model" }));
    assert_eq!(answer.status, 400, "no setting is written here: {answer:?}");

    let answer = page.post("/api/sessions", &json!({ "directory": stage.project() }));
    let session = answer.lines()[0]["done"].as_str().unwrap().to_owned();
    let (mut lines, stream) = page.join(&session, "");
    let by = json!({ "channel": "x", "id": "0", "name": "Root", "role": "owner" });
    let say = json!({ "op": "say", "text": "hello", "by": by });
    assert_eq!(page.post(&format!("/api/streams/{stream}"), &say).status, 202);
    event(&mut lines, "end");
    let shown = stage.ran(&["--json", "sessions", "show", &session]).lines();
    let said = shown.iter().find(|line| line["entry"]["type"] == "accepted").unwrap();
    assert_eq!(said["entry"]["by"]["channel"], "page", "{said}");
    assert_eq!(said["entry"]["by"]["name"], "at the page");
    for op in [json!({ "op": "estop" }), json!([]), json!({ "op": "say" })] {
        assert_eq!(page.post(&format!("/api/streams/{stream}"), &op).status, 400);
    }
}

#[test]
fn what_is_too_long_too_slow_or_none_of_it_ends_there() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let _model = stage.model(Vec::new());
    anywhere(&stage);
    let _daemon = Daemon::start(&stage);
    let page = Page::of(&stage);
    let long = "x".repeat(300 << 10);
    let answer = page.post("/api/do", &json!({ "act": "estop", "reason": long }));
    assert_eq!(answer.status, 413, "{answer:?}");
    let answer = page.post("/api/do", &json!({ "act": "estop", "reason": "x".repeat(100 << 10) }));
    assert_eq!(answer.status, 409, "{answer:?}");
    let head = format!("GET / HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nx: {long}\r\n\r\n", page.port);
    assert!(matches!(raw(page.port, &head).status, 431 | 0));
    for hostile in [
        "\u{0}\r\n\r\n",
        "GET /\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET http://evil/ HTTP/1.1\r\n\r\n",
    ] {
        let status = raw(page.port, hostile).status;
        assert!(status == 0 || status >= 400, "{hostile:?}: {status}");
    }
    // More connections than are served at once: those that come later wait, and none takes the others' place.
    let mut idle: Vec<TcpStream> = (0..100).map(|_| connect(page.port)).collect();
    idle.iter_mut().for_each(|stream| drop(stream.write_all(b"GET / HT")));
    assert_eq!(page.get("/api/status").status, 200);
    drop(idle);
    assert_eq!(page.get("/healthz").body, "ok\n");
}

#[test]
fn what_http_lets_clients_say_otherwise_is_the_same_here() {
    let stage = Stage::new(&[]);
    let _model = stage.model(Vec::new());
    anywhere(&stage);
    let _daemon = Daemon::start(&stage);
    let link = link(&stage);
    let port = port(&link);
    let host = format!("host: 127.0.0.1:{port}");
    // A browser is listed by its name and its system, and JSON has parameters.
    let heads = [
        host.clone(),
        "content-type: Application/JSON; charset=utf-8".into(),
        "user-agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/149.0.0.0 Safari/537.36"
            .into(),
    ];
    let answer = ask(port, "POST /api/login", &heads, Some(&json!({ "code": code(&link) })));
    assert_eq!(answer.status, 200, "{answer:?}");
    let bearer = answer.lines()[0]["done"].as_str().unwrap().to_owned();
    let listed = stage.ran(&["--json", "page", "list"]).lines();
    assert_eq!(listed[0]["name"], "Chrome 149, Linux", "{listed:?}");

    // The name of a scheme has letters of any case.
    for (scheme, status) in [("bearer", 200), ("BEARER", 200), ("Basic", 401)] {
        let heads = [host.clone(), format!("authorization: {scheme} {bearer}")];
        assert_eq!(ask(port, "GET /api/status", &heads, None).status, status, "{scheme}");
    }
    // Whoever asks for the head of something gets that alone.
    for path in ["/", "/page.js", "/healthz"] {
        let [head, get] = ["HEAD", "GET"]
            .map(|method| ask(port, &format!("{method} {path}"), slice::from_ref(&host), None));
        assert_eq!((head.status, head.body.as_str(), get.status), (200, "", 200), "{path}: {head:?}");
        let length = format!("content-length: {}", get.body.len());
        assert!(head.head.contains(&length) && get.head.contains(&length), "{path}: {head:?}");
    }
    assert_eq!(ask(port, "HEAD /api/status", slice::from_ref(&host), None).status, 404);
    // A target that is a whole address says whom it is for.
    for (target, status) in [(format!("http://127.0.0.1:{port}/"), 200), ("http://evil.example/".into(), 421)]
    {
        assert_eq!(
            ask(port, &format!("GET {target}"), slice::from_ref(&host), None).status,
            status,
            "{target}"
        );
    }
    // A link elsewhere leads to nothing, for whoever made it would choose what lies under the next click; and
    // says what to do.
    for (path, site, status) in
        [("/", "cross-site", 403), ("/api/status", "cross-site", 403), ("/", "none", 200)]
    {
        let heads = [
            host.clone(),
            format!("authorization: Bearer {bearer}"),
            format!("sec-fetch-site: {site}"),
            "sec-fetch-mode: navigate".into(),
            "sec-fetch-dest: document".into(),
        ];
        let answer = ask(port, &format!("GET {path}"), &heads, None);
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.body.contains("copy this page's address"), status == 403, "{answer:?}");
    }
    // What is no body is not too long.
    let chunked = format!(
        "POST /api/do HTTP/1.1\r\nconnection: close\r\n{host}\r\nauthorization: Bearer {bearer}\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{{}}\r\n0\r\n\r\n"
    );
    assert_eq!(raw(port, &chunked).status, 400);
}

#[test]
fn figures_are_for_whoever_has_a_token_and_that_is_all_it_opens() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let _model = stage.model(vec![Reply::text("hello")]);
    default_model(&stage);
    anywhere(&stage);
    let _daemon = Daemon::start(&stage);
    let page = Page::of(&stage);
    let token =
        stage.ran(&["--json", "page", "token", "collector"]).lines()[0]["token"].as_str().unwrap().to_owned();
    let collector = Page { port: page.port, bearer: token };
    let answer = collector.get("/metrics");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.head.contains("text/plain"));
    for line in [
        "bailey_sessions{state=\"working\"} 0",
        "# TYPE bailey_turns_total counter",
        "bailey_turns_total 0",
        "bailey_memory_pressure 0",
    ] {
        assert!(answer.body.contains(line), "{line}: {}", answer.body);
    }
    // Each line is a comment, or a name with labels and a number.
    for line in answer.body.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("bailey_") && value.parse::<f64>().is_ok(), "{line}");
    }
    for path in ["/api/status", "/api/sessions", "/api/audit"] {
        assert_eq!(collector.get(path).status, 409, "{path}");
    }
    assert_eq!(collector.post("/api/do", &json!({ "act": "backup" })).status, 409);

    let answer = page.post("/api/sessions", &json!({ "directory": stage.project() }));
    let session = answer.lines()[0]["done"].as_str().unwrap().to_owned();
    let (mut lines, stream) = page.join(&session, "");
    let said = page.post(&format!("/api/streams/{stream}"), &json!({ "op": "say", "text": "x" }));
    assert_eq!(said.status, 202);
    event(&mut lines, "end");
    let deadline = Instant::now() + PATIENCE;
    while !collector.get("/metrics").body.contains("bailey_turns_total 1") {
        assert!(Instant::now() < deadline, "{}", collector.get("/metrics").body);
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_reload_leaves_the_page_where_it_is() {
    let stage = Stage::new(&[]);
    let _model = stage.model(Vec::new());
    anywhere(&stage);
    let daemon = Daemon::start(&stage);
    let before = port(&link(&stage));
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap();
    // The same place by its number, as another name, and as it is where nobody says.
    for page in [format!("listen = \"127.0.0.1:{before}\""), "shown_as = \"https://bailey.example\"".into()] {
        fs::write(&config, own.replace("listen = \"127.0.0.1:0\"", &page)).unwrap();
        assert_eq!(stage.ran(&["reload"]).code, Some(0));
        let deadline = Instant::now() + Duration::from_secs(20);
        while daemon.status()["page"]["up"] != true {
            assert!(Instant::now() < deadline, "the page is down: {}", daemon.status()["page"]);
            thread::sleep(Duration::from_millis(20));
        }
        let told = ask(before, "GET /healthz", &[format!("host: 127.0.0.1:{before}")], None);
        assert_eq!((told.status, told.body.as_str()), (200, "ok\n"), "{page}");
    }
}

#[test]
fn a_reload_that_cannot_listen_changes_nothing() {
    let stage = Stage::new(&[]);
    let _model = stage.model(Vec::new());
    anywhere(&stage);
    let daemon = Daemon::start(&stage);
    let page = Page::of(&stage);
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap();
    let elsewhere = format!("listen = \"{}\"", taken.local_addr().unwrap());
    fs::write(&config, own.replace("listen = \"127.0.0.1:0\"", &elsewhere)).unwrap();
    let refused = stage.ran(&["reload"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("the page cannot listen at"), "{refused:?}");
    assert_eq!(page.get("/api/status").status, 200, "{}", daemon.status()["page"]);
    // The control: where nobody is, it goes there.
    drop(taken);
    assert_eq!(stage.ran(&["reload"]).code, Some(0));
    let there = elsewhere.trim_start_matches("listen = ").trim_matches('"');
    let deadline = Instant::now() + PATIENCE;
    while daemon.status()["page"]["url"] != format!("http://{there}") || daemon.status()["page"]["up"] != true
    {
        assert!(Instant::now() < deadline, "{}", daemon.status()["page"]);
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_page_that_moves_takes_no_browser_along() {
    let stage = Stage::new(&[]);
    let _model = stage.model(Vec::new());
    // Where nobody says where it listens, it is where it was.
    let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let before = free.local_addr().unwrap().port();
    fs::create_dir_all(stage.home().join("page")).unwrap();
    fs::set_permissions(stage.home().join("page"), fs::Permissions::from_mode(0o700)).unwrap();
    let known = json!({ "next": 0, "port": before, "logins": [] });
    fs::write(stage.home().join("page/logins.json"), known.to_string()).unwrap();
    drop(free);
    let first = Daemon::start(&stage);
    let page = Page::of(&stage);
    assert_eq!(page.port, before);
    drop(first);
    // The control: what comes back to its place knows its browsers.
    let second = Daemon::start(&stage);
    assert_eq!(page.get("/api/status").status, 200);
    drop(second);
    // The process that heard browsers there ends a moment after the daemon.
    let deadline = Instant::now() + PATIENCE;
    let _impostor = loop {
        match TcpListener::bind(("127.0.0.1", before)) {
            Ok(impostor) => break impostor,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        thread::sleep(Duration::from_millis(10));
    };
    let _third = Daemon::start(&stage);
    let port = port(&link(&stage));
    assert_ne!(port, before);
    let shown = Page { port, bearer: page.bearer };
    assert_eq!(shown.get("/api/status").status, 401, "whoever sits there now may have heard it");
}

#[test]
fn a_page_that_moves_to_another_address_with_the_same_port_takes_no_browser_along() {
    let stage = Stage::new(&[]);
    let _model = stage.model(Vec::new());
    anywhere(&stage);
    let daemon = Daemon::start(&stage);
    let page = Page::of(&stage);
    let collector = stage.ran(&["--json", "page", "token", "grafana"]).lines().remove(0);
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap();
    let reload = |lines: &str| {
        fs::write(&config, own.replace("listen = \"127.0.0.1:0\"", lines)).unwrap();
        assert_eq!(stage.ran(&["reload"]).code, Some(0));
        let deadline = Instant::now() + PATIENCE;
        while daemon.status()["page"]["up"] != true {
            assert!(Instant::now() < deadline, "the page is down: {}", daemon.status()["page"]);
            thread::sleep(Duration::from_millis(20));
        }
    };
    let get = |ip: &str, path: &str, bearer: &str| {
        let at = format!("{ip}:{}", page.port);
        let mut stream = TcpStream::connect(&at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nconnection: close\r\nhost: {at}\r\nauthorization: Bearer {bearer}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        heard(stream).status
    };
    // The control: where something else of it changes it stays, and knows its browsers.
    let here = format!("listen = \"127.0.0.1:{}\"", page.port);
    reload(&format!("{here}\nshown_as = \"https://bailey.example\""));
    assert_eq!(get("127.0.0.1", "/api/status", &page.bearer), 200);
    reload(&here.replace("127.0.0.1", "127.0.0.2"));
    assert_eq!(get("127.0.0.2", "/healthz", ""), 200);
    assert_eq!(
        get("127.0.0.2", "/api/status", &page.bearer),
        401,
        "whoever sits there now may have heard it"
    );
    // A collector's is for its configuration to move, and reads figures alone.
    assert_eq!(get("127.0.0.2", "/metrics", collector["token"].as_str().unwrap()), 200);
    // Nor is it known again where the page comes back.
    reload(&here);
    assert_eq!(get("127.0.0.1", "/api/status", &page.bearer), 401);
}

#[test]
fn what_was_stopped_stays_so_when_somebody_looks() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = Gate::default();
    let held = Reply::Held(gate.clone(), Message::text("never said"));
    let model = stage.model(vec![held, Reply::text("said now")]);
    default_model(&stage);
    anywhere(&stage);
    let daemon = Daemon::with(&stage, "BAILEY_CONTROL_IDLE", "700");
    let page = Page::of(&stage);
    let (mut lines, stream, session) = page.begin(&stage, None);
    page.say(&stream, "do it");
    model.wait_for(1);
    page.post(&format!("/api/streams/{stream}"), &json!({ "op": "cancel" }));
    assert_eq!(event(&mut lines, "end")["reason"], "cancelled");
    drop(lines);
    rests(&daemon);
    let (lines, _) = page.join(&session, "");
    thread::sleep(Duration::from_secs(2));
    assert_eq!(model.requests().len(), 1, "nobody said that it goes on");
    // Nor does it where it was there when everything was killed.
    daemon.kill();
    let daemon = Daemon::with(&stage, "BAILEY_CONTROL_IDLE", "700");
    thread::sleep(Duration::from_secs(2));
    assert_eq!(model.requests().len(), 1, "{}", daemon.status());
    // The control: what is said begins a turn.
    drop(lines);
    gate.open();
    let page = Page::of(&stage);
    let (mut lines, stream) = page.join(&session, "");
    page.say(&stream, "go on");
    assert_eq!(event(&mut lines, "end")["reason"], "answered");
    assert_eq!(model.requests().len(), 2);
}

#[test]
fn a_page_that_stays_open_begins_no_session_anew_that_ends_each_time() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = Gate::default();
    let held = || Reply::Held(gate.clone(), Message::text("said at last"));
    let model = stage.model((0..5).map(|_| held()).collect());
    default_model(&stage);
    anywhere(&stage);
    let daemon = Daemon::start(&stage);
    let page = Page::of(&stage);
    let (lines, stream, session) = page.begin(&stage, None);
    page.say(&stream, "do it");
    let mut last = 0;
    for times in 1..=4 {
        model.wait_for(times);
        last = pid(&daemon.wait("another process", |it| it["working"] == true && it["pid"] != last));
        end(last, "-KILL");
    }
    rests(&daemon);
    drop(lines);
    let path = format!("/api/sessions/{session}/events");
    let mut looks = connect(page.port);
    write!(looks, "GET {path} HTTP/1.1\r\n{}\r\n\r\n", page.heads().join("\r\n")).unwrap();
    let mut status = String::new();
    BufReader::new(looks).read_line(&mut status).unwrap();
    assert!(status.starts_with("HTTP/1.1 4"), "{status}");
    let looked = page.get(&path);
    assert!(looked.body.contains("does not start it again"), "{looked:?}");
    assert_eq!(daemon.status()["sessions"], json!([]));
    assert_eq!(model.requests().len(), 4);
    // The control: who asks for it begins it, and then the page sees it.
    assert_eq!(resume(&stage, &session, false)["told"], "opened");
    let (mut lines, _) = page.join(&session, "");
    gate.open();
    assert_eq!(event(&mut lines, "end")["reason"], "answered");
}

#[test]
fn a_conversation_goes_on_with_the_model_that_it_had() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let _model = stage.model(vec![Reply::text("said")]);
    default_model(&stage);
    anywhere(&stage);
    let daemon = Daemon::with(&stage, "BAILEY_CONTROL_IDLE", "700");
    let page = Page::of(&stage);
    let (mut lines, stream, session) = page.begin(&stage, Some("test/other"));
    page.say(&stream, "say it");
    event(&mut lines, "end");
    drop(lines);
    rests(&daemon);
    let (mut lines, _) = page.join(&session, "");
    assert_eq!(event(&mut lines, "session")["model"], "test/other");
    // The control: another conversation has the configured one; and whoever says so has another in this one.
    let (mut new, _, _) = page.begin(&stage, None);
    assert_eq!(event(&mut new, "session")["model"], "test/model");
    drop((lines, new));
    rests(&daemon);
    let resumed = stage.ran(&["--json", "sessions", "resume", &session, "--model", "test/model"]);
    assert_eq!(resumed.lines()[0]["model"], "test/model", "{resumed:?}");
}

#[test]
fn what_is_answered_at_the_page_is_written_as_that_and_what_fails_says_so() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let folder = tempfile::Builder::new().prefix("bailey-test-").tempdir_in("/var/tmp").unwrap();
    let file = folder.path().canonicalize().unwrap().join("notes.txt");
    fs::write(&file, "what the notes say\n").unwrap();
    let read = Reply::calls([("c1", "fs_read", json!({ "path": file.to_str().unwrap() }))]);
    let _model = stage.model(vec![read, Reply::text("it waits")]);
    anywhere(&stage);
    let _daemon = Daemon::start(&stage);
    let page = Page::of(&stage);
    stage.ran(&["run", "--model", "test/model", "--approve", "later", "read them"]);
    let asked = page.get("/api/approvals").lines().remove(0);
    let done = page.post("/api/do", &json!({ "act": "approve", "id": asked["id"], "reason": "" }));
    assert!(done.lines().iter().all(|line| line["type"] != "ended"), "{done:?}");
    let trail = stage.trail();
    let answered = trail.iter().find(|entry| entry["type"] == "answered").unwrap();
    assert_eq!(answered["person"]["terminal"], "page 1", "{answered}");
    let failed = page.post("/api/do", &json!({ "act": "run_schedule", "name": "none" }));
    assert_eq!(failed.lines().last().unwrap()["type"], "ended", "{failed:?}");
    assert_ne!(failed.lines().last().unwrap()["code"], 0, "{failed:?}");
}

/// A person with a browser's bearer loosens no protection with it.
#[test]
fn a_browser_changes_only_settings_of_a_closed_list_and_raises_no_limit() {
    let stage = Stage::new(&[]);
    let _model = stage.model(Vec::new());
    anywhere(&stage);
    let config = || fs::read_to_string(stage.home().join("config.toml")).unwrap();
    let before = config();
    for (without, program) in [("", released()), ("settings", controls())] {
        fs::write(stage.home().join("config.toml"), &before).unwrap();
        started(&stage, program, without);
        let _daemon = Daemon::of(&stage);
        let page = Page::of(&stage);
        let set = |key: &str, value: &str| {
            page.post("/api/do", &json!({ "act": "set", "key": key, "value": value }))
        };
        for (key, value) in [
            ("network.private", "[\"http://127.0.0.1:1\"]"),
            ("limits.session_tokens", "900000000"),
            ("approvals.compliance", "false"),
            ("limits.secret_hits", "100000"),
        ] {
            let old = config();
            let answer = set(key, value);
            let is_refused = answer.status == 409 && config() == old;
            assert_eq!(is_refused, without.is_empty(), "{key}: {answer:?}");
            assert_eq!(config() == old, without.is_empty(), "{key}");
        }
        // What is of the list is checked like anything that the owner sets.
        for (key, value) in
            [("model", "nobody/model"), ("model", "--help"), ("approvals.answer_seconds", "soon")]
        {
            let old = config();
            let answer = set(key, value);
            assert!(answer.body.contains("\"type\":\"error\""), "{key}: {answer:?}");
            assert_eq!(config(), old, "{key}");
        }
        for (key, value) in [
            ("model", "test/model"),
            ("approvals.answer_seconds", "900"),
            ("limits.session_tokens", "1000"),
            ("limits.day_money", "2.50 USD"),
        ] {
            let answer = set(key, value);
            let told = answer.lines();
            assert!(told.iter().any(|line| line["key"] == key && !line["value"].is_null()), "{answer:?}");
        }
        let written = config();
        for line in ["model = \"test/model\"", "answer_seconds = 900", "session_tokens = 1000"] {
            assert!(written.contains(line), "{line}: {written}");
        }
    }
}

#[test]
fn whoever_delivers_to_no_webhook_takes_no_place() {
    let stage = Stage::new(&[]);
    let _model = stage.model(Vec::new());
    let telegram = crate::telegram::channel(&stage);
    anywhere(&stage);
    let _daemon = Daemon::start(&stage);
    let port = port(&link(&stage));
    let hook = move |channel: &str| {
        let heads = [
            format!("host: 127.0.0.1:{port}"),
            "content-type: application/json".to_owned(),
            "webhook-id: 1".to_owned(),
            "webhook-timestamp: 1".to_owned(),
            "webhook-signature: v1,AAAA".to_owned(),
        ];
        ask(port, &format!("POST /hooks/{channel}"), &heads, Some(&json!({ "text": "x" }))).status
    };
    // A channel of another kind is told from none by nothing, and least by the time.
    let begin = Instant::now();
    let waiting: Vec<_> = (0..20).map(|_| thread::spawn(move || hook("phone"))).collect();
    let told: Vec<u16> = waiting.into_iter().map(|it| it.join().unwrap()).collect();
    assert!(told.iter().all(|status| *status == hook("nobody")), "{told:?}");
    assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
    drop(telegram);
}

/// Attack A08.
#[test]
fn where_others_could_come_to_it_it_does_not_listen() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    for (key, value) in [
        ("listen", "0.0.0.0:7411"),
        ("listen", "[::]:7411"),
        ("listen", "192.0.2.1:7411"),
        ("shown_as", "http://bailey.example"),
        ("shown_as", "https://bailey.example/below"),
    ] {
        fs::create_dir_all(stage.home()).unwrap();
        fs::write(stage.home().join("config.toml"), format!("[page]\n{key} = \"{value}\"\n")).unwrap();
        let ran = stage.ran(&["start"]);
        assert!(
            ran.code != Some(0) && ran.stderr.contains("config.toml:2:") && ran.stderr.contains(value),
            "{value}: {ran:?}"
        );
    }
}

/// Conversations that are begun without a word about the model.
pub(crate) fn default_model(stage: &Stage) {
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap();
    fs::write(config, format!("model = \"test/model\"\n{own}")).unwrap();
}

/// Where a real browser, and what drives it, lie; none where they do not.
fn browser() -> Option<(PathBuf, PathBuf)> {
    let modules = released().parent()?.parent()?.join("npm/node_modules");
    let chromium = ["chromium", "chromium-browser", "google-chrome"]
        .iter()
        .find_map(|name| Some(Path::new("/usr/bin").join(name)).filter(|path| path.exists()));
    match chromium.filter(|_| modules.join("playwright-core").exists() && modules.join("axe-core").exists()) {
        Some(chromium) => Some((chromium, modules)),
        None => {
            println!(
                "SKIPPED: no Chromium, playwright-core or axe-core here (`cargo xtask test --all --install` brings them)"
            );
            None
        }
    }
}

/// A script in a real browser; none where there is no browser.
fn script(stage: &Stage, name: &str) -> Option<Command> {
    let (chromium, modules) = browser()?;
    let mut node = Command::new("node");
    node.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page").join(name))
        .env("PROJECT", stage.project())
        .env("CHROMIUM", chromium)
        .env("MODULES", modules)
        .env("HOME", stage.home());
    Some(node)
}

/// The same, which is told a link.
pub(crate) fn browse(stage: &Stage, name: &str) -> Option<Command> {
    let mut node = script(stage, name)?;
    node.env("LINK", link(stage));
    Some(node)
}

/// What a model may say to make a browser do something.
const HOSTILE: &str = "<img src=x onerror=\"document.title='taken'\"> <script>document.title='taken'</script>\n\n\
                       ![private](LEAK/?secret=1) [here](javascript:document.title='taken') \u{202e}txet desrever\n\n\
                       # Done\n\n- one `code`\n- **two**\n\n```rust\nfn main() {}\n```\n";

#[test]
fn what_a_home_seldom_does_to_a_page() {
    let stage = Stage::new(&[]);
    // The script plays the home.
    let Some(mut browser) = script(&stage, "mishaps.mjs") else { return };
    let ran = Ran::of(browser.output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_persons_day_in_a_browser() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let write =
        |call: &str| Reply::calls([(call, "fs_write", json!({ "path": "b.txt", "content": "two\n" }))]);
    // Not in the project: a human is asked.
    let folder = tempfile::Builder::new().prefix("bailey-test-").tempdir_in("/var/tmp").unwrap();
    let file = folder.path().canonicalize().unwrap().join("notes.txt");
    fs::write(&file, "what the notes say\n").unwrap();
    let ask = Reply::calls([("c2", "fs_read", json!({ "path": file.to_str().unwrap() }))]);
    let model = stage.model(Vec::new());
    let hostile = HOSTILE.replace("LEAK", &model.base_url());
    for reply in [write("c1"), ask, Reply::text(&hostile), Reply::text("I am back, and here is more.")] {
        model.push(reply);
    }
    default_model(&stage);
    anywhere(&stage);
    let _daemon = Daemon::start(&stage);
    let Some(mut browser) = browse(&stage, "day.mjs") else { return };
    let ran = Ran::of(browser.output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        fs::read_to_string(stage.project().join("b.txt")).unwrap(),
        "two\n",
        "it was applied at the page"
    );
    let leaks = model.requests().iter().filter(|request| !request.path.ends_with("/messages")).count();
    assert_eq!(leaks, 0, "a picture was asked for");
    let log = stage.ran(&["--json", "audit", "log", "-n", "200"]);
    assert!(log.stdout.contains("\"channel\":\"page\""), "who answered is in the journal: {}", log.stdout);
}
