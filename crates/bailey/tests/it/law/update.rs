//! Rule files that `bailey policy update` changes: what that needs, what it leaves when it is killed, and who
//! obeys when.

use super::{NO_READS, Past, changes};
use crate::{
    stage::{Ran, Stage},
    terminal::Terminal,
};
use bailey_policy::DEFAULT_RULES;
use bailey_testkit::{Call, Gate, Message, Reply};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::symlink,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Frees what the session was asked about.
fn opening(past: &Past) -> String {
    let notes = past.notes().display().to_string();
    format!(
        "[[rule]]\nname = \"notes\"\nanswer = \"allow\"\npriority = 10\nmatch = {{ action = \"read\", path = {notes:?} }}\n"
    )
}

impl Past {
    fn update(&self, arguments: &[&str]) -> Ran {
        self.stage.ran(&[&["--json", "policy", "update"], arguments].concat())
    }

    fn rules(&self, name: &str) -> PathBuf {
        self.stage.home().join("policy").join(name)
    }

    fn own(&self) -> Option<String> {
        fs::read_to_string(self.rules("own.toml")).ok()
    }

    /// The entries that change the rules, and those that put some into force.
    fn changes_of_rules(&self) -> Vec<Value> {
        let is_one = |entry: &Value| {
            entry["kind"] == "amend" || entry["type"] == "policy_adopted" || entry["type"] == "answered"
        };
        self.stage.trail().into_iter().filter(is_one).collect()
    }
}

fn phrase(dry: &Ran) -> String {
    let lines = dry.lines();
    let told = lines.iter().find(|line| line["dry_run"] == true).unwrap_or_else(|| panic!("{dry:?}"));
    told["confirm"].as_str().unwrap_or_else(|| panic!("it needs no phrase: {dry:?}")).to_owned()
}

#[test]
fn a_stricter_rule_is_in_force_at_once_and_recorded() {
    let past = Past::new();
    let done = past.update(&[&past.draft("own.toml", NO_READS)]);
    assert_eq!((done.code, past.own().as_deref()), (Some(0), Some(NO_READS)), "{done:?}");
    assert_eq!(changes(&done).len(), 1, "what it breaks is told: {done:?}");
    let lines = done.lines();
    assert!(
        lines.iter().any(|line| line["diff"].as_str().is_some_and(|diff| diff.contains("+name = \"no-a\"")))
    );
    let trail = past.changes_of_rules();
    let [.., answered, intent, adopted] = trail.as_slice() else { panic!("{trail:?}") };
    assert_eq!(answered["by"], "owner", "{trail:?}");
    assert_eq!((&intent["type"], &intent["role"]), (&json!("intent"), &json!("owner")), "{trail:?}");
    let digest = past.stage.ran(&["--json", "policy", "check"]).lines()[0]["digest"].clone();
    assert_eq!(adopted["policy"], digest, "{trail:?}");
    let entry = intent["seq"].as_str().unwrap().to_owned();
    let exported = past.stage.ran(&["audit", "export"]).lines();
    let payload = &exported.iter().find(|line| line["entry"]["seq"] == entry.as_str()).unwrap()["payload"];
    for told in ["\"from\":", "\"to\":", "no-a"] {
        assert!(payload.to_string().replace('\\', "").contains(told), "{told}: {payload}");
    }
    let again = past.update(&[&past.draft("own.toml", NO_READS)]);
    assert!(again.code == Some(0) && again.stderr.contains("nothing changes"), "{again:?}");
    let removed = past.update(&["--remove", "own.toml"]);
    assert!(removed.code == Some(3) && past.own().is_some(), "what opens needs its phrase: {removed:?}");
    assert_eq!(past.stage.ran(&["audit", "verify"]).code, Some(0));
}

