//! `bailey doctor` on bad days: each thing of the machine that is wrong is a finding of its own, with its way
//! out.

use super::in_a_namespace;
use crate::stage::{Ran, Stage};
use serde_json::Value;
use std::{fs, os::unix::fs::PermissionsExt as _};

/// How this was graded, what was said, and how to mend it.
fn finding(ran: &Ran, check: &str) -> (String, String, String) {
    let found = ran.lines().into_iter().find(|finding| finding["check"] == check);
    let found = found.unwrap_or_else(|| panic!("no `{check}`: {ran:?}"));
    let word = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
    assert_eq!(word("grade") == "ok", found["fix"] == Value::Null, "what is wrong has a way out: {found}");
    (word("grade"), word("says"), word("fix"))
}

/// The doctor after this was done to the machine; none, with a line that says so, where it cannot be done.
fn after(trouble: &str) -> Option<Ran> {
    let stage = Stage::new(&[]);
    in_a_namespace(&stage, &format!("{trouble}\n\"$BAILEY\" --home \"$H\" --json doctor --offline"))
}

#[test]
fn a_disk_that_is_nearly_full_and_one_that_soon_will_be() {
    for (size, grade, code) in [("24m", "fail", 1), ("1g", "warn", 0), ("3g", "ok", 0)] {
        let Some(ran) = after(&format!("mount -t tmpfs -o size={size} none \"$H\" || exit 99")) else {
            return;
        };
        let (found, says, fix) = finding(&ran, "disk space");
        assert_eq!((found.as_str(), ran.code), (grade, Some(code)), "{size}: {ran:?}");
        assert!(says.ends_with("MiB free"), "{says}");
        assert!(grade == "ok" || fix.contains("bailey sessions list"), "{fix}");
    }
}

#[test]
fn a_file_system_that_holds_no_layer_or_forgets_it() {
    let Some(ran) = after("mount -t ramfs none \"$H\" && chmod 700 \"$H\" || exit 99") else { return };
    let (grade, says, fix) = finding(&ran, "file system");
    assert_eq!(grade, "warn", "{says}");
    assert!(says.contains("ramfs") && says.contains("can hold no session's layer"), "{says}");
    assert!(fix.contains("--home DIR"), "{fix}");
    assert_eq!(finding(&ran, "disk space").0, "ok", "a file system that counts nothing is not full: {ran:?}");

    let Some(ran) = after("mount -t tmpfs none \"$H\" || exit 99") else { return };
    let (grade, says, _) = finding(&ran, "file system");
    assert!(grade == "warn" && says.contains("gone at the next start"), "{grade}: {says}");
}

#[test]
fn no_git_at_all() {
    // Whichever git is on the path is no program any more.
    let hidden =
        "for git in $(which -a git | xargs realpath); do mount --bind /dev/null \"$git\" || exit 99; done";
    let Some(ran) = after(hidden) else { return };
    let (grade, says, fix) = finding(&ran, "git");
    assert_eq!((grade.as_str(), ran.code), ("warn", Some(0)), "Bailey works without: {ran:?}");
    assert!(says.contains("not found inside the walls") && fix.contains("install git"), "{says}: {fix}");
    // Control: with nothing hidden there is one.
    let ran = after("").unwrap();
    assert_eq!(finding(&ran, "git").0, "ok", "{ran:?}");
}

/// What only can be watched is said to be, and what the kernel holds is not.
#[test]
fn limits_that_are_only_watched() {
    let stage = Stage::new(&[]);
    let ran = stage.ran(&["--json", "sandbox", "run", "--", "true"]);
    let watched: Vec<Value> = ran.lines()[0]["enforced"]["watched"].as_array().unwrap().clone();
    let is_watched = watched.iter().any(|wall| wall != "disk_limit");
    let (grade, says, fix) = finding(&stage.ran(&["--json", "doctor", "--offline"]), "limits");
    assert_eq!(grade, if is_watched { "warn" } else { "ok" }, "{watched:?}: {says}");
    assert!(
        !is_watched || says.contains("the kernel does not enforce") && fix.contains("systemd-run"),
        "{says}"
    );
}

/// Where its keys cannot be loaded a journal is not looked at, and nobody is sent to salvage a whole one.
#[test]
fn a_journal_whose_keys_others_can_read_is_not_called_damaged() {
    let stage = Stage::new(&[]);
    assert_eq!(stage.ran(&["sandbox", "run", "--keep", "--", "true"]).code, Some(0));
    let file = stage.home().join(".env");
    fs::write(&file, "ANTHROPIC_API_KEY=sk-none\n").unwrap();
    for (mode, grade) in [(0o666, "fail"), (0o600, "ok")] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let ran = stage.ran(&["--json", "doctor", "--offline"]);
        let (found, says, fix) = finding(&ran, "journal");
        assert_eq!(found, grade, "{mode:o}: {says}");
        assert!(
            grade == "ok" || says.contains("chmod 600") && !fix.contains("audit recover"),
            "{says}: {fix}"
        );
    }
}

/// A home that cannot be written is no damaged one, and says nothing of the walls.
#[test]
fn a_home_that_is_read_only_is_told_as_such() {
    let stage = Stage::new(&[]);
    assert_eq!(stage.ran(&["sandbox", "run", "--keep", "--", "true"]).code, Some(0));
    let shut = r#"mount --bind "$H" "$H" && mount -o remount,ro,bind "$H" || exit 99
        exec "$BAILEY" --home "$H" --json doctor --offline"#;
    let Some(ran) = in_a_namespace(&stage, shut) else { return };
    let (grade, says, fix) = finding(&ran, "journal");
    assert!(grade == "fail" && says.contains("mount its file system for writing"), "{says}");
    assert!(fix.contains("make the home writable") && !fix.contains("audit recover"), "{fix}");
    let (grade, says, _) = finding(&ran, "walls");
    assert!(grade == "fail" && says.contains("not tried, for the home cannot be written"), "{says}");
    assert!(!ran.stdout.contains("tier internal"), "{ran:?}");
    // The control: as it was, nothing is wrong with either.
    let ran = stage.ran(&["--json", "doctor", "--offline"]);
    assert_eq!(
        (finding(&ran, "journal").0.as_str(), finding(&ran, "walls").0.as_str()),
        ("ok", "ok"),
        "{ran:?}"
    );
}
