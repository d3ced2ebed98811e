//! The fields of a condition that the other modules leave out: commands, hosts, limits, network.

use crate::support::*;
use bailey_policy::{
    Answer::{Allow, Deny, Review},
    Caller, Condition, Facts, Policy, Trust, UrlGlob, file, unit,
};
use bailey_protocol::{
    Action, Kind,
    Role::{self, Agent},
    Uplink, UplinkServer,
};

/// Whether an allow, and whether a deny, of this condition matches.
fn matched(condition: Condition, action: Action) -> (bool, bool) {
    let allow = Policy::new(vec![], vec![rule("a", Allow).on(condition.clone())]);
    let deny = Policy::new(vec![], vec![rule("a", Allow), rule("d", Deny).on(condition)]);
    (answer(&decide(&allow, Agent, action.clone())) == Allow, answer(&decide(&deny, Agent, action)) == Deny)
}

const YES: (bool, bool) = (true, true);
const NO: (bool, bool) = (false, false);
const UNSURE: (bool, bool) = (false, true);

#[test]
fn commands() {
    let git = |argv: &[&str]| matched(command(&["git status", "cargo"]), exec(argv));
    assert_eq!(git(&["git", "status", "-s"]), YES);
    assert_eq!(git(&["cargo"]), YES);
    assert_eq!(git(&["git"]), NO);
    assert_eq!(git(&["git", "push", "status"]), NO);
    assert_eq!(git(&["gitk", "status"]), NO);
    assert_eq!(git(&["legit", "status"]), NO);
    assert_eq!(git(&["./legit", "status"]), NO);
    assert_eq!(git(&["./git", "status"]), UNSURE, "some file of that name");
    assert_eq!(git(&["sudo", "git", "status"]), UNSURE);
    assert_eq!(git(&["/usr/bin/env", "rm"]), UNSURE);
    let named = |argv: &[&str]| matched(command(&["bin/ls"]), exec(argv));
    assert_eq!(named(&["bin/ls"]), YES);
    assert_eq!(named(&["/usr/bin/ls"]), NO, "with a folder in it, it is a path");
}

#[test]
fn shell_lines() {
    let line = |line| matched(command(&["git", "cargo test"]), exec(&["sh", "-c", line]));
    for plain in
        ["git status", "git log && cargo test --all", "git log | cargo test; git 'a; b' \"c d\"", " git  x &"]
    {
        assert_eq!(line(plain), YES, "{plain}");
    }
    assert_eq!(line("ls -la"), NO);
    assert_eq!(line("echo 'git status'"), NO);
    assert_eq!(line("git status; rm x"), UNSURE, "the deny speaks of one of them, the allow not of all");
    for hidden in [
        "$(git)",
        "`git`",
        "git $X",
        "X=1 git status",
        "if git; then rm x; fi",
        "git > x",
        "eval git",
        "git \\x",
        "(git)",
        "g*t",
        "\"$X\"",
        "git 'x",
        "sh -c git",
        "exec git",
        "git # x",
        "",
        ";",
        "xargs git",
        "git\u{a0}x",
        "git {a,b}",
        "! git",
    ] {
        assert_eq!(line(hidden), UNSURE, "{hidden}");
    }
    assert_eq!(matched(command(&["git"]), exec(&["bash", "-lc", "git"])), UNSURE);
    assert_eq!(matched(command(&["git"]), exec(&["bash", "x.sh"])), UNSURE);
}

#[test]
fn an_environment_that_steers_programs_hides_them() {
    let with = |name: &str| match exec(&["git"]) {
        Action::Exec(mut run) => {
            run.env.insert(name.into(), "x".into());
            matched(command(&["git"]), Action::Exec(run))
        }
        _ => panic!("a command"),
    };
    assert_eq!(with("RUST_LOG"), YES);
    for name in ["PATH", "LD_PRELOAD", "BASH_ENV", "GIT_SSH_COMMAND"] {
        assert_eq!(with(name), UNSURE, "{name}");
    }
}

