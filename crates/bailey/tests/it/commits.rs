//! Commits that a session made arrive in the project as commits; what cannot move is kept where it can be
//! looked at.

use crate::{
    stage::{Ran, Stage},
    terminal::Terminal,
    workspace::{killed::kill_below, newest},
};
use bailey_testkit::Reply;
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::Stdio,
    time::{Duration, Instant},
};

/// Who commits inside.
const AUTHOR: &str = "export GIT_AUTHOR_NAME=Ann GIT_AUTHOR_EMAIL=a@example.invalid GIT_COMMITTER_NAME=Ann GIT_COMMITTER_EMAIL=a@example.invalid; set -e; ";

/// A session that ran this script, and its name.
fn session(stage: &Stage, script: &str) -> String {
    let script = format!("{AUTHOR}{script}");
    let ran = stage.ran(&["sandbox", "run", "--keep", "--", "sh", "-c", &script]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    newest(stage)
}

fn sessions(stage: &Stage, command: &str, session: &str) -> Ran {
    stage.ran(&["sessions", command, session])
}

fn tip(stage: &Stage, name: &str) -> String {
    stage.git(&["rev-parse", name]).trim().to_owned()
}

fn status(stage: &Stage) -> String {
    stage.git(&["status", "--porcelain"])
}

/// The reference that keeps a session's branch.
fn kept(session: &str, branch: &str) -> String {
    format!("refs/bailey/{}/{branch}", &session[session.len() - 8..])
}

const TWO: &str = "echo b >>a.txt; mkdir d; echo new >d/new.txt; rm gone.txt; git add --all; git commit -qm 'first of two'; \
                   chmod +x a.txt; ln -s a.txt link; git add --all; git commit -qm 'second of two'";

#[test]
fn commits_arrive_as_commits_and_an_undo_takes_them_back() {
    let stage = Stage::new(&[("a.txt", "a\n"), ("gone.txt", "gone\n"), ("other.txt", "other\n")]);
    let start = tip(&stage, "main");
    let session = session(&stage, TWO);
    let diff = sessions(&stage, "diff", &session);
    assert!(diff.stdout.contains("2 commits on `main`: an apply of everything moves it there"), "{diff:?}");
    assert!(diff.stdout.contains("second of two (Ann, 2 files)"), "{diff:?}");
    assert!(!diff.stdout.contains(".git stays"), "what leaves does not stay: {diff:?}");
    assert_eq!(tip(&stage, "main"), start, "a diff has no changes");

    // What the human staged and changed besides stays as it is.
    stage.write("other.txt", "staged\n");
    stage.git(&["add", "other.txt"]);
    stage.write("mine.txt", "mine\n");
    let before = status(&stage);
    let applied = sessions(&stage, "apply", &session);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert!(applied.stdout.contains("applied: `main` is at "), "{applied:?}");
    let log = stage.git(&["log", "--format=%an %s", "main"]);
    assert_eq!(log, "Ann second of two\nAnn first of two\nTest start\n");
    assert_eq!(status(&stage), before, "the working tree, the index and the branch agree");
    assert_eq!(stage.git(&["show", "main:d/new.txt"]), "new\n");
    stage.git(&["fsck", "--strict"]);
    assert!(!stage.project().join(".git/refs/bailey").exists());
    let again = sessions(&stage, "diff", &session);
    assert!(again.stderr.contains("has no changes"), "{again:?}");

    let undone = sessions(&stage, "undo", &session);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert!(undone.stdout.contains("`main` is back at"), "{undone:?}");
    assert_eq!((tip(&stage, "main"), status(&stage)), (start, before));
    // And once more.
    assert_eq!(sessions(&stage, "apply", &session).code, Some(0));
    assert_eq!(stage.git(&["log", "--format=%s", "-1", "main"]), "second of two\n");
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));
}

/// Settings of the repository stay, and are named; what leaves is not.
#[test]
fn what_stays_of_a_repository_is_named_beside_the_commits_that_leave() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let session = session(&stage, "git config user.signingkey x; echo more >>a.txt; git commit -qam inside");
    for command in ["diff", "apply"] {
        let ran = sessions(&stage, command, &session);
        let told = ".git stays in the session: `config` in it never leaves the session's layer; commits are carried by themselves";
        assert!(ran.stdout.contains(told), "{ran:?}");
    }
    assert_eq!(stage.git(&["log", "--format=%s", "-1"]), "inside\n");
}

