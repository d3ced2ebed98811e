//! The main job in the projects and on the machines that people have: packages of a monorepo, paths through
//! links, directories with names of secrets, a git identity that stands in the home, tools that lie there.

use crate::{
    stage::{Ran, Stage},
    workspace::newest,
};
use bailey_testkit::Reply;
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

/// Replies that call these tools one after the other.
fn script(calls: &[(&str, Value)]) -> Vec<Reply> {
    let call = |(number, (tool, arguments)): (usize, &(&str, Value))| {
        Reply::calls([(format!("c{number}").as_str(), *tool, arguments.clone())])
    };
    calls.iter().enumerate().map(call).chain([Reply::text("done")]).collect()
}

/// The binary in this directory, as a shell there would start it.
fn at(stage: &Stage, directory: &Path, words: &[&str]) -> Command {
    let mut command = stage.bailey(words);
    command.current_dir(directory).env("PWD", directory);
    command
}

const RUN: &[&str] = &["--json", "run", "--model", "test/model", "--approve", "never", "do it"];

#[test]
fn a_session_stands_where_its_person_does() {
    let stage = Stage::new(&[
        ("AGENTS.md", "guide of all\n"),
        ("packages/AGENTS.md", "guide of packages\n"),
        ("packages/web/AGENTS.md", "guide of web\n"),
        ("packages/web/src/i.js", "needle\n"),
        ("packages/api/i.js", "needle of api\n"),
        ("package.json", "{}"),
    ]);
    let web = stage.project().join("packages/web");
    let calls = [
        ("command_run", json!({ "command": "pwd" })),
        ("fs_read", json!({ "path": "src/i.js" })),
        ("fs_read", json!({ "path": "../api/i.js" })),
        ("search_grep", json!({ "pattern": "needle" })),
        ("fs_write", json!({ "path": "new.txt", "content": "new\n" })),
        ("command_run", json!({ "command": "pwd", "cwd": "src" })),
    ];
    let model = stage.model(script(&calls));
    let ran = Ran::of(at(&stage, &web, RUN).output().unwrap());
    let results = ran.results();
    assert!(results[0].ends_with(&web.display().to_string()), "{ran:?}");
    assert!(results[1].contains("needle") && results[2].contains("needle of api"), "{ran:?}");
    assert!(results[3].contains("src/i.js:1: needle") && !results[3].contains("api"), "{ran:?}");
    assert!(results[5].ends_with(&web.join("src").display().to_string()), "{ran:?}");
    let told = model.requests()[0].body.clone();
    for said in [
        "guide of all",
        "guide of packages",
        "guide of web",
        "Started in: ",
        "`packages/web` of the workspace",
    ] {
        assert!(told.contains(said), "{said}: {told}");
    }
    let session = newest(&stage);
    let diff = stage.ran(&["--json", "sessions", "diff", &session]);
    assert!(diff.stdout.contains("packages/web/new.txt"), "{diff:?}");

    // Who goes on with it, from wherever, goes on there.
    let _model = stage.model(script(&calls[..1]));
    let resume =
        ["--json", "sessions", "resume", &session, "--model", "test/model", "--approve", "never", "go on"];
    let ran = Ran::of(at(&stage, &stage.project(), &resume).output().unwrap());
    assert!(ran.results().last().unwrap().ends_with(&web.display().to_string()), "{ran:?}");
    // The control: another session, begun at the root.
    let model = stage.model(script(&calls[..1]));
    let ran = Ran::of(at(&stage, &stage.project(), RUN).output().unwrap());
    assert!(ran.results()[0].ends_with(&stage.project().display().to_string()), "{ran:?}");
    let told = model.requests()[0].body.clone();
    assert!(!told.contains("Started in: ") && !told.contains("guide of web"), "{told}");
}

