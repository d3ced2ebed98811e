//! The shape of an action, before any rule; every malformed one beside a well-formed one that passes.

use crate::support::*;
use bailey_policy::{
    ARGUMENTS_MAX,
    Answer::{Allow, Deny},
    PATH_MAX, Policy,
};
use bailey_protocol::{Action, Blob, Command, HeaderValue, HttpRequest, MergeKind, Role::Agent};

fn all() -> Policy {
    Policy::new(vec![], vec![rule("all", Allow)])
}

#[track_caller]
fn malformed(action: Action, why: &str) {
    let decided = decide(&all(), Agent, action);
    assert_eq!(answer(&decided), Deny);
    let [reason] = decided.reasons.as_slice() else { panic!("one reason: {:?}", decided.reasons) };
    assert_eq!(reason.rule, "malformed-shape");
    assert!(reason.text.contains(why), "{}", reason.text);
}

#[track_caller]
fn fine(action: Action) {
    let decided = decide(&all(), Agent, action);
    assert_eq!(answer(&decided), Allow, "{:?}", decided.reasons);
}

fn run(change: impl FnOnce(&mut Command)) -> Action {
    match exec(&["make"]) {
        Action::Exec(mut command) => {
            change(&mut command);
            Action::Exec(command)
        }
        other => other,
    }
}

fn ask(change: impl FnOnce(&mut HttpRequest)) -> Action {
    let mut asked = request("https://example.com/a");
    change(&mut asked);
    Action::Http(asked)
}

#[test]
fn paths() {
    for path in ["", "a", "./a", "/a/../b", "/a/./b", "/a//b", "/a/", "/.."] {
        malformed(read(path), "path");
    }
    for path in ["/", "/a", "/a/..b/.c", "/a/b c/é/日本語", "/a/\u{915}\u{94d}\u{200d}\u{937}"] {
        fine(read(path));
    }
    fine(read(&format!("/{}", "a".repeat(PATH_MAX - 1))));
    malformed(read(&format!("/{}", "a".repeat(PATH_MAX))), "at most 4096");
}

#[test]
fn deceptive_characters() {
    for c in [
        '\0',
        '\n',
        '\u{1b}',
        '\u{7f}',
        '\u{9b}',
        '\u{202e}',
        '\u{2066}',
        '\u{200b}',
        '\u{200f}',
        '\u{feff}',
        '\u{e0041}',
    ] {
        malformed(read(&format!("/a/x{c}y")), "control, bidi or invisible");
        malformed(change(&["/a", &format!("/b{c}")]), "control, bidi or invisible");
        malformed(http(&format!("https://exam{c}ple.com/")), "no plain http");
        let decided = decide(&all(), Agent, read(&format!("/a/x{c}y")));
        assert!(!decided.reasons[0].text.contains(c), "the reason itself is clean");
    }
}

#[test]
fn hosts() {
    for url in [
        "https://user@example.com/",
        "https://example.com\\@evil.com/",
        "https://exämple.com/",
        "https:///x",
        "ftp://example.com/",
        "https://example.com:99999/",
        "https://example.com:8x/",
        "https://exa mple.com/",
        "https://a..b/",
        "https://%65vil.com/",
        "https://[::1/",
        "https://[evil]/",
        "//example.com/",
        "https://",
        "HTTPS://example.com/",
    ] {
        malformed(http(url), "no plain http or https URL");
    }
    for url in [
        "https://example.com",
        "http://example.com:8080/a?b#c",
        "https://[::1]:443/",
        "https://127.0.0.1/",
        "https://example.com./",
        "https://example.com/@x",
        "https://EXAMPLE.com/",
    ] {
        fine(http(url));
    }
}

#[test]
fn requests() {
    malformed(ask(|it| it.method = "get".into()), "no method");
    malformed(ask(|it| it.method = String::new()), "no method");
    malformed(ask(|it| it.headers = vec![("a b".into(), HeaderValue::Text("x".into()))]), "header");
    malformed(ask(|it| it.headers = vec![("a".into(), HeaderValue::Text("x\r\nb: y".into()))]), "header");
    let secret = HeaderValue::Secret { name: "K".into(), prefix: "x\n".into() };
    malformed(ask(|it| it.headers = vec![("a".into(), secret)]), "header");
    let headers = |count| vec![("a".to_string(), HeaderValue::Text("x".into())); count];
    malformed(ask(|it| it.headers = headers(1001)), "at most 1000");
    fine(ask(|it| it.headers = headers(1000)));
}

#[test]
fn commands() {
    malformed(run(|it| it.argv.clear()), "without a program");
    malformed(run(|it| it.argv = vec![String::new()]), "without a program");
    malformed(run(|it| it.argv.push("a\0b".into())), "zero byte");
    malformed(run(|it| drop(it.env.insert("A=B".into(), "x".into()))), "no name");
    malformed(run(|it| it.env = (0..1001).map(|i| (format!("V{i}"), "x".into())).collect()), "at most 1000");
    malformed(run(|it| it.cwd = "here".into()), "not absolute");
    fine(run(|it| it.argv.push("a\nb\u{202e}".into())));
    fine(run(|it| drop(it.env.insert("A".into(), "x=y".into()))));
}

#[test]
fn sizes() {
    malformed(run(|it| it.argv.push("x".repeat(ARGUMENTS_MAX))), "bytes of arguments");
    fine(run(|it| it.argv.push("x".repeat(ARGUMENTS_MAX - 10))));
    fine(run(|it| it.stdin = Some(Blob(vec![b'x'; ARGUMENTS_MAX + 1]))));
    malformed(ask(|it| it.url.push_str(&"x".repeat(ARGUMENTS_MAX))), "bytes of arguments");
    let long = Some("x".repeat(ARGUMENTS_MAX + 1));
    malformed(Action::Search { root: "/a".into(), pattern: long, glob: None }, "bytes of arguments");
}

#[test]
fn missing_and_doubled_paths() {
    malformed(change(&[]), "no path");
    malformed(merge(MergeKind::Apply, &[]), "no path");
    fine(merge(MergeKind::Discard, &[]));
    malformed(change(&["/a", "/b", "/a"]), "named twice");
    fine(change(&["/a", "/b"]));
}

/// What would take minutes to judge is denied at once.
#[test]
fn too_many_steps() {
    let rules = |count: usize| {
        let one = |i| rule(&format!("r{i}"), Allow).on(path(&["{workspace}/**", "/tmp/**"]));
        Policy::new(vec![], (0..count).map(one).collect())
    };
    let paths: Vec<_> = (0..1000).map(|i| format!("/home/ann/proj/{i}")).collect();
    let all = change(&paths.iter().map(String::as_str).collect::<Vec<_>>());
    let most = usize::try_from(bailey_policy::STEPS_MAX / 1000 / 4).unwrap();
    let decided = decide(&rules(most + 1), Agent, all.clone());
    assert_eq!(answer(&decided), Deny);
    assert_eq!(decided.reasons[0].text, "1000 paths are too many for so many rules");
    assert_eq!(answer(&decide(&rules(10), Agent, all)), Allow, "control");
}