#[test]
fn a_branch_that_moved_meanwhile_is_not_moved_and_nothing_is_lost() {
    let stage = Stage::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    let session = session(&stage, "echo more >>a.txt; echo new >new.txt; git add .; git commit -qm inside");
    stage.write("b.txt", "by hand\n");
    stage.git(&["commit", "--quiet", "--all", "--message", "outside"]);
    let outside = tip(&stage, "main");
    let diff = sessions(&stage, "diff", &session);
    assert!(diff.stdout.contains("do not follow from the project's"), "{diff:?}");
    let applied = sessions(&stage, "apply", &session);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    let kept = kept(&session, "main");
    assert_eq!(tip(&stage, "main"), outside);
    assert_eq!(stage.git(&["log", "--format=%s", &kept]), "inside\nstart\n");
    // What is told works, in the order in which it is told: the same files are in the working tree already.
    let told =
        format!("to look: git log -p {kept}; to take them: git add -A && git commit, then git merge {kept}");
    assert!(applied.stdout.contains(&told), "{applied:?}");
    assert!(stage.git(&["log", "-p", &kept]).contains("+more"));
    stage.git(&["add", "-A"]);
    stage.git(&["commit", "--quiet", "--message", "applied"]);
    stage.git(&["merge", "--quiet", "--no-edit", &kept]);
    assert_eq!((status(&stage).as_str(), stage.read("new.txt").as_str()), ("", "new\n"));
    assert_eq!((stage.read("a.txt"), stage.read("b.txt")), ("a\nmore\n".into(), "by hand\n".into()));
}

#[test]
fn a_branch_moves_only_with_all_that_its_commits_change() {
    let stage = Stage::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    let start = tip(&stage, "main");
    let session = session(&stage, "echo more >>a.txt; echo more >>b.txt; git commit -qam both");
    // A part moves no branch.
    let part = stage.ran(&["sessions", "apply", &session, "a.txt"]);
    assert_eq!((part.code, tip(&stage, "main")), (Some(0), start.clone()), "{part:?}");
    // What the human wrote there is kept, and so is the branch.
    stage.write("b.txt", "by hand\n");
    let apart = format!(
        "keeps them at {}: the project will not hold what they do at `b.txt`",
        kept(&session, "main")
    );
    let diff = sessions(&stage, "diff", &session);
    assert!(diff.stdout.contains(&apart) && !diff.stdout.contains("moves it there"), "{diff:?}");
    let applied = sessions(&stage, "apply", &session);
    assert!(
        applied.stdout.contains("the project does not hold what its last commit holds at `b.txt`"),
        "{applied:?}"
    );
    assert_eq!((tip(&stage, "main"), stage.read("b.txt")), (start, "by hand\n".into()));
    // The control: with that out of the way it moves.
    stage.write("b.txt", "b\n");
    let diff = sessions(&stage, "diff", &session);
    assert!(diff.stdout.contains("moves it there"), "{diff:?}");
    let applied = sessions(&stage, "apply", &session);
    assert!(applied.stdout.contains("`main` is at"), "{applied:?}");
    assert_eq!(status(&stage), "");
}

/// Lines of both are more than the commits hold, which is said before, too.
#[test]
fn a_branch_whose_file_is_merged_with_lines_of_yours_is_kept_apart() {
    let stage = Stage::new(&[("a.txt", "1\n2\n3\n4\n5\n")]);
    let start = tip(&stage, "main");
    let session = session(&stage, "echo 6 >>a.txt; git commit -qam six");
    stage.write("a.txt", "0\n1\n2\n3\n4\n5\n");
    let diff = sessions(&stage, "diff", &session);
    let apart = format!(
        "keeps them at {}: the project will not hold what they do at `a.txt`",
        kept(&session, "main")
    );
    assert!(diff.stdout.contains(&apart), "{diff:?}");
    let applied = sessions(&stage, "apply", &session);
    assert_eq!(
        (tip(&stage, "main"), stage.read("a.txt")),
        (start, "0\n1\n2\n3\n4\n5\n6\n".into()),
        "{applied:?}"
    );
    assert_eq!(tip(&stage, &kept(&session, "main")).len(), 40);
}