#[test]
fn both_spellings_of_a_path_lead_to_the_workspace_and_nowhere_else() {
    let stage = Stage::new(&[("a.txt", "hello\n")]);
    let folder = fs::canonicalize(stage.folder()).unwrap();
    fs::create_dir(folder.join("u")).unwrap();
    symlink(&folder, folder.join("u/work")).unwrap();
    let linked = folder.join("u/work/project");
    fs::write(folder.join("secret"), "swordfish\n").unwrap();
    symlink(linked.join("a.txt"), stage.project().join("absolute")).unwrap();
    let tool = format!("#!{}/interpreter\n", linked.display());
    stage.write("interpreter", "#!/bin/sh\necho it ran\n");
    stage.write("tool", &tool);
    for name in ["interpreter", "tool"] {
        assert!(Command::new("chmod").arg("+x").arg(stage.project().join(name)).status().unwrap().success());
    }
    let own = |name: &str| linked.join(name).display().to_string();
    let look =
        format!("cat absolute {}; cat {}/u/work/secret {}", own("a.txt"), folder.display(), own("../secret"));
    let outside = Command::new("sh").args(["-c", &look]).current_dir(stage.project()).output().unwrap();
    assert_eq!(outside.stdout, b"hello\nhello\nswordfish\nswordfish\n", "the control");
    let calls = [
        ("command_run", json!({ "command": look })),
        ("command_run", json!({ "command": "./tool" })),
        ("fs_read", json!({ "path": own("a.txt") })),
        ("fs_write", json!({ "path": own("new.txt"), "content": "new\n" })),
        ("command_run", json!({ "command": "pwd", "cwd": own("") })),
        ("fs_read", json!({ "path": own("../secret") })),
    ];
    let _model = stage.model(script(&calls));
    let ran = Ran::of(at(&stage, &linked, RUN).output().unwrap());
    let results = ran.results();
    assert!(results[0].contains("hello\nhello") && !results[0].contains("swordfish"), "{ran:?}");
    assert!(results[1].contains("it ran"), "{ran:?}");
    assert!(results[2].contains("hello"), "{ran:?}");
    assert!(results[4].ends_with(&stage.project().display().to_string()), "{ran:?}");
    assert!(!results[5].contains("swordfish"), "{ran:?}");
    let diff = stage.ran(&["--json", "sessions", "diff", &newest(&stage)]);
    assert!(diff.stdout.contains("\"new.txt\""), "{diff:?}");
}

/// A home with this configuration of git, and nothing else.
fn home_with(stage: &Stage, config: &str) -> PathBuf {
    let home = fs::canonicalize(stage.folder()).unwrap().join("user");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join(".gitconfig"), config).unwrap();
    home
}

/// In that home, and with nothing else that git is told.
fn in_home(mut command: Command, home: &Path) -> Ran {
    for name in
        ["XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"]
    {
        command.env_remove(name);
    }
    Ran::of(command.env("HOME", home).env("GIT_CONFIG_SYSTEM", "/dev/null").output().unwrap())
}

