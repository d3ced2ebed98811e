//! The built-in rules, one by one, each with a control that they alone do it.

use crate::support::*;
use bailey_policy::{
    Answer::{self, Allow, Deny, Review},
    Condition, Glob, Names, Places, Policy, RUN_BY_HOST, Rule, SECRET_LOOKING, built_in_rules,
};
use bailey_protocol::{
    Action, Amendment, Digest, Kind, Marked,
    MergeKind::{Apply, Discard, Undo},
    Role::{self, Agent, Owner},
    WsPath,
};

/// Rules that allow everything.
fn all() -> Vec<Rule> {
    vec![rule("all", Allow), named(Allow, Condition::default())]
}

/// A rule that speaks of the agent's own file by its action's name.
fn named(answer: Answer, matches: Condition) -> Rule {
    Rule {
        matches: Condition { action: Some([Kind::Read, Kind::Adapt].into()), ..matches },
        ..rule("named", answer)
    }
}

/// Built-in rules over a file that allows everything.
fn guarded() -> Policy {
    Policy::new(built_in_rules(), all())
}

#[track_caller]
fn check(role: Role, action: Action, expected: Answer, because: &str) {
    let shown = action.target();
    let decided = decide(&guarded(), role, action.clone());
    assert_eq!(answer(&decided), expected, "{shown}: {:#?}", decided.reasons);
    assert!(said(&decided, because), "{shown}: {:#?}", decided.reasons);
    let without = built_in_rules()
        .into_iter()
        .filter(|rule| rule.name != because && rule.name != "bailey-home")
        .collect();
    let decided = decide(&Policy::new(without, all()), role, action);
    assert!(answer(&decided) < expected, "control, without `{because}`: {shown}: {:#?}", decided.reasons);
}

#[test]
fn at_most_a_dozen_and_all_well_formed() {
    let rules = built_in_rules();
    assert!(rules.len() <= 12);
    for rule in &rules {
        let conditions = rule.except.iter().chain([&rule.matches]);
        for glob in conditions.flat_map(|condition| condition.path.iter().flatten()) {
            assert_ne!(glob.as_str(), "/**", "a malformed glob became everything in `{}`", rule.name);
        }
    }
}

/// Text that the project's file loses by an apply cannot be brought back.
#[test]
fn redaction_marks() {
    let marked = |direction| match merge(direction, &["/home/ann/proj/a", "/home/ann/proj/b"]) {
        Action::Merge(mut merge) => {
            merge.files[1].marks = vec![Marked { mark: "[redacted:x]".into(), lines: vec![3] }];
            Action::Merge(merge)
        }
        other => other,
    };
    check(Owner, marked(Apply), Review, "redaction-marks");
    let decided = decide(&guarded(), Owner, marked(Apply));
    assert_eq!(decided.red, ["/home/ann/proj/b".into()]);
    assert!(decided.reasons[0].text.ends_with(": `b`"), "{:?}", decided.reasons);
    for direction in [Undo, Discard] {
        assert_eq!(answer(&decide(&guarded(), Owner, marked(direction))), Allow, "control");
    }
}

#[test]
fn policy_files() {
    for role in [Owner, Agent] {
        check(role, read("/home/ann/.bailey/policy/10.toml"), Deny, "policy-files");
        check(role, change(&["/home/ann/.bailey/policy/new.yaml"]), Deny, "policy-files");
        let list = Action::List { path: "/home/ann/.bailey/policy".into() };
        check(role, list, Deny, "policy-files");
    }
}

#[test]
fn only_the_owner_changes_the_rules_and_is_asked() {
    let amend = || {
        let (old, files, from) = (None, Digest::of(b"files"), None);
        let path = "/home/ann/.bailey/policy/own.toml".into();
        Action::Amend(Amendment { path, old, new: Some("".into()), files, from, to: Digest::of(b"to") })
    };
    for role in Role::ALL.into_iter().filter(|role| *role != Owner) {
        check(role, amend(), Deny, "policy-files");
    }
    check(Owner, amend(), Review, "configuration");
    let alone = Policy::new(Vec::new(), vec![rule("all", Allow)]);
    assert_eq!(answer(&decide(&alone, Agent, amend())), Allow, "the control: nothing else denies it");
}