#[test]
fn other_branches_are_kept_apart_and_a_new_one_is_made() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let start = tip(&stage, "main");
    let session = session(
        &stage,
        "git switch -qc side; echo side >side.txt; git add .; git commit -qm aside; git switch -q main; git switch -qc fix/one; \
         echo more >>a.txt; git commit -qam fix; git tag inside; git tag -am note annotated",
    );
    let diff = sessions(&stage, "diff", &session);
    assert!(
        diff.stdout.contains("1 commit on `fix/one`: an apply of everything makes that branch"),
        "{diff:?}"
    );
    let applied = sessions(&stage, "apply", &session);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert_eq!(tip(&stage, "main"), start);
    assert_eq!(stage.git(&["log", "--format=%s", "fix/one"]), "fix\nstart\n");
    assert_eq!(stage.git(&["log", "--format=%s", &kept(&session, "side")]), "aside\nstart\n");
    assert_eq!(stage.git(&["tag"]), "", "tags stay in the session");
    assert_eq!(stage.git(&["branch", "--format=%(refname:short)"]), "fix/one\nmain\n");
    // What is told works: the files are there already.
    assert!(applied.stdout.contains("git symbolic-ref HEAD refs/heads/fix/one && git reset"), "{applied:?}");
    stage.git(&["symbolic-ref", "HEAD", "refs/heads/fix/one"]);
    stage.git(&["reset", "--quiet"]);
    assert_eq!(status(&stage), "");
}

#[test]
fn whoever_works_in_the_repository_is_not_disturbed() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let start = tip(&stage, "main");
    let session = session(&stage, "echo more >>a.txt; git commit -qam inside");
    let lock = stage.project().join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    let applied = sessions(&stage, "apply", &session);
    assert!(applied.stdout.contains("a `.lock` file is in the way"), "{applied:?}");
    assert_eq!((tip(&stage, "main"), fs::read(&lock).unwrap()), (start, Vec::new()));
    // The control.
    fs::remove_file(&lock).unwrap();
    let applied = sessions(&stage, "apply", &session);
    assert!(applied.stdout.contains("`main` is at"), "{applied:?}");
}

/// A rebase ends by moving its branch from where it was when it began.
#[test]
fn a_branch_that_is_being_rebased_is_not_moved() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let start = tip(&stage, "main");
    let script = "git checkout -q main 2>/dev/null; echo more >>a.txt; git commit -qam inside";
    stage.git(&["checkout", "--quiet", "--detach"]);
    let rebase = stage.project().join(".git/rebase-merge");
    let begin = || {
        fs::create_dir(&rebase).unwrap();
        fs::write(rebase.join("head-name"), "refs/heads/main\n").unwrap();
    };
    begin();
    let first = session(&stage, script);
    let diff = sessions(&stage, "diff", &first);
    assert!(diff.stdout.contains("a rebase of it is under way"), "{diff:?}");
    assert_eq!(sessions(&stage, "apply", &first).code, Some(0));
    assert_eq!(tip(&stage, "main"), start);
    stage.git(&["checkout", "--quiet", "a.txt"]);
    // The control: when it is over the branch moves.
    fs::remove_dir_all(&rebase).unwrap();
    let second = session(&stage, script);
    assert!(sessions(&stage, "apply", &second).stdout.contains("`main` is at"));
    // Nor back, while another one is.
    let applied = tip(&stage, "main");
    begin();
    let undone = sessions(&stage, "undo", &second);
    assert!(undone.stdout.contains("a rebase of it is under way"), "{undone:?}");
    assert_eq!(tip(&stage, "main"), applied);
    fs::remove_dir_all(&rebase).unwrap();
    assert_eq!(sessions(&stage, "undo", &second).code, Some(0));
    assert_eq!(tip(&stage, "main"), start);
}

