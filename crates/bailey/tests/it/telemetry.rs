//! What others are told of what Bailey does: spans that official decoders take, and nothing that was said.

use crate::{
    attacks::actor::controls,
    daemon::{Daemon, PATIENCE, end, pid},
    stage::Stage,
    takeover::inject::{self, Taken},
};
use bailey_testkit::{Gate, Message, ModelServer, Reply};
use nix::{errno::Errno, libc};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/telemetry.py");

/// Where the official messages lie; none where this is to be skipped.
fn messages() -> Option<PathBuf> {
    brought("target/otlp", "opentelemetry")
}

/// The folder of what is brought from elsewhere; none where it is not there, and this is to be skipped.
fn brought(folder: &str, what: &str) -> Option<PathBuf> {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let is_there = packages.join(what).exists();
    if !is_there && std::env::var_os("BAILEY_TEST_ALL").is_none() {
        println!("SKIPPED: {what} is not in {folder} (`cargo xtask test --all --install` brings it)");
        return None;
    }
    assert!(is_there, "{what} is not in {}", packages.display());
    Some(packages)
}

/// The spans of requests, as the official decoder reads them.
fn decoded(packages: &Path, requests: &str) -> Vec<Value> {
    let mut decode = Command::new("python3")
        .arg(SCRIPT)
        .arg(packages)
        .arg("decode")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    decode.stdin.take().unwrap().write_all(requests.as_bytes()).unwrap();
    let output = decode.wait_with_output().unwrap();
    assert!(output.status.success(), "{requests}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn spans(stage: &Stage, packages: &Path) -> Vec<Value> {
    let ran = stage.ran(&["audit", "export", "--otlp"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    decoded(packages, &ran.stdout)
}

fn at<'a>(spans: &'a [Value], name: &str) -> &'a Value {
    let found: Vec<&Value> = spans.iter().filter(|span| span["name"] == name).collect();
    let [one] = found.as_slice() else { panic!("{} of {name}: {spans:#?}", found.len()) };
    one
}

/// The span above another one.
fn above<'a>(spans: &'a [Value], span: &Value) -> &'a Value {
    spans.iter().find(|above| above["span"] == span["parent"]).unwrap_or_else(|| panic!("{span}: {spans:#?}"))
}

#[test]
fn a_turn_is_a_trace_that_official_decoders_take() {
    let Some(packages) = messages() else { return };
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let edit = ("c1", "fs_edit", json!({ "path": "a.txt", "old": "one", "new": "two" }));
    let fails = ("c2", "command_run", json!({ "command": "exit 3" }));
    let denied = ("c3", "fs_read", json!({ "path": "/etc/shadow" }));
    let script = vec![Reply::calls([edit, fails]), Reply::calls([denied]), Reply::text("done")];
    let (ran, _) = stage.task(script, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let spans = spans(&stage, &packages);

    let turn = at(&spans, "invoke_agent");
    let session = stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].clone();
    let about = &turn["attributes"];
    assert_eq!(
        (&turn["parent"], &turn["status"], &turn["kind"], &about["gen_ai.conversation.id"]),
        (&json!(""), &json!(0), &json!(1), &session)
    );
    assert_eq!(
        (&about["gen_ai.usage.input_tokens"], &about["gen_ai.usage.output_tokens"]),
        (&json!(30), &json!(15))
    );
    assert_eq!(
        (&about["gen_ai.provider.name"], &about["gen_ai.request.model"]),
        (&json!("test"), &json!("model"))
    );

    let chats: Vec<&Value> = spans.iter().filter(|span| span["name"] == "chat model").collect();
    let reasons: Vec<&Value> =
        chats.iter().map(|chat| &chat["attributes"]["gen_ai.response.finish_reasons"][0]).collect();
    assert_eq!(reasons, ["tool_call", "tool_call", "stop"]);
    for chat in chats {
        assert_eq!(
            (&chat["parent"], &chat["trace"], &chat["kind"]),
            (&turn["span"], &turn["trace"], &json!(3))
        );
        let about = &chat["attributes"];
        assert_eq!(
            (&about["gen_ai.operation.name"], &about["gen_ai.usage.input_tokens"]),
            (&json!("chat"), &json!(10))
        );
    }
    let tool = at(&spans, "execute_tool fs.edit");
    assert_eq!((&tool["parent"], &tool["status"]), (&turn["span"], &json!(0)));
    assert_eq!(above(&spans, at(&spans, "change")), tool);
    let command = at(&spans, "exec");
    assert_eq!(command["attributes"]["process.exit.code"], 3);
    assert_eq!(above(&spans, command)["name"], "execute_tool command.run");
    // What was not done is told, too, and why.
    let refused = at(&spans, "execute_tool fs.read");
    assert_eq!((&refused["attributes"]["error.type"], &refused["status"]), (&json!("denied"), &json!(2)));
    // Of the same entries come the same names.
    assert_eq!(self::spans(&stage, &packages), spans);
    let names: BTreeSet<&str> = spans.iter().map(|span| span["span"].as_str().unwrap()).collect();
    assert_eq!(names.len(), spans.len());

    // A stack for each, and the turn's time is divided between them and its rest.
    let folded = stage.ran(&["audit", "export", "--folded"]).stdout;
    let turn_of = format!("{};invoke_agent", session.as_str().unwrap());
    let own: i64 = folded
        .lines()
        .filter(|line| line.starts_with(&turn_of))
        .map(|line| line.rsplit(' ').next().unwrap().parse::<i64>().unwrap())
        .sum();
    let whole = turn["ms"].as_i64().unwrap();
    assert!(folded.contains(&format!("{turn_of};execute_tool command.run;exec ")), "{folded}");
    // Two calls that run at once count each, and a millisecond is rounded.
    assert!(own + 20 >= whole, "{own} of {whole} ms: {folded}");
}