#[test]
fn an_agent_reaches_its_own_file_by_its_own_action_alone() {
    let adapt = |path: &str| adapt(&format!("/home/ann/.bailey/{path}"), 0);
    let own = "/home/ann/.bailey/agent.toml";
    assert_eq!(
        answer(&decide(&guarded(), Agent, adapt("agent.toml"))),
        Allow,
        "the control: by that one it does"
    );
    for path in ["config.toml", "trust/x", "SOUL.md", "x/agent.toml", "agent.toml/x"] {
        check(Agent, adapt(path), Deny, "bailey-home");
    }
    for role in Role::ALL.into_iter().filter(|role| ![Owner, Agent].contains(role)) {
        check(role, adapt("agent.toml"), Deny, "bailey-home");
    }
    for action in [change(&[own]), read(own), Action::List { path: own.into() }, merge(Apply, &[own])] {
        check(Agent, action, Deny, "bailey-home");
    }
}

/// A rule of an owner who never heard of that action says nothing about it.
#[test]
fn an_allow_that_names_no_kinds_of_action_is_no_word_about_the_agents_own_file() {
    let with =
        |rules: Vec<Rule>, action| answer(&decide(&Policy::new(built_in_rules(), rules), Agent, action));
    let own = || adapt("/home/ann/.bailey/agent.toml", 0);
    let all = Condition::default();
    let role = Condition { role: Some([Agent].into()), ..all.clone() };
    let path = Condition { path: Some([Glob::new("{bailey}/**").unwrap()].into()), ..all.clone() };
    for matches in [all, role, path] {
        let silent = Rule { matches: matches.clone(), ..rule("silent", Allow) };
        assert_eq!(with(vec![silent.clone()], own()), Deny, "{matches:?}");
        assert_eq!(with(vec![named(Allow, matches.clone())], own()), Allow, "the control: {matches:?}");
        for strict in [Review, Deny] {
            let strictly = Rule { answer: strict, ..silent.clone() };
            let both = vec![strictly, named(Allow, Condition::default())];
            assert_eq!(with(both, own()), strict, "whoever asks or denies means all: {matches:?}");
        }
    }
    assert_eq!(with(vec![rule("all", Allow)], read("/home/ann/proj/a")), Allow, "all others it means");
}

#[test]
fn state_databases() {
    check(Owner, read("/home/ann/.bailey/journal.db"), Deny, "state-databases");
    check(Owner, change(&["/home/ann/.bailey/journal.db-wal"]), Deny, "state-databases");
    check(Owner, read("/home/ann/.bailey/backups/1/journal.db"), Deny, "state-databases");
}

#[test]
fn configuration() {
    check(Owner, change(&["/home/ann/.bailey/config.toml"]), Review, "configuration");
    check(Owner, read("/home/ann/.bailey/SOUL.md"), Review, "configuration");
    for path in [
        "/home/ann/.bailey/config.toml",
        "/home/ann/.bailey/SOUL.md",
        "/home/ann/.bailey/tools/x",
        "/home/ann/.bailey",
    ] {
        for action in [read(path), change(&[path])] {
            check(Agent, action, Deny, "bailey-home");
        }
    }
    assert_eq!(
        answer(&decide(&guarded(), Agent, read("/home/ann/.bailey2/x"))),
        Allow,
        "a name alike is another place"
    );
}

#[test]
fn binaries() {
    check(Owner, change(&["/opt/bailey/bin/bailey"]), Deny, "binaries");
    check(Owner, merge(Apply, &["/home/ann/proj/target/bailey"]), Deny, "binaries");
    assert_eq!(answer(&decide(&guarded(), Agent, read("/opt/bailey/bin/bailey"))), Allow);
}

#[test]
fn daemon_files() {
    for path in
        ["bailey.sock", "daemon.lock", "daemon.pid", "health.json", "run/egress.sock", "sessions/1/x.sock"]
    {
        check(Owner, read(&format!("/home/ann/.bailey/{path}")), Deny, "daemon-files");
    }
    check(Agent, read("/proc/4711/mem"), Deny, "daemon-files");
}

#[test]
fn home_secrets() {
    for path in [
        ".ssh/id_ed25519",
        ".aws/credentials",
        ".gnupg/x",
        ".config/gcloud/x/y",
        ".kube/config",
        ".docker/config.json",
        ".mozilla/firefox/p/logins.json",
        ".config/google-chrome-beta/Default/Cookies",
        ".bash_history",
        ".zsh_history",
        ".netrc",
        ".npmrc",
        ".cargo/credentials.toml",
        ".bailey/.env",
    ] {
        for action in [read(&format!("/home/ann/{path}")), change(&[&format!("/home/ann/{path}")])] {
            check(Owner, action, Deny, "home-secrets");
        }
    }
    check(Agent, Action::List { path: "/home/ann/.ssh".into() }, Deny, "home-secrets");
    assert_eq!(answer(&decide(&guarded(), Agent, read("/home/ann/.sshx/id"))), Allow);
    check(Agent, read("/home/ann/proj/.npmrc"), Review, "workspace-secrets");
    assert_eq!(answer(&decide(&guarded(), Agent, read("/home/ann/proj/.my_history.rs"))), Allow);
}

