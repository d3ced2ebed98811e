//! The network door of commands: what the rules allow passes, each request by itself, and nothing else does.

use crate::{
    attacks::actor::controls,
    relay::Tls,
    stage::{Ran, Stage},
};
use bailey_testkit::Reply;
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

pub(crate) const DEFAULT: &str = include_str!("../../../policy/src/default.toml");
pub(crate) const MAY_ASK: &str = "
[[rule]]
name = \"may-ask\"
answer = \"allow\"
priority = 1
reason = \"commands may ask the door\"
match = { action = \"exec\", network = true }
";

/// What is left of a command is thrown away by a merge.
pub(crate) const MAY_END: &str = "
[[rule]]
name = \"may-end\"
answer = \"allow\"
match = { action = \"merge\" }
";

/// A server on loopback that keeps what it was asked.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Upstream {
    /// It answers with what this says to the request's first line and the length of its body.
    pub(crate) fn start(answer: impl Fn(&str, usize) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::answers(move |head, body| answer(head.lines().next().unwrap_or_default(), body.len()))
    }

    /// It answers with what this says to the request's head and its body.
    pub(crate) fn answers(answer: impl Fn(&str, &[u8]) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (heads, answer) = (asked.clone(), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (heads, answer) = (heads.clone(), answer.clone());
                thread::spawn(move || serve(stream, &heads, &*answer));
            }
        });
        Self { address, asked }
    }

    fn says(text: &'static str) -> Self {
        Self::start(move |_, _| whole("200 OK", text.as_bytes()))
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// An answer with its length.
pub(crate) fn whole(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn serve(stream: TcpStream, heads: &Mutex<Vec<String>>, answer: &dyn Fn(&str, &[u8]) -> Vec<u8>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length, mut chunked) = (String::new(), 0, false);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        chunked |= lower.starts_with("transfer-encoding: chunked");
        head += &line;
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    while chunked {
        let mut size = String::new();
        reader.read_line(&mut size).unwrap();
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        reader.read_exact(&mut chunk).unwrap();
        body.extend_from_slice(&chunk[..size]);
        chunked = size > 0;
    }
    heads.lock().unwrap().push(head.clone());
    (&stream).write_all(&answer(&head, &body)).ok();
}

/// A stage whose commands may ask the door, which reaches these private places and lets pass what these rules
/// allow.
fn stage(private: &[String], rules: &str) -> Stage {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    fs::write(stage.home().join("policy/own.toml"), format!("{MAY_END}{MAY_ASK}{rules}")).unwrap();
    let private = serde_json::to_string(private).unwrap();
    fs::write(stage.home().join("config.toml"), format!("[network]\nprivate = {private}\n")).unwrap();
    stage
}

pub(crate) fn allow(host: &str, rest: &str) -> String {
    format!(
        "\n[[rule]]\nname = \"allowed-{}\"\nanswer = \"allow\"\nmatch = {{ action = \"http\", host = \"{host}\"{rest} }}\n",
        host.replace(|c: char| !c.is_ascii_alphanumeric(), "-").to_lowercase(),
    )
}

/// A home whose rules let a model's commands reach this server.
fn beside(open: &Upstream) -> Stage {
    let rest = "[[rule]]\nname = \"rest\"\nanswer = \"allow\"\nmatch = { action = [\"model\", \"read\", \"stat\", \"diff\"] }\n";
    stage(&[open.url("")], &format!("{}\n{rest}", allow(&open.address.to_string(), "")))
}

/// Runs curl with a way to the network; also for what lies on this machine's loopback it asks the door.
fn curl(stage: &Stage, arguments: &[&str]) -> Ran {
    let fixed = ["sandbox", "run", "--network", "--", "curl", "-sS", "--max-time", "30", "--noproxy", ""];
    stage.ran(&[fixed.as_slice(), arguments].concat())
}

/// The requests that the journal says of: entry, method and URL.
fn requests(stage: &Stage) -> Vec<(String, String)> {
    let of_door = |entry: &&Value| entry["kind"] == "http";
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let trail = stage.trail();
    trail.iter().filter(of_door).map(|entry| (text(&entry["type"]), text(&entry["target"]))).collect()
}

#[test]
fn a_command_reaches_what_a_rule_allows_and_is_told_what_would_allow_the_rest() {
    let (open, shut) = (Upstream::says("from the open one"), Upstream::says("from the shut one"));
    let places = [open.url(""), shut.url("")];
    let stage = stage(&places, &allow(&open.address.to_string(), ", method = \"GET\""));
    let passed = curl(&stage, &[&open.url("/x")]);
    assert_eq!((passed.code, passed.stdout.as_str()), (Some(0), "from the open one"), "{passed:?}");
    for (arguments, method, host) in [
        (vec!["-X", "POST", "-d", "hello"], "POST", &open),
        (vec!["-X", "DELETE"], "DELETE", &open),
        (vec![], "GET", &shut),
    ] {
        let url = host.url("/y");
        let refused = curl(&stage, &[arguments.as_slice(), &[&url]].concat());
        assert!(refused.stdout.contains(&format!("refused this request: {method} {url}")), "{refused:?}");
        let would = format!("host = \"{}\", method = \"{method}\"", host.address);
        assert!(refused.stdout.contains(&would), "{refused:?}");
        let told = format!("the network door refused {method} {url}: no rule allows it");
        assert!(refused.stderr.contains(&told), "{refused:?}");
    }
    assert_eq!((open.asked().len(), shut.asked().len()), (1, 0));
    let said = requests(&stage);
    let kinds: Vec<&str> = said.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["intent", "denied", "denied", "denied"], "each request is an entry: {said:?}");
    // Without a way to the network the same command has none, whatever the rules let pass.
    let alone = stage.ran(&["sandbox", "run", "--", "curl", "-sS", "--max-time", "5", &open.url("/x")]);
    assert!(alone.code != Some(0) && open.asked().len() == 1, "{alone:?}");
    // What is said to allow it does, as it is printed.
    let policy = stage.home().join("policy/own.toml");
    let mut rules = fs::read_to_string(&policy).unwrap();
    for arguments in [vec![shut.url("/y")], vec!["-d".into(), "x".into(), open.url("/y")]] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let refused = curl(&stage, &arguments).stdout;
        rules += &refused[refused.find("[[rule]]").unwrap()..];
        fs::write(&policy, &rules).unwrap();
        let passed = curl(&stage, &arguments).stdout;
        assert!(passed.starts_with("from the "), "the control: {passed}");
    }
}

