use super::*;
use crate::{arguments::parse, config::ToolConfig, toolbox::Toolbox};
use bailey_protocol::{Limits, ToolSpec};
use proptest::prelude::*;
use serde_json::json;

fn specs() -> Vec<ToolSpec> {
    let (limits, max_wall_ms) = (Limits::default(), 3_600_000);
    let (workspace, start, shell) = ("/w".into(), "/w".into(), "/bin/sh".into());
    let config = ToolConfig { workspace, start, shell, limits, max_wall_ms };
    Toolbox::built_in(config).specs()
}

fn spec(tool: &str) -> ToolSpec {
    specs().into_iter().find(|spec| spec.name == tool).unwrap()
}

fn read(tool: &str, arguments: &Value) -> Result<Value, String> {
    parse::<Value>(&spec(tool), &arguments.to_string()).map(|parsed| parsed.args)
}

#[test]
fn what_has_one_meaning_is_taken() {
    for (tool, written, meant) in [
        ("fs.read", json!({"path": "a", "limit": 30.0}), json!({"path": "a", "limit": 30})),
        ("fs.read", json!({"path": "a", "limit": "30"}), json!({"path": "a", "limit": 30})),
        ("fs.read", json!({"path": "a", "limit": " 30.0 "}), json!({"path": "a", "limit": 30})),
        ("fs.read", json!({"path": "a", "limit": ""}), json!({"path": "a"})),
        ("fs.read", json!({"path": "a", "limit": "null", "offset": []}), json!({"path": "a"})),
        ("fs.read", json!({"path": 7}), json!({"path": "7"})),
        (
            "search.grep",
            json!({"pattern": "x", "ignore_case": "False"}),
            json!({"pattern": "x", "ignore_case": false}),
        ),
        ("search.grep", json!({"pattern": "x", "path": "", "glob": " "}), json!({"pattern": "x"})),
        ("fs.list", json!({"path": ""}), json!({})),
        ("command.run", json!({"command": "ls", "argv": []}), json!({"command": "ls"})),
        ("command.run", json!({"command": "ls", "argv": "", "cwd": "", "env": []}), json!({"command": "ls"})),
        ("command.run", json!({"command": "", "argv": ["ls"]}), json!({"argv": ["ls"]})),
        (
            "command.run",
            json!({"command": "ls", "background": "true"}),
            json!({"command": "ls", "background": true}),
        ),
        ("command.run", json!({"argv": "[\"head\", \"-n\", \"5\"]"}), json!({"argv": ["head", "-n", "5"]})),
        ("command.run", json!({"argv": ["head", "-n", 5]}), json!({"argv": ["head", "-n", "5"]})),
        ("command.run", json!({"argv": "ls"}), json!({"argv": ["ls"]})),
        ("command.run", json!({"command": ["bash", "-lc", "ls"]}), json!({"argv": ["bash", "-lc", "ls"]})),
        (
            "command.run",
            json!({"command": "ls", "env": "{\"PORT\": 8080}"}),
            json!({"command": "ls", "env": {"PORT": "8080"}}),
        ),
        // Empty lists that say something stay.
        ("command.run", json!({"command": "ls", "writes": []}), json!({"command": "ls", "writes": []})),
        ("command.run", json!({"command": "cat", "stdin": ""}), json!({"command": "cat", "stdin": ""})),
        ("git.run", json!({"args": "status"}), json!({"args": ["status"]})),
    ] {
        assert_eq!(read(tool, &written), Ok(meant), "{tool} {written}");
    }
}

#[test]
fn names_of_other_agents_are_taken() {
    for (tool, written, meant) in [
        ("fs.read", json!({"file_path": "a"}), json!({"path": "a"})),
        ("fs.read", json!({"filePath": "a", "Limit": 3}), json!({"path": "a", "limit": 3})),
        ("fs.write", json!({"filename": "a", "file_text": "x"}), json!({"path": "a", "content": "x"})),
        (
            "fs.edit",
            json!({"filepath": "a", "old_string": "x", "new_string": "", "replaceAll": "true"}),
            json!({"path": "a", "old": "x", "new": "", "replace_all": true}),
        ),
        (
            "fs.edit",
            json!({"path": "a", "old_str": "x", "new_str": "y"}),
            json!({"path": "a", "old": "x", "new": "y"}),
        ),
        ("fs.patch", json!({"input": "x"}), json!({"patch": "x"})),
        ("fs.list", json!({"dir_path": "src"}), json!({"path": "src"})),
        ("search.grep", json!({"regex": "x", "include": "*.rs"}), json!({"pattern": "x", "glob": "*.rs"})),
        ("search.glob", json!({"glob_pattern": "*.rs"}), json!({"pattern": "*.rs"})),
        ("command.run", json!({"cmd": "ls -l"}), json!({"command": "ls -l"})),
        ("command.run", json!({"cmd": ["ls"], "workdir": "src"}), json!({"argv": ["ls"], "cwd": "src"})),
        ("command.run", json!({"cmd": "ls", "argv": []}), json!({"command": "ls"})),
        (
            "command.run",
            json!({"cmd": "ls", "timeout_seconds": "9"}),
            json!({"command": "ls", "timeout_s": 9}),
        ),
        // Given twice, it says the same.
        ("fs.read", json!({"path": "a", "file_path": "a"}), json!({"path": "a"})),
        ("fs.list", json!({"path": "", "directory": "src"}), json!({"path": "src"})),
    ] {
        assert_eq!(read(tool, &written), Ok(meant), "{tool} {written}");
    }
    let whole = json!(json!({"file_path": "a"}).to_string());
    assert_eq!(read("fs.read", &whole), Ok(json!({"path": "a"})), "encoded twice");
}

