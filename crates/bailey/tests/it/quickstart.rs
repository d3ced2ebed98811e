//! docs/quickstart.md, typed: every command from its third step on runs on a terminal as the page has it, and
//! prints what the page says. A scripted model stands in for the provider.

use crate::{stage::Stage, terminal::Terminal};
use bailey_testkit::{Call, Message, ModelServer, Reply, Request};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// What is typed at once, and what the page says comes of it.
#[derive(Debug, Default)]
struct Step {
    typed: String,
    printed: Vec<String>,
}

#[test]
fn the_quickstart_is_true() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("SKIPPED: python3 is not installed");
        return;
    }
    let steps = steps();
    assert!(steps.len() >= 7, "{steps:#?}");
    let newcomer = Newcomer::new();
    let mut session = String::new();
    for step in steps {
        let Some(shown) = newcomer.types(&step, &session) else { return };
        assert_in_order(&step, &shown);
        if let Some((_, name)) = shown.split_once("bailey sessions undo ") {
            session = name.chars().take(8).collect();
        }
        if step.typed.starts_with("bailey init") {
            newcomer.has_a_model_here();
        }
    }
    assert_eq!(newcomer.total(), "    return sum(price for _, price in items)");
}

#[test]
fn a_line_that_is_not_printed_is_noticed() {
    let step = |printed: &str| Step { typed: String::new(), printed: vec![printed.into()] };
    assert_eq!(missing(&step("applied: ….py"), "x\napplied: a.py\n"), None);
    assert_eq!(missing(&step("applied: ….rs"), "x\napplied: a.py\n"), Some("applied: ….rs"));
}

/// Somebody with a home of their own, who reads the page.
struct Newcomer {
    stage: Stage,
    model: ModelServer,
}

impl Newcomer {
    fn new() -> Self {
        let newcomer = Self { stage: Stage::new(&[]), model: ModelServer::by(repair) };
        fs::create_dir(newcomer.home()).unwrap();
        newcomer.stands_in(&newcomer.home());
        newcomer
    }

    fn home(&self) -> PathBuf {
        self.stage.folder().join("ann")
    }

    fn place(&self) -> PathBuf {
        self.stage.folder().join("place")
    }

    fn stands_in(&self, directory: &Path) {
        fs::write(self.place(), directory.display().to_string()).unwrap();
    }

    /// The one thing that is not as on the page: the provider is on this machine.
    fn has_a_model_here(&self) {
        let path = self.home().join(".bailey/config.toml");
        let provider = format!(
            "\n[providers.anthropic]\nwire = \"anthropic\"\nbase_url = \"{}\"\nkey_env = \"ANTHROPIC_API_KEY\"\n",
            self.model.base_url()
        );
        fs::write(&path, fs::read_to_string(&path).unwrap() + &provider).unwrap();
    }

    /// Types a step in one shell after the other, each where the last one stood; what the terminal showed, or
    /// none where there is no terminal to be had.
    fn types(&self, step: &Step, session: &str) -> Option<String> {
        let typed = step.typed.replace("SESSION", session);
        let place = self.place().display().to_string();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("cd \"$(cat {place})\"\n{typed}\ncode=$?; pwd > {place}; exit $code")]);
        let bin = Path::new(env!("CARGO_BIN_EXE_bailey")).parent().unwrap();
        shell.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
        shell.env("HOME", self.home()).env("NO_COLOR", "1").env("GIT_PAGER", "cat");
        shell.envs([
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "color.ui"),
            ("GIT_CONFIG_VALUE_0", "never"),
        ]);
        for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "BAILEY_HOME", "XDG_DATA_HOME"]
        {
            shell.env_remove(name);
        }
        let mut terminal = Terminal::run(&self.stage, &shell)?;
        for line in &step.printed {
            if let Some((question, answer)) = asked(line) {
                terminal.wait_for(question);
                terminal.keys(&(answer.replace('…', "0123456789abcdef") + "\r"));
            }
        }
        let (code, shown) = terminal.end();
        assert_eq!(code, 0, "{typed}\n{shown}");
        // What is pasted is marked while a question is open, which nobody sees.
        Some(shown.replace('\r', "").replace("\u{1b}[?2004h", "").replace("\u{1b}[?2004l", ""))
    }

    /// The line that is to be repaired.
    fn total(&self) -> String {
        let text = fs::read_to_string(self.home().join("prices/prices.py")).unwrap();
        text.lines().last().unwrap().to_owned()
    }
}

/// A model that finds the bug of the page's repository.
fn repair(request: &Request) -> Reply {
    let tests = || json!({ "command": "python3 -m unittest" });
    let edit = json!({ "path": "prices.py", "old": "items[:-1]", "new": "items" });
    match request.body.matches("\"tool_result\"").count() {
        0 => said("I'll run the tests.", "command_run", tests()),
        1 => said("The last item is left out.", "fs_edit", edit),
        2 => said("Once more.", "command_run", tests()),
        _ => Reply::text("`total` left the last item out; now the tests pass."),
    }
}

fn said(text: &str, name: &str, arguments: Value) -> Reply {
    let call = Call { id: format!("of-{}", text.len()), name: name.into(), arguments };
    Reply::Message(Message { text: text.into(), calls: vec![call], ..Message::default() })
}

/// A question of the page, and what is answered there.
fn asked(line: &str) -> Option<(&str, &str)> {
    let asks = ["[y/N] ", "[y/N/pick] ", "(not shown): "];
    let end = asks.iter().find_map(|ask| line.find(ask).map(|at| at + ask.len()))?;
    Some(line.split_at(end))
}

/// The page's steps from the third on: each block of commands with the block of output that follows it.
fn steps() -> Vec<Step> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/quickstart.md");
    let page = fs::read_to_string(page).unwrap();
    let page = page.split_once("\n## 3.").unwrap().1;
    let mut steps: Vec<Step> = Vec::new();
    for block in page.split("\n```").skip(1).step_by(2) {
        match block.split_once('\n').unwrap() {
            ("sh", typed) => steps.push(Step { typed: typed.into(), ..Step::default() }),
            ("text", printed) => {
                let step = steps.last_mut().unwrap();
                step.printed.extend(printed.lines().map(Into::into));
            }
            other => panic!("a block of another kind: {other:?}"),
        }
    }
    steps
}

fn assert_in_order(step: &Step, shown: &str) {
    assert_eq!(missing(step, shown), None, "typed: {}\nshown: {shown}", step.typed);
}

/// The first line of the page that did not come, in its order; `…` stands for anything.
fn missing<'a>(step: &'a Step, shown: &str) -> Option<&'a str> {
    let mut lines = shown.lines();
    let mut printed = step.printed.iter().map(String::as_str).filter(|line| *line != "…");
    printed.find(|line| !lines.any(|shown| is_like(line.trim_end(), shown.trim_end())))
}

fn is_like(pattern: &str, line: &str) -> bool {
    // What is typed at a question without an echo is not shown.
    let pattern = pattern.replace("(not shown): sk-ant-…", "(not shown):");
    let parts: Vec<&str> = pattern.split('…').collect();
    let [first, middle @ .., last] = parts.as_slice() else { return line == pattern };
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}
