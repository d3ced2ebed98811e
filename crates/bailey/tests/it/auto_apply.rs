//! `[auto_apply]`: applied unasked only where the owner's file says so and every condition holds.

use crate::stage::{Ran, Stage};
use bailey_testkit::Reply;
use serde_json::json;
use std::{fs, path::Path};

const NEEDS: &str = "[auto_apply]\ntest = \"grep -q new a.txt\"\nfiles = 2\nlines = 20\n";

/// A run in which the model has this command run, with nobody to ask.
fn run(stage: &Stage, config: &str, command: &str) -> Ran {
    fs::create_dir_all(stage.home()).unwrap();
    fs::write(stage.home().join("config.toml"), config).unwrap();
    let call = Reply::calls([("c1", "command_run", json!({ "command": command }))]);
    let _model = stage.model_beside(vec![call, Reply::text("done")]);
    stage.ran(&["run", "--model", "test/model", "--approve", "never", "do it"])
}

#[test]
fn a_small_tested_change_is_applied_unasked_where_the_owner_said_so_and_nothing_else_is() {
    let lines = "for n in $(seq 30); do echo new >>a.txt; done";
    let cases = [
        ("the control", NEEDS, "echo new >>a.txt; mkdir d; echo b >d/b.txt", None),
        ("nobody said so", "", "echo new >>a.txt", Some("")),
        ("the test fails", NEEDS, "echo other >>a.txt", Some("ended with 1")),
        (
            "something is asked about",
            NEEDS,
            "echo new >>a.txt; echo own >.envrc",
            Some(".envrc is asked about"),
        ),
        ("too many lines", NEEDS, lines, Some("30 lines changed, and 20 may")),
        (
            "too many files",
            NEEDS,
            "for f in a b c; do echo new >>$f.txt; done",
            Some("3 files changed, and 2 may"),
        ),
        ("a link", NEEDS, "echo new >>a.txt; ln -s a.txt link", Some("the change of link has no lines")),
        (
            "a link in place of a text",
            NEEDS,
            "echo new >>a.txt; ln -sf a.txt b.txt",
            Some("the change of b.txt has no lines"),
        ),
        (
            "bytes",
            NEEDS,
            "echo new >>a.txt; printf '\\0\\377' >bytes",
            Some("the change of bytes has no lines"),
        ),
        (
            "another mode",
            NEEDS,
            "echo new >>a.txt; chmod 755 a.txt",
            Some("the change of a.txt has no lines"),
        ),
        ("something stays", NEEDS, "echo new >>a.txt; mkfifo fifo", Some("fifo stays in the session")),
        (
            "too many lines to those to whom a carriage return ends one",
            NEEDS,
            "echo new >>a.txt; printf 'new\\r%.0s' $(seq 30) >>a.txt",
            Some("31 lines changed, and 20 may"),
        ),
        (
            "commits, in which more may be than is shown",
            NEEDS,
            "echo new >>a.txt; export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b; \
             head -c 100000 /dev/urandom >noise; git add .; git commit -qm brings; git rm -q noise; git commit -qm takes",
            Some("it has commits"),
        ),
        (
            "the test changes files",
            "[auto_apply]\ntest = \"echo more >>a.txt\"\n",
            "echo new >>a.txt",
            Some("did not test the final files"),
        ),
        (
            "the test does not end",
            &format!("{NEEDS}[limits]\ncommand_seconds = 1\n").replace("grep -q new a.txt", "sleep 60"),
            "echo new >>a.txt",
            Some("time limit"),
        ),
    ]
    .map(|(name, config, command, why): (&str, &str, &str, Option<&str>)| {
        (name, config.to_owned(), command, why)
    });
    for (name, config, command, why) in cases {
        let stage = Stage::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
        let ran = run(&stage, &config, command);
        assert_eq!(ran.code, Some(0), "{name}: {ran:?}");
        let is_applied = stage.read("a.txt") != "a\n";
        assert_eq!(is_applied, why.is_none(), "{name}: {ran:?}");
        assert!(ran.stderr.contains(why.unwrap_or_default()), "{name}: {ran:?}");
        assert_eq!(
            ran.stdout.contains("applied, as `grep -q new a.txt` passed"),
            is_applied,
            "{name}: {ran:?}"
        );
    }
}