#[test]
fn a_sub_agents_work_hangs_beneath_the_call_that_began_it() {
    let Some(packages) = messages() else { return };
    let stage = Stage::new(&[("src/a.txt", "in the source\n")]);
    let errand = |task: &str| json!({ "task": task, "tools": ["fs.read", "agent.run"], "paths": ["src"] });
    let script = vec![
        Reply::calls([("p1", "agent_run", errand("look"))]),
        Reply::calls([("c1", "agent_run", errand("look closer"))]),
        Reply::calls([("c1", "fs_read", json!({ "path": "src/a.txt" }))]),
        Reply::text("looked closer"),
        Reply::text("looked"),
        Reply::text("all done"),
    ];
    let (ran, _) = stage.task(script, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let spans = spans(&stage, &packages);
    let mut span = at(&spans, "execute_tool fs.read");
    let mut names = Vec::new();
    while span["parent"] != "" {
        span = above(&spans, span);
        names.push(span["name"].as_str().unwrap());
    }
    let one = ["invoke_agent", "execute_tool agent.run"];
    assert_eq!(names, [one[0], one[1], one[0], one[1], "invoke_agent"], "{spans:#?}");
    let chats =
        spans.iter().filter(|span| span["name"] == "chat model").map(|chat| chat["parent"].to_string());
    assert_eq!(chats.collect::<BTreeSet<_>>().len(), 3, "each speaks with its own: {spans:#?}");
    let one =
        stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
    let of_it = decoded(&packages, &stage.ran(&["audit", "export", "--otlp", "--session", &one]).stdout);
    assert_eq!(of_it.iter().filter(|span| span["name"] == "invoke_agent").count(), 3, "{of_it:#?}");
}

/// What stands in the journal of this session, and is not for others.
const SAID: [&str; 8] = [
    "the-prompt-mentions-zebras",
    "the-answer-mentions-giraffes",
    "a-file-named-okapi",
    "the-file-holds-gazelles",
    "echo-antelope-to-itself",
    "tool-called-wildebeest",
    "pattern-for-hyenas",
    "note-of-a-rhinoceros",
];

#[test]
fn nothing_that_was_said_is_told() {
    let [prompt, answer, file, content, command, tool, pattern, written] = SAID;
    let stage = Stage::new(&[(file, &format!("{content}\n"))]);
    let calls = Reply::calls([
        ("c1", "fs_read", json!({ "path": file })),
        ("c2", "command_run", json!({ "command": format!("echo {command}; exit 1") })),
        ("c3", tool, json!({ "text": written })),
        ("c4", "fs_search", json!({ "pattern": pattern })),
        ("c5", "fs_read", json!({ "path": format!("/etc/{file}") })),
    ]);
    let _model = stage.model(vec![calls, Reply::text(answer)]);
    let run = ["run", "--model", "test/model", "--approve", "never", prompt];
    let ran = stage.ran(&run);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = |arguments: &[&str]| {
        let ran = stage.ran(arguments);
        assert!(ran.code == Some(0) && !ran.stdout.is_empty(), "{ran:?}");
        ran.stdout
    };
    let spans = told(&["audit", "export", "--otlp"]);
    let stacks = told(&["audit", "export", "--folded"]);
    // The control: the entries that both are made from say all of it.
    let entries = told(&["audit", "export"]);
    let project = stage.project().display().to_string();
    for word in SAID.into_iter().chain([project.as_str(), "/etc/"]) {
        assert!(entries.contains(word), "`{word}` was not said");
        assert!(!spans.contains(word), "`{word}`: {spans}");
        assert!(!stacks.contains(word), "`{word}`: {stacks}");
    }
    // A call of no tool of ours is told without its name.
    assert!(spans.contains("execute_tool _OTHER") && spans.contains("execute_tool command.run"), "{spans}");

    let Some(packages) = messages() else { return };
    let collector = Collector::start(&packages, &json!([]));
    tell(&stage, &collector.url());
    let _daemon = Daemon::start(&stage);
    collector.wait_for("figures", |collector| {
        collector.counted(TOKENS, &[("gen_ai.token.type", "output")]).0 == 2 && !collector.spans().is_empty()
    });
    for request in collector.requests().iter().chain(&collector.requests_at("/base/v1/metrics")) {
        let text = request["text"].as_str().unwrap();
        for word in SAID.into_iter().chain([project.as_str(), "/etc/"]) {
            assert!(!text.contains(word), "`{word}`: {text}");
        }
    }
}

/// A server of somebody's, in another language, that takes what the official messages are and nothing else.
struct Collector {
    child: Child,
    port: u64,
    told: Arc<Mutex<Vec<Value>>>,
}

impl Collector {
    /// It answers the first requests so, and takes the others.
    fn start(packages: &Path, answers: &Value) -> Self {
        Self::answering(packages, answers, &json!({}))
    }

    /// The same, and figures are answered so.
    fn answering(packages: &Path, answers: &Value, of_figures: &Value) -> Self {
        let mut child = Command::new("python3")
            .arg(SCRIPT)
            .arg(packages)
            .args(["serve", &answers.to_string(), &of_figures.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok)
            .map(|line| serde_json::from_str::<Value>(&line).unwrap());
        let port = lines.next().unwrap()["port"].as_u64().unwrap();
        let told: Arc<Mutex<Vec<Value>>> = Arc::default();
        let heard = told.clone();
        thread::spawn(move || lines.for_each(|line| heard.lock().unwrap().push(line)));
        Self { child, port, told }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/base", self.port)
    }

    /// The requests that came there, each of which was what it has to be.
    fn requests_at(&self, path: &str) -> Vec<Value> {
        let mut told = self.told.lock().unwrap().clone();
        told.iter().for_each(|request| assert!(request["wrong"].is_null(), "{request:#}"));
        told.retain(|request| request["path"] == path);
        told
    }

    /// Those that brought spans.
    fn requests(&self) -> Vec<Value> {
        self.requests_at("/base/v1/traces")
    }

    /// The spans that came, in order.
    fn items(&self) -> Vec<Value> {
        self.requests().iter().flat_map(items).collect()
    }

    /// The figures of a name that came, in order.
    fn figures(&self, name: &str) -> Vec<Value> {
        let of_it = |item: &Value| item["name"] == name;
        self.requests_at("/base/v1/metrics").iter().flat_map(items).filter(of_it).collect()
    }

    /// Of a histogram: what was said last of those that have these attributes, as how many and their sum.
    /// What was said before is of the same beginning, and never more.
    fn counted(&self, name: &str, attributes: &[(&str, &str)]) -> (u64, f64) {
        let is_it = |item: &Value| attributes.iter().all(|(key, value)| item["attributes"][key] == *value);
        let (mut last, mut sum, mut since) = (0, 0.0, None);
        for figure in self.figures(name).iter().filter(|figure| is_it(figure)) {
            let point = &figure["point"];
            let number = |value: &Value| value.as_str().unwrap().parse::<u64>().unwrap();
            let count = number(&point["count"]);
            let buckets: u64 = point["bucketCounts"].as_array().unwrap().iter().map(number).sum();
            assert!(count == buckets && count >= last, "{figure:#}");
            assert_eq!(
                since.get_or_insert_with(|| point["startTimeUnixNano"].clone()),
                &point["startTimeUnixNano"]
            );
            (last, sum) = (count, point["sum"].as_f64().unwrap());
        }
        (last, sum)
    }

    /// Their names.
    fn spans(&self) -> Vec<String> {
        self.items().iter().map(name).collect()
    }

    fn wait_for(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        // What is tried again is left alone for longer each time.
        let deadline = Instant::now() + 2 * PATIENCE;
        while !is_so(self) {
            assert!(Instant::now() < deadline, "{what} did not come: {:#?}", self.spans());
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A collector of somebody else's, which takes what others send it and sends that on.
struct Rotel {
    child: Child,
    port: u16,
}

impl Rotel {
    fn start(packages: &Path, port: u16, onward: &Collector) -> Self {
        let address = format!("127.0.0.1:{port}");
        let child = Command::new(packages.join("rotel/rotel-agent"))
            .env_clear()
            .args(["start", "--otlp-http-endpoint", &address, "--otlp-grpc-endpoint", "127.0.0.1:0"])
            .args(["--exporter", "otlp", "--otlp-exporter-protocol", "http"])
            .args(["--otlp-exporter-endpoint", &onward.url()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(&address).is_err() {
            assert!(Instant::now() < deadline, "the collector does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        Self { child, port }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Rotel {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A port that nobody has.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

const KEY: &str = "Basic dGVsZW1ldHJ5OnBsYW50ZWQtc2VjcmV0";

/// A home whose daemon tells a collector.
fn told(stage: &Stage, url: &str, script: Vec<Reply>) -> ModelServer {
    let model = stage.model(script);
    tell(stage, url);
    model
}

fn tell(stage: &Stage, url: &str) {
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap();
    let telemetry = format!("{own}\n[telemetry]\notlp = {url:?}\nkey_env = \"COLLECTOR_KEY\"\n");
    fs::write(&config, telemetry).unwrap();
    let keys = stage.home().join(".env");
    fs::write(&keys, format!("COLLECTOR_KEY={KEY}\n")).unwrap();
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).unwrap();
}

/// A model that has nothing to do, as often.
fn done(times: usize) -> Vec<Reply> {
    (0..times).map(|_| Reply::text("done")).collect()
}

fn task(stage: &Stage) {
    let ran = stage.ran(&["run", "--model", "test/model", "--approve", "never", "do it"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// The names of all spans that the journal comes to.
fn exported(stage: &Stage, packages: &Path) -> Vec<String> {
    spans(stage, packages).iter().map(name).collect()
}

/// What a request brought.
fn items(request: &Value) -> Vec<Value> {
    request["items"].as_array().unwrap().clone()
}

const TOKENS: &str = "gen_ai.client.token.usage";
const DURATION: &str = "gen_ai.client.operation.duration";

/// A span's own name, which no other has.
fn name(span: &Value) -> String {
    span["span"].as_str().unwrap().to_owned()
}

/// Spans in an order that does not hang on who told them.
fn in_order(mut spans: Vec<Value>) -> Vec<Value> {
    spans.sort_by_key(name);
    spans
}

fn sender(stage: &Stage) -> Option<u64> {
    let name = format!("{} audit send", stage.home().display());
    let found = Command::new("pgrep").args(["-f", &name]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().lines().next()?.parse().ok()
}

/// A figure of a process (proc_pid_status(5)).
fn figure(pid: u64, name: &str) -> u64 {
    let about = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = about.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn a_collector_is_told_each_thing_once_over_a_kill_and_a_stop() {
    let Some(packages) = messages() else { return };
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let collector = Collector::start(&packages, &json!([]));
    let _model = told(&stage, &collector.url(), done(4));
    // What was done before there was anybody to tell is told first.
    task(&stage);
    let all = |collector: &Collector| collector.spans() == exported(&stage, &packages);
    {
        let daemon = Daemon::start(&stage);
        collector.wait_for("what was done before", all);
        // A process of its own, which the daemon knows nothing of.
        task(&stage);
        collector.wait_for("a run beside the daemon", all);
        assert_eq!(daemon.status()["telemetry"]["up"], true);
        let first = &collector.requests()[0];
        assert_eq!(first["headers"]["authorization"], KEY, "{first:#}");

        // While nothing is done, nobody wakes.
        let process = sender(&stage).unwrap();
        thread::sleep(Duration::from_secs(3));
        let switches = |pid| figure(pid, "voluntary_ctxt_switches");
        let (of_it, of_daemon) = (switches(process), switches(pid(&daemon.status())));
        thread::sleep(Duration::from_secs(4));
        assert_eq!(switches(process), of_it, "it wakes while nothing is done");
        // To be asked for its status wakes the daemon.
        let woken = switches(pid(&daemon.status())) - of_daemon;
        assert!(woken < 40, "the daemon wakes while nothing is done: {woken}");

        end(process, "-KILL");
        task(&stage);
        collector.wait_for("what was done while nobody told it", all);
        assert_ne!(sender(&stage), Some(process));
    }
    task(&stage);
    let before = collector.spans().len();
    let _daemon = Daemon::start(&stage);
    collector.wait_for("what was done without a daemon", all);
    let spans = collector.spans();
    assert_eq!(spans.iter().collect::<BTreeSet<_>>().len(), spans.len(), "something was told twice");
    // Four calls of a model, of ten tokens each.
    let counted = |collector: &Collector| collector.counted(TOKENS, &[("gen_ai.token.type", "input")]);
    collector.wait_for("what it comes to", |collector| counted(collector).0 >= 4);
    assert_eq!(counted(&collector), (4, 40.0), "something was counted twice");
    let said = collector.figures(TOKENS);
    let said: u64 =
        said.iter().map(|it| it["point"]["count"].as_str().unwrap().parse::<u64>().unwrap()).sum();
    assert!(said > 2 * 4, "the control: had each request said what came since, it were {said}");
    assert!(before < spans.len());
    // The key stands where its owner put it, and in the requests.
    fs::remove_file(stage.home().join(".env")).unwrap();
    let found = Command::new("grep").args(["-rlF", "planted-secret"]).arg(stage.home()).output().unwrap();
    assert_eq!(String::from_utf8(found.stdout).unwrap(), "");
}

#[test]
fn what_comes_out_of_a_collector_is_each_thing_once_over_its_kill() {
    let (Some(packages), Some(rotel)) = (messages(), brought("target/rotel", "rotel/rotel-agent")) else {
        return;
    };
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let onward = Collector::start(&packages, &json!([]));
    let collector = Rotel::start(&rotel, free_port(), &onward);
    let edit = |old: &str, new: &str| {
        let arguments = json!({ "path": "a.txt", "old": old, "new": new });
        [Reply::calls([("c", "fs_edit", arguments)]), Reply::text("done")]
    };
    let _model = told(&stage, &collector.url(), [edit("one", "two"), edit("two", "three")].concat());
    let _daemon = Daemon::start(&stage);
    let all = |onward: &Collector| onward.spans().len() >= exported(&stage, &packages).len();
    task(&stage);
    onward.wait_for("the first session", all);
    let before = onward.spans().len();

    let port = collector.port;
    drop(collector);
    task(&stage);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let logs = stage.ran(&["logs"]).stdout;
        if logs.contains("no server listens") {
            break;
        }
        assert!(Instant::now() < deadline, "nobody says that the collector is away: {logs}");
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(onward.spans().len(), before, "the control: what is away passes nothing on");
    let _collector = Rotel::start(&rotel, port, &onward);
    onward.wait_for("the second session", all);
    // What would come twice comes soon.
    thread::sleep(Duration::from_secs(2));
    let out = in_order(onward.items());
    assert_eq!(out, in_order(spans(&stage, &packages)), "each once, with all that it says");
    let count = |name: &str| out.iter().filter(|span| span["name"] == name).count();
    assert_eq!((count("invoke_agent"), count("chat model"), count("execute_tool fs.edit")), (2, 4, 2));

    let of = |token: &str| {
        let chats = out.iter().filter(|span| span["name"] == "chat model");
        chats.map(|chat| chat["attributes"][format!("gen_ai.usage.{token}_tokens")].as_f64().unwrap()).sum()
    };
    let counted =
        |token| onward.counted(TOKENS, &[("gen_ai.token.type", token), ("gen_ai.request.model", "model")]);
    onward.wait_for("its figures", |_| counted("input") == (4, of("input")));
    assert_eq!(counted("output"), (4, of("output")));
    let (calls, seconds) = onward.counted(DURATION, &[("gen_ai.provider.name", "test")]);
    assert!(calls == 4 && seconds > 0.0 && seconds < 60.0, "{seconds}");
    let last = |name| onward.figures(name).pop().unwrap_or_else(|| panic!("{name}"));
    let (tokens, duration) = (last(TOKENS), last(DURATION));
    assert_eq!((&tokens["unit"], &duration["unit"]), (&json!("{token}"), &json!("s")));
    let powers = |base: f64, by: f64| -> Value { (0..14).map(|power| base * by.powi(power)).collect() };
    assert_eq!(tokens["point"]["explicitBounds"], powers(1.0, 4.0));
    assert_eq!(duration["point"]["explicitBounds"], powers(0.01, 2.0));
    // And those of the page, under the names that a collector makes Prometheus' of.
    let turns = last("bailey.turns");
    assert_eq!((&turns["kind"], &turns["temporality"]), (&json!("sum"), &json!(2)));
    let used = last("bailey.memory.used");
    assert_eq!((&used["kind"], &used["unit"]), (&json!("gauge"), &json!("By")));
    assert_eq!(last("bailey.sessions")["attributes"]["state"], "resting");
}

#[test]
fn a_collector_of_traces_alone_is_told_spans() {
    let Some(packages) = messages() else { return };
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let collector = Collector::answering(&packages, &json!([]), &json!({ "status": 404 }));
    let _model = told(&stage, &collector.url(), done(2));
    let daemon = Daemon::start(&stage);
    let all = |collector: &Collector| collector.spans() == exported(&stage, &packages);
    task(&stage);
    let figures = || collector.requests_at("/base/v1/metrics").len();
    collector.wait_for("the first session", |collector| all(collector) && figures() > 0);
    task(&stage);
    collector.wait_for("the second session", all);
    assert_eq!(daemon.status()["telemetry"]["up"], true);
    assert_eq!(figures(), 1, "and it is left alone with figures for a while");
    let logs = stage.ran(&["logs"]).stdout;
    assert_eq!(logs.matches("nothing takes figures there (status 404)").count(), 1, "{logs}");
}

/// What whoever holds the process can do: a name, and the result or the error as a negative number. A program
/// is executed last.
fn calls(stage: &Stage, elsewhere: &TcpListener, taken: &mut Taken) -> Vec<(&'static str, i64)> {
    let home = stage.home();
    let mut found = Vec::new();
    for (name, path, flags) in [
        ("read the keys", home.join(".env"), libc::O_RDONLY),
        ("read the project", stage.project().join("a.txt"), libc::O_RDONLY),
        ("read the daemon's log", home.join("daemon/log"), libc::O_RDONLY),
        ("write the configuration", home.join("config.toml"), libc::O_WRONLY),
        ("write a rule", home.join("policy/mine.toml"), libc::O_WRONLY | libc::O_CREAT),
        ("write a file beside its notes", home.join("telemetry/new"), libc::O_WRONLY | libc::O_CREAT),
    ] {
        let path = taken.put(path.to_str().unwrap().as_bytes());
        let open = [libc::AT_FDCWD as u64, path, flags as u64, 0o600, 0, 0];
        found.push((name, taken.call(libc::SYS_openat, open)));
    }
    let unix = taken.call(libc::SYS_socket, [libc::AF_UNIX as u64, libc::SOCK_STREAM as u64, 0, 0, 0, 0]);
    found.push(("make a Unix socket", unix));
    let port = elsewhere.local_addr().unwrap().port().to_be_bytes();
    let address = taken.put(&[&2_u16.to_ne_bytes()[..], &port, &[127, 0, 0, 1], &[0; 8]].concat());
    let tcp = taken.call(libc::SYS_socket, [libc::AF_INET as u64, libc::SOCK_STREAM as u64, 0, 0, 0, 0]);
    found.push(("reach another port", taken.call(libc::SYS_connect, [tcp as u64, address, 16, 0, 0, 0])));
    let parent = u64::from(std::process::id());
    found.push(("signal another process", taken.call(libc::SYS_kill, [parent, 0, 0, 0, 0, 0])));
    let program = taken.put(b"/bin/true");
    let argv = taken.put(&[program.to_ne_bytes(), 0_u64.to_ne_bytes()].concat());
    found.push(("execute a program", taken.call(libc::SYS_execve, [program, argv, 0, 0, 0, 0])));
    found
}

#[test]
fn who_takes_the_sender_over_reaches_its_collectors_port_and_no_other() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    // It is not asked for anything: that it is reached is what counts.
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", collector.local_addr().unwrap());
    for is_control in [false, true] {
        let stage = Stage::new(&[("a.txt", "one\n")]);
        let _model = told(&stage, &url, Vec::new());
        fs::create_dir_all(stage.home().join("policy")).unwrap();
        let program = if is_control { controls() } else { Path::new(env!("CARGO_BIN_EXE_bailey")) };
        let mut start = Command::new(program);
        start.args(stage.bailey(&["start"]).get_args()).env("BAILEY_CONTROL_UNBOUND", "1");
        assert!(start.current_dir(stage.project()).stderr(Stdio::null()).status().unwrap().success());
        let daemon = Daemon::of(&stage);
        // It is bound before it opens its way, and figures are sent at once.
        collector.accept().unwrap();
        assert_eq!(daemon.status()["telemetry"]["up"], true);
        let process = u32::try_from(sender(&stage).unwrap()).unwrap();
        let mut tried = 0;
        for thread in inject::threads(process) {
            let mut taken = match Taken::seize(thread) {
                Ok(taken) => taken,
                Err(Errno::ESRCH) => continue,
                Err(error) => return println!("SKIPPED: ptrace is not allowed here ({error})"),
            };
            tried += 1;
            for (name, result) in calls(&stage, &elsewhere, &mut taken) {
                let is_refused = [-i64::from(libc::EACCES), -i64::from(libc::EPERM)].contains(&result);
                assert!(if is_control { result >= 0 } else { is_refused }, "{is_control}: {name}: {result}");
            }
            // What executed a program is no sender any more.
            if is_control {
                break;
            }
            let port = collector.local_addr().unwrap().port().to_be_bytes();
            let address = taken.put(&[&2_u16.to_ne_bytes()[..], &port, &[127, 0, 0, 1], &[0; 8]].concat());
            let tcp =
                taken.call(libc::SYS_socket, [libc::AF_INET as u64, libc::SOCK_STREAM as u64, 0, 0, 0, 0]);
            let own = taken.call(libc::SYS_connect, [tcp as u64, address, 16, 0, 0, 0]);
            assert_eq!(own, 0, "the control: its own collector it reaches");
        }
        assert!(tried > 0);
    }
}

/// Takes nothing, and says of each request that it may be sent again at once; how many came.
fn without_pause() -> (String, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let came: Arc<Mutex<usize>> = Arc::default();
    let counted = came.clone();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let counted = counted.clone();
            thread::spawn(move || {
                answer(BufReader::new(stream), |head| {
                    *counted.lock().unwrap() += usize::from(head.contains("/v1/traces"));
                    "HTTP/1.1 429 Too Many Requests\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n"
                });
            });
        }
    });
    (url, came)
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const SHUT: &str = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n";

/// Answers the requests of one connection, each by its head.
fn answer(mut stream: BufReader<TcpStream>, by: impl Fn(&str) -> &'static str) {
    loop {
        let (mut length, mut head) = (0, String::new());
        while !head.ends_with("\r\n\r\n") {
            let from = head.len();
            if !stream.read_line(&mut head).is_ok_and(|read| read > 0) {
                return;
            }
            let line = head[from..].to_ascii_lowercase();
            length = line.strip_prefix("content-length:").map_or(length, |text| text.trim().parse().unwrap());
        }
        let mut body = vec![0; length];
        if stream.read_exact(&mut body).is_err() {
            return;
        }
        if stream.get_mut().write_all(by(&head).as_bytes()).is_err() {
            return;
        }
    }
}

/// That its process is up says nothing of whether anything arrives.
#[test]
fn why_a_collector_takes_nothing_is_told_until_it_does() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    // Nobody listens there yet.
    let port = free_port();
    let _model = told(&stage, &format!("http://127.0.0.1:{port}"), done(1));
    task(&stage);
    let daemon = Daemon::start(&stage);
    let wait_for = |what: &str, is_it: &dyn Fn(&str) -> bool| {
        let deadline = Instant::now() + 2 * PATIENCE;
        loop {
            let status = daemon.status()["telemetry"].clone();
            if status["up"] == true && is_it(status["note"].as_str().unwrap()) {
                return status;
            }
            assert!(Instant::now() < deadline, "{what}: {status:#}");
            thread::sleep(Duration::from_millis(50));
        }
    };
    wait_for("no server listens", &|note| note.contains("no server listens"));
    assert!(stage.ran(&["status"]).stdout.contains("no server listens"));
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let is_well = Arc::new(Mutex::new(false));
    let well = is_well.clone();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let well = well.clone();
            thread::spawn(move || {
                answer(BufReader::new(stream), |_| if *well.lock().unwrap() { OK } else { SHUT })
            });
        }
    });
    wait_for("another failure", &|note| note.contains("does not let Bailey in (status 401)"));
    *is_well.lock().unwrap() = true;
    wait_for("it takes something", &str::is_empty);
}

#[test]
fn a_collector_that_wants_no_pause_is_not_asked_without_end() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (url, came) = without_pause();
    let _model = told(&stage, &url, done(1));
    task(&stage);
    let _daemon = Daemon::start(&stage);
    let deadline = Instant::now() + PATIENCE;
    while *came.lock().unwrap() == 0 {
        assert!(Instant::now() < deadline, "nothing was sent");
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(Duration::from_secs(5));
    let came = *came.lock().unwrap();
    // The control: it is tried again.
    assert!((2..=6).contains(&came), "{came} requests in five seconds");
}

#[test]
fn a_model_that_sums_up_says_what_that_took() {
    let stage = Stage::new(&[("big.txt", &"A line of a file that is long and says little.\n".repeat(130))]);
    let read = AtomicUsize::new(0);
    let model = ModelServer::by(move |request| {
        if request.body.contains("You write down what a conversation") {
            return Reply::text("It read big.txt, and nothing is open.");
        }
        match read.fetch_add(1, Ordering::SeqCst) {
            count @ 0..12 => {
                Reply::calls([(format!("c{count}").as_str(), "fs_read", json!({ "path": "big.txt" }))])
            }
            _ => Reply::text("done"),
        }
    });
    fs::create_dir_all(stage.home()).unwrap();
    stage.provider(&model);
    let host = model.base_url().replace("http://", "");
    let window = format!("[[model]]\nhost = \"{host}\"\nname = \"*\"\nwindow = 16_000\n");
    fs::write(stage.home().join("models.toml"), window).unwrap();
    let ran = stage.ran(&["run", "--model", "test/model", "--approve", "never", "read it"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let summaries: Vec<Value> =
        stage.trail().into_iter().filter(|it| it["type"] == "summary" && it["author"] != "bailey").collect();
    assert!(!summaries.is_empty(), "the control: there is one: {ran:?}");
    for summary in &summaries {
        assert_eq!(summary["usage"]["input_tokens"], "10", "{summary:#}");
    }
    // Each call of a model says what it took, those too that no reply came of.
    let whole = stage.ran(&["audit", "export", "--otlp"]).stdout;
    let calls = whole.matches("\"name\":\"chat model\"").count();
    let counts = whole.matches("gen_ai.usage.cache_read.input_tokens").count();
    assert!(calls == model.requests().len() && counts == calls, "{counts} of {calls}");
}

#[test]
fn what_was_killed_and_never_gone_on_with_is_cut_off() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = Gate::default();
    let model = stage.model(vec![Reply::Held(gate.clone(), Message::text("never said"))]);
    let mut run = stage.bailey(&["run", "--model", "test/model", "--approve", "never", "do it"]);
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    model.wait_for(1);
    let exported = |form: &str| {
        let ran = stage.ran(&["audit", "export", form]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout
    };
    // The control: somebody works at it, and it has no end.
    let whole = exported("--otlp");
    assert!(!whole.contains("cut_off") && !whole.contains("invoke_agent"), "{whole}");
    run.kill().unwrap();
    run.wait().unwrap();
    let whole = exported("--otlp");
    assert_eq!(whole.matches("\"cut_off\"").count(), 2, "the turn and its call of a model: {whole}");
    for name in ["\"invoke_agent\"", "\"chat model\""] {
        assert!(whole.contains(&format!("\"name\":{name}")), "{name}: {whole}");
    }
    // A flame graph has it, too, where it took any time.
    exported("--folded");
    gate.open();
}

/// It is slow, answers without end, sends elsewhere, wants to be left alone and hangs up in the middle of its
/// answer; sessions do not notice, and what it took in the end is everything.
#[test]
fn a_collector_that_misbehaves_is_nobodys_trouble() {
    let Some(packages) = messages() else { return };
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let answers = json!([
        { "sleep": 12 },
        { "times": 50 << 20, "body": " " },
        { "status": 307, "headers": { "location": "/elsewhere" } },
        { "status": 429, "headers": { "retry-after": "2" } },
        { "lacks": 1000 },
    ]);
    let collector = Collector::start(&packages, &answers);
    let _model = told(&stage, &collector.url(), done(3));
    task(&stage);
    let daemon = Daemon::start(&stage);
    collector.wait_for("the first request", |collector| collector.requests().len() == 1);
    let memory = figure(sender(&stage).unwrap(), "VmHWM");
    let begun = Instant::now();
    task(&stage);
    assert_eq!(daemon.status()["telemetry"]["up"], true);
    assert!(begun.elapsed() < Duration::from_secs(10), "a session waited for a collector");
    collector.wait_for("everything", |collector| {
        let told: BTreeSet<String> = collector.spans().into_iter().collect();
        exported(&stage, &packages).iter().all(|span| told.contains(span))
    });
    // The same request six times, byte for byte, and nothing twice after that.
    let requests = collector.requests();
    assert!(requests.len() >= 7 && requests[..6].iter().all(|it| it["text"] == requests[0]["text"]));
    let grown = figure(sender(&stage).unwrap(), "VmHWM") - memory;
    assert!(grown < 16 << 10, "an answer of 50 MiB took {grown} KiB");
    let logs = stage.ran(&["logs"]).stdout;
    assert!(logs.contains("did not begin to answer within 10 s"), "{logs}");
    assert!(logs.contains("the collector takes spans again"), "{logs}");

    // What it refuses is not sent again, and what comes after it is.
    let refusing = Collector::start(&packages, &json!([{ "status": 400, "body": "no" }]));
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap();
    fs::write(&config, own.replace(&collector.url(), &refusing.url())).unwrap();
    assert_eq!(stage.ran(&["reload"]).code, Some(0));
    task(&stage);
    refusing.wait_for("a request", |collector| collector.requests().len() == 1);
    stage.ran(&["sandbox", "run", "--", "true"]);
    refusing.wait_for("the next one", |collector| collector.requests().len() == 2);
    let spans = refusing.spans();
    assert_eq!(spans.iter().collect::<BTreeSet<_>>().len(), spans.len());
    let logs = stage.ran(&["logs"]).stdout;
    assert!(logs.contains("the collector refused it (status 400): some spans are not told"), "{logs}");
}
