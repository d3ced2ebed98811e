//! A21, A53: of what a session makes of the repository its commits arrive, and nothing else; and of commits
//! only what git's own checks pass.

use super::actor::{Actor, Who};
use std::{collections::BTreeMap, fs, path::Path};

const AUTHOR: &str = "export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@example.invalid GIT_COMMITTER_NAME=x \
                      GIT_COMMITTER_EMAIL=x@example.invalid; set -e; ";

/// Writes a tree with one entry, whatever it is called, and a commit of it on the branch.
const TREE: &str = r#"
tree() { python3 -c 'import sys, binascii
mode, name, id = sys.argv[1:]
sys.stdout.buffer.write(mode.encode() + b" " + name.encode() + b"\0" + binascii.unhexlify(id))' "$@" | git hash-object -t tree --literally -w --stdin; }
own() { git update-ref refs/heads/main $(git commit-tree -m own -p HEAD $1); }
file=$(echo own | git hash-object -w --stdin)
inner=$(tree 100755 config $file)
"#;

/// Commits that no check passes.
const FORGED: &[(&str, &str)] = &[
    ("a folder `.git`", "own $(tree 40000 .git $inner)"),
    ("a folder `.GIT`", "own $(tree 40000 .GIT $inner)"),
    ("a folder `..`", "own $(tree 40000 .. $inner)"),
    ("a file beyond a slash", "own $(tree 100644 .git/config $file)"),
    (
        "a submodule whose address is an option",
        r#"url=$(printf '[submodule "x"]\n\tpath = x\n\turl = --upload-pack=touch\n' | git hash-object -w --stdin)
           own $(tree 100644 .gitmodules $url)"#,
    ),
    (
        "a submodule that is named to lie elsewhere",
        r#"url=$(printf '[submodule "../../hooks"]\n\tpath = x\n\turl = https://example.invalid/x\n' | git hash-object -w --stdin)
           own $(tree 100644 .gitmodules $url)"#,
    ),
    (
        "submodules told by a link",
        "own $(tree 120000 .gitmodules $(printf /etc/x | git hash-object -w --stdin))",
    ),
];

/// What is no whole history; no git takes it.
const TORN: &[(&str, &str)] = &[
    (
        "a file that is not there",
        "echo lost > lost.txt; git add .; git commit -qm lost; id=$(git rev-parse HEAD:lost.txt)
         rm -f .git/objects/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-)",
    ),
    (
        "a file of other bytes than its name says",
        "echo one > lost.txt; git add .; git commit -qm lost; id=$(git rev-parse HEAD:lost.txt); other=$(echo two | git hash-object -w --stdin)
         cd .git/objects; to=$(echo $id | cut -c1-2)/$(echo $id | cut -c3-)
         rm -f $to; cp $(echo $other | cut -c1-2)/$(echo $other | cut -c3-) $to",
    ),
    (
        "a pipe in the place of a file",
        "echo lost > lost.txt; git add .; git commit -qm lost; id=$(git rev-parse HEAD:lost.txt)
         to=.git/objects/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-); rm -f $to; mkfifo $to",
    ),
    ("a branch that is no commit", "git hash-object -w a.txt > .git/refs/heads/main; echo own | git hash-object -w --stdin > .git/refs/heads/main"),
    ("a tree that is nonsense", "own=$(echo nonsense | git hash-object -t tree --literally -w --stdin); git update-ref refs/heads/main $(git commit-tree -m own -p HEAD $own)"),
    ("a branch of nothing", "echo 1111111111111111111111111111111111111111 > .git/refs/heads/main"),
];

/// Runs a script inside and applies what came of it.
fn applied(actor: &Actor, script: &str) -> crate::stage::Ran {
    let ran = actor.bailey(&["sandbox", "run", "--keep", "--", "sh", "-c", &format!("{AUTHOR}{script}")]);
    assert_eq!(ran.code, Some(0), "{script}: {ran:?}");
    let session =
        actor.bailey(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
    let diff = actor.bailey(&["sessions", "diff", &session]);
    assert_eq!(diff.code, Some(0), "{script}: {diff:?}");
    let applied = actor.bailey(&["sessions", "apply", &session]);
    crate::stage::Ran { stdout: format!("{}{}", diff.stdout, applied.stdout), ..applied }
}

/// Every file below a folder.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![dir.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().display().to_string();
                found.insert(name, fs::read(&path).unwrap_or_default());
            }
        }
    }
    found
}