/// Whoever writes a program that judges, or one that tells somebody of a question, chooses its own judge, or
/// runs outside of the walls.
#[test]
fn a_program_that_bailey_runs_or_asks_is_never_changed_by_an_apply() {
    let command = "echo new >>a.txt; for f in judge.sh rules.txt tell link; do echo more >>tools/$f; done";
    let parts = |at: &str| {
        [
            format!("[[approvals.escalation]]\nafter_seconds = 9\nnotify = [\"{at}/tell\"]\n"),
            format!("[[approvals.escalation]]\nafter_seconds = 9\nnotify = [\"/bin/sh\", \"{at}/tell\"]\n"),
            format!(
                "[[policy.extension]]\nname = \"judge\"\nkinds = [\"http\"]\ncommand = [\"sh\", \"{at}/judge.sh\"]\n"
            ),
            format!(
                "[[policy.extension]]\nname = \"judge\"\nkinds = [\"http\"]\ncommand = [\"true\"]\nfiles = [\"{at}/rules.txt\"]\n"
            ),
            // Whoever changes what it leads to changes it, too.
            format!("[[approvals.escalation]]\nafter_seconds = 9\nnotify = [\"{at}/link\"]\n"),
        ]
    };
    let own = [("a.txt", "a\n"), ("tools/judge.sh", ""), ("tools/rules.txt", ""), ("tools/tell", "")];
    for number in 0..=parts("").len() {
        let stage = Stage::new(&own);
        std::os::unix::fs::symlink("tell", stage.project().join("tools/link")).unwrap();
        let at = stage.project().join("tools").display().to_string();
        let declared = parts(&at).get(number).cloned().unwrap_or_default();
        let needs = "[auto_apply]\ntest = \"true\"\nfiles = 9\nlines = 90\n";
        let ran = run(&stage, &format!("{needs}{declared}"), command);
        let is_applied = stage.read("a.txt") != "a\n" || !stage.read("tools/tell").is_empty();
        assert_eq!(is_applied, declared.is_empty(), "{declared}: {ran:?}");
        assert_eq!(ran.stdout.contains("those of yours that it runs or asks"), !is_applied, "{ran:?}");
    }
}

/// Each link on its way is a part of what it is.
#[test]
fn no_link_on_the_way_to_such_a_program_is_changed_by_an_apply() {
    let links = [
        ("chain", "middle"),
        ("middle", "end"),
        ("end", "real/tell"),
        ("tools", "real"),
        ("up", "real/../real"),
    ];
    let cases = [
        ("chain", "middle"),
        ("chain", "end"),
        ("tools/tell", "tools"),
        ("up/tell", "up"),
        ("real/tell", "real/tell"),
    ];
    for (program, changed) in cases {
        for is_declared in [true, false] {
            let stage = Stage::new(&[("a.txt", "a\n"), ("real/tell", "one\n"), ("other/tell", "two\n")]);
            for (link, target) in links {
                std::os::unix::fs::symlink(target, stage.project().join(link)).unwrap();
            }
            let at = stage.project().join(program).display().to_string();
            let declared = format!("[[approvals.escalation]]\nafter_seconds = 9\nnotify = [\"{at}\"]\n");
            let config = if is_declared { declared } else { String::new() };
            let target = if changed == "tools" || changed == "up" { "other" } else { "other/tell" };
            let command = format!("ln -sfn {target} {changed} && readlink {changed}");
            run(&stage, &config, &command);
            let last = stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"]
                .as_str()
                .unwrap()
                .to_owned();
            let ran = stage.ran(&["sessions", "apply", &last]);
            let is_changed =
                fs::read_link(stage.project().join(changed)).is_ok_and(|now| now == Path::new(target));
            assert_eq!(is_changed, !is_declared, "{program}, {changed}: {ran:?}");
        }
    }
}

#[test]
fn no_project_says_what_is_applied_unasked() {
    let stage = Stage::new(&[("a.txt", "a\n"), (".bailey/config.toml", "[auto_apply]\ntest = \"true\"\n")]);
    let refused = stage.ran(&["trust", "add"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    run(&stage, "", "echo new >>a.txt");
    assert_eq!(stage.read("a.txt"), "a\n");
    // The control: the owner's own file does.
    run(&stage, "[auto_apply]\ntest = \"true\"\n", "echo new >>a.txt");
    assert_eq!(stage.read("a.txt"), "a\nnew\n");
}

#[test]
fn a_condition_that_is_none_is_a_mistake() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    for (config, why) in [
        ("[auto_apply]\ntest = \" \"\n", "it must name a command"),
        ("[auto_apply]\nfiles = 3\n", "test"),
        ("[auto_apply]\ntest = \"true\"\nfiles = 0\n", "it is 0, and must be 1 to 100"),
        ("[auto_apply]\ntest = \"true\"\nlines = 100000\n", "it is 100000, and must be 1 to 5000"),
        ("[auto_apply]\ntest = \"true\"\nred = true\n", "red"),
    ] {
        let ran = run(&stage, config, "echo new >>a.txt");
        assert!(ran.code != Some(0) && ran.stderr.contains(why), "{config}: {ran:?}");
        assert_eq!(stage.read("a.txt"), "a\n");
    }
}