#[test]
fn commits_of_a_repository_that_cannot_take_them_stay_and_it_is_said() {
    let sha256 = |stage: &Stage| {
        fs::remove_dir_all(stage.project().join(".git")).unwrap();
        stage.git(&["init", "--quiet", "--initial-branch=main", "--object-format=sha256"]);
        stage.git(&["add", "--all"]);
        stage.git(&["commit", "--quiet", "--message", "start"]);
    };
    for why in [Some("SHA-256"), Some("reftable"), None] {
        let stage = Stage::new(&[("a.txt", "a\n")]);
        match why {
            Some("SHA-256") => sha256(&stage),
            Some(_) => fs::create_dir(stage.project().join(".git/reftable")).unwrap(),
            None => {}
        }
        let session = session(&stage, "echo more >>a.txt; git commit -qam inside");
        let diff = sessions(&stage, "diff", &session);
        let applied = sessions(&stage, "apply", &session);
        assert_eq!((applied.code, stage.read("a.txt")), (Some(0), "a\nmore\n".into()), "{applied:?}");
        let log = stage.git(&["log", "--format=%s"]);
        let told = applied.stdout.contains("stays in the session: commits: ");
        let Some(why) = why else {
            assert!(!told && log == "inside\nstart\n", "the control: {applied:?}");
            continue;
        };
        assert!(told, "{applied:?}");
        assert!(
            diff.stdout.contains("commits stay in the session: ") && diff.stdout.contains(why),
            "{diff:?}"
        );
        assert_eq!(log, "start\n");
    }
}

/// A linked worktree and a submodule have their repository elsewhere: said wherever
/// something is to run, and by an apply; files arrive all the same.
#[test]
fn a_worktree_and_a_submodule_are_told_as_such_everywhere() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    stage.git(&["worktree", "add", "--quiet", "wt"]);
    let source = stage.project().join(".git");
    stage.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        source.to_str().unwrap(),
        "sub",
    ]);
    for folder in ["wt", "sub"] {
        let project = stage.project().join(folder);
        let told = |arguments: &[&str], input: &str| {
            let mut command = stage.bailey(arguments);
            command.current_dir(&project).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).ok();
            let ran = Ran::of(child.wait_with_output().unwrap());
            assert!(ran.stderr.contains("is a worktree or a submodule"), "{folder}: {arguments:?}: {ran:?}");
            ran
        };
        let _model = stage.model(vec![Reply::text("done"), Reply::text("done")]);
        told(&["run", "--model", "test/model", "--approve", "never", "say done"], "");
        told(&["chat", "--model", "test/model", "--approve", "never"], "say done\n");
        let inside =
            told(&["sandbox", "run", "--keep", "--", "sh", "-c", "echo more >>a.txt; git status"], "");
        assert_eq!(inside.code, Some(128), "git says so: {inside:?}");
        // Who helps themselves to a repository has commits that no apply carries.
        let own = format!("{AUTHOR}rm .git; git init -q; echo more >>a.txt; git add .; git commit -qm own");
        assert_eq!(told(&["sandbox", "run", "--keep", "--", "sh", "-c", &own], "").code, Some(0));
        let session = newest(&stage);
        let diff = sessions(&stage, "diff", &session);
        assert!(diff.stdout.contains("commits stay in the session: the project is a worktree"), "{diff:?}");
        assert_eq!(sessions(&stage, "apply", &session).code, Some(0));
        assert_eq!(fs::read_to_string(project.join("a.txt")).unwrap(), "a\nmore\n");
        assert!(project.join(".git").is_file());
    }
    // The control: the project itself is none.
    let plain = stage.ran(&["sandbox", "run", "--", "git", "log", "--format=%s"]);
    assert!(plain.stdout == "start\n" && !plain.stderr.contains("worktree"), "{plain:?}");
}

