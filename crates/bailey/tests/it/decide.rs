//! The gate for other runtimes: the real program as their child, asked line by line, and the page about it.

use crate::stage::{Ran, Stage};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
};

/// Another runtime.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Client {
    fn start(stage: &Stage) -> Self {
        Self::of(stage.bailey(&["policy", "decide", "--stdio"]))
    }

    fn of(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    fn write(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: `{line}`"))
    }

    fn say(&mut self, line: impl AsRef<[u8]>) -> Value {
        self.write(line.as_ref());
        self.read()
    }

    fn begin(&mut self, tools: Value) {
        let begun = self
            .say(json!({ "op": "begin", "case_id": "c", "user_prompt": "p", "tools": tools }).to_string());
        assert_eq!(begun, json!({ "ok": true }));
    }

    fn decide(&mut self, tool: &str, args: Value) -> Value {
        self.say(json!({ "op": "decide", "id": 1, "tool": tool, "args": args }).to_string())
    }

    fn observe(&mut self, tool: &str, args: Value, output: &str) {
        let line = json!({ "op": "observe", "tool": tool, "args": args, "output": output });
        assert_eq!(self.say(line.to_string()), json!({ "ok": true }));
    }

    /// Ends its input and waits.
    fn end(mut self) {
        drop(self.input.take());
        let ended = self.child.wait().unwrap();
        assert_eq!(ended.code(), Some(0));
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn tools() -> Value {
    json!({
        "read_file": { "effect": "read" },
        "write_note": { "effect": "write" },
        "send_email": { "effect": "egress" },
        "wipe": { "effect": "destructive" },
        "frobnicate": {},
    })
}

fn decision(answer: &Value) -> &str {
    answer["decision"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

fn reason(answer: &Value) -> &str {
    answer["reason"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

fn rules(stage: &Stage, text: &str) {
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    fs::write(stage.home().join("policy/own.toml"), text).unwrap();
}

#[test]
fn a_tool_of_an_effect_that_the_gate_does_not_know_is_asked_about_and_the_others_work() {
    let stage = Stage::new(&[]);
    let mut client = Client::start(&stage);
    let tools = json!({ "read_file": { "effect": "read" }, "get_it": { "effect": "teleport" } });
    let begun = client.say(json!({ "op": "begin", "tools": tools }).to_string());
    assert_eq!(begun["ok"], true, "{begun}");
    assert!(begun["remarks"][0].as_str().unwrap().contains("`get_it`: unknown effect `teleport`"), "{begun}");
    assert_eq!(decision(&client.decide("read_file", json!({}))), "allow");
    assert_eq!(decision(&client.decide("get_it", json!({}))), "ask");
    client.begin(json!({ "get_it": { "effect": "read" } }));
    assert_eq!(decision(&client.decide("get_it", json!({}))), "allow", "the control");
    client.end();
}

#[test]
fn what_another_runtime_may_do_is_what_the_rules_say_of_tools_that_it_declared() {
    let stage = Stage::new(&[]);
    let mut client = Client::start(&stage);
    let hello = client.say(r#"{"op":"hello","protocol":1}"#);
    assert_eq!((&hello["ok"], &hello["name"]), (&json!(true), &json!("bailey")));
    let early = client.decide("read_file", json!({}));
    assert!(decision(&early) == "deny" && reason(&early).contains("`begin` one first"), "{early}");
    client.begin(tools());
    for (tool, expected, why) in [
        ("read_file", "allow", "a capability token covers this"),
        ("write_note", "allow", "a capability token covers this"),
        ("send_email", "ask", "rule `tools-beyond`: review"),
        ("wipe", "ask", "rule `tools-beyond`: review"),
        ("frobnicate", "ask", "nobody can tell"),
        ("read_files", "deny", "nobody declared the tool `read_files`"),
    ] {
        let answer = client.decide(tool, json!({ "a": 1 }));
        assert!(
            answer["id"] == 1 && decision(&answer) == expected && reason(&answer).contains(why),
            "{tool}: {answer}"
        );
    }
    client.end();
    let judged = stage.entries("judged");
    let verdicts: Vec<&str> = judged.iter().map(|entry| entry["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["allowed", "allowed", "asked", "asked", "asked", "denied"]);
    assert!(judged.iter().all(|entry| !entry["reasons"][0].as_str().unwrap().is_empty()));
    let ended = stage.entries("token_ended").len();
    assert!(ended > 0 && ended == stage.entries("token_minted").len(), "its tokens ended with it");
    let listed = stage.ran(&["sessions", "list"]).stdout;
    assert!(listed.contains("another program's task c: p"), "{listed}");
    let session = judged[0]["session"].as_str().unwrap();
    for command in ["resume", "fork", "diff", "apply"] {
        let refused = stage.ran(&["sessions", command, session]);
        assert!(
            refused.code == Some(1) && refused.stderr.contains("a task of another program"),
            "{refused:?}"
        );
    }
}

#[test]
fn ten_thousand_questions_are_answered_in_their_order_with_garbage_between() {
    let stage = Stage::new(&[]);
    let mut client = Client::start(&stage);
    client.begin(tools());
    let mut input = client.input.take().unwrap();
    let writer = thread::spawn(move || {
        for id in 0..10_000 {
            if id % 500 == 0 {
                input.write_all(b"{\"op\":\"decide\",\"id\":\xff\xfe}\n").unwrap();
            }
            let tool = if id % 2 == 0 { "read_file" } else { "send_email" };
            let line = json!({ "op": "decide", "id": id, "tool": tool, "args": { "n": id } });
            writeln!(input, "{line}").unwrap();
        }
    });
    let mut errors = 0;
    for id in 0..10_000 {
        let mut answer = client.read();
        while answer.get("error").is_some() {
            errors += 1;
            answer = client.read();
        }
        let expected = if id % 2 == 0 { "allow" } else { "ask" };
        assert!(answer["id"] == id && decision(&answer) == expected, "{id}: {answer}");
    }
    writer.join().unwrap();
    assert_eq!(errors, 20);
    assert_eq!(client.child.wait().unwrap().code(), Some(0));
    let exported = stage.ran(&["audit", "export"]).lines();
    let judged = exported.iter().filter(|line| line["entry"]["type"] == "judged");
    let args = judged.map(|line| {
        let effect: Value = serde_json::from_str(line["payload"].as_str().unwrap()).unwrap();
        effect["action"]["args"].as_str().unwrap().to_owned()
    });
    assert!(args.eq((0..10_000).map(|n| format!("{{\"n\":{n}}}"))), "in the journal, too");
}

#[test]
fn what_cannot_be_read_is_an_error_and_what_cannot_be_judged_is_denied_and_the_next_line_is_served() {
    let stage = Stage::new(&[]);
    let mut client = Client::start(&stage);
    client.begin(tools());
    let fine = r#"{"op":"decide","id":7,"tool":"read_file","args":{}}"#;
    let long = vec![b'x'; 50 << 20];
    for line in [
        &b""[..],
        b"\x00\x01",
        b"[]",
        b"{\"op\":\"decide\",\"id\":1,\"tool\":\"read_file\",\"args\":{\"a\":\"\xff\"}}",
        br#"{"op":"observe","op":"decide","id":1,"tool":"read_file","args":{}}"#,
        br#"{"op":"allow","id":1,"tool":"read_file"}"#,
        br#"{"op":"decide","id":1,"tool":"read_file","args":{"a":NaN}}"#,
        br#"{"op":"decide","id":1,"tool":"read_file","args":"x"}"#,
        br#"{"op":"decide","id":1,"tool":"read_file"}"#,
        br#"{"op":"hello","protocol":99}"#,
        br#"{"op":"observe","tool":7}"#,
        &long,
    ] {
        let shown = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
        let answer = client.say(line);
        assert!(answer["error"].is_string() && answer.get("decision").is_none(), "{shown}: {answer}");
        assert_eq!(decision(&client.say(fine)), "allow", "after {shown}");
    }
    for (args, tool, why) in [
        (r#"{"a":1,"a":2}"#, "read_file", "stands there twice"),
        (r#"{"a":9007199254740993}"#, "read_file", "beyond 2^53"),
        (r#"{"a\u202eb":1}"#, "read_file", "bidi"),
        ("{}", r"read_file\u0000", "no tool's name"),
        ("{}", r"read_file\u202e", "no tool's name"),
        ("{}", "read_*", "no tool's name"),
        ("{}", "Read_file", "nobody declared"),
    ] {
        let line = format!(r#"{{"op":"decide","id":7,"tool":"{tool}","args":{args}}}"#);
        let answer = client.say(&line);
        assert!(decision(&answer) == "deny" && reason(&answer).contains(why), "{line}: {answer}");
        assert_eq!(decision(&client.say(fine)), "allow", "after {line}");
    }
    client.end();
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));
}

#[test]
fn a_client_that_is_killed_leaves_a_ledger_that_holds() {
    let stage = Stage::new(&[]);
    let mut client = Client::start(&stage);
    client.begin(tools());
    for n in 0..50 {
        assert_eq!(decision(&client.decide("read_file", json!({ "n": n }))), "allow");
    }
    // In the middle of more.
    for n in 0..200 {
        client.write(
            json!({ "op": "decide", "id": n, "tool": "read_file", "args": {} }).to_string().as_bytes(),
        );
    }
    client.child.kill().unwrap();
    assert_eq!(client.child.wait().unwrap().signal(), Some(9));
    let judged = stage.entries("judged").len();
    assert!(judged >= 50, "what was answered is on disk: {judged}");
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));
    let rebuilt = stage.ran(&["--json", "audit", "rebuild"]).lines().remove(0);
    assert_eq!(rebuilt["repaired"], json!({}), "the counts are what the entries say");
    let mut next = Client::start(&stage);
    next.begin(tools());
    assert_eq!(decision(&next.decide("read_file", json!({}))), "allow");
    next.end();
}

#[test]
fn the_gate_binds_itself_and_ends_when_it_is_asked_to() {
    let stage = Stage::new(&[]);
    let mut client = Client::start(&stage);
    client.begin(tools());
    let status = fs::read_to_string(format!("/proc/{}/status", client.child.id())).unwrap();
    assert!(status.contains("Seccomp:\t2") && status.contains("NoNewPrivs:\t1"), "{status}");
    let id = client.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(client.child.wait().unwrap().code(), Some(143));
    assert_eq!(
        stage.entries("token_minted").len(),
        stage.entries("token_ended").len(),
        "its tokens are over"
    );
}

#[test]
fn two_clients_at_once_have_each_their_own_task_and_tokens() {
    let stage = Stage::new(&[]);
    let (mut one, mut two) = (Client::start(&stage), Client::start(&stage));
    one.begin(json!({ "read_file": { "effect": "read" } }));
    two.begin(json!({ "list_it": { "effect": "read" } }));
    for n in 0..100 {
        assert_eq!(decision(&one.decide("read_file", json!({ "n": n }))), "allow");
        assert_eq!(decision(&two.decide("list_it", json!({ "n": n }))), "allow");
        assert_eq!(decision(&two.decide("read_file", json!({ "n": n }))), "deny", "it is the other one's");
    }
    one.end();
    assert_eq!(decision(&two.decide("list_it", json!({}))), "allow", "the other's end is not its own");
    two.end();
    let judged = stage.entries("judged");
    let tokens: std::collections::BTreeSet<String> = judged
        .iter()
        .filter(|entry| entry["verdict"] == "allowed")
        .map(|entry| entry["under"]["token"].to_string())
        .collect();
    assert_eq!((judged.len(), tokens.len()), (301, 2));
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));
}

#[test]
fn a_new_task_forgets_the_one_before_and_its_tokens() {
    let stage = Stage::new(&[]);
    let mut client = Client::start(&stage);
    client.begin(json!({ "read_file": { "effect": "read" } }));
    assert_eq!(decision(&client.decide("read_file", json!({}))), "allow", "control");
    client.begin(json!({ "list_it": { "effect": "read" } }));
    assert_eq!(decision(&client.decide("read_file", json!({}))), "deny");
    assert_eq!(decision(&client.decide("list_it", json!({}))), "allow");
    let tokens = |kind| stage.entries(kind).len();
    assert_eq!((tokens("token_minted"), tokens("token_ended")), (2, 1));
    let begun = client.say(r#"{"op":"begin","tools":["list_it"]}"#);
    assert!(begun["error"].as_str().unwrap().contains("`tools`"), "{begun}");
    assert_eq!(
        decision(&client.decide("list_it", json!({}))),
        "deny",
        "a task that cannot begin ends the one before"
    );
    client.begin(json!({ "list_it": { "effect": "read" } }));
    assert_eq!(decision(&client.decide("list_it", json!({}))), "allow");
    assert_eq!(client.say(r#"{"op":"end"}"#), json!({ "ok": true }));
    assert_eq!(decision(&client.decide("list_it", json!({}))), "deny", "its task has ended");
    client.end();
    assert_eq!((tokens("token_minted"), tokens("token_ended"), tokens("session_opened")), (3, 3, 3));
}

#[test]
fn other_rules_count_from_the_next_question_on_and_the_token_is_dead() {
    let stage = Stage::new(&[]);
    let all = "[[rule]]\nname = \"all\"\nanswer = \"allow\"\nmatch = { action = \"tool\" }\n";
    rules(&stage, all);
    let mut client = Client::start(&stage);
    client.begin(tools());
    let before = client.decide("send_email", json!({}));
    assert!(
        decision(&before) == "allow" && reason(&before).contains("capability token"),
        "control: {before}"
    );
    rules(
        &stage,
        &format!("{all}[[rule]]\nname = \"no-mail\"\nanswer = \"deny\"\nmatch = {{ tool = \"*mail\" }}\n"),
    );
    assert_eq!(decision(&client.decide("send_email", json!({}))), "allow", "nobody put them into force yet");
    Client::start(&stage).say(r#"{"op":"hello"}"#);
    let after = client.decide("send_email", json!({}));
    assert!(decision(&after) == "deny" && reason(&after).contains("rule `no-mail`: deny"), "{after}");
    client.observe("send_email", json!({}), "sent all the same");
    client.observe("send_email", json!({}), "and as it was allowed before");
    let reported = stage.entries("reported");
    let after: Vec<&Value> = reported.iter().map(|entry| &entry["after"]).collect();
    assert_eq!(after, [&json!("denied"), &json!("allowed")], "the newest verdict is what it was told");
    let other = client.decide("read_file", json!({}));
    assert!(
        decision(&other) == "allow" && reason(&other).contains("rule `all`: allow"),
        "by the rules: {other}"
    );
    client.begin(tools());
    assert!(reason(&client.decide("read_file", json!({}))).contains("capability token"), "a new one");
    client.end();
}

#[test]
fn rules_can_look_at_a_tools_name_effect_size_and_at_how_far_its_runtime_is_trusted() {
    let stage = Stage::new(&[]);
    rules(
        &stage,
        r#"
[[rule]]
name = "looks"
answer = "allow"
match = { action = "tool", effect = "read", max_size = 20 }

[[rule]]
name = "mine"
answer = "allow"
match = { action = "tool", tool = "send_*", trust = "internal" }
"#,
    );
    for (trust, mail) in [("untrusted", "deny"), ("internal", "allow")] {
        let mut client = Client::of(stage.bailey(&["policy", "decide", "--stdio", "--trust", trust]));
        client.begin(tools());
        assert_eq!(decision(&client.decide("send_email", json!({}))), mail, "{trust}");
        assert_eq!(decision(&client.decide("read_file", json!({ "a": 1 }))), "allow");
        assert_eq!(decision(&client.decide("read_file", json!({ "a": "x".repeat(20) }))), "deny");
        assert_eq!(decision(&client.decide("frobnicate", json!({}))), "deny", "nobody knows what it does");
        client.end();
    }
}

#[test]
fn what_another_runtime_was_told_is_what_was_decided_then() {
    let stage = Stage::new(&[]);
    let all =
        "[[rule]]\nname = \"all\"\nanswer = \"allow\"\nmatch = { action = \"tool\", tool = \"read_*\" }\n";
    rules(&stage, all);
    let mut client = Client::start(&stage);
    client.begin(tools());
    assert_eq!(decision(&client.decide("read_file", json!({}))), "allow");
    assert_eq!(decision(&client.decide("send_email", json!({}))), "deny");
    client.end();
    let session =
        stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
    let draft = stage.folder().join("own.toml");
    let changes = |text: &str| {
        fs::write(&draft, text).unwrap();
        let ran = stage.ran(&["--json", "replay", &session, "--policy", draft.to_str().unwrap()]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let mut lines = ran.lines();
        assert_eq!(lines.pop().unwrap()["judged"], 2, "{ran:?}");
        let text = |line: &Value, field: &str| line[field].as_str().unwrap().to_owned();
        lines.retain(|line| line["was"].is_string());
        lines.iter().map(|line| ["was", "would"].map(|field| text(line, field))).collect::<Vec<_>>()
    };
    assert_eq!(changes(all), Vec::<[String; 2]>::new(), "by the same rules nothing is otherwise");
    let other = all.replace("read_*", "send_*");
    assert_eq!(changes(&other), [["allow", "deny"], ["deny", "allow"]].map(|it| it.map(String::from)));
}

#[test]
fn an_emergency_stop_ends_the_gate_and_no_other_opens() {
    let stage = Stage::new(&[]);
    let mut client = Client::start(&stage);
    client.begin(tools());
    assert_eq!(decision(&client.decide("read_file", json!({}))), "allow", "control");
    let stopped = stage.ran(&["--json", "estop"]).lines().remove(0);
    assert_eq!((&stopped["ended"], &stopped["left"]), (&json!(1), &json!([])));
    let ended = client.child.wait().unwrap();
    assert!(ended.code() == Some(143) || ended.signal() == Some(9), "{ended:?}");
    let refused = Ran::of(stage.bailey(&["policy", "decide", "--stdio"]).output().unwrap());
    assert!(refused.code != Some(0) && refused.stderr.contains("stopped"), "{refused:?}");
}

#[test]
fn what_was_used_is_told_by_digest_and_by_who_approved_it() {
    let stage = Stage::new(&[]);
    let key = "sk-ant-api03-Zk3vQ9wXr7LmT2bN8cHs";
    let mut command = stage.bailey(&["policy", "decide", "--stdio"]);
    command.env("ANTHROPIC_API_KEY", key);
    let mut client = Client::of(command);
    client.begin(tools());
    let args = json!({ "text": key });
    assert_eq!(decision(&client.decide("send_email", args.clone())), "ask");
    client.observe("send_email", args.clone(), &format!("sent with {key}"));
    assert_eq!(decision(&client.decide("read_file", json!({ "b": 1, "a": 2 }))), "allow");
    let spaced = r#"{"op":"observe","tool":"read_file","args":{ "b": 1,  "a": 2 },"output":"x"}"#;
    assert_eq!(client.say(spaced), json!({ "ok": true }));
    assert_eq!(decision(&client.decide("nobodys", json!({}))), "deny");
    client.observe("nobodys", json!({}), "x");
    client.observe("wipe", json!({}), "x");
    client.end();
    let reported = stage.entries("reported");
    let after: Vec<&Value> = reported.iter().map(|entry| &entry["after"]).collect();
    assert_eq!(after, [&json!("asked"), &json!("allowed"), &json!("denied"), &Value::Null]);
    assert_eq!((&reported[0]["redacted"], &reported[0]["bytes"]), (&json!(1), &json!("43")));
    assert!(stage.entries("answered").is_empty(), "nobody approved anything here");
    let log = stage.ran(&["audit", "log"]).stdout;
    assert!(log.contains("send_email: approved there") && log.contains("although it was denied"), "{log}");
    for file in ["journal.db", "journal.db-wal"] {
        let Ok(bytes) = fs::read(stage.home().join(file)) else { continue };
        assert!(!bytes.windows(key.len()).any(|part| part == key.as_bytes()), "the key is in {file}");
    }
}

#[test]
fn the_pages_client_does_what_the_page_says() {
    let Some(python) = Some("/usr/bin/python3").filter(|python| Path::new(python).exists()) else {
        println!("SKIPPED: there is no /usr/bin/python3");
        return;
    };
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/extensions.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, page) = page.split_once("\n## The gate for other runtimes\n").unwrap();
    let block = |language: &str| {
        let fence = format!("```{language}\n");
        page.split(&fence).nth(1).unwrap().split("```").next().unwrap().to_owned()
    };
    let stage = Stage::new(&[]);
    fs::write(stage.folder().join("agent.py"), block("python")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_bailey")).parent().unwrap();
    let path = std::env::join_paths([program, Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    let mut command = Command::new(python);
    command.arg(stage.folder().join("agent.py")).current_dir(stage.project()).env("PATH", path);
    command.env("BAILEY_HOME", stage.home()).stdin(Stdio::null());
    let ran = Ran::of(command.output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), block("text").as_str()), "{ran:?}");
    let reported: Vec<Value> = stage.entries("reported").iter().map(|entry| entry["after"].clone()).collect();
    assert_eq!(reported, [json!("allowed"), json!("asked")]);
    rules(&stage, &block("toml"));
    let checked = stage.ran(&["policy", "test"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
}
