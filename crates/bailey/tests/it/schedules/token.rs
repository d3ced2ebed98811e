//! What a schedule may: its sessions act by a token, and go on with it whoever takes them up again.

use super::{home, listed, wait};
use crate::{
    daemon::{Daemon, end, pid},
    stage::Stage,
};
use bailey_testkit::{Gate, Message, ModelServer, Reply};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::DirBuilderExt as _,
    process::Stdio,
};

const BEYOND: &str = "this is beyond its scope";

fn add(stage: &Stage, name: &str, may: &[&str]) {
    let may = may.iter().flat_map(|line| ["--may", line]);
    let words = ["schedule", "add", name, "--cron", "@yearly"].into_iter().chain(may).chain(["look around"]);
    let ran = stage.ran(&words.collect::<Vec<_>>());
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// Who may change a file and not look at it may change none, which whoever says so hears.
#[test]
fn what_may_be_changed_unseen_is_said_to_be_nothing() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let said = |name: &str, may: &str| {
        let ran = stage.ran(&["schedule", "add", name, "--cron", "@yearly", "--may", may, "look around"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stderr.contains("--may change,read,stat")
    };
    assert!(said("one", "change") && said("two", "change,read:src"));
    assert!(!said("three", "change,read,stat:src") && !said("four", "read"), "the control");
}

/// Has one done now, to its end; gives its session and what the model was told of each call.
fn run(stage: &Stage, model: &ModelServer, name: &str) -> (String, Vec<String>) {
    let before = model.requests().len();
    let ran = stage.ran(&["--json", "schedule", "run", name]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let session = ran.lines()[0]["session"].as_str().unwrap().to_owned();
    wait("the turn's end", || ended(stage, &session));
    let requests = model.requests();
    assert!(requests.len() > before, "the model was asked");
    (session.clone(), told(&requests.last().unwrap().json()))
}

fn ended(stage: &Stage, session: &str) -> bool {
    entries(stage, session).iter().any(|it| it["type"] == "turn_ended")
}

fn entries(stage: &Stage, session: &str) -> Vec<Value> {
    stage.trail().into_iter().filter(|it| it["session"] == session).collect()
}

/// The results of calls that a request brings, in the order in which they were asked for.
fn told(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    let parts = messages.filter_map(|message| message["content"].as_array()).flatten();
    parts.filter(|part| part["type"] == "tool_result").map(|part| part["content"].to_string()).collect()
}

/// What a task tries: the first two are within `read:src` and `exec:cat src`.
fn tries() -> Vec<Reply> {
    let run = |command: &str| json!({ "command": command });
    let errand = json!({ "task": "look everywhere", "tools": ["fs.read", "command.run"], "paths": ["."] });
    vec![
        Reply::calls([
            ("c1", "fs_read", json!({ "path": "src/a.txt" })),
            ("c2", "command_run", run("cat src/a.txt")),
            ("c3", "fs_read", json!({ "path": "docs/b.txt" })),
            ("c4", "command_run", run("cat docs/b.txt")),
            ("c5", "command_run", run("cat src/a.txt && cat docs/b.txt")),
            ("c6", "command_run", run("sh -c 'cat docs/b.txt'")),
            ("c7", "fs_write", json!({ "path": "src/c.txt", "content": "written\n" })),
            ("c8", "agent_run", errand),
        ]),
        // The sub-agent.
        Reply::calls([
            ("s1", "fs_read", json!({ "path": "src/a.txt" })),
            ("s2", "fs_read", json!({ "path": "docs/b.txt" })),
        ]),
        Reply::text("looked, says the sub-agent"),
        Reply::text("done"),
    ]
}

#[test]
fn one_does_what_it_may_and_nothing_else() {
    let stage = Stage::new(&[("src/a.txt", "in the source\n"), ("docs/b.txt", "in the docs\n")]);
    let model = home(&stage, tries().into_iter().chain(tries()).collect());
    let _daemon = Daemon::start(&stage);
    add(&stage, "narrow", &["read:src", "exec:cat src/a.txt"]);
    add(&stage, "wide", &[]);
    let (session, results) = run(&stage, &model, "narrow");
    let within = |results: &[String]| results.iter().map(|it| !it.contains(BEYOND)).collect::<Vec<_>>();
    let [c1, c2, rest @ ..] = results.as_slice() else { panic!("{results:?}") };
    assert!(c1.contains("in the source") && c2.contains("in the source"), "{results:#?}");
    assert_eq!(within(rest), [false, false, false, false, false, true], "{results:#?}");
    assert!(!rest.iter().any(|it| it.contains("in the docs")), "{rest:#?}");
    // Whoever it gives work to has no more than it has.
    let of_sub = told(&model.requests()[2].json());
    assert!(of_sub[0].contains("in the source") && of_sub[1].contains(BEYOND), "{of_sub:#?}");

    let entries = entries(&stage, &session);
    let named = |name: &str| entries.iter().filter(|it| it["type"] == name).cloned().collect::<Vec<_>>();
    let [confined] = named("confined").try_into().unwrap();
    assert_eq!(
        (&confined["holder"], confined["may"].as_array().unwrap().len()),
        (&"the schedule `narrow`".into(), 2)
    );
    let [minted] = named("token_minted").try_into().unwrap();
    let of_agent = |it: &&Value| it["role"] == "agent";
    let (intents, denials) = (named("intent"), named("denied"));
    let (intents, denials): (Vec<_>, Vec<_>) =
        (intents.iter().filter(of_agent).collect(), denials.iter().filter(of_agent).collect());
    assert!(intents.len() >= 5 && denials.len() == 6, "{intents:#?} {denials:#?}");
    assert!(intents.iter().chain(&denials).all(|it| it["under"]["token"] == minted["token"]), "{intents:#?}");
    let log = stage.ran(&["audit", "log", "--session", &session]).stdout;
    assert!(log.contains("the schedule `narrow`: read:src; exec:cat src/a.txt"), "{log}");
    assert!(log.contains(&format!("(by the token {}", minted["token"].as_str().unwrap())), "{log}");

    // The control: under the same rules, without a token, the same is done.
    let (session, results) = run(&stage, &model, "wide");
    assert_eq!(within(&results), [true; 8], "{results:#?}");
    assert!(results[2..6].iter().all(|it| it.contains("in the docs")), "{results:#?}");
    let of_sub = told(&model.requests()[6].json());
    assert!(of_sub[1].contains("in the docs"), "{of_sub:#?}");
    let is_bound = |it: &Value| it["type"] == "confined";
    assert!(!super::token::entries(&stage, &session).iter().any(is_bound));
}

/// Attack: the process of a session is killed, what the home says of its schedule is taken away, and it is
/// taken up again by the daemon, by its owner and as a fork. What it may stands in the journal, behind its
/// beginning.
#[test]
fn whoever_takes_one_up_again_widens_nothing() {
    let stage = Stage::new(&[("src/a.txt", "in the source\n"), ("docs/b.txt", "in the docs\n")]);
    let model = home(&stage, Vec::new());
    let daemon = Daemon::start(&stage);
    add(&stage, "narrow", &["read:src"]);
    add(&stage, "wide", &[]);
    let read = |path: &str| Reply::calls([("c1", "fs_read", json!({ "path": path }))]);
    // Killed in the middle of its turn, which the daemon has it go on with.
    let killed = |name: &str| {
        let gate = Gate::default();
        let asked = model.requests().len();
        for reply in [
            read("src/a.txt"),
            Reply::Held(gate.clone(), Message::text("never said")),
            read("docs/b.txt"),
            Reply::text("done"),
        ] {
            model.push(reply);
        }
        let ran = stage.ran(&["--json", "schedule", "run", name]);
        let session = ran.lines()[0]["session"].as_str().unwrap().to_owned();
        model.wait_for(asked + 2);
        assert_eq!(stage.ran(&["schedule", "rm", name]).code, Some(0));
        let status = daemon.status();
        let process = status["sessions"].as_array().unwrap().iter().find(|it| it["session"] == *session);
        end(pid(process.unwrap()), "-KILL");
        wait("the turn's end", || ended(&stage, &session));
        gate.open();
        let told = told(&model.requests().last().unwrap().json());
        (session, told)
    };
    let (session, results) = killed("narrow");
    assert!(results[0].contains("in the source") && results[1].contains(BEYOND), "{results:#?}");
    let (wide, results) = killed("wide");
    assert!(results[1].contains("in the docs"), "the control: {results:#?}");
    drop(daemon);
    let resumed = |session: &str| {
        model.push(read("docs/b.txt"));
        model.push(Reply::text("done"));
        let ran = stage.ran(&["sessions", "resume", session, "look into the docs"]);
        (ran.code, told(&model.requests().last().unwrap().json()).pop().unwrap())
    };
    let (code, result) = resumed(&session);
    assert!(code == Some(0) && result.contains(BEYOND), "{code:?} {result}");
    assert!(resumed(&wide).1.contains("in the docs"), "the control");
    // One token in all of these processes, so what it is good for is counted once.
    let tokens = |session: &str| {
        let minted = entries(&stage, session).into_iter().filter(|it| it["type"] == "token_minted");
        minted.map(|it| it["token"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(tokens(&session).len(), 1);
    let forked = stage.ran(&["--json", "sessions", "fork", &session]).lines();
    let fork = forked[0]["session"].as_str().unwrap();
    assert!(resumed(fork).1.contains(BEYOND));
    assert!(tokens(fork).len() == 1 && tokens(fork) != tokens(&session), "one of its own");

    // A token is over when the rules change. Then there is another one of the same scope, where they allow
    // all of that.
    let rules = |text: &str| {
        fs::create_dir_all(stage.home().join("policy")).unwrap();
        let own = stage.home().join("policy/own.toml");
        fs::write(own, format!("{}\n{text}", bailey_policy::DEFAULT_RULES)).unwrap();
    };
    rules(
        "[[rule]]\nname = \"x\"\nanswer = \"deny\"\nreason = \"no\"\nmatch = { action = \"exec\", command = \"frobnicate\" }\n",
    );
    assert!(resumed(&session).1.contains(BEYOND));
    assert_eq!(tokens(&session).len(), 2);
    rules(
        "[[rule]]\nname = \"x\"\nanswer = \"review\"\nreason = \"secret plans\"\nmatch = { action = \"read\", path = \"src/plans/**\" }\n",
    );
    let asked = model.requests().len();
    let ran = stage.ran(&["sessions", "resume", &session, "look around"]);
    assert!(ran.code == Some(3) || ran.code == Some(1), "{ran:?}");
    assert!(ran.stderr.contains("do not allow all of") && ran.stderr.contains("secret plans"), "{ran:?}");
    assert_eq!((model.requests().len(), tokens(&session).len()), (asked, 2));
    let verified = stage.ran(&["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

/// What one may is the word of whoever wrote down its task, and not of whoever took its name since.
#[test]
fn one_that_took_anothers_name_gives_nothing_to_that_ones_task() {
    let stage = Stage::new(&[("src/a.txt", "a\n")]);
    let _model = home(&stage, Vec::new());
    let file = stage.home().join("schedules.json");
    let id = || -> String {
        let all: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        all["z"]["id"].as_str().unwrap().to_owned()
    };
    fs::DirBuilder::new().mode(0o700).create(stage.home().join("daemon")).unwrap();
    // As the daemon begins a session for one.
    let begin = |id: &str| {
        let schedule = format!("--schedule=z@{id}");
        let mut command = stage.bailey(&["--desk", "chat", &schedule]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        drop(process.stdin.take());
        process.wait().unwrap();
        line
    };
    add(&stage, "z", &["read"]);
    let first = id();
    assert!(begin(&first).contains("ready"), "the control");
    assert_eq!(stage.ran(&["schedule", "rm", "z"]).code, Some(0));
    assert_eq!(begin(&first), "", "there is none");
    add(&stage, "z", &[]);
    assert_eq!(begin(&first), "", "it is another one");
    assert!(begin(&id()).contains("ready"));
}

#[test]
fn what_cannot_be_given_is_said_when_it_is_written_down() {
    let stage = Stage::new(&[("src/a.txt", "a\n")]);
    let _model = home(&stage, Vec::new());
    for (may, why) in [
        ("merge", "`merge` is nothing to allow"),
        ("net:example.com", "`net` is nothing to allow"),
        ("read,exec", "stand in lines of their own"),
        ("read:src/*.rs", "files and whole folders"),
        // As a variable that is not set leaves it.
        ("exec:", "nothing stands behind the colon"),
        ("change: ", "nothing stands behind the colon"),
        ("read:~/.ssh", "`~` is not expanded"),
        ("read:/", "reads outside the workspace"),
        ("http:example.com", "a server that you have not said yes to"),
        ("read:/etc", "reads outside the workspace"),
    ] {
        let words = ["schedule", "add", "x", "--cron", "@daily", "--may", may, "y"];
        let ran = stage.ran(&words);
        assert!(ran.code == Some(2) && ran.stderr.contains(why), "{may}: {ran:?}");
    }
    assert!(listed(&stage).is_empty());
    add(&stage, "narrow", &["read,list:src", "exec:cargo test"]);
    add(&stage, "wide", &[]);
    let listed = listed(&stage);
    assert_eq!(listed[0]["may"], json!(["read,list:src", "exec:cargo test"]), "{listed:#?}");
    assert_eq!(listed[1]["may"], json!([]), "{listed:#?}");
    let shown = stage.ran(&["schedule", "list"]).stdout;
    assert_eq!(shown.matches("may read,list:src; exec:cargo test, and nothing else").count(), 1, "{shown}");
    assert_eq!(shown.matches("may ").count(), 1, "{shown}");
    // What a rule allows without a question can be given, and that alone.
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    let rule = "[[rule]]\nname = \"docs\"\nanswer = \"allow\"\nreason = \"docs\"\nmatch = { action = \"http\", host = \"docs.example\" }\n";
    fs::write(stage.home().join("policy/own.toml"), format!("{}\n{rule}", bailey_policy::DEFAULT_RULES))
        .unwrap();
    add(&stage, "fetches", &["http:docs.example"]);
    let ran = stage.ran(&["schedule", "add", "x", "--cron", "@daily", "--may", "http:other.example", "y"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}