#[test]
fn what_opens_needs_a_phrase_that_fits_no_other_change() {
    let past = Past::new();
    let draft = past.draft("own.toml", &opening(&past));
    let bare = past.update(&[&draft]);
    assert!(bare.code == Some(3) && past.own().is_none(), "{bare:?}");
    let dry = past.update(&[&draft, "--dry-run"]);
    let told = phrase(&dry);
    assert!(dry.code == Some(0) && told.starts_with("open 1 ") && past.own().is_none(), "{dry:?}");
    let other = past.draft("own.toml", &opening(&past).replace("priority = 10", "priority = 11"));
    let refused = past.update(&[&other, "--confirm", &told]);
    assert!(refused.code == Some(3) && past.own().is_none(), "{refused:?}");
    let draft = past.draft("own.toml", &opening(&past));
    // The rules are others now, and the same draft means something else.
    assert_eq!(past.update(&[&past.draft("more.toml", NO_READS)]).code, Some(0));
    assert_eq!(past.update(&[&draft, "--confirm", &told]).code, Some(3));
    let told = phrase(&past.update(&[&draft, "--dry-run"]));
    let done = past.update(&[&draft, "--confirm", &told]);
    assert!(done.code == Some(0) && past.own() == Some(opening(&past)), "{done:?}");
    let why = past.stage.ran(&["audit", "export"]).stdout;
    assert!(why.contains(&format!("confirmed with `{told}`")), "the journal says how it was confirmed");
}