/// Of many requests that do not pass the first are told, and how many more there were.
#[test]
fn of_many_refusals_the_first_are_told_and_the_others_counted() {
    let shut = Upstream::says("from the shut one");
    let stage = stage(&[shut.url("")], "");
    let curls = |count: usize| {
        let line = format!(
            "for i in $(seq {count}); do curl -sS -o /dev/null {}/$i; done; curl -sS -o /dev/null {0}/1",
            shut.url("")
        );
        ["sandbox", "run", "--network", "--", "sh", "-c", &line].map(str::to_owned)
    };
    let ran = |json: bool, count: usize| {
        let argv = curls(count);
        let argv: Vec<&str> =
            json.then_some("--json").into_iter().chain(argv.iter().map(String::as_str)).collect();
        stage.ran(&argv)
    };
    let (eight, eleven) = (ran(false, 8).stderr, ran(false, 11).stderr);
    for told in [&eight, &eleven] {
        assert_eq!(told.matches("the network door refused GET").count(), 8, "{told}");
    }
    assert!(eleven.contains("the network door refused 3 more requests: see `bailey audit log`"), "{eleven}");
    assert!(!eight.contains(" more request"), "one that is named is not counted again: {eight}");
    let report = ran(true, 11).lines().pop().unwrap()["report"].clone();
    let named = report["refused"].as_array().map(Vec::len);
    assert_eq!((named, &report["refused_more"]), (Some(8), &json!(3)), "{report}");
}

/// Programs ask no proxy for their own loopback.
#[test]
fn a_place_of_the_owners_on_the_loopback_is_reached_by_a_program_as_it_is() {
    let open = Upstream::says("passed");
    let own = "python3 -m http.server 8099 --bind 127.0.0.1 --directory /tmp > /dev/null 2>&1 & \
               until curl -sf http://localhost:8099/ > /dev/null; do sleep 0.05; done; echo served; ";
    for is_named in [true, false] {
        let places = if is_named { vec![open.url("")] } else { Vec::new() };
        let stage = stage(&places, &allow(&open.address.to_string(), ""));
        let line = format!("{own}curl -sS --max-time 5 {}", open.url("/x"));
        let ran = stage.ran(&["sandbox", "run", "--network", "--", "sh", "-c", &line]);
        let expected = if is_named { "served\npassed" } else { "served\n" };
        assert_eq!(ran.stdout, expected, "{ran:?}");
        // The control: there it is asked for inside, where nothing listens.
        assert_eq!(ran.stderr.contains("Couldn't connect to server"), !is_named, "{ran:?}");
    }
}

