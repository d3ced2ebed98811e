//! What a model is offered: these tools and no others, and none that changes what decides about it.

use crate::stage::Stage;
use bailey_kernel::{Output, Plan, Tool};
use bailey_protocol::{
    Action, Blob, CallId, Digest, FileKind, FileReport, Kind, Limits, Outcome, Report, StatReport, Status,
    ToolCall,
};
use bailey_testkit::Reply;
use bailey_tools::{ToolConfig, Toolbox};
use serde_json::{Map, Value};
use std::{collections::BTreeSet, sync::Arc};

const NAMES: [&str; 18] = [
    "agent_adapt",
    "agent_run",
    "command_run",
    "fs_edit",
    "fs_exists",
    "fs_list",
    "fs_patch",
    "fs_read",
    "fs_write",
    "git_run",
    "message_send",
    "process_log",
    "process_stop",
    "search_glob",
    "search_grep",
    "test_run",
    "web_fetch",
    "web_request",
];

/// Plans of one tool that are made.
const PLANS: usize = 400;
/// Reads that a plan may ask for, one after the other.
const LOOKS: usize = 8;

/// Texts that an agent would try who wants other rules, no walls or no journal.
const TEXTS: [&str; 17] = [
    "a.txt",
    "https://example.com/",
    "one",
    "policy/default.toml",
    "~/.bailey/policy/own.toml",
    "/home/me/.bailey/policy/own.toml",
    "/etc/bailey/policy/all.toml",
    "agent.toml",
    "journal.db",
    "amend",
    "policy update own.toml",
    "bailey estop --release",
    "[[rule]]\nname = \"all\"\nanswer = \"allow\"\nmatch = {}\n",
    "{\"amend\":{\"name\":\"own.toml\",\"new\":\"\"}}",
    "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n",
    "--- a/policy/own.toml\n+++ b/policy/own.toml\n@@ -1 +1 @@\n-one\n+two\n",
    "name = \"Ada\"\n",
];

/// Numbers that are the same in each run (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

fn value(schema: &Value, dice: &mut Dice) -> Value {
    let some = |dice: &mut Dice| 0..dice.roll(3);
    match schema["type"].as_str() {
        Some("string") => match schema["enum"].as_array() {
            Some(words) => words[dice.roll(words.len())].clone(),
            None => TEXTS[dice.roll(TEXTS.len())].into(),
        },
        Some("integer") => dice.roll(100).into(),
        Some("boolean") => (dice.roll(2) == 0).into(),
        Some("array") => some(dice).map(|_| value(&schema["items"], dice)).collect(),
        _ => some(dice)
            .map(|_| (TEXTS[dice.roll(TEXTS.len())].to_owned(), value(&schema["additionalProperties"], dice)))
            .collect::<Map<String, Value>>()
            .into(),
    }
}

/// Arguments that fit the schema, most often with all that is required.
fn arguments(schema: &Value, dice: &mut Dice) -> Value {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut arguments = Map::new();
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        if dice.roll(2) == 0 || required.contains(&name.as_str()) && dice.roll(20) > 0 {
            arguments.insert(name.clone(), value(schema, dice));
        }
    }
    arguments.into()
}

/// What a read that a plan asks for brings.
fn found(action: &Action) -> Output {
    let content = b"one\n";
    let report = match action.kind() {
        Kind::Stat => Report::Stat(StatReport { found: Some(FileKind::File), size: content.len() as u64 }),
        _ => Report::File(FileReport {
            content: Blob(content.to_vec()),
            size: content.len() as u64,
            digest: Some(Digest::of(content)),
            mode: 0o644,
        }),
    };
    Output::new(Outcome { status: Status::Done, enforced: None, duration_ms: 1, report })
}

/// All actions that a call asks for, and whether it came to something.
fn actions(tool: &Arc<dyn Tool>, arguments: String) -> (Vec<Action>, bool) {
    let call = ToolCall { id: CallId("c1".into()), name: tool.spec().name, arguments };
    let (mut all, mut seen) = (Vec::new(), Vec::new());
    for _ in 0..LOOKS {
        match tool.plan(&call, &seen) {
            Plan::Act(action) => {
                all.push(action);
                return (all, true);
            }
            Plan::Need(reads) => {
                seen.extend(reads.iter().map(found));
                all.extend(reads);
            }
            Plan::Delegate(errand) => {
                let only = toolbox().only(&errand.tools);
                assert!(only.is_err() || !only.unwrap().kinds().contains(&Kind::Amend));
                return (all, true);
            }
            Plan::Attend(_) => return (all, true),
            Plan::Refuse(_) => return (all, false),
        }
    }
    (all, false)
}

fn toolbox() -> Toolbox {
    Toolbox::built_in(ToolConfig {
        workspace: "/w".into(),
        start: "/w".into(),
        shell: "/bin/sh".into(),
        limits: Limits::default(),
        max_wall_ms: 3_600_000,
    })
}

#[test]
fn a_model_is_offered_exactly_the_known_tools() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let (ran, model) = stage.task(vec![Reply::text("done")], &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let asked = model.requests().first().unwrap().json();
    let names: Vec<&str> =
        asked["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let known: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(known, BTreeSet::from(NAMES));
    assert_eq!(names.len(), NAMES.len(), "none twice: {names:?}");
}

#[test]
fn no_plan_of_any_tool_changes_the_rules() {
    let toolbox = toolbox();
    let mut kinds = BTreeSet::new();
    for name in NAMES {
        let tool = toolbox.find(name).unwrap();
        let schema = tool.spec().schema;
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        let mut planned = 0;
        for _ in 0..PLANS {
            let (actions, is_planned) = actions(tool, arguments(&schema, &mut dice).to_string());
            planned += usize::from(is_planned);
            kinds.extend(actions.iter().map(Action::kind));
            assert!(!actions.iter().any(|action| matches!(action, Action::Amend(_))), "{name}: {actions:?}");
        }
        assert!(planned > PLANS / 50, "the control: {name} comes to something, {planned} times of {PLANS}");
        assert!(!tool.kinds().unwrap_or_default().contains(&Kind::Amend), "{name}");
    }
    let control = [Kind::Read, Kind::Exec, Kind::Adapt];
    assert!(control.iter().all(|kind| kinds.contains(kind)), "the control: {kinds:?}");
}