#[test]
fn commits_bear_the_persons_name_and_nothing_else_of_their_git_goes_in() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let commit =
        "echo b >> a.txt; git commit -qam one && git log -1 --format='%an <%ae> by %cn'; git config --list";
    let keep = ["sandbox", "run", "--keep", "--", "sh", "-c", commit];
    let nobody = home_with(&stage, "");
    let ran = in_home(stage.bailey(&keep), &nobody);
    assert!(ran.stderr.contains("tell me who you are"), "the control: {ran:?}");
    let doctor = in_home(stage.bailey(&["doctor", "--offline"]), &nobody);
    assert!(doctor.stdout.contains("git config --global user.name NAME"), "{doctor:?}");

    let config = "[user]\nname = Ann Lee\nemail = ann@example.com\nsigningkey = KEY\n[credential]\nhelper = store\n\
                  [commit]\ngpgSign = true\n[core]\nhooksPath = ~/hooks\n[alias]\nci = commit\n";
    let home = home_with(&stage, config);
    let ran = in_home(stage.bailey(&keep), &home);
    assert!(ran.stdout.starts_with("Ann Lee <ann@example.com> by Ann Lee\n"), "{ran:?}");
    for other in ["credential.helper", "alias.ci", "signingkey", "hookspath"] {
        assert!(!ran.stdout.contains(other), "{other}: {ran:?}");
    }
    let diff = in_home(stage.bailey(&["sessions", "diff", &newest(&stage)]), &home);
    let differs =
        "differ from your own: they are unsigned, though commit.gpgSign is on; the hooks in `~/hooks`";
    assert!(diff.stdout.replace("\n    ", " ").contains(differs), "{diff:?}");
    let doctor = in_home(stage.bailey(&["doctor", "--offline"]), &home);
    assert!(doctor.stdout.contains("commits are by Ann Lee <ann@example.com>"), "{doctor:?}");

    // The repository's own settings come first.
    stage.git(&["config", "user.name", "Ann of this project"]);
    let ran = in_home(stage.bailey(&keep), &home);
    assert!(
        ran.stdout.starts_with("Ann of this project <ann@example.com> by Ann of this project\n"),
        "{ran:?}"
    );
}

#[test]
fn names_of_secrets_are_names_of_files() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    for path in [".env/lib/code.py", "certs.pem/a.txt", "key.key/b.txt", ".env/.env", "certs.pem/server.key"]
    {
        stage.write(path, &format!("content of {path}\n"));
    }
    let look = "cat .env/lib/code.py certs.pem/a.txt key.key/b.txt .env/.env certs.pem/server.key";
    let outside = Command::new("sh").args(["-c", look]).current_dir(stage.project()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&outside.stdout).lines().count(), 5, "the control");
    let calls = [
        ("command_run", json!({ "command": look })),
        ("fs_read", json!({ "path": ".env/lib/code.py" })),
        ("fs_read", json!({ "path": ".env/.env" })),
        ("search_grep", json!({ "pattern": "content" })),
    ];
    let (ran, _model) = stage.task(script(&calls), &[]);
    let results = ran.results();
    for seen in ["content of .env/lib/code.py", "content of certs.pem/a.txt", "content of key.key/b.txt"] {
        assert!(results[0].contains(seen), "{ran:?}");
    }
    assert!(results[1].contains("content of"), "{ran:?}");
    for secret in ["content of .env/.env", "content of certs.pem/server.key"] {
        assert!(!results.iter().any(|result| result.contains(secret)), "{secret}: {ran:?}");
    }
}

#[test]
fn a_directory_or_what_a_pattern_names_is_revealed_and_nothing_beside_it() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    for path in ["tests/certs/one.pem", "tests/certs/deep/two.pem", "tests/other.pem", ".env"] {
        stage.write(path, &format!("content of {path}\n"));
    }
    stage.git(&["add", "--all"]);
    stage.git(&["commit", "--quiet", "--message", "certificates"]);
    let look = || script(&[("command_run", json!({ "command": "cat $(git ls-files)" }))]);
    let cases: [(&str, &[&str]); 4] = [
        ("tests/certs", &["tests/certs/one.pem", "tests/certs/deep/two.pem"]),
        ("tests/certs/*.pem", &["tests/certs/one.pem"]),
        ("tests/**/*.pem", &["tests/certs/one.pem", "tests/certs/deep/two.pem", "tests/other.pem"]),
        (".env", &[".env"]),
    ];
    for (named, shown) in cases {
        let (ran, _model) = stage.task(look(), &["--reveal", named]);
        let seen = ran.results().join("\n");
        for path in ["tests/certs/one.pem", "tests/certs/deep/two.pem", "tests/other.pem", ".env"] {
            let is_seen = seen.contains(&format!("content of {path}\n"));
            assert_eq!(is_seen, shown.contains(&path), "{named} and {path}: {ran:?}");
        }
    }
    for named in ["tests/*.key", "nothing-there"] {
        let (ran, _model) = stage.task(look(), &["--reveal", named]);
        assert!(ran.code == Some(1) && ran.stderr.contains(named), "{named}: {ran:?}");
    }
    fs::create_dir(stage.project().join("plain")).unwrap();
    let (ran, _model) = stage.task(look(), &["--reveal", "plain"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("nothing to reveal"), "{ran:?}");
}

