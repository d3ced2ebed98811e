use super::*;
use crate::{
    agent_adapt::AgentAdapt, agent_run::AgentRun, command_run::CommandRun, config::ToolConfig,
    fs_edit::FsEdit, fs_exists::FsExists, fs_list::FsList, fs_patch::FsPatch, fs_read::FsRead,
    fs_write::FsWrite, git_run::GitRun, message_send::MessageSend, process_log::ProcessLog,
    process_stop::ProcessStop, search_glob::SearchGlob, search_grep::SearchGrep, test_run::TestRun,
    toolbox::Toolbox, typed::Typed, web_fetch::WebFetch, web_request::WebRequest,
};
use bailey_protocol::Limits;
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;

fn config() -> ToolConfig {
    ToolConfig {
        workspace: "/w".into(),
        start: "/w".into(),
        shell: "/bin/sh".into(),
        limits: Limits::default(),
        max_wall_ms: 3_600_000,
    }
}

fn sample(schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("string") => json!("text"),
        Some("integer") => json!(7),
        Some("boolean") => json!(true),
        Some("array") => json!([sample(&schema["items"])]),
        Some("object") => json!({"NAME": sample(&schema["additionalProperties"])}),
        other => panic!("a schema with type {other:?}"),
    }
}

/// The schema and the struct name the same arguments, of the same types, with the same ones required.
fn agree<T: Typed>(tool: T) -> String
where
    T::Args: Serialize,
{
    let spec = tool.spec();
    let properties = spec.schema["properties"].as_object().unwrap();
    let required: Vec<&str> =
        spec.schema["required"].as_array().into_iter().flatten().map(|r| r.as_str().unwrap()).collect();
    let full: Map<String, Value> =
        properties.iter().map(|(name, schema)| (name.clone(), sample(schema))).collect();
    let read =
        |given: &Map<String, Value>| parse::<T::Args>(&spec, &Value::Object(given.clone()).to_string());

    let back = serde_json::to_value(&read(&full).ok().unwrap().args).unwrap();
    assert_eq!(
        back,
        Value::Object(full.clone()),
        "{}: the struct keeps every argument of the schema",
        spec.name
    );
    for (name, schema) in properties {
        let mut less = full.clone();
        less.remove(name);
        let error = read(&less).err();
        assert_eq!(error.is_some(), required.contains(&name.as_str()), "{}: {name} missing", spec.name);
        assert!(serde_json::from_value::<T::Args>(Value::Object(less)).is_err() == error.is_some());
        let wrong = if schema["type"] == "string" { json!(1.5) } else { json!("no such value") };
        let error = read(&full.clone().into_iter().chain([(name.clone(), wrong)]).collect()).err().unwrap();
        assert!(error.contains(&format!("`{name}` must be ")), "{}: {error}", spec.name);
    }
    spec.name
}

#[test]
fn every_schema_matches_its_struct() {
    let config = Arc::new(config());
    let names = [
        agree(FsRead),
        agree(FsWrite),
        agree(FsEdit),
        agree(FsPatch),
        agree(FsList(config.clone())),
        agree(FsExists),
        agree(SearchGrep(config.clone())),
        agree(SearchGlob(config.clone())),
        agree(CommandRun(config.clone())),
        agree(GitRun(config.clone())),
        agree(TestRun(config)),
        agree(WebFetch),
        agree(WebRequest),
        agree(ProcessLog),
        agree(ProcessStop),
        agree(MessageSend),
        agree(AgentRun),
        agree(AgentAdapt),
    ];
    let specs = Toolbox::built_in(self::config()).specs();
    assert_eq!(specs.into_iter().map(|spec| spec.name).collect::<Vec<_>>(), names);
}

fn error(text: &str) -> String {
    parse::<Value>(&CommandRun(Arc::new(config())).spec(), text).err().unwrap()
}

#[test]
fn wrong_arguments_are_named() {
    insta::assert_snapshot!(error("{"), @"the arguments are not valid JSON: EOF while parsing an object at line 1 column 1");
    insta::assert_snapshot!(error("[]"), @"the arguments must be a JSON object, got an array");
    insta::assert_snapshot!(error(r#"{"argv": ["a", 1.5], "env": {"A": null}, "timeout_s": -1, "x": 1}"#), @"bad arguments for command.run: `argv[1]` must be a string, got the number 1.5; `env.A` must be a string, got null; `timeout_s` must be a whole number, 0 or more, got the number -1; unknown `x`, known are `argv`, `background`, `command`, `cwd`, `env`, `network`, `reads`, `stdin`, `timeout_s`, `writes`");
    assert!(error(r#"{"timeout_s": 1.5}"#).contains("got the number 1.5"));
    assert!(error(r#"{"timeout_s": 99999999999999999999}"#).contains("must be a whole number"));
    assert!(error(r#"{"timeout_s": 1e999}"#).contains("not valid JSON"));
    assert!(error(r#"{"command": 1} trailing"#).contains("not valid JSON"));
}

#[test]
fn hostile_arguments_are_refused() {
    assert!(error(&"[".repeat(1_000_000)).contains("recursion limit exceeded"));
    let long = format!("{{\"command\": \"{}\"}}", "x".repeat(ARGUMENTS_BYTES_MAX));
    assert!(error(&long).contains("at most 1048576 fit"));
    // The control: a file may be longer, up to its own limit.
    let spec = FsWrite.spec();
    let file = |bytes: usize| format!("{{\"path\": \"a\", \"content\": \"{}\"}}", "x".repeat(bytes));
    assert!(parse::<Value>(&spec, &file(ARGUMENTS_BYTES_MAX)).is_ok());
    let long = parse::<Value>(&spec, &file(CONTENT_BYTES_MAX)).unwrap_err();
    assert!(long.contains("at most 33554432 fit"), "{long}");
    assert!(error(&format!("{{\"{}\": 1, \"argv\": 1}}", "n".repeat(10_000))).len() < 400);
}

/// The last value counted, even where the person was shown the first.
#[test]
fn a_name_that_stands_twice_is_refused_at_any_depth() {
    for (text, name) in [
        (r#"{"command": "ls", "command": "rm -r ."}"#, "command"),
        (r#"{"command": "ls", "comm\u0061nd": "rm -r ."}"#, "command"),
        (r#"{"command": "ls", "env": {"A": "1", "A": "2"}}"#, "A"),
        (r#"{"command": "ls", "x": [{"y": {"z": 1, "z": 1}}]}"#, "z"),
    ] {
        let error = error(text);
        assert!(error.contains(&format!("`{name}` stands there twice")), "{text}: {error}");
    }
    let spec = CommandRun(Arc::new(config())).spec();
    let once = r#"{"command": "ls", "env": {"A": "1", "command": "2"}}"#;
    assert!(parse::<Value>(&spec, once).is_ok(), "the control");
}

#[test]
fn nothing_and_null_count_as_absent() {
    let spec = FsList(Arc::new(config())).spec();
    for text in ["", " ", "{}", r#"{"path": null}"#] {
        assert!(parse::<Value>(&spec, text).is_ok(), "{text}");
    }
    assert_eq!(
        error(r#"{"argv": null, "stdin": 1.5}"#),
        "bad arguments for command.run: `stdin` must be a string, got the number 1.5"
    );
}

#[test]
fn a_path_that_no_file_can_have_is_refused() {
    assert!(path("path", "").is_err());
    assert!(path("path", "a\0b").is_err());
    assert!(path("path", &"a/".repeat(2049)).is_err());
    for name in ["a", "/", "../../etc", "a b", "~", &"a/".repeat(2048)] {
        assert_eq!(path("path", name), Ok(name.into()));
    }
}
