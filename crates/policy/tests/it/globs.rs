//! Path globs, seen through a rule: an allow matches what a glob spells out, a deny what lies beneath, too.

use crate::{naive::glob_fit, support::*};
use bailey_policy::{
    Answer::{Allow, Deny},
    Glob, GlobError, Policy,
};
use bailey_protocol::Role::Agent;
use proptest::{prelude::*, sample::select};

fn allows(glob: &str, path_text: &str) -> bool {
    let policy = Policy::new(vec![], vec![rule("a", Allow).on(path(&[glob]))]);
    answer(&decide(&policy, Agent, read(path_text))) == Allow
}

fn denies(glob: &str, path_text: &str) -> bool {
    let policy = Policy::new(vec![], vec![rule("a", Allow), rule("d", Deny).on(path(&[glob]))]);
    answer(&decide(&policy, Agent, read(path_text))) == Deny
}

#[test]
fn table() {
    for (glob, yes, no) in [
        ("/a/*.rs", vec!["/a/x.rs", "/a/.rs"], vec!["/a/b/x.rs", "/a/x.rsx", "/x.rs"]),
        ("/a/**", vec!["/a", "/a/b", "/a/b/c"], vec!["/ab", "/"]),
        ("/**", vec!["/", "/a/b"], vec![]),
        ("/**/c", vec!["/c", "/a/c", "/a/b/c"], vec!["/c/d"]),
        ("/a/**/c", vec!["/a/c", "/a/b/c", "/a/b/b/c"], vec!["/a/b", "/b/a/c"]),
        ("/a/b/", vec!["/a/b", "/a/b/c/d"], vec!["/a/bc"]),
        ("/a/[b-d]?", vec!["/a/bx", "/a/dé"], vec!["/a/ex", "/a/b"]),
        ("/a/[!b-d]", vec!["/a/e"], vec!["/a/b", "/a/ee"]),
        ("/a/[]x]", vec!["/a/]", "/a/x"], vec!["/a/y"]),
        ("/a/[a-]", vec!["/a/a", "/a/-"], vec!["/a/b"]),
        ("/a/\\*", vec!["/a/*"], vec!["/a/b"]),
        ("/a/x**y", vec!["/a/xy", "/a/x1y"], vec!["/a/x/y"]),
        ("{workspace}/src/**", vec!["/home/ann/proj/src/x"], vec!["/home/ann/proj/lib/src/x"]),
        ("src/*", vec!["/home/ann/proj/src/x"], vec!["/home/ann/proj/lib/src/x", "/src/x"]),
        ("*.pem", vec!["/home/ann/proj/x.pem", "/home/ann/proj/a/b/x.pem"], vec!["/home/ann/x.pem"]),
        ("node_modules/", vec!["/home/ann/proj/a/node_modules/b/c"], vec!["/home/ann/proj/a/node_module"]),
        ("{home}/.x", vec!["/home/ann/.x"], vec!["/home/ann/.xy", "/home/bob/.x"]),
        ("{bailey}", vec!["/home/ann/.bailey"], vec!["/home/ann/.bailey/x"]),
        ("{workspace}/", vec!["/home/ann/proj/x", "/home/ann/proj"], vec!["/home/ann/proj2"]),
        ("{programs}", vec!["/opt/bailey/bin/bailey"], vec!["/opt/bailey/bin/other", "/opt/bailey/bin"]),
    ] {
        for path in yes {
            assert!(allows(glob, path), "{glob} should match {path}");
        }
        for path in no {
            assert!(!allows(glob, path), "{glob} should not match {path}");
        }
    }
}

#[test]
fn a_deny_of_a_folder_covers_what_lies_beneath() {
    for glob in ["/a/b", "/a/*", "/a/b/"] {
        assert!(denies(glob, "/a/b/c/d"), "{glob}");
        assert!(!denies(glob, "/c/b"), "control: {glob}");
    }
    assert!(!allows("/a/b", "/a/b/c"), "an allow does not");
}