#[test]
fn an_except_that_may_fit_holds_an_allow_back_and_lets_a_deny_stand() {
    let hidden = || exec(&["sh", "-c", "$X"]);
    let ask = |rules| answer(&decide(&Policy::new(vec![], rules), Agent, hidden()));
    assert_eq!(ask(vec![rule("a", Allow).unless([command(&["rm"])])]), Deny);
    assert_eq!(ask(vec![rule("a", Allow), rule("r", Review).unless([command(&["rm"])])]), Review);
    assert_eq!(ask(vec![rule("a", Allow)]), Allow, "control");
}

#[test]
fn hosts() {
    let fits = |glob, url| matched(host(&[glob]), http(url));
    assert_eq!(fits("example.com", "https://EXAMPLE.com./x"), YES);
    assert_eq!(fits("example.com", "https://example.com.evil.org/"), NO);
    assert_eq!(fits("example.com", "https://notexample.com/"), NO);
    assert_eq!(fits("*.example.com", "https://a.b.example.com/"), YES);
    assert_eq!(fits("*.example.com", "https://example.com/"), NO);
    assert_eq!(fits("*.example.com", "https://xexample.com/"), NO);
    assert_eq!(fits("*", "http://[::1]/"), YES);
    assert_eq!(fits("[::1]", "http://[::1]:80/"), YES);
    assert_eq!(fits("example.com:8443", "https://example.com:8443/"), YES);
    assert_eq!(fits("example.com:8443", "https://example.com/"), NO);
    assert_eq!(fits("example.com:443", "https://example.com/"), YES);
    assert_eq!(fits("example.com", "https://evil.org/?x=example.com#@example.com"), NO);
    assert_eq!(matched(host(&["api.example.com"]), model()), YES);
    assert_eq!(matched(host(&["*"]), read("/a")), NO);
    for text in ["", "a b", "https://a", "a/b", "*a", "a.*.b", "exämple.com", "a:b", "*.", "**"] {
        assert!(bailey_policy::HostGlob::new(text).is_err(), "{text}");
    }
}

#[test]
fn a_repository_is_what_git_fetches_from() {
    let rules = |repository: &str| {
        let text = format!(
            "[[rule]]\nname = \"clone\"\nanswer = \"allow\"\n\
             match = {{ action = \"http\", host = \"@git\", method = [\"GET\", \"POST\"], repository = \"{repository}\" }}\n"
        );
        Policy::new(vec![], file::parse("a.toml", &text, file::Format::Toml).unwrap().rules)
    };
    let ask = |repository: &str, method: &str, path: &str| {
        let url = format!("https://github.com{path}");
        answer(&decide(&rules(repository), Agent, relay(method, &url, Some(0))))
    };
    for repository in ["us/app", "us/*", "/us/app.git", "us/app.git"] {
        for path in ["/us/app", "/us/app.git"] {
            assert_eq!(ask(repository, "GET", &format!("{path}/info/refs?service=git-upload-pack")), Allow);
            assert_eq!(ask(repository, "POST", &format!("{path}/git-upload-pack")), Allow);
            assert_eq!(ask(repository, "POST", &format!("{path}/git-receive-pack")), Deny, "{repository}");
            // What a push begins with, a question that names no service, and what servers may read in two
            // ways.
            for query in [
                "?service=git-receive-pack",
                "",
                "?",
                "?service=git-upload-pack&service=git-receive-pack",
                "?service=git-receive-pack#?service=git-upload-pack",
                "?service=git-upload%2Dpack",
                "?service=git-upload-pack?",
                "?SERVICE=git-upload-pack",
            ] {
                let page = format!("{path}/info/refs{query}");
                assert_eq!(ask(repository, "GET", &page), Deny, "{repository}: {page}");
            }
        }
    }
    // A rule that names no method means git's: by others a server of files is written to, also there.
    let text = "[[rule]]\nname = \"clone\"\nanswer = \"allow\"\nmatch = { action = \"http\", repository = \"us/app\" }\n";
    let rules = Policy::new(vec![], file::parse("a.toml", text, file::Format::Toml).unwrap().rules);
    let url = "https://github.com/us/app/info/refs?service=git-upload-pack";
    for (method, expected) in
        [("GET", Allow), ("POST", Allow), ("PUT", Deny), ("LOCK", Deny), ("WEBSOCKET", Deny)]
    {
        assert_eq!(answer(&decide(&rules, Agent, relay(method, url, Some(0)))), expected, "{method}");
    }
    for path in [
        "/us/app.git/../../them/app/git-upload-pack",
        "/them/app/git-upload-pack",
        "/us/app/x/git-upload-pack",
    ] {
        assert_eq!(ask("us/app", "POST", path), Deny, "{path}");
    }
    assert_eq!(ask("us/*", "POST", "/us/app%2fother/git-upload-pack"), Deny);
}