#[test]
fn where_nobody_can_be_asked_no_question_stays_open() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    fs::write(stage.home().join("policy/default.toml"), DEFAULT).unwrap();
    let ran = stage.ran(&["sandbox", "run", "--network", "--", "true"]);
    assert!(
        ran.code != Some(0) && ran.stderr.contains("policy explain --role owner --network exec"),
        "{ran:?}"
    );
    assert_eq!(stage.ran(&["--json", "approvals", "list"]).lines(), [] as [Value; 0]);
    // The rule that it prints is one, and lets it.
    let (_, rule) = ran.stderr.split_once("[[rule]]").expect(&ran.stderr);
    fs::write(stage.home().join("policy/own.toml"), format!("[[rule]]{rule}")).unwrap();
    let ran = stage.ran(&["sandbox", "run", "--network", "--", "true"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_request_shows_the_pass_of_its_own_command() {
    let open = Upstream::says("passed");
    let stage = stage(&[open.url("")], &allow(&open.address.to_string(), ""));
    let shell = |line: &str| stage.ran(&["sandbox", "run", "--network", "--", "sh", "-c", line]);
    let url = open.url("/x");
    for (user, is_known) in [("", false), ("bailey:0123456789abcdef0123456789abcdef@", false)] {
        let line =
            format!("curl -sS --noproxy '' -x http://{user}${{HTTP_PROXY#*@}} -w ' %{{http_code}}' {url}");
        let refused = shell(&line);
        assert!(refused.stdout.ends_with(" 407") && !is_known, "{refused:?}");
    }
    assert_eq!(open.asked().len(), 0);
    let known = shell(&format!("curl -sS --noproxy '' -x $HTTP_PROXY -w ' %{{http_code}}' {url}"));
    assert_eq!(known.stdout, "passed 200", "the control: {known:?}");
}

/// Two commands that live at once share a network: the pass of one opens nothing at the door of the other.
#[test]
fn a_pass_is_of_one_command_also_beside_another_of_its_session() {
    let open = Upstream::says("passed");
    let stage = beside(&open);
    let one =
        "mkfifo /tmp/gate; echo ${HTTP_PROXY#*@} > /tmp/new; mv /tmp/new /tmp/door; read line < /tmp/gate";
    let ask = format!("curl -sS --noproxy '' -w ' %{{http_code}}\\n' {}", open.url("/x"));
    let other = format!(
        "while [ ! -e /tmp/door ]; do sleep 0.05; done; own=${{HTTP_PROXY%@*}}; \
         {ask} -x $own@$(cat /tmp/door); {ask} -x $HTTP_PROXY; echo go > /tmp/gate"
    );
    let call = |line: &str| json!({ "command": line, "network": true, "reads": [], "writes": [] });
    let script = vec![
        Reply::calls([("c1", "command_run", call(one)), ("c2", "command_run", call(&other))]),
        Reply::text("done"),
    ];
    let _server = stage.model_beside(script);
    let told =
        stage.ran(&["--json", "run", "--model", "test/model", "--approve", "never", "do it"]).results();
    assert!(told.iter().any(|told| told.contains(" 407\npassed 200")), "{told:?}");
    assert_eq!(open.asked().len(), 1);
}

/// Each way of writing an address of this machine; the rules let everything pass.
#[test]
fn a30_no_request_leads_to_a_private_address_that_the_owner_did_not_name() {
    let inner = Upstream::says("what only this machine may read");
    let port = inner.address.port();
    let hosts = [
        "127.0.0.1",
        "localhost",
        "127.0.0.2",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "LOCALHOST.",
    ];
    let every = allow("*", "");
    let barred = stage(&[], &every);
    // The port is open to this process for another place, so that it is not what keeps it.
    let other = stage(&[format!("http://10.255.255.1:{port}")], &every);
    for host in hosts {
        let url = format!("http://{host}:{port}/");
        for stage in [&barred, &other] {
            let ran = curl(stage, &["--globoff", &url]);
            assert!(!ran.stdout.contains("what only this machine"), "{host}: {ran:?}");
        }
    }
    assert_eq!(inner.asked(), [""; 0]);
    let ran = curl(&other, &[&inner.url("/")]);
    assert!(
        ran.stdout.contains("no address of the world") && ran.stdout.contains("[network] private"),
        "{ran:?}"
    );
    let named = stage(&[inner.url("")], &every);
    assert_eq!(curl(&named, &[&inner.url("/")]).stdout, "what only this machine may read", "the control");
    // A place is named as it is written: by another name of the same address it is not.
    let other_name = curl(&named, &[&format!("http://localhost:{port}/")]);
    assert!(other_name.stdout.contains("no address of the world"), "{other_name:?}");
    let metadata = stage(&["http://169.254.169.254".into()], &every);
    let ran = curl(&metadata, &["http://169.254.169.254/latest/meta-data/"]);
    assert!(ran.stdout.contains("whatever the configuration says"), "{ran:?}");
}

/// What the door refuses whatever the rules say is written down like what the rules refuse, and told with the
/// command's result.
#[test]
fn every_request_is_an_entry_also_where_no_rule_was_asked() {
    let open = Upstream::says("passed");
    let place = open.url("");
    let stage = stage(std::slice::from_ref(&place), &allow(&open.address.to_string(), ""));
    let config = stage.home().join("config.toml");
    let free = fs::read_to_string(&config).unwrap();
    let limits = "[[network.limit]]\nhost = \"*\"\nper_minute = 1\n";
    let shell = |line: &str| {
        let line = format!("export NO_PROXY= no_proxy=; ask='curl -sS --max-time 30'; {line}");
        stage.ran(&["sandbox", "run", "--network", "--", "sh", "-c", &line])
    };
    let long = format!("/{}", "x".repeat(9_000));
    for (setting, line, target, why) in [
        (
            "",
            format!("$ask -H 'Host: example.com' {place}/a"),
            format!("GET {place}/a"),
            "Host names somebody else",
        ),
        (
            "",
            format!("$ask {place}{long}"),
            format!("GET {place}{}…", &long[..200 - place.len()]),
            "8192 bytes at most",
        ),
        (
            "",
            format!("$ask --request-target '{}' {place}/", place.replace("//", "//us:pw@")),
            format!("GET {place}/"),
            "no user and no password",
        ),
        (
            "",
            format!("$ask --request-target '{long}' {place}/"),
            format!("GET {}…", &long[..200]),
            "this is a proxy",
        ),
        (
            "",
            format!("$ask -X {} {place}/", "M".repeat(100)),
            format!("{} {place}/", "M".repeat(100)),
            "a method 64",
        ),
        // The door's own word for what has no length any more.
        (
            "",
            format!("$ask -X WEBSOCKET -H 'Connection: upgrade' -H 'Upgrade: other' -d x {place}/w"),
            format!("WEBSOCKET {place}/w"),
            "no method has this name",
        ),
        (
            "",
            format!("$ask -X websocket {place}/w"),
            format!("websocket {place}/w"),
            "no method has this name",
        ),
        (
            "",
            format!("$ask -p --request-target http://b.example/x {place}/"),
            format!("GET {place}/x"),
            "somebody else than its connection leads to",
        ),
        // More headers than a request has by default.
        (
            "",
            format!(
                "for i in $(seq 300); do echo \"X-A-$i: b\"; done > /tmp/h; $ask -X PUT -H @/tmp/h -H 'Host: b.example' {place}/h"
            ),
            format!("PUT {place}/h"),
            "Host names somebody else",
        ),
        ("", format!("$ask --request-target /c {place}/"), "GET /c".into(), "this is a proxy"),
        (
            "",
            format!("$ask -x http://bailey:0123456789abcdef0123456789abcdef@${{HTTP_PROXY#*@}} {place}/d"),
            format!("GET {place}/d"),
            "no pass of this command",
        ),
        (limits, format!("$ask {place}/; $ask {place}/e"), format!("GET {place}/e"), "1 times in a minute"),
        (
            "[limits]\ncommand_requests = 1\n",
            format!("$ask {place}/; $ask {place}/f"),
            format!("GET {place}/f"),
            "1 requests at most",
        ),
        // Somebody else's name in the handshake of a tunnel.
        (
            "",
            "$ask -k --connect-to a.example:443:b.example:443 https://a.example/".into(),
            "CONNECT https://b.example/".into(),
            "`a.example`",
        ),
        (
            "",
            "$ask --cacert /etc/ssl/certs/ca-certificates.crt https://a.example/".into(),
            "CONNECT https://a.example/".into(),
            "trusts another authority",
        ),
    ] {
        fs::write(&config, format!("{free}{setting}")).unwrap();
        let before = stage.trail().len();
        let ran = shell(&line);
        let trail = stage.trail();
        let entry = trail[before..]
            .iter()
            .find(|entry| entry["type"] == "denied")
            .unwrap_or_else(|| panic!("{line}: {ran:?}"));
        assert_eq!(entry["target"], target.as_str(), "{line}");
        let reason = entry["reasons"][0].as_str().unwrap();
        assert!(reason.starts_with("network door: ") && reason.contains(why), "{line}: {entry}");
        let told: String = target.chars().take(200).collect();
        let told = format!("the network door refused {told}: ");
        assert!(ran.stderr.contains(&told) && ran.stderr.contains(why), "{line}: {ran:?}");
        assert!(!entry.to_string().contains("us:pw"), "{entry}");
    }
    fs::write(&config, free).unwrap();
    // The control: a request of the same command that nothing is wrong with is an intent, and no refusal is
    // told.
    let before = stage.trail().len();
    let passed = shell(&format!("$ask {place}/a"));
    assert_eq!((passed.stdout.as_str(), passed.stderr.as_str()), ("passed", ""));
    assert!(stage.trail()[before..].iter().all(|entry| entry["type"] != "denied"));
}

/// A tool shows its own words, or none.
#[test]
fn what_could_not_be_passed_on_is_told_with_the_result() {
    let open = Upstream::start(|_, _| whole("200 OK", &[b'x'; 50_000]));
    let (place, shut) = (open.url(""), "http://127.0.0.1");
    let stage = stage(std::slice::from_ref(&place), &allow("*", ""));
    let told = |line: &str| stage.ran(&["sandbox", "run", "--network", "--", "sh", "-c", line]).stderr;
    let barred = told(&format!("curl -s --noproxy '' {shut}/ > /dev/null"));
    assert!(
        barred.contains(&format!("the network door could not pass on GET {shut}/: "))
            && barred.contains("no address of the world"),
        "{barred}"
    );
    let whole = format!("curl -s --noproxy '' {place}/ > /dev/null");
    assert_eq!(told(&whole), "", "the control");
    // Who wants no more of an answer knows it.
    assert_eq!(told(&format!("curl -s --noproxy '' {place}/ | head -c 1 > /dev/null")), "");
    let config = stage.home().join("config.toml");
    let limited =
        fs::read_to_string(&config).unwrap() + "[[network.limit]]\nhost = \"*\"\nreceived = \"20 KB\"\n";
    fs::write(config, limited).unwrap();
    let cut = told(&whole);
    assert!(
        cut.contains(&format!("could not pass on GET {place}/: no more than 20000 bytes are received")),
        "{cut}"
    );
}

#[test]
fn a30_each_hop_of_a_redirect_is_judged_and_a_request_goes_where_it_says() {
    let shut = Upstream::says("the next hop");
    let to = shut.url("/next");
    let open = Upstream::start(move |_, _| {
        format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .into_bytes()
    });
    let places = [open.url(""), shut.url("")];
    let one = allow(&open.address.to_string(), "");
    let narrow = stage(&places, &one);
    let stopped = curl(&narrow, &["-L", &open.url("/")]);
    assert!(stopped.stdout.contains("refused this request") && shut.asked().is_empty(), "{stopped:?}");
    let wide = stage(&places, &(one + &allow(&shut.address.to_string(), "")));
    assert_eq!(curl(&wide, &["-L", &open.url("/")]).stdout, "the next hop", "the control");
    // The name in the header is that of the request.
    let fronted = curl(&narrow, &["-H", &format!("Host: {}", shut.address), &open.url("/")]);
    assert!(fronted.stdout.contains("Host names somebody else"), "{fronted:?}");
    assert_eq!(shut.asked().len(), 1);
}

#[test]
fn what_is_inside_tls_is_judged_too_and_only_commands_trust_the_door() {
    let plain = Upstream::says("over TLS");
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let tls = Tls::start("localhost", (2020, 2090), plain.address, stage.folder());
    let place = format!("https://localhost:{}", tls.address().port());
    let host = place.trim_start_matches("https://").to_owned();
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    let rules = format!("{DEFAULT}{MAY_ASK}{}", allow(&host, ", method = \"GET\""));
    fs::write(stage.home().join("policy/own.toml"), rules).unwrap();
    fs::write(stage.home().join("config.toml"), format!("[network]\nprivate = [\"{place}\"]\n")).unwrap();
    let run = |trusted: bool, arguments: &[&str]| {
        let fixed = ["sandbox", "run", "--network", "--", "curl", "-sS", "--max-time", "30", "--noproxy", ""];
        let mut command = stage.bailey(&[fixed.as_slice(), arguments].concat());
        if trusted {
            command.env("SSL_CERT_FILE", &tls.authority);
        }
        Ran::of(command.output().unwrap())
    };
    let url = format!("{place}/x");
    let passed = run(true, &[&url]);
    assert_eq!((passed.code, passed.stdout.as_str()), (Some(0), "over TLS"), "{passed:?}");
    let refused = run(true, &["-X", "PUT", "-d", "x", &url]);
    assert!(refused.stdout.contains(&format!("refused this request: PUT {url}")), "{refused:?}");
    assert_eq!(plain.asked().len(), 1);
    // The door does not stand in for a server that this machine does not trust.
    let untrusted = run(false, &[&url]);
    assert!(untrusted.stdout.contains("is not trusted"), "{untrusted:?}");
    // The system's own authorities do not know it.
    let elsewhere = run(true, &["--cacert", "/etc/ssl/certs/ca-certificates.crt", &url]);
    assert!(elsewhere.code == Some(60), "{elsewhere:?}");
    let written = stage.ran(&["sandbox", "run", "--network", "--", "cat", "/etc/ssl/bailey-door.pem"]);
    assert!(written.stdout.contains("BEGIN CERTIFICATE") && !written.stdout.contains("KEY"), "{written:?}");
}

#[test]
fn large_bodies_pass_by_and_what_was_sent_is_counted() {
    const MIB: usize = 1 << 20;
    let big = Upstream::start(|first, length| match first.starts_with("GET") {
        true => whole("200 OK", &vec![b'x'; 40 * MIB]),
        false => whole("200 OK", format!("took {length}").as_bytes()),
    });
    let stage = stage(&[big.url("")], &allow(&big.address.to_string(), ""));
    let url = big.url("/big");
    let line = format!(
        "curl -sS --noproxy '' {url} | wc -c; head -c 20971520 /dev/zero > /tmp/up; \
         curl -sS --noproxy '' -T /tmp/up {url}; echo; \
         head -c 10485760 /dev/zero | curl -sS --noproxy '' -T - {url}"
    );
    let ran = stage.ran(&["sandbox", "run", "--network", "--", "sh", "-c", &line]);
    assert_eq!(ran.stdout, format!("{}\ntook {}\ntook {}", 40 * MIB, 20 * MIB, 10 * MIB), "{ran:?}");
    let exported = stage.ran(&["audit", "export"]).lines();
    let payloads = exported.iter().filter_map(|line| line["payload"].as_str());
    let payloads = payloads.filter_map(|text| serde_json::from_str::<Value>(text).ok());
    let relayed: Vec<Value> =
        payloads.map(|it| it["report"].clone()).filter(|it| it["report"] == "relayed").collect();
    let bytes =
        |name: &str| relayed.iter().map(|it| it[name].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(bytes("out"), ["0".to_owned(), (20 * MIB).to_string(), (10 * MIB).to_string()]);
    assert_eq!(bytes("back")[0], (40 * MIB).to_string());
    // The journal keeps what was asked for, and not what passed.
    let kept = fs::metadata(stage.home().join("journal.db")).unwrap().len();
    assert!(kept < MIB as u64, "{kept}");
}

/// A server may answer before it was told everything: what goes out after that is counted, too.
#[test]
fn what_goes_out_after_an_early_answer_is_the_same_effects() {
    const LENGTH: usize = 3_000_000;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap() > 2 {
                line.clear();
            }
            // The answer begins now, and ends when all has come: its command would end, and the rest with it.
            (&stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n").unwrap();
            std::io::copy(&mut (&mut reader).take(LENGTH as u64), &mut std::io::sink()).ok();
            (&stream).write_all(b"ok").ok();
        }
    });
    let stage = stage(&[format!("http://{address}")], &allow(&address.to_string(), ""));
    let program = format!(
        "import os, socket, base64
from urllib.parse import urlsplit
proxy = urlsplit(os.environ['HTTP_PROXY'])
pass_ = base64.b64encode(f'{{proxy.username}}:{{proxy.password}}'.encode()).decode()
s = socket.create_connection((proxy.hostname, proxy.port))
s.sendall(f'POST http://{address}/ HTTP/1.1\\r\\nHost: {address}\\r\\nProxy-Authorization: Basic {{pass_}}\\r\\nContent-Length: {LENGTH}\\r\\n\\r\\n0123456789'.encode())
f = s.makefile('rb')
print(f.readline().decode().strip())
s.sendall(b'x' * ({LENGTH} - 10))
while f.readline() != b'\\r\\n': pass
print(f.read(2).decode())"
    );
    let ran = stage.ran(&["sandbox", "run", "--network", "--", "python3", "-c", &program]);
    assert_eq!(ran.stdout, "HTTP/1.1 200 OK\nok\n", "{ran:?}");
    let exported = stage.ran(&["audit", "export"]).stdout;
    assert!(exported.contains(&format!(r#"\"out\":\"{LENGTH}\""#)), "{exported}");
}

/// Who waits for a place at the door waits outside of this process, whose descriptors are few.
#[test]
fn connections_beyond_the_places_take_no_descriptor() {
    let stage = stage(&[], "");
    let program = "import os, socket, sys
from urllib.parse import urlsplit
proxy = urlsplit(os.environ['HTTP_PROXY'])
open_ = [socket.create_connection((proxy.hostname, proxy.port)) for _ in range(700)]
print('open', flush=True)
import time; time.sleep(60)";
    let mut command = stage.bailey(&["sandbox", "run", "--network", "--", "python3", "-c", program]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let held = || fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap().count();
    let deadline = Instant::now() + Duration::from_secs(20);
    while held() < 128 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
    }
    // Were there no places, all would be taken by now; and one command has half of them.
    thread::sleep(Duration::from_millis(500));
    let most = held();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(line, "open\n");
    assert!((128..256).contains(&most), "{most} descriptors for 700 connections");
}

/// Commands that live at once share the door's places: one that takes all it gets leaves some to the next.
#[test]
fn a_command_that_takes_all_connections_leaves_some_to_the_next() {
    let greedy = "python3 -c \"
import os, socket, time
from urllib.parse import urlsplit
proxy = urlsplit(os.environ['HTTP_PROXY'])
held = [socket.create_connection((proxy.hostname, proxy.port)) for _ in range(300)]
time.sleep(1)
open('/tmp/held', 'w').close()
while not os.path.exists('/tmp/gate'): time.sleep(0.05)\"";
    let tried = |program: &Path, without: &str| {
        let open = Upstream::says("passed");
        let stage = beside(&open);
        // A command that waits has one place from its start: its second connection is the one that is tried.
        let ask = format!(
            "while [ ! -e /tmp/held ]; do sleep 0.05; done; python3 -c \"
import os, socket, subprocess, time
from urllib.parse import urlsplit
proxy = urlsplit(os.environ['HTTP_PROXY'])
first = socket.create_connection((proxy.hostname, proxy.port))
time.sleep(0.5)
subprocess.run(['curl', '-sS', '--max-time', '4', '--noproxy', '', '-x', os.environ['HTTP_PROXY'], '{}'])\"
            touch /tmp/gate",
            open.url("/x")
        );
        let call = |line: &str| json!({ "command": line, "network": true, "reads": [], "writes": [] });
        let _server = stage.model_beside(vec![
            Reply::calls([("c1", "command_run", call(greedy)), ("c2", "command_run", call(&ask))]),
            Reply::text("done"),
        ]);
        let run = stage.bailey(&["--json", "run", "--model", "test/model", "--approve", "never", "do it"]);
        let mut command = Command::new(program);
        command.args(run.get_args()).current_dir(stage.project()).env("BAILEY_BREAK", without);
        let told = Ran::of(command.output().unwrap()).results();
        (open.asked().len(), told)
    };
    let (asked, told) = tried(Path::new(env!("CARGO_BIN_EXE_bailey")), "shares");
    assert!(asked == 1 && told.iter().any(|told| told.contains("passed")), "{told:?}");
    let (asked, told) = tried(controls(), "shares");
    assert!(asked == 0 && !told.iter().any(|told| told.contains("passed")), "the control: {told:?}");
}

/// Each request is an entry: no command writes as many as it likes.
#[test]
fn a_command_makes_so_many_requests_and_no_more() {
    let open = Upstream::says("passed");
    let stage = stage(&[open.url("")], &allow(&open.address.to_string(), ""));
    let line = format!("for i in 1 2 3 4 5 6 7 8; do curl -sS --noproxy '' {}$i; done", open.url("/"));
    let run = || stage.ran(&["sandbox", "run", "--network", "--", "sh", "-c", &line]);
    let all = run();
    assert_eq!(
        (all.stdout.matches("passed").count(), requests(&stage).len()),
        (8, 8),
        "the control: {all:?}"
    );
    let config = stage.home().join("config.toml");
    let limit = fs::read_to_string(&config).unwrap() + "[limits]\ncommand_requests = 3\n";
    fs::write(config, limit).unwrap();
    let some = run();
    // As many as it may make are refused with an entry, and then without.
    assert_eq!((some.stdout.matches("passed").count(), requests(&stage).len()), (3, 8 + 6), "{some:?}");
    assert!(
        some.stdout.contains("limits.command_requests") && some.stderr.contains("makes 3 requests at most"),
        "{some:?}"
    );
}

/// A connection that becomes another protocol is one effect, and ends with its command.
#[test]
fn a_protocol_that_is_switched_to_passes() {
    let (listener, heard) = (TcpListener::bind("127.0.0.1:0").unwrap(), Arc::new(Mutex::new(String::new())));
    let (address, kept) = (listener.local_addr().unwrap(), heard.clone());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap() > 2 {
                kept.lock().unwrap().push_str(&line);
                line.clear();
            }
            let switch =
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
            (&stream).write_all(switch).unwrap();
            let mut said = [0; 5];
            reader.read_exact(&mut said).unwrap();
            (&stream).write_all(&[b"heard ", said.as_slice()].concat()).unwrap();
        }
    });
    let place = format!("http://{address}");
    let stage = stage(&[place], &allow(&address.to_string(), ""));
    let program = format!(
        "import os, socket, base64
from urllib.parse import urlsplit
proxy = urlsplit(os.environ['HTTP_PROXY'])
pass_ = base64.b64encode(f'{{proxy.username}}:{{proxy.password}}'.encode()).decode()
s = socket.create_connection((proxy.hostname, proxy.port))
f = s.makefile('rb')
s.sendall(f'CONNECT {address} HTTP/1.1\\r\\nHost: {address}\\r\\nProxy-Authorization: Basic {{pass_}}\\r\\n\\r\\n'.encode())
assert b' 200 ' in f.readline()
while f.readline() != b'\\r\\n': pass
s.sendall(b'GET /ws HTTP/1.1\\r\\nHost: {address}\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n')
assert b' 101 ' in f.readline()
while f.readline() != b'\\r\\n': pass
s.sendall(b'hello')
print(f.read(11).decode())"
    );
    let ran = stage.ran(&["sandbox", "run", "--network", "--", "python3", "-c", &program]);
    assert_eq!(ran.stdout, "heard hello\n", "{ran:?}");
    assert!(heard.lock().unwrap().to_lowercase().contains("upgrade: websocket"), "{heard:?}");
    // It is judged as what it is: what passes then has no method, and no length that it said.
    assert_eq!(requests(&stage), [("intent".to_owned(), format!("WEBSOCKET http://{address}/ws"))]);
    let exported = stage.ran(&["audit", "export"]).stdout;
    assert!(exported.contains(r#"\"out\":\"5\",\"counted\":false"#), "{exported}");
    let own = stage.home().join("policy/own.toml");
    fs::write(own, format!("{MAY_END}{MAY_ASK}{}", allow(&address.to_string(), ", method = \"GET\"")))
        .unwrap();
    let refused = stage.ran(&["sandbox", "run", "--network", "--", "python3", "-c", &program]);
    assert!(refused.stdout.is_empty() && refused.stderr.contains("refused WEBSOCKET"), "{refused:?}");
}

/// Asked for with the words of a switch, a page that no rule lets anybody get was got: the server answered
/// the `GET` that it saw.
#[test]
fn what_is_no_switch_brings_nothing() {
    let upstream = Upstream::says("of the administrator");
    let (host, url) = (upstream.address.to_string(), upstream.url("/admin/x"));
    let deny = "\n[[rule]]\nname = \"no-page\"\nanswer = \"deny\"\nmatch = { action = \"http\", method = \"GET\", url_path = \"/admin/**\" }\n";
    let switch = ["-H", "Connection: Upgrade", "-H", "Upgrade: websocket", &url];
    let switches = allow(&host, ", method = \"WEBSOCKET\"");
    let all = allow(&host, "");
    for (rules, options, told) in [
        (&switches, &switch[..], "did not switch to WebSocket"),
        (&format!("{all}{deny}"), &switch[..], "rule `no-page`"),
        (&all, &switch[4..], "of the administrator"),
    ] {
        let ran = curl(&stage(&[upstream.url("")], rules), options);
        assert!(ran.stdout.contains(told), "{told}: {ran:?}");
        assert_eq!(ran.stdout.contains("of the administrator"), options.len() == 1, "{ran:?}");
    }
}

/// A server that offers HTTP/2, which knows no such switch, is asked for nothing but HTTP/1.1.
#[test]
fn a_switch_inside_tls_asks_for_http_1() {
    let upstream = Upstream::start(|_, _| {
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello".to_vec()
    });
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let tls = Tls::offering(&["h2", "http/1.1"], "localhost", (2020, 2090), upstream.address, stage.folder());
    let place = format!("https://localhost:{}", tls.address().port());
    let host = place.trim_start_matches("https://");
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    fs::write(stage.home().join("policy/own.toml"), format!("{DEFAULT}{MAY_ASK}{}", allow(host, "")))
        .unwrap();
    fs::write(stage.home().join("config.toml"), format!("[network]\nprivate = [\"{place}\"]\n")).unwrap();
    let line = format!(
        "curl -sS -i --max-time 10 --http1.1 --noproxy '' -H 'Connection: Upgrade' -H 'Upgrade: websocket' {place}/ws | head -c 300"
    );
    let mut command = stage.bailey(&["sandbox", "run", "--network", "--", "sh", "-c", &line]);
    let ran = Ran::of(command.env("SSL_CERT_FILE", &tls.authority).output().unwrap());
    assert!(ran.stdout.contains("HTTP/1.1 101 Switching"), "{ran:?}");
}

#[test]
fn a_model_asks_for_the_way_and_the_person_is_asked_first() {
    let open = Upstream::says("from the world");
    let script = || {
        let line = format!("curl -sS --noproxy '' {}", open.url("/x"));
        vec![
            Reply::calls([("c1", "command_run", json!({ "command": line, "network": true }))]),
            Reply::text("done"),
        ]
    };
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let run = |rules: &str| {
        fs::create_dir_all(stage.home().join("policy")).unwrap();
        fs::write(stage.home().join("policy/own.toml"), rules).unwrap();
        fs::write(stage.home().join("config.toml"), format!("[network]\nprivate = [\"{}\"]\n", open.url("")))
            .unwrap();
        let _server = stage.model_beside(script());
        stage.ran(&["--json", "run", "--model", "test/model", "--approve", "never", "do it"]).results()
    };
    let allowed = allow(&open.address.to_string(), "");
    let asked = run(&format!("{DEFAULT}{allowed}"));
    assert!(asked[0].contains("not approved"), "{asked:?}");
    assert!(open.asked().is_empty());
    let passed = run(&format!("{DEFAULT}{MAY_ASK}{allowed}"));
    assert!(passed[0].contains("from the world") && open.asked().len() == 1, "the control: {passed:?}");
    // The session runs again from its journal, and asks nobody.
    let id =
        stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
    let again = stage.ran(&["replay", &id]);
    assert!(again.code == Some(0) && open.asked().len() == 1, "{again:?}");
    let refused = run(&format!("{DEFAULT}{MAY_ASK}"));
    let told = format!("(the network door refused GET {}: no rule allows it", open.url("/x"));
    assert!(refused[0].contains(&told) && open.asked().len() == 1, "{refused:?}");
}