#[test]
fn a_tree_is_allowed_only_as_a_whole() {
    let ask = |rules| answer(&decide(&Policy::new(vec![], rules), Agent, search("/a/b")));
    let allow = |glob| ask(vec![rule("a", Allow).on(path(&[glob]))]) == Allow;
    assert!(allow("/a/**") && allow("/a/b/**"));
    assert!(!allow("/a/b") && !allow("/a/*") && !allow("/a/b/c/**") && !allow("/**/b"));
    let deny = |glob| ask(vec![rule("a", Allow), rule("d", Deny).on(path(&[glob]))]) == Deny;
    assert!(deny("/a/b/c/x") && deny("/a/b") && deny("/a") && deny("/**/x.pem"));
    assert!(!deny("/a/c/**") && !deny("/b"));
}

#[test]
fn malformed() {
    for (text, error) in [
        ("", GlobError::Empty),
        ("/a//b", GlobError::Segment),
        ("/a/./b", GlobError::Segment),
        ("..", GlobError::Segment),
        ("{workspace}x", GlobError::Segment),
        ("{nowhere}/x", GlobError::Variable("nowhere".into())),
        ("a/{home}", GlobError::Brace),
        ("*.{rs,toml}", GlobError::Brace),
        ("{workspace", GlobError::Brace),
        ("!x", GlobError::Negated),
        ("~/x", GlobError::Tilde),
        ("[a", GlobError::Class),
        ("[]", GlobError::Class),
        ("[z-a]", GlobError::Class),
        ("[a/b]", GlobError::Class),
        ("a\\", GlobError::Escape),
    ] {
        assert_eq!(Glob::new(text), Err(error), "{text}");
    }
    assert_eq!(Glob::new(&"a/".repeat(60)).map(|_| ()), Err(GlobError::TooLong));
    assert_eq!(Glob::new(&"a".repeat(1025)), Err(GlobError::TooLong));
    assert!(
        Glob::new(&format!("/{}", "a/".repeat(59))).is_ok() && Glob::new(&"a".repeat(1024)).is_ok(),
        "control"
    );
}

/// Globs that make a backtracking matcher take for ever.
#[test]
fn hostile_globs_take_bounded_time() {
    let start = std::time::Instant::now();
    let glob = format!("/{}b", "*a".repeat(500));
    assert!(!allows(&glob, &format!("/{}", "a".repeat(4000))));
    let glob = format!("/{}z", "**/a/".repeat(25));
    assert!(!allows(&glob, &"/a".repeat(2000)));
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}

fn glob_text(parts: &'static [&'static str]) -> impl Strategy<Value = String> {
    let name = (select(&["a", "b", "*", "?"]), proptest::collection::vec(select(parts), 0..3))
        .prop_map(|(first, rest)| format!("{first}{}", rest.concat()));
    let segment = prop_oneof![3 => name, 1 => Just("**".to_string())];
    proptest::collection::vec(segment, 1..5).prop_map(|segments| format!("/{}", segments.join("/")))
}

fn path_text() -> impl Strategy<Value = String> {
    proptest::collection::vec("[abc][abc.]{0,2}", 1..5).prop_map(|names| format!("/{}", names.join("/")))
}

proptest! {
    #![proptest_config(config(2000))]

    /// `globset` is ripgrep's; only for a folder itself under `folder/**` do we mean more than it does.
    #[test]
    fn globset_agrees(glob in glob_text(&["a", "b", "*", "?", "[ab]", "[!a]", "[a-c]", "."]), path in path_text()) {
        let theirs = |text: &str| {
            // Theirs lets a negated class match the slash.
            let text = text.replace("[!a]", "[!a/]");
            let built = globset::GlobBuilder::new(&text).literal_separator(true).backslash_escape(true).build();
            built.unwrap().compile_matcher().is_match(&path)
        };
        let mut folder = glob.as_str();
        while let Some(shorter) = folder.strip_suffix("/**") {
            folder = shorter;
        }
        prop_assert_eq!(allows(&glob, &path), theirs(&glob) || theirs(folder), "{} {}", glob, path);
    }

    #[test]
    fn naive_recursion_agrees(glob in glob_text(&["a", "b", "*", "?", "."]), path in path_text()) {
        let fit = glob_fit(&glob, &path, false, &places());
        prop_assert_eq!((allows(&glob, &path), denies(&glob, &path)), (fit == 2, fit > 0));
    }

    #[test]
    fn reading_any_text_never_panics(text in "\\PC{0,40}") {
        if let Ok(glob) = Glob::new(&text) {
            prop_assert_eq!(glob.as_str(), text);
        }
    }
}