/// Nor does a file stay revealed for a command.
#[test]
fn under_compliance_nothing_stays_revealed() {
    let revealed = [WsPath::from("/home/ann/proj/.env")];
    for (policy, is_asked) in [(guarded(), false), (guarded().with_compliance(), true)] {
        let again = decide_in(&policy, &places(), &revealed, Agent, read(&revealed[0].0));
        assert_eq!(answer(&again) == Review, is_asked, "{again:?}");
        let command = decide_in(&policy, &places(), &revealed, Agent, exec(&["ls"]));
        assert_eq!(isolation(&command).revealed.is_empty(), is_asked, "{command:?}");
    }
}

#[test]
fn workspace_secrets_are_reviewed_until_revealed() {
    let env = WsPath::from("/home/ann/proj/.env");
    check(Agent, read(&env.0), Review, "workspace-secrets");
    let decided = decide(&guarded(), Agent, read(&env.0));
    assert_eq!(
        decided.reasons[0].text,
        "looks like a secret; it is masked until you reveal it: with a yes, or with `--reveal PATH`"
    );
    assert_eq!(isolation(&decided).revealed.as_slice(), std::slice::from_ref(&env));

    let other = WsPath::from("/home/ann/proj/other.pem");
    let revealed = [other.clone(), env.clone()];
    let decided = decide_in(&guarded(), &places(), &revealed, Agent, read(&env.0));
    assert_eq!(answer(&decided), Allow);
    assert_eq!(isolation(&decided).revealed, revealed);
    let decided = decide_in(&guarded(), &places(), std::slice::from_ref(&other), Agent, read(&env.0));
    assert_eq!(isolation(&decided).revealed, [other.clone(), env]);
    let decided = decide_in(&guarded(), &places(), std::slice::from_ref(&other), Agent, exec(&["make"]));
    assert_eq!(isolation(&decided).revealed, [other]);
}

#[test]
fn secret_looking_names() {
    assert_eq!(SECRET_LOOKING[0], ".env");
    let (names, places) = (Names::secret_looking(), places());
    let looks = |path: &str| names.contains(&WsPath(format!("/home/ann/proj/{path}")), &places);
    for path in [
        ".env",
        "a/b/.env",
        ".env.local",
        "prod.env",
        "tls/server.key",
        "id_rsa",
        "x/.aws/credentials",
        "p.tfstate",
        "cookies.sqlite",
        ".npmrc",
        "group_vars/all/vault.yml",
        "wp-config.php",
        "config/database.yml",
        "local.settings.json",
        ".Renviron",
        "web/sites/default/settings.php",
        ".bash_history",
        ".ENV",
        "Prod.Env",
        "ID_RSA",
        "tls/SERVER.KEY",
        "x/.AWS/Credentials",
        "Vault.YML",
        ".renviron",
        "WP-Config.php",
    ] {
        assert!(looks(path), "{path}");
    }
    for path in [
        ".ENV.Example",
        "database.yml.example",
        "wp-config-sample.php",
        ".env.example",
        "x/.env.sample",
        "environment.rs",
        "id_rsa.pub",
        "src/key.rs",
        "certs/cacert.pem",
    ] {
        assert!(!looks(path), "{path}");
    }
    assert!(!names.contains(&"/home/ann/else/.env".into(), &places), "only the workspace's");
}