#[test]
fn what_is_no_commit_moves_nothing_and_is_no_change() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let head = stage.read(".git/HEAD");
    for script in [
        "git switch -qc empty",
        "git commit -qm x --allow-empty; git reset -q --hard HEAD~",
        "git gc -q",
        "git status",
        // As a look does that finds nothing to renew.
        "touch .git/index.lock; rm .git/index.lock",
    ] {
        let session = session(&stage, script);
        let diff = sessions(&stage, "diff", &session);
        assert!(diff.stderr.contains("has no changes"), "{script}: {diff:?}");
    }
    // An empty directory that is another one is told of.
    for script in ["rm -r .git; mkdir .git", "chmod 700 .git"] {
        let session = session(&stage, script);
        let diff = sessions(&stage, "diff", &session);
        assert!(
            diff.stdout.contains(".git stays in the session: is version control's own"),
            "{script}: {diff:?}"
        );
    }
    // The control: an empty commit is one.
    let session = session(&stage, "git gc -q; git commit -qm x --allow-empty");
    assert!(sessions(&stage, "diff", &session).stdout.contains("1 commit on `main`"));
    assert_eq!(sessions(&stage, "apply", &session).code, Some(0));
    assert_eq!((stage.git(&["log", "--format=%s"]), stage.read(".git/HEAD")), ("x\nstart\n".into(), head));
}

/// What an apply asks about is asked about in the files that it carries; a commit that brings it and takes it
/// away again would not be seen.
#[test]
fn a_branch_with_what_nobody_was_asked_about_is_kept_apart() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let start = tip(&stage, "main");
    let hidden = "echo own >.envrc; git add .; git commit -qm brings; git rm -q .envrc; echo more >>a.txt; git commit -qam takes";
    // In a merge, too, which git tells no files of by itself.
    let side = |name: &str| {
        format!(
            "git checkout -qb {name} main; echo s >{name}; git add .; git commit -qm {name}; git checkout -q main; git merge -q --no-ff --no-commit {name} 2>/dev/null; "
        )
    };
    let merged = format!(
        "{}echo own >.envrc; git add .; git commit -qm brings; {}git rm -qf .envrc; git commit -qm takes",
        side("one"),
        side("two")
    );
    let merges = session(&stage, &merged);
    let diff = sessions(&stage, "diff", &merges);
    assert!(diff.stdout.contains("a commit changes `.envrc`, which an apply asks about"), "{diff:?}");
    let first = session(&stage, hidden);
    let diff = sessions(&stage, "diff", &first);
    assert!(diff.stdout.contains("a commit changes `.envrc`, which an apply asks about"), "{diff:?}");
    assert_eq!(sessions(&stage, "apply", &first).code, Some(0));
    assert_eq!(tip(&stage, "main"), start);
    assert_eq!(stage.git(&["log", "--format=%s", &kept(&first, "main")]), "takes\nbrings\nstart\n");
    // The control: without that file the branch moves.
    stage.git(&["checkout", "--quiet", "a.txt"]);
    let second = session(&stage, &hidden.replace(".envrc", "env.txt"));
    assert!(sessions(&stage, "apply", &second).stdout.contains("`main` is at"));
}

/// What no apply brings does not come in a commit either, that a later one takes back.
#[test]
fn a_branch_of_which_a_commit_holds_what_no_apply_brings_is_kept_apart() {
    let taken = |brings: &str| {
        format!(
            "{brings}; git add -A; git commit -qm brings; git rm -qr more; echo b >>a.txt; git commit -qam takes"
        )
    };
    let bare = "mkdir -p more/objects more/refs; echo x >more/objects/a; echo x >more/refs/a; ";
    // Both sides of a merge hold a part of it, and the merge tells no files of its own.
    let merged = format!(
        "git checkout -qb one; echo x >HEAD; git add -A; git commit -qm one; git checkout -q main; {}git add -A; git commit -qm two; \
         git merge -qm both one; git rm -qr objects refs HEAD; git commit -qm takes",
        bare.replace("more/", "")
    );
    let cases = [
        (
            "a link out",
            taken("mkdir more; ln -s ../../out more/link"),
            "holds `more/link`, a link that leads",
        ),
        ("one to the root", taken("mkdir more; ln -s / more/link"), "holds `more/link`, a link that leads"),
        ("a repository", taken(&format!("{bare}echo x >more/HEAD")), "changes `more`, which has the shape"),
        ("one of a merge", merged, "the project itself"),
        (
            "another version control",
            taken("mkdir -p more/.hg; echo x >more/.hg/hgrc"),
            "holds `more/.hg/hgrc`",
        ),
        ("the control of links", taken("mkdir more; ln -s ../a.txt more/link"), ""),
        ("the control of repositories", taken(bare.trim_end_matches("; ")), ""),
    ];
    for (name, script, why) in cases {
        let stage = Stage::new(&[("a.txt", "a\n")]);
        let start = tip(&stage, "main");
        let session = session(&stage, &script);
        let diff = sessions(&stage, "diff", &session);
        assert!(diff.stdout.contains(why), "{name}: {diff:?}");
        assert_eq!(sessions(&stage, "apply", &session).code, Some(0), "{name}");
        assert_eq!(tip(&stage, "main") == start, !why.is_empty(), "{name}: {diff:?}");
    }
}

