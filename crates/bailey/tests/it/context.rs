//! What the model sees: shown part by part, and what a project says about itself.

use crate::stage::Stage;
use bailey_testkit::Reply;
use serde_json::{Value, json};

fn script() -> Vec<Reply> {
    vec![
        Reply::calls([("c1", "fs_read", json!({ "path": "web/app.js" }))]),
        Reply::calls([("c2", "command_run", json!({ "command": "echo out" }))]),
        Reply::text("All done."),
    ]
}

fn part<'a>(parts: &'a [Value], name: &str) -> &'a Value {
    parts.iter().find(|part| part["part"] == name).unwrap_or_else(|| panic!("no {name} in {parts:#?}"))
}

/// A request without the marks of what may be kept for the next one: they move on with the conversation.
fn unmarked(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.remove("cache_control");
            fields.values_mut().for_each(|field| *field = unmarked(field.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = unmarked(item.take())),
        _ => {}
    }
    value
}

#[test]
fn what_is_shown_is_what_is_sent() {
    let stage = Stage::new(&[
        ("AGENTS.md", "Use tabs."),
        ("web/AGENTS.md", "No semicolons."),
        ("web/app.js", "let x"),
    ]);
    let (ran, server) = stage.task([script(), vec![Reply::text("Nothing more.")]].concat(), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let session = ran.lines()[0]["session"].as_str().unwrap().to_owned();
    let parts = stage.ran(&["--json", "sessions", "context", &session]).lines();
    let shown = unmarked(part(&parts, "request")["body"].clone());

    let resume =
        ["--json", "sessions", "resume", &session, "and now?", "--model", "test/model", "--approve", "never"];
    assert_eq!(stage.ran(&resume).code, Some(0));
    let sent = unmarked(server.requests().last().unwrap().json());
    for field in ["model", "system", "tools", "max_tokens"] {
        assert_eq!(shown[field], sent[field], "{field}");
    }
    let (before, after) = (shown["messages"].as_array().unwrap(), sent["messages"].as_array().unwrap());
    // Where nothing was said since, a request ends with words of Bailey's: strict servers refuse a request
    // that ends with the model's words.
    let (last, before) = before.split_last().unwrap();
    assert!(last.to_string().contains("[Bailey: go on]"), "{last}");
    assert_eq!(after.len(), before.len() + 1, "what was said since");
    assert_eq!(before[..], after[..before.len()]);

    // Each part's words are in the request, and say where they came from.
    let body = sent.to_string();
    let names: Vec<&str> = parts.iter().map(|part| part["part"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "instruction",
            "tools",
            "guide",
            "guide",
            "person",
            "model",
            "result",
            "guide",
            "model",
            "result",
            "model",
            "budget",
            "request"
        ]
    );
    for segment in parts.iter().filter(|part| part["entry"].is_string() && part["part"] != "model") {
        let text = segment["text"].as_str().unwrap();
        assert!(body.contains(json!(text).to_string().trim_matches('"')), "{text}");
        assert!(segment["tokens"].as_u64().unwrap() > 0);
    }
    let guides: Vec<&Value> = parts.iter().filter(|part| part["part"] == "guide").collect();
    assert_eq!(guides[0]["labels"]["integrity"], "owner", "what Bailey says of itself");
    assert_eq!(guides[1]["labels"]["integrity"], "workspace");
    assert_eq!(part(&parts, "person")["labels"]["integrity"], "user");
    let result = part(&parts, "result");
    assert_eq!(
        (&result["labels"]["integrity"], &result["labels"]["secrecy"]),
        (&json!("workspace"), &json!("private"))
    );
    let text = stage.ran(&["sessions", "context", &session]).stdout;
    assert!(
        text.contains("guide · entry")
            && text.contains("workspace/private")
            && text.contains("    Use tabs."),
        "{text}"
    );
}

#[test]
fn guides_are_read_inside_the_walls_and_in_the_story() {
    let stage =
        Stage::new(&[("AGENTS.md", "Use tabs."), ("web/AGENTS.md", "No semicolons."), ("web/app.js", "x")]);
    let (ran, server) = stage.task(script(), &[]);
    let requests = server.requests();
    assert!(requests[0].body.contains("Use tabs.") && !requests[0].body.contains("No semicolons."));
    assert!(requests[1].body.contains("No semicolons."));
    let read: Vec<String> = ran
        .lines()
        .iter()
        .filter(|event| event["type"] == "guide")
        .map(|event| event["path"].as_str().unwrap().to_owned())
        .collect();
    let project = stage.project().display().to_string();
    assert_eq!(read, [format!("{project}/AGENTS.md"), format!("{project}/web/AGENTS.md")]);
    // Each is an effect: decided, begun, and ended in a sandbox.
    let trail = stage.trail();
    for path in &read {
        let intent = trail.iter().find(|entry| entry["type"] == "intent" && entry["target"] == path.as_str());
        let effect = &intent.unwrap()["effect"];
        let outcome =
            trail.iter().find(|entry| entry["type"] == "outcome" && entry["effect"] == *effect).unwrap();
        assert!(outcome["enforced"].is_object(), "{outcome}");
    }
    let of_project = |entry: &&Value| entry["type"] == "guide" && entry["own"] != true;
    assert_eq!(trail.iter().filter(of_project).count(), 2);
}

#[test]
fn a_guide_that_changes_during_a_session_is_told() {
    let stage = Stage::new(&[("AGENTS.md", "Use tabs.")]);
    let (ran, server) = stage.task(vec![Reply::text("hello"), Reply::text("yes")], &[]);
    let session = ran.lines()[0]["session"].as_str().unwrap().to_owned();
    stage.write("AGENTS.md", "Use spaces.");
    let resume =
        ["--json", "sessions", "resume", &session, "and now?", "--model", "test/model", "--approve", "never"];
    let ran = stage.ran(&resume);
    let states: Vec<Value> = ran
        .lines()
        .iter()
        .filter(|event| event["type"] == "guide")
        .map(|event| event["state"].clone())
        .collect();
    assert_eq!(states, ["changed"]);
    let body = &server.requests()[1].body;
    assert!(body.contains("Use spaces.") && !body.contains("Use tabs."), "{body}");
}

/// A look for one takes no sandbox, and is no effect, where the project alone says that there is none.
#[test]
fn a_guide_that_is_not_there_is_no_effect_and_one_that_the_agent_made_is_read() {
    let stage = Stage::new(&[("web/app.js", "x")]);
    let make = "mkdir api && echo 'No tabs.' > api/AGENTS.md && echo y > api/y.js";
    let script = vec![
        Reply::calls([("c1", "fs_read", json!({ "path": "web/app.js" }))]),
        Reply::calls([("c2", "command_run", json!({ "command": make }))]),
        Reply::calls([("c3", "fs_read", json!({ "path": "api/y.js" }))]),
        Reply::text("All done."),
    ];
    let (ran, server) = stage.task(script, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(server.requests()[3].body.contains("No tabs."));
    let trail = stage.trail();
    let targets =
        trail.iter().filter(|entry| entry["type"] == "intent").filter_map(|it| it["target"].as_str());
    let looked: Vec<&str> = targets.filter(|target| target.ends_with("AGENTS.md")).collect();
    assert_eq!(looked, [stage.project().join("api/AGENTS.md").display().to_string()]);
}

/// Whoever can write a link, a repository of a stranger's or the agent, could else end each turn.
#[test]
fn a_guide_that_leads_nowhere_ends_no_turn() {
    let stage = Stage::new(&[("a.txt", "a\n"), ("docs/b.txt", "b\n"), ("AGENTS.md/x", "a directory\n")]);
    std::os::unix::fs::symlink("AGENTS.md", stage.project().join("docs/AGENTS.md")).unwrap();
    let long = format!("{}/x", "n".repeat(300));
    let calls = Reply::calls([
        ("c1", "fs_read", json!({ "path": "docs/b.txt" })),
        ("c2", "fs_read", json!({ "path": "a.txt/x" })),
        ("c3", "fs_read", json!({ "path": long })),
        ("c4", "fs_read", json!({ "path": "nul\0/x" })),
        ("c5", "search_grep", json!({ "pattern": "b", "path": "a.txt/y/z" })),
    ]);
    let (ran, server) = stage.task(vec![calls, Reply::text("hello")], &[]);
    assert_eq!((ran.code, server.requests().len()), (Some(0), 2), "{ran:?}");
    assert!(ran.results()[0].contains('b'), "{ran:?}");
    std::fs::remove_dir_all(stage.project().join("AGENTS.md")).unwrap();
    std::os::unix::fs::symlink("AGENTS.md", stage.project().join("AGENTS.md")).unwrap();
    let (ran, server) = stage.task(vec![Reply::text("hello")], &[]);
    assert_eq!((ran.code, server.requests().len()), (Some(0), 1), "{ran:?}");
}

#[test]
fn a_guide_that_leads_to_a_masked_file_or_out_of_the_walls_brings_nothing() {
    let stage = Stage::new(&[(".env", "TOKEN=hunter2-Zq9xv7Lm")]);
    stage.write("outside/secret.txt", "");
    let outside = stage.folder().join("outside.txt");
    std::fs::write(&outside, "from outside hunter2-Zq9xv7Lm").unwrap();
    for target in [".env".to_owned(), outside.display().to_string()] {
        let link = stage.project().join("AGENTS.md");
        std::fs::remove_file(&link).ok();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let (ran, server) = stage.task(vec![Reply::text("hello")], &[]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!server.requests()[0].body.contains("hunter2"), "{target}");
    }
    // Control: a link to what the agent may read is followed.
    stage.write("docs/guide.md", "Use tabs.");
    let link = stage.project().join("AGENTS.md");
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("docs/guide.md", &link).unwrap();
    let (_, server) = stage.task(vec![Reply::text("hello")], &[]);
    assert!(server.requests()[0].body.contains("Use tabs."));
}