#[test]
fn files_that_the_host_runs() {
    let red = [
        "build.rs",
        "crates/x/build.rs",
        ".cargo/config.toml",
        "rust-toolchain.toml",
        "tests/conftest.py",
        "setup.py",
        "Makefile",
        "package.json",
        ".npmrc",
        ".husky/pre-commit",
        ".pre-commit-config.yaml",
        ".tool-versions",
        ".devcontainer/devcontainer.json",
        ".github/workflows/ci.yml",
        ".gitlab-ci.yml",
        ".gitattributes",
        ".gitmodules",
        ".claude/settings.json",
        ".cursor/mcp.json",
        ".envrc",
        ".vscode/tasks.json",
        "AGENTS.md",
        ".husky",
        "vite.config.mts",
        "eslint.config.cts",
        "vite.config.js",
        ".prettierrc.js",
        ".stylelintrc.js",
        ".prettierrc.mjs",
        "karma.conf.js",
        ".pnp.cjs",
        ".pnp.loader.mjs",
        "Directory.Build.props",
        "src/app.csproj",
        "app.fsproj",
        "a.targets",
        "nuget.config",
        "NuGet.Config",
        "Package.swift",
        "build.zig",
        "build.zig.zon",
        "dune",
        "sub/dune-project",
        "build.sc",
        "SConstruct",
        "wscript",
        "Podfile",
        "Guardfile",
        "tasks.py",
        "magefile.go",
        "mypy.ini",
        ".flake8",
        ".coveragerc",
        ".rspec",
        ".lvimrc",
        "Tiltfile",
        ".justfile",
        "JUSTFILE",
        ".dir-locals-2.el",
        "binding.gyp",
        "tools/bazel",
        "sub/tools/bazel",
        "gradle.properties",
        "CMakePresets.json",
        ".Rprofile",
        ".run/tests.run.xml",
        "hatch_build.py",
        ".rubocop.yml",
        ".rubocop_todo.yml",
        ".prettierrc.json",
        ".lfsconfig",
        "phpunit.xml.dist",
        ".formatter.exs",
        ".clangd",
        "app.xcodeproj/project.pbxproj",
        ".config/mise/config.toml",
        ".latexmkrc",
        "ansible.cfg",
        ".kiro/hooks/a.json",
    ];
    for path in red {
        let full = format!("/home/ann/proj/{path}");
        check(Owner, merge(Apply, &["/home/ann/proj/src/a.rs", &full]), Review, "run-by-host");
        let decided = decide(&guarded(), Owner, merge(Apply, &["/home/ann/proj/src/a.rs", &full]));
        assert_eq!(
            decided.reasons[0].text,
            format!("programs outside the walls run or obey this file later: `{path}`")
        );
        assert_eq!(answer(&decide(&guarded(), Owner, merge(Discard, &[&full]))), Allow);
        assert_eq!(
            answer(&decide(&guarded(), Agent, change(&[&full]))),
            Allow,
            "in the layer it is harmless"
        );
    }
    let plain =
        merge(Apply, &["/home/ann/proj/src/a.rs", "/home/ann/proj/README.md", "/home/ann/proj/xMakefile"]);
    assert_eq!(answer(&decide(&guarded(), Owner, plain)), Allow);
    let near = [
        "src/hooks/use.ts",
        "build/out.txt",
        "src/bazel",
        "docs/conf.py",
        "src/config.ts",
        "src/rc.js",
        "app.conf",
        "vite.config.md",
        "docs/dune.md",
        "src/mytasks.py",
    ];
    let near = near.map(|path| format!("/home/ann/proj/{path}"));
    let near = merge(Apply, &near.each_ref().map(String::as_str));
    assert_eq!(answer(&decide(&guarded(), Owner, near)), Allow, "control");
    assert!(RUN_BY_HOST.contains(&"build.rs"));
}

#[test]
fn a_reviewed_command_is_about_no_files() {
    let asks = Policy::new(built_in_rules(), vec![rule("r", Review)]);
    let command = exec(&["sh", "-c", &"ls;".repeat(101)]);
    for action in [command, read("/home/ann/proj/a")] {
        let decided = decide(&asks, Agent, action);
        assert_eq!((answer(&decided), decided.red.len()), (Review, 0), "{:?}", decided.red);
    }
    let merged = decide(&asks, Owner, merge(Apply, &["/home/ann/proj/a"]));
    assert_eq!(merged.red.len(), 1, "control");
    assert_eq!(decide(&asks, Agent, change(&["/home/ann/proj/a"])).red.len(), 1, "control");
}

#[test]
fn fifty_red_files_are_all_named() {
    let paths: Vec<_> = (0..50).map(|i| format!("/home/ann/proj/{i}/build.rs")).collect();
    let paths: Vec<_> = paths.iter().map(String::as_str).chain(["/home/ann/proj/src/a.rs"]).collect();
    let decided = decide(&guarded(), Owner, merge(Apply, &paths));
    assert!(decided.reasons[0].text.ends_with("`49/build.rs`"), "{}", decided.reasons[0].text);
    let red: Vec<_> = decided.red.iter().map(|path| path.0.as_str()).collect();
    assert_eq!(red, paths[..50]);
}

