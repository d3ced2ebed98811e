//! The shape of an action, before any rule; every malformed one beside a well-formed one that passes.

use crate::support::*;
use bailey_policy::{
    ARGUMENTS_MAX,
    Answer::{Allow, Deny},
    DEPTH_MAX, KEYS_MAX, PATH_MAX, Policy, Rule,
};
use bailey_protocol::{
    Action, Blob, Command, HeaderValue, HttpRequest, MergeKind, Role::Agent, ToolEffect, ToolUse,
};

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

/// What resolvers take for an address although it is written as none is could pass a rule about that address.
#[test]
fn an_address_has_one_spelling() {
    for odd in [
        "127.1",
        "2130706433",
        "0x7f000001",
        "0X7f.1",
        "0177.0.0.1",
        "1.2.3.04",
        "1.2.3.4.5",
        "a.1",
        "1.2.3.256",
    ] {
        malformed(http(&format!("https://{odd}/")), "no plain http or https URL");
        malformed(relay("GET", &format!("https://{odd}:8080/"), None), "no plain http or https URL");
    }
    for plain in ["127.0.0.1", "1.2.3.4.", "[::1]", "1.example", "a-1.example", "x0.example"] {
        fine(http(&format!("https://{plain}/")));
    }
    let one = Rule { matches: host(&["[2606:4700::1]"]), ..rule("one", Deny) };
    for spelled in ["[2606:4700::1]", "[2606:4700::0.0.0.1]", "[2606:4700:0:0::1]", "[2606:4700::0001]"] {
        let policy = Policy::new(vec![], vec![one.clone(), rule("all", Allow)]);
        let decided = decide(&policy, Agent, http(&format!("https://{spelled}/")));
        assert_eq!(answer(&decided), Deny, "{spelled}");
    }
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
        let one = |i| rule(&format!("r{i}"), Allow).on(command(&["a", "b"]));
        Policy::new(vec![], (0..count).map(one).collect())
    };
    let paths: Vec<_> = (0..1000).map(|i| format!("/home/ann/proj/{i}")).collect();
    let all = change(&paths.iter().map(String::as_str).collect::<Vec<_>>());
    let most = usize::try_from(bailey_policy::STEPS_MAX / 1000 / 4).unwrap();
    let decided = decide(&rules(most + 1), Agent, all.clone());
    assert_eq!(answer(&decided), Deny);
    assert_eq!(decided.reasons[0].text, "1000 paths are too many for so many rules");
    let decided = decide(&rules(most), Agent, all);
    assert_eq!(decided.reasons[0].rule, "default", "control: {:?}", decided.reasons);
}

fn with(args: &str) -> Action {
    Action::Tool(ToolUse::judged("t".into(), Some(ToolEffect::Read), args.into()))
}

#[test]
fn arguments_of_a_tool_are_json_that_every_reader_understands_alike() {
    for args in [
        r#"{}"#,
        r#" {"a": {"a": 1}, "b": [1.5, -2, null, true, "x\ny"]} "#,
        r#"{"a": 9007199254740992, "b": -9007199254740992}"#,
        r#"{"text": "\u202e is content here, and so is \u0007"}"#,
    ] {
        fine(with(args));
    }
    for (args, why) in [
        ("", "JSON object"),
        ("[]", "JSON object"),
        ("7", "JSON object"),
        ("{", "cannot be judged"),
        ("{} {}", "cannot be judged"),
        (r#"{"a": NaN}"#, "cannot be judged"),
        (r#"{"a": Infinity}"#, "cannot be judged"),
        (r#"{"a": 1e999}"#, "cannot be judged"),
        (r#"{"a": 1, "a": 2}"#, "stands there twice"),
        (r#"{"a": 1, "\u0061": 2}"#, "stands there twice"),
        (r#"{"x": [{"to": 1, "to": 1}]}"#, "stands there twice"),
        (r#"{"a": 9007199254740993}"#, "beyond 2^53"),
        (r#"{"a": -9007199254740993}"#, "beyond 2^53"),
        (r#"{"a": 9007199254740993.0}"#, "beyond 2^53"),
        (r#"{"a": 9007199254740993e0}"#, "beyond 2^53"),
        (r#"{"Path": 1, "path": 2}"#, "stands there twice"),
        (r#"{"a": 1e300}"#, "beyond 2^53"),
        (r#"{"a": 123456789012345678901234567890}"#, "beyond 2^53"),
        (r#"{"a\u202eb": 1}"#, "bidi"),
        (r#"{"a\u0000": 1}"#, "control"),
    ] {
        malformed(with(args), why);
    }
}

#[test]
fn arguments_of_a_tool_have_limits() {
    let nested = |depth: usize| format!("{{\"a\": {}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
    fine(with(&nested(DEPTH_MAX)));
    malformed(with(&nested(DEPTH_MAX + 1)), "nested more than 32 deep");
    malformed(with(&nested(100_000)), "nested more than 32 deep");
    let keys = |count: usize| {
        let half: Vec<String> = (0..count - 2).map(|i| format!("\"k{i}\": 1")).collect();
        format!("{{\"one\": {{\"two\": 1, {}}}}}", half.join(", "))
    };
    fine(with(&keys(KEYS_MAX)));
    malformed(with(&keys(KEYS_MAX + 1)), "more than 1000 names");
    let long = |bytes: usize| format!("{{\"a\": \"{}\"}}", "x".repeat(bytes - "t{'a': ''}".len()));
    fine(with(&long(ARGUMENTS_MAX)));
    malformed(with(&long(ARGUMENTS_MAX + 1)), "bytes of arguments");
}

#[test]
fn names_of_tools() {
    let named = |name: &str| Action::Tool(ToolUse::judged(name.into(), Some(ToolEffect::Read), "{}".into()));
    for name in ["a", "mail/send", "Mail.send-2", "mcp:x@1+2"] {
        fine(named(name));
    }
    for name in ["", "a b", "a*", "a?", "\u{202e}a", "a\n", "s\u{435}nd", "{home}"] {
        malformed(named(name), "is no tool's name");
    }
}
