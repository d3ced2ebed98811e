//! Searches by name and by content.

use super::{Ground, perform};
use bailey_protocol::{Action, Report, SearchHit, SearchReport};

fn search(ground: &Ground, pattern: Option<&str>, glob: Option<&str>) -> Result<SearchReport, String> {
    let action =
        Action::Search { root: ground.ws(""), pattern: pattern.map(Into::into), glob: glob.map(Into::into) };
    perform(action).map(|report| match report {
        Report::Search(report) => report,
        other => panic!("{other:?}"),
    })
}

fn paths(report: &SearchReport) -> Vec<&str> {
    report.found.iter().map(|found| found.path.as_str()).collect()
}

fn ground() -> Ground {
    let ground = Ground::new();
    ground.file(".gitignore", "target/\n*.log\n!keep.log\n/only-top\n");
    ground.file(".git/config", "needle");
    ground.file(".git/info/exclude", "excluded\n");
    ground.file(".hidden", "needle");
    ground.file("excluded", "needle");
    ground.file("src/main.rs", "fn main() {\n    needle();\n}\n");
    ground.file("src/lib.rs", "// nothing\n");
    ground.file("src/only-top", "needle");
    ground.file("only-top", "needle");
    ground.file("src/.gitignore", "generated.rs\n!back.log\n");
    ground.file("src/generated.rs", "needle");
    ground.file("src/back.log", "needle");
    ground.file("target/debug/out", "needle");
    ground.file("a.log", "needle");
    ground.file("keep.log", "needle");
    ground.file("image.bin", b"needle\0needle");
    ground.link("link", "src/main.rs");
    ground.fifo("fifo");
    ground
}

#[test]
fn lines_are_found_where_git_looks() {
    let report = search(&ground(), Some(r"needle\b"), None).unwrap();
    let expected = [".hidden", "keep.log", "src/back.log", "src/main.rs", "src/only-top"];
    assert_eq!(paths(&report), expected);
    assert!(!report.cut);
    assert_eq!(
        report.found[3],
        SearchHit { path: "src/main.rs".into(), line: 2, text: "    needle();".into() }
    );
}

#[test]
fn names_are_found_by_globs_of_gitignores_syntax() {
    let ground = ground();
    let cases = [
        ("*.rs", vec!["src/lib.rs", "src/main.rs"]),
        ("/src/*.rs", vec!["src/lib.rs", "src/main.rs"]),
        ("src/", vec!["src/.gitignore", "src/back.log", "src/lib.rs", "src/main.rs", "src/only-top"]),
        ("**/m*", vec!["src/main.rs"]),
        ("/*.log", vec!["keep.log"]),
        ("nothing", vec![]),
    ];
    for (glob, expected) in cases {
        let report = search(&ground, None, Some(glob)).unwrap();
        assert_eq!(paths(&report), expected, "{glob}");
        assert!(report.found.iter().all(|found| found.line == 0));
    }
    let inverted = search(&ground, None, Some("!*.rs")).unwrap();
    assert!(paths(&inverted).contains(&"keep.log") && !paths(&inverted).contains(&"src/lib.rs"));
    let both = search(&ground, Some("needle"), Some("*.rs")).unwrap();
    assert_eq!(paths(&both), ["src/main.rs"]);
}

#[test]
fn below_the_root_the_rules_above_hold_as_well() {
    let ground = ground();
    ground.file("src/deep/.gitignore", "!back.tmp\n");
    for name in
        ["found.rs", "b.log", "keep.log", "generated.rs", "excluded", "only-top", "back.tmp", "target/x"]
    {
        ground.file(&format!("src/deep/{name}"), "needle");
    }
    ground.file("src/deep/own/.git/config", "");
    ground.file("src/deep/own/b.log", "needle");
    let at = |start: &str| {
        let root = ground.ws(start);
        let action = Action::Search { root, pattern: Some("needle".into()), glob: None };
        let Report::Search(report) = perform(action).unwrap() else { panic!() };
        paths(&report).iter().map(|&path| path.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(at("src/deep"), ["back.tmp", "found.rs", "keep.log", "only-top"]);
    // The control: the same from above, and in a repository of its own without the rules of the one around
    // it.
    let prefixed: Vec<String> =
        at("").iter().filter_map(|path| path.strip_prefix("src/deep/")).map(str::to_owned).collect();
    assert_eq!(prefixed, at("src/deep"));
    assert_eq!(at("src/deep/own"), ["b.log"]);
    // What is named is searched, even where it is ignored; without a repository every directory above counts.
    assert_eq!(at("target"), ["debug/out"]);
    std::fs::remove_dir_all(ground.ws(".git").0).unwrap();
    assert_eq!(at("src/deep"), ["back.tmp", "excluded", "found.rs", "keep.log", "only-top"]);
}

#[test]
fn a_single_file_can_be_searched() {
    let ground = ground();
    let action = Action::Search { root: ground.ws("src/main.rs"), pattern: Some("need".into()), glob: None };
    let Report::Search(report) = perform(action).unwrap() else { panic!() };
    assert_eq!((paths(&report), report.found[0].line), (vec![""], 2));
}

#[test]
fn hits_lines_and_files_are_bounded() {
    let ground = Ground::new();
    ground.file("many", "needle\n".repeat(3_000));
    ground.file("zlong", format!("needle{}", "é".repeat(1_000)));
    let report = search(&ground, Some("needle"), None).unwrap();
    assert_eq!((report.found.len(), report.cut), (1_000, true));
    let report = search(&ground, Some("needleé"), None).unwrap();
    assert!(report.found[0].text.len() <= 500 && report.found[0].text.starts_with("needleé"));
    assert!(!report.cut);
}

#[test]
fn a_huge_sparse_file_and_a_line_without_end_stop_nothing() {
    let ground = Ground::new();
    let big = ground.file("big", "needle\n");
    std::fs::OpenOptions::new().write(true).open(big).unwrap().set_len(10 << 30).unwrap();
    ground.file("line", vec![b'x'; 12 << 20]);
    ground.file("z", "needle\n");
    let started = std::time::Instant::now();
    let report = search(&ground, Some("needle"), None).unwrap();
    assert!(started.elapsed().as_secs() < 9, "{:?}", started.elapsed());
    assert_eq!(report.partly, ["big", "line"], "parts of both files were not searched");
    assert!(!report.cut, "all others were");
    assert!(paths(&report).contains(&"z"));
}

#[test]
fn unusable_patterns_are_refused_with_a_reason() {
    let ground = Ground::new();
    let long = "a".repeat(5_000);
    for pattern in ["(", "a\nb", r"(\w{200}){200}", &long] {
        let refused = search(&ground, Some(pattern), None).unwrap_err();
        assert!(refused.contains("the pattern is not usable"), "{refused}");
    }
    assert!(search(&ground, None, Some("{a")).unwrap_err().contains("the glob is not usable"));
}

#[test]
fn a_line_ends_before_crlf() {
    let ground = Ground::new();
    ground.file("a", "foo;\r\nfoo; bar\r\n");
    assert_eq!(paths(&search(&ground, Some("foo;$"), None).unwrap()), ["a"]);
}