/// A person looks at files, and a commit can hold others: by itself, before the last one, or beside what the
/// index has.
#[test]
fn a_commit_that_holds_something_else_than_was_shown_is_kept_apart() {
    let write = "echo evil >.envrc; echo evil >a.txt; git add -A; git commit -qm x; ";
    let amended = "git add -A; git commit -qm y";
    let cases = [
        (
            "the files are others",
            "echo ok >.envrc; echo ok >a.txt",
            "does not hold what its last commit holds at",
        ),
        ("one file is another", "echo ok >a.txt", "does not hold what its last commit holds at `a.txt`"),
        ("a file is gone", "rm a.txt", "does not hold what its last commit holds at `a.txt`"),
        ("its mode is another", "chmod +x a.txt", "does not hold what its last commit holds at `a.txt`"),
        (
            "the commit before holds others",
            &format!("echo ok >.envrc; {amended}"),
            "several commits change `.envrc`",
        ),
        ("the control", "", ""),
        ("the control of two", &format!("echo ok >a.txt; {amended}"), ""),
    ];
    for (name, then, why) in cases {
        let stage = Stage::new(&[("a.txt", "a\n")]);
        let start = tip(&stage, "main");
        let session = session(&stage, &format!("{write}{then}"));
        let diff = sessions(&stage, "diff", &session).stdout;
        let Some(mut terminal) = Terminal::start(&stage, &["sessions", "apply", &session]) else { return };
        terminal.wait_for("[n]o or [d]etails: ");
        terminal.keys("y\r");
        let (code, screen) = terminal.end();
        assert_eq!(code, 0, "{name}: {screen}");
        assert!(screen.contains(why) || diff.contains(why), "{name}: {diff} {screen}");
        assert_eq!(tip(&stage, "main") == start, !why.is_empty(), "{name}: {screen}");
        let kept = stage.git(&["for-each-ref", "--format=%(refname)", "refs/bailey"]);
        assert_eq!(kept.is_empty(), why.is_empty(), "{name}: {kept}");
    }
}

/// Kills an apply, with all below it, when a file of the project is another one, or at its end.
fn killed(stage: &Stage, session: &str, path: &str) {
    let path = stage.project().join(path);
    let before = fs::read(&path).unwrap();
    let mut apply = stage.bailey(&["sessions", "apply", session]).stdout(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while fs::read(&path).is_ok_and(|now| now == before) && apply.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "the apply does nothing");
        std::thread::yield_now();
    }
    kill_below(apply.id());
    apply.kill().unwrap();
    apply.wait().unwrap();
}

#[test]
fn a_killed_apply_of_commits_is_ended_by_the_next() {
    for path in ["a.txt", ".git/index", ".git/refs/heads/main"] {
        let stage = Stage::new(&[("a.txt", "a\n"), ("gone.txt", "gone\n")]);
        let start = tip(&stage, "main");
        let session = session(&stage, TWO);
        killed(&stage, &session, path);
        let main = tip(&stage, "main");
        stage.git(&["fsck", "--strict"]);
        let applied = sessions(&stage, "apply", &session);
        assert!(matches!(applied.code, Some(0 | 1)), "{path}: {applied:?}");
        let log = stage.git(&["log", "--format=%s", "main"]);
        assert_eq!(log, "second of two\nfirst of two\nstart\n", "{path}: it was at {main}: {applied:?}");
        assert_eq!(status(&stage), "", "{path}");
        let left = stage.git(&["status", "--porcelain", "--ignored"]);
        assert_eq!(left, "", "{path}");
        assert_eq!(sessions(&stage, "undo", &session).code, Some(0), "{path}");
        assert_eq!((tip(&stage, "main"), status(&stage).as_str()), (start, ""), "{path}");
    }
}