/// It begins as a `GET` that the server sees, and goes on as what has no method.
#[test]
fn a_switch_to_web_socket_is_denied_with_get_and_not_allowed_with_it() {
    let decided = |text: &str, method: &str| {
        let text = format!(
            "[[rule]]\nname = \"all\"\nanswer = \"allow\"\nmatch = {{ action = \"http\" }}\n\
             [[rule]]\nname = \"one\"\npriority = 1\n{text}\n"
        );
        let rules = file::parse("a.toml", &text, file::Format::Toml).unwrap().rules;
        answer(&decide(&Policy::new(vec![], rules), Agent, relay(method, "https://example.com/x", Some(0))))
    };
    let of =
        |answer: &str, rest: &str| format!("answer = \"{answer}\"\nmatch = {{ action = \"http\", {rest} }}");
    let (get, put) = ("method = \"GET\"", "method = \"PUT\"");
    assert_eq!(decided(&of("deny", get), "WEBSOCKET"), Deny);
    assert_eq!(decided(&of("deny", put), "WEBSOCKET"), Allow, "the control");
    // An exception for one is none for the other.
    let but_get = format!("{}\nexcept = [{{ {get} }}]", of("deny", "host = \"example.com\""));
    assert_eq!((decided(&but_get, "GET"), decided(&but_get, "WEBSOCKET")), (Allow, Deny));
    let alone = |method: &str| {
        let text = format!("[[rule]]\nname = \"one\"\n{}\n", of("allow", get));
        let rules = file::parse("a.toml", &text, file::Format::Toml).unwrap().rules;
        answer(&decide(&Policy::new(vec![], rules), Agent, relay(method, "https://example.com/x", Some(0))))
    };
    assert_eq!((alone("GET"), alone("WEBSOCKET")), (Allow, Deny));
}

#[test]
fn paths_of_urls() {
    let fits = |glob: &str, url| {
        let url_path = Some(vec![UrlGlob::new(glob).unwrap()]);
        matched(Condition { url_path, ..Condition::default() }, http(url))
    };
    assert_eq!(fits("/v1/**", "https://example.com/v1/x?y#z"), YES);
    assert_eq!(fits("/v1/**", "https://example.com/v2"), NO);
    assert_eq!(fits("/v1/**", "https://example.com/v1/../v2"), UNSURE);
    assert_eq!(fits("/", "https://example.com"), YES);
    let any = Condition { url_path: Some(vec![UrlGlob::new("/**").unwrap()]), ..Condition::default() };
    assert_eq!(matched(any.clone(), read("/a")), NO, "what has no URL");
    assert_eq!(matched(any.clone(), exec(&["curl"])), NO);
    let url = "https://example.com/v1";
    let uplink = Action::Uplink(Uplink::new("a", url, ""));
    assert_eq!(matched(any, uplink.clone()), NO, "what is sent over an uplink may go to any path");
    assert_eq!(matched(host(&["example.com"]), uplink), YES, "the control");
}

