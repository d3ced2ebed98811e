//! What a new home's rules say, as a table.

use crate::support::*;
use bailey_policy::Answer::{self, Allow, Deny, Review};
use bailey_protocol::{
    Action, Command, Limits,
    MergeKind::{Apply, Discard, Undo},
    Role::{self, Agent, Guest, Owner},
};

fn list(path: &str) -> Action {
    Action::List { path: path.into() }
}

fn stat(path: &str) -> Action {
    Action::Stat { path: path.into() }
}

fn diff(root: &str) -> Action {
    Action::Diff { root: root.into(), also: Vec::new() }
}

fn exec_in(cwd: &str) -> Action {
    let argv = vec!["make".into()];
    Action::Exec(Command {
        argv,
        cwd: cwd.into(),
        env: Default::default(),
        stdin: None,
        network: false,
        background: false,
        limits: Limits::default(),
    })
}

#[test]
fn default_rules() {
    let table: Vec<(Role, Action, Answer, &str)> = vec![
        // The workspace.
        (Agent, read("/home/ann/proj/src/main.rs"), Allow, "workspace-reads"),
        (Agent, stat("/home/ann/proj"), Allow, "workspace-reads"),
        (Agent, list("/home/ann/proj"), Allow, "workspace-reads"),
        (Agent, search("/home/ann/proj"), Allow, "workspace-reads"),
        (Agent, diff("/home/ann/proj"), Allow, "workspace-reads"),
        (Owner, diff("/home/ann/proj"), Allow, "workspace-reads"),
        (Agent, change(&["/home/ann/proj/a", "/home/ann/proj/b/c"]), Allow, "workspace-changes"),
        (Agent, change(&["/tmp/x"]), Allow, "workspace-changes"),
        (Agent, exec(&["sh", "-c", "for f in *; do echo \"$f\"; done"]), Allow, "commands"),
        (Agent, exec_in("/tmp"), Allow, "commands"),
        // Secrets.
        (Agent, read("/home/ann/proj/.env"), Review, "workspace-secrets"),
        (Agent, read("/home/ann/proj/app/.env.production"), Review, "workspace-secrets"),
        (Agent, read("/home/ann/proj/.env.example"), Allow, "workspace-reads"),
        (Agent, stat("/home/ann/proj/.env"), Allow, "workspace-reads"),
        // Outside.
        (Agent, read("/usr/include/stdio.h"), Allow, "system-reads"),
        (Agent, search("/usr/include"), Allow, "system-reads"),
        (Agent, read("/tmp/out"), Allow, "system-reads"),
        (Agent, read("/home/ann/.cargo/registry/src/x/lib.rs"), Allow, "system-reads"),
        (Agent, read("/etc/passwd"), Review, "outside-reads"),
        (Agent, list("/home/ann"), Review, "outside-reads"),
        (Agent, read("/home/ann/project2/x"), Review, "outside-reads"),
        (Agent, search("/home/ann/other"), Review, "outside-reads"),
        (Agent, read("/dev/sda"), Deny, "devices"),
        (Agent, read("/proc/1/environ"), Deny, "daemon-files"),
        (Agent, diff("/home/ann/other"), Deny, "default"),
        (Agent, change(&["/etc/passwd"]), Deny, "outside-changes"),
        (Agent, change(&["/home/ann/proj/a", "/home/ann/.bashrc"]), Deny, "outside-changes"),
        (Agent, exec_in("/home/ann"), Deny, "default"),
        // Trees that hold something forbidden.
        (Agent, search("/home/ann"), Deny, "home-secrets"),
        (Agent, search("/"), Deny, "home-secrets"),
        // The network.
        (Agent, model(), Allow, "models"),
        (Agent, http("https://example.com/"), Review, "web"),
        (Agent, relay("GET", "https://example.com/", None), Review, "web"),
        (Guest, http("https://example.com/"), Deny, "default"),
        (Owner, relay("GET", "https://example.com/", None), Allow, "witness"),
        (Agent, exec_network(&["curl", "x"]), Review, "network"),
        // Merging.
        (Owner, merge(Apply, &["/home/ann/proj/src/main.rs"]), Allow, "owner-merges"),
        (Owner, merge(Undo, &["/home/ann/proj/build.rs"]), Allow, "owner-merges"),
        (Owner, merge(Discard, &["/home/ann/proj/build.rs"]), Allow, "owner-merges"),
        (Owner, merge(Discard, &[]), Allow, "owner-discards"),
        (Owner, merge(Apply, &["/home/ann/proj/build.rs"]), Review, "run-by-host"),
        (Owner, merge(Apply, &["/home/ann/other/x"]), Deny, "default"),
        (Agent, merge(Apply, &["/home/ann/proj/src/main.rs"]), Deny, "agent-merges"),
        (Agent, merge(Undo, &["/home/ann/proj/src/main.rs"]), Deny, "agent-merges"),
        (Agent, merge(Discard, &["/home/ann/proj/src/main.rs"]), Deny, "agent-merges"),
    ];
    let policy = standard();
    for (role, action, expected, because) in table {
        let shown = format!("{} {} {}", role.name(), action.kind().name(), action.target());
        let decided = decide(&policy, role, action);
        assert_eq!(answer(&decided), expected, "{shown}: {:#?}", decided.reasons);
        assert!(said(&decided, because), "{shown}: {:#?}", decided.reasons);
    }
}

#[test]
fn a_way_to_the_network_is_asked_for_and_says_what_it_is() {
    let decided = decide(&standard(), Agent, exec_network(&["curl", "x"]));
    assert!(decided.reasons[0].text.contains("each of their requests is judged by itself"), "{decided:?}");
}

#[test]
fn outside_reads_open_exactly_what_was_shown() {
    let policy = standard();
    let extra = |action| isolation(&decide(&policy, Agent, action)).extra_reads.clone();
    assert_eq!(extra(read("/etc/hosts")), ["/etc/hosts".into()]);
    assert_eq!(extra(search("/home/ann/other")), ["/home/ann/other".into()]);
    assert_eq!(
        extra(read("/home/ann/.cargo/registry/src/x/lib.rs")),
        ["/home/ann/.cargo/registry/src/x/lib.rs".into()]
    );
    assert_eq!(extra(read("/usr/include/stdio.h")), [], "the inside has its own");
    assert_eq!(extra(read("/tmp/x")), [], "the host's /tmp is not the inside's");
    assert_eq!(extra(read("/home/ann/proj/x")), []);
    assert_eq!(extra(exec(&["make"])), []);
    assert_eq!(extra(change(&["/tmp/x"])), []);
}

/// Only the built-in rules are left when the file is empty, and the file cannot lift them.
#[test]
fn a_user_cannot_lift_built_in_rules() {
    let rules = vec![rule("all", Allow).weighs(1000)];
    let policy = bailey_policy::Policy::new(bailey_policy::built_in_rules(), rules.clone());
    let none = bailey_policy::Policy::new(vec![], rules);
    let forbidden = [
        (Agent, read("/home/ann/.ssh/id_ed25519"), Deny),
        (Agent, read("/home/ann/.bailey/config.toml"), Deny),
        (Owner, merge(Apply, &["/home/ann/proj/.git/hooks/pre-commit"]), Deny),
        (Owner, merge(Apply, &["/home/ann/proj/Makefile"]), Review),
        (Agent, read("/home/ann/proj/.env"), Review),
    ];
    for (role, action, expected) in forbidden {
        assert_eq!(answer(&decide(&policy, role, action.clone())), expected, "{action:?}");
        assert_eq!(answer(&decide(&none, role, action)), Allow, "control");
    }
}