#[test]
fn the_first_commit_of_a_repository_arrives_and_goes_again() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    fs::remove_dir_all(stage.project().join(".git")).unwrap();
    stage.git(&["init", "--quiet", "--initial-branch=main"]);
    let session = session(&stage, "echo b >b.txt; git add .; git commit -qm first");
    let applied = sessions(&stage, "apply", &session);
    assert!(applied.stdout.contains("`main` is at"), "{applied:?}");
    assert_eq!((stage.git(&["log", "--format=%s"]), status(&stage)), ("first\n".into(), String::new()));
    let undone = sessions(&stage, "undo", &session);
    assert!(undone.stdout.contains("`main` is gone again"), "{undone:?}");
    assert_eq!(status(&stage), "?? a.txt\n");
}

#[test]
fn commits_arrive_where_gits_index_is_split() {
    let stage = Stage::new(&[("a.txt", "a\n"), ("gone.txt", "gone\n"), ("other.txt", "other\n")]);
    stage.git(&["config", "core.splitIndex", "true"]);
    stage.git(&["update-index", "--split-index"]);
    let session = session(&stage, TWO);
    stage.write("other.txt", "staged\n");
    stage.git(&["add", "other.txt"]);
    let (start, before) = (tip(&stage, "main"), status(&stage));
    let applied = sessions(&stage, "apply", &session);
    assert!(applied.code == Some(0) && applied.stdout.contains("applied: `main` is at "), "{applied:?}");
    assert_eq!(status(&stage), before);
    stage.git(&["fsck", "--strict"]);
    let undone = sessions(&stage, "undo", &session);
    assert!(undone.stdout.contains("`main` is back at"), "{undone:?}");
    assert_eq!((tip(&stage, "main"), status(&stage)), (start, before));
}

#[test]
fn what_git_tracks_no_longer_stays_and_its_branch_moves() {
    let stage = Stage::new(&[("a.txt", "a\n"), ("build/x.o", "object\n")]);
    let untrack =
        "git rm -q --cached build/x.o; echo build/ >.gitignore; git add .gitignore; git commit -qm untracks";
    let first = session(&stage, untrack);
    let applied = sessions(&stage, "apply", &first);
    assert!(applied.stdout.contains("`main` is at"), "{applied:?}");
    assert_eq!((status(&stage), stage.read("build/x.o")), (String::new(), "object\n".into()));
    assert_eq!(stage.git(&["ls-files"]), ".gitignore\na.txt\n");
    // The control: what the session deleted, and a person changed meanwhile, stays, and the branch with it.
    let start = tip(&stage, "main");
    let second = session(&stage, "git rm -q a.txt; git commit -qm deletes");
    stage.write("a.txt", "by hand\n");
    let applied = sessions(&stage, "apply", &second);
    assert!(applied.stdout.contains("does not hold what its last commit holds at `a.txt`"), "{applied:?}");
    assert_eq!((tip(&stage, "main"), stage.read("a.txt")), (start, "by hand\n".into()));
}

/// On some file systems every file looks like a program, and git is told to take no notice.
#[test]
fn where_git_takes_no_notice_of_modes_they_hold_no_branch_up() {
    for is_noticed in [false, true] {
        let stage = Stage::new(&[("a.txt", "a\n")]);
        let start = tip(&stage, "main");
        fs::set_permissions(stage.project().join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
        stage.git(&["config", "core.fileMode", &is_noticed.to_string()]);
        // With what git notices, the mode stays out of the commit all the same.
        let session = session(&stage, "echo more >>a.txt; git -c core.fileMode=false commit -qam changes");
        let applied = sessions(&stage, "apply", &session);
        assert_eq!(tip(&stage, "main") == start, is_noticed, "{applied:?}");
    }
}

/// Where else its objects come from is not the session's to say.
#[test]
fn a_store_that_borrows_from_others_is_not_read() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let (start, commit) = (tip(&stage, "main"), "echo more >>a.txt; git commit -qam inside; ");
    let borrowing = "mkdir -p .git/objects/info; echo /var/tmp >.git/objects/info/alternates";
    let first = session(&stage, &format!("{commit}{borrowing}"));
    let diff = sessions(&stage, "diff", &first);
    assert!(diff.stdout.contains("its store of objects names others"), "{diff:?}");
    let applied = sessions(&stage, "apply", &first);
    assert_eq!((tip(&stage, "main"), stage.read("a.txt")), (start, "a\nmore\n".into()), "{applied:?}");
    // The control.
    stage.git(&["checkout", "--quiet", "a.txt"]);
    let second = session(&stage, commit);
    assert!(sessions(&stage, "apply", &second).stdout.contains("`main` is at"));
}

