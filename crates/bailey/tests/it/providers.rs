//! Providers through the real binary: every wire, who stands in, prices, and `bailey models`.

use crate::stage::{Ran, Stage};
use bailey_testkit::{Message, ModelServer, Reply};
use serde_json::{Value, json};
use std::{fs, process::Stdio};

const WIRES: [&str; 5] = ["anthropic", "openai", "openai-responses", "gemini", "ollama"];

const KEY: &str = "sk-4711-of-nobody-else";

fn configure(stage: &Stage, config: &str) {
    fs::create_dir_all(stage.home()).unwrap();
    fs::write(stage.home().join("config.toml"), config).unwrap();
}

fn provider(name: &str, wire: &str, url: &str) -> String {
    format!("[providers.{name}]\nwire = \"{wire}\"\nbase_url = \"{url}\"\n")
}

fn run(stage: &Stage, options: &[&str]) -> Ran {
    stage.ran(&[&["run", "--approve", "never"], options, &["do it"]].concat())
}

#[test]
fn every_wire_does_a_whole_task_and_says_what_it_spent() {
    for wire in WIRES {
        let stage = Stage::new(&[("a.txt", "what a says\n")]);
        let server = ModelServer::start([
            Reply::calls([
                ("c1", "command_run", json!({ "command": "cat a.txt; echo b > b.txt" })),
                ("c2", "fs_read", json!({ "path": "a.txt" })),
            ]),
            Reply::Message(Message::text("It is done.").costs(90, 3)),
        ]);
        configure(&stage, &provider("mine", wire, &server.base_url()));
        let ran = run(&stage, &["--model", "mine/m", "--apply"]);
        assert_eq!(ran.code, Some(0), "{wire}: {ran:?}");
        assert!(ran.stdout.contains("It is done.") && stage.read("b.txt") == "b\n", "{wire}: {ran:?}");
        assert!(ran.stdout.contains("100 tokens read, 8 written, price unknown"), "{wire}: {}", ran.stdout);
        let told = &server.requests()[1].body;
        assert_eq!(told.matches("what a says").count(), 2, "{wire}: {told}");

        let host = server.base_url().replace("http://", "");
        let price =
            format!("[[model]]\nhost = \"{host}\"\nname = \"*\"\ninput = \"1000\"\noutput = \"2000\"\n");
        fs::write(stage.home().join("models.toml"), price).unwrap();
        server.push(Reply::Message(Message::text("Again.").costs(90, 3)));
        let priced = run(&stage, &["--model", "mine/m"]);
        assert!(priced.stdout.contains("90 tokens read, 3 written, 0.0960 USD"), "{wire}: {}", priced.stdout);
        let session =
            stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
        let shown = stage.ran(&["sessions", "show", &session]);
        assert!(shown.stdout.contains("0.0960 USD"), "{wire}: {}", shown.stdout);
    }
}

