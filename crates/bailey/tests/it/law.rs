//! Changes of the rules: tried on what the journal recorded before they are made.

mod replay;
mod update;

use crate::stage::{Ran, Stage};
use bailey_policy::DEFAULT_RULES;
use bailey_testkit::Reply;
use serde_json::{Value, json};
use std::{fs, path::PathBuf};
use tempfile::TempDir;

/// A home with the default rules, and a session that read a file, wrote one, asked for one outside, and was
/// denied one.
struct Past {
    stage: Stage,
    outside: TempDir,
}

impl Past {
    fn new() -> Self {
        let outside = tempfile::Builder::new().prefix("bailey-test-").tempdir_in("/var/tmp").unwrap();
        let stage = Stage::new(&[("a.txt", "a\n")]);
        fs::create_dir_all(stage.home().join("policy")).unwrap();
        fs::write(stage.home().join("policy/default.toml"), DEFAULT_RULES).unwrap();
        let past = Self { stage, outside };
        fs::write(past.notes(), "notes\n").unwrap();
        let denied = past.stage.home().join("policy/default.toml");
        let script = vec![
            Reply::calls([("c1", "fs_read", json!({ "path": "a.txt" }))]),
            Reply::calls([("c2", "fs_write", json!({ "path": "b.txt", "content": "b\n" }))]),
            Reply::calls([("c3", "fs_read", json!({ "path": past.notes() }))]),
            Reply::calls([("c4", "fs_read", json!({ "path": denied }))]),
            Reply::text("done"),
        ];
        let (ran, _) = past.stage.task(script, &[]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        past
    }

    fn notes(&self) -> PathBuf {
        self.outside.path().canonicalize().unwrap().join("notes.txt")
    }

    /// Writes a draft.
    fn draft(&self, name: &str, text: &str) -> String {
        let path = self.outside.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn simulate(&self, arguments: &[&str]) -> Ran {
        self.stage.ran(&[&["--json", "policy", "simulate"], arguments].concat())
    }
}

/// What would be decided otherwise: the action, what it is, what it would be, and the mark.
fn changes(ran: &Ran) -> Vec<[String; 4]> {
    let text = |line: &Value, field: &str| line[field].as_str().unwrap_or_default().to_owned();
    let changes = ran.lines().into_iter().filter(|line| line["was"].is_string());
    changes.map(|line| ["target", "was", "would", "mark"].map(|field| text(&line, field))).collect()
}

const NO_READS: &str = "[[rule]]\nname = \"no-a\"\nanswer = \"deny\"\nmatch = { action = \"read\", path = \"{workspace}/a.txt\" }\n";

#[test]
fn a_draft_is_tried_on_what_was_recorded() {
    let past = Past::new();
    let file = past.stage.project().join("a.txt").display().to_string();
    let notes = past.notes().display().to_string();
    let as_it_is = past.simulate(&[&past.draft("default.toml", DEFAULT_RULES)]);
    assert_eq!((as_it_is.code, changes(&as_it_is)), (Some(0), vec![]), "the control: {as_it_is:?}");
    let summary = as_it_is.lines().pop().unwrap();
    assert!(summary["judged"].as_u64() >= Some(4) && summary["unjudged"] == json!([]), "{summary}");

    let stricter = past.simulate(&[&past.draft("own.toml", NO_READS)]);
    let expected = [file.as_str(), "allow", "deny", "breaking"].map(str::to_owned);
    assert_eq!((stricter.code, changes(&stricter)), (Some(1), vec![expected]), "{stricter:?}");

    // Nothing came of the question about this file, and its action is known all the same.
    let open = format!(
        "[[rule]]\nname = \"notes\"\nanswer = \"allow\"\npriority = 10\nmatch = {{ action = \"read\", path = {notes:?} }}\n"
    );
    let wider = past.simulate(&[&past.draft("own.toml", &open)]);
    let expected = [notes.as_str(), "review", "allow", "opens"].map(str::to_owned);
    assert_eq!((wider.code, changes(&wider)), (Some(1), vec![expected]), "{wider:?}");
    let shown = past.stage.ran(&["policy", "simulate", &past.draft("own.toml", &open)]);
    for words in ["+ own.toml added", "review → allow OPENS", "user rule `notes`", "1 OPENS"] {
        assert!(shown.stdout.contains(words), "no `{words}`: {shown:?}");
    }
    assert!(!past.stage.home().join("policy/own.toml").exists(), "nothing is changed");
}

#[test]
fn a_draft_stands_in_for_the_file_of_its_name() {
    let past = Past::new();
    fs::write(past.stage.home().join("policy/own.toml"), NO_READS).unwrap();
    let file = past.stage.project().join("a.txt").display().to_string();
    let freed = [file.as_str(), "deny", "allow", "opens"].map(str::to_owned);
    let silent = NO_READS.replace("deny", "pass");
    let replaced = past.simulate(&[&past.draft("own.toml", &silent)]);
    assert_eq!(changes(&replaced), vec![freed.clone()], "{replaced:?}");
    let without = past.simulate(&["--without", "own.toml"]);
    assert_eq!(changes(&without), vec![freed], "{without:?}");
    let other = past.simulate(&[&past.draft("other.toml", &silent.replace("no-a", "other"))]);
    assert_eq!(
        changes(&other),
        Vec::<[String; 4]>::new(),
        "the control: beside it, it lifts nothing: {other:?}"
    );
    let unknown = past.simulate(&["--without", "nothing.toml"]);
    assert!(unknown.code == Some(2) && unknown.stderr.contains("default.toml, own.toml"), "{unknown:?}");
}

#[test]
fn all_mistakes_of_a_draft_are_told() {
    let past = Past::new();
    let one = past.draft("one.toml", "[[rule]]\nname = \"x\"\nanswer = \"dney\"\nmatch = {}\n");
    let two = past.draft("two.yaml", "rule:\n  - {name: y, answer: deny, match: {paht: a}}\n");
    let ran = past.simulate(&[&one, &two]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("one.toml:3:10") && ran.stderr.contains("two.yaml:2:"), "{ran:?}");
    let broken = NO_READS.to_owned()
        + "examples.allow = [\"read a.txt\", \"list .\", \"change a.txt\"]\nexamples.deny = [\"list .\"]\n";
    let ran = past.simulate(&[&past.draft("own.toml", &broken)]);
    assert!(ran.code == Some(2) && ran.stderr.matches("own.toml:").count() >= 2, "{ran:?}");
}

#[test]
fn what_was_erased_is_said_to_be() {
    let past = Past::new();
    let sessions = past.stage.ran(&["--json", "sessions", "list", "--all"]).lines();
    let session = sessions[0]["id"].as_str().unwrap().to_owned();
    let of_session = past.simulate(&["--session", &session, &past.draft("own.toml", NO_READS)]);
    assert_eq!(changes(&of_session).len(), 1, "{of_session:?}");
    assert_eq!(past.stage.ran(&["sessions", "rm", "--yes", &session]).code, Some(0));
    let erased = past.simulate(&[&past.draft("own.toml", NO_READS)]);
    assert_eq!(changes(&erased), Vec::<[String; 4]>::new(), "{erased:?}");
    let summary = erased.lines().pop().unwrap();
    let why = summary["unjudged"][0]["why"].as_str().unwrap_or_default();
    assert_eq!(why, "what it was in full was erased", "{summary}");
}
