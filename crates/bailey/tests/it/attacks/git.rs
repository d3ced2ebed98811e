//! A21, A53: whatever is made of a repository inside the walls, the host's git runs none of it; and `git
//! commit` works.

use super::{
    actor::{Actor, Who},
    control::judge,
};
use bailey_testkit::Reply;
use serde_json::json;
use std::fs;

/// What a session does to the repository so that the host's git runs `OWN`.
const DISGUISES: &[(&str, &str)] = &[
    ("hook", r#"printf '#!/bin/sh\nOWN\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit"#),
    ("configuration", r#"printf '[core]\n\tfsmonitor = "OWN; false"\n' >> .git/config"#),
    (
        "alias and pager",
        r#"printf '[core]\n\tpager = "OWN; cat"\n[alias]\n\tst = "!OWN"\n[core]\n\tfsmonitor = "OWN; false"\n' >> .git/config"#,
    ),
    (
        "another .git",
        r#"mv .git .old && mkdir .git && cp -r .old/. .git && printf '[core]\n\tfsmonitor = "OWN; false"\n' >> .git/config"#,
    ),
    (
        "gitfile",
        r#"mv .git real.git && echo 'gitdir: real.git' > .git && printf '[core]\n\tfsmonitor = "OWN; false"\n' >> real.git/config"#,
    ),
    (
        "commondir",
        r#"cp -r .git common && printf '[core]\n\tfsmonitor = "OWN; false"\n' >> common/config && echo ../common > .git/commondir"#,
    ),
    (
        "worktrees",
        r#"git worktree add -q wt && git config extensions.worktreeConfig true &&
           printf '[core]\n\tfsmonitor = "OWN; false"\n' > .git/worktrees/wt/config.worktree"#,
    ),
    (
        "modules",
        r#"git init -q sub && git -C sub -c user.name=x -c user.email=x@example.invalid commit -q --allow-empty -m x &&
           git add sub && mkdir -p .git/modules && mv sub/.git .git/modules/sub && echo 'gitdir: ../.git/modules/sub' > sub/.git &&
           printf '[core]\n\tfsmonitor = "OWN; false"\n' >> .git/modules/sub/config"#,
    ),
    (
        "bare repository in a folder",
        r#"mkdir sub && cp -r .git/HEAD .git/objects .git/refs .git/config sub/ &&
           printf '[core]\n\tbare = false\n\tworktree = "."\n\tfsmonitor = "OWN; false"\n' >> sub/config"#,
    ),
    (
        "plain bare repository in a folder",
        r#"mkdir sub && cp -r .git/HEAD .git/objects .git/refs sub/ &&
           printf '[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfsmonitor = "OWN; false"\n[alias]\n\tst = "!OWN"\n' > sub/config"#,
    ),
    (
        "attributes and filter",
        r#"echo '*.txt filter=own' > .gitattributes; printf '[filter "own"]\n\tclean = "OWN; cat"\n' >> .git/config; touch a.txt"#,
    ),
];

/// What a person does afterwards.
const HOST: &str = "git status; git diff; git -C sub status; git -C wt status; git st; git -C sub st
    git add --all; git -c user.name=x -c user.email=x@example.invalid commit -m x --allow-empty; true";

attack!(a53_the_hosts_git_runs_nothing_of_a_session);
fn a53_the_hosts_git_runs_nothing_of_a_session(who: Who) {
    for (name, disguise) in DISGUISES {
        let actor = Actor::new(who, &[("a.txt", "a\n")]);
        let owned = actor.user().join("owned");
        let disguise = disguise.replace("OWN", &format!("touch {}", owned.display()));
        let copy = actor.stage.folder().join("user/copy").display().to_string();
        let project = actor.stage.project().display().to_string();
        actor.outside(&["cp", "-r", &project, &copy]);
        let command = json!({ "command": format!("{disguise}\n cd {project}; echo b >> a.txt") });
        let script = vec![Reply::calls([("c1", "command_run", command)]), Reply::text("done")];
        let (ran, _model) = actor.task(script, &["--apply"]);
        assert!(matches!(ran.code, Some(0 | 3 | 6)), "{name}: {ran:?}");
        let after = actor.outside(&["sh", "-c", HOST]);
        assert!(!owned.exists(), "{name}: {ran:?} {after:?}");
        assert!(after.stdout.contains("main"), "git works on the host: {name}: {after:?}");
        // The control: the same done to a copy without walls runs it.
        let control = actor.outside(&["sh", "-c", &format!("cd {copy} && {disguise}\n cd {copy}; {HOST}")]);
        let ended = format!("{control:?}");
        judge(who, name, owned.exists().then_some("without walls").ok_or(&[ended.as_str()][..]), &[]);
    }
}

attack!(a21_git_commit_works_inside_and_a_hook_stays_inside);
fn a21_git_commit_works_inside_and_a_hook_stays_inside(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    let identity = "-c user.name=x -c user.email=x@example.invalid";
    let owned = actor.user().join("owned");
    let script = format!(
        "printf '#!/bin/sh\\necho hook ran; touch {}\\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit
         echo b > b.txt; git add b.txt; git {identity} commit -q -m second; git log --format=%s; git status --porcelain",
        owned.display()
    );
    let ran = actor.sh(&script);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "second\nstart\n"), "{ran:?}");
    assert!(ran.stderr.contains("hook ran"), "a hook is normal work inside: {ran:?}");
    let outside = actor.outside(&["git", "log", "--format=%s"]);
    assert!(!owned.exists() && outside.stdout == "start\n", "{outside:?}");
}

attack!(a21_what_the_host_runs_later_in_the_home_stays_in_the_session);
fn a21_what_the_host_runs_later_in_the_home_stays_in_the_session(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    let files = [
        ".bashrc",
        ".profile",
        ".config/systemd/user/x.service",
        ".config/autostart/x.desktop",
        ".cargo/config.toml",
        ".gitconfig",
        ".ssh/authorized_keys",
        ".npmrc",
    ];
    let write = files
        .map(|file| {
            format!("mkdir -p $(dirname ~/{file}); echo owned-by-session > ~/{file} && echo wrote {file}")
        })
        .join("\n");
    let before = files.map(|file| fs::read(actor.user().join(file)).ok());
    let ran = actor.sh(&write);
    assert!(ran.stdout.contains("wrote .bashrc"), "the session's own home is writable: {ran:?}");
    assert_eq!(files.map(|file| fs::read(actor.user().join(file)).ok()), before);
    // The control: outside, the same lines change them.
    actor.outside(&["sh", "-c", &write]);
    assert_ne!(files.map(|file| fs::read(actor.user().join(file)).ok()), before);
}