/// A chat channel talks with an interface, a gateway and a store of files: a rule about one of them is about
/// the channel.
#[test]
fn each_server_of_an_uplink_is_judged_with_each_of_its_methods() {
    let server = |host: &str, methods: &[&str]| UplinkServer {
        url: format!("https://{host}"),
        methods: methods.iter().map(|it| (*it).to_owned()).collect(),
        takes_key: false,
    };
    let also = [server("gateway.chat.example", &["WEBSOCKET"]), server("cdn.example", &["GET"])].into();
    let methods = ["POST", "PATCH"].map(str::to_owned).into();
    let way = Uplink { methods, also, ..Uplink::new("chat", "https://api.chat.example", "KEY") };
    let decided = |rules: &[(&str, &str)], way: &Uplink| {
        let rule = |(number, (verdict, matches)): (usize, &(&str, &str))| {
            format!("[[rule]]\nname = \"r{number}\"\nanswer = \"{verdict}\"\nmatch = {{ {matches} }}\n")
        };
        let text: String = rules.iter().enumerate().map(rule).collect();
        let rules = file::parse("a.toml", &text, file::Format::Toml).unwrap().rules;
        answer(&decide(&Policy::new(vec![], rules), Agent, Action::Uplink(way.clone())))
    };
    let all = ("allow", r#"host = ["*.chat.example", "cdn.example"]"#);
    assert_eq!(decided(&[all], &way), Allow, "the control");
    for denied in [
        r#"host = "api.chat.example""#,
        r#"host = "gateway.chat.example""#,
        r#"host = "cdn.example""#,
        r#"method = "PATCH""#,
        r#"method = "WEBSOCKET""#,
        r#"host = "cdn.example", method = "GET""#,
    ] {
        assert_eq!(decided(&[all, ("deny", denied)], &way), Deny, "{denied}");
    }
    // A rule about a server is not one about another's methods.
    assert_eq!(decided(&[all, ("deny", r#"host = "cdn.example", method = "PATCH""#)], &way), Allow);
    // What allows some of them allows not all.
    assert_eq!(decided(&[("allow", r#"host = "*.chat.example""#)], &way), Deny);
    // A server without a method is judged by no rule.
    let also = [server("cdn.example", &[])].into();
    assert_eq!(decided(&[all], &Uplink { also, ..way }), Deny);
}

#[test]
fn limits() {
    let wall = |ms| matched(Condition { max_wall: Some(ms), ..Condition::default() }, exec(&["make"]));
    assert_eq!((wall(600_000), wall(599_999)), (YES, NO));
    let memory =
        |bytes| matched(Condition { max_memory: Some(bytes), ..Condition::default() }, exec(&["make"]));
    assert_eq!((memory(4 << 30), memory((4 << 30) - 1)), (YES, NO));
    let size = |bytes| Condition { max_size: Some(bytes), ..Condition::default() };
    assert_eq!(matched(size(3), change(&["/a"])), YES);
    assert_eq!(matched(size(2), change(&["/a"])), NO);
    assert_eq!(matched(size(2), read("/a")), NO, "a read has no size of its own");
    let one_large = Action::Change { files: vec![file_change("/a", 1), file_change("/b", 9)] };
    assert_eq!(matched(size(2), one_large), (false, true), "an allow needs all of them, a deny one");
}

#[test]
fn network() {
    let asks =
        |network, action| matched(Condition { network: Some(network), ..Condition::default() }, action);
    assert_eq!(asks(true, exec_network(&["a"])), YES);
    assert_eq!(asks(true, exec(&["a"])), NO);
    assert_eq!(asks(true, http("https://example.com/")), YES);
    assert_eq!(asks(true, model()), YES);
    assert_eq!(asks(false, read("/a")), YES);
}

#[test]
fn fields_are_anded_and_values_ored() {
    let both = Condition { action: Some(vec![Kind::Read, Kind::List]), ..path(&["/a/**", "/b/**"]) };
    assert_eq!(matched(both.clone(), read("/b/x")), YES);
    assert_eq!(matched(both.clone(), read("/c/x")), NO);
    assert_eq!(matched(both, change(&["/a/x"])), NO);
    assert_eq!(
        matched(path(&["/**"]), model()),
        NO,
        "a path condition never matches an action without a path"
    );
}

#[test]
fn units() {
    for (text, bytes) in
        [("0", 0), ("1B", 1), ("10 KiB", 10_240), ("10KB", 10_000), ("2 MiB", 2 << 20), ("2MB", 2_000_000)]
    {
        assert_eq!(unit::size(text), Ok(bytes), "{text}");
    }
    assert_eq!((unit::size("1 GiB"), unit::size("1 GB")), (Ok(1 << 30), Ok(1_000_000_000)));
    assert_eq!((unit::size("1 TiB"), unit::size("1 TB")), (Ok(1 << 40), Ok(1_000_000_000_000)));
    for (text, ms) in [("1ms", 1), ("90 s", 90_000), ("10m", 600_000), ("2 h", 7_200_000)] {
        assert_eq!(unit::time(text), Ok(ms), "{text}");
    }
    for text in [
        "",
        "KiB",
        "-1 B",
        "1.5 MiB",
        "1 kib",
        "1  KiB",
        "1 KiB ",
        "1 b",
        "1 K",
        " 1",
        "18446744073709551616",
        "1 s",
    ] {
        assert!(unit::size(text).is_err(), "{text}");
    }
    for text in ["1", "1 S", "1 min", "1 M", "1 d", "6000000000000 h"] {
        assert!(unit::time(text).is_err(), "{text}");
    }
}

/// Whether an allow, and whether a deny, of this condition matches a read by such a caller in such a session.
fn matched_by(condition: &Condition, role: Role, caller: &Caller, mode: Option<&str>) -> (bool, bool) {
    let ask = |rules| {
        let (policy, effect, places) = (Policy::new(vec![], rules), sealed(role, read("/a")), places());
        let facts = Facts { caller, mode, state: mode, ..Facts::new(&effect, at(0), &places) };
        answer(&policy.decide(&facts))
    };
    let deny = ask(vec![rule("a", Allow), rule("d", Deny).on(condition.clone())]) == Deny;
    (ask(vec![rule("a", Allow).on(condition.clone())]) == Allow, deny)
}

#[test]
fn callers() {
    let tagged = Caller { tags: ["deploy".to_string(), "db".into()].into(), ..Caller::default() };
    let tag = |name: &str| Condition { tag: Some(vec![name.into(), "other".into()]), ..Condition::default() };
    assert_eq!(matched_by(&tag("deploy"), Role::Plugin, &tagged, None), YES);
    assert_eq!(matched_by(&tag("dep"), Role::Plugin, &tagged, None), NO);
    assert_eq!(matched_by(&tag("deploy"), Role::Plugin, &Caller::default(), None), NO, "it has none");
    let trust = Condition { trust: Some(vec![Trust::Internal, Trust::Trusted]), ..Condition::default() };
    let of = |trust| Caller { trust, ..Caller::default() };
    assert_eq!(matched_by(&trust, Role::Agent, &of(Some(Trust::Internal)), None), YES);
    assert_eq!(matched_by(&trust, Role::Agent, &of(Some(Trust::LlmGenerated)), None), NO);
    assert_eq!(matched_by(&trust, Role::Agent, &of(None), None), UNSURE, "not known is not trusted");
    assert_eq!(Caller::of(Role::Owner).trust, Some(Trust::Trusted));
    assert_eq!(Caller::of(Role::Agent).trust, Some(Trust::Internal));
    assert_eq!(Caller::of(Role::Guest).trust, None);
    for role in Role::ALL {
        let only = Condition { role: Some(vec![role]), ..Condition::default() };
        let other = if role == Role::Guest { Role::User } else { Role::Guest };
        assert_eq!(matched_by(&only, role, &Caller::default(), None), YES);
        assert_eq!(matched_by(&only, other, &Caller::default(), None), NO);
    }
}

#[test]
fn modes_and_states() {
    let mode = Condition { mode: Some(vec!["explore".into(), "debug".into()]), ..Condition::default() };
    let state = Condition { state: Some(vec!["red".into()]), ..Condition::default() };
    let ask = |condition: &Condition, mode| matched_by(condition, Role::Agent, &Caller::default(), mode);
    assert_eq!((ask(&mode, Some("debug")), ask(&mode, Some("strict")), ask(&mode, None)), (YES, NO, UNSURE));
    assert_eq!((ask(&state, Some("red")), ask(&state, Some("green")), ask(&state, None)), (YES, NO, UNSURE));
}