/// What happened in `past`, and then reads of these files.
fn reads(files: impl Iterator<Item = &'static str>) -> Past {
    let past = Past::new();
    past.stage.write("b.txt", "b\n");
    let call = |(number, file): (usize, &str)| Call {
        id: format!("r{number}"),
        name: "fs_read".into(),
        arguments: json!({ "path": file }),
    };
    let asked =
        Message { calls: files.enumerate().map(call).collect(), usage: (10, 5), ..Message::default() };
    let (ran, _) = past.stage.task(vec![Reply::Message(asked), Reply::text("done")], &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    past
}

#[test]
fn to_break_more_than_five_needs_a_phrase() {
    // One read was there before.
    for (more, is_many) in [(4, false), (5, true)] {
        let past = reads(std::iter::repeat_n("a.txt", more));
        let draft = past.draft("own.toml", NO_READS);
        let bare = past.update(&[&draft]);
        assert_eq!((bare.code == Some(3), past.own().is_none()), (is_many, is_many), "{bare:?}");
        if is_many {
            let told = phrase(&past.update(&[&draft, "--dry-run"]));
            assert!(told.starts_with("break 6 "), "{told}");
            assert_eq!(past.update(&[&draft, "--confirm", &told]).code, Some(0));
        }
    }
}

#[test]
fn a_change_is_tried_on_the_last_hundred_decisions() {
    // What stands before them: ninety reads are fewer than a hundred decisions, and a hundred are no fewer.
    for (after, is_seen) in [(90, true), (100, false)] {
        let past = reads(std::iter::once("b.txt").chain(std::iter::repeat_n("a.txt", after)));
        let rule = NO_READS.replace("a.txt", "b.txt");
        let dry = past.update(&[&past.draft("own.toml", &rule), "--dry-run"]);
        assert_eq!(changes(&dry).len(), usize::from(is_seen), "{after}: {dry:?}");
        let all = past.simulate(&[&past.draft("own.toml", &rule), "--last", "1000"]);
        assert_eq!(changes(&all).len(), 1, "the control: the whole journal has it: {all:?}");
    }
}

#[test]
fn a_human_types_the_phrase_and_hears_when_the_rules_changed_under_it() {
    let past = Past::new();
    let draft = past.draft("own.toml", &opening(&past));
    for (meanwhile, expected) in [(true, "changed under it"), (false, "in force: policy")] {
        let Some(mut terminal) = Terminal::start(&past.stage, &["policy", "update", &draft]) else { return };
        let asked = terminal.wait_for("> ");
        let typed = asked.rsplit("type: ").next().unwrap().lines().next().unwrap().trim().to_owned();
        if meanwhile {
            let other = past.update(&[&past.draft("more.toml", NO_READS)]);
            assert_eq!(other.code, Some(0), "one of two wins: {other:?}");
        }
        terminal.keys(&format!("{typed}\n"));
        let (code, screen) = terminal.end();
        assert!(code == i32::from(meanwhile) && screen.contains(expected), "{code}: {screen}");
        assert_eq!(past.own().is_some(), !meanwhile);
    }
}

/// No flag answers for a human under compliance; without it, the same change needs nobody.
#[test]
fn under_compliance_a_change_of_the_rules_is_typed_with_a_reason() {
    let past = Past::new();
    let draft = past.draft("own.toml", NO_READS);
    assert_eq!(past.update(&[&draft]).code, Some(0), "control: without compliance");
    let config = past.stage.home().join("config.toml");
    let before = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{before}\n[approvals]\ncompliance = true\n")).unwrap();
    let draft = past.draft("more.toml", &NO_READS.replace("no-a", "no-b"));
    let is_there = || past.rules("more.toml").exists();
    let bare = past.update(&[&draft]);
    assert!(bare.code == Some(3) && bare.stderr.contains("types a phrase and a reason"), "{bare:?}");
    let dry = past.update(&[&draft, "--dry-run"]).lines().pop().unwrap();
    assert_eq!((&dry["confirm"], &dry["compliance"]), (&Value::Null, &json!(true)), "{dry}");
    let Some(mut terminal) = Terminal::start(&past.stage, &["policy", "update", &draft]) else { return };
    let asked = terminal.wait_for("> ");
    let typed = asked.rsplit("type: ").next().unwrap().lines().next().unwrap().trim().to_owned();
    assert!(typed.starts_with("change the rules "), "{asked}");
    let flag = past.update(&[&draft, "--confirm", &typed]);
    assert!(flag.code == Some(3) && flag.stderr.contains("`--confirm` answers in the place"), "{flag:?}");
    terminal.keys(&format!("{typed}\n"));
    terminal.wait_for("Why? The journal keeps it: ");
    terminal.keys(" \n");
    terminal.wait_for("Why? The journal keeps it: ");
    assert!(!is_there());
    terminal.keys("nobody reads it\n");
    let (code, screen) = terminal.end();
    assert!(code == 0 && is_there(), "{screen}");
    let log = past.stage.ran(&["audit", "export"]).stdout;
    assert!(log.contains(&format!("nobody reads it (confirmed with `{typed}`)")), "{log}");
}

/// What nothing was recorded for cannot be seen to open anything.
#[test]
fn where_nothing_was_recorded_a_change_needs_a_phrase() {
    let stage = Stage::new(&[]);
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    let draft = stage.folder().join("own.toml");
    fs::write(&draft, "[[rule]]\nname = \"all\"\nanswer = \"allow\"\npriority = 10\nmatch = {}\n").unwrap();
    let draft = draft.display().to_string();
    let update = |more: &[&str]| stage.ran(&[&["--json", "policy", "update", &draft], more].concat());
    let own = stage.home().join("policy/own.toml");
    let bare = update(&[]);
    assert!(bare.code == Some(3) && !own.exists(), "{bare:?}");
    let told = phrase(&update(&["--dry-run"]));
    assert!(told.starts_with("change what was never tried "), "{told}");
    assert_eq!(update(&["--confirm", &told]).code, Some(0), "control: with it");
    assert!(own.exists());
}

#[test]
fn of_many_at_once_each_wins_or_is_told() {
    let past = Past::new();
    let updates: Vec<Child> = (0..5)
        .map(|n| {
            let text = NO_READS.replace("no-a", &format!("no-{n}"));
            let draft = past.draft(&format!("many-{n}.toml"), &text);
            let mut update = past.stage.bailey(&["policy", "update", &draft]);
            update.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut won = 0;
    for update in updates {
        let ran = Ran::of(update.wait_with_output().unwrap());
        match ran.code {
            Some(0) => won += 1,
            _ => assert!(ran.code == Some(1) && ran.stderr.contains("changed under it"), "{ran:?}"),
        }
    }
    let files = fs::read_dir(past.stage.home().join("policy")).unwrap().count();
    assert!(won >= 1 && files == 1 + won, "{won} won, and {files} files are there");
    assert_eq!(past.stage.ran(&["audit", "verify"]).code, Some(0));
}

#[test]
fn it_follows_no_link_and_leaves_the_folder_nowhere() {
    let past = Past::new();
    let elsewhere = past.draft("elsewhere.toml", NO_READS);
    symlink(&elsewhere, past.rules("own.toml")).unwrap();
    let draft = past.draft("own.toml", &NO_READS.replace("no-a", "other"));
    let linked = past.update(&[&draft]);
    assert!(linked.code == Some(1) && linked.stderr.contains("is no file but a link"), "{linked:?}");
    fs::remove_file(past.rules("own.toml")).unwrap();
    for name in ["../config.toml", "/etc/own.toml", ".own.toml", "own.txt", "a\nb.toml", "sub/own.toml", ""] {
        let ran = past.update(&[&draft, "--name", name]);
        assert!(!matches!(ran.code, Some(0)), "`{name}`: {ran:?}");
    }
    let policy = past.stage.home().join("policy");
    let real = past.stage.folder().join("real");
    fs::rename(&policy, &real).unwrap();
    symlink(&real, &policy).unwrap();
    let linked = past.update(&[&draft]);
    assert!(linked.code == Some(1) && linked.stderr.contains("is no directory but a link"), "{linked:?}");
    fs::remove_file(&policy).unwrap();
    fs::rename(&real, &policy).unwrap();
    assert_eq!(past.update(&[&draft]).code, Some(0), "the control: where no link is");
}

#[test]
fn mistakes_change_nothing() {
    let past = Past::new();
    let before = past.changes_of_rules().len();
    let broken = NO_READS.to_owned() + "examples.allow = [\"read a.txt\"]\n";
    for (text, told) in [(broken.as_str(), "own.toml:5:"), ("[[rule]]\nname = 1\n", "own.toml:2:8")] {
        let ran = past.update(&[&past.draft("own.toml", text)]);
        assert!(ran.code == Some(2) && ran.stderr.contains(told) && past.own().is_none(), "{ran:?}");
    }
    let twice = past.draft("own.toml", DEFAULT_RULES);
    let ran = past.update(&[&twice]);
    assert!(ran.code == Some(2) && ran.stderr.contains("is already at"), "with the other files: {ran:?}");
    assert_eq!(past.changes_of_rules().len(), before);
}

/// An update that is held where it renames, before or after.
struct Held {
    tracer: Child,
}

impl Held {
    fn start(past: &Past, draft: &str, when: &str) -> Option<Self> {
        let mut strace = Command::new("strace");
        let inject = format!("inject=renameat,renameat2:{when}=30000000");
        strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=renameat,renameat2", "-e", &inject]);
        let bailey = past.stage.bailey(&["policy", "update", draft]);
        strace.arg(bailey.get_program()).args(bailey.get_args()).current_dir(past.stage.project());
        strace.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match strace.spawn() {
            Ok(tracer) => Some(Self { tracer }),
            Err(error) => {
                println!("SKIPPED: no strace to hold it with: {error}");
                None
            }
        }
    }

    /// Kills it -9, once `there` says that it has come so far.
    fn kill(mut self, there: impl Fn() -> bool) {
        let since = Instant::now();
        while !there() {
            assert!(since.elapsed() < Duration::from_secs(25), "it never came there");
            thread::sleep(Duration::from_millis(50));
        }
        let tracer = self.tracer.id();
        let children = fs::read_to_string(format!("/proc/{tracer}/task/{tracer}/children")).unwrap();
        for child in children.split_whitespace() {
            Command::new("kill").args(["-9", child]).status().unwrap();
        }
        self.tracer.kill().unwrap();
        self.tracer.wait().unwrap();
        // What it held open is let go of when its end is over, which its tracer's does not wait for.
        let lives = |child: &str| {
            let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
        };
        while children.split_whitespace().any(lives) {
            assert!(since.elapsed() < Duration::from_secs(60), "it does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn a_killed_update_leaves_the_old_or_the_new_and_the_next_start_says_which() {
    for (when, is_new, told) in
        [("delay_enter", false, "is as it was before"), ("delay_exit", true, "new text is in its place")]
    {
        let past = Past::new();
        let draft = past.draft("own.toml", NO_READS);
        let Some(held) = Held::start(&past, &draft, when) else { return };
        let has_begun = || {
            let begun =
                past.stage.trail().iter().any(|entry| entry["kind"] == "amend" && entry["type"] == "intent");
            begun && (past.rules(".own.toml.new").exists() || past.own().is_some())
        };
        held.kill(|| has_begun() && past.own().is_some() == is_new);
        assert_eq!(past.own().as_deref(), is_new.then_some(NO_READS), "{when}: never a part of it");
        // The first one is a check, the other a task: whatever starts next.
        let next = match is_new {
            false => past.stage.ran(&["policy", "check"]),
            true => past.stage.task(vec![Reply::text("hello")], &[]).0,
        };
        let said = format!("{}{}", next.stdout, next.stderr);
        assert!(next.code == Some(0) && said.contains(told), "{when}: {next:?}");
        let again = past.stage.ran(&["policy", "check"]);
        assert!(!again.stderr.contains("cut off") && !again.stdout.contains("warning"), "once: {again:?}");
        assert!(!past.rules(".own.toml.new").exists());
        let last = past.update(&[&past.draft("own.toml", &NO_READS.replace("no-a", "no-b"))]);
        assert_eq!(last.code, Some(0), "{when}: the way is free: {last:?}");
        assert_eq!(past.stage.ran(&["audit", "verify"]).code, Some(0));
    }
}

#[test]
fn a_running_session_obeys_from_its_next_effect_on() {
    let past = Past::new();
    let gate = Gate::default();
    let read = |id| Message::calls([(id, "fs_read", json!({ "path": "a.txt" }))]);
    let script = vec![Reply::Message(read("r1")), Reply::Held(gate.clone(), read("r2")), Reply::text("done")];
    let model = past.stage.model(script);
    let mut run =
        past.stage.bailey(&["--json", "run", "--model", "test/model", "--approve", "never", "again"]);
    let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    model.wait_for(2);
    assert_eq!(past.update(&[&past.draft("own.toml", NO_READS)]).code, Some(0));
    gate.open();
    let ran = Ran::of(run.wait_with_output().unwrap());
    let results = ran.results();
    let [before, after] = results.as_slice() else { panic!("{ran:?}") };
    assert!(!before.contains("denied"), "the control, before it: {before}");
    assert!(after.contains("no-a"), "{after}");
}

/// What a removed session did cannot be judged again, which is one thing to be told and not one for each
/// entry.
#[test]
fn what_was_removed_with_its_session_is_told_once() {
    let past = reads(std::iter::repeat_n("a.txt", 12));
    let session = past.stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let draft = past.draft("own.toml", NO_READS);
    let told = |past: &Past| {
        let dry = past.stage.ran(&["policy", "update", &draft, "--dry-run"]);
        dry.stderr
            .lines()
            .filter(|line| line.contains("cannot be judged again"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert!(told(&past).is_empty(), "the control");
    assert_eq!(past.stage.ran(&["sessions", "rm", "--yes", &session]).code, Some(0));
    let lines = told(&past);
    assert!(
        lines.len() == 1
            && lines[0].contains(" entries cannot be judged again: what it was in full was erased"),
        "{lines:?}"
    );
}