#[test]
fn what_has_two_meanings_is_refused() {
    for (tool, written, why) in [
        ("fs.read", json!({"path": "a", "limit": 1.5}), "`limit` must be a whole number"),
        ("fs.read", json!({"path": "a", "limit": "-1"}), "`limit` must be a whole number"),
        ("fs.read", json!({"path": "a", "limit": "ten"}), "`limit` must be a whole number"),
        ("fs.read", json!({"path": "a", "limit": 1e300}), "`limit` must be a whole number"),
        ("fs.read", json!({"path": ["a", "b"]}), "`path` must be a string"),
        ("fs.read", json!({"path": true}), "`path` must be a string"),
        (
            "fs.read",
            json!({"path": "a", "file_path": "b"}),
            "`file_path` is taken for `path`, and both are given",
        ),
        ("fs.read", json!({"file_path": "a", "filename": "b"}), "`filename` is taken for `path`, and both"),
        ("fs.read", json!({"file_path": 1.5}), "`path` must be a string, got the number 1.5"),
        ("fs.write", json!({"path": "a", "content": {"a": 1}}), "`content` must be a string, got an object"),
        (
            "fs.edit",
            json!({"path": "a", "old": "x", "new": "y", "replace_all": 1}),
            "`replace_all` must be true or false",
        ),
        (
            "fs.edit",
            json!({"path": "a", "old": "x", "new": "y", "replace_all": "yes"}),
            "`replace_all` must be true",
        ),
        ("command.run", json!({"argv": "ls -l"}), "`argv` must be an array of strings"),
        ("command.run", json!({"argv": "a,b"}), "`argv` must be an array of strings"),
        ("command.run", json!({"argv": "$(id)"}), "`argv` must be an array of strings"),
        ("command.run", json!({"argv": ["sleep", 1.10]}), "`argv[1]` must be a string, got the number 1.1"),
        ("command.run", json!({"command": "ls", "env": {"A": null}}), "`env.A` must be a string, got null"),
        (
            "command.run",
            json!({"command": "a", "cmd": "b"}),
            "`cmd` is taken for `command`, and both are given",
        ),
        ("git.run", json!({"args": "log --oneline"}), "`args` must be an array of strings"),
    ] {
        let error = read(tool, &written).unwrap_err();
        assert!(error.contains(why), "{tool} {written}: {error}");
    }
    assert_eq!(read("fs.write", &json!({"path": "", "content": ""})), Ok(json!({"path": "", "content": ""})));
}

#[test]
fn the_table_names_tools_and_parameters_that_are_there() {
    for spec in specs() {
        let properties = spec.schema["properties"].as_object().unwrap();
        for (parameter, others) in aliases::parameters(&spec.name) {
            assert!(properties.contains_key(*parameter), "{}: {parameter}", spec.name);
            assert!(!others.contains(parameter), "{}: {parameter}", spec.name);
        }
    }
    assert_eq!(
        aliases::tools().collect::<Vec<_>>(),
        specs().iter().map(|spec| &*spec.name).collect::<Vec<_>>()
    );
}

/// Any value that fits a schema.
fn fitting(schema: &Value) -> BoxedStrategy<Value> {
    let least = usize::from(schema.get("minLength").or(schema.get("minItems")).is_some());
    match schema["type"].as_str() {
        Some("integer") => any::<u64>().prop_map(Value::from).boxed(),
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("array") => {
            proptest::collection::vec(fitting(&schema["items"]), least..4).prop_map(Value::from).boxed()
        }
        Some("object") => {
            proptest::collection::btree_map("[A-Z]{1,3}", fitting(&schema["additionalProperties"]), 0..3)
                .prop_map(|items| Value::Object(items.into_iter().collect()))
                .boxed()
        }
        // Much of this could be taken for something else.
        _ => prop_oneof![
            r#"[\[{"0-9a-z.,: }\]-]{1,12}"#,
            Just("null".to_owned()),
            Just("true".to_owned()),
            Just("30.0".to_owned()),
            Just(r#"["a"]"#.to_owned()),
            "\\PC{1,20}",
        ]
        .prop_filter("blank", move |text| least == 0 || !text.trim().is_empty())
        .prop_map(Value::from)
        .boxed(),
    }
}

fn arguments(spec: &ToolSpec) -> BoxedStrategy<Map<String, Value>> {
    let required = spec.schema["required"].clone();
    let properties = spec.schema["properties"].as_object().unwrap().clone();
    let each: Vec<_> = properties
        .into_iter()
        .map(|(name, schema)| {
            let must = required.as_array().is_some_and(|all| all.iter().any(|one| *one == name));
            let fitting = fitting(&schema);
            let value =
                if must { fitting.prop_map(Some).boxed() } else { proptest::option::of(fitting).boxed() };
            (Just(name), value)
        })
        .collect();
    let given = |(name, value): (String, Option<Value>)| Some((name, value?));
    each.prop_map(move |all| all.into_iter().filter_map(given).collect()).boxed()
}

proptest! {
    #[test]
    fn arguments_that_fit_stay_as_they_are(
        (spec, given) in proptest::sample::select(specs()).prop_flat_map(|spec| (Just(spec.clone()), arguments(&spec))),
    ) {
        let mut known: Vec<String> = spec.schema["properties"].as_object().unwrap().keys().cloned().collect();
        known.sort();
        prop_assert_eq!(repair(&spec.name, &spec.schema, &known, given.clone()), Ok(given));
    }
}