#[test]
fn a_directory_of_the_owners_is_read_as_a_project_is() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let home = home_with(&stage, "");
    for path in ["sdk/bin/tool", "sdk/.env", "sdk/keys/server.pem", "other/x"] {
        fs::create_dir_all(home.join(path).parent().unwrap()).unwrap();
        fs::write(home.join(path), format!("#!/bin/sh\necho content of {path}\n")).unwrap();
    }
    assert!(Command::new("chmod").arg("+x").arg(home.join("sdk/bin/tool")).status().unwrap().success());
    let look =
        "cd; cat sdk/bin/tool sdk/.env sdk/keys/server.pem other/x; echo new > sdk/new || echo kept; tool";
    let path = format!("{}:{}", home.join("sdk/bin").display(), std::env::var("PATH").unwrap());
    let inside = |config: &str| {
        fs::create_dir_all(stage.home()).unwrap();
        fs::write(stage.home().join("config.toml"), config).unwrap();
        let mut command = stage.bailey(&["sandbox", "run", "--", "sh", "-c", look]);
        command.env("PATH", &path);
        in_home(command, &home)
    };
    let shown = inside("[sandbox]\nread = [\"~/sdk\"]\n");
    assert_eq!(
        shown.stdout, "#!/bin/sh\necho content of sdk/bin/tool\nkept\ncontent of sdk/bin/tool\n",
        "{shown:?}"
    );
    assert!(!home.join("sdk/new").exists());
    let control = inside("");
    assert!(
        !control.stdout.contains("content of"),
        "the control: without the setting nothing of it is there: {control:?}"
    );
    let control =
        Command::new("sh").args(["-c", look]).env("HOME", &home).env("PATH", &path).output().unwrap();
    let control = String::from_utf8_lossy(&control.stdout).into_owned();
    assert!(control.contains("content of sdk/.env") && control.contains("content of other/x"), "{control}");

    fs::create_dir_all(home.join(".ssh")).unwrap();
    for refused in [
        "/",
        "~",
        "~/",
        "~/.ssh",
        "~/.gnupg/x",
        "~/.aws",
        "~/.config",
        "/etc",
        "/home",
        "~/sdk/../.ssh",
        "sdk",
    ] {
        let ran = inside(&format!("[sandbox]\nread = [\"~/sdk\", \"{refused}\"]\n"));
        assert!(ran.code != Some(0) && ran.stderr.contains(&format!("`{refused}`")), "{refused}: {ran:?}");
        assert!(ran.stderr.contains("config.toml:2"), "{refused}: {ran:?}");
    }
    let own = format!("[sandbox]\nread = [\"{}\"]\n", fs::canonicalize(stage.home()).unwrap().display());
    assert!(inside(&own).stderr.contains("Bailey's own home"));
    symlink(home.join(".ssh"), home.join("link")).unwrap();
    assert!(inside("[sandbox]\nread = [\"~/link\"]\n").stderr.contains("keys and passwords"));
    let missing = inside("[sandbox]\nread = [\"~/gone\"]\n");
    assert!(missing.stdout.contains("kept") || missing.code.is_some(), "{missing:?}");

    // A project cannot ask for a directory.
    stage.write(".bailey/config.toml", "[sandbox]\nread = [\"~/sdk\"]\n");
    let ran = inside("");
    assert!(
        ran.stderr.contains("a project may not set `sandbox`") && !ran.stdout.contains("content of"),
        "{ran:?}"
    );
}