#[test]
fn git_metadata_is_never_merged() {
    for path in [".git", ".git/config", "sub/.git", "sub/.git/hooks/x", ".GIT/config", "a/.gIt/b"] {
        for direction in [Apply, Undo] {
            check(
                Owner,
                merge(direction, &["/home/ann/proj/a", &format!("/home/ann/proj/{path}")]),
                Deny,
                "git-metadata",
            );
        }
    }
    for path in [".gitignore", "x.git/y", "git/x"] {
        let decided = decide(&guarded(), Owner, merge(Apply, &[&format!("/home/ann/proj/{path}")]));
        assert_eq!(answer(&decided), Allow, "{path}");
    }
}

/// A workspace that is the whole home does not open what the home protects.
#[test]
fn a_workspace_may_hold_the_home() {
    let places = Places { workspace: "/home/ann".into(), ..places() };
    let ask = |action| answer(&decide_in(&guarded(), &places, &[], Agent, action));
    assert_eq!(ask(search("/home/ann")), Deny);
    assert_eq!(ask(read("/home/ann/.ssh/x")), Deny);
    assert_eq!(ask(read("/home/ann/notes")), Allow);
}

/// What lies in a private copy of a project is judged by its name in the project.
#[test]
fn rules_bind_a_copy_as_they_bind_its_project() {
    let mut rules = built_in_rules();
    let globs = ["/home/ann/proj/private/**", "{home}/proj/locked/**", "{workspace}/own/**", "near/**"];
    rules.push(rule("closed", Deny).on(path(&globs)));
    rules.push(rule("workspace", Allow).on(path(&["{workspace}/**"])));
    let policy = Policy::new(rules, Vec::new());
    let copy = Places { workspace: "/var/tmp/copy/proj".into(), ..places() };
    let places = Places { project: Some("/home/ann/proj".into()), ..copy.clone() };
    let ask = |places: &Places, role, action| answer(&decide_in(&policy, places, &[], role, action));
    let of = |path: &str| format!("/var/tmp/copy/proj/{path}");
    for path in ["private/x", "locked/x", "own/x", "near/x"] {
        assert_eq!(ask(&places, Agent, read(&of(path))), Deny, "{path}");
    }
    assert_eq!(ask(&places, Agent, read(&of("open/x"))), Allow);
    let program = of("target/bailey");
    assert_eq!(ask(&places, Owner, merge(Apply, &[&program])), Deny, "a program of Bailey's own");
    for tree in [of(""), "/var/tmp".into(), "/home/ann".into()] {
        assert_eq!(ask(&places, Agent, search(&tree)), Deny, "{tree} holds what is closed");
    }
    // The control: by their names in the copy only what is relative is bound.
    for (path, expected) in [("private/x", false), ("locked/x", false), ("own/x", true), ("near/x", true)] {
        assert_eq!(ask(&copy, Agent, read(&of(path))) == Deny, expected, "{path}");
    }
    assert_ne!(ask(&copy, Owner, merge(Apply, &[&program])), Deny);
    // The project itself is not the workspace: a rule that opens that does not open it.
    let open = Policy::new(vec![rule("all", Allow).on(path(&["{workspace}/**"]))], Vec::new());
    assert_eq!(answer(&decide_in(&open, &places, &[], Agent, read(&of("x")))), Allow);
    assert_ne!(answer(&decide_in(&open, &places, &[], Agent, read("/home/ann/proj/x"))), Allow);
}

/// With root's odd home, or none at all, nothing panics and what is known stays guarded.
#[test]
fn odd_places() {
    let ask = |places: &Places, path: &str| answer(&decide_in(&guarded(), places, &[], Agent, read(path)));
    assert_eq!(ask(&Places { user_home: "/".into(), ..places() }, "/.ssh/id"), Deny);
    assert_eq!(ask(&Places::default(), "/.ssh/id"), Allow);
    assert_eq!(ask(&Places::default(), "/proc/1/mem"), Deny);
    let slash = Places { bailey_home: "/home/ann/.bailey/".into(), ..places() };
    assert_eq!(ask(&slash, "/home/ann/.bailey/x"), Deny);
}

/// The list that people read is the list that is in force.
#[test]
fn the_documented_list_of_masked_files_is_the_one_in_force() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/repositories.md");
    let page = std::fs::read_to_string(page).unwrap();
    let section = page.split("## Masked files").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    let mut told: Vec<String> = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').collect();
        let names = |cell: &str| -> Vec<String> {
            cell.split('`').skip(1).step_by(2).map(ToOwned::to_owned).collect()
        };
        told.extend(names(cells[2]));
        told.extend(names(cells[3]).iter().map(|name| format!("!{name}")));
    }
    let mut known: Vec<&str> = SECRET_LOOKING.to_vec();
    told.sort_unstable();
    known.sort_unstable();
    assert_eq!(told, known);
}