/// What a submodule committed stays in the session, so a branch that names it would name what nobody has.
#[test]
fn a_branch_that_names_a_submodules_commit_is_kept_apart() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let start = tip(&stage, "main");
    let script = "git init -q sub; git -C sub commit -q --allow-empty -m inner; git add sub 2>/dev/null; echo more >>a.txt; git commit -qam names";
    let first = session(&stage, script);
    let applied = sessions(&stage, "apply", &first);
    assert!(applied.stdout.contains("they name a commit of a submodule"), "{applied:?}");
    assert_eq!((tip(&stage, "main"), stage.read("a.txt")), (start, "a\nmore\n".into()));
    // The control.
    stage.git(&["checkout", "--quiet", "a.txt"]);
    let second = session(&stage, "echo more >>a.txt; git commit -qam plain");
    assert!(sessions(&stage, "apply", &second).stdout.contains("`main` is at"));
}

#[test]
fn an_undo_after_the_layer_was_thrown_away_moves_the_branch_back() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let start = tip(&stage, "main");
    let session = session(&stage, "echo more >>a.txt; git commit -qam inside");
    assert_eq!(sessions(&stage, "apply", &session).code, Some(0));
    assert_eq!(sessions(&stage, "discard", &session).code, Some(0));
    let undone = sessions(&stage, "undo", &session);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert_eq!(
        (tip(&stage, "main"), status(&stage), stage.read("a.txt")),
        (start, String::new(), "a\n".into())
    );
    // What moved on since is not taken back.
    let session = self::session(&stage, "echo more >>a.txt; git commit -qam inside");
    assert_eq!(sessions(&stage, "apply", &session).code, Some(0));
    stage.git(&["commit", "--quiet", "--allow-empty", "--message", "on top"]);
    let top = tip(&stage, "main");
    let undone = sessions(&stage, "undo", &session);
    assert!(undone.stdout.contains("refs/heads/main: it has moved since"), "{undone:?}");
    assert_eq!(tip(&stage, "main"), top);
    // Nor does the branch move without the index, where what was staged since is in the way of that.
    stage.git(&["reset", "--quiet", "--hard", "HEAD~"]);
    let before = tip(&stage, "main");
    stage.write("a.txt", "staged\n");
    stage.git(&["add", "a.txt"]);
    let undone = sessions(&stage, "undo", &session);
    assert!(undone.stdout.contains("what was staged is in the way"), "{undone:?}");
    assert_eq!((tip(&stage, "main"), status(&stage).as_str()), (before, "M  a.txt\n"));
}

/// A session with more branches than are looked at lost the one that it was on: the first by name were taken.
#[test]
fn the_branch_that_a_session_is_on_comes_first_however_many_there_are() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let session = session(
        &stage,
        "for n in $(seq 60); do git update-ref refs/heads/b$n $(git commit-tree -m b$n -p HEAD HEAD^{tree}); done
         for n in $(seq 120); do git update-ref refs/heads/main $(git commit-tree -m c$n -p HEAD HEAD^{tree}); done",
    );
    let diff = sessions(&stage, "diff", &session);
    assert!(
        diff.stdout.contains("120 commits on `main`: an apply") && diff.stdout.contains("and 70 more"),
        "{diff:?}"
    );
    let applied = sessions(&stage, "apply", &session);
    assert!(applied.stdout.contains("`main` is at"), "{applied:?}");
    assert_eq!(stage.git(&["log", "--format=%s", "-1"]), "c120\n");
}