#[test]
fn who_is_named_stands_in_and_nobody_else() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    // A wait that nobody takes: the call fails at once.
    let down = ModelServer::always(Reply::retry_after(503, "86400"));
    let up = ModelServer::always(Reply::text("I stand in."));
    let providers = provider("down", "openai", &down.base_url()) + &provider("up", "gemini", &up.base_url());
    configure(&stage, &format!("model = \"down/m\"\n{providers}"));
    let alone = run(&stage, &[]);
    assert_eq!((alone.code, up.requests().len()), (Some(4), 0), "nobody is named: {alone:?}");
    configure(&stage, &format!("model = \"down/m\"\nmodels.fallback = [\"up/m\"]\n{providers}"));
    let ran = stage.ran(&["--json", "run", "--approve", "never", "do it"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let notices: Vec<Value> = ran.lines().into_iter().filter(|event| event["type"] == "notice").collect();
    assert!(notices.iter().any(|event| event["text"].as_str().unwrap().contains("asking `up/m` instead")));
    let intents: Vec<Value> = stage
        .trail()
        .into_iter()
        .filter(|entry| entry["type"] == "intent" && entry["kind"] == "model")
        .map(|entry| entry["target"].clone())
        .collect();
    assert_eq!(intents, ["down/m", "down/m", "up/m"], "each attempt is an effect of its own");
    // A rule may keep conversations from it.
    let rule = "[[rule]]\nname = \"models\"\nanswer = \"allow\"\nreason = \"r\"\nmatch = { action = \"model\" }\n\
                [[rule]]\nname = \"not-up\"\nanswer = \"deny\"\nreason = \"never there\"\n\
                match = { action = \"model\", host = \"localhost\" }\n";
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    fs::write(stage.home().join("policy/mine.toml"), rule).unwrap();
    let elsewhere = provider("up", "gemini", &up.base_url().replace("127.0.0.1", "localhost"));
    let providers = provider("down", "openai", &down.base_url()) + &elsewhere;
    configure(&stage, &format!("model = \"down/m\"\nmodels.fallback = [\"up/m\"]\n{providers}"));
    let kept = run(&stage, &[]);
    assert_eq!((kept.code, up.requests().len()), (Some(4), 1), "{kept:?}");
    assert!(kept.stdout.contains("never there"), "{kept:?}");
}

/// A server that lists these models.
fn listing(models: &[&str]) -> ModelServer {
    let models: Vec<Value> = models.iter().map(|model| json!({ "id": model })).collect();
    ModelServer::always(Reply::Error {
        status: 200,
        headers: Vec::new(),
        body: json!({ "data": models }).to_string(),
    })
}

#[test]
fn doctor_asks_the_providers_that_are_in_use_and_says_how_to_mend_them() {
    let stage = Stage::new(&[]);
    let up = listing(&["m"]);
    let strict = ModelServer::always(Reply::error(401, "authentication_error", "bad key"));
    let page = ModelServer::always(Reply::Error { status: 200, headers: vec![], body: "<html>".into() });
    let mut config =
        "model = \"good/m\"\nmodels.fallback = [\"gone/m\", \"page/m\", \"good/nosuch\"]\n".to_owned();
    config += &provider("page", "openai", &page.base_url());
    config += &provider("good", "openai", &up.base_url());
    config += &(provider("strict", "anthropic", &strict.base_url()) + "key_env = \"STRICT_KEY\"\n");
    config += &provider("gone", "ollama", "http://127.0.0.1:1");
    config += &provider("unused", "ollama", "http://127.0.0.1:2");
    configure(&stage, &config);
    let doctor = |options: &[&str]| {
        let mut command = stage.bailey(&[&["--json", "doctor"], options].concat());
        for key in ["GEMINI_API_KEY", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
            command.env_remove(key);
        }
        Ran::of(command.env("STRICT_KEY", KEY).output().unwrap())
    };
    let ran = doctor(&[]);
    assert!(ran.code == Some(1) && !ran.stdout.contains(KEY), "{ran:?}");
    let found: Vec<Value> = ran.lines().into_iter().filter(|line| line["check"] == "provider").collect();
    let of = |name: &str| {
        let says = |line: &&Value| line["says"].as_str().unwrap().starts_with(&format!("`{name}`"));
        found.iter().find(says).cloned().unwrap_or_default()
    };
    assert_eq!((&of("good")["grade"], &of("good")["fix"]), (&json!("ok"), &json!(null)), "{found:#?}");
    assert_eq!(of("gone")["grade"], "fail", "it is to stand in: {found:#?}");
    assert!(of("gone")["fix"].as_str().unwrap().contains("bailey models gone"), "{found:#?}");
    assert!(of("page")["says"].as_str().unwrap().contains("not with a list of models"), "{found:#?}");
    let unknown = ran.lines().into_iter().find(|line| line["check"] == "model").unwrap_or_default();
    assert!(unknown["grade"] == "warn" && unknown["says"].as_str().unwrap().contains("`nosuch`"), "{ran:?}");
    assert_eq!(of("strict")["grade"], "warn", "nothing uses it: {found:#?}");
    assert!(of("strict")["fix"].as_str().unwrap().contains("bailey models strict"), "{found:#?}");
    assert_eq!(found.len(), 4, "nothing uses the fifth, and it has no key: {found:#?}");
    let offline = doctor(&["--offline"]);
    assert!(!offline.lines().iter().any(|line| line["check"] == "provider"), "{offline:?}");
}

#[test]
fn models_says_what_is_there_and_how_to_mend_the_rest() {
    let stage = Stage::new(&[]);
    let up = ModelServer::always(Reply::text("never asked"));
    let strict = ModelServer::always(Reply::error(401, "authentication_error", "bad key"));
    let mut config =
        "model = \"good/m\"\n[models]\nsummary = \"good/other\"\nplanner = \"strict/m\"\n".to_owned();
    config += &provider("good", "openai", &up.base_url());
    config += &(provider("strict", "anthropic", &strict.base_url()) + "key_env = \"STRICT_KEY\"\n");
    config += &provider("gone", "ollama", "http://127.0.0.1:1");
    configure(&stage, &config);
    let asked = |arguments: &[&str]| {
        let mut command = stage.bailey(arguments);
        for key in ["GEMINI_API_KEY", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
            command.env_remove(key);
        }
        Ran::of(command.env("STRICT_KEY", KEY).output().unwrap())
    };
    let ran = asked(&["--json", "models"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "never the value of a key");
    let told = &ran.lines()[0];
    let of = |list: &str, name: &str, value: &str| {
        let list = told[list].as_array().unwrap();
        list.iter().find(|entry| entry[name] == value).cloned().unwrap_or_default()
    };
    let good = of("providers", "provider", "good");
    assert_eq!((&good["reachable"], &good["models"]), (&json!(true), &json!(["m"])), "{told:#}");
    assert!(good["origin"].as_str().unwrap().contains("config.toml:"), "{good}");
    let refused = of("providers", "provider", "strict");
    assert_eq!((&refused["reachable"], &refused["key_present"]), (&json!(true), &json!(true)));
    assert!(refused["problem"].as_str().unwrap().contains("STRICT_KEY"), "{refused}");
    let gone = of("providers", "provider", "gone");
    assert_eq!(gone["reachable"], json!(false));
    assert!(gone["problem"].as_str().unwrap().contains("no server listens"), "{gone}");
    let keyless = of("providers", "provider", "anthropic");
    assert_eq!((&keyless["key_present"], &keyless["reachable"]), (&json!(false), &json!(null)));
    assert_eq!(of("uses", "use", "default")["problem"], "");
    assert!(of("uses", "use", "summary")["problem"].as_str().unwrap().contains("lists no model `other`"));
    assert!(of("uses", "use", "planner")["problem"].as_str().unwrap().contains("STRICT_KEY"));
    // Asking is an effect like any other, and no session of the user's.
    let trail = stage.trail();
    assert!(
        trail.iter().any(|entry| entry["type"] == "intent" && entry["target"] == "good/(list)"),
        "{trail:#?}"
    );
    assert_eq!(stage.ran(&["--json", "sessions", "list", "--all"]).stdout, "");
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));

    let requests = up.requests().len();
    let offline = asked(&["models", "--offline"]);
    assert!(offline.stdout.contains("not asked") && offline.stdout.contains("good/m"), "{offline:?}");
    assert_eq!(up.requests().len(), requests);
}

#[test]
fn first_commands_at_the_same_moment_share_one_journal() {
    let stage = Stage::new(&[]);
    configure(&stage, &provider("gone", "ollama", "http://127.0.0.1:1"));
    let ask = |_| {
        stage.bailey(&["--json", "models"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let asking: Vec<_> = (0..8).map(ask).collect();
    for child in asking {
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert!(ran.stdout.contains("no server listens"), "{ran:?}");
    }
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));
}

#[test]
fn an_answer_that_is_not_streamed_is_shown() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let body =
        json!({ "choices": [{ "message": { "content": "All of it at once." }, "finish_reason": "stop" }] });
    let server = ModelServer::always(Reply::Error { status: 200, headers: vec![], body: body.to_string() });
    configure(&stage, &provider("mine", "openai", &server.base_url()));
    let ran = run(&stage, &["--model", "mine/m"]);
    assert_eq!((ran.code, server.requests().len()), (Some(0), 1), "{ran:?}");
    assert!(ran.stdout.contains("All of it at once."), "{ran:?}");
}
