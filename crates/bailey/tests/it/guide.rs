//! docs/policy.md, followed: each of its rule files is put beside the default rules, or stands alone, and
//! each command after it prints what the page says.

use crate::stage::{Ran, Stage};
use std::{fs, path::Path};

/// A fenced part of the page: what its fence says, and its lines.
struct Part {
    fence: String,
    text: String,
}

fn parts() -> Vec<Part> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/policy.md");
    let page = fs::read_to_string(page).unwrap();
    let mut fences = page.split("\n```");
    fences.next();
    let fenced = fences.step_by(2).map(|part| part.split_once('\n').unwrap());
    fenced.map(|(fence, text)| Part { fence: fence.into(), text: format!("{text}\n") }).collect()
}

/// Puts a rule file of the page into force; the tests of its examples say whether it holds.
fn put(stage: &Stage, Part { fence, text }: &Part) {
    let folder = stage.home().join("policy");
    fs::remove_dir_all(&folder).ok();
    fs::create_dir_all(&folder).unwrap();
    let (format, how) = fence.split_once(' ').unwrap_or((fence, ""));
    if how != "alone" {
        fs::write(folder.join("default.toml"), bailey_policy::DEFAULT_RULES).unwrap();
    }
    fs::write(folder.join(format!("own.{format}")), text).unwrap();
    let tried = stage.ran(&["policy", "check"]);
    let expected = if how == "wrong" { 2 } else { 0 };
    assert_eq!(tried.code, Some(expected), "{text}\n{tried:?}");
    assert!(!tried.stdout.contains("warning"), "{tried:?}");
}

/// Runs what stands behind each `$ bailey`, and looks for the lines below it, in their order; `…` stands for
/// anything.
fn follow(stage: &Stage, text: &str) {
    for step in text.split("$ bailey ").skip(1) {
        let (line, printed) = step.split_once('\n').unwrap();
        let home = stage.folder().join("user").display().to_string();
        let words: Vec<String> = line.split_whitespace().map(|word| word.replace('~', &home)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ran = Ran::of(stage.bailey(&words).env("HOME", &home).output().unwrap());
        let shown = format!("{}{}", ran.stdout, ran.stderr);
        let mut rest = shown.as_str();
        for expected in printed.split(['\n', '…']).filter(|part| !part.is_empty()) {
            let found = rest.find(expected);
            let found = found.unwrap_or_else(|| panic!("bailey {line}\nprints no `{expected}`:\n{shown}"));
            rest = &rest[found + expected.len()..];
        }
    }
}

#[test]
fn the_guide_to_rules_is_true() {
    let stage = Stage::new(&[("README.md", "x\n")]);
    fs::create_dir_all(stage.folder().join("user/.ssh")).unwrap();
    let parts = parts();
    let rules = parts.iter().filter(|part| part.fence != "console").count();
    assert!(
        rules >= 7 && parts.len() - rules >= 6,
        "{rules} rule files and {} dialogues",
        parts.len() - rules
    );
    for part in &parts {
        match part.fence.as_str() {
            "console" => follow(&stage, &part.text),
            _ => put(&stage, part),
        }
    }
}