attack!(a53_commits_arrive_only_if_every_object_passes_gits_checks);
fn a53_commits_arrive_only_if_every_object_passes_gits_checks(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    let git = actor.stage.project().join(".git");
    let before = files(&git);
    let forged = FORGED.iter().map(|(name, script)| (name, format!("{TREE}{script}"), true));
    let torn = TORN.iter().map(|(name, script)| (name, (*script).to_owned(), false));
    for (name, script, is_whole) in forged.chain(torn) {
        let ran = applied(&actor, &script);
        assert!(ran.stdout.contains("commits on `main` stay in the session"), "{name}: {ran:?}");
        assert_eq!(files(&git), before, "{name}");
        if !is_whole {
            continue;
        }
        // The control: a git that does not check takes the same from a repository that it was done to.
        let copy = actor.user().join("copy").display().to_string();
        let project = actor.stage.project().display().to_string();
        let script = format!(
            "{AUTHOR}rm -rf {copy} {copy}.git; cp -r {project} {copy}; cd {copy}; {script}; git clone -q --bare --no-local . {copy}.git; \
             git --git-dir={copy}.git log --format=%s"
        );
        let control = actor.outside(&["sh", "-c", &script]);
        assert!(control.stdout.starts_with("own\n"), "{name}: the control: {control:?}");
        println!("held: {name} (the control: a plain clone)");
    }
    // The control of those: the same, unspoilt, arrives.
    let ran = applied(&actor, "echo b >> a.txt; git commit -qam good");
    assert!(ran.stdout.contains("`main` is at"), "{ran:?}");
    assert_eq!(actor.outside(&["git", "log", "--format=%s"]).stdout, "good\nstart\n");
}

/// Whatever git would obey, beside a commit.
const BESIDES: &str = r#"
printf '#!/bin/sh\nOWN\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit
printf '[core]\n\tfsmonitor = "OWN; false"\n[filter "own"]\n\tclean = "OWN; cat"\n[submodule "x"]\n\tactive = true\n\turl = "ext::OWN"\n' >> .git/config
mkdir -p .git/info .git/objects/info .git/modules/x .git/worktrees/x .git/refs/replace .git/refs/notes
echo '*.txt filter=own' > .git/info/attributes
echo /etc > .git/objects/info/alternates
first=$(git rev-parse HEAD); echo b >> a.txt; git -c core.fsmonitor=false -c filter.own.clean=cat commit --no-verify -qam good
good=$(git rev-parse HEAD)
echo "$good" > .git/info/grafts; echo "$first" > .git/shallow; cp .git/config .git/modules/x/config; cp .git/config .git/config.worktree
printf '%s\n' "$good" > .git/refs/replace/$first; git tag own; echo "$good" > .git/refs/notes/commits; echo own >> .git/logs/HEAD
rm -f .git/shallow .git/info/grafts .git/objects/info/alternates .git/refs/replace/*
"#;

attack!(a21_of_a_repository_the_commits_arrive_and_nothing_else);
fn a21_of_a_repository_the_commits_arrive_and_nothing_else(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    let owned = actor.user().join("owned");
    let script = BESIDES.replace("OWN", &format!("touch {}", owned.display()));
    // The control: without walls the same lines leave all of that in a repository.
    let copy = actor.user().join("copy");
    let project = actor.stage.project();
    let control = format!("cp -r {} {1}; cd {1}; {AUTHOR}{script}", project.display(), copy.display());
    let control = actor.outside(&["sh", "-c", &control]);
    assert_eq!(control.code, Some(0), "{control:?}");
    let (git, spoilt) = (files(&project.join(".git")), files(&copy.join(".git")));
    let is_other = |now: &BTreeMap<String, Vec<u8>>, path: &str| now.get(path) != git.get(path);
    let expected =
        ["config", "hooks/pre-commit", "info/attributes", "modules/x/config", "logs/HEAD", "refs/tags/own"];
    for path in expected {
        assert!(is_other(&spoilt, path), "the control: {path}");
    }
    fs::remove_file(&owned).ok();

    let ran = applied(&actor, &script);
    assert!(ran.stdout.contains("`main` is at"), "{ran:?}");
    let now = files(&project.join(".git"));
    let is_pack = |path: &str| path.starts_with("objects/pack/pack-");
    let others: Vec<&String> = now.keys().chain(git.keys()).filter(|path| is_other(&now, path)).collect();
    let strange: Vec<&&String> = others
        .iter()
        .filter(|path| !is_pack(path) && !["index", "refs/heads/main"].contains(&path.as_str()))
        .collect();
    assert!(strange.is_empty(), "{strange:?}");
    assert!(others.len() > 2, "something arrived: {others:?}");
    let after = actor.outside(&["sh", "-c", "git status --porcelain; git log --format=%s; git fsck"]);
    assert_eq!((after.code, after.stdout.as_str()), (Some(0), "good\nstart\n"), "{after:?}");
    assert!(!owned.exists());
}
